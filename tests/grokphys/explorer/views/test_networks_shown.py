"""What the view of networks shows and says, recomputed from the network and the particles themselves."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import opened, put

from grokphys.explorer import theme
from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.networks import NetworkRun
from grokphys.explorer.runs.planes import plane_axes
from grokphys.explorer.views import networks
from grokphys.explorer.views import view as views
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.particles.system import ParticleSystem

SMALL = {"tokens": 5, "hidden": 4}


@pytest.fixture(scope="module")
def page():
    views.prepared(networks.NetworksView)
    return opened(networks.NetworksView)


@pytest.fixture
def small(page):
    """Start again with a network of 5 tokens and 4 hidden units, on the page of all tests."""

    def start(**state):
        page.view.restore(SMALL | state)
        return page.view

    return start


def xy(source):
    return np.stack([source.data["x"], source.data["y"]], axis=1)


@pytest.mark.parametrize("plane", ["axes 1, 3", "components 1, 2", "strongest circle"])
def test_network_and_particles_are_drawn_on_axes_of_their_own(plane, small):
    view = small(dim=3, plane=plane)
    run, before = view._run, (view._run.axes, view._particle_axes)
    first, expected = run.particles.positions, plane_axes(run.particles.positions, plane)
    for axes in before:
        np.testing.assert_allclose(axes.T @ axes, expected.T @ expected, atol=1e-9)
    np.testing.assert_allclose(xy(view._particles.tokens), first @ before[1].T)
    view.advance(41)
    view.show(whole=False)
    pairs, labels = np.asarray(run.model.task.inputs), run.model.task.labels
    E, P = run.training.embeddings[0].astype(float), run.particles.positions
    assert run.particles.step == 2
    sets = (
        (E, plane_axes(E, plane, before[0]), view._embedding, view._sums),
        (P, plane_axes(P, plane, before[1]), view._particles, view._particle_sums),
    )
    for points, axes, tokens, sums in sets:
        np.testing.assert_allclose(xy(tokens.tokens), points @ axes.T)
        np.testing.assert_allclose(xy(sums._sums), (points @ axes.T)[pairs].sum(axis=1), atol=1e-4)
        assert sums._sums.data["class"] == [str(label) for label in labels]
        hollow = np.array(sums._sums.data["fill"]) == "#ffffff"
        np.testing.assert_array_equal(hollow, run.held_out)
    assert view._loss._source.data["step"].tolist() == [0], "curves wait for a complete update"
    view.show()
    for curves, what in ((view._loss, "loss"), (view._accuracy, "accuracy")):
        assert curves._source.data["step"].tolist() == [0, 41]
        for part in ("train", "validation"):
            assert curves._source.data[part][-1] == run.training.losses(part)[what == "accuracy"][0]


def test_held_out_pairs_are_those_that_train_nothing(small):
    view = small()
    trained = set(map(int, view._run.training.networks().examples("train")[0]))
    held = {k for k, apart in enumerate(view._run.held_out) if apart}
    assert held
    assert trained
    assert held | trained == set(range(len(view._run.model.task.labels)))
    assert not held & trained


def test_another_plane_is_drawn_while_the_network_rests(small):
    view = small(dim=3, plane="axes 1, 2")
    E = view._run.training.embeddings[0].astype(float)
    view._plane.value = "axes 2, 3"
    np.testing.assert_allclose(xy(view._embedding.tokens), E @ view._run.axes.T)
    np.testing.assert_allclose(np.abs(view._run.axes), np.eye(3)[1:], atol=1e-9)


def test_the_map_lies_where_the_figure_looks_and_follows_its_zoom(small):
    view = small()
    figure = view._sums.figure
    left, right, bottom, top = view._run.map_bounds
    assert (left, right, bottom, top) == theme.bounds(figure)
    data = view._map.data
    assert [data[name] for name in ("x", "y", "dw", "dh")] == [
        [left],
        [bottom],
        [right - left],
        [top - bottom],
    ]
    np.testing.assert_array_equal(data["image"][0], view._run.map)
    assert view._colors.palette == theme.class_colors(5)
    assert (view._colors.low, view._colors.high) == (-0.5, 4.5)
    before = view._run.map
    figure.y_range.end = 3 * top
    view.show(whole=False)
    assert view._run.map_bounds == (3 * left, 3 * right, 3 * bottom, 3 * top)
    assert not np.array_equal(view._run.map, before)
    kept = view._run.history.last
    np.testing.assert_array_equal(kept["map"], view._run.map)
    np.testing.assert_allclose(kept["bounds"], view._run.map_bounds)
    view._run.look(None)
    view._show_map()
    assert view._map.data["image"] == view._map.data["dw"] == []


def test_particles_that_wait_are_not_drawn_again(small):
    view = small()
    drawn = []
    view._particles.move = drawn.append
    view.advance(19)
    view.show()
    assert drawn == [], "they take a step for 20 of the network"
    view.advance(1)
    view.show()
    assert len(drawn) == 1


def test_numbers_on_the_page_are_those_of_the_last_step(small):
    view = small()
    view.advance(45)
    run = view._run
    E = run.training.embeddings[0]
    (train_loss,), (train,) = run.training.losses("train")
    _, (held_out,) = run.training.losses("validation")
    said = view.status()
    assert run.shape[0] == ""
    assert said == {
        "step": "45",
        "train loss": f"{train_loss:.4f}",
        "train accuracy": f"{train:.3f}",
        "validation accuracy": f"{held_out:.3f}",
        "circle ratio": f"{circle_ratio(E):.3f}",
        "imperfections": str(grid_imperfections(E, modulus=5)),
        "particle step": "2",
    }
    words = verdicts.learning(run.memorized, run.generalized, train, held_out)
    assert view.verdict() == f"{words} {verdicts.shape(E.astype(float), 99)[1]}"
    assert view.state() == SMALL | {"step": 45}
    view.reset()
    assert "step" not in view.state()


@pytest.mark.parametrize(
    ("shape", "shown"),
    [("grid", {"imperfections"}), ("circle", {"circle ratio"}), ("", {"circle ratio", "imperfections"})],
)
def test_a_shape_is_shown_with_its_own_measure(shape, shown, monkeypatch, small):
    view = small()
    monkeypatch.setattr(NetworkRun, "shape", (shape, "Words."))
    assert {"circle ratio", "imperfections"} & view.status().keys() == shown
    view = small(dim=1)
    assert {"circle ratio", "imperfections"} & view.status().keys() == shown - {"circle ratio"}


@pytest.mark.parametrize(("found", "text"), [([1, 2], "1 2"), ([], "none")])
def test_in_many_dimensions_the_circles_that_stand_out_are_listed(found, text, monkeypatch, small):
    assert small(dim=3)._run.circles is None
    view = small(dim=4)
    assert view._run.circles is not None
    monkeypatch.setattr(NetworkRun, "circles", found)
    assert view.status()["circles"] == text
    assert not {"circle ratio", "imperfections"} & view.status().keys()
    assert view.verdict().endswith(verdicts.circles(found, 2))


def test_each_kind_of_network_has_the_law_and_the_sizes_of_its_paper(page, small):
    view = small(alignment=2.0, seed=3)
    assert view._run._law == ParticleSystem(5, 2, alignment=2.0)
    assert (view._run.seed, view._run.ratio) == (3, 20)
    put(page, view._kind, networks.ADDITION)
    model = view._run.model
    assert (model.tokens, model.dim, model.hidden) == (10, 1, (200, 200))
    assert view._run._law == ParticleSystem(10, 1, alignment=2.0, modulus=19)
    assert (view._run.stretches[0].learning_rate, view._run.stretches[0].weight_decay) == (0.001, 0.0)
    assert (~view._run.held_out).sum() == 45, "of the 55 pairs of ten digits"
    assert view._run.circles is None
    assert view._plane.options == ["axes 1, 2"]
    put(page, view._kind, networks.ATTENTION)
    assert (view._tokens.value, view._dim.value, view._hidden.value) == (17, 2, 32)
    assert (view._rate.value, view._decay.value) == ("0.01", 1.0)


def test_rates_are_round_numbers_in_order():
    assert networks.RATES[0] == "0.0001"
    rates = [float(rate) for rate in networks.RATES]
    assert rates == sorted(rates)
    assert rates[-1] == 0.2
    assert {rate.strip("0.") for rate in networks.RATES} == {"1", "2", "3", "5"}
    assert "0.03" in networks.RATES


def test_a_stretch_without_a_step_takes_the_new_rates(small):
    run = NetworkRun(small()._run.model, 0, 0.01, 1.0, ParticleSystem(5), 20)
    run.change(0.02, 1.0)
    run.change(0.02, 0.5)
    assert [(one.learning_rate, one.weight_decay, one.steps) for one in run.stretches] == [(0.02, 0.5, 0)]
    run.advance(3)
    run.change(0.02, 0.5)
    assert len(run.stretches) == 1, "nothing has changed"
    run.change(0.02, 0.25)
    run.advance(2)
    run.advance(4)
    assert [(one.weight_decay, one.steps) for one in run.stretches] == [(0.5, 3), (0.25, 6)]
    run.reset()
    assert [(one.learning_rate, one.weight_decay, one.steps) for one in run.stretches] == [(0.02, 0.25, 0)]


def test_steps_that_a_network_is_ahead_are_owed_to_the_particles(small):
    run = NetworkRun(small()._run.model, 0, 0.01, 1.0, ParticleSystem(5), 4)
    for steps, expected in ((3, 0), (3, 1), (1, 1), (1, 2), (9, 4)):
        run.advance(steps)
        assert run.particles.step == expected
    run.reset()
    run.advance(3)
    assert run.particles.step == 0, "nothing is owed from the run before"
