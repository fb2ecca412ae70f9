"""Comparison of two ensembles: structures, shapes, motion, onsets and accuracies."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.classes import Structures, structures
from analysis.comparison.ensembles import EnsembleOf
from analysis.comparison.motion import Motion
from analysis.comparison.parts import MOST_PAIRS, Parts, Shapes
from analysis.comparison.symmetry import Symmetry
from analysis.comparison.timing import OnsetDifference
from analysis.stats.calibration import Calibration
from analysis.stats.effects import Difference
from analysis.stats.intervals import Interval, holm
from physics.blas import one_blas_thread
from physics.checks import number, short_text, whole_number
from physics.errors import InputError
from physics.theory.operations import Operation
from physics.trajectory import Trajectory

__all__ = ["Comparison", "Shapes", "Structures", "compare", "structures"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of two ensembles, which `compare` returns. Parts that do not apply are None or empty.

    Attributes
    ----------
    names : tuple of str
        Names of the two ensembles.
    runs : tuple of int
        Number of runs of each ensemble that are compared.
    simulated, trained : Structures or None
        Circles and grid imperfections of the first and of the second ensemble.
    shapes : Shapes or None
        Distance of each final shape of the second ensemble to the nearest one of the first, and levels to
        compare it with.
    distributions : mapping of str to Difference
        Differences in circles, grid imperfections, quality, effective dimension, surviving circles, and the
        final values of the scalar observables that both have, such as losses.
    motion : Motion or None
        Error over time, at times that correspond to each other.
    onsets : mapping of str to OnsetDifference
        Times at which thresholds are reached, in units of the second ensemble. If there is a `motion`, its
        scale converts the times of the first.
    accuracy : Calibration or None
        Predicted against measured accuracy.
    notes : tuple of str
        What was omitted, and why.

    Notes
    -----
    All tests in ``distributions`` and ``onsets`` form one family. In addition to its own p-value, each has
    Holm's p-value in this family, and ``differs`` uses the latter.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> first, second = np.random.default_rng(0).normal(size=(2, 5, 3, 7, 2))  # five runs of three frames
    >>> found = analysis.compare(first, second)
    >>> found.runs, found.shapes.nearest.shape, found.distributions["circles"].differs
    ((5, 5), (5,), False)
    """

    names: tuple[str, str]
    runs: tuple[int, int]
    simulated: Structures | None
    trained: Structures | None
    shapes: Shapes | None
    distributions: Mapping[str, Difference]
    motion: Motion | None
    onsets: Mapping[str, OnsetDifference]
    accuracy: Calibration | None
    notes: tuple[str, ...]

    def table(self) -> list[dict[str, Any]]:
        """Return the estimates of distributions, motion, onsets and accuracy as rows of a table.

        Returns
        -------
        list of dict
            Each row has the columns part, quantity, statistic, estimate, low, high, count, p_value,
            adjusted_p_value and test. Missing p-values are NaN, and the name of a missing test is empty.

        Examples
        --------
        >>> import analysis, numpy as np
        >>> rows = analysis.compare(*np.random.default_rng(0).normal(size=(2, 5, 3, 7, 2))).table()
        >>> [row["statistic"] for row in rows if row["quantity"] == "circles"]
        ['simulated', 'trained', 'difference', "Cohen's h"]
        """
        rows: list[dict[str, Any]] = []

        def add(
            part: str, quantity: str, statistic: str, value: Interval, of: Any = None, test: str = ""
        ) -> None:
            p, adjusted = (math.nan, math.nan) if of is None else (of.p_value, of.adjusted_p_value)
            rows.append(
                {"part": part, "quantity": quantity, "statistic": statistic}
                | {"estimate": value.estimate, "low": value.low, "high": value.high, "count": value.count}
                | {"p_value": p, "adjusted_p_value": adjusted, "test": test}
            )

        for name, found in self.distributions.items():
            add("distribution", name, self.names[0], found.first)
            add("distribution", name, self.names[1], found.second)
            add("distribution", name, "difference", found.difference, found, found.test)
            for effect, value in found.effects.items():
                add("distribution", name, effect, value)
        if self.motion is not None:
            for statistic in ("scale", "mean_error", "chance_error"):
                add("motion", self.motion.alignment, statistic, getattr(self.motion, statistic))
        for name, onset in self.onsets.items():
            for ensemble, one in zip(self.names, (onset.first, onset.second), strict=True):
                add("onset", name, f"{ensemble}, reached", one.fraction)
                add("onset", name, f"{ensemble}, median time", one.median)
            add("onset", name, "ratio", onset.ratio, onset, "log-rank test")
            add("onset", name, "paired ratio", onset.paired_ratio)
        if self.accuracy is not None:
            for statistic in ("bias", "error", "correlation", "slope"):
                add("accuracy", "predicted against measured", statistic, getattr(self.accuracy, statistic))
        return rows

    @property
    def tests(self) -> int:
        """Number of tests for which Holm's p-values are adjusted."""
        tests: list[Any] = [*self.distributions.values(), *self.onsets.values()]
        return sum(math.isfinite(one.p_value) for one in tests)

    def to_dict(self) -> dict[str, Any]:
        """Return all results, except the matrices of `shapes`, in a form that JSON can hold.

        Returns
        -------
        dict
            Values by name, nested as in this object. NaN becomes None, and infinity "inf" or "-inf". Of the
            symmetry, its name and its number of relabelings are kept.
        """
        found = _plain(self)
        if self.shapes is not None:
            for name in ("disparity", "relabelling"):
                del found["shapes"][name]
            symmetry = self.shapes.symmetry
            found["shapes"]["symmetry"] = {"name": symmetry.name, "size": len(symmetry)}
        return dict(found)

    def to_json(self) -> str:
        """Return the result of `to_dict` as text.

        Returns
        -------
        str
            JSON text, indented.

        Examples
        --------
        >>> import analysis, json, numpy as np
        >>> found = analysis.compare(*np.random.default_rng(0).normal(size=(2, 5, 3, 7, 2)))
        >>> json.loads(found.to_json())["runs"]
        [5, 5]
        """
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)


