"""Sentences about states: circle or grid, memorizing or generalizing, settled or moving."""

from collections.abc import Callable, Sequence
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.runs.history import History
from physics.neurons.spectrum import NeuronSpectrum
from physics.particles.structures import circle_ratio, is_circle

Array = NDArray[np.float64]
CIRCLE = 1.2
"""Circle ratio below which tokens form a circle (Musat, Algorithm 1), the default of `physics.is_circle`."""
GRID = 1 / 3
"""Largest fraction of imperfect pair sums of a grid; in a random cloud nearly all pair sums are imperfect."""
AT_REST = 1e-4
"""Motion per step, relative to the largest coordinate of all tokens, below which they have settled."""
LEAVE = 5.0
"""Multiple of `AT_REST` from which settled tokens are said to move again: at rest they still tremble."""
STEADY, DIGIT = 100, 0.005
"""Steps over which the number in a sentence about settled tokens changes by less than half its last digit."""
LOOK_BACK = 10
"""Smallest number of steps over which the motion of tokens is measured."""
TREMBLE = 3e-3
"""Motion in the next step, relative to the largest coordinate, from which tokens jump: about a pixel."""
SETTLED, MOVING = "Settled.", "Still moving."
JUMPS = "Jumps back and forth: take a smaller step η."
NO_GRID = 0.4
"""Fraction of imperfect pair sums above which particles that were a grid are one no longer."""
SURE, LASTS = 1 / 6, 300
"""Largest fraction of imperfect pair sums at which an embedding becomes a grid, and steps it has to last."""
LINE = 0.05
"""Ratio of the second to the first width of a grid below which the grid has collapsed to a line."""
LEARNED = 0.9, 0.75
"""Accuracies from which held-out pairs count as learned (Liu et al., Appendix A), and below which no longer.

There are two limits because with weight decay the accuracy fluctuates.
"""
MEMORIZED = 0.97, LEARNED[0]
"""Accuracies from which training pairs count as learned, and below which no longer."""
ALIGNED = 20
"""Largest median misalignment of phases, in degrees, at which they are called aligned."""
GROKS = 1000
"""Smallest number of steps from memorizing to generalizing that is called grokking (Liu et al., Table 1)."""
PARTLY = 0.5, 0.35
"""Accuracies from which held-out pairs count as learned in part, and below which no longer."""


def circle_step(E: Any) -> int | None:
    """Return the step k of a circle around the origin, on which the neighbors of token i are i ± k.

    The numbers i ± k are modulo the number of tokens.

    Parameters
    ----------
    E : array_like, shape (tokens, dim)
        Embeddings in at least 2 dimensions. In more, the circle is sought in the plane through the origin to
        which they are closest.

    Returns
    -------
    int or None
        The step, at most half the number of tokens; None if the tokens are in no such order.
    """
    points = np.asarray(E, np.float64)
    if points.shape[1] > 2:
        points = points @ np.linalg.svd(points, full_matrices=False)[2][:2].T
    x, y = points.T
    around = np.argsort(np.arctan2(y, x))
    steps = np.diff(around, append=around[:1]) % len(points)
    return int(min(steps[0], len(points) - steps[0])) if (steps == steps[0]).all() else None


