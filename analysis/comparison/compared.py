"""Comparison of two ensembles: structures, shapes, motion, onsets and accuracies."""

import importlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles import classes
from analysis.circles.classes import Structures
from analysis.circles.fourier import effective_dimension, frequency_norms
from analysis.circles.survival import survives
from analysis.comparison import relabelling as shapes_of
from analysis.comparison.motion import SCALES, Chosen, Motion, PathPairs, Paths, compare_motion
from analysis.comparison.relabelling import Symmetry, standard, symmetry_of
from analysis.comparison.timing import OnsetDifference, Onsets, compare_onsets, onsets
from analysis.stats.effects import Calibration, Difference, calibrate, compare_proportions, compare_values
from analysis.stats.intervals import Interval, holm
from physics.blas import one_blas_thread
from physics.checks import choice, flag, increasing_array, number, real_array, short_text
from physics.errors import InputError
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.theory.operations import Operation
from physics.theory.system import representation_quality
from physics.trajectory import Trajectory
from physics.values import Array, Integers, Mask, Results, Shown, brief

Measure = Callable[[Array, Operation, float], Array]
PLANAR = 4
"""Largest dimension in which structures of pair sums are measured by default; in more it takes long."""


def _quality(E: Array, operation: Operation, delta: float) -> Array:
    """Return the representation quality (…); NaN if a coordinate does not vary, or factors do not commute."""
    states = E.reshape(-1, *E.shape[-2:])
    quality = np.full(len(states), np.nan)
    varied = (np.ptp(states, axis=1) > 0).all(axis=1)
    if varied.any() and operation.commutes:
        quality[varied] = representation_quality(states[varied], operation, delta)
    return quality.reshape(E.shape[:-2])


def _imperfections(E: Array, operation: Operation, delta: float) -> Array:
    """Return the number of grid imperfections (…)."""
    return np.asarray(grid_imperfections(E, **classes.class_options(operation)), np.float64)


MEASURES: Mapping[str, Measure] = {
    "circle_ratio": lambda E, operation, delta: circle_ratio(E),
    "grid_imperfections": _imperfections,
    "quality": _quality,
    "effective_dimension": lambda E, operation, delta: effective_dimension(E),
    "survivors": lambda E, operation, delta: survives(frequency_norms(E)).sum(axis=-1).astype(np.float64),
}
"""Functions that measure embeddings (…, tokens, dim), with values (…)."""


