"""Axes of a phase diagram, and their cells, which are refined by halving."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from physics.checks import choice, distinct, number, whole_number
from physics.errors import InputError

MOST_CELLS = 1000
"""Largest number of coarse cells of an axis; more could not be distinguished in a figure."""
Span = tuple[float, float]
"""Ends of a cell, as fractions of its axis: k / cells, then midpoints. Neighbors share the exact number."""


@dataclass(frozen=True)
class Axis:
    """A hyperparameter of a phase diagram, divided into cells from low to high.

    Parameters
    ----------
    name : str
        Name of an argument of `nets.train`, or of a field of a model.
    low, high : float
        Ends of the axis; `high` is greater than `low`, or equal to it if `whole` is true.
    cells : int, default 6
        Number of coarse cells, from 1 to 1000.
    scale : {"linear", "log"}, default "linear"
        Whether cells have equal width, or an equal ratio of their ends. "log" needs a `low` greater than 0,
        or than 0.5 if `whole` is true.
    whole : bool, default False
        Whether only whole numbers are allowed. The axis then reaches half a unit beyond `low` and `high`, and
        a cell is not halved if a half would hold no whole number.
    label : str, optional
        Label in figures, by default the name.

    Raises
    ------
    InputError
        If a value is out of its range, or a coarse cell holds no whole number.

    Examples
    --------
    >>> import analysis
    >>> axis = analysis.Axis("learning_rate", 1e-4, 1e-2, cells=2, scale="log")
    >>> [round(axis.value(position), 6) for position in (0.0, 0.5, 1.0)]
    [0.0001, 0.001, 0.01]
    """

    name: str
    low: float
    high: float
    cells: int = 6
    scale: Literal["linear", "log"] = "linear"
    whole: bool = False
    label: str = ""

    def __post_init__(self) -> None:
        choice("scale", self.scale, ("linear", "log"))
        cells = whole_number(f"cells of {self.name}", self.cells, 1, MOST_CELLS)
        object.__setattr__(self, "cells", cells)
        low, high = self._ends
        if not low < high:
            raise InputError(
                f"{self.name} must go from a lower to a higher value, got {distinct(low, high)} to "
                f"{distinct(high, low)}"
            )
        if self.scale == "log" and low <= 0:
            bound = 0.5 if self.whole else 0
            raise InputError(f"{self.name} must begin above {bound} on a logarithmic axis, got {self.low:g}")
        object.__setattr__(self, "label", self.label or self.name.replace("_", " "))
        for span in self.spans:
            if self.whole and not self._holds_whole(span):
                low, high = (self.value(end) for end in span)
                raise InputError(
                    f"cells of {self.name} must each hold a whole number, got one from {low:g} to {high:g}; "
                    f"take fewer cells or a wider range"
                )

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Return the values at both ends, half a unit further out for whole numbers."""
        low, high = (number(f"{end} of {self.name}", getattr(self, end)) for end in ("low", "high"))
        return (low - 0.5, high + 0.5) if self.whole else (low, high)

    @property
    def spans(self) -> list[Span]:
        """Spans of the coarse cells, from low to high, as pairs of positions from 0 to 1."""
        return [(k / self.cells, (k + 1) / self.cells) for k in range(self.cells)]

    def value(self, position: float) -> float:
        """Return the value at a position along the axis.

        Parameters
        ----------
        position : float
            From 0 at the low end to 1 at the high end.

        Returns
        -------
        float
            Value of the hyperparameter.

        Examples
        --------
        >>> import analysis
        >>> analysis.Axis("weight_decay", 0.0, 2.0).value(0.25)
        0.5
        """
        low, high = self._ends
        if self.scale == "log":
            return low * (high / low) ** position
        return low + (high - low) * position

    def part(self, value: float) -> float:
        """Return the position of a value along the axis; the inverse of `value`.

        Parameters
        ----------
        value : float
            Value of the hyperparameter; greater than 0 on a logarithmic axis.

        Returns
        -------
        float
            From 0 at the low end to 1 at the high end; outside this range for a value beyond the axis.

        Raises
        ------
        ValueError
            If `value` is not greater than 0 on a logarithmic axis.

        Examples
        --------
        >>> import analysis
        >>> analysis.Axis("learning_rate", 1e-4, 1e-2, scale="log").part(1e-3)
        0.5
        """
        low, high = self._ends
        if self.scale == "log":
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    def point(self, span: Span) -> float:
        """Return the value that represents a cell.

        Parameters
        ----------
        span : pair of float
            Ends of the cell, from 0 to 1.

        Returns
        -------
        float
            The center of the cell, or the nearest whole number if only these are allowed.

        Examples
        --------
        >>> import analysis
        >>> analysis.Axis("hidden", 1, 6, cells=3, whole=True).point((0.0, 1 / 3))  # the cell of 1 and 2
        2
        """
        center = self.value(sum(span) / 2)
        if not self.whole:
            return center
        least, most = self._wholes(span)
        return min(max(round(center), least), most)

    def halves(self, span: Span) -> list[Span]:
        """Halve an interval of positions on this axis.

        Parameters
        ----------
        span : pair of float
            Ends of the interval, from 0 to 1.

        Returns
        -------
        list of pair of float
            Both halves, or the interval itself if only whole numbers are allowed and a half would hold none.

        Examples
        --------
        >>> import analysis
        >>> analysis.Axis("weight_decay", 0.0, 1.0).halves((0.5, 1.0))
        [(0.5, 0.75), (0.75, 1.0)]
        """
        middle = sum(span) / 2
        parts = [(span[0], middle), (middle, span[1])]
        return [span] if self.whole and not all(map(self._holds_whole, parts)) else parts

    def _wholes(self, span: Span) -> tuple[int, int]:
        """Return the smallest and the largest whole number of a cell, which does not hold its upper end."""
        return math.ceil(self.value(span[0])), math.ceil(self.value(span[1])) - 1

    def _holds_whole(self, span: Span) -> bool:
        """Return whether a cell holds a whole number."""
        least, most = self._wholes(span)
        return least <= most
