"""The numbers behind the views, against `physics`, `nets` and `analysis`, without a browser."""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

import analysis
import nets
import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")

from browser import executed, loaded
from sessions import alone, followed, opened, passed, played, put

from grokphys.explorer.session import file_bytes
from grokphys.explorer.view import FrameView
from grokphys.explorer.views import VIEWS

PARTICLES, NETWORKS, THEORY, CIRCLES, NEURONS = VIEWS
PRESETS = [(kind, preset) for kind in VIEWS for preset in kind.presets]


def points(plot):
    return np.transpose([plot.tokens.data["x"], plot.tokens.data["y"]])


def sums(plot):
    return np.transpose([plot._sums.data["x"], plot._sums.data["y"]])


def curves(figure):
    """Curves (x, y) by their names."""
    data = figure._lines.data
    return {name: (x, y) for name, x, y in zip(data["name"], data["xs"], data["ys"], strict=True)}


# -- every view ------------------------------------------------------------------------------------------


pages = cache(opened)
"""A page for each view on which all its presets are opened, one after the other."""


@pytest.mark.parametrize(("kind", "preset"), PRESETS, ids=[f"{k.slug}: {p.name}" for k, p in PRESETS])
def test_what_is_on_screen_is_what_its_program_gives_and_what_its_link_opens(kind, preset):
    page = pages(kind)
    view = followed(page, preset.name, 4)
    assert page.bridge.preset == preset.name
    assert page.bridge.watch.startswith(preset.watch)
    assert page.bridge.speed == preset.speed
    made = executed(view.python())
    if kind is CIRCLES:
        expected = view.run.embeddings[view.frame]
    else:
        expected = view.trajectory().positions[0][view.frame if issubclass(kind, FrameView) else -1]
        np.testing.assert_array_equal(
            loaded(file_bytes(view.trajectory())).positions, view.trajectory().positions
        )
    np.testing.assert_allclose(made["E"], expected, rtol=0, atol=1e-12 if kind is THEORY else 0)
    other = opened(kind)
    other._command("open", page.bridge.link)
    passed(other, 2)
    assert other.bridge.message[1] != "error", other.bridge.message
    assert other.view.state() == view.state()
    assert (other.view.python(), other.bridge.verdict) == (view.python(), page.bridge.verdict)
    assert other.view.status() == view.status()


# -- particles -------------------------------------------------------------------------------------------


def test_particles_are_those_of_simulate():
    page = opened(PARTICLES)
    put(page, tokens=13, dim=3, seed=5, alignment=1.5, step_size=0.01, modulus=7, plane="axes 2, 3")
    view = played(page, 12)
    system = physics.ParticleSystem(13, 3, alignment=1.5, modulus=7)
    expected = physics.simulate(system, steps=12, step_size=0.01, seed=5)
    np.testing.assert_array_equal(view.run.history["positions"], expected.positions[0])
    np.testing.assert_allclose(points(view.plots["particles"]), expected.final[0][:, 1:], rtol=0, atol=1e-12)
    i, j = np.triu_indices(13)
    added = {(a, b): expected.final[0][a, 1:] + expected.final[0][b, 1:] for a, b in zip(i, j, strict=True)}
    shown = dict(
        zip(view.plots["particles sums"]._sums.data["pair"], sums(view.plots["particles sums"]), strict=True)
    )
    for (a, b), place in added.items():
        np.testing.assert_allclose(shown[f"{a}, {b}"], place, atol=1e-4)
    classes = dict(
        zip(
            view.plots["particles sums"]._sums.data["pair"],
            view.plots["particles sums"]._sums.data["class"],
            strict=True,
        )
    )
    assert all(classes[f"{a}, {b}"] == (a + b) % 7 for a, b in added)
    E = expected.final[0]
    assert view.status() == {
        "step": "12",
        "time": "0.12",
        "circle ratio": f"{physics.circle_ratio(E):.3f}",
        "imperfections": str(physics.grid_imperfections(E, modulus=7)),
    }
    ((_, ratios),) = curves(view.plots["circle_ratio"]).values()
    np.testing.assert_allclose(ratios, [physics.circle_ratio(E) for E in expected.positions[0]])


