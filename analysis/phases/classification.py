"""The four phases of learning, determined by when a network fits and when it generalizes (Liu, Table 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from analysis.stats.intervals import Interval, proportion
from physics.checks import choice, number
from physics.errors import InputError

PHASES = ("comprehension", "grokking", "memorization", "confusion")
DELAY = 1000
"""Smallest number of steps between fitting and generalizing that counts as grokking (Table 1)."""


def classify_phases(train_steps: Any, validation_steps: Any, *, delay: float = DELAY) -> NDArray[np.str_]:
    """Return the phase of each run from the steps at which it reached its two accuracies.

    Parameters
    ----------
    train_steps, validation_steps : array_like, shape (...)
        Step of the first training and validation accuracy at or above the threshold; NaN for never.
    delay : float, default 1000
        Greater than 0. A run that generalizes `delay` steps or more after it fits is grokking.

    Returns
    -------
    ndarray of str, shape (...)
        "comprehension" if the run fits and generalizes less than `delay` steps later, or earlier; "grokking"
        if it generalizes later than that; "memorization" if it fits and never generalizes; and "confusion" if
        it never fits, even if it reaches its validation accuracy.

    Raises
    ------
    InputError
        If steps are negative or infinite, or the shapes differ.

    References
    ----------
    Liu et al. 2022, Table 1, with thresholds of 90 % within 1e5 steps.
    """
    delay = number("delay", delay, above=0.0)
    train, validation = _steps("train_steps", train_steps), _steps("validation_steps", validation_steps)
    if train.shape != validation.shape:
        raise InputError(
            f"validation_steps must have the shape of train_steps, {train.shape}, got {validation.shape}"
        )
    fits, generalises = np.isfinite(train), np.isfinite(validation)
    soon = validation - train < delay  # False if one of them is NaN
    return np.select([fits & soon, fits & generalises, fits], PHASES[:3], PHASES[3])


def _steps(name: str, value: Any) -> NDArray[np.float64]:
    try:
        steps = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers of steps, NaN for never, got {value!r}") from None
    wrong = steps[(steps < 0) | np.isinf(steps)]
    if wrong.size:
        raise InputError(f"{name} must be at least 0, or NaN for never, got {wrong.flat[0]:g}")
    return steps


@dataclass(frozen=True)
class Majority:
    """Majority phase of several runs with the same setting, and the certainty of that majority.

    Parameters
    ----------
    phases : sequence of str
        Phase of each run, at least one.

    Raises
    ------
    InputError
        If the sequence is empty, or an entry is not a phase.
    """

    phases: Sequence[str]

    def __post_init__(self) -> None:
        if not len(self.phases):
            raise InputError("phases must name the phase of at least one run, got none")
        for phase in self.phases:
            choice("phases", phase, PHASES)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of runs in each phase."""
        return {phase: self.phases.count(phase) for phase in PHASES}

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.phases)

    @cached_property
    def phase(self) -> str:
        """The phase of most runs; among equally frequent ones, the first of `PHASES`."""
        return max(PHASES, key=self.counts.__getitem__)

    @property
    def share(self) -> Interval:
        """Fraction of the runs in that phase, with Wilson's 95 % interval."""
        return proportion(self.counts[self.phase], self.runs)

    @cached_property
    def certainty(self) -> float:
        """Posterior probability that more than half of all networks are in that phase (Jeffreys' prior).

        It is 0.82 for one run, 0.92 for two that agree, 0.71 for two of three, 0.91 for four of five, and one
        half for a tie.
        """
        successes = self.counts[self.phase]
        return float(betaincc(successes + 0.5, self.runs - successes + 0.5, 0.5))
