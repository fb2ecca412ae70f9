"""Parts of a trajectory, its conversions to tables, datasets, text and HTML, and the comparison of two.

Also `LazyArrays`, the arrays of a file that are read when they are used.
"""

import importlib
from collections.abc import Container, Iterator, Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError
from physics.trajectory.header import listed
from physics.trajectory.provenance import OWN_FILES
from physics.values import arrays_equal


def part_of(trajectory: Any, runs: NDArray[np.int64], every: int) -> dict[str, Any]:
    """Return the arguments of a `Trajectory` that holds the runs with the indices `runs` (n,) of another.

    Every `every`-th frame and the last one are kept. Parameters that have one value for each run are reduced
    to these runs.
    """
    kept = _every(trajectory.frames, every)
    span = slice(int(runs.min()), int(runs.max()) + 1)
    rows = runs - span.start
    parameters = dict(trajectory.parameters, runs=len(runs))
    parameters |= {name: [parameters[name][run] for run in runs] for name in parameters.get("per_run", ())}
    if parameters.get("run_numbers") is not None or np.any(np.diff(runs) != 1):
        parameters |= {"first_run": 0, "run_numbers": trajectory.run_numbers[runs].tolist()}
    elif span.start:
        parameters["first_run"] = int(trajectory.run_numbers[span.start])
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


def to_xarray(self: Any) -> Any:
    """Return the trajectory as a labeled dataset; this needs xarray.

    Returns
    -------
    xarray.Dataset
        "positions" with the axes run, step, token and axis, and each observable with the axes run and step,
        or ``NAME_step`` if it has its own steps, and NAME_0, NAME_1, … for further axes. Runs are labeled by
        `run_numbers`, and the frames also by their "time". An observable with one of these names, such as
        "time", is called "observable_time".

    Raises
    ------
    ImportError
        If xarray is not installed.

    Examples
    --------
    >>> import physics
    >>> physics.simulate(steps=2, runs=3).to_xarray()["positions"].sizes
    Frozen({'run': 3, 'step': 3, 'token': 17, 'axis': 2})
    """
    try:
        import xarray
    except ImportError:
        raise ImportError("to_xarray needs xarray: pip install 'grokphys[explore]'") from None
    data = xarray.Dataset(
        {"positions": (("run", "step", "token", "axis"), self.positions)},
        coords={
            "run": self.run_numbers,
            "step": self.steps,
            "time": ("step", self.times),
            "token": np.arange(self.tokens),
        },
    )
    for recorded, values in self.observables.items():
        own = recorded in self._clocks
        name = _label(recorded, {*data.variables, *data.dims}, self.observables)
        axis = f"{name}_step" if own else "step"
        data[name] = (("run", axis, *(f"{name}_{k}" for k in range(values.ndim - 2))), values)
        if own:
            data = data.assign_coords({axis: self.clock(recorded)[0]})
    return data


def _label(name: str, taken: Container[Any], observables: Container[str]) -> str:
    """Return the name of an observable, or if it is `taken` in a table, one that no observable has."""
    label = name
    while label in taken or (label != name and label in observables):
        label = f"observable_{label}"
    return label


def to_dataframe(self: Any, *observables: str) -> Any:
    """Return positions or observables as a table; this needs pandas.

    Parameters
    ----------
    *observables : str
        Names of observables that were measured at the same steps. Without names, positions are returned.

    Returns
    -------
    pandas.DataFrame
        Without names, rows are (run, step, token), and columns are the time and the coordinates x0, x1, ….
        With names, rows are (run, step), and columns are the time and the observables: ``name``, or
        ``name_0``, ``name_1``, … if they have components. An observable "time" is called "observable_time".

    Raises
    ------
    InputError
        If there is no such observable, or they were measured at different steps.
    ImportError
        If pandas is not installed.

    Examples
    --------
    >>> import physics
    >>> trajectory = physics.simulate(steps=2, runs=3, observables=["circle_ratio"])
    >>> trajectory.to_dataframe("circle_ratio").shape, list(trajectory.to_dataframe())
    ((9, 2), ['time', 'x0', 'x1'])
    """
    try:
        import pandas
    except ImportError:
        raise ImportError("to_dataframe needs pandas: pip install pandas") from None
    steps, times = self.clock(observables[0]) if observables else (self.steps, self.times)
    axes = {"run": self.run_numbers, "step": steps}
    columns: dict[str, NDArray[Any]] = {}
    for name in observables:
        if name not in self.observables:
            raise InputError(
                "observables of a table must be recorded in the trajectory "
                f"({listed(self.observables)}), got {name!r}"
            )
        if not np.array_equal(self.clock(name)[0], steps):
            raise InputError(
                f"observables of one table must be measured at the same steps, got {name!r} at other steps"
            )
        values, label = self.observables[name], _label(name, ("time",), self.observables)
        for index in np.ndindex(values.shape[2:]):
            columns["_".join([label, *map(str, index)])] = values[:, :, *index].ravel()
    if not observables:
        axes["token"] = np.arange(self.tokens)
        columns = {f"x{k}": self.positions[..., k].ravel() for k in range(self.dim)}
    rows = pandas.MultiIndex.from_product(axes.values(), names=axes.keys())
    of_rows = np.tile(np.repeat(times, 1 if observables else self.tokens), self.runs)
    return pandas.DataFrame({"time": of_rows, **columns}, index=rows)


def plot(self: Any, what: str = "positions", ax: Any = None, **options: Any) -> Any:
    """Draw one figure of the trajectory; see `analysis.plots.trajectory.show_trajectory`.

    Parameters
    ----------
    what : str, default "positions"
        "positions", "signals" (Fourier signals of the positions), or the name of an observable.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default.
    **options
        ``run`` (int, default 0), ``frame`` (int, default -1, the last) and ``title`` (str, default "").

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the figure.

    Raises
    ------
    InputError
        If there is no such run, frame or observable, or the points to draw are not finite.

    Examples
    --------
    >>> import physics
    >>> type(physics.simulate(steps=50).plot(title="17 particles")).__name__
    'Axes'
    """
    drawing = importlib.import_module("analysis.plots.trajectory")  # physics itself draws nothing
    return drawing.show_trajectory(self, what, ax, **options)


def same(first: Any, second: Any) -> bool:
    """Return whether two trajectories have equal frames, observables, parameters and initial arrays.

    Types must agree too, and NaN equals NaN. Versions of the code that made the trajectories do not count,
    nor do those of a user's own files.
    """
    ours, theirs = ({**one.parameters, OWN_FILES: None} for one in (first, second))
    return (
        first._shape == second._shape
        and first.dtype == second.dtype
        and first.complete == second.complete
        and ours == theirs
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
    return first.dtype == second.dtype and arrays_equal(first, second)


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

    The text is its shape and type, and the range of its steps if it has its own steps.
    """
    found = []
    for name, (dtype, shape) in trajectory._kinds().items():
        steps = trajectory.clock(name)[0]
        own = f", steps {steps[0]} to {steps[-1]}" if name in trajectory._clocks and len(steps) else ""
        found.append((name, f"{(trajectory.runs, len(steps), *shape)} {dtype}{own}"))
    return found


class LazyArrays(Mapping[str, NDArray[Any]]):
    """Arrays of a file by name, each of which is read on first use and kept."""

    def __init__(self, names: Any, read: Any) -> None:
        self._names, self._read = names, read
        self._kept: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names():
            raise KeyError(name)
        if name not in self._kept:
            self._kept[name] = self._read(name)
        return self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())
