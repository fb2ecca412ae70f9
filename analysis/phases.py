"""Phases of learning (Liu et al., Table 1), and phase diagrams over two hyperparameters, refined at borders.

Nothing here trains networks; `phase_diagram` receives a function that does.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from analysis.stats.intervals import Interval, proportion
from physics.checks import InputError, choice, distinct, number, real_array, short_text, whole_number
from physics.values import Shown

__all__ = ["PHASES", "Axis", "Cell", "Majority", "PhaseDiagram", "Refinement", "classify_phases"]
__all__ += ["phase_diagram"]

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
            raise InputError(f"{self.name} must go from a lower to a higher value, got {low} to {high}")
        if self.scale == "log" and low <= 0:
            bound = 0.5 if self.whole else 0
            raise InputError(f"{self.name} must begin above {bound} on a logarithmic axis, got {self.low:g}")
        object.__setattr__(self, "label", self.label or self.name.replace("_", " "))
        for span in self.spans:
            if self.whole and not self._holds_whole(span):
                low, high = map(self.value, span)
                got = f"one from {low:g} to {high:g}"
                raise InputError(f"cells of {self.name} must each hold a whole number, got {got}")

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
            Value of the hyperparameter.

        Returns
        -------
        float
            From 0 at the low end to 1 at the high end; outside this range for a value beyond the axis, and
            minus infinity for one of 0 or less on a logarithmic axis.

        Examples
        --------
        >>> import analysis
        >>> analysis.Axis("learning_rate", 1e-4, 1e-2, scale="log").part(1e-3)
        0.5
        """
        low, high = self._ends
        if self.scale == "log":
            return math.log(value / low) / math.log(high / low) if value > 0 else -math.inf
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


Point = tuple[float, float]
Box = tuple[Span, Span]


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
class Cell(Shown):
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

    def covered(self) -> float:
        """Return the area of the cell, as a fraction of the whole diagram."""
        return (self.x[1] - self.x[0]) * (self.y[1] - self.y[0])


Evaluate = Callable[[Sequence[Point], int], Any]
CERTAIN = 0.9
"""Certainty of the majority from which a cell counts as decided."""
EXTRA = 2
"""Number of runs that an unclear cell gets at a time; an even one keeps odd counts odd and avoids ties."""