def shape(E: Array, imperfections: int, *, grid: bool | None = None) -> tuple[str, str]:
    """Return the shape of tokens, and a sentence about it.

    Parameters
    ----------
    E : ndarray of float64, shape (tokens, dim)
        Positions.
    imperfections : int
        Number of pair sums whose nearest other pair sum is of another class.
    grid : bool, optional
        Whether tokens that are no circle are a grid, which a run knows from its past. By default they are one
        if at most the fraction `GRID` of their pair sums is imperfect.

    Returns
    -------
    str
        "circle", "grid", or "" for neither.
    str
        The sentence.
    """
    tokens = len(E)
    if E.shape[1] > 1 and is_circle(E):
        step, ratio = circle_step(E), float(circle_ratio(E))
        if step is None:
            return "circle", f"Circle, ratio {ratio:.2f}, in no regular order."
        order = ", ".join(str(step * k % tokens) for k in range(4))
        return "circle", f"Circle, step {step} ({order}, …), ratio {ratio:.2f}."
    if not (imperfections <= GRID * (tokens * (tokens + 1) // 2) if grid is None else grid):
        return "", "No shape yet: neither a circle nor a grid."
    widths = np.linalg.svd(E - E.mean(axis=0), compute_uv=False)
    place = " on a line" if len(widths) == 1 or widths[1] < LINE * widths[0] else ""
    if imperfections == 0:
        return "grid", f"Perfect grid{place}: pair sums that lie together are of one class."
    return "grid", f"Grid{place}, {imperfections} imperfection{'s' if imperfections > 1 else ''}."


def circles(frequencies: Sequence[int], count: int) -> str:
    """Return a sentence about tokens in many dimensions: which frequencies of `count` circles stand out."""
    if not frequencies:
        return "No circle stands out yet."
    *others, last = map(str, frequencies)
    if not others:
        return f"One of {count} circles stands out, of frequency {last}."
    return f"{len(frequencies)} of {count} circles stand out, of frequencies {', '.join(others)} and {last}."


def motion(
    history: History,
    name: str,
    said: str = "",
    *,
    since: int = 0,
    stride: Callable[[], float] = lambda: 0.0,
    number: str = "",
) -> str:
    """Return a sentence on whether tokens have settled.

    Parameters
    ----------
    history : History
        Frames of the run, of which the last is described.
    name : str
        Name of the positions in a frame.
    said : str, default ""
        Result for the frame before, which stays until it is clearly wrong.
    since : int, default 0
        Step at which the present law began; earlier frames are not used.
    stride : callable, optional
        Function that returns the largest change of a coordinate in the next step, by default 0. Tokens that
        jump back and forth return to where they were, so that frames alone would call them settled.
    number : str, default ""
        Name of a number in a frame that the page shows with the sentence, and that must have settled as well.

    Returns
    -------
    str
        `SETTLED`, `MOVING` or `JUMPS`, or "" if no frame since then is at least `LOOK_BACK` steps old.
    """
    frames = history.frames()
    step, last = frames[-1]
    before = next((row for row in reversed(frames) if step - row[0] >= LOOK_BACK), None)
    if before is None or before[0] < since:
        return ""
    extent = np.abs(last[name]).max()
    rest = AT_REST * (LEAVE if said in (SETTLED, JUMPS) else 1.0)
    if np.abs(last[name] - before[1][name]).max() / (step - before[0]) >= rest * extent:
        return MOVING
    if number:
        drift = 0.0
        for span in (STEADY, STEADY // 2):  # at a turning point one of them shows no change
            early = next((row for row in frames if max(since, step - span) <= row[0] <= before[0]), before)
            drift = max(drift, abs(last[number] - early[1][number]) * STEADY / (step - early[0]))
        if step - since < STEADY or drift >= DIGIT * (2 if said == SETTLED else 1):
            return MOVING
    return JUMPS if stride() >= TREMBLE * (0.5 if said == JUMPS else 1.0) * extent else SETTLED


def learned(
    since: int | None, step: int, accuracy: float, limits: tuple[float, float] = LEARNED
) -> int | None:
    """Return the step by which a set of pairs was learned.

    Parameters
    ----------
    since : int or None
        Result at the previous frame.
    step : int
        Number of the present step.
    accuracy : float
        Accuracy on the set at this step, from 0 to 1.
    limits : pair of float
        Accuracies from which the set counts as learned, and below which as forgotten.

    Returns
    -------
    int or None
        The step; None if the set is not learned, or is forgotten again.
    """
    if since is None:
        return step if accuracy >= limits[0] else None
    return since if accuracy >= limits[1] else None


def gridded(
    since: int | None, step: int, imperfections: SupportsFloat, tokens: int, limits: tuple[float, float]
) -> int | None:
    """Return the step by which tokens became a grid.

    Parameters
    ----------
    since : int or None
        Result at the previous frame.
    step : int
        Number of the present step.
    imperfections : int
        Number of pair sums whose nearest other pair sum is of another class, at this step.
    tokens : int
        Number of tokens.
    limits : pair of float
        Fractions of imperfect pair sums up to which tokens become a grid, and above which they are one no
        longer.

    Returns
    -------
    int or None
        The step; None if the tokens are not a grid.
    """
    ordered = 1 - float(imperfections) / (tokens * (tokens + 1) // 2)
    return learned(since, step, ordered, (1 - limits[0], 1 - limits[1]))


def learning(
    memorized: int | None,
    generalized: int | None,
    train: float,
    held_out: float,
    *,
    partly: bool = False,
) -> str:
    """Return one or two sentences about what a network has learned.

    Parameters
    ----------
    memorized, generalized : int or None
        Steps by which the training pairs and the held-out pairs were `learned`.
    train, held_out : float
        Present accuracies on the training pairs and on the held-out pairs, from 0 to 1.
    partly : bool, default False
        Whether the held-out pairs were learned in part.
    """
    if memorized is not None and generalized is not None:
        if generalized <= memorized:
            return f"Generalizes from step {generalized}."
        if generalized - memorized < GROKS:
            return f"Memorizes by step {memorized}, and generalizes soon after, by step {generalized}."
        return f"It groks: memorizes by step {memorized}, but generalizes only by step {generalized}."
    parts = f"{100 * train:.0f} % of the training pairs and {100 * held_out:.0f} % of the held-out pairs"
    if memorized is None:
        return f"Answers {parts}."
    further = "and generalizes in part" if partly else "but does not generalize so far"
    return f"Memorized by step {memorized}, {further}. Now: {parts}."


def flow(pairs: int, samples: int, free: int, ideal: float, quality: float, accuracy: float) -> str:
    """Return one or two sentences about what a training set permits, and the progress of its flow.

    Parameters
    ----------
    pairs, samples : int
        Numbers of trained pairs, and of all pairs.
    free : int
        Degrees of freedom that the set leaves on each axis; with 2 (translation and scale) or fewer, the
        representation is unique.
    ideal : float
        Accuracy that an ideal model reaches, from 0 to 1.
    quality : float
        Fraction of all parallelograms that the embeddings satisfy.
    accuracy : float
        Fraction of all pairs whose answers follow from satisfied parallelograms and trained pairs.
    """
    if not pairs:
        return "No pair is trained: nothing moves."
    if free > 2:
        more = round(ideal * samples) - pairs
        follow = f"only {more} of the other {samples - pairs} pairs follow{'s' if more == 1 else ''}"
        return (
            f"Memorizes only: it is trained on {pairs} pairs, and {follow if more else 'no other follows'}. "
            f"{free} degrees of freedom are left, instead of the 2 of a unique representation."
        )
    if quality > 0.99:
        return (
            "It generalizes: the unique representation is reached, which answers "
            f"{100 * ideal:.0f} % of all pairs."
        )
    return (
        f"On the way to the only representation that these pairs allow: {100 * quality:.0f} % of all "
        f"parallelograms are satisfied, and {100 * accuracy:.0f} % of all pairs are answered "
        f"({100 * ideal:.0f} % at the end)."
    )


def octave(frequency: int, tokens: int) -> tuple[int, ...]:
    """Return the octaves of a frequency: halves and twice of it, modulo the number of tokens and up to sign.

    All frequencies are from 1 to ⌊tokens/2⌋. For an odd number of tokens there are one half and one double.
    For an even number, an odd frequency has no half and an even one may have two, and the double of tokens/2
    is no frequency.
    """

    def twice(k: int) -> int:
        return min(2 * k % tokens, -2 * k % tokens)

    halves = [k for k in range(1, tokens // 2 + 1) if twice(k) == frequency]
    return (*halves, twice(frequency)) if twice(frequency) else tuple(halves)


def survival(
    frequency: int | None,
    survivors: Sequence[int],
    steps: NDArray[np.int64],
    signals: Array,
    limit: float,
    tokens: int,
) -> str:
    """Return one or two sentences about which circles survive, and about the fate of the chosen one.

    Parameters
    ----------
    frequency : int or None
        Chosen frequency, from 1.
    survivors : sequence of int
        Frequencies that survive.
    steps : ndarray of int64, shape (n,)
        Recorded steps.
    signals : ndarray of float64, shape (n, K)
        Signals of the K frequencies at these steps.
    limit : float
        Signal above which a circle survives.
    tokens : int
        Number of tokens.
    """
    count = signals.shape[1]
    survive = "survive" if len(survivors) > 1 else "survives"
    words = f"{len(survivors)} of {count} circles {survive}: {', '.join(map(str, survivors))}."
    if not survivors:
        words = f"No circle reaches the survival limit of {limit:.3g}."
    if frequency is None or frequency in survivors:
        return words
    above = np.flatnonzero(signals[:, frequency - 1] >= limit)
    if len(above):
        after = steps[above[-1] + 1 :]
        words += f" Circle {frequency} is lost" + (f" by step {after[0]}" if len(after) else "")
    elif survivors:
        words += f" Circle {frequency} never reaches the limit"
    else:
        return words
    near = [k for k in octave(frequency, tokens) if k in survivors]
    return words + (f"; its octave {near[0]} survives." if near else ".")


def neurons(spectrum: NeuronSpectrum, predicted: NDArray[np.int64] | None, chosen: int) -> str:
    """Return sentences about the neurons, and about whether the chosen one agrees with the exact flow.

    Parameters
    ----------
    spectrum : NeuronSpectrum
        Spectrum of one layer, with output weights.
    predicted : ndarray of int64, shape (hidden,), or None
        Frequency that diverges first in the exact flow from each neuron's start; None if this flow does not
        describe the network.
    chosen : int
        Number of the chosen neuron, from 0.
    """
    single = (spectrum.kind == "single").mean()
    mine, sure = int(spectrum.frequency[chosen]), spectrum.kind[chosen] == "single"
    has = f"has frequency {mine}" if sure else f"is strongest at frequency {mine} so far"
    off = np.degrees(np.abs(spectrum.misalignment))
    off = off[np.isfinite(off)]  # dead neurons have no phase
    apart = round(float(np.median(off))) if len(off) else 0
    words = "aligned to within" if apart <= ALIGNED else "not aligned yet: they differ by"
    aligned = f" Phases are {words} {apart}° (median)." if len(off) else ""
    followed, flow = "", ""
    if predicted is not None:
        share = 100 * (spectrum.frequency == predicted).mean()
        followed = f"{share:.0f} % of neurons have the frequency that the flow predicts. "
        foreseen = int(predicted[chosen])
        flow = ", as the exact flow predicts" if mine == foreseen else f"; the exact flow predicts {foreseen}"
    return (
        f"Neuron {chosen} {has if mine else 'is dead'}{flow}. {followed}"
        f"{100 * single:.0f} % of neurons have a single frequency.{aligned}"
    )
