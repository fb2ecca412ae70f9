"""What the view of neurons shows and says, recomputed from the weights of the network."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import drawn, opened, put

from analysis.plots.palette import class_colors
from grokphys.explorer import theme
from grokphys.explorer.runs import verdicts
from grokphys.explorer.views import neurons
from grokphys.explorer.views import view as views
from physics.errors import SimulationError
from physics.neurons.lottery import FourierLottery

SMALL = {"tokens": 11, "hidden": 8}


@pytest.fixture(scope="module")
def page():
    views.prepared(neurons.NeuronsView)
    return opened(neurons.NeuronsView)


@pytest.fixture
def view(page):
    with page.view.filling():
        page.view._neuron.value = 0  # which no state holds
    page.view.restore(SMALL)
    return page.view


def fourier(weights):
    """Complex amplitude (K, hidden) of each frequency of weights (tokens, hidden), over half the tokens."""
    return 2 / len(weights) * np.fft.fft(weights, axis=0)[1 : len(weights) // 2 + 1]


def test_a_neuron_lies_at_its_misalignment_as_far_out_as_it_is_strong(view):
    view.advance(20)
    view.show()
    run = view._run
    inside, outside = run.weights()
    assert (inside.shape, outside.shape) == ((11, 8), (8, 11))
    points = np.stack([view._phases.tokens.data[name] for name in "xy"], axis=1)
    radius = np.abs(fourier(inside)).max(axis=0)
    np.testing.assert_allclose(np.hypot(*points.T), radius / radius.max(), rtol=1e-6)
    angle = np.arctan2(points[:, 1], points[:, 0])
    np.testing.assert_allclose(angle, run.spectrum.misalignment, atol=1e-9)
    frequency = np.abs(fourier(inside)).argmax(axis=0) + 1
    np.testing.assert_array_equal(run.spectrum.frequency, frequency)
    colors = theme.class_colors(8)
    assert view._phases.tokens.data["fill"] == [colors[k * 8 // 6] for k in frequency]


def test_the_chosen_neuron_has_its_weights_its_spectrum_and_its_race(page, view):
    view.advance(10)
    view.advance(15)
    put(page, view._neuron, 3)
    run = view._run
    inside, outside = run.weights()
    reads, writes = view._place._source.data["ys"]
    np.testing.assert_array_equal(reads, inside[:, 3])
    np.testing.assert_array_equal(writes, outside[3])
    assert view._place._source.data["xs"][0].tolist() == [*range(11)]
    np.testing.assert_allclose(view._bars._source.data["top"], np.abs(fourier(inside))[:, 3], rtol=1e-6)
    assert view._bars._source.data["k"].tolist() == [1, 2, 3, 4, 5]
    race = view._race._source.data
    assert race["xs"][0].tolist() == [0, 10, 25]
    np.testing.assert_array_equal(np.transpose(race["ys"]), run.history["magnitude"][:, 3])
    steps, exact = run.flow(3)
    beside = np.transpose(view._race._beside.data["ys"])
    low = exact <= 1.5 * run.history["magnitude"][:, 3].max()
    np.testing.assert_array_equal(beside, np.where(low, exact, np.nan))
    assert 0 < low.sum() < low.size
    np.testing.assert_array_equal(view._race._beside.data["xs"][0], steps)
    assert view._race._now.location == 25
    np.testing.assert_array_equal(view._logits._source.data["image"][0], run.summed(8).astype(np.float32))
    put(page, view._count, 3)
    np.testing.assert_array_equal(view._logits._source.data["image"][0], run.summed(3).astype(np.float32))
    np.testing.assert_array_equal(view._accuracy._source.data["accuracy"], run.history["train_accuracy"])
    said = view.status()
    assert said == {
        "step": "25",
        "train loss": f"{run.training.losses('train')[0][0]:.4f}",
        "train accuracy": f"{run.training.losses('train')[1][0]:.3f}",
        "neuron": "3",
        "purity": f"{run.spectrum.purity[3]:.3f}",
        "phase misalignment": f"{run.spectrum.misalignment[3]:+.2f}",
        "blow-up time": f"{run.blowup[3].min():.0f}",
    }
    assert view.verdict() == verdicts.neurons(run.spectrum, run.predicted(), 3)
    assert "neurons.frequency[0, 3]" in view.python()


def test_the_flow_ends_just_before_the_first_frequency_diverges(view):
    run = view._run
    rate = run.settings["learning_rate"]
    first = FourierLottery(11).blowup_times(run.start.theta, run.start.xi)[2].min() / rate
    assert run.blowup[2].min() == first
    steps, magnitude = run.flow(2, 7)
    np.testing.assert_allclose(steps, np.linspace(0, 0.98 * first, 7))
    np.testing.assert_allclose(magnitude[0], run.start.magnitude[2])
    assert magnitude[-1].argmax() + 1 == run.predicted()[2]
    before, start = run.blowup, run.start
    view.advance(5)
    assert run.start is start, "the flow is that of the start"
    view.reset()
    assert run.blowup is not before
    assert run.step == 0


def test_a_click_chooses_the_nearest_neuron_and_keys_go_around(view):
    points = view._points()
    for neuron in (5, 2):
        view._tap(SimpleNamespace(x=points[neuron, 0], y=points[neuron, 1]))
        assert view._chosen == neuron
    view._tap(SimpleNamespace(x=None, y=0.0))
    assert view._chosen == 2
    forth, back = (next(n for n, way in neurons.WAYS.items() if way == at) for at in ((1, 0), (-1, 0)))
    view._neuron.value = 7
    view.key(forth)
    assert view._chosen == 0
    view.key(back)
    assert view._chosen == 7


def test_each_optimizer_has_its_rate_and_only_gradient_descent_a_flow(page, view):
    assert view._run.settings["optimizer"] == "sgd"
    assert view._run.flows
    put(page, view._optimizer, "AdamW")
    assert (view._rate.value, view._run.settings["optimizer"]) == (0.005, "adamw")
    assert view._run.settings["learning_rate"] == 0.005
    assert not view._run.flows
    assert "blow-up time" not in view.status()
    assert view._race._beside.data["ys"] == []
    put(page, view._optimizer, "gradient descent")
    assert view._rate.value == 2.0
    put(page, view._activation, "relu")
    assert not view._run.flows
    assert view._run.model.activation == "relu"


def test_fewer_neurons_keep_the_choice_within_them(page, view):
    put(page, view._neuron, 7)
    put(page, view._hidden, 4)
    assert (view._chosen, view._neuron.high) == (3, 3)
    assert (view._count.end, view._count.value) == (4, 4)
    put(page, view._scale, 0.3)
    put(page, view._seed, 5)
    run = view._run
    assert (run.model.scale, run.seed, run.model.tokens, run.model.hidden) == (0.3, 5, 11, 4)


def test_what_is_chosen_is_ringed_filmed_and_kept_by_no_other_key(page, view):
    view.advance(5)
    view.show()
    put(page, view._neuron, 3)
    ring = view._phases._ring.data
    assert (ring["x"].tolist(), ring["y"].tolist()) == tuple([place] for place in view._points()[3].tolist())
    for key, chosen in (("ArrowUp", 2), ("ArrowDown", 3), ("ArrowRight", 4), ("Enter", 4), ("ArrowLeft", 3)):
        view.key(key)
        assert view._chosen == chosen
    view._tap(SimpleNamespace(x=0.0, y=None))
    assert view._chosen == 3
    run, axes = view._run, drawn(view.film())
    assert axes["race"].get_title() == "race of neuron 3; dashed: exact flow"
    trained = run.history["magnitude"][:, 3]
    assert axes["race"].get_ylim() == (0, pytest.approx(1.15 * trained.max()))
    solid = [line for line in axes["race"].lines if line.get_linestyle() == "-" and line.get_alpha() is None]
    np.testing.assert_array_equal([line.get_ydata() for line in solid], trained.T)
    dashed = [line for line in axes["race"].lines if line.get_linestyle() == "--"]
    np.testing.assert_array_equal([line.get_ydata() for line in dashed], run.flow(3)[1].T)
    np.testing.assert_allclose(axes["phases"].collections[1].get_offsets(), view._points(), atol=1e-12)
    first = drawn(view.film(), 0)["phases"].collections[1].get_offsets()
    assert np.hypot(*np.transpose(first)).max() == pytest.approx(1), "relative to the strongest of its frame"
    colors = class_colors(8)[run.spectrum.frequency * 8 // 6]
    np.testing.assert_allclose(axes["phases"].collections[1].get_facecolors(), colors)
    assert axes["phases"].get_title() == "phases of neurons, step 5"
    (accuracy,) = (line for line in axes["accuracy"].lines if line.get_alpha() is None)
    np.testing.assert_array_equal(accuracy.get_ydata(), run.history["train_accuracy"])


def test_most_frames_move_the_phases_alone(monkeypatch, view):
    view.show()
    shown = view._race._source.data, view._bars._source.data, view._accuracy._source.data
    view.advance(4)
    view.show(whole=False)
    points = np.stack([view._phases.tokens.data[name] for name in "xy"], axis=1)
    np.testing.assert_array_equal(points, view._points())
    assert shown == (view._race._source.data, view._bars._source.data, view._accuracy._source.data)
    view.show()
    assert view._race._source.data["xs"][0].tolist() == [0, 4]
    assert view.state() == SMALL | {"step": 4}
    view.reset()
    moved = []
    monkeypatch.setattr(view._phases, "move", moved.append)
    view.show()
    assert view.state() == SMALL
    assert view._race._source.data["xs"][0].tolist() == [0]
    assert moved == [], "no trail leads from the run before"


def test_a_neuron_of_which_no_frequency_diverges_flows_for_a_thousand_steps(view):
    run = view._run
    run.start = SimpleNamespace(theta=1e-3 * run.start.theta, xi=1e-3 * run.start.xi)
    run.__dict__["blowup"] = np.full((8, 5), np.inf)
    steps, magnitude = run.flow(1)
    np.testing.assert_allclose(steps, np.linspace(0, 1000, 120))
    assert magnitude.shape == (120, 5)
    run.reset()


def test_what_is_saved_of_neurons_names_the_network_and_its_training(view):
    run = view._run
    run.advance(2)
    kept = run.trajectory()
    assert kept.parameters["model"]["type"] == "TwoLayer"
    assert kept.parameters["python"] == run.python() == run.python(0)
    assert {name: kept.parameters[name] for name in run.settings} == run.settings
    assert run.settings == {
        "learning_rate": 2.0, "weight_decay": 0.0, "optimizer": "sgd", "train_fraction": 1.0
    }  # fmt: skip
    assert kept.observables["train_loss"][0, -1] == run.training.losses("train")[0][0]
    np.testing.assert_array_equal(kept.final[0], run.weights()[0].astype(np.float32))
    with np.errstate(over="ignore"), pytest.raises(SimulationError, match="by step 3; reset it"):
        run.training.advance = lambda steps: setattr(
            run, "training", SimpleNamespace(step=3, embeddings=np.full((1, 11, 8), np.inf))
        )
        run.advance(1)
    run.reset()
