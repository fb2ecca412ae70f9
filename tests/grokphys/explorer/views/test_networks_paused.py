"""The view of networks and its runs after each change while they rest, and in rare settings."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import drawn, opened, put

import nets
from grokphys.explorer import theme
from grokphys.explorer.films.network import network_film
from grokphys.explorer.plots import plane
from grokphys.explorer.runs import planes, verdicts
from grokphys.explorer.runs.networks import LOSSES, NetworkRun, Stretch
from grokphys.explorer.views import networks
from grokphys.explorer.views import view as views
from physics.errors import SimulationError
from physics.particles.structures import circle_ratio
from physics.particles.system import ParticleSystem

MODEL = nets.ConstantAttention(5, 2, 4)


@pytest.fixture(scope="module")
def page():
    views.prepared(networks.NetworksView)
    return opened(networks.NetworksView)


@pytest.fixture
def start(page):
    def begin(**state):
        page.view.restore({"tokens": 5, "hidden": 4} | state)
        return page.view

    return begin


def xy(source):
    return np.stack([source.data["x"], source.data["y"]], axis=1)


def test_another_plane_is_drawn_in_all_panels_while_the_network_rests(page, start):
    view = start(dim=3)
    view.advance(41)
    view.show()
    put(page, view._plane, "axes 2, 3")
    run, pairs = view._run, np.asarray(view._run.model.task.inputs)
    E = run.training.embeddings[0].astype(float)
    for points, tokens, sums in (
        (E, view._embedding, view._sums),
        (run.particles.positions, view._particles, view._particle_sums),
    ):
        np.testing.assert_allclose(xy(tokens.tokens), points[:, 1:])
        np.testing.assert_allclose(xy(sums._sums), points[pairs][..., 1:].sum(axis=1), atol=1e-4)
        for name in ("x0", "x1"):  # no trail leads from another plane
            np.testing.assert_allclose(
                tokens._trails.data[name], np.tile(points[:, 1], plane.TRAIL), atol=1e-4
            )
    left, right, bottom, top = run.map_bounds
    assert run.map_bounds == theme.bounds(view._sums.figure)
    middle = E[pairs].sum(axis=1).mean(axis=0)[0]
    (image,) = view._map.data["image"]
    for row, column in ((3, 60), (40, 11), (71, 30)):
        x, y = np.linspace(left, right, 72)[column], np.linspace(bottom, top, 72)[row]
        seen = run.training.networks().classify(np.array([[middle, x, y]]))[0, 0]
        assert image[row, column] == seen
    axes = drawn(view.film())
    for name, points in (("embedding", E), ("particles", run.particles.positions)):
        np.testing.assert_allclose(axes[name].collections[1].get_offsets(), points[:, 1:])
    put(page, view._tokens, 6)
    assert view._plane.value == "axes 2, 3"


def test_the_map_follows_the_size_of_its_figure(monkeypatch, page, start):
    view = start()
    monkeypatch.setattr(page, "soon", lambda function: function())
    put(page, view._sums.figure, 300, "inner_height")
    put(page, view._sums.figure, 900, "inner_width")
    left, right, bottom, top = view._run.map_bounds
    assert right / top == -left / top == 3
    assert view._map.data["dw"] == [2 * right]
    assert view._map.data["dh"] == [top - bottom]


def test_classes_are_written_in_both_figures_of_pair_sums(page, start):
    view = start(numbers="numbers")
    both = view._sums._texts, view._particle_sums._texts
    labels = [str(label) for label in view._run.model.task.labels]
    assert [texts.data["class"] for texts in both] == [labels] * 2
    put(page, view._numbers, "markers")
    assert [list(texts.data["class"]) for texts in both] == [[], []]
    put(page, view._numbers, "numbers")
    assert [texts.data["class"] for texts in both] == [labels] * 2


def test_a_reset_shows_the_start_with_the_rates_of_now(page, start):
    view = start(alignment=2.0)
    first = view._run.training.embeddings[0].copy()
    view.advance(45)
    put(page, view._rate, "0.002")
    put(page, view._alignment, 0.5)
    view.advance(20)
    view.show()
    page._command("reset", None)
    run = view._run
    np.testing.assert_array_equal(run.training.embeddings[0], first)
    np.testing.assert_allclose(xy(view._embedding.tokens), first, atol=1e-7)
    assert (run.particles.step, run.particles.system) == (0, ParticleSystem(5, alignment=0.5))
    assert (run.stretches[0].learning_rate, len(run.stretches)) == (0.002, 1)
    assert view._loss._source.data["step"].tolist() == [0]
    assert "before" not in view.state()
    names = {}
    run.advance(3)
    exec(view.python(), names)
    np.testing.assert_array_equal(names["E"], run.training.embeddings[0])


def test_another_network_begins_without_the_changes_of_the_one_before(page, start):
    for name, value in (("seed", 3), ("tokens", 6), ("dim", 3), ("hidden", 5), ("kind", networks.ADDITION)):
        view = start()
        view.advance(4)
        put(page, view._rate, "0.002")
        assert [step for step, _ in view.state()["before"]] == [4]
        put(page, view.widgets[name], value)
        assert view._run.step == 0
        assert not {"before", "step"} & set(view.state()), name
        assert not view.begun
        view.advance(3)
        put(page, view._alignment, 0.5)
        ((step, before),) = view.state()["before"]
        assert (step, set(before)) == (3, {"alignment"}), "what changed before the start is no change"


def test_toy_addition_trains_its_embedding_at_rates_of_its_own(monkeypatch, page, start):
    view = start()
    assert "embedding_learning_rate" not in view.python()
    put(page, view._kind, networks.ADDITION)
    assert (
        "embedding_learning_rate=0.001, embedding_weight_decay=0.0, "
        "train_fraction=0.8181818181818182" in view.python()
    )
    for field, value in ((view._hidden, 4), (view._tokens, 5), (view._dim, 3)):
        put(page, field, value)
    assert view._plane.options == planes.planes(3), "plain sums form no circles"
    run, moduli = view._run, []
    monkeypatch.setattr(
        "grokphys.explorer.runs.networks.grid_imperfections", lambda E, modulus: moduli.append(modulus) or 1
    )
    run.advance(1)
    assert (moduli, run.history.last["imperfections"]) == ([9], 1)
    assert run.trajectory().parameters["train_fraction"] == 45 / 55
    put(page, view._kind, networks.ATTENTION)
    put(page, view._dim, 3)
    assert view._plane.options == planes.planes(3, cyclic=True)


# -- runs --------------------------------------------------------------------------------------------------


def run_of(model=MODEL, ratio=20, law=None, **settings):
    return NetworkRun(model, 0, 0.01, 1.0, law or ParticleSystem(model.tokens, model.dim), ratio, **settings)


def test_another_law_has_its_own_step_and_the_same_one_changes_nothing():
    run, law = run_of(ratio=1), ParticleSystem(5, alignment=3.0)
    run.advance(2)
    first = run.particles.step_size
    assert first == ParticleSystem(5).default_step_size
    run.change_law(ParticleSystem(5))
    assert len(run.particles.segments) == 1
    run.change_law(law)
    run.advance(2)
    assert len(run.particles.segments) == 2
    assert run.particles.step_size == law.default_step_size
    np.testing.assert_allclose(
        run.particles.trajectory().times[-1],
        2 * ParticleSystem(5).default_step_size + 2 * law.default_step_size,
    )


@pytest.mark.parametrize(
    ("train", "held_out", "expected"),
    [
        (0.96, 0.49, (None, None, None)),
        (0.97, 0.5, (3, None, 3)),
        (0.97, 0.89, (3, None, 3)),
        (1.0, 0.9, (3, 3, 3)),
    ],
)
def test_what_is_learned_is_noted_with_its_step_and_forgotten_at_a_reset(
    monkeypatch, train, held_out, expected
):
    run = run_of()
    measured = {"train": (0.5, train), "validation": (0.25, held_out)}
    monkeypatch.setattr(
        nets.Training, "losses", lambda _, part: tuple(np.array([value]) for value in measured[part])
    )
    run.advance(3)
    assert (run.memorized, run.generalized, run.partly) == expected
    assert [run.history.last[name] for name in LOSSES] == [0.5, train, 0.25, held_out]
    assert run.trajectory().observables["validation_accuracy"][0, -1] == held_out
    run.advance(4)
    assert (run.memorized, run.generalized, run.partly) == expected, "the step of the first time"
    view = SimpleNamespace(_run=run)
    said = networks.NetworksView.verdict(view)
    words = verdicts.learning(*expected[:2], train, held_out, partly=expected[2] is not None)
    assert said == f"{words} {run.shape[1]}"
    measured |= {"train": (0.5, 0.96), "validation": (0.25, 0.49)}
    run.reset()
    assert (run.memorized, run.generalized, run.partly) == (None,) * 3, "nothing stays of the run before"


@pytest.mark.parametrize(("count", "expected"), [(2, 3), (3, None)])  # of 15 pair sums
def test_an_embedding_is_a_grid_if_a_sixth_of_its_pair_sums_is_imperfect(monkeypatch, count, expected):
    run = run_of()
    run.grid = None
    monkeypatch.setattr(
        "grokphys.explorer.runs.networks.grid_imperfections", lambda E, modulus: np.array(count)
    )
    run.advance(3)
    assert run.grid == expected
    monkeypatch.setattr("grokphys.explorer.runs.networks.circle_ratio", lambda E: 9.0)
    run.advance(4)
    assert run.grid == expected
    assert (run.history.last["circle_ratio"], run.history["circle_ratio"][0] == 9.0) == (9.0, False)


def test_steps_that_particles_are_owed_wait_for_the_ratio_and_not_for_another_run():
    run = run_of(ratio=2)
    for steps, taken in ((3, 1), (1, 2), (1, 2)):
        run.advance(steps)
        assert run.particles.step == taken
    run.ratio = 3
    for taken in (2, 3):
        run.advance(1)
        assert run.particles.step == taken
    run.advance(2)
    run.reset()
    assert (run.step, run.particles.step, len(run.history), run.map) == (0, 0, 1, None)
    for taken in (0, 0, 1):
        run.advance(1)
        assert run.particles.step == taken


def test_rates_begin_a_stretch_only_after_steps_and_if_one_of_them_changes():
    run = run_of()
    run.change(0.02, 1.0)
    assert run.stretches == [Stretch(0.02, 1.0)], "no step was taken before"
    run.advance(2)
    run.change(0.02, 1.0)
    assert run.stretches == [Stretch(0.02, 1.0, 2)]
    run.change(0.02, 0.5)
    run.change(0.03, 0.5)
    assert run.stretches == [Stretch(0.02, 1.0, 2), Stretch(0.03, 0.5)]
    run.advance(3)
    run.change(0.04, 0.5)
    found = {}
    exec(run.python(), found)
    np.testing.assert_array_equal(found["E"], run.training.embeddings[0])
    np.testing.assert_array_equal(found["P"], run.particles.positions)
    assert run.trajectory().parameters["learning_rate"] == 0.04
    run.reset()
    assert run.stretches == [Stretch(0.04, 0.5)]


def test_a_network_that_diverges_is_a_sentence():
    run = run_of()
    run.training.advance = lambda steps: setattr(run, "training", SimpleNamespace(
        step=7, embeddings=np.full((1, 5, 2), np.inf)))  # fmt: skip
    with pytest.raises(SimulationError) as said:
        run.advance(7)
    assert str(said.value) == ("the network diverged by step 7; reset it, and choose a smaller learning rate")


def test_what_is_saved_names_the_rates_of_the_last_steps():
    run = run_of(ratio=2)
    run.advance(3)
    run.change(0.02, 0.25)
    run.advance(3)
    kept = run.trajectory()
    assert (kept.parameters["learning_rate"], kept.parameters["weight_decay"]) == (0.02, 0.25)
    assert kept.parameters["model"] == {"type": "ConstantAttention", **kept.parameters["model"]}
    assert kept.parameters["python"] == run.python()
    assert set(kept.observables) == set(LOSSES)
    assert run.history["particle_step"].tolist() == [0, 1, 3]
    np.testing.assert_array_equal(run.history["particles"][-1], run.particles.positions)
    assert run.history["circle_ratio"][-1] == circle_ratio(run.training.embeddings[0])


def test_a_film_has_the_curves_the_steps_and_the_maps_of_its_run():
    run = run_of(ratio=2)
    for _ in range(2):
        run.advance(3, (-3.0, 3.0, -2.0, 2.0))
    for frame in (0, 1, -1):
        axes = drawn(network_film(run), frame)
        row = range(3)[frame]
        assert axes["embedding"].get_title() == f"network, step {3 * row}"
        assert axes["particles"].get_title() == f"particles, step {[0, 1, 3][row]}"
        (image,) = axes["embedding sums"].images
        assert image.get_visible() == (row > 0), "the first frame has no map"
        if row:
            np.testing.assert_array_equal(image.get_array(), run.history.frames()[row][1]["map"])
            assert image.get_clim() == (-0.5, 4.5)
        for what in ("loss", "accuracy"):
            grown = {line.get_label(): line.get_ydata() for line in axes[what].lines}
            for part in ("train", "validation"):
                np.testing.assert_allclose(grown[part], run.history[f"{part}_{what}"][: row + 1])
    assert (axes["loss"].get_yscale(), axes["accuracy"].get_yscale()) == ("log", "linear")
    assert not axes["particles sums"].images
    E = run.training.embeddings[0]
    hollow = axes["embedding sums"].collections[0].get_facecolors()
    np.testing.assert_array_equal((hollow == 1).all(axis=1), run.held_out)
    np.testing.assert_allclose(
        axes["embedding sums"].collections[0].get_offsets(),
        E[np.asarray(run.model.task.inputs)].sum(axis=1),
        atol=1e-6,
    )
    run.history.frames()[1][1]["axes"] = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert not drawn(network_film(run))["embedding sums"].images, "a map of another plane is not drawn"