def test_measured_forces_take_the_place_of_those_of_musat_on_the_way():
    page = opened(PARTICLES)
    view = played(page, 3)
    before = view.run.positions
    put(page, forces="measured")
    assert not view.widgets["alignment"].visible
    played(page, 2)
    law = view.run.system
    assert view.run.law(1) == physics.ParticleSystem(alignment=2.0)
    ratio = np.abs(law.forces(before)).sum() / np.abs(view.run.law(1).forces(before)).sum()
    assert 0.2 < ratio < 5
    expected = physics.simulate(law, initial=before, steps=2).final[0]
    np.testing.assert_array_equal(executed(view.python())["E"], expected)
    np.testing.assert_array_equal(view.run.positions, expected)


def test_two_starts_end_as_circle_and_grid():
    page = opened(PARTICLES)
    view = followed(page, "two starts, one law", 200)
    assert re.fullmatch(
        r"First start: Circle, .* Second start: Grid, \d+ imperfections. .*", page.bridge.verdict
    )
    made = executed(view.python())
    np.testing.assert_array_equal(made["second"], view._twin.positions)
    assert physics.is_circle(made["E"])
    tokens, added = (view.plots["second start"], view.plots["second start sums"])
    np.testing.assert_array_equal(points(tokens), made["second"])
    pairs = view.run.system.operation.samples
    np.testing.assert_allclose(sums(added), made["second"][pairs].sum(axis=1), atol=1e-4)
    assert set(curves(view.plots["circle_ratio"])) == {"first start", "second start"}


def test_particles_settle():
    page = opened(PARTICLES)
    assert followed(page, "a circle forms", 12).verdict().endswith("Still moving.")
    assert played(page, 400).verdict().startswith("Circle, neighbors 8 apart (0, 8, 16, 7, …)")
    assert page.bridge.verdict.endswith("Settled.")
    moved = np.abs(page.view.run.history["positions"][-1] - page.view.run.history["positions"][-11]).max()
    assert moved / 10 < 1e-4 * np.abs(page.view.run.positions).max()


def test_arrows_are_the_velocities():
    view = followed(opened(PARTICLES), "pull it apart", 3)
    E, velocity = view.run.positions, view.run.velocity(view.run.positions)
    data = view.plots["particles"]._arrows.data
    arrows = np.transpose([np.subtract(data["x1"], data["x0"]), np.subtract(data["y1"], data["y0"])])
    np.testing.assert_allclose(np.transpose([data["x0"], data["y0"]]), E)
    scale = arrows[0, 0] / velocity[0, 0]
    assert 0 < scale <= 0.2 + 1e-12
    np.testing.assert_allclose(arrows, scale * velocity)


@pytest.mark.parametrize("kind", ["circle", "grid"])
def test_starts_are_what_they_say(kind):
    page = opened(PARTICLES)
    put(page, noise=0.0, kind=kind, tokens=9)
    E = page.view.run.positions
    if kind == "circle":
        np.testing.assert_allclose(np.hypot(*E.T), np.sqrt(2))
        np.testing.assert_allclose(
            E[2], np.sqrt(2) * np.array([np.cos(4 * np.pi / 9), np.sin(4 * np.pi / 9)])
        )
    else:
        assert {tuple(place) for place in E.tolist()} == {(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)}


def test_a_run_that_blows_up_is_named_and_ends():
    page = opened(PARTICLES)
    page.view.run.move(0, np.array([1e200, 0.0]))
    page.bridge.playing = 1
    alone(page.move(lambda: page.view.advance(1)))
    assert page.bridge.message[1] == "error"
    assert re.search(r"blown up by step 1: .*; make the step size smaller than", page.bridge.message[2])
    assert page.bridge.playing == 0