@dataclass(frozen=True, eq=False)
class EnsembleOf:
    """Several trajectories with equal numbers of tokens and dimensions, read as one ensemble.

    Only runs whose first and last frames are finite count; others are left out of all results.

    Parameters
    ----------
    name : str
        Name of the ensemble in messages.
    parts : Trajectory, ndarray (runs, frames, tokens, dim), or sequence of these
        The parts of the ensemble, which are kept as a list of trajectories.
    delta : float, default 0.01
        Tolerance of the representation quality.
    given : Operation, optional
        Operation that is learned, which overrides what the trajectories record.

    Raises
    ------
    InputError
        If these are neither trajectories nor such arrays, differ in tokens or dimensions, or no run is
        finite.
    """

    name: str
    parts: Sequence[Trajectory]
    delta: float = 0.01
    given: Operation | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given: Any = self.parts
        parts = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        parts = [classes.as_trajectory(self.name, part) for part in parts]
        if not parts:
            raise InputError(f"{self.name} must hold at least one Trajectory or array, got none")
        sizes = sorted({(part.tokens, part.dim) for part in parts})
        if len(sizes) > 1:
            raise InputError(f"{self.name} must agree in tokens and dimensions, got {sizes}")
        object.__setattr__(self, "parts", parts)
        for part in parts:
            increasing_array(f"times of {self.name}", part.times)
            if (part.parameters.get("system") or {}).get("type") == "AffineFlow":
                raise InputError(f"{self.name} must hold point sets, got the components of an AffineFlow")
        if self.given is not None and self.given.tokens != self.tokens:
            raise InputError(f"operation must be one of the {self.tokens} tokens, got {self.given.tokens}")
        if not self.finite.any():
            got = f"NaN or infinity in all {len(self.finite)}"
            raise InputError(f"the ends of {self.name} must be finite in at least one run, got {got}")
        if not self.sound.any():
            raise InputError(f"{self.name} must hold a run that does not blow up, got none{self.advice}")

    @cached_property
    def finite(self) -> Mask:
        """Mask, bool (all runs,), of the runs of all parts whose first and last frames are finite."""
        return np.concatenate([classes.finite_runs(part) for part in self.parts])

    @cached_property
    def sound(self) -> Mask:
        """Mask, bool (all runs,), of the `finite` runs that did not blow up."""
        return self.finite & ~np.concatenate([classes.lost_runs(part) for part in self.parts])

    @property
    def advice(self) -> str:
        """The advice for the runs that blew up, as the end of a sentence."""
        return max(map(classes.smaller_step, self.parts))

    @property
    def runs(self) -> int:
        """Number of runs whose first and last frames are finite."""
        return int(self.sound.sum())

    @property
    def tokens(self) -> int:
        """Number of tokens of every run."""
        return self.parts[0].tokens

    @property
    def dim(self) -> int:
        """Number of dimensions of the space in which the tokens of every run lie."""
        return self.parts[0].dim

    @cached_property
    def initial(self) -> Array:
        """First frame of each sound run, as float64 (runs, tokens, dim)."""
        return np.concatenate([part.initial for part in self.parts])[self.sound].astype(np.float64)

    @cached_property
    def final(self) -> Array:
        """Last frame of each sound run, as float64 (runs, tokens, dim)."""
        return np.concatenate([part.final for part in self.parts])[self.sound].astype(np.float64)

    @cached_property
    def times(self) -> Array | None:
        """Times of the frames since the first one, as float64 (frames,).

        None if the parts differ in these times or have a single frame.
        """
        first = self.parts[0].times
        same = all(np.array_equal(part.times, first) for part in self.parts)
        return first - first[0] if same and len(first) > 1 else None

    def positions(self, runs: Integers) -> NDArray[Any]:
        """Return all frames of some of the sound runs, (n, frames, tokens, dim), by their numbers `runs`."""
        starts = np.cumsum([0, *(part.runs for part in self.parts)])
        wanted = np.flatnonzero(self.sound)[runs]
        part = np.searchsorted(starts, wanted, side="right") - 1
        return np.stack(
            [self.parts[k].positions[run - starts[k]] for k, run in zip(part, wanted, strict=True)]
        )

    @cached_property
    def observables(self) -> list[str]:
        """Names, sorted, of the observables that all parts hold, with a real number in each frame."""
        names = sorted(set.intersection(*(set(part.observables) for part in self.parts)))
        held = {name: [part.observables[name] for part in self.parts] for name in names}
        return [name for name in names if all(x.ndim == 2 and x.dtype.kind != "c" for x in held[name])]

    def last(self, name: str) -> Array:
        """Return the final value of one of `MEASURES` or of the observables, as float64 (runs,)."""
        if name in MEASURES:
            return np.asarray(MEASURES[name](self.final, self.operation, self.delta), np.float64)
        values = np.concatenate([part.observables[name][:, -1] for part in self.parts])
        return values[self.sound].astype(np.float64)

    def onsets(
        self, name: str, limit: float, *, falling: bool = False, lasting: bool = False
    ) -> Onsets | None:
        """Return when a quantity is first at or above a limit in each sound run.

        If `falling`, it must be at or below the limit, and if `lasting`, it must stay there in all later
        frames. Times begin at the first frame of each part. A run that does not reach the limit is censored
        at its end, or at the time at which it was stopped. None if a part measured the quantity only once.
        """
        sign = -1.0 if falling else 1.0
        parts = []
        for part in self.parts:
            clock = self._clock(part, name)
            if len(clock) < 2:
                return None
            measured = name in MEASURES
            values = self._measured(name, part.positions) if measured else part.observables[name]
            parts.append(onsets(sign * values, clock, sign * limit, lasting=lasting))
        return self._censored(parts)

    def tracked(self, name: str) -> Onsets:
        """Return onsets that were recorded as steps, as times since the first frame of each part.

        `name` is the observable that holds the step at which each run reached a threshold, NaN for never. A
        run that never reached it is censored at its end, or at the time at which it was stopped.
        """
        parts = []
        for part in self.parts:
            steps = part.observables[name][:, -1].astype(np.float64)
            reached = np.isfinite(steps)
            times = np.interp(np.where(reached, steps, part.steps[-1]), part.steps, part.times)
            parts.append(Onsets(times - part.times[0], reached))
        return self._censored(parts)

    def _censored(self, parts: Sequence[Onsets]) -> Onsets:
        """Return the onsets of the sound runs, from those of the parts; runs are censored where they end."""
        ends = np.concatenate([_ends(part) for part in self.parts])
        times = np.concatenate([onset.times for onset in parts])
        reached = np.concatenate([onset.reached for onset in parts])
        times = np.where(reached, times, np.minimum(times, ends))
        return Onsets(times[self.sound], reached[self.sound])

    def _clock(self, part: Trajectory, name: str) -> Array:
        """Return the times (n,) since its first frame at which a part has a measure or an observable."""
        return (part.times if name in MEASURES else part.clock(name)[1]) - part.times[0]

    def _measured(self, name: str, positions: NDArray[Any]) -> Array:
        """Return a measure of positions (runs, frames, tokens, dim), as (runs, frames)."""
        frames = np.nan_to_num(positions.astype(np.float64))
        return np.asarray(MEASURES[name](frames, self.operation, self.delta), np.float64)

    @cached_property
    def operation(self) -> Operation:
        """Operation that is learned: as given, as recorded, or else addition modulo the number of tokens.

        An `InputError` says so if the parts record different operations.
        """
        recorded = [self.given] if self.given is not None else self.recorded
        names = {classes.class_names(operation) for operation in recorded if operation is not None}
        if len(names) > 1:
            got = f"{', '.join(sorted(names))}; pass operation to choose one"
            raise InputError(f"{self.name} must record one operation, got {got}")
        return next(filter(None, recorded), Operation(self.tokens, self.tokens))

    @cached_property
    def recorded(self) -> list[Operation | None]:
        """Operation that each part records, or None."""
        return [
            self._read(part, lambda made: classes.recorded_operation(made, self.tokens))
            for part in self.parts
        ]

    @cached_property
    def training_set(self) -> Integers | None:
        """Training set, int64 (n, 2), that a part records as pairs; None for all pairs or a random set."""
        for part in self.parts:
            pairs = (part.parameters.get("system") or {}).get("pairs")
            if pairs is not None:
                self._read(part, lambda made: self.operation.mask(made["system"]["pairs"]))
                return np.asarray(pairs, np.int64)
        return None

    def _read(self, part: Trajectory, read: Callable[[Mapping[str, Any]], Any]) -> Any:
        """Return what a function reads from the parameters of a part; an `InputError` names the part."""
        try:
            return read(part.parameters)
        except InputError as error:
            raise InputError(f"{getattr(part, 'path', self.name)}: {error}") from None


