"""The four phases of learning, by when a network fits and when it generalizes (Liu et al., Table 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from analysis.stats.intervals import Interval, proportion
from physics.checks import InputError, choice, number, real_array
from physics.shown import Shown

PHASES = ("comprehension", "grokking", "memorization", "confusion")
DELAY = 1000
"""Smallest number of steps between fitting and generalizing that counts as grokking (Table 1)."""


def classify_phases(train_steps: Any, validation_steps: Any, *, delay: float = DELAY) -> NDArray[np.str_]:
    """Return the phase of learning of each run, from the steps at which it reached its accuracies.

    Parameters
    ----------
    train_steps, validation_steps : array_like, shape (...)
        First step at which the training accuracy and the validation accuracy were at or above a threshold;
        NaN for never.
    delay : float, default 1000
        Number of steps between fitting and generalizing from which a run counts as grokking, greater than 0.

    Returns
    -------
    ndarray of str, shape (...)
        "comprehension" if the run fits and generalizes less than `delay` steps later, or earlier; "grokking"
        if it generalizes `delay` steps later or more; "memorization" if it fits and never generalizes; and
        "confusion" if it never fits, even if it reaches its validation accuracy.

    Raises
    ------
    InputError
        If steps are not numbers, are negative or infinite, or differ in shape, or `delay` is not greater than
        0.

    References
    ----------
    Liu et al. 2022, Table 1, with thresholds of 90 % within 1e5 steps.

    Examples
    --------
    >>> import analysis
    >>> analysis.classify_phases([50, 50, 50, float("nan")], [80, 5000] + 2 * [float("nan")]).tolist()
    ['comprehension', 'grokking', 'memorization', 'confusion']
    """
    delay = number("delay", delay, above=0.0)
    train, validation = _steps("train_steps", train_steps), _steps("validation_steps", validation_steps)
    if train.shape != validation.shape:
        raise InputError(f"validation_steps must have the shape {train.shape}, got {validation.shape}")
    fits, generalises = np.isfinite(train), np.isfinite(validation)
    soon = validation - train < delay  # False if one of them is NaN
    return np.select([fits & soon, fits & generalises, fits], PHASES[:3], PHASES[3])


def _steps(name: str, value: Any) -> NDArray[np.float64]:
    """Return checked steps, in which NaN stands for never."""
    steps = real_array(name, value)
    wrong = steps[(steps < 0) | np.isinf(steps)]
    if wrong.size:
        raise InputError(f"{name} must be at least 0, or NaN for never, got {wrong.flat[0]:g}")
    return steps


@dataclass(frozen=True)
class Majority(Shown):
    """The majority phase of several runs with the same setting, and how certain this majority is.

    Parameters
    ----------
    phases : sequence of str
        Phase of each run; at least one.

    Raises
    ------
    InputError
        If the sequence is empty, or an entry is not a phase.

    Examples
    --------
    >>> import analysis
    >>> most = analysis.phases.Majority(["grokking", "grokking", "memorization"])
    >>> most.phase, round(most.certainty, 2)
    ('grokking', 0.71)
    """

    phases: Sequence[str]

    def __post_init__(self) -> None:
        if not len(self.phases):
            raise InputError("phases must name the phase of at least one run, got none")
        for phase in self.phases:
            choice("phases", phase, PHASES)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of runs in each phase, by name."""
        return {phase: self.phases.count(phase) for phase in PHASES}

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.phases)

    @cached_property
    def phase(self) -> str:
        """Phase of most runs; among equally frequent ones, the first of `PHASES`."""
        return max(PHASES, key=self.counts.__getitem__)

    @property
    def share(self) -> Interval:
        """Fraction of the runs in the majority phase, with Wilson's 95 % interval."""
        return proportion(self.counts[self.phase], self.runs)

    @cached_property
    def certainty(self) -> float:
        """Posterior probability that more than half of all networks are in this phase (Jeffreys' prior).

        It is 0.82 for one run, 0.92 for two that agree, 0.71 for two of three, 0.91 for four of five, and one
        half if two phases have half of the runs each.
        """
        successes = self.counts[self.phase]
        return float(betaincc(successes + 0.5, self.runs - successes + 0.5, 0.5))
