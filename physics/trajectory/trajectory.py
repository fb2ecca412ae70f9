"""The class `Trajectory`: an ensemble of point sets that move in time, in memory or in a file."""

import importlib
import json
from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import InputError, flag, mapping, misfit, number, regular_array, short_text, whole_number
from physics.trajectory import header
from physics.trajectory.header import Clock, Path
from physics.values import Integers, Printed, arrays_equal


class Trajectory(Printed):
    """Point sets of an ensemble of runs, frame by frame, with all that is needed to reproduce them.

    `physics.simulate` and `nets.train` return trajectories, and the functions of `analysis` take them.

    Parameters
    ----------
    positions : ndarray, shape (runs, frames, tokens, dim)
        Embeddings, particles, or any other point sets, as float32 or float64.
    steps : array_like of int, shape (frames,)
        Step of each frame, strictly increasing.
    times : array_like of float, shape (frames,), optional
        Physical time of each frame; equal to `steps` by default.
    observables : mapping of str to ndarray (runs, n, ...), optional
        Quantities that were measured in addition to the positions, at the frames (n = frames) or at the n
        steps that `clocks` gives.
    clocks : mapping of str to (steps, times), optional
        Steps (n,) and times (n,), or None for times equal to the steps, of those observables that were
        measured at other steps than the frames; other names are refused.
    parameters : mapping, optional
        How the trajectory was made, in values that JSON can hold.
    start : mapping of str to ndarray (runs, ...), optional
        Initial state of each run beyond its positions and parameters: splits, targets, weights of layers.
    made_with : mapping of str to str, optional
        Versions of the code and of the libraries that made it.
    complete : bool, default True
        False if the run was interrupted.

    Raises
    ------
    InputError
        If shapes or lengths do not agree, steps do not increase, or a file could not hold the name or type of
        an array. Whether JSON can hold the parameters is checked only by `save`.

    Examples
    --------
    >>> import numpy as np, physics
    >>> positions = np.random.default_rng(0).standard_normal((2, 3, 5, 2))
    >>> trajectory = physics.Trajectory(positions, steps=[0, 10, 20])
    >>> trajectory.runs, trajectory.final.shape, trajectory[1].positions.shape
    (2, (2, 5, 2), (1, 3, 5, 2))
    """

    identity = ""
    """What distinguishes a recorded run from all others, even of the same configuration."""
    _chunk = 1
    """Number of frames that a file holds in one piece, which is unpacked as a whole."""

    def __init__(
        self,
        positions: Any,
        steps: Any,
        times: Any = None,
        *,
        observables: Mapping[str, Any] | None = None,
        clocks: Mapping[str, tuple[Any, Any]] | None = None,
        parameters: Mapping[str, Any] | None = None,
        start: Mapping[str, Any] | None = None,
        made_with: Mapping[str, Any] | None = None,
        complete: bool = True,
    ) -> None:
        self._positions = regular_array("positions", positions)
        if self._positions.ndim != 4 or self._positions.dtype not in (np.float32, np.float64):
            need = "be float32 or float64 of shape (runs, frames, tokens, dim)"
            raise misfit("positions", self._positions, need)
        self._shape: tuple[int, ...] = self._positions.shape
        self._dtype = self._positions.dtype
        self.steps, self.times = header.checked_clock("steps", steps, times, self._shape[1])
        self.parameters = header.check_parameters(mapping("parameters", parameters), self.runs)
        self.start: Mapping[str, NDArray[Any]] = header.checked_start(start, self.runs)
        self.made_with: dict[str, Any] = mapping("made_with", made_with)
        self.complete = flag("complete", complete)
        self._clocks: Mapping[str, Clock] = header.checked_clocks(clocks)
        frames = self.runs, self.frames, self._clocks
        self._observables: Mapping[str, NDArray[Any]] = header.checked_observables(observables, *frames)

    @property
    def positions(self) -> NDArray[Any]:
        """Positions of all frames, (runs, frames, tokens, dim), as float32 or float64."""
        return self._positions

    @property
    def observables(self) -> Mapping[str, NDArray[Any]]:
        """Measured quantities by name, (runs, n, ...) each, at the steps and times that `clock` returns."""
        return self._observables

    @property
    def runs(self) -> int:
        """Number of runs of the ensemble."""
        return self._shape[0]

    @property
    def frames(self) -> int:
        """Number of recorded frames of each run."""
        return self._shape[1]

    @property
    def tokens(self) -> int:
        """Number of points of a point set, such as the tokens of an embedding."""
        return self._shape[2]

    @property
    def dim(self) -> int:
        """Dimension of the space in which the points lie."""
        return self._shape[3]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number type of the positions, float32 or float64."""
        return self._dtype

    @property
    def initial(self) -> NDArray[Any]:
        """Positions of the first frame, (runs, tokens, dim), in the number type `dtype`."""
        return self.frame(0)

    @property
    def final(self) -> NDArray[Any]:
        """Positions of the last frame, (runs, tokens, dim), in the number type `dtype`."""
        return self.frame(-1)

    @property
    def run_numbers(self) -> Integers:
        """Number k of each run, int64 (runs,): such a run is drawn from the k-th child of the seed."""
        given = self.parameters.get("run_numbers")
        first = int(self.parameters.get("first_run", 0))
        return np.arange(first, first + self.runs) if given is None else np.array(given, np.int64)

    @property
    def modulus(self) -> int | None:
        """Modulus p of the addition that the parameters state, or None if they state none.

        It stands in the entry "modulus" of the system, of the model, or of the parameters themselves.
        """
        made = self.parameters.get("system") or self.parameters.get("model") or {}
        modulus = made.get("modulus", self.parameters.get("modulus"))
        return modulus if isinstance(modulus, int) else None

    def clock(self, name: str) -> Clock:
        """Return the steps and times at which an observable was measured.

        Parameters
        ----------
        name : str
            Name of the observable. For any other name, the steps and times of the positions are returned.

        Returns
        -------
        tuple of ndarray of int64 and ndarray of float64, shape (n,) each
            Steps, which increase, and their times.

        Examples
        --------
        >>> import physics
        >>> steps, times = physics.simulate(steps=4, record=2).clock("positions")
        >>> steps.tolist(), times.tolist()
        ([0, 2, 4], [0.0, 0.04, 0.08])
        """
        return self._clocks.get(name, (self.steps, self.times))

    def frame(self, index: int) -> NDArray[Any]:
        """Return the positions of one frame.

        Parameters
        ----------
        index : int
            Index of the frame, from 0; negative indices count from the end.

        Returns
        -------
        ndarray, shape (runs, tokens, dim)
            Positions in the number type `dtype`.

        Raises
        ------
        InputError
            If there is no such frame.

        Examples
        --------
        >>> import physics
        >>> physics.simulate(steps=4, runs=3).frame(-2).shape
        (3, 17, 2)
        """
        return self._read(slice(None), header.checked_index(index, self.frames, "frame"))[:, 0]

    def run(self, index: int, *, every: int = 1) -> "Trajectory":
        """Return one run as a separate trajectory, whose parameters reproduce just this run.

        Parameters
        ----------
        index : int
            Index of the run in this trajectory, from 0; negative indices count from the end.
        every : int, default 1
            Keep every n-th frame for this n, and the last one. Observables with other steps than the frames
            are kept as a whole.

        Returns
        -------
        Trajectory
            A copy with a single run.

        Raises
        ------
        InputError
            If there is no such run, or `every` is not a whole number of at least 1.

        Examples
        --------
        >>> import physics
        >>> physics.simulate(steps=5, runs=3).run(2, every=2).steps.tolist()
        [0, 2, 4, 5]
        """
        one = header.checked_index(index, self.runs, "run")
        return self._some(np.arange(one.start, one.stop), whole_number("every", every, 1))

    def select_tokens(self, tokens: Any) -> "Trajectory":
        """Return a trajectory of some of the tokens, such as of the numbers without "=" and other signs.

        Parameters
        ----------
        tokens : slice, sequence of int or mask
            Tokens to keep, such as ``slice(113)`` for the first 113.

        Returns
        -------
        Trajectory
            A copy, whose parameters list the kept tokens under "selected_tokens". Observables with the shape
            of the positions, such as "gradient", are reduced to these tokens too.

        Raises
        ------
        InputError
            If `tokens` chooses no token, a token twice, or one that does not exist.

        Examples
        --------
        >>> import physics
        >>> physics.simulate(steps=2).select_tokens(slice(5)).positions.shape
        (1, 3, 5, 2)
        """
        chosen = header.chosen_tokens(tokens, self.tokens)
        values = self._arguments()
        before = self.parameters.get("selected_tokens")
        if not isinstance(before, list) or len(before) != self.tokens:
            before = list(range(self.tokens))
        values["parameters"]["selected_tokens"] = [before[token] for token in chosen]
        values["positions"] = self.positions[:, :, chosen]
        for name, (_, shape) in self._kinds().items():
            if shape == (self.tokens, self.dim):
                values["observables"][name] = self.observables[name][:, :, chosen]
        return Trajectory(**values)

    def __getitem__(self, runs: Any) -> "Trajectory":
        """Return some of the runs as a trajectory, chosen by an index, a slice, a list of indices, or a mask.

        A run that does not exist is an `IndexError`, and a choice of no runs an `InputError`.
        """
        chosen = np.atleast_1d(np.arange(self.runs)[runs])
        if chosen.ndim != 1 or not chosen.size:
            got = short_text(runs)
            raise InputError(f"runs must choose at least one run by number, slice or list, got {got}")
        return self._some(chosen, 1)

    def __len__(self) -> int:
        return self.runs

    def __iter__(self) -> Iterator["Trajectory"]:
        return map(self.run, range(self.runs))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the positions, so that functions of embeddings take a trajectory as well."""
        return np.array(self.positions, dtype, copy=copy)

    def _some(self, runs: Integers, every: int) -> "Trajectory":
        """Copy the runs with the indices `runs` (n,), with every `every`-th frame and the last one."""
        last = slice(self.frames - 1, self.frames) if (self.frames - 1) % every else slice(0)
        parts = [slice(None, None, every), last]
        span = slice(int(runs.min()), int(runs.max()) + 1)
        parameters = dict(self.parameters, runs=len(runs))
        for name in parameters.get("per_run", ()):
            parameters[name] = [parameters[name][run] for run in runs]
        if parameters.get("run_numbers") is not None or np.any(np.diff(runs) != 1):
            parameters |= {"first_run": 0, "run_numbers": self.run_numbers[runs].tolist()}
        elif span.start:
            parameters["first_run"] = int(self.run_numbers[span.start])
        observables = {name: values[runs] for name, values in self.observables.items()}
        for name in observables.keys() - self._clocks.keys():
            observables[name] = np.concatenate([observables[name][:, part] for part in parts], axis=1)
        return Trajectory(
            np.concatenate([self._read(span, part)[runs - span.start] for part in parts], axis=1),
            np.concatenate([self.steps[part] for part in parts]),
            np.concatenate([self.times[part] for part in parts]),
            observables=observables,
            clocks=self._clocks,
            parameters=parameters,
            start={name: values[runs] for name, values in self.start.items()},
            made_with=self.made_with,
            complete=self.complete,
        )

    def refresh(self) -> int:
        """Read new frames of a run that another process records.

        Only a trajectory that `load` has opened from an unfinished file can have new frames. When the run is
        complete, this trajectory becomes the finished one.

        Returns
        -------
        int
            Number of new frames; it is negative if a resumed run has gone back to its checkpoint.

        Raises
        ------
        FileFormatError
            If another file has taken the place of the one that was opened, or the file is damaged.
        FileNotFoundError
            If the file was removed.

        Examples
        --------
        >>> import physics
        >>> physics.simulate(steps=5).refresh()  # in memory: nothing new
        0
        """
        return 0

    def blocks(self, megabytes: float = 32.0) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Read the positions block by block, for trajectories that are larger than memory.

        Parameters
        ----------
        megabytes : float, default 32.0
            Largest size of a block in units of 2^20 bytes; a block holds one frame at least.

        Yields
        ------
        tuple of slice and ndarray, shape (runs, n, tokens, dim)
            The frames of the block, and their positions.

        Raises
        ------
        InputError
            When the first block is read, if `megabytes` is not a finite number of at least 0.

        Examples
        --------
        >>> import physics
        >>> [block for block, positions in physics.simulate(steps=4).blocks(megabytes=0.001)]
        [slice(0, 3, None), slice(3, 5, None)]
        """
        frame_bytes = max(self.runs * self.tokens * self.dim * self._dtype.itemsize, 1)
        most = number("megabytes", megabytes, 0.0) * 2**20 / frame_bytes
        size = max(int(min(most, self.frames)), 1)
        unit = max(size // self._chunk, 1) * self._chunk
        for begin in range(0, self.frames, unit):
            positions = self._read(slice(None), slice(begin, begin + unit))
            for start in range(begin, begin + positions.shape[1], size):
                block = slice(start, min(start + size, begin + positions.shape[1]))
                yield block, positions[:, start - begin : block.stop - begin]

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the whole trajectory to a file, block by block.

        Parameters
        ----------
        path : path
            Name of the file, such as ``run.h5``.
        overwrite : bool, default False
            Whether to replace `path` and an unfinished ``path.partial`` if they exist.

        Raises
        ------
        InputError
            If JSON cannot hold the parameters, the trajectory has no runs, tokens or dimensions, or an
            observable has no components.
        OutputError
            If one of these files exists and `overwrite` is False, the directory does not exist or cannot be
            written, another process writes the file, or the disk is full. Nothing new is then left at `path`.

        Examples
        --------
        >>> import pathlib, tempfile, physics
        >>> path = pathlib.Path(tempfile.mkdtemp(), "run.h5")
        >>> trajectory = physics.simulate(steps=5)
        >>> trajectory.save(path)
        >>> physics.load(path) == trajectory
        True
        """
        from physics.trajectory.recording import save

        save(self, path, overwrite=overwrite)

    def to_xarray(self) -> Any:
        """Return the trajectory as a labeled dataset.

        Returns
        -------
        xarray.Dataset
            "positions" with the axes run, step, token and axis, and each observable with the axes run and
            step, or ``NAME_step`` if it has its own steps, and NAME_0, NAME_1, … for further axes. Runs are
            labeled by `run_numbers`, and the frames also by their "time". An observable with one of these
            names, such as "time", is called "observable_time". Variables have a "long_name" and "units", and
            the attributes of the dataset say as JSON how it was made, so that ``to_zarr`` and ``to_netcdf``
            keep it.

        Examples
        --------
        >>> import physics
        >>> physics.simulate(steps=2, runs=3).to_xarray()["positions"].sizes
        Frozen({'run': 3, 'step': 3, 'token': 17, 'axis': 2})
        """
        import xarray

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
        names = {"positions": "position", "step": "step", "time": "time", "run": "run", "token": "token"}
        for variable, long_name in names.items():
            data[variable].attrs = {"long_name": long_name, "units": "1"}
        made = {"parameters": self.parameters, "made_with": self.made_with, "complete": self.complete}
        return data.assign_attrs({name: json.dumps(value, default=str) for name, value in made.items()})

    def to_xyz(self, path: Path) -> None:
        """Write the frames as extended XYZ, which OVITO, VMD and ASE read.

        Parameters
        ----------
        path : path
            Name of the file, such as ``run.xyz``. Each point has the number of its token and of its run, and
            up to three coordinates; those beyond are left out.

        Raises
        ------
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile, physics
        >>> path = pathlib.Path(tempfile.mkdtemp(), "run.xyz")
        >>> physics.simulate(steps=1).to_xyz(path)
        >>> path.read_text().splitlines()[1]
        'Properties=id:I:1:run:I:1:pos:R:3 step=0 time=0.0'
        """
        labels = [(token, run) for run in self.run_numbers for token in range(self.tokens)]
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - any path
            for index in range(self.frames):
                points = np.zeros((len(labels), 3))
                points[:, : min(self.dim, 3)] = self.frame(index).reshape(-1, self.dim)[:, :3]
                head = f"step={self.steps[index]} time={self.times[index]}"
                print(len(labels), f"Properties=id:I:1:run:I:1:pos:R:3 {head}", sep="\n", file=file)
                np.savetxt(file, np.column_stack([labels, points]), fmt=["%d", "%d", "%.9g", "%.9g", "%.9g"])

    def to_dataframe(self, *observables: str) -> Any:
        """Return positions or observables as a table.

        Parameters
        ----------
        *observables : str
            Names of observables that were measured at the same steps. Without names, positions are returned.

        Returns
        -------
        pandas.DataFrame
            Without names, rows are (run, step, token), and columns are the time and the coordinates x0, x1,
            …. With names, rows are (run, step), and columns are the time and the observables: ``name``, or
            ``name_0``, ``name_1``, … if they have components. An observable "time" is called
            "observable_time".

        Raises
        ------
        InputError
            If there is no such observable, they were measured at different steps, or two of their columns
            have one name.

        Examples
        --------
        >>> import physics
        >>> trajectory = physics.simulate(steps=2, runs=3, observables=["circle_ratio"])
        >>> trajectory.to_dataframe("circle_ratio").shape, list(trajectory.to_dataframe())
        ((9, 2), ['time', 'x0', 'x1'])
        """
        import pandas

        steps, times = self.clock(str(observables[0])) if observables else (self.steps, self.times)
        axes = {"run": self.run_numbers, "step": steps}
        columns: dict[str, NDArray[Any]] = {}
        for name in observables:
            if not isinstance(name, str) or name not in self.observables:
                need = f"recorded in the trajectory ({header.listed(self.observables)})"
                raise InputError(f"observables of a table must be {need}, got {short_text(name)}")
            if not np.array_equal(self.clock(name)[0], steps):
                got = f"{name!r} at others"
                raise InputError(f"observables of one table must be measured at the same steps, got {got}")
            values, label = self.observables[name], _label(name, ("time",), self.observables)
            for index in np.ndindex(values.shape[2:]):
                column = "_".join([label, *map(str, index)])
                if column in columns:
                    raise InputError(f"observables of one table must differ in columns, got two {column!r}")
                columns[column] = values[:, :, *index].ravel()
        if not observables:
            axes["token"] = np.arange(self.tokens)
            columns = {f"x{k}": self.positions[..., k].ravel() for k in range(self.dim)}
        rows = pandas.MultiIndex.from_product(axes.values(), names=axes.keys())
        of_rows = np.tile(np.repeat(times, 1 if observables else self.tokens), self.runs)
        return pandas.DataFrame({"time": of_rows, **columns}, index=rows)

    def plot(self, what: str = "positions", ax: Any = None, **options: Any) -> Any:
        """Draw one figure of the trajectory; see `analysis.plots.signals.show_trajectory`.

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
        drawing = importlib.import_module("analysis.plots.signals")  # physics itself draws nothing
        return drawing.show_trajectory(self, what, ax, **options)

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of an equal trajectory in memory; their containers are copies."""
        return {
            "positions": self.positions,
            "steps": self.steps,
            "times": self.times,
            "observables": dict(self.observables),
            "clocks": self._clocks,
            "parameters": dict(self.parameters),
            "start": dict(self.start),
            "made_with": self.made_with,
            "complete": self.complete,
        }

    def _kinds(self) -> Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Return the type of each observable, and its shape in one frame of one run."""
        return {name: (values.dtype, values.shape[2:]) for name, values in self.observables.items()}

    def _read(self, runs: slice, frames: slice) -> NDArray[Any]:
        """Return the positions of some runs and frames, which may share memory with the trajectory."""
        return self.positions[runs, frames]

    def _rows(self, name: str | None, frames: slice) -> NDArray[Any]:
        """Return some frames of the positions (None) or of an observable, (n, runs, ...)."""
        values = self.positions if name is None else self.observables[name]
        return np.moveaxis(values[:, frames], 1, 0)

    def __eq__(self, other: object) -> bool:
        """Return whether types, frames, observables, parameters and initial arrays are equal; NaN equals NaN.

        Versions of the code that made the trajectories do not count.
        """
        if not isinstance(other, Trajectory):
            return NotImplemented
        kinds = ("_shape", "dtype", "complete", "parameters")
        if any(getattr(self, kind) != getattr(other, kind) for kind in kinds):
            return False
        if any(getattr(self, held).keys() != getattr(other, held).keys() for held in ("_clocks", "start")):
            return False
        return self._kinds() == other._kinds() and all(
            first.dtype == second.dtype and arrays_equal(first, second)
            for first, second in self._pairs(other)
        )

    def _pairs(self, other: "Trajectory") -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield the arrays that equal trajectories share, block by block."""
        for name in ("", *self._clocks):
            yield from zip(self.clock(name), other.clock(name), strict=True)
        for mine, others in ((self.start, other.start), (self.observables, other.observables)):
            yield from ((values, others[name]) for name, values in mine.items())
        yield from ((block, other._read(slice(None), part)) for part, block in self.blocks())

    def __hash__(self) -> int:
        return hash((self.runs, self.tokens, self.dim))  # frames and parameters may change

    def __repr__(self) -> str:
        made = self.parameters.get("program", "unknown origin")
        lines = [
            f"<{type(self).__name__}: {self.runs} runs × {self.frames} frames × {self.tokens} tokens × "
            f"{self.dim} dimensions, {self.dtype}, {made}{'' if self.complete else ', incomplete'}>"
        ]
        for name, (dtype, shape) in self._kinds().items():
            steps = self.clock(name)[0]
            own_steps = f", steps {steps[0]} to {steps[-1]}" if name in self._clocks and len(steps) else ""
            lines.append(f"  {name}: {(self.runs, len(steps), *shape)} {dtype}{own_steps}")
        return "\n".join(lines)


def _label(name: str, taken: Container[Any], observables: Container[str]) -> str:
    """Return the name of an observable, or if it is `taken` in a table, one that no observable has."""
    label = name
    while label in taken or (label != name and label in observables):
        label = f"observable_{label}"
    return label


def load(path: Path) -> Trajectory:
    """Open a trajectory file; its positions and observables are read when they are first used.

    The log ``NAME.partial`` of an unfinished run can be opened while it is recorded, and
    `Trajectory.refresh` then finds its new frames.

    Parameters
    ----------
    path : path
        A trajectory file, or the log ``NAME.partial`` of an unfinished run.

    Returns
    -------
    Trajectory
        Its positions and observables are arrays that are read from the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If it is not a readable trajectory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import physics
    >>> path = pathlib.Path(tempfile.mkdtemp(), "particles.h5")
    >>> saved = physics.simulate(steps=5, out=path)
    >>> physics.load(path) == saved
    True
    """
    from physics.trajectory.stored import StoredTrajectory  # imported here because it loads HDF5

    return StoredTrajectory(path)
