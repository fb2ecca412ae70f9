"""What the view of neurons shows and says, recomputed from the weights of the network."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import opened, put

from grokphys.explorer import theme
from grokphys.explorer.runs import verdicts
from grokphys.explorer.views import neurons
from grokphys.explorer.views import view as views
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
