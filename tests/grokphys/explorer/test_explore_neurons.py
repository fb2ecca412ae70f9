"""The explorer's fifth view: neurons in training beside the exact flow of their frequencies."""

from typing import get_args

import numpy as np
import pytest

import nets
from nets.architecture import Neuron
from physics.errors import SimulationError
from physics.neurons.spectrum import NeuronSpectrum

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document

from grokphys.explorer import session
from grokphys.explorer.films import export
from grokphys.explorer.films.neurons import neuron_film
from grokphys.explorer.runs import verdicts
from grokphys.explorer.runs.neurons import NeuronRun
from grokphys.explorer.views.neurons import NeuronsView


def small(activation="quadratic", optimizer="sgd", rate=2.0):
    return NeuronRun(nets.TwoLayer(11, 8, activation), 3, rate, optimizer)


def test_its_script_makes_the_same_network():
    run = small()
    run.advance(3)
    run.advance(4)
    names = {}
    exec(run.python(), names)
    np.testing.assert_array_equal(names["E"], run.training.embeddings[0])
    np.testing.assert_array_equal(names["neurons"].frequency[0], run.spectrum.frequency)
    kept = run.trajectory()
    assert kept.steps.tolist() == [0, 3, 7]
    np.testing.assert_array_equal(kept.final[0], names["E"])
    run.reset()
    assert (run.step, len(run.history)) == (0, 1)


def test_a_network_of_small_weights_follows_the_exact_flow():
    """As long as weights are small, the race that is drawn dashed is the one that is trained."""
    run = small()
    begun = run.spectrum.magnitude.copy()
    run.advance(60)
    trained, predicted = run.spectrum.magnitude, []
    for neuron in range(8):
        steps, magnitude = run.flow(neuron)
        assert steps[-1] > 60
        predicted.append([np.interp(60, steps, curve) for curve in magnitude.T])
    assert np.abs(trained - begun).max() > 0.1 * begun.max(), "they have moved"
    np.testing.assert_allclose(predicted, trained, atol=0.02 * trained.max())
    assert np.isfinite(run.blowup).all()


@pytest.mark.parametrize("activation", get_args(Neuron))
def test_the_sum_over_all_neurons_is_what_the_network_says(activation):
    run = small(activation, "adamw", 0.01)
    run.advance(30)
    first, second = np.indices((11, 11)).reshape(2, -1)
    outputs = run.training.networks().outputs(np.stack([first, second], axis=1))[0]
    by_sum = np.array([outputs[(first + second) % 11 == s].mean(axis=0) for s in range(11)])
    expected = by_sum - by_sum.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(run.summed(8), expected, atol=1e-4 * np.abs(expected).max())
    assert not np.allclose(run.summed(3), expected)


def test_neurons_go_where_the_flow_sends_them():
    page = session.Session(Document(), [NeuronsView])
    page._command("preset", "neurons choose")
    view = page.view
    view.advance(1500)
    view.show()
    run = view._run
    followed = (run.spectrum.frequency == run.predicted()).mean()
    assert followed > 0.6, "chance is 1 in 11"
    said = f"{100 * followed:.0f} % of neurons have the frequency that the flow predicts"
    assert said in view.verdict()
    assert run.history.last["train_accuracy"] == 1.0
    second, first = np.sort(run.spectrum.magnitude[0])[-2:]
    assert run.spectrum.frequency[0] == run.predicted()[0] == 3, "as the hint says"
    assert first > 5 * second
    assert (run.spectrum.kind == "single").mean() > 0.5
    page._command("key", "ArrowRight")
    assert (view._chosen, view.status()["neuron"]) == (1, "1")
    view._tap(type("Event", (), dict(zip("xy", view._points()[5], strict=True))))
    assert np.allclose(view._points()[view._chosen], view._points()[5])
    page._command("preset", "neurons become waves")
    view.advance(800)
    assert "flow" not in view.verdict(), "it describes quadratic neurons"
    assert "blow-up time" not in view.status()
    run = view._run
    assert run.history.last["train_accuracy"] == 1.0
    assert (run.spectrum.kind == "single").mean() > 0.5
    assert np.degrees(np.median(np.abs(run.spectrum.misalignment))) < 15


def test_a_dead_neuron_has_no_purity():
    view = session.Session(Document(), [NeuronsView]).view
    spectrum = view._run.spectrum
    assert {"purity", "phase misalignment"} <= set(view.status())
    zero = np.zeros_like(spectrum.theta)
    view._run.spectrum = NeuronSpectrum(spectrum.tokens, zero, xi=zero)
    assert not {"purity", "phase misalignment"} & set(view.status())
    assert "nan" not in view.verdict()


def test_the_blow_up_of_a_neuron_is_that_of_its_first_frequency():
    view = session.Session(Document(), [NeuronsView]).view
    times = view._run.blowup[view._chosen]
    assert len(times) > 1
    assert view.status()["blow-up time"] == f"{min(times):.0f}" != f"{max(times):.0f}"


def test_what_no_flow_is_foretold_of_is_not_said():
    run = small()
    assert "flow" not in verdicts.neurons(run.spectrum, None, 2)
    with pytest.raises(
        SimulationError, match="the network diverged by step 400; reset it, and choose a smaller"
    ):
        small(rate=1000.0).advance(400)


def test_neurons_are_filmed():
    run = small()
    for _ in range(3):
        run.advance(20)
    film = neuron_film(run, 1)
    assert film.frames == 4
    assert export.gif(film, dpi=30)[:3] == b"GIF"
    assert export.png(film, 0, dpi=30) != export.png(film, 3, dpi=30)
