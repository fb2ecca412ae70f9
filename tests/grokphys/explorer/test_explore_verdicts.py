"""What the explorer says of what it shows: shapes, motion, learning, and that it does not take it back."""

import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from sessions import followed, opened

from grokphys.explorer.runs import starts, verdicts
from grokphys.explorer.runs.history import History
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.views.tabs import VIEWS
from physics.neurons.spectrum import neuron_spectrum
from physics.particles.system import ParticleSystem

PARTICLES, NETWORKS = VIEWS[:2]


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("step", [1, 3, 8])
def test_a_circle_is_named_by_the_step_between_its_neighbors(step, dim):
    """Token i at the angle 2 pi i / k stands between i + k and i - k, where k inverts the winding."""
    tokens = 17
    angle = 2 * np.pi * pow(step, -1, tokens) * np.arange(tokens) / tokens
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))[0]
    E = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ rotation[:2]
    assert verdicts.circle_step(E) == step
    found, words = verdicts.shape(E, 85)
    order = ", ".join(str(step * k % tokens) for k in range(4))
    assert (found, words) == ("circle", f"Circle, step {step} ({order}, …), ratio 1.00.")
    E[[0, 5]] = E[[5, 0]]
    assert verdicts.circle_step(E) is None
    assert verdicts.shape(E, 85)[1] == "Circle, ratio 1.00, in no regular order."


