"""Cells of a phase diagram, with the runs that were made in each."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from analysis.phases.axes import Span
from analysis.phases.classification import Majority

Point = tuple[float, float]
Box = tuple[Span, Span]
WHOLE: Box = ((0.0, 1.0), (0.0, 1.0))

_majority = lru_cache(1024)(Majority)


class Run(NamedTuple):
    """A run of a cell: its number, its phase, and when it fitted and generalized (NaN for never)."""

    number: int
    train_steps: float
    validation_steps: float
    phase: str


@dataclass(eq=False)
class Cell:
    """A rectangle of the plane, and the runs at the point that represents it."""

    x: Span
    y: Span
    point: Point
    level: int
    runs: list[Run] = field(default_factory=list)

    @property
    def majority(self) -> Majority:
        """The majority phase of its runs."""
        return _majority(tuple(run.phase for run in self.runs))

    def covered(self, box: Box = WHOLE) -> float:
        """Return the area of the part of the cell that lies in a box.

        Parameters
        ----------
        box : pair of spans, default the whole plane
            Spans of both axes, each from 0 to 1.

        Returns
        -------
        float
            Area, as a fraction of the whole plane.
        """
        sides = [
            min(own[1], other[1]) - max(own[0], other[0])
            for own, other in zip((self.x, self.y), box, strict=True)
        ]
        return max(sides[0], 0.0) * max(sides[1], 0.0)
