"""The interface of the systems that `physics.simulate` moves, and checks of what a system returns.

Your own system may be an instance of any class with the members of `System`. The class need not inherit from
`System` or be a dataclass. The guide ``docs/guide/own_systems.md`` develops some such classes. For a force
between every two points, use `physics.PairForces`.
"""

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from physics.checks import choice, finite_array, misfit, names_in, regular_array, short_text, whole_number
from physics.errors import InputError
from physics.seeds import Seed, run_seeds
from physics.trajectory.provenance import fields, is_ours, plain, public
from physics.values import Array, Mask, Value


class System(Protocol):
    """The members that an object must have so that `physics.simulate` can move it.

    They are `tokens`, `dim`, `start` and `advance`; `start` is not needed if `simulate` is called with
    `initial`. A system may also have

    * a number ``default_step_size``, the step size if the caller gives none;
    * a method ``observables(positions)``, which returns {name: values (runs, ...)} for positions (runs,
      tokens, dim), which it must not change; `simulate` records them with every frame;
    * a property ``measures``, a mapping {name: function of positions with values (runs, ...)} of quantities
      that are recorded only on request;
    * a method ``largest_step_size(positions)``, which returns a step size that is safe for these positions;
      messages suggest it after an overflow, and after a step that moved points farther than the run is wide.

    A trajectory stores how it was made. If the system is a dataclass, its fields are stored; otherwise the
    public attributes of the object (not those of its class) that JSON can hold. It also stores digits that
    identify the code of the class. A run is not resumed if these have changed, and resumed with a warning if
    anything else in a user's own files has. Attributes that begin with "_" are not compared.

    Examples
    --------
    >>> import numpy as np, physics
    >>> class Decay:
    ...     tokens, dim, default_step_size = 3, 1, 0.1
    ...     def start(self, generator):
    ...         return generator.standard_normal((self.tokens, self.dim))
    ...     def advance(self, positions, step_size, steps):
    ...         positions *= np.exp(-step_size * steps)
    >>> trajectory = physics.simulate(Decay(), steps=10, initial=np.ones((3, 1)))
    >>> trajectory.final.round(4).ravel().tolist()
    [0.3679, 0.3679, 0.3679]
    """

    @property
    def tokens(self) -> int:
        """Number of points of a run, at least 1."""

    @property
    def dim(self) -> int:
        """Dimension of the space in which the points move, at least 1."""

    def start(self, generator: np.random.Generator) -> Any:
        """Draw the initial positions of one run.

        Parameters
        ----------
        generator : numpy.random.Generator
            Generator of this run. It must be the only source of randomness, so that the seed determines the
            run.

        Returns
        -------
        array_like of float, shape (tokens, dim)
            Finite positions.

        Examples
        --------
        >>> import numpy as np, physics
        >>> physics.ParticleSystem(tokens=5).start(np.random.default_rng(0)).shape
        (5, 2)
        """

    def advance(self, positions: Array, step_size: float, steps: int) -> Any:
        """Move an ensemble by some steps, either in place or by returning new positions.

        The result may depend on the arguments and on constants only. What the object remembers from earlier
        calls is not recorded, so a run that is resumed could not continue with it. Velocities, for example,
        belong to the positions, as further tokens or dimensions; random numbers in `advance` cannot be
        resumed.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            Positions before the first of these steps.
        step_size : float
            Length of a step, in units of time.
        steps : int
            Number of steps, at least 1.

        Returns
        -------
        None or ndarray, shape (runs, tokens, dim)
            None if `positions` has been changed in place, otherwise the new positions.

        Examples
        --------
        >>> import numpy as np, physics
        >>> positions = np.array([[[0.0], [2.0]]])  # one run of two points on a line
        >>> physics.AffineFlow(-np.eye(2), [1.0, 1.0]).advance(positions, step_size=10.0, steps=10)
        >>> positions.round(6).ravel().tolist()
        [1.0, 1.0]
        """


class NormalStart(Value):
    """Base class of systems whose initial positions are normal."""

    tokens: Any
    dim: Any

    def start(self, generator: np.random.Generator) -> Array:
        """Draw initial positions from the standard normal distribution.

        Parameters
        ----------
        generator : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of float64, shape (tokens, dim)
            Positions of one run.

        Examples
        --------
        >>> import numpy as np, physics
        >>> physics.ParticleSystem(tokens=5, dim=3).start(np.random.default_rng(0)).shape
        (5, 3)
        """
        return generator.standard_normal((self.tokens, self.dim))


def size_of(system: Any, initial: Any) -> tuple[int, int]:
    """Return `tokens` and `dim` of a system, each at least 1; refuse a system that `simulate` cannot move.

    `initial` is the argument of `simulate`; if it is None, the system must have a method `start`. An
    `InputError` says which member of `System` is missing, or which size is not a whole number of at least 1.
    """
    if isinstance(system, type):
        raise InputError(f"system must be an object, got the class {system.__name__} itself")
    needed = ("tokens", "dim", "advance", *(("start",) if initial is None else ()))
    own = type(system)  # what it inherits from `System` itself does nothing
    missing = [n for n in needed if not hasattr(system, n) or getattr(own, n, None) is vars(System)[n]]
    if missing:
        lacks = f"{name_of(system)} lacks {', '.join(missing)}"
        raise InputError(f"system must have {', '.join(needed)}; {lacks}")
    tokens = whole_number(f"tokens of {name_of(system)}", system.tokens, 1)
    return tokens, whole_number(f"dim of {name_of(system)}", system.dim, 1)