def test_a_grid_is_told_from_a_cloud():
    grid = np.stack([np.arange(9) // 3, np.arange(9) % 3], axis=1) - 0.9
    assert verdicts.shape(grid, 0) == ("grid", "Perfect grid: pair sums that lie together are of one class.")
    assert verdicts.shape(grid, 1) == ("grid", "Grid, 1 imperfection.")
    assert verdicts.shape(grid, 15) == ("grid", "Grid, 15 imperfections.")
    assert verdicts.shape(grid, 16)[0] == ""
    assert verdicts.shape(grid, 1, grid=False) == ("", "No shape yet: neither a circle nor a grid.")
    assert verdicts.shape(grid[:, :1], 2)[1] == "Grid on a line, 2 imperfections."
    line = np.array([[-1.0], [1.0], [-1.0]])
    assert verdicts.shape(line, 6)[0] == "", "two points on a line are no circle"


def test_settled_is_what_no_longer_moves():
    history = History()
    history.append(0, E=np.ones((3, 2)))
    assert verdicts.motion(history, "E") == ""
    history.append(10, E=np.ones((3, 2)) * 1.1)
    assert verdicts.motion(history, "E") == "Still moving."
    history.append(20, E=np.ones((3, 2)) * 1.1001)
    assert verdicts.motion(history, "E") == "Settled."


def test_tokens_have_not_settled_while_the_number_that_is_shown_climbs():
    for climb, words in ((0.004, "Settled."), (0.006, "Still moving.")):
        history = History()
        for step in range(0, 201, 10):
            history.append(step, E=np.ones((3, 2)), ratio=1.01 + climb * step / 100)
            expected = "" if step == 0 else "Still moving." if step < 100 else words
            assert verdicts.motion(history, "E", number="ratio") == expected
        assert verdicts.motion(history, "E", "Settled.", number="ratio") == "Settled."
        assert verdicts.motion(history, "E") == "Settled."


def test_a_circle_that_is_pulled_apart_settles_only_once_its_ratio_does():
    """Its ratio climbs for hundreds of steps while no particle moves by a pixel in ten of them."""
    view, last = followed(opened(PARTICLES), "pull it apart", 0), None
    for _ in range(40):
        view.advance(10)
        if "Settled." in view.verdict():
            ratio = float(view.status()["circle ratio"])
            assert last is None or abs(ratio - last) < 0.01, view.status()
            last = last or ratio


def test_an_embedding_that_wanders_is_a_grid_only_if_it_lasts():
    NETWORKS.prepare()
    view = followed(opened(NETWORKS), "an imperfect grid", 0)
    run = view._run
    run.history.last["imperfections"] = np.array(10)
    assert run.shape[0] == ""
    run.grid = run.step - verdicts.LASTS + 1
    assert run.shape[0] == ""
    run.grid -= 1
    assert run.shape == ("grid", "Grid, 10 imperfections.")
    assert "10 imperfections" in view.verdict()
    assert "circle ratio" not in view.status()


@pytest.mark.parametrize(("said", "limit"), [("", 1e-4), ("Still moving.", 1e-4), ("Settled.", 5e-4)])
def test_what_was_said_to_be_at_rest_may_tremble(said, limit):
    for rate, words in ((0.98 * limit, "Settled."), (1.02 * limit, "Still moving.")):
        history = History()
        history.append(0, E=np.ones((3, 2)) * (1 - 10 * rate))
        history.append(10, E=np.ones((3, 2)))
        assert verdicts.motion(history, "E", said) == words


def test_what_a_network_has_learned():
    said = verdicts.learning
    soon = "Memorizes by step 20, and generalizes soon after, by step 1019."
    assert said(20, 1019, 1.0, 0.95) == soon, "nobody calls this grokking"
    late = "It groks: memorizes by step 20, but generalizes only by step 1020."
    assert said(20, 1020, 1.0, 0.95) == late
    assert said(20, None, 1.0, 0.2) == (
        "Memorized by step 20, but does not generalize so far. "
        "Now: 100 % of the training pairs and 20 % of the held-out pairs."
    )
    assert said(20, None, 0.92, 0.61, partly=True) == (
        "Memorized by step 20, and generalizes in part. "
        "Now: 92 % of the training pairs and 61 % of the held-out pairs."
    )
    assert said(10, 10, 1.0, 1.0) == "Generalizes from step 10."
    assert said(None, None, 0.5, 0.25) == "Answers 50 % of the training pairs and 25 % of the held-out pairs."


def test_circles_that_stand_out():
    assert verdicts.circles([], 15) == "No circle stands out yet."
    assert verdicts.circles([9], 15) == "One of 15 circles stands out, of frequency 9."
    assert verdicts.circles([9, 12, 13], 15) == "3 of 15 circles stand out, of frequencies 9, 12 and 13."


def test_particles_near_the_limit_of_a_grid_are_not_one_to_and_fro():
    run = ParticleRun(ParticleSystem(17, alignment=0.6), 0.02, starts.start("normal", 17, 2, 36, 0.1))
    alone, known = [], []
    for _ in range(180):
        run.advance(10)
        count = int(run.history.last["imperfections"])
        alone.append(verdicts.shape(run.positions, count)[0])
        known.append(verdicts.shape(run.positions, count, grid=run.grid)[0])
    assert [found for found, _ in itertools.groupby(alone)] == ["", "grid", "", "grid"]
    assert [found for found, _ in itertools.groupby(known)] == ["", "grid"]
    run.reset()
    assert not run.grid


def test_a_neuron_has_a_frequency_once_it_is_the_only_one():
    waves = np.zeros((2, 11, 2))
    angle = 2 * np.pi * np.arange(11) / 11
    waves[:, :, 0] = np.cos(3 * angle) + 0.9 * np.cos(2 * angle)
    waves[:, :, 1] = np.cos(4 * angle)
    spectrum = neuron_spectrum(waves[0], waves[1].T)
    assert verdicts.neurons(spectrum, None, 0).startswith("Neuron 0 is strongest at frequency 3 so far. ")
    assert verdicts.neurons(spectrum, None, 1).startswith("Neuron 1 has frequency 4. ")


def test_one_circle_survives():
    signals = np.array([[1.0, 1, 1, 1], [9.0, 1, 1, 1]])
    said = verdicts.survival(None, [1], np.arange(2), signals, 6.0, 9)
    assert said == "1 of 4 circles survives: 1."


def test_octaves_fold_at_half_of_the_tokens():
    assert verdicts.octave(22, 59) == (11, 15)
    assert verdicts.octave(7, 59) == (26, 14)
    for k in range(1, 30):
        half, twice = verdicts.octave(k, 59)
        assert verdicts.octave(half, 59)[1] == k
        assert verdicts.octave(twice, 59)[0] == k


def test_an_even_number_of_tokens_gives_no_half_two_halves_or_no_double():
    assert verdicts.octave(5, 12) == (2,), "twice 5 is 10, which is 2 up to sign"
    assert verdicts.octave(2, 12) == (1, 5, 4)
    assert verdicts.octave(6, 12) == (3,), "twice 6 is 0"
    assert verdicts.octave(5, 10) == ()


def test_a_flow_generalizes_where_one_representation_is_left():
    assert verdicts.flow(0, 6, 2, 0.0, 0.0, 0.0).startswith("No pair")
    assert verdicts.flow(3, 6, 3, 4 / 6, 1.0, 0.5) == (
        "Memorizes only: it is trained on 3 pairs, and only 1 of the other 3 pairs follows. "
        "3 degrees of freedom are left, instead of the 2 of a unique representation."
    )
    assert "only 2 of the other 3 pairs follow." in verdicts.flow(3, 6, 3, 5 / 6, 1.0, 0.5)
    assert "and no other follows." in verdicts.flow(3, 6, 4, 0.5, 1.0, 0.5)
    reached = "It generalizes: the unique representation is reached, which answers 90 % of all pairs."
    assert verdicts.flow(3, 6, 2, 0.9, 1.0, 0.9) == reached
    assert "99 % of all parallelograms are satisfied, and 70 %" in verdicts.flow(3, 6, 2, 0.9, 0.99, 0.7)


def test_the_fate_of_a_circle_is_told_with_its_octave():
    steps = np.array([0, 10, 20])
    signals = np.ones((3, 5))
    signals[1:, 0] = 0.4

    def said(*given, tokens=11):
        return verdicts.survival(*given, tokens)

    assert said(None, [2, 5], steps, signals, 0.5) == "2 of 5 circles survive: 2, 5."
    assert said(1, [2], steps, signals, 0.5) == (
        "1 of 5 circles survives: 2. Circle 1 is lost by step 10; its octave 2 survives."
    )
    assert said(3, [2], steps, signals, 0.5) == "1 of 5 circles survives: 2. Circle 3 is lost."
    assert (
        said(1, [], steps, signals, 0.4) == "No circle reaches the survival limit of 0.4. Circle 1 is lost."
    )
    assert said(1, [], steps, signals, 2.0) == "No circle reaches the survival limit of 2."
    assert said(1, [2], steps, signals, 2.0) == (
        "1 of 5 circles survives: 2. Circle 1 never reaches the limit; its octave 2 survives."
    )
    signals[:, 0] = [0.4, 0.6, 0.4]
    assert "Circle 1 is lost by step 20;" in said(1, [2], steps, signals, 0.5), "it was above in between"
    assert said(5, [3], steps, signals[:, [1, 1, 1, 1, 0]], 0.5, tokens=10).endswith(
        "Circle 5 is lost by step 20."
    )


def test_neurons_are_counted_by_kind_and_compared_with_the_flow():
    spectrum = SimpleNamespace(
        kind=np.array(["single", "single", "dead", "multiple"]),
        frequency=np.array([3, 2, 0, 1]),
        misalignment=np.radians([10.0, -30.0, math.nan, 20.0]),
    )
    alone = verdicts.neurons(spectrum, None, 0)
    assert alone == (
        "Neuron 0 has frequency 3. 50 % of neurons have a single frequency. "
        "Phases are aligned to within 20° (median)."
    )
    flow = np.array([3, 1, 1, 1])
    assert " 50 % of neurons have the frequency that the flow predicts. " in verdicts.neurons(
        spectrum, flow, 0
    )
    assert "Neuron 0 has frequency 3, as the exact flow predicts. " in verdicts.neurons(spectrum, flow, 0)
    assert verdicts.neurons(spectrum, flow, 2).startswith("Neuron 2 is dead; the exact flow predicts 1. ")
    spectrum.misalignment[:] = np.radians([52.0, 52.0, math.nan, 52.0])
    assert verdicts.neurons(spectrum, None, 0).endswith("not aligned yet: they differ by 52° (median).")
    spectrum.misalignment[:] = math.nan
    assert verdicts.neurons(spectrum, None, 0).endswith("50 % of neurons have a single frequency.")


def test_learning_counts_the_first_step_at_the_limit_and_needs_both_to_last():
    since, found = None, []
    for step, accuracy in enumerate([0.5, 0.89, 0.9, 1.0, 0.76, 0.9, 0.74, 0.89, 0.95]):
        since = verdicts.learned(since, step, accuracy)
        found.append(since)
    assert found == [None, None, 2, 2, 2, 2, None, None, 8]
    said = verdicts.learning
    assert said(1, 0, 0.9, 0.9) == "Generalizes from step 0."
    assert said(None, 0, 0.74, 0.9).startswith("Answers 74 %")
    touched = verdicts.learned(None, 712, 0.93, verdicts.MEMORIZED)
    assert touched is None, "a network that answers nine in ten pairs now and then has not memorized them"
    assert said(1, None, 0.8, 0.7).startswith("Memorized by step 1, but does not")


# -- within a minute -------------------------------------------------------------------------------------


def said_in_a_minute(kind, preset, frames=1800):
    """Sentences of a preset without their numbers, each once for as long as it is said."""
    kind.prepare()
    page = opened(kind)
    page._command("preset", preset)
    said = []
    for frame in range(frames):
        if page.view.finished:
            break
        page.view.advance(page.bridge.speed)
        if frame % 10 == 9:  # as often as a page shows it
            said.append(re.sub(r"\d+(\.\d+)?", "#", page.view.verdict()))
    return [words for words, _ in itertools.groupby(said)]


MINUTES = [(kind, preset.name) for kind in VIEWS for preset in kind.presets]


@pytest.mark.parametrize(
    ("kind", "preset"),
    [
        pytest.param(kind, name, id=f"{kind.slug}-{name}", marks=[pytest.mark.slow] * (kind is NETWORKS))
        for kind, name in MINUTES
    ],
)
def test_what_is_said_is_not_taken_back_within_a_minute(kind, preset):
    said = said_in_a_minute(kind, preset, frames=900 if kind is NETWORKS else 1800)  # which are slower
    assert len(said) == len(set(said)), said
