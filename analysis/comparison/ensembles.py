"""Several trajectories as one ensemble: its measurements, and the operation that it learned."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.classes import blown_up, class_names, class_options, recorded_operation, smaller_step
from analysis.circles.fourier import fourier_signals
from analysis.circles.geometry import effective_dimension
from analysis.circles.survival import survives
from analysis.comparison.timing import Onsets, onsets
from physics.checks import increasing_array
from physics.errors import InputError
from physics.particles.structures import circle_ratio, grid_imperfections
from physics.theory.operations import Operation
from physics.theory.quality import representation_quality
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
Measure = Callable[[Array, Operation, float], Array]
ENDS = ("final", "initial")
PLANAR = 4
"""Largest dimension in which structures of pair sums are measured by default; in more it takes long."""


def _quality(E: Array, operation: Operation, delta: float) -> Array:
    """Return the representation quality (…); NaN if a coordinate does not vary, or factors do not commute."""
    states = E.reshape(-1, *E.shape[-2:])
    found = np.full(len(states), np.nan)
    varied = (np.ptp(states, axis=1) > 0).all(axis=1)
    if varied.any() and operation.commutes:
        found[varied] = representation_quality(states[varied], operation, delta)
    return found.reshape(E.shape[:-2])


def _imperfections(E: Array, operation: Operation, delta: float) -> Array:
    """Return the number of grid imperfections (…)."""
    return np.asarray(grid_imperfections(E, **class_options(operation)), np.float64)


MEASURES: Mapping[str, Measure] = {
    "circle_ratio": lambda E, operation, delta: circle_ratio(E),
    "grid_imperfections": _imperfections,
    "quality": _quality,
    "effective_dimension": lambda E, operation, delta: effective_dimension(E),
    "survivors": lambda E, operation, delta: survives(fourier_signals(E)).sum(axis=-1).astype(np.float64),
}
"""Functions that measure embeddings (…, tokens, dim), with values (…)."""


def _trajectory(name: str, one: Any) -> Trajectory:
    """Return a trajectory unchanged, or an array (runs, frames, tokens, dim) with the steps 0, 1, 2, …."""
    if isinstance(one, Trajectory):
        return one
    if not isinstance(one, np.ndarray) or one.ndim != 4 or one.dtype.kind not in "iuf" or 0 in one.shape:
        found = f"an array {one.shape} of {one.dtype}" if isinstance(one, np.ndarray) else type(one).__name__
        raise InputError(
            f"{name} must be a Trajectory, an array (runs, frames, tokens, dim) of real numbers, or a "
            f"sequence of these, got {found}"
        )
    positions = one if one.dtype in (np.float32, np.float64) else one.astype(np.float64)
    return Trajectory(positions, np.arange(one.shape[1]))


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
    coordinates: bool | None = None

    def __post_init__(self) -> None:
        given: Any = self.parts
        several = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        several = [_trajectory(self.name, one) for one in several]
        if not several:
            raise InputError(f"{self.name} must hold at least one Trajectory or array, got none")
        sizes = sorted({(one.tokens, one.dim) for one in several})
        if len(sizes) > 1:
            raise InputError(f"{self.name} must agree in tokens and dimensions, got {sizes}")
        object.__setattr__(self, "parts", several)
        for one in several:
            increasing_array(f"times of {self.name}", one.times)
        if self.given is not None and self.given.tokens != self.tokens:
            raise InputError(
                f"operation must be one of the {self.tokens} tokens of {self.name}, got {self.given.tokens}"
            )
        if not self.finite.any():
            raise InputError(
                f"the first and last frames of {self.name} must be finite in at least one run, got NaN or "
                f"infinite values in all {len(self.finite)}"
            )
        if not self.sound.any():
            raise InputError(f"{self.name} must hold a run that does not blow up, got none{self.advice}")

    @cached_property
    def finite(self) -> NDArray[np.bool_]:
        """Mask, bool (all runs,), of the runs of all parts whose first and last frames are finite."""
        ends = (np.concatenate([getattr(one, end) for one in self.parts]) for end in ("initial", "final"))
        return np.logical_and(*(np.isfinite(end).all(axis=(1, 2)) for end in ends))

    @cached_property
    def sound(self) -> NDArray[np.bool_]:
        """Mask, bool (all runs,), of the `finite` runs that did not blow up; states may grow at will."""
        sound = self.finite.copy()
        if not (self.states if self.coordinates is None else self.coordinates):
            ends = (np.concatenate([getattr(one, end) for one in self.parts])[sound] for end in ENDS)
            sound[sound] = ~blown_up(*ends)
        return sound

    @property
    def advice(self) -> str:
        """The step size that would do for the runs that blew up, as the end of a sentence."""
        return next((text for text in map(smaller_step, self.parts) if text), "")

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
        """First frame of each run with finite ends, as float64 (runs, tokens, dim)."""
        return np.concatenate([one.initial for one in self.parts])[self.sound].astype(np.float64)

    @cached_property
    def final(self) -> Array:
        """Last frame of each run with finite ends, as float64 (runs, tokens, dim)."""
        return np.concatenate([one.final for one in self.parts])[self.sound].astype(np.float64)

    @cached_property
    def times(self) -> Array | None:
        """Times of the frames since the first one, as float64 (frames,).

        None if the parts differ in these times or have a single frame.
        """
        first = self.parts[0].times
        same = all(np.array_equal(one.times, first) for one in self.parts)
        return first - first[0] if same and len(first) > 1 else None

    def positions(self, runs: NDArray[np.int64]) -> NDArray[Any]:
        """Return all frames of some of the runs with finite ends, (n, frames, tokens, dim).

        `runs` (n,) are their indices among these runs. The number type is that of the trajectories.
        """
        return self._chosen([one.positions for one in self.parts], runs)

    @cached_property
    def observables(self) -> list[str]:
        """Names, sorted, of the observables that all parts hold, with a real number in each frame."""
        found = sorted(set.intersection(*(set(one.observables) for one in self.parts)))
        held = {name: [one.observables[name] for one in self.parts] for name in found}
        return [name for name in found if all(one.ndim == 2 and one.dtype.kind != "c" for one in held[name])]

    def last(self, name: str) -> Array:
        """Return the final value of a quantity in each run with finite ends, as float64 (runs,).

        `name` is one of `MEASURES`, or a scalar observable that all parts hold.
        """
        if name in MEASURES:
            return np.asarray(MEASURES[name](self.final, self.operation, self.delta), np.float64)
        values = np.concatenate([one.observables[name][:, -1] for one in self.parts])
        return values[self.sound].astype(np.float64)

    def series(self, name: str, runs: NDArray[np.int64]) -> tuple[Array, Array] | None:
        """Return a measure or an observable of some runs, with its times since the first frame.

        `runs` (n,) are indices among the runs with finite ends. The values are (n, frames) and the times
        (frames,), both float64. None if the parts measured the quantity at different times, or only once.
        """
        clock = [self._clock(one, name) for one in self.parts]
        if any(not np.array_equal(one, clock[0]) for one in clock) or len(clock[0]) < 2:
            return None
        if name in MEASURES:
            return self._measured(name, self.positions(runs)), clock[0]
        values = self._chosen([one.observables[name] for one in self.parts], runs)
        return values.astype(np.float64), clock[0]

    def onsets(
        self, name: str, limit: float, *, falling: bool = False, lasting: bool = False
    ) -> Onsets | None:
        """Return when a quantity is first at or above a limit in each run with finite ends.

        If `falling`, it must be at or below the limit, and if `lasting`, it must stay there in all later
        frames. Times begin at the first frame of each part. A run that does not reach the limit is censored
        at its end, or at the time at which it was stopped. None if a part measured the quantity only once.
        """
        sign = -1.0 if falling else 1.0
        found = []
        for one in self.parts:
            clock = self._clock(one, name)
            if len(clock) < 2:
                return None
            values = (
                self._measured(name, one.positions)
                if name in MEASURES
                else one.observables[name].astype(np.float64)
            )
            reached = onsets(sign * values, clock, sign * limit, lasting=lasting)
            found.append(_watched(reached, _ends(one)))
        return self._counted(found)

    def tracked(self, name: str) -> Onsets:
        """Return onsets that were recorded as steps, as times since the first frame of each part.

        `name` is the observable that holds the step at which each run reached a threshold, NaN for never. A
        run that never reached it is censored at its end, or at the time at which it was stopped.
        """
        found = []
        for one in self.parts:
            steps = one.observables[name][:, -1].astype(np.float64)
            reached = np.isfinite(steps)
            times = np.interp(np.where(reached, steps, one.steps[-1]), one.steps, one.times) - one.times[0]
            found.append(_watched(Onsets(times, reached), _ends(one)))
        return self._counted(found)

    def _counted(self, parts: Sequence[Onsets]) -> Onsets:
        """Return the onsets of the runs with finite ends, from those of the parts."""
        joined = Onsets.joined(parts)
        return Onsets(joined.times[self.sound], joined.reached[self.sound])

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
        if self.given is not None:
            return self.given
        found = self._recorded
        several = {class_names(one) for one in found if one is not None}
        if len(several) > 1:
            raise InputError(
                f"{self.name} must record one operation, got {', '.join(sorted(several))}; pass operation to "
                "choose one"
            )
        return next((one for one in found if one is not None), Operation(self.tokens, self.tokens))

    @property
    def says_operation(self) -> bool:
        """Whether the operation was given, or is recorded by every part."""
        return self.given is not None or all(one is not None for one in self._recorded)

    @cached_property
    def _recorded(self) -> list[Operation | None]:
        """Operation that each part records, or None; an `InputError` names the part with an invalid one."""
        found = []
        for one in self.parts:
            try:
                found.append(recorded_operation(one.parameters, self.tokens))
            except InputError as error:
                raise InputError(f"{getattr(one, 'path', self.name)}: {error}") from None
        return found

    @cached_property
    def training_set(self) -> NDArray[np.int64] | None:
        """Training set, int64 (n, 2), that a part records as pairs; None for all pairs or a random set."""
        for one in self.parts:
            pairs = one.parameters.get("system", {}).get("pairs")
            if pairs is not None:
                try:
                    self.operation.mask(pairs)
                except InputError as error:
                    raise InputError(f"{getattr(one, 'path', self.name)}: {error}") from None
                return np.asarray(pairs, np.int64)
        return None

    @property
    def fixed_examples(self) -> bool:
        """Whether networks of some part were trained on examples that were given by their indices."""
        return any(one.parameters.get("train_examples") is not None for one in self.parts)

    @property
    def states(self) -> bool:
        """Whether positions are coordinates of an affine flow rather than points of an embedding."""
        return any(one.parameters.get("system", {}).get("type") == "AffineFlow" for one in self.parts)

    def _chosen(self, arrays: Sequence[NDArray[Any]], runs: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of some runs with finite ends, reading only these from the arrays of the parts."""
        wanted = np.flatnonzero(self.sound)[runs]
        starts = np.cumsum([0, *(one.runs for one in self.parts)])
        part = np.searchsorted(starts, wanted, side="right") - 1
        return np.stack([arrays[k][run - starts[k]] for k, run in zip(part, wanted, strict=True)])


def _ends(part: Trajectory) -> Array:
    """Return the time (runs,) until which each run was observed, which is its end or the time of its stop."""
    end = np.full(part.runs, part.times[-1] - part.times[0])
    if "status" in part.observables:
        over = part.observables["status"] > 0
        clock = part.clock("status")[1] - part.times[0]
        end = np.where(over.any(axis=1), clock[over.argmax(axis=1)], end)
    return end


def _watched(found: Onsets, ends: Array) -> Onsets:
    """Censor each run that did not reach the threshold at the time at which it ended."""
    return Onsets(np.where(found.reached, found.times, np.minimum(found.times, ends)), found.reached)