def describe(system: Any) -> Mapping[str, Any]:
    """Return what a trajectory stores of a system: the name of its class as "type", and its parameters.

    The parameters are the fields of a dataclass. For another object they are the entries of its `__dict__`
    whose names do not begin with "_", which JSON can hold, and which no `functools.cached_property` computed.
    """
    if is_dataclass(system):
        return {"type": name_of(system), **fields(system)}
    described = {"type": name_of(system)}
    for name, value in public(system).items():
        with contextlib.suppress(TypeError, ValueError):
            if json.dumps(found := plain(value), allow_nan=False):
                described[name] = found
    return described


def advance(system: System, positions: Array, step_size: float, steps: int) -> None:
    """Move positions (runs, tokens, dim) in place by some steps of a system.

    The system may change its argument or return new positions, which are copied. An `InputError` refuses
    anything but None or real numbers of the same shape.
    """
    moved = system.advance(positions, step_size, steps)
    if moved is not None and moved is not positions:
        what = f"the return value of {name_of(system)}.advance"
        array = regular_array(what, moved)
        if array.dtype.kind not in "biuf" or array.shape != positions.shape:
            raise misfit(what, array, f"be None or real numbers of the shape {positions.shape}")
        positions[:] = array


def starts(
    system: System, one: tuple[int, int], runs: int, seed: Seed, first_run: int, initial: Any
) -> Array:
    """Return the initial positions of all runs as a new array of float64, (runs, tokens, dim).

    If `initial` is None, `system.start` draws each run from the child of `seed` with the number of the run,
    counted from `first_run`. Otherwise `initial` holds the positions of all runs, or of one run that is
    repeated. An `InputError` refuses an invalid seed, and positions that are not finite real numbers of the
    shape `one`, which is (tokens, dim).
    """
    if initial is None:
        drawn = np.empty((runs, *one))
        for run, child in enumerate(run_seeds(seed, runs, first_run)):
            what = f"the return value of {name_of(system)}.start for run {first_run + run}"
            start = finite_array(what, system.start(np.random.default_rng(child)))
            if start.shape != one:
                raise misfit(what, start, f"have the shape {one}")
            drawn[run] = start
        return drawn
    array = finite_array("initial", initial)
    if array.shape == one:
        return np.repeat(array[None], runs, axis=0)
    if array.shape[1:] == one and runs in (1, len(array)) and len(array):
        return array.copy()
    number = f"runs = {runs}" if runs > 1 else "at least 1 run"
    raise misfit("initial", array, f"have the shape {one} or (runs, {one[0]}, {one[1]}) with {number}")


def measures_of(system: System, names: Any) -> dict[str, Callable[[Array], NDArray[Any]]]:
    """Return the quantities `names` that a system measures on request, as functions by name.

    Each function takes positions (runs, tokens, dim) and returns values (runs, ...). `names` is a name or a
    sequence of names, which may be empty. An `InputError` refuses names that the mapping `system.measures`
    lacks.
    """
    offered = getattr(system, "measures", {})
    names = names_in("observables", names)
    if names and not offered:
        raise InputError(f"observables must be empty for {name_of(system)}, got {', '.join(map(str, names))}")
    return {choice("observables", name, tuple(offered)): offered[name] for name in names}


def measured(
    system: System, measures: Mapping[str, Callable[[Array], NDArray[Any]]], positions: Array
) -> dict[str, NDArray[Any]]:
    """Measure positions (runs, tokens, dim): what the system always records, and the requested `measures`.

    The result maps names to copies of the values, (runs, ...) each. An `InputError` refuses values without
    one row for each run, and functions that change the positions that they measure.
    """
    # A copy for functions of users, as compiled ones take no read-only view. Ours change nothing.
    seen = positions if is_ours(type(system)) else positions.copy()
    always = system.observables(seen) if hasattr(system, "observables") else {}
    if not isinstance(always, Mapping):
        got = short_text(always)
        raise InputError(f"observables of {name_of(system)} must return a dict of arrays, got {got}")
    values = {**always, **{name: function(seen) for name, function in measures.items()}}
    what = f"of {name_of(system)}"
    if seen is not positions and not np.array_equal(seen, positions, equal_nan=True):
        raise InputError(f"observables {what} must not change the positions that they measure")
    for name, value in values.items():
        values[name] = regular_array(f"observable {name!r} {what}", value).copy()
        if values[name].shape[:1] != (len(positions),):
            need = f"have the shape ({len(positions)}, ...)"
            raise misfit(f"observable {name!r} {what}", values[name], need)
    return values


def leaps(before: Array, after: Array, steps: int, far: Any) -> Mask:
    """Return for each run whether points moved farther in `steps` steps than so many times its width.

    `before` and `after` are positions (runs, tokens, dim); the width is the largest extent along an axis. A
    run without any except for rounding, such as that of a single token, never leaps; others do beyond `far`.
    """
    with np.errstate(over="ignore"):
        moved, width = np.abs(after - before).max(axis=(1, 2)), np.ptp(before, axis=1).max(axis=1)
    return ~(moved <= np.minimum(steps * width, far)) & (width > 1e-12 * np.abs(before).max(axis=(1, 2)))


def name_of(system: Any) -> str:
    """Return the name of the class of a system, which messages and files use for it."""
    return type(system).__name__