def test_laws_and_moves_of_a_run_are_in_its_program_and_left_out_of_its_link():
    page = opened(PARTICLES)
    view = played(page, 3)
    assert page.bridge.lacks == ""
    put(page, alignment=3.0)
    played(page, 2)
    view._move(4, np.array([0.5, -0.25]))
    put(page, step_size=0.03)
    put(page, modulus=5)
    played(page, 4)
    first = physics.ParticleSystem(alignment=2.0)
    E = physics.simulate(first, steps=3, step_size=0.02, seed=0).final[0]
    stronger = physics.ParticleSystem(alignment=3.0)
    E = physics.simulate(stronger, steps=2, step_size=0.02, initial=E).final[0].copy()
    E[4] = 0.5, -0.25
    last = physics.ParticleSystem(alignment=3.0, modulus=5)
    E = physics.simulate(last, steps=4, step_size=0.03, initial=E).final[0]
    np.testing.assert_array_equal(view.run.positions, E)
    np.testing.assert_array_equal(executed(view.python())["E"], E)
    assert "Copy as Python" in page.bridge.lacks
    assert view.state() == {"alignment": 3.0, "step_size": 0.03, "modulus": 5}, "no step is repeated"
    page._command("reset", None)
    assert (view.run.step, view.changed, page.bridge.lacks) == (0, False, "")
    assert view.run.system == last


# -- networks --------------------------------------------------------------------------------------------


def test_a_network_is_that_of_training():
    page = opened(NETWORKS)
    put(page, tokens=11, dim=3, hidden=16, seed=4)
    view = played(page, 2)
    put(page, decay=0.5)
    view = played(page, 2)
    model = nets.ConstantAttention(11, 3, 16)
    training = nets.Training(model, seed=4, learning_rate=0.01, weight_decay=1.0)
    training.advance(16)
    training.set_rates(learning_rate=0.01, weight_decay=0.5)
    training.advance(16)
    np.testing.assert_array_equal(view.run.training.embeddings, training.embeddings)
    (loss,), (accuracy,) = training.losses("train")
    _, (held_out,) = training.losses("validation")
    shown = view.status()
    assert shown["train loss"] == f"{loss:.4f}"
    assert (shown["train accuracy"], shown["validation accuracy"]) == (f"{accuracy:.3f}", f"{held_out:.3f}")
    assert shown["particle step"] == "1", "20 optimizer steps for each"
    E = training.embeddings[0].astype(float)
    np.testing.assert_allclose(points(view.plots["embedding"]), E[:, :2])
    pairs = np.asarray(model.task.inputs)
    np.testing.assert_allclose(sums(view.plots["embedding sums"]), E[pairs].sum(axis=1)[:, :2], atol=1e-4)
    losses = curves(view.plots["loss"])
    assert losses["train"][0].tolist() == [0, 8, 16, 24, 32]
    np.testing.assert_allclose(losses["train"][1][-1], loss, rtol=1e-6)
    held = view.plots["embedding sums"]._sums.data["fill"].count("#ffffff")
    assert held == len(model.task.labels) - len(training.networks().examples("train")[0])


def test_the_map_is_what_the_network_answers_there():
    view = followed(opened(NETWORKS), "a circle forms", 5)
    data = view.plots["embedding sums"]._map.data
    image, (left,), (bottom,), (width,) = data["image"][0], data["x"], data["y"], data["dw"]
    count = len(image)
    E = view.run.training.embeddings[0].astype(float)
    middle = E[np.asarray(view.run.model.task.inputs)].sum(axis=1).mean(axis=0)
    row, column = 50, 20
    place = np.array([left + width * column / (count - 1), bottom + data["dh"][0] * row / (count - 1)])
    assert np.abs(view.run.axes @ view.run.axes.T - np.eye(2)).max() < 1e-12
    place = place @ view.run.axes + middle - view.run.axes.T @ (view.run.axes @ middle)
    assert image[row, column] == view.run.training.networks().classify(place[None])[0, 0]


def test_another_kind_of_network_has_the_settings_of_its_paper():
    page = opened(NETWORKS)
    put(page, kind="toy addition")
    values = page.view.values
    assert (values.tokens, values.dim, values.hidden, values.rate, values.decay) == (10, 1, 200, "0.001", 0.0)
    view = played(page, 2)
    training = nets.Training(
        nets.ToyAddition(10, 1, (200, 200)), seed=0, learning_rate=0.001, weight_decay=0.0,
        embedding_learning_rate=0.001, embedding_weight_decay=0.0, train_fraction=45 / 55,
    )  # fmt: skip
    training.advance(16)
    np.testing.assert_array_equal(view.run.training.embeddings, training.embeddings)
    assert view.run.particles.system.modulus == 19, "above all sums"


