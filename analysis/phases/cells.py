"""Cells of a phase diagram, with the runs that were made in each of them."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.phases.axes import Axis, Span
from analysis.phases.classification import Majority

Point = tuple[float, float]
Box = tuple[Span, Span]
WHOLE: Box = ((0.0, 1.0), (0.0, 1.0))

_majority = lru_cache(1024)(Majority)


class Run(NamedTuple):
    """A run of a cell.

    Attributes
    ----------
    number : int
        Number of the run, by which it can be reproduced.
    train_steps, validation_steps : float
        Steps after which the network fits the training data, and generalizes; NaN for never.
    phase : str
        Phase of the run, one of `PHASES`.
    """

    number: int
    train_steps: float
    validation_steps: float
    phase: str


@dataclass(eq=False)
class Cell:
    """A rectangle of a phase diagram, with the runs at the point that represents it.

    Attributes
    ----------
    x, y : pair of float
        Ends of the cell on both axes, as positions from 0 to 1.
    point : pair of float
        Values of both hyperparameters at which the runs are made.
    level : int
        How often the cell was halved; 0 for a coarse cell.
    runs : list of Run
        Each run: its number, its steps to the training and the validation threshold (NaN for never), and its
        phase.

    Examples
    --------
    >>> import analysis
    >>> cell = analysis.phases.Cell((0.0, 0.5), (0.0, 0.5), point=(0.1, 0.01), level=0)
    >>> cell.covered()
    0.25
    """

    x: Span
    y: Span
    point: Point
    level: int
    runs: list[Run] = field(default_factory=list)

    @property
    def majority(self) -> Majority:
        """Majority phase of the runs of the cell; an `InputError` says so if there are none."""
        return _majority(tuple(run.phase for run in self.runs))

    def covered(self, box: Box = WHOLE) -> float:
        """Return the area that the cell and a box have in common.

        Parameters
        ----------
        box : pair of spans, default the whole plane
            Ends of the box on both axes, as positions from 0 to 1.

        Returns
        -------
        float
            Area, as a fraction of the whole diagram; 0 if they do not overlap.
        """
        sides = [
            min(own[1], other[1]) - max(own[0], other[0])
            for own, other in zip((self.x, self.y), box, strict=True)
        ]
        return max(sides[0], 0.0) * max(sides[1], 0.0)


def new_cell(x: Axis, y: Axis, spans: Box, level: int) -> Cell:
    """Return a new cell without runs, at `spans` of the axes `x` and `y`, after `level` divisions."""
    return Cell(*spans, (x.point(spans[0]), y.point(spans[1])), level)


def overlap(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for each two intervals whether they share more than an end, (n, n)."""
    return np.minimum(high[:, None], high) > np.maximum(low[:, None], low)
