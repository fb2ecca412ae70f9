"""Parts of a trajectory, conversions to tables, datasets, text and HTML, and the comparison of two."""

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError


def part_of(trajectory: Any, runs: NDArray[np.int64], every: int) -> dict[str, Any]:
    """Return the arguments of a `Trajectory` that holds some of the runs of a given trajectory.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory to take them from.
    runs : ndarray of int64, shape (n,)
        Indices of the runs.
    every : int
        Keep every n-th frame for this n, and the last one.

    Returns
    -------
    dict
        Keyword arguments of `Trajectory`. Parameters that have one value for each run are reduced to these
        runs.
    """
    kept = _every(trajectory.frames, every)
    span = slice(int(runs.min()), int(runs.max()) + 1)
    rows = runs - span.start
    parameters = dict(trajectory.parameters, runs=len(runs))
    parameters |= {name: [parameters[name][run] for run in runs] for name in parameters.get("per_run", ())}
    if parameters.get("run_numbers") is not None or np.any(np.diff(runs) != 1):
        parameters |= {"first_run": 0, "run_numbers": trajectory.run_numbers[runs].tolist()}
    elif "first_run" in parameters:
        parameters["first_run"] += span.start
    return {
        "positions": np.concatenate([trajectory._read(span, part)[rows] for part in kept], axis=1),
        "steps": np.concatenate([trajectory.steps[part] for part in kept]),
        "times": np.concatenate([trajectory.times[part] for part in kept]),
        "observables": {
            name: values[runs]
            if name in trajectory._clocks
            else np.concatenate([values[runs, part] for part in kept], axis=1)
            for name, values in trajectory.observables.items()
        },
        "clocks": trajectory._clocks,
        "parameters": parameters,
        "start": {name: values[runs] for name, values in trajectory.start.items()},
        "made_with": trajectory.made_with,
        "complete": trajectory.complete,
    }


def _every(length: int, every: int) -> list[slice]:
    """Return slices that select every `every`-th of `length` frames, and the last one."""
    left = slice(length - 1, length) if (length - 1) % every else slice(0)
    return [slice(None, None, every), left]


def to_xarray(trajectory: Any) -> Any:
    """Return a trajectory as an `xarray.Dataset`, as `Trajectory.to_xarray` does.

    Positions have the axes run, step, token and axis. An observable with its own steps has an axis
    ``NAME_step`` instead of step, and further axes ``NAME_0``, ``NAME_1``, …. An `ImportError` says how to
    install xarray if it is missing.
    """
    try:
        import xarray
    except ImportError:
        raise ImportError("to_xarray needs xarray: pip install 'grokphys[explore]'") from None
    data = xarray.Dataset(
        {"positions": (("run", "step", "token", "axis"), trajectory.positions)},
        coords={
            "run": trajectory.run_numbers,
            "step": trajectory.steps,
            "time": ("step", trajectory.times),
            "token": np.arange(trajectory.tokens),
        },
    )
    for name, values in trajectory.observables.items():
        own = name in trajectory._clocks
        axis = f"{name}_step" if own else "step"
        data[name] = (("run", axis, *(f"{name}_{k}" for k in range(values.ndim - 2))), values)
        if own:
            data = data.assign_coords({axis: trajectory.clock(name)[0]})
    return data


