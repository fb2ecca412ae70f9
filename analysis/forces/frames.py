"""What a force law is fitted to: frames of networks, their measured forces, and the projection on shapes."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from analysis.circles.classes import (
    as_trajectory,
    class_names,
    class_options,
    recorded_operation,
    unfinite_text,
)
from physics.checks import choice, finite_array, regular_array, sequence, short_text, whole_number
from physics.errors import InputError
from physics.particles.tabulated import Pairs
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Sites = Literal["pair sums", "tokens"]
Projection = Literal["shape", "axes", "none"]
ROUNDING = 1e-20
"""Part of the square of a force along shapes that is rounding."""
FLAT = 1e-9
"""Size of a direction beside the largest one below which it is rounding."""


class Frames(NamedTuple):
    """Frames of networks in units of their own size, with the force on each."""

    points: Array
    """Centered points of unit root mean square, (frames, tokens, dim)."""
    force: Array
    """Force, projected and in units of the size, (frames, tokens · dim)."""
    gauge: Array
    """Orthonormal directions that do not count, (frames, tokens · dim, directions)."""
    network: Integers
    """Number of the network of each frame, (frames,)."""
    step: Integers
    """Step of each frame, (frames,)."""
    pairs: Pairs
    """Pair sums of each network."""
    classes: int
    """Number of classes of the pair sums; 0 for tokens."""
    modulus: int | None = None
    """Modulus of the classes, 2N for plain addition of N tokens; None on tokens."""
    second_force: Array | None = None
    """Force from another draw of the layers, (frames, tokens · dim), if it was recorded."""

    def only(self, chosen: NDArray[Any]) -> "Frames":
        """Return some frames, by their numbers or as a mask."""
        arrays = {name: getattr(self, name)[chosen] for name in Frames._fields[:5]}
        second = None if self.second_force is None else self.second_force[chosen]
        return self._replace(**arrays, second_force=second)

    def within(self, first: float, last: float) -> "Frames":
        """Return the frames from one step to another, both included."""
        return self.only((self.step >= first) & (self.step <= last))


def frames_of(
    trajectories: Any, target: Any, lag: int, on: Sites, pairs: Any, modulus: int | None, project: Projection
) -> Frames:
    """Return the frames of trajectories, all networks numbered on; see `fit_forces` for the arguments."""
    several = trajectories if isinstance(trajectories, list | tuple) else [trajectories]
    given = [as_trajectory("trajectories", each) for each in several]
    if not given:
        raise InputError("trajectories must hold at least one trajectory, got none")
    choice("on", on, get_args(Sites))
    choice("project", project, get_args(Projection))
    whole_number("lag", lag, 1)
    sizes = {(each.tokens, each.dim) for each in given}
    if len(sizes) > 1:
        raise InputError(f"trajectories must agree in tokens and dim, got {sorted(sizes)}")
    if project == "shape" and not 1 < given[0].dim < given[0].tokens:
        raise InputError(
            f"trajectories must have at least 2 dimensions and fewer than their {given[0].tokens} tokens for "
            f"forces on shapes, got {given[0].dim}; pass project='axes' for the part beside mean and scale"
        )
    firsts = np.cumsum([0, *(each.runs for each in given)])[:-1].tolist()
    options = target, lag, on, pairs, modulus, project
    parts = [_frames(each, *options, first) for each, first in zip(given, firsts, strict=True)]
    moduli = {part.modulus for part in parts}
    if len(moduli) > 1:
        raise InputError(f"trajectories must agree in the modulus of their classes, got {moduli}")
    counts = {part.pairs.label.shape[1] for part in parts}
    if len(counts) > 1:
        raise InputError(f"pairs must be equally many in all trajectories, got {sorted(counts)}")
    arrays = (np.concatenate(each) for each in zip(*(part[:5] for part in parts), strict=True))
    layout = Pairs._make(np.concatenate(each) for each in zip(*(p.pairs for p in parts), strict=True))
    seconds = [part.second_force for part in parts if part.second_force is not None]
    second = np.concatenate(seconds) if len(seconds) == len(parts) else None
    return Frames._make([*arrays, layout, parts[0].classes, parts[0].modulus, second])


def _frames(
    trajectory: Trajectory,
    target: Any,
    lag: int,
    on: Sites,
    pairs: Any,
    modulus: int | None,
    project: Projection,
    first: int,
) -> Frames:
    kept, *draws = _measured(trajectory, target, lag)
    positions = np.asarray(trajectory.positions[:, kept], np.float64)
    finite = np.all([np.isfinite(array).all((1, 2, 3)) for array in (positions, *draws)], axis=0)
    if not finite.any():
        raise InputError("trajectories must hold a run whose points and forces are finite, got none")
    if not finite.all():
        warnings.warn(unfinite_text(np.flatnonzero(~finite)), RuntimeWarning, stacklevel=5)
    layout, modulus = _pairs(trajectory, on, pairs, modulus)
    runs = np.flatnonzero(finite)
    network = np.repeat(runs + first, len(kept))
    points = positions[runs].reshape(-1, *positions.shape[2:])
    points -= points.mean(axis=1, keepdims=True)
    size = np.sqrt((points**2).mean(axis=(1, 2), keepdims=True))
    if not (size > 0).all():
        raise InputError(
            "trajectories must hold points that do not all coincide, got a frame in which they do"
        )
    points /= size
    gauge = gauge_of(points, project)

    unit = size if isinstance(target, str) and target == "gradient" else 1 / size
    forces = [(draw[runs].reshape(points.shape) * unit).reshape(len(points), -1) for draw in draws]
    along, *second = (projected(each[..., None], gauge)[..., 0] for each in forces)
    steps = np.tile(np.asarray(trajectory.steps)[kept], len(runs))
    classes = 0 if on == "tokens" else int(layout.label.max()) + 1
    frames = Frames(points, along, gauge, network, steps, layout, classes, modulus, *second)
    moved = (along**2).sum(axis=1) > ROUNDING * (forces[0] ** 2).sum(axis=1)
    if not moved.any():
        raise InputError(f"trajectories must hold a frame with a force beside project={project!r}, got none")
    return frames.only(moved)


def _measured(trajectory: Trajectory, target: Any, lag: int) -> tuple[Any, ...]:
    """Return the frames with a force, and the force (runs, frames, tokens, dim) of one or two draws."""
    steps = np.asarray(trajectory.steps)
    if isinstance(target, str) and target == "displacement":
        kept = np.flatnonzero(np.isin(steps + lag, steps))
        if not len(kept):
            raise InputError(
                f"lag must be a difference of recorded steps, got {lag}, by which no two of the "
                f"{len(steps)} frames differ"
            )
        positions = np.asarray(trajectory.positions, np.float64)
        after = np.searchsorted(steps, steps[kept] + lag)
        return kept, positions[:, after] - positions[:, kept]
    if isinstance(target, str):
        choice("target", target, ("gradient", "displacement"))
        if "gradient" not in trajectory.observables:
            raise InputError(
                "trajectories must hold the gradient, got the observables "
                f"{', '.join(trajectory.observables) or 'none'}; record it by "
                "nets.train(…, observables=['gradient']), or pass target='displacement'"
            )
        measured = np.asarray(trajectory.clock("gradient")[0])
        kept = np.flatnonzero(np.isin(steps, measured))
        places = np.searchsorted(measured, steps[kept])
        names = [name for name in ("gradient", "gradient_2") if name in trajectory.observables]
        draws = (np.asarray(trajectory.observables[name], np.float64)[:, places] for name in names)
        return kept, *(-draw for draw in draws)
    forces = finite_array("target", target, ndim=4)
    if forces.shape != trajectory.positions.shape:
        raise InputError(
            f"target must have the shape of the positions, {trajectory.positions.shape}, got {forces.shape}"
        )
    return np.arange(len(steps)), forces


def _pairs(trajectory: Trajectory, on: Sites, pairs: Any, modulus: int | None) -> tuple[Pairs, int | None]:
    """Return the sites of each run of a trajectory, and the modulus of their classes."""
    runs, tokens = trajectory.runs, trajectory.tokens
    if on == "tokens":
        if pairs is not None or modulus is not None:
            raise InputError("on must be 'pair sums' if pairs or a modulus are given, got 'tokens'")
        one = sites_of(tokens)
        return Pairs._make(np.repeat(array, runs, axis=0) for array in one), None
    modulus = _modulus(trajectory, modulus)
    if pairs is None:
        members = training_pairs(trajectory)
    else:
        members = regular_array("pairs", pairs)
        if members.dtype.kind not in "iu" or members.shape[-1:] != (2,) or members.ndim not in (2, 3):
            raise InputError(
                "pairs must be whole numbers of the shape (pairs, 2) or (runs, pairs, 2), got "
                f"{short_text(pairs)}"
            )
        if members.ndim == 3 and len(members) != runs:
            raise InputError(f"pairs must have rows for each of {runs} runs, got {len(members)}")
        if members.size and not 0 <= members.min() <= members.max() < tokens:
            raise InputError(f"pairs must name tokens from 0 to {tokens - 1}, got {short_text(pairs)}")
        members = np.broadcast_to(members, (runs, *members.shape[-2:]))
    once = np.sort(members.min(axis=-1) * tokens + members.max(axis=-1), axis=-1)
    if not members.shape[-2] > 1 or (once[..., 1:] == once[..., :-1]).any():
        raise InputError(
            "pairs must be at least 2, each once in either order, got fewer or repeated ones; training "
            "sets of ordered pairs hold most pairs twice"
        )
    return sites_of(tokens, members, modulus), modulus


def sites_of(tokens: int, pairs: Any = None, modulus: int | None = None) -> Pairs:
    """Return where forces act: on the sums of `pairs` (pairs, 2) or (sets, pairs, 2), by default all.

    Without a modulus they act on the tokens themselves.
    """
    if modulus is None:
        first = np.arange(tokens)[None]
        return _with_weights(first, np.full_like(first, -1), first)
    members = np.stack(np.triu_indices(tokens), axis=1) if pairs is None else np.asarray(pairs)
    members = members.reshape(-1, *members.shape[-2:])
    first, second = members[..., 0], members[..., 1]
    return _with_weights(first, second, (first + second) % modulus)


def _modulus(trajectory: Trajectory, modulus: int | None) -> int:
    """Return the modulus of the classes, which is that of the trajectory if it records one."""
    tokens = trajectory.tokens
    recorded = recorded_operation(trajectory.parameters, tokens)
    selected = trajectory.parameters.get("selected_tokens")
    if selected is not None and list(selected) != list(range(tokens)):
        raise InputError(f"trajectories must hold their tokens in order, got {short_text(selected)}")
    if recorded is None:
        return tokens if modulus is None else whole_number("modulus", modulus, 2)
    stated = class_options(recorded).get("modulus")
    if stated is None:
        raise InputError(f"trajectories must add numbers, got elements of the group {recorded.name}")
    if modulus not in (None, stated):
        raise InputError(
            f"modulus must be that of the classes {class_names(recorded)} of the trajectory, got {modulus}"
        )
    return int(stated)


def training_pairs(trajectory: Trajectory) -> Integers:
    """Return the pairs (runs, pairs, 2) of each run's training set, as its start or its system says."""
    tokens = trajectory.tokens
    unordered = np.stack(np.triu_indices(tokens), axis=1)
    examples = trajectory.start.get("train_examples")
    system = trajectory.parameters.get("system")
    if isinstance(system, Mapping):
        stated = system.get("pairs")
        chosen = unordered if stated is None else np.asarray(stated, np.int64).reshape(-1, 2)
        return np.broadcast_to(chosen, (trajectory.runs, *chosen.shape))
    if examples is None:
        raise InputError(
            "pairs must be given for trajectories without training sets, as an array (pairs, 2) or "
            "(runs, pairs, 2), got none"
        )
    rest = trajectory.start.get("validation_examples", examples[:, :0])
    total = examples.shape[1] + rest.shape[1]
    if total == len(unordered):
        return np.asarray(unordered[examples])
    if total != tokens**2:
        raise InputError(
            f"pairs must be given, as the {total} examples of the trajectories are not the pairs of "
            f"{tokens} tokens"
        )
    return np.stack(np.divmod(np.asarray(examples, np.int64), tokens), axis=-1)