def test_a_network_memorizes_and_says_when():
    view = followed(opened(NETWORKS), "memorizes only", 12)
    steps, accuracy = view.run.history.steps, view.run.history["train_accuracy"]
    assert view.run.memorized == steps[np.argmax(accuracy >= 0.97)] < 60
    assert view.run.generalized is None
    assert view.verdict().startswith(
        f"Memorizes by step {view.run.memorized}; now it answers 100 % of the tr"
    )
    E = view.run.training.embeddings[0].astype(float)
    sums = E[np.asarray(view.run.model.task.inputs)].sum(axis=1)
    share = (sums @ view.run.axes.T).var(axis=0).sum() / sums.var(axis=0).sum()
    note = view._cards["embedding sums"].children[0].text
    assert f"Projected from 16 dimensions: {100 * share:.0f} % of the variance" in note
    circles = analysis.surviving_frequencies(view.run.training.embeddings[0]).tolist()
    assert view.status()["circles"] == (" ".join(map(str, circles)) or "none")


@pytest.mark.slow
def test_a_network_groks():
    page = opened(NETWORKS)
    page._command("preset", "networks/it groks")
    run = page.view.run
    while run.generalized is None and run.step < 3000:
        run.advance(10)
    assert run.memorized <= 70
    assert run.generalized - run.memorized >= 1000
    assert page.view.verdict().startswith(f"It groks: memorizes by step {run.memorized}, and generalizes")


# -- theory ----------------------------------------------------------------------------------------------