def _ends(part: Trajectory) -> Array:
    """Return the time (runs,) until which each run was observed, which is its end or the time of its stop."""
    end = np.full(part.runs, part.times[-1] - part.times[0])
    if "status" in part.observables:
        over = part.observables["status"] > 0
        clock = part.clock("status")[1] - part.times[0]
        end = np.where(over.any(axis=1), clock[over.argmax(axis=1)], end)
    return end


THRESHOLDS: Mapping[str, float] = {"quality": 0.95, "train_accuracy": 0.9, "validation_accuracy": 0.9}
"""Thresholds for observables whose onsets the trajectories did not record."""
MOST_PAIRS = 100
"""Largest number of pairs whose motion is compared; the first ones are taken."""
SEARCH, ORDINARY = 200_000, 16
"""Largest number of singular value decompositions of up to 16 x 16 that a default search may take."""
UNCOMPARED = ("status", "Z_0", "predicted_accuracy")
ONSET_PREFIX = "steps_to_"
ALIGNMENTS = ("auto", "scaling", "ends", "none")


@dataclass(frozen=True, eq=False)
class Shapes(Shown):
    """Distances between the final shapes of two ensembles; a part of `Comparison`.

    A distance is the Procrustes disparity after translation, scaling, rotation, reflection, and the
    relabelings of the tokens that the problem allows. It is 0 for the same shape, and at most 1.

    Attributes
    ----------
    disparity : ndarray of float64, shape (simulated runs, trained runs)
        Distance of each simulated run to each trained run.
    relabelling : ndarray of int64, shape (simulated runs, trained runs)
        Index of the best relabeling into ``symmetry.permutations``.
    nearest : ndarray of float64, shape (trained runs,)
        Disparity of each trained shape to the nearest simulated shape.
    nearest_start : ndarray of float64, shape (trained runs,)
        Disparity to the nearest initial shape of the simulated runs, which is the level of chance.
    nearest_trained : ndarray of float64, shape (trained runs,)
        Disparity to the nearest other trained shape, which is the best that can be expected. NaN for a single
        run.
    symmetry : Symmetry
        Relabelings that were searched.
    """

    disparity: Array
    relabelling: Integers
    nearest: Array
    nearest_start: Array
    nearest_trained: Array
    symmetry: Symmetry

    def distances(self, names: tuple[str, str]) -> dict[str, Array]:
        """Return three distances (trained runs,) by name, given the `names` of the two ensembles."""
        return {
            f"{names[0]}, final": self.nearest,
            f"{names[0]}, start": self.nearest_start,
            f"other {names[1]}": self.nearest_trained,
        }


