"""The interface of the systems that `physics.simulate` moves, and the checks of it.

Your own system may be any object with the members of `System`, a frozen dataclass or not;
`docs/guide/own_systems.md` writes some. `physics.PairForces` makes one of a force between two points.
"""

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from physics.checks import choice, finite_array, whole_number
from physics.errors import InputError
from physics.seeds import Seed, run_seeds
from physics.trajectory.provenance import fields, plain

Array = NDArray[np.float64]


class System(Protocol):
    """Members that an object must have so that `simulate` can move it.

    Trajectories store how they were made: the fields of a dataclass, or the public attributes of another
    object that JSON can hold. A system may also have

    * a number ``default_step_size``, the step size if the caller gives none;
    * a method ``observables(positions)``, which returns {name: values (runs, ...)} for positions (runs,
      tokens, dim); `simulate` records them with every frame;
    * a property ``measures``, {name: function of positions, with values (runs, ...)}, of quantities that are
      recorded on request;
    * a method ``largest_step_size(positions)``, which returns a step size to suggest if a step overflows.

    ``start`` is not needed if `simulate` is called with `initial`.
    """

    @property
    def tokens(self) -> int:
        """Number of points."""

    @property
    def dim(self) -> int:
        """Dimension of the space."""

    def start(self, generator: np.random.Generator) -> Any:
        """Draw the start of one run.

        Parameters
        ----------
        generator : numpy.random.Generator
            Generator of this run, which determines the start.

        Returns
        -------
        array_like of float, shape (tokens, dim)
            Finite positions.
        """

    def advance(self, positions: Array, step_size: float, steps: int) -> Any:
        """Move an ensemble by some steps, either in place or by returning new positions.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            Positions before the first step.
        step_size : float
            Length of a step, in units of time.
        steps : int
            Number of steps, at least 1.

        Returns
        -------
        None or ndarray, shape (runs, tokens, dim)
            None if `positions` has been changed in place, otherwise the new positions.
        """


def size_of(system: Any, initial: Any) -> tuple[int, int]:
    """Return the numbers of tokens and dimensions of a system; refuse what `simulate` cannot move."""
    if isinstance(system, type) or not hasattr(system, "advance"):
        got = f"the class {system.__name__}" if isinstance(system, type) else name_of(system)
        raise InputError(f"system must be a system such as ParticleSystem(), got {got}")
    for name in ("tokens", "dim", *(("start",) if initial is None else ())):
        if not hasattr(system, name):
            raise InputError(f"system must have {name}, but {name_of(system)} has none")
    return (
        whole_number(f"tokens of {name_of(system)}", system.tokens, 1),
        whole_number(f"dim of {name_of(system)}", system.dim, 1),
    )


def describe(system: Any) -> Mapping[str, Any]:
    """Return the description of a system that a file stores."""
    if is_dataclass(system):
        return {"type": name_of(system), **fields(system)}
    described = {"type": name_of(system)}
    for name, value in getattr(system, "__dict__", {}).items():
        with contextlib.suppress(TypeError, ValueError):
            if not name.startswith("_") and json.dumps(found := plain(value), allow_nan=False):
                described[name] = found
    return described


def advance(system: System, positions: Array, step_size: float, steps: int) -> None:
    """Move `positions` (runs, tokens, dim) in place, also if the system returns new positions."""
    moved = system.advance(positions, step_size, steps)
    if moved is None or moved is positions:
        return
    what = f"{name_of(system)}.advance must return None or real numbers of the shape {positions.shape}"
    try:
        array = np.asarray(moved)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what}, got {type(moved).__name__} of {array.dtype}")
    if array.shape != positions.shape:
        raise InputError(f"{what}, got {array.shape}")
    positions[:] = array


def starts(
    system: System, one: tuple[int, int], runs: int, seed: Seed, first_run: int, initial: Any
) -> Array:
    """Return the starts (runs, tokens, dim) of runs of the shape `one`, an array that the run may move."""
    if initial is None:
        what = f"the return value of {name_of(system)}.start"
        drawn = np.empty((runs, *one))
        for run, child in enumerate(run_seeds(seed, runs, first_run)):
            start = finite_array(what, system.start(np.random.default_rng(child)))
            if start.shape != one:
                raise InputError(f"{what} must have the shape {one}, got {start.shape}")
            drawn[run] = start
        return drawn
    array = finite_array("initial", initial)
    if array.shape == one:
        return np.repeat(array[None], runs, axis=0)
    if array.ndim == 3 and array.shape[1:] == one and runs in (1, len(array)) and len(array):
        return array.copy()
    raise InputError(
        f"initial must have the shape {one} or (runs, {one[0]}, {one[1]}) with runs = {runs}, "
        f"got {array.shape}"
    )


def measures_of(system: System, names: Any) -> dict[str, Callable[[Array], NDArray[Any]]]:
    """Return the functions that measure `names`."""
    offered = getattr(system, "measures", {})
    names = (names,) if isinstance(names, str) else tuple(names)
    if names and not offered:
        raise InputError(f"observables must be empty for {name_of(system)}, got {', '.join(names)}")
    return {choice("observables", name, tuple(offered)): offered[name] for name in names}


def measured(
    system: System, measures: Mapping[str, Callable[[Array], NDArray[Any]]], positions: Array
) -> dict[str, NDArray[Any]]:
    """Return copies of what the system measures at positions (runs, tokens, dim), and of `measures`."""
    always = system.observables(positions) if hasattr(system, "observables") else {}
    values = {**always, **{name: function(positions) for name, function in measures.items()}}
    found = {name: np.array(value) for name, value in values.items()}
    for name, value in found.items():
        if value.shape[:1] != (len(positions),):
            raise InputError(
                f"observable {name!r} of {name_of(system)} must have the shape ({len(positions)}, ...), "
                f"with a row for each run, got {value.shape}"
            )
    return found


def careful_step(positions: Array, forces: Array) -> float:
    """Return a step in which no point of positions (runs, tokens, dim) moves far; 0 on overflow.

    Far is a tenth of the distance of the farthest point from the origin.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sizes = np.abs(positions).max(axis=(1, 2)) / np.abs(forces).max(axis=(1, 2))
    return 0.1 * float(np.nan_to_num(sizes, nan=0.0, posinf=np.inf).min())


def name_of(system: Any) -> str:
    """Return the name of a system in messages and files."""
    return type(system).__name__