@dataclass
class PhaseDiagram(Shown):
    """Phase diagram of learning over two hyperparameters, which `phase_diagram` returns.

    Attributes
    ----------
    x, y : Axis
        The two hyperparameters.
    delay : float
        Number of steps between fitting and generalizing from which a run counts as grokking.
    cells : list of Cell
        The cells of the diagram, each with its runs; they cover the plane once.
    coarser : list of Cell
        Cells that were cut into smaller ones. Their runs are kept but not used any further.

    Examples
    --------
    >>> import analysis
    >>> x, y = (analysis.Axis(name, 0, 1, cells=1) for name in ("weight_decay", "learning_rate"))
    >>> late = lambda points, first: [(first + k, 10, 5000) for k in range(len(points))]
    >>> found = analysis.phase_diagram(x, y, late)
    >>> cell = found.at(0.5, 0.5)
    >>> cell.majority.phase, found.decided(cell), len(found.run_rows()), len(found.borders())
    ('grokking', True, 3, 0)
    """

    x: Axis
    y: Axis
    delay: float
    cells: list[Cell]
    coarser: list[Cell] = field(default_factory=list)

    def _shown(self) -> dict[str, str]:
        shares = {phase: f"{share:.0%} of the plane" for phase, share in self.shares().items()}
        counts = {"cells": f"{len(self.cells)}", "runs": f"{self.runs}"}
        return {"axes": f"{self.x.name}, {self.y.name}", **counts, **shares}

    @property
    def runs(self) -> int:
        """Number of all runs, including those of cells that were cut."""
        return sum(len(cell.runs) for cell in self.cells + self.coarser)

    def decided(self, cell: Cell) -> bool:
        """Return whether the certainty of the majority phase of a cell is at least 0.9.

        Parameters
        ----------
        cell : Cell
            Cell with at least one run.

        Returns
        -------
        bool
            Whether it is clear in which phase most networks of the cell are.
        """
        return cell.majority.certainty >= CERTAIN

    def at(self, x: float, y: float) -> Cell:
        """Return the cell at a point of the diagram.

        Parameters
        ----------
        x, y : float
            Values of both hyperparameters.

        Returns
        -------
        Cell
            Cell that contains the point; the first one if it lies on an edge.

        Raises
        ------
        InputError
            If the point is outside the diagram.
        """
        a, b = self.x.part(x), self.y.part(y)
        for cell in self.cells:
            if cell.x[0] <= a <= cell.x[1] and cell.y[0] <= b <= cell.y[1]:
                return cell
        sides = ((self.x, x), (self.y, y))
        got = (f"{distinct(value, axis.low, axis.high)} for {axis.name}" for axis, value in sides)
        raise InputError(f"x and y must lie within the diagram, got {' and '.join(got)}")

    def shares(self) -> dict[str, Interval]:
        """Return the share of each phase in the area of the diagram.

        Returns
        -------
        dict of str to Interval
            Share of each phase, from 0 to 1, with its 95 % interval.

        Notes
        -----
        Each run represents an equal part of its cell. The interval is Wilson's for an effective number of
        runs, 1 / Σ (a²/n), over cells with a fraction a of the area and n runs (Kish 1965). It tends to be
        too wide, because the runs of most cells agree.
        """
        areas = np.array([cell.covered() for cell in self.cells])
        areas /= areas.sum()
        runs = np.array([[cell.majority.counts[phase] for phase in PHASES] for cell in self.cells])
        effective = 1 / float(areas**2 @ (1 / runs.sum(axis=1)))
        fractions = np.minimum(areas @ (runs / runs.sum(axis=1, keepdims=True)), 1.0)
        shares = (proportion(share * effective, effective) for share in fractions.tolist())
        return dict(zip(PHASES, shares, strict=True))

    def borders(self) -> NDArray[np.intp]:
        """Return the pairs of cells that share an edge but differ in their phase.

        Returns
        -------
        ndarray of intp, shape (n, 2)
            Indices of both cells in `cells`.
        """
        (left, right), (low, high) = (
            np.array([getattr(cell, side) for cell in self.cells]).T for side in ("x", "y")
        )
        phases = np.array([cell.majority.phase for cell in self.cells])

        def overlap(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
            return np.minimum(high[:, None], high) > np.maximum(low[:, None], low)

        beside = (right[:, None] == left) & overlap(low, high)
        above = (high[:, None] == low) & overlap(left, right)
        return np.argwhere((beside | above) & (phases[:, None] != phases))

    def table(self) -> list[dict[str, Any]]:
        """Return a row of a table for each cell, including those that were cut.

        Returns
        -------
        list of dict
            The extent of the cell, its point, the numbers of runs, the majority phase, and its certainty.
        """
        rows = []
        for cell in self.cells + self.coarser:
            row: dict[str, Any] = {}
            for axis, span, value in zip((self.x, self.y), (cell.x, cell.y), cell.point, strict=True):
                low, high = map(axis.value, span)
                row |= {axis.name: value, f"{axis.name}_from": low, f"{axis.name}_to": high}
            most, share = cell.majority, cell.majority.share
            odd = sum(np.isnan(run.train_steps) and np.isfinite(run.validation_steps) for run in cell.runs)
            row |= {"level": cell.level, "cut": cell in self.coarser, "runs": most.runs, **most.counts}
            row |= {"validation_only": int(odd), "phase": most.phase, "share": share.estimate}
            row |= {"share_low": share.low, "share_high": share.high}
            rows.append(row | {"certainty": most.certainty, "decided": self.decided(cell)})
        return rows

    def run_rows(self) -> list[dict[str, Any]]:
        """Return a row of a table for each run, including the runs of cells that were divided.

        Returns
        -------
        list of dict
            Rows in the order of the numbers of the runs: the point under the names of both hyperparameters,
            "number", "train_steps" and "validation_steps" until the training and the validation accuracy
            reach their thresholds (NaN for never), and "phase".
        """
        rows = [
            {self.x.name: cell.point[0], self.y.name: cell.point[1], **run._asdict()}
            for cell in self.cells + self.coarser
            for run in cell.runs
        ]
        return sorted(rows, key=lambda row: row["number"])


@dataclass(frozen=True)
class Refinement:
    """Limits on the work that a phase diagram may take.

    Parameters
    ----------
    seeds : int, default 3
        Smallest number of runs in each cell, at least 1.
    most_seeds : int, default 7
        Largest number of runs in a cell without a clear majority, at least `seeds`.
    levels : int, default 2
        Number of times that a coarse cell may be halved, at least 0.

    Raises
    ------
    InputError
        If a value is out of its range.

    Examples
    --------
    >>> import analysis
    >>> quick = analysis.Refinement(seeds=1, most_seeds=1, levels=0)  # the coarse grid, one run in each cell
    >>> quick.levels
    0
    """

    seeds: int = 3
    most_seeds: int = 7
    levels: int = 2

    def __post_init__(self) -> None:
        seeds = whole_number("seeds", self.seeds, 1)
        whole_number("most_seeds", self.most_seeds, seeds)
        whole_number("levels", self.levels, 0)


def phase_diagram(
    x: Axis, y: Axis, evaluate: Evaluate, refinement: Refinement | None = None, *, delay: float = DELAY
) -> PhaseDiagram:
    """Map the phases of learning over two hyperparameters, with finer cells where phases meet.

    The coarse grid is computed first. Then, level by level, cells whose runs disagree get more runs, and
    cells that border on a cell of another phase are cut into four. This ends when no border can be refined. A
    phase that is smaller than a coarse cell may be missed.

    Parameters
    ----------
    x, y : Axis
        The two hyperparameters, with their coarse cells.
    evaluate : callable
        Function ``evaluate(points, first)`` that makes a new run at each point (x, y) of a list. A point
        occurs once for each of its runs. The function returns an array (runs, 3): the number of the run, by
        which it can be reproduced, and its steps to the training and to the validation threshold, NaN for
        never. `first` is the number of runs so far, and so the first free number.
    refinement : Refinement, optional
        Seeds and levels; by default `Refinement()`.
    delay : float, default 1000
        Number of steps between fitting and generalizing from which a run counts as grokking, greater than 0.

    Returns
    -------
    PhaseDiagram
        Cells with their runs and their majority phases.

    Raises
    ------
    InputError
        If an argument is out of its range, or `evaluate` does not return three numbers for each run.

    References
    ----------
    Liu et al. 2022, Figs. 6-8 and 13-15, which show a full grid with one run in each cell.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> def evaluate(points, first):  # stands for a training: it generalizes late if x + y is small
    ...     steps = [2000 if x + y < 1 else 10 for x, y in points]
    ...     return np.stack([first + np.arange(len(points)), np.zeros(len(points)), steps], axis=1)
    >>> x, y = (analysis.Axis(name, 0, 1, cells=2) for name in ("weight_decay", "learning_rate"))
    >>> diagram = analysis.phase_diagram(x, y, evaluate, analysis.Refinement(levels=1))
    >>> diagram.at(0.1, 0.1).majority.phase, diagram.at(0.9, 0.9).majority.phase
    ('grokking', 'comprehension')
    """
    refinement = Refinement() if refinement is None else refinement
    for name, value, kind in (("x", x, Axis), ("y", y, Axis), ("refinement", refinement, Refinement)):
        if not isinstance(value, kind):
            raise InputError(f"{name} must be of the class {kind.__name__}, got {short_text(value)}")
    if x.name == y.name:
        raise InputError(f"x and y must be two different hyperparameters, got {x.name!r} for both")
    delay = number("delay", delay, above=0.0)
    diagram = PhaseDiagram(x, y, delay, [])
    survey = _Survey(diagram, evaluate, refinement)
    survey.add([_new_cell(diagram, spans, 0) for spans in product(x.spans, y.spans)])
    survey.settle()
    while edge := _edge(diagram, refinement.levels):
        survey.cut(edge)
        survey.settle()
    return diagram


def _new_cell(diagram: PhaseDiagram, spans: Box, level: int) -> Cell:
    """Return a new cell without runs, at `spans` of both axes, after `level` divisions."""
    return Cell(*spans, (diagram.x.point(spans[0]), diagram.y.point(spans[1])), level)


def _parts(diagram: PhaseDiagram, cell: Cell) -> list[Cell]:
    """Return the four parts of a cell; two, or the cell itself, if whole numbers do not allow more."""
    spans = product(diagram.x.halves(cell.x), diagram.y.halves(cell.y))
    return [_new_cell(diagram, pair, cell.level + 1) for pair in spans]


def _edge(diagram: PhaseDiagram, levels: int) -> list[Cell]:
    """Return the cells on a border that may be cut, the coarsest and least certain ones first."""
    cells = [diagram.cells[k] for k in np.unique(diagram.borders())]
    divisible = [cell for cell in cells if cell.level < levels and len(_parts(diagram, cell)) > 1]
    return sorted(divisible, key=lambda cell: (cell.level, cell.majority.certainty))


@dataclass
class _Survey:
    """Makes the runs of a diagram."""

    diagram: PhaseDiagram
    evaluate: Evaluate
    refinement: Refinement

    def add(self, cells: Sequence[Cell]) -> None:
        """Add new cells to the diagram, each with the smallest number of runs."""
        self.run([cell for cell in cells for _ in range(self.refinement.seeds)])
        self.diagram.cells += cells

    def settle(self) -> None:
        """Add runs to unclear cells until they are decided or have the largest number of runs."""
        diagram, most = self.diagram, self.refinement.most_seeds
        while unclear := [c for c in diagram.cells if len(c.runs) < most and not diagram.decided(c)]:
            self.run([cell for cell in unclear for _ in range(min(EXTRA, most - len(cell.runs)))])

    def cut(self, cells: Sequence[Cell]) -> None:
        """Cut cells into their parts, which get runs of their own."""
        for cell in cells:
            self.diagram.cells.remove(cell)
        self.diagram.coarser += cells
        self.add([part for cell in cells for part in _parts(self.diagram, cell)])

    def run(self, wanted: Sequence[Cell]) -> None:
        """Make one run for each entry of a list of cells."""
        points = [cell.point for cell in wanted]
        table = real_array("what evaluate returns", self.evaluate(points, self.diagram.runs))
        if table.shape != (len(wanted), 3):
            raise InputError(f"evaluate must return an array ({len(wanted)}, 3), got {table.shape}")
        numbers = table[:, 0]
        if not (np.rint(numbers) == numbers).all() or np.isinf(numbers).any():
            raise InputError(f"evaluate must first return whole numbers of runs, got {short_text(numbers)}")
        phases = classify_phases(table[:, 1], table[:, 2], delay=self.diagram.delay).tolist()
        for cell, (place, train, validation), phase in zip(wanted, table.tolist(), phases, strict=True):
            cell.runs.append(Run(int(place), train, validation, phase))