def test_a_training_set_is_that_of_the_theory():
    page = opened(THEORY)
    put(page, tokens=7, size=12, seed=2)
    view = played(page, 40)
    run = view.run
    theory = physics.EffectiveTheory(7, 1, run.pairs)
    shown = view.status()
    assert shown["pairs"] == "12 of 28"
    assert shown["ground states"] == str(theory.ground_state_dimension)
    assert shown["grokking rate"] == f"{theory.grokking_rate:.6g}"
    assert shown["ideal accuracy"] == f"{100 * physics.ideal_accuracy(theory):.2f} %"
    flow = physics.simulate(theory, steps=40, step_size=run.step_size, seed=2)
    np.testing.assert_allclose(run.embeddings[:41], flow.positions[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(points(view.plots["tokens"])[:, 0], run.embeddings[40, :, 0])
    quality = physics.representation_quality(flow.final[0], theory)
    assert shown["RQI"] == f"{quality:.4f}"
    cells = view.plots["pairs"]._cells.data
    assert [s == "trained" for s in cells["state"]] == run.mask.tolist()
    assert list(cells["class"]) == [i + j for i, j in zip(cells["i"], cells["j"], strict=True)]
    follows = physics.closures(theory.operation, run.mask[None]).augmented[0] & ~run.mask
    assert [s.startswith("follows") for s in cells["state"]] == follows.tolist()
    times, quality = curves(view.plots["quality"])["RQI"]
    np.testing.assert_allclose(quality, run.quality)
    np.testing.assert_allclose(times, run.step_size * np.arange(121))


def test_half_circles_of_a_parallelogram_have_one_center_at_the_end():
    view = followed(opened(THEORY), "it generalizes", 120)
    assert view.finished
    assert view.verdict().startswith("It generalizes: ")
    x, label = np.array(view.plots["tokens"]._outlines.data["xs"]), view.run.operation.label[view.run.linked]
    for answer in np.unique(label):
        assert np.ptp((x[:, 0] + x[:, -1])[label == answer]) < 2e-3
    gaps = np.diff(np.sort(view.run.embeddings[-1, :, 0]))
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-3)


def test_pairs_are_added_removed_and_kept():
    page = opened(THEORY)
    view = page.view
    before = view.run.mask.copy()
    view._click(2, 2)
    changed = np.flatnonzero(view.run.mask != before)
    assert [tuple(view.run.operation.samples[k]) for k in changed] == [(2, 2)]
    assert view.values.size == 45 + (1 if view.run.mask[changed[0]] else -1)
    view._click(11, 3)  # beside the grid
    assert np.flatnonzero(view.run.mask != before).tolist() == changed.tolist()
    mask = view.run.mask.copy()
    put(page, dim=2)
    np.testing.assert_array_equal(view.run.mask, mask)
    page._say_status()
    other = opened(THEORY)
    other._command("open", page.bridge.link)
    np.testing.assert_array_equal(other.view.run.mask, mask)
    assert other.view.run.dim == 2
    put(page, seed=4)
    assert view.run.mask.sum() == mask.sum()
    assert (view.run.mask != mask).any(), "drawn anew"
    put(page, tokens=6)
    assert (view.values.size, len(view.run.mask)) == (17, 21)
    put(page, modulus=6)
    assert set(view.plots["pairs"]._cells.data["class"]) == set(range(6))
    view._pick(np.zeros_like(view.run.mask))
    assert page.bridge.message[1] != "error"
    assert view.verdict() == "No pair is trained: nothing moves."


# -- circles ---------------------------------------------------------------------------------------------


def test_circles_are_those_of_the_file():
    page = opened(CIRCLES)
    view = followed(page, "an octave is lost", 4)
    trajectory = physics.example("ding")
    E = trajectory.positions[0].astype(float)
    assert view.run.survivors() == analysis.surviving_frequencies(E[-1]).tolist() == [7, 8, 11, 13, 25]
    axes = analysis.frequency_plane(E[-1], 22).axes
    frame = view.frame
    np.testing.assert_allclose(points(view.plots["tokens"]), (E[frame] - E[frame].mean(axis=0)) @ axes.T)
    steps, signals = view.run.signals
    plot = view.plots["signals"]
    alive = {plot._lines.data["name"][item.index] for item in plot.figure.legend.items}
    assert alive == {"k = 7", "k = 8", "k = 11", "k = 13", "k = 25"}
    x, y = curves(plot)["k = 11"]
    at = np.searchsorted(steps + 1, x)
    np.testing.assert_allclose(y, signals[at, 10])
    assert len(x) <= 301
    assert len(curves(view.plots["signals"])) == 29
    computed = analysis.fourier_signals(E).values
    both = np.isin(trajectory.steps, steps)
    np.testing.assert_allclose(signals[np.isin(steps, trajectory.steps)], computed[both], rtol=1e-4)
    assert view.status()["limit"] == f"{2 * analysis.fourier_signals(E[-1]).values.mean():.4g}"
    put(page, factor=10.0)
    assert analysis.surviving_frequencies(E[-1], factor=10.0).tolist() == view.run.survivors(10.0) == []
    assert page.bridge.verdict.startswith("In the last frame, no circle reaches the survival limit of ")


def test_a_circle_that_is_lost_is_said_with_its_octave():
    page = opened(CIRCLES)
    view = followed(page, "an octave is lost", 200)
    assert view.finished
    steps, signals = view.run.signals
    last = steps[signals[:, 21] >= view.run.limit()][-1]
    after = steps[steps > last][0]
    assert page.bridge.verdict.endswith(f"Circle 22 is lost by step {after}; its octave 11 survives.")


def test_a_law_is_fitted_and_its_rollout_shown():
    page = opened(CIRCLES)
    view = page.view
    put(page, recipe="least squares", last=500)
    fitted = view.run.fit("least squares", first=0, last=500)
    view._fitted = fitted
    view.look()
    steps, signals = view.run.signals
    inside = steps <= 500
    law = analysis.fit_trajectories(signals[inside], steps[inside], kind=fitted.kind, penalty=None)
    np.testing.assert_array_equal(fitted.A, law.A)
    times = np.arange(inside.sum()) if fitted.kind == "increment" else steps[inside]
    np.testing.assert_allclose(fitted.rollout, law.predict(signals[0], times))
    x, y = curves(view.plots["signals"])["k = 3, predicted"]
    np.testing.assert_allclose(y, fitted.rollout[np.searchsorted(fitted.steps + 1, x), 2])
    np.testing.assert_allclose(view.plots["coefficients"]._source.data["value"][0], fitted.A, rtol=1e-6)
    assert view.status()["rollout R²"] == f"{fitted.scores.in_sample.rollout:.4f}"
    assert "0.999 of the rollout" in view._scores.text
    made = executed(view.python())
    np.testing.assert_array_equal(made["law"].A, fitted.A)
    put(page, first=400, last=401)
    with pytest.raises(physics.InputError, match="at least 3 frames"):
        view.run.fit(first=400, last=401)


def test_circles_need_as_many_tokens_as_the_modulus_of_the_file(tmp_path):
    positions, path = np.random.default_rng(0).normal(size=(1, 3, 15, 4)), tmp_path / "run.h5"
    physics.Trajectory(positions, range(3), parameters={"modulus": 13}).save(path)
    page = opened(CIRCLES, files=[path])
    kind, words = page.bridge.message[1:]
    assert kind == "error"
    assert re.search(r"run\.h5 .* 13 numbers of the modulus 13 .*got 15", words)
    assert page.view.run.tokens == 59, "the example instead"
    physics.Trajectory(positions[:, :, :13], range(3), parameters={"modulus": 13}).save(path, overwrite=True)
    page = opened(CIRCLES, files=[path])
    assert (page.bridge.message[1], page.view.run.frequencies) == ("", 6)


def test_a_run_that_blew_up_is_named_and_has_no_survivors(tmp_path):
    scale = (10.0 ** (19 * np.arange(4)))[:, None, None]
    positions = np.random.default_rng(0).normal(size=(1, 4, 9, 4)) * scale
    physics.Trajectory(positions, range(4)).save(tmp_path / "run.h5")
    page = opened(CIRCLES, files=[tmp_path / "run.h5"])
    assert page.view.run.survivors() == []
    assert re.search(r"blown up: its largest coordinate is \d\.\de\+57", page.bridge.verdict)


def test_a_file_that_is_being_recorded_is_followed(tmp_path):
    path = tmp_path / "run.h5"
    stop = RuntimeError("stopped")

    def interrupt(step, *_):
        if step == 30:
            raise stop

    system = physics.ParticleSystem(7)
    with pytest.raises(RuntimeError):
        physics.simulate(system, steps=60, seed=1, out=path, callback=interrupt)
    page = opened(CIRCLES, files=[Path(f"{path}.partial")])
    view = page.view
    seen = len(view.run.steps)
    assert view.status()["recording"] == "not complete"
    assert view.waits
    whole = physics.simulate(system, steps=60, seed=1, out=path, resume=True)
    view._follow()
    page._say_status()
    assert seen < len(view.run.steps) == 61
    np.testing.assert_array_equal(view.run.embeddings[-1], whole.final[0])
    assert view.values.file == str(path)
    assert "recording" not in view.status()
    assert page.bridge.playing == 0


def test_an_upload_is_shown_by_the_view_that_reads_files(tmp_path):
    run = physics.simulate(physics.ParticleSystem(11), runs=2, steps=5, seed=3)
    run.save(tmp_path / "abc.h5")
    page = opened(NETWORKS, CIRCLES, folder=tmp_path)
    page._command("uploaded", ["abc", "mine.h5"])
    assert (page.view.slug, page.view.run.name) == ("circles", "mine.h5")
    np.testing.assert_array_equal(page.view.run.embeddings, run.positions[0])
    put(page, run=1)
    np.testing.assert_array_equal(page.view.run.embeddings, run.positions[1])
    assert page.view.status()["run"] == "1 of 0–1"
    page._command("uploaded", ["../abc", "mine.h5"])
    assert page.bridge.message[1] == "error"
    page.close()
    assert not (tmp_path / "abc.h5").exists()


# -- neurons ---------------------------------------------------------------------------------------------


def test_neurons_are_those_of_training_and_of_the_exact_flow():
    page = opened(NEURONS)
    put(page, tokens=11, hidden=8, seed=2, neuron=3)
    view = played(page, 20)
    training = nets.Training(
        nets.TwoLayer(11, 8, "quadratic", scale=0.1), seed=2, learning_rate=2.0, weight_decay=0.0,
        optimizer="sgd", train_fraction=1.0,
    )  # fmt: skip
    start = analysis.neuron_spectrum(**training.networks().neuron_weights())
    training.advance(100)
    weights = training.networks().neuron_weights()
    spectrum = analysis.neuron_spectrum(**{name: values.astype(float) for name, values in weights.items()})
    shown = view.status()
    assert (shown["training step"], shown["neuron"]) == ("100", "3")
    assert shown["purity"] == f"{spectrum.purity[0, 3]:.3f}"
    assert shown["phase misalignment"] == f"{spectrum.misalignment[0, 3]:+.2f}"
    np.testing.assert_allclose(
        [y[1] for _, y in curves(view.plots["spectrum"]).values()], spectrum.magnitude[0, 3]
    )
    race = physics.FourierLottery(11)
    times = race.blowup_times(start.theta[0], start.xi[0]) / 2.0
    assert shown["blow-up time"] == f"{times[3].min():.0f}"
    winners = race.winners(start.theta[0], start.xi[0])
    share = 100 * (spectrum.frequency[0] == winners).mean()
    assert f"the exact flow predicts {winners[3]}. {share:.0f} % of neurons" in page.bridge.verdict
    angle, radius = spectrum.misalignment[0], spectrum.magnitude[0].max(axis=1)
    places = (radius / radius.max())[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    np.testing.assert_allclose(points(view.plots["phases"]), places, rtol=0, atol=1e-6)
    solved, _ = race.solve(start.theta[0][3:4], start.xi[0][3:4], [2.0 * 50])
    steps, flow = view.run.flow(3)
    for k in range(5):
        assert np.interp(50, steps, flow[:, k]) == pytest.approx(abs(solved[0, 0, k]), rel=1e-3)


def test_logits_of_all_neurons_are_those_of_the_network():
    page = opened(NEURONS)
    put(page, tokens=7, hidden=8, activation="relu")
    view = played(page, 3)
    inside, outside = view.run.weights()
    a, b = np.indices((7, 7)).reshape(2, -1)
    logits = np.maximum(inside[a] + inside[b], 0) @ outside
    expected = np.stack([logits[(a + b) % 7 == s].mean(axis=0) for s in range(7)])
    expected -= expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(view.plots["logits"]._source.data["value"][0], expected, rtol=1e-5, atol=1e-9)
    put(page, optimizer="AdamW")
    assert view.values.rate == 0.005
    assert "blow-up time" not in view.status()


# -- links that are refused ------------------------------------------------------------------------------

REFUSED = [
    ("particles", {"tokens": 65}, "tokens N"),
    ("particles", {"tokens": 5.5}, "tokens N"),
    ("particles", {"alignment": float("nan")}, "alignment"),
    ("particles", {"twin": 1}, "second start"),
    ("particles", {"kind": "square"}, "start"),
    ("particles", {"plane": "axes 1, 3"}, "plane"),
    ("particles", {"step": 20_001}, "step"),
    ("networks", {"rate": "0.04"}, "learning rate"),
    ("theory", {"size": 56}, "pairs"),
    ("theory", {"pairs": "xyz"}, "pairs"),
    ("circles", {"plane": "frequency 30"}, "plane"),
    ("circles", {"factor": 0}, "limit"),
    ("circles", {"file": "/etc/passwd"}, "file"),
]


@pytest.mark.parametrize(("slug", "state", "word"), REFUSED, ids=range(len(REFUSED)))
def test_a_link_with_a_wrong_value_changes_nothing(slug, state, word):
    (kind,) = (kind for kind in VIEWS if kind.slug == slug)
    page = opened(kind)
    view = played(page, 2)
    before = view.state(), view.python()
    page._command("open", json.dumps({"view": slug, "state": state}))
    kind, words = page.bridge.message[1:]
    assert kind == "error"
    assert words.startswith(word) or f" {word}" in words
    assert len(words) < 300
    assert (view.state(), view.python()) == before


@pytest.mark.parametrize("text", ["", "nothing", "{}", "[1]", '{"view":"none"}', "[" * 100_000])
def test_what_is_no_link_is_a_sentence(text):
    page = opened(PARTICLES)
    page._command("open", text)
    assert page.bridge.message[1] == "error"
    assert re.match("link must be|view must be", page.bridge.message[2])


def test_a_link_names_files_by_absolute_paths(tmp_path, monkeypatch):
    physics.simulate(physics.ParticleSystem(7), steps=3, out=tmp_path / "a.h5")
    page = opened(CIRCLES, files=[tmp_path / "a.h5"])
    assert json.loads(unquote(page.bridge.link))["state"]["file"] == str(tmp_path / "a.h5")
    monkeypatch.chdir("/")
    put(page, run=0, plane="axes 1, 2")
    assert page.bridge.message[1] != "error"