class Parts:
    """Computes the parts of a comparison, and keeps notes on what was omitted.

    `names` are those of the two ensembles in the notes, and `symmetry` is as in `compare`.
    """

    def __init__(
        self, first: EnsembleOf, second: EnsembleOf, names: tuple[str, str], symmetry: Symmetry | None
    ) -> None:
        self.first, self.second = first, second
        self.notes: list[str] = []
        for name, ensemble in zip(names, (first, second), strict=True):
            for lost, said, advice in (
                (~ensemble.finite, "are not finite and left out", ""),
                (ensemble.finite & ~ensemble.sound, "blew up and are left out", ensemble.advice),
            ):
                if lost.any():
                    runs = classes.run_names(np.flatnonzero(lost))
                    self.notes.append(f"{lost.sum()} of {len(lost)} {name} runs {said} ({runs}){advice}")
            if ensemble.runs == 1:
                self.notes.append(f"{name} is a single run: no interval can be given for it")
        for name, ensemble in zip(names, (first, second), strict=True):
            if ensemble.given is None and None in ensemble.recorded:
                self.notes.append(
                    f"{name} names no operation: classes are {classes.class_names(ensemble.operation)}"
                )
        self.planar = max(first.dim, second.dim) <= PLANAR
        self.same_tokens = first.tokens == second.tokens
        self.symmetry = shapes_of.no_relabelling(first.tokens)
        if self.same_tokens:
            self.symmetry = self._common_symmetry() if symmetry is None else symmetry

    def _common_symmetry(self) -> Symmetry:
        """Return the relabelings of both problems, or only the identity if the search would be long."""
        identity = shapes_of.no_relabelling(self.first.tokens)
        both = []
        for ensemble in (self.first, self.second):
            if any(part.parameters.get("train_examples") is not None for part in ensemble.parts):
                self.notes.append(f"the examples of {ensemble.name} were fixed by number: no relabeling")
                return identity
            pairs = ensemble.training_set
            try:
                both.append(symmetry_of(ensemble.operation, pairs))
            except InputError as error:
                self.notes.append(f"no relabeling: {error}")
                return identity
        shared, runs = both[0] & both[1], self.first.runs * self.second.runs
        dim = max(self.first.dim, self.second.dim)
        search = len(shared) * runs * max(min(dim, self.first.tokens) / ORDINARY, 1.0) ** 3
        if min(dim, self.first.tokens) > 2 and search > SEARCH:
            self.notes.append(
                f"no relabeling: {len(shared)} for each of {runs} pairs in {dim} dimensions are a long "
                "search; pass a symmetry for it"
            )
            return identity
        return shared

    def structures(self, ensemble: EnsembleOf) -> Structures | None:
        """Return circles and imperfections of an ensemble; None if they mean nothing or take too long."""
        if not self.planar or not ensemble.operation.commutes:
            return None
        return classes.structures_by(ensemble.operation, ensemble.final, ensemble.initial)

    def shapes(self) -> Shapes:
        """Return the distances of all pairs of final shapes."""
        final = self.second.final
        disparity, relabelling = shapes_of.procrustes_disparity(self.first.final, final, self.symmetry)
        among = np.full((1, 1), np.nan)
        if len(final) > 1:
            among, _ = shapes_of.procrustes_disparity(final, final, self.symmetry)
            np.fill_diagonal(among, np.inf)
        chance, _ = shapes_of.procrustes_disparity(self.first.initial, final, self.symmetry)
        nearest, start, trained = (distances.min(axis=0) for distances in (disparity, chance, among))
        return Shapes(disparity, relabelling, nearest, start, trained, self.symmetry)

    def pairs(self, paired: bool | None, shapes: Shapes) -> tuple[Integers, bool]:
        """Return the pairs of runs (n, 2) to compare, and whether these are runs of equal number.

        An `InputError` refuses runs that cannot be `paired` as in `compare`. Otherwise `shapes` decide.
        """
        first, second = self.first, self.second
        same = np.array_equal(first.sound, second.sound)
        if paired and not same:
            got = f"{first.runs} and {second.runs} finite runs"
            raise InputError(f"paired must be False unless the same runs of both are finite, got {got}")
        if paired is None:
            paired = same and self._same_starts()
        if paired:
            return np.tile(np.arange(first.runs)[:, None], 2), True
        nearest = shapes.disparity.argmin(axis=0)
        return np.stack([nearest, np.arange(second.runs)], axis=1), False

    def _chosen(self, pairs: Integers, times: Array, shapes: Shapes) -> Chosen | None:
        """Return the second-best partners of chosen pairs, and the same choice within the first ensemble."""
        first = self.first
        if first.runs < 2:
            return None
        apart = shapes.disparity[:, pairs[:, 1]]
        apart[pairs[:, 0], np.arange(len(pairs))] = np.inf
        runs = np.arange(min(first.runs, MOST_PAIRS))
        within, _ = shapes_of.procrustes_disparity(first.final, first.final[runs], self.symmetry)
        within[runs, runs] = np.inf
        chosen = (apart.argmin(axis=0), runs, within.argmin(axis=0))
        return Chosen(first.runs, *(Paths(first.positions(numbers), times) for numbers in chosen))

    def _same_starts(self) -> bool:
        """Return whether every run k starts from the same shape in both ensembles."""
        dim = max(self.first.dim, self.second.dim)
        a, b = standard(self.first.initial, dim), standard(self.second.initial, dim)
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return False
        return all(
            shapes_of.best_relabelling(x[None], y[None], self.symmetry)[0] <= 1e-9
            for x, y in zip(a, b, strict=True)
        )

    def distributions(self, ours: Structures | None, theirs: Structures | None) -> dict[str, Difference]:
        """Return the differences of final structures and of final values that both have, by name.

        `ours` and `theirs` are what `structures` returns for the two ensembles.
        """
        first, second = self.first, self.second
        differences: dict[str, Difference] = {}
        flat = min(first.dim, second.dim) < 2
        if ours is not None and theirs is not None and not flat:
            differences["circles"] = compare_proportions("circles", ours.circle, theirs.circle)
            differences["grid_imperfections"] = self._imperfections(ours, theirs)
        cyclic = classes.is_cyclic(first.operation) and classes.is_cyclic(second.operation)
        names = ["quality"] * self.planar + ["effective_dimension"] * (not flat)
        names += ["survivors"] * (cyclic and not flat)
        shared = (name for name in first.observables if name in second.observables)
        apart = {*UNCOMPARED, *MEASURES}
        names += [name for name in shared if name not in apart and not name.startswith(ONSET_PREFIX)]
        limits = {
            "quality": (0.0, 1.0),
            "effective_dimension": (1.0, float(max(first.dim, second.dim))),
            "survivors": (0.0, max(first.tokens, second.tokens) // 2.0),
            **{name: (0.0, math.inf) for name in names if name.endswith("accuracy")},  # also in percent
        }
        for name in names:
            both = first.last(name), second.last(name)
            differences[name] = compare_values(
                name.replace("_", " "), *both, possible=limits.get(name, (-math.inf, math.inf))
            )
        return {name: x for name, x in differences.items() if all(map(len, x.samples))}

    def _imperfections(self, ours: Structures, theirs: Structures) -> Difference:
        """Compare imperfections of runs that are not circles, as fractions if pair sums differ in number."""
        counts = [shapes.imperfections[~shapes.circle] for shapes in (ours, theirs)]
        sums = [shapes.tokens * (shapes.tokens + 1) / 2 for shapes in (self.first, self.second)]
        if self.same_tokens:
            return compare_values("grid imperfections of the rest", *counts, possible=(0.0, sums[0]))
        shares = (count / number for count, number in zip(counts, sums, strict=True))
        return compare_values("imperfect share of the rest", *shares, possible=(0.0, 1.0))

    def motion(self, pairs: Integers, together: bool, align: str, shapes: Shapes) -> Motion | None:
        """Return the error over time of pairs of runs; None if an ensemble has no common times.

        `pairs` (n, 2) and `together` are what the method `pairs` returns, `align` is as in `compare`, and
        `shapes` are the distances by which pairs were chosen.
        """
        first, second = self.first, self.second
        align = ("scaling" if together else "ends") if align == "auto" else align
        if align == "scaling" and not together:
            raise InputError("align must not be 'scaling' for runs that do not start from the same shapes")
        if first.times is None or second.times is None:
            self.notes.append("no motion: an ensemble has a single frame, or files with different clocks")
            return None
        if len(pairs) > MOST_PAIRS:
            self.notes.append(f"motion of the first {MOST_PAIRS} of {len(pairs)} pairs of runs")
            pairs = pairs[:MOST_PAIRS]
        left = Paths(first.positions(pairs[:, 0]), first.times)
        right = Paths(second.positions(pairs[:, 1]), second.times)
        chosen = None if together else self._chosen(pairs, first.times, shapes)
        motion = compare_motion(PathPairs(left, right, self.symmetry), pairs, together, align, chosen)
        low, high = (factor * first.times[-1] / second.times[-1] for factor in SCALES)
        if align == "scaling" and not 1.05 * low <= motion.scale.estimate <= high / 1.05:
            self.notes.append("the best time scaling lies at the edge of those that were tried")
        return motion

    def onsets(
        self, motion: Motion | None, thresholds: Mapping[str, float] | None
    ) -> dict[str, OnsetDifference]:
        """Compare when `thresholds` are reached and lasting circles form, in times of the second ensemble.

        The factor of `motion`, if there is one, converts the times of the first ensemble.
        """
        scale, clock = 1.0, (1.0, 1.0)
        if motion is not None and motion.scale.estimate > 0:
            scale = motion.scale.estimate
            if math.isfinite(motion.scale.low):
                clock = scale / motion.scale.high, scale / motion.scale.low
            elif motion.alignment == "scaling":
                self.notes.append("the factor between the clocks has no interval: onsets take it as known")
        belong = motion.pairs.tolist() if motion is not None and motion.paired else []
        return {
            name: compare_onsets(name, first.scaled(1 / scale), second, pairs=belong, clock=clock)
            for name, (first, second) in self._reached(thresholds).items()
            if first.reached.any() or second.reached.any()
        }

    def _reached(self, thresholds: Mapping[str, float] | None) -> dict[str, list[Onsets]]:
        """Return the onsets of both ensembles for each quantity with a threshold, by name."""
        ensembles = self.first, self.second
        shared = set(self.first.observables) & set(self.second.observables)
        reached: dict[str, Any] = {
            name.removeprefix(ONSET_PREFIX): [ensemble.tracked(name) for ensemble in ensembles]
            for name in sorted(shared)
            if name.startswith(ONSET_PREFIX)
        }
        measured = {"quality", "circle_ratio"} if self.planar else set()
        for name, value in (THRESHOLDS if thresholds is None else thresholds).items():
            if name in shared | measured and name not in reached:
                limit = number(f"thresholds of {name}", value)
                reached[name] = [ensemble.onsets(name, limit) for ensemble in ensembles]
            elif thresholds is not None and name not in reached:
                known = ", ".join(sorted(shared | measured))
                raise InputError(f"thresholds must name quantities of both ({known}), got {name!r}")
        if measured and min(self.first.dim, self.second.dim) > 1:
            rule: Any = {"name": "circle_ratio", "limit": 1.2, "falling": True, "lasting": True}
            reached["lasting circle"] = [ensemble.onsets(**rule) for ensemble in ensembles]
        return {name: both for name, both in reached.items() if None not in both}

    def accuracy(self, together: bool, accuracies: tuple[Any, Any] | None) -> Calibration | None:
        """Return how well these or else observed accuracies are predicted; None if there are none."""
        if accuracies is not None:
            given, sound = accuracies if np.iterable(accuracies) else [accuracies], self.second.sound
            values = [real_array("accuracies", array) for array in given]
            if [array.shape for array in values] != 2 * [sound.shape]:
                got = " and ".join(str(array.shape) for array in values)
                raise InputError(f"accuracies must be two arrays of {len(sound)} trained runs, got {got}")
            return calibrate(*(array[sound] for array in values))
        order = [(self.second, self.second), (self.first, self.first)]
        order += [(self.first, self.second), (self.second, self.first)] if together else []
        for predicting, measuring in order:
            for name in ("accuracy", "validation_accuracy"):
                if "predicted_accuracy" in predicting.observables and name in measuring.observables:
                    return calibrate(predicting.last("predicted_accuracy"), measuring.last(name))
        return None


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
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
    ensembles : tuple
        The two ensembles that were compared, for figures.

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
    ensembles: Any = field(default=None, repr=False)

    def _shown(self) -> dict[str, str]:
        rows = {"runs": f"{self.runs[0]} {self.names[0]}, {self.runs[1]} {self.names[1]}"}
        for name, each in self.distributions.items():
            said = "they differ" if each.differs else "no difference is shown"
            rows[name] = f"{each.first} and {each.second}, {said}"
        if self.motion is not None:
            rows["distance of paths"] = f"{self.motion.mean_error}, by chance {self.motion.chance_error}"
        for name, onset in self.onsets.items():
            rows[name] = f"reached by {onset.first.fraction:.0%} and {onset.second.fraction:.0%}"
        return rows | {f"note {k}": brief(note) for k, note in enumerate(self.notes, 1)}

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
        rows: list[tuple[Any, ...]] = []
        for name, difference in self.distributions.items():
            of = "distribution", name
            rows += [(*of, self.names[0], difference.first), (*of, self.names[1], difference.second)]
            rows.append((*of, "difference", difference.difference, difference, difference.test))
            rows += [(*of, effect, value) for effect, value in difference.effects.items()]
        if self.motion is not None:
            parts = ("scale", "mean_error", "chance_error")
            rows += [("motion", self.motion.alignment, part, getattr(self.motion, part)) for part in parts]
        for name, onset in self.onsets.items():
            of = "onset", name
            for ensemble, times in zip(self.names, (onset.first, onset.second), strict=True):
                rows.append((*of, f"{ensemble}, reached", times.fraction))
                rows.append((*of, f"{ensemble}, median time", times.median))
            rows.append((*of, "ratio", onset.ratio, onset, "log-rank test"))
            rows.append((*of, "paired ratio", onset.paired_ratio))
        if self.accuracy is not None:
            of = "accuracy", "predicted against measured"
            for part in ("bias", "error", "correlation", "slope"):
                rows.append((*of, part, getattr(self.accuracy, part)))
        return [_row(*row) for row in rows]

    def to_html(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a report with figures and tables as one page, as ``grokphys compare`` does.

        Parameters
        ----------
        path : path
            Name of the file, such as ``comparison.html``.
        overwrite : bool, default False
            Whether to replace it if it exists.

        Raises
        ------
        OutputError
            If the file exists and `overwrite` is False, or it cannot be written.
        """
        reports = importlib.import_module("grokphys.report.comparing")  # pages stand above `analysis`
        reports.write_comparison(self, path, overwrite=overwrite)

    @property
    def tests(self) -> int:
        """Number of tests for which Holm's p-values are adjusted."""
        tests: list[Any] = [*self.distributions.values(), *self.onsets.values()]
        return sum(math.isfinite(test.p_value) for test in tests)

    def to_dict(self) -> dict[str, Any]:
        """Return all results, except the matrices of `shapes`, in a form that JSON can hold.

        Returns
        -------
        dict
            Values by name, nested as in this object. NaN becomes None, and infinity "inf" or "-inf". Of the
            symmetry, its name and its number of relabelings are kept.
        """
        values: dict[str, Any] = _plain(self)
        if self.shapes is not None:
            del values["shapes"]["disparity"], values["shapes"]["relabelling"]
        return values

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
    delta: float = 0.01,
    thresholds: Mapping[str, float] | None = None,
    accuracies: tuple[Any, Any] | None = None,
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
        and is the default otherwise. "none" leaves times as they are.
    paired : bool, optional
        Whether run k of one belongs to run k of the other; by default, whether they start from the same
        shapes. Runs that are not paired are matched by their ends: each trained run is compared with the
        simulated run whose final shape is nearest. The level of chance is then measured by comparing each
        simulated run with the nearest other simulated run. Of more than 100 pairs, the motion of the first
        100 is compared, which `Comparison.notes` reports.
    symmetry : Symmetry, optional
        Relabelings of the tokens that do not change the problem. By default they are those that both problems
        allow and that map a fixed training set onto itself. There are none, which `Comparison.notes` reports,
        if networks were trained on examples given by their indices, or if the search would take long in more
        than two dimensions.
    operation : Operation, optional
        Operation that is learned. By default it is what the trajectories record, or addition modulo the
        number of tokens.
    delta : float, default 0.01
        Tolerance of the representation quality, greater than 0.
    thresholds : mapping of str to float, optional
        Thresholds of observables or measures. The onset is the first frame at or above the threshold. By
        default the thresholds are 0.95 for "quality" and 0.9 for accuracies, if both ensembles have them. If
        both recorded ``steps_to_<name>``, that is used instead.
    accuracies : pair of array_like (runs,), optional
        Predicted and measured accuracy of each trained run. By default they are the observables
        "predicted_accuracy" and "accuracy" or "validation_accuracy".

    Returns
    -------
    Comparison
        Structures, shapes, distributions, motion, onsets and accuracies; estimates have 95 % intervals.

    Raises
    ------
    InputError
        If `names` are not two different ones, no run of an ensemble is finite, its parts do not agree or are
        of a `physics.AffineFlow`, its times do not increase, it has another number of tokens than the modulus
        that it states, or a value is out of its range. If runs to be `paired` differ in number, or `align` is
        "scaling" for runs that are not paired. If `thresholds` name something that one ensemble lacks, or
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
    delta, align = number("delta", delta, above=0.0), choice("align", align, ALIGNMENTS)
    pair = list(names) if np.iterable(names) and not isinstance(names, str) else []
    if len(pair) != 2 or not all(isinstance(name, str) for name in pair) or pair[0] == pair[1]:
        raise InputError(f"names must be two different names, got {short_text(names)}")
    for name, value, kind, need in (
        ("symmetry", symmetry, Symmetry, "a Symmetry"),
        ("operation", operation, Operation, "an Operation"),
        ("thresholds", thresholds, Mapping, "a mapping of names to numbers"),
    ):
        if not isinstance(value, kind | None):
            raise InputError(f"{name} must be {need}, got {short_text(value)}")
    paired = None if paired is None else flag("paired", paired)
    first = EnsembleOf("simulated", simulated, delta, operation)  # type: ignore[arg-type]
    second = EnsembleOf("trained", trained, delta, operation)  # type: ignore[arg-type]
    work = Parts(first, second, names, symmetry)
    ours, theirs = work.structures(first), work.structures(second)
    shapes, motion, together = None, None, False
    if work.same_tokens:
        shapes = work.shapes()
        pairs, together = work.pairs(paired, shapes)
        motion = work.motion(pairs, together, align, shapes)
    else:
        counts = f"{first.tokens} and {second.tokens} tokens"
        asked = {"paired": paired, "align": align not in ("auto", "none") and align, "symmetry": symmetry}
        for name, given in asked.items():
            if given:
                got = short_text(given)
                raise InputError(f"{name} must be left out for ensembles of {counts}, got {got}")
        work.notes.append(f"{counts}: shapes and motion are not compared, and times are left as they are")
    distributions, reached = _adjusted(work.distributions(ours, theirs), work.onsets(motion, thresholds))
    accuracy, runs = work.accuracy(together, accuracies), (first.runs, second.runs)
    final = (ours, theirs, shapes, distributions)
    return Comparison(names, runs, *final, motion, reached, accuracy, tuple(work.notes), (first, second))


def _row(part: str, quantity: str, statistic: str, value: Interval, of: Any = None, test: str = "") -> Any:
    """Return a row of `Comparison.table`; `of` is what was tested."""
    row = {"part": part, "quantity": quantity, "statistic": statistic, **asdict(value)}
    p, adjusted = (math.nan, math.nan) if of is None else (of.p_value, of.adjusted_p_value)
    return row | {"p_value": p, "adjusted_p_value": adjusted, "test": test}


def _adjusted(*families: Mapping[str, Any]) -> Any:
    """Return all mappings with Holm's adjusted p-value, over all of them, added to each test."""
    adjusted = iter(holm([test.p_value for tests in families for test in tests.values()]).tolist())
    return [
        Results({name: replace(test, adjusted_p_value=next(adjusted)) for name, test in tests.items()})
        for tests in families
    ]


def _plain(value: Any) -> Any:
    """Return a result in a form that JSON can hold."""
    if isinstance(value, Symmetry):
        return {"name": value.name, "size": len(value)}
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value) if each.repr}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value.item() if isinstance(value, np.generic) else value