@one_blas_thread  # the matrices are small: several threads would only wait for one another
def compare(
    simulated: Trajectory | NDArray[Any] | Sequence[Trajectory | NDArray[Any]],
    trained: Trajectory | NDArray[Any] | Sequence[Trajectory | NDArray[Any]],
    *,
    names: tuple[str, str] = ("simulated", "trained"),
    align: str = "auto",
    paired: bool | None = None,
    symmetry: Symmetry | None = None,
    operation: Operation | None = None,
    states: bool | None = None,
    delta: float = 0.01,
    thresholds: Mapping[str, float] | None = None,
    accuracies: tuple[Any, Any] | None = None,
    most_pairs: int = MOST_PAIRS,
) -> Comparison:
    """Compare two ensembles, such as particles and networks: where they end, how they get there, and when.

    Parameters
    ----------
    simulated, trained : Trajectory, ndarray (runs, frames, tokens, dim), or sequence of these
        The two ensembles. Several trajectories count as one ensemble, and the frames of an array are steps 0,
        1, 2, …. Runs whose first or last frame is not finite, and runs that blew up, are left out, which
        `Comparison.notes` reports.
        Shapes are compared only if the numbers of tokens are equal.
    names : pair of str, default ("simulated", "trained")
        Names of the ensembles in results and messages, which differ.
    align : str, default "auto"
        How times of the two are matched. "scaling" multiplies times by the factor with the least error, and
        is the default for paired runs, which it needs. "ends" uses the factor with which both end together,
        and is the default otherwise. "none" leaves times as they are. The name of an observable or measure
        that both have, such as "quality", matches times of equal progress.
    paired : bool, optional
        Whether run k of one belongs to run k of the other; by default, whether they start from the same
        shapes. Runs that are not paired are matched by their ends: each trained run is compared with the
        simulated run whose final shape is nearest. The level of chance is then measured by comparing each
        simulated run with the nearest other simulated run.
    symmetry : Symmetry, optional
        Relabelings of the tokens that do not change the problem. By default they are those that both problems
        allow and that map a fixed training set onto itself. There are none, which `Comparison.notes` reports,
        if networks were trained on examples given by their indices, or if the search would take long in more
        than two dimensions.
    operation : Operation, optional
        Operation that is learned. By default it is what the trajectories record, or addition modulo the
        number of tokens.
    states : bool, optional
        Whether positions are compared as coordinates, without rotation. By default this is the case if one
        ensemble is a `physics.AffineFlow`.
    delta : float, default 0.01
        Tolerance of the representation quality, greater than 0.
    thresholds : mapping of str to float, optional
        Thresholds of observables or measures. The onset is the first frame at or above the threshold. By
        default the thresholds are 0.95 for "quality" and 0.9 for accuracies, if both ensembles have them. If
        both recorded ``steps_to_<name>``, that is used instead.
    accuracies : pair of array_like (runs,), optional
        Predicted and measured accuracy of each trained run. By default they are the observables
        "predicted_accuracy" and "accuracy" or "validation_accuracy".
    most_pairs : int, default 100
        Largest number of pairs of runs whose motion is compared, at least 1. Of more pairs the first ones are
        taken, which `Comparison.notes` reports.

    Returns
    -------
    Comparison
        Structures, shapes, distributions, motion, onsets and accuracies; estimates have 95 % intervals.

    Raises
    ------
    InputError
        If `names` are not two different ones, no run of an ensemble is finite, its parts do not agree, its
        times do not increase, it has another number of tokens than the modulus that it states, or a value is
        out of its range. If runs to be `paired` differ in number, or `align` is "scaling" for runs
        that are not paired. If `align` or `thresholds` name something that one ensemble lacks, or
        `accuracies` do not have one value for each trained run. If an argument asks to compare shapes of
        different numbers of tokens.

    Examples
    --------
    >>> import analysis, physics
    >>> start = physics.simulate(physics.ParticleSystem(7), runs=6, steps=1).initial
    >>> weak, strong = (
    ...     physics.simulate(physics.ParticleSystem(7, alignment=a), runs=6, steps=10, initial=start)
    ...     for a in (0.0, 3.0)
    ... )
    >>> found = analysis.compare(weak, strong, names=("weak", "strong"), align="none")  # both have one clock
    >>> found.motion.paired, found.motion.error.shape, found.distributions["circles"].test
    (True, (6, 11), "Fisher's exact test")
    """
    delta = number("delta", delta, above=0.0)
    pair = list(names) if np.iterable(names) and not isinstance(names, str) else []
    if len(pair) != 2 or pair[0] == pair[1] or not all(isinstance(name, str) for name in pair):
        raise InputError(f"names must be two different names, got {short_text(names)}")
    if not isinstance(thresholds, Mapping | None):
        raise InputError(f"thresholds must map names to numbers, got {short_text(thresholds)}")
    first = EnsembleOf("simulated", simulated, delta, operation, states)  # type: ignore[arg-type]
    second = EnsembleOf("trained", trained, delta, operation, states)  # type: ignore[arg-type]
    work = Parts(first, second, names, states, symmetry, whole_number("most_pairs", most_pairs, 1))
    ours, theirs = work.structures(first), work.structures(second)
    shapes, motion, together = None, None, False
    if work.same_tokens:
        shapes = work.shapes()
        pairs, together = work.pairs(paired, shapes)
        motion = work.motion(pairs, together, align, shapes)
    else:
        work.without_shapes(paired=paired, align=align, symmetry=symmetry)
    distributions, reached = _adjusted(work.distributions(ours, theirs), work.onsets(motion, thresholds))
    return Comparison(
        names,
        (first.runs, second.runs),
        ours,
        theirs,
        shapes,
        distributions,
        motion,
        reached,
        work.accuracy(together, accuracies),
        tuple(work.notes),
    )


def _adjusted(
    distributions: Mapping[str, Difference], reached: Mapping[str, OnsetDifference]
) -> tuple[dict[str, Difference], dict[str, OnsetDifference]]:
    """Return both mappings with Holm's adjusted p-value added to each test."""
    p_values = [one.p_value for one in distributions.values()]
    found = holm(p_values + [one.p_value for one in reached.values()]).tolist()
    adjusted = iter(found)
    return (
        {name: replace(one, adjusted_p_value=next(adjusted)) for name, one in distributions.items()},
        {name: replace(one, adjusted_p_value=next(adjusted)) for name, one in reached.items()},
    )


def _plain(value: Any) -> Any:
    """Return a result in a form that JSON can hold."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value.item() if isinstance(value, np.generic) else value