def to_dataframe(trajectory: Any, names: tuple[str, ...]) -> Any:
    """Return positions or observables as a `pandas.DataFrame`, as `Trajectory.to_dataframe` does.

    Parameters
    ----------
    trajectory : Trajectory
        Trajectory to read.
    names : tuple of str
        Names of observables that were measured at the same steps; if there are none, positions are returned.

    Returns
    -------
    pandas.DataFrame
        One row for each run and step, and for positions also for each token.

    Raises
    ------
    InputError
        If there is no such observable, or they were measured at different steps.
    ImportError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise ImportError("to_dataframe needs pandas: pip install pandas") from None
    steps, times = trajectory.clock(names[0]) if names else (trajectory.steps, trajectory.times)
    axes = {"run": trajectory.run_numbers, "step": steps}
    columns: dict[str, NDArray[Any]] = {}
    for name in names:
        if name not in trajectory.observables:
            has = ", ".join(map(repr, trajectory.observables)) or "none"
            raise InputError(
                f"observables of a table must be recorded in the trajectory ({has}), got {name!r}"
            )
        if not np.array_equal(trajectory.clock(name)[0], steps):
            raise InputError(
                f"observables of one table must be measured at the same steps, got {name!r} at other steps"
            )
        values = trajectory.observables[name]
        for index in np.ndindex(values.shape[2:]):
            columns["_".join([name, *map(str, index)])] = values[:, :, *index].ravel()
    if not names:
        axes["token"] = np.arange(trajectory.tokens)
        columns = {f"x{k}": trajectory.positions[..., k].ravel() for k in range(trajectory.dim)}
    rows = pandas.MultiIndex.from_product(axes.values(), names=axes.keys())
    of_rows = np.tile(np.repeat(times, 1 if names else trajectory.tokens), trajectory.runs)
    return pandas.DataFrame({"time": of_rows, **columns}, index=rows)


def same(first: Any, second: Any) -> bool:
    """Return whether the trajectories `first` and `second` have equal frames, observables and parameters.

    Their initial arrays (`Trajectory.start`) must be equal too. Types must agree too, and NaN equals NaN.
    Versions of the code that made them do not count.
    """
    return (
        first._shape == second._shape
        and first.dtype == second.dtype
        and first.complete == second.complete
        and first.parameters == second.parameters
        and first.observables.keys() == second.observables.keys()
        and first.start.keys() == second.start.keys()
        and _equal(first.steps, second.steps)
        and _equal(first.times, second.times)
        and all(_equal(*pair) for name in first.observables for pair in _clocks(first, second, name))
        and all(_equal(first.start[name], second.start[name]) for name in first.start)
        and all(_equal(first.observables[name], second.observables[name]) for name in first.observables)
        and all(_equal(positions, second._read(slice(None), block)) for block, positions in first.blocks())
    )


def _clocks(first: Any, second: Any, name: str) -> Any:
    return zip(first.clock(name), second.clock(name), strict=True)


def _equal(first: NDArray[Any], second: NDArray[Any]) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")


def text(trajectory: Any) -> str:
    """Return the sizes of a trajectory in one line, followed by a line for each observable."""
    lines = [headline(trajectory), *(f"  {name}: {kind}" for name, kind in observables(trajectory))]
    return "\n".join(lines)


def html(trajectory: Any) -> str:
    """Return the sizes of a trajectory and its observables as a table in HTML, for notebooks."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(kind)}</td></tr>" for name, kind in observables(trajectory)
    )
    return f"<code>{escape(headline(trajectory))}</code><table>{rows}</table>"


def headline(trajectory: Any) -> str:
    """Return the sizes of a trajectory, and the program that made it, in one line."""
    made = trajectory.parameters.get("program", "unknown origin")
    return (
        f"<{type(trajectory).__name__}: {trajectory.runs} runs × {trajectory.frames} frames × "
        f"{trajectory.tokens} tokens × {trajectory.dim} dimensions, {trajectory.dtype}, {made}"
        f"{'' if trajectory.complete else ', incomplete'}>"
    )


def observables(trajectory: Any) -> list[tuple[str, str]]:
    """Return (name, text) for each observable of a trajectory.

    The text is its shape and type, and the range of its steps if these differ from those of the frames.
    """
    found = []
    for name, (dtype, shape) in trajectory._kinds().items():
        steps = trajectory.clock(name)[0]
        own = f", steps {steps[0]} to {steps[-1]}" if name in trajectory._clocks and len(steps) else ""
        found.append((name, f"{(trajectory.runs, len(steps), *shape)} {dtype}{own}"))
    return found
