"""Descriptions of states in a sentence: circle or grid, memorized or generalizing, settled or moving."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.explorer.runs.history import History
from physics.neurons.spectrum import NeuronSpectrum
from physics.particles.structures import circle_ratio, is_circle

Array = NDArray[np.float64]
GRID = 1 / 3
"""Largest fraction of imperfections of a grid; in a random cloud nearly all pair sums are imperfect."""
AT_REST = 1e-4
"""Largest motion of settled tokens in a step, relative to their extent."""
LOOK_BACK = 10
"""Smallest number of steps over which this motion is measured."""
TREMBLE = 3e-3
"""Largest single step of settled tokens, relative to their extent: about a pixel."""
LINE = 0.05
"""Largest ratio of the two widths of a grid that has collapsed to a line."""
LEARNED = 0.9
"""Smallest accuracy at which a set of pairs counts as learned (Liu et al., Appendix A)."""


def circle_step(E: Any) -> int | None:
    """Return the step k of a circle on which the neighbors of token i are i + k and i - k; None if none is.

    Parameters
    ----------
    E : array_like, shape (tokens, dim)
        Embeddings, of at least 2 dimensions; the circle is sought in the plane that holds most of them.
    """
    points = np.asarray(E, np.float64)
    if points.shape[1] > 2:
        points = points @ np.linalg.svd(points, full_matrices=False)[2][:2].T
    x, y = points.T
    around = np.argsort(np.arctan2(y, x))
    steps = np.diff(around, append=around[:1]) % len(points)
    return int(min(steps[0], len(points) - steps[0])) if (steps == steps[0]).all() else None


def shape(E: Array, imperfections: int) -> tuple[str, str]:
    """Return the shape of tokens, "circle", "grid" or "", and a sentence about it."""
    tokens = len(E)
    if E.shape[1] > 1 and is_circle(E):
        step, ratio = circle_step(E), float(circle_ratio(E))
        if step is None:
            return "circle", f"Circle, ratio {ratio:.2f}, in no regular order."
        order = ", ".join(str(step * k % tokens) for k in range(4))
        return "circle", f"Circle, step {step} ({order}, …), ratio {ratio:.2f}."
    sums = tokens * (tokens + 1) // 2
    if imperfections > GRID * sums:
        return "", "No shape yet: neither a circle nor a grid."
    widths = np.linalg.svd(E - E.mean(axis=0), compute_uv=False)
    place = " on a line" if len(widths) > 1 and widths[1] < LINE * widths[0] else ""
    if imperfections == 0:
        return "grid", f"Perfect grid{place}: pair sums that lie together are of one class."
    return "grid", f"Grid{place}, {imperfections} imperfection{'s' if imperfections > 1 else ''}."


def motion(history: History, name: str, *, since: int = 0, stride: Callable[[], float] = lambda: 0.0) -> str:
    """Return a sentence on whether tokens have settled.

    Parameters
    ----------
    history : History
        Frames of the run.
    name : str
        Name of the positions in a frame.
    since : int, default 0
        Step at which the present law began; earlier frames say nothing about it.
    stride : callable, optional
        Function that returns the largest change of a coordinate in the next step. Tokens that jump back and
        forth come back to where they were, so that frames alone would call them settled.
    """
    frames = history.frames()
    step, last = frames[-1]
    before = next((row for row in reversed(frames) if step - row[0] >= LOOK_BACK), None)
    if before is None or before[0] < since:
        return ""
    extent = np.abs(last[name]).max()
    if np.abs(last[name] - before[1][name]).max() / (step - before[0]) >= AT_REST * extent:
        return "Still moving."
    if stride() >= TREMBLE * extent:
        return "Jumps back and forth: take a smaller step η."
    return "Settled."


def learning(steps: Sequence[int], train: Sequence[float], held_out: Sequence[float] | None) -> str:
    """Describe what a network has learned by its accuracies over time; `held_out` may be None."""
    memorized = _first(steps, train)
    if held_out is None:
        return "Learning." if memorized is None else f"It has learned the whole table by step {memorized}."
    generalized = _first(steps, held_out)
    now, apart = train[-1], held_out[-1]
    if apart >= LEARNED and now >= LEARNED and memorized is not None and generalized is not None:
        if generalized <= memorized:
            return f"Generalizes from step {generalized}."
        return f"It groks: memorizes by step {memorized}, generalizes by step {generalized}."
    if now >= LEARNED:
        parts = f"{100 * now:.0f} % of the training pairs, {100 * apart:.0f} % of the held-out pairs"
        return f"Memorized, but does not generalize: {parts}."
    return f"Learning: {100 * now:.0f} % of the training pairs, {100 * apart:.0f} % of the held-out pairs."


def flow(pairs: int, free: int, ideal: float, quality: float, accuracy: float) -> str:
    """Describe what a training set permits, and the progress of its flow.

    Parameters
    ----------
    pairs : int
        Number of trained pairs.
    free : int
        Dimension of the ground states on each axis; 2 means one representation, up to translation and scale.
    ideal : float
        Accuracy that an ideal model reaches.
    quality : float
        Fraction of all parallelograms that the embeddings satisfy.
    accuracy : float
        Fraction of all pairs that follow from the satisfied parallelograms and the trained pairs.
    """
    if not pairs:
        return "No pair is trained: nothing moves."
    if free > 2:
        return (
            f"Memorizes only: these pairs leave {free - 2} more degree{'s' if free > 3 else ''} of freedom "
            "than one representation has, so that even an ideal model answers only "
            f"{100 * ideal:.0f} % of all pairs."
        )
    if quality > 0.99:
        return (
            f"It groks: the unique representation is reached, which answers {100 * ideal:.0f} % of all pairs."
        )
    return (
        f"On the way to the only representation that these pairs allow: {100 * quality:.0f} % of all "
        f"parallelograms are satisfied, and {100 * accuracy:.0f} % of all pairs are answered "
        f"({100 * ideal:.0f} % at the end)."
    )


def octave(frequency: int, tokens: int) -> tuple[int, int]:
    """Return the frequencies of half and of twice the steps around the circle, from 1 to tokens // 2."""
    twice = 2 * frequency % tokens
    half = frequency // 2 if frequency % 2 == 0 else (frequency + tokens) // 2
    return min(half, tokens - half), min(twice, tokens - twice)