def _with_weights(first: Integers, second: Integers, label: Integers) -> Pairs:
    """Return pairs with the weights of `ParticleSystem`: P/n for n ordered pairs of pair sums of a kind."""
    count = label.shape[1]
    members = np.stack([np.bincount(row, minlength=label.max() + 1) for row in label])
    same = (members * (members - 1)).sum(axis=1)
    both = np.stack([count * (count - 1) - same, same], axis=1)
    weights = np.where(both > 0, count / np.maximum(both, 1), 0.0)
    return Pairs._make([*(np.ascontiguousarray(a, np.int64) for a in (first, second, label)), weights])


def gauge_of(points: Array, project: Projection) -> Array:
    """Return an orthonormal basis (frames, n, directions) of what is taken from forces, n = tokens · dim."""
    frames, tokens, dim = points.shape
    if project == "none":
        return np.zeros((frames, tokens * dim, 0))
    axes = np.eye(dim)
    columns = [np.broadcast_to(axis, points.shape) for axis in axes]
    if project == "shape":
        turns = (np.outer(axes[j], axes[i]) for i in range(dim) for j in range(i))
        columns += [points, *(points @ (turn - turn.T) for turn in turns)]
    else:
        columns += [points * axis for axis in axes]
    stacked = np.stack([column.reshape(frames, -1) for column in columns], axis=-1)
    basis, sizes, _ = np.linalg.svd(stacked, full_matrices=False)
    known = sizes > FLAT * sizes[:, :1]  # flat points are scaled or turned in fewer directions
    return np.asarray(basis * known[:, None])


def projected(vectors: Array, gauge: Array) -> Array:
    """Return vectors (frames, n, K) without their parts along the directions (frames, n, G)."""
    return vectors - gauge @ (gauge.swapaxes(1, 2) @ vectors)


def checked_windows(windows: Any, steps: Integers) -> dict[str, tuple[float, float]]:
    """Return windows as names with their first and last step; None is the whole training."""
    if windows is None:
        return {"all": (-np.inf, np.inf)}
    named = (
        list(windows.items())
        if isinstance(windows, Mapping)
        else [(None, each) for each in sequence("windows", windows)]
    )
    if not named:
        raise InputError("windows must hold at least one window, got none")
    checked: dict[str, tuple[float, float]] = {}
    for name, ends in named:
        pair = sequence("windows", ends)
        if len(pair) != 2:
            raise InputError(f"windows must be pairs of a first and a last step, got {short_text(ends)}")
        first, last = (whole_number("windows", end, 0) for end in pair)
        label = str(name) if name is not None else f"{first} to {last}"
        inside = np.count_nonzero((steps >= first) & (steps <= last))
        if not inside:
            raise InputError(f"windows must hold a frame with a force, got {label} without one")
        checked[label] = (float(first), float(last))
    return checked