def survival(
    frequency: int | None, survivors: Sequence[int], steps: NDArray[np.int64], signals: Array, limit: float
) -> str:
    """Describe which circles survive, and the fate of the chosen one.

    Parameters
    ----------
    frequency : int, or None
        Chosen frequency.
    survivors : sequence of int
    steps, signals : ndarray, shapes (n,), (n, K)
    limit : float
        Signal above which a circle survives.
    """
    count = signals.shape[1]
    words = f"{len(survivors)} of {count} circles survive: {', '.join(map(str, survivors)) or 'none'}."
    if frequency is None or frequency in survivors:
        return words
    below = np.flatnonzero(signals[:, frequency - 1] < limit)
    words += f" Circle {frequency} is lost" + (f" by step {steps[below[0]]}" if len(below) else "")
    near = [k for k in octave(frequency, 2 * count + 1) if k in survivors]
    return words + (f"; its octave {near[0]} survives." if near else ".")


def neurons(spectrum: NeuronSpectrum, predicted: NDArray[np.int64] | None, chosen: int) -> str:
    """Describe the neurons, and whether the chosen one agrees with the exact flow.

    Parameters
    ----------
    spectrum : NeuronSpectrum
        Spectrum of one layer, with output weights.
    predicted : ndarray of int, shape (hidden,), or None
        Frequency that diverges first in the flow from each neuron's start; None if the flow does not apply.
    chosen : int
    """
    single = (spectrum.kind == "single").mean()
    mine = int(spectrum.frequency[chosen])
    aligned = np.degrees(np.nanmedian(np.abs(spectrum.misalignment)))
    followed, flow = "", ""
    if predicted is not None:
        share = 100 * (spectrum.frequency == predicted).mean()
        followed = f"{share:.0f} % of neurons have the frequency that the flow predicts. "
        foreseen = int(predicted[chosen])
        flow = ", as the exact flow predicts" if mine == foreseen else f"; the exact flow predicts {foreseen}"
    return (
        f"Neuron {chosen} {f'has frequency {mine}' if mine else 'is dead'}{flow}. {followed}"
        f"{100 * single:.0f} % of neurons have a single frequency. "
        f"Phases are aligned to within {aligned:.0f}° (median)."
    )


def _first(steps: Sequence[int], accuracy: Sequence[float]) -> int | None:
    """Return the first step at which a set was learned."""
    return next((int(step) for step, value in zip(steps, accuracy, strict=True) if value >= LEARNED), None)
