"""The class `Trajectory`: an ensemble of point sets that move in time, in memory or in a file."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from physics.checks import flag, mapping, number, regular_array, short_text, whole_number
from physics.errors import InputError
from physics.trajectory import views
from physics.trajectory.header import (
    Clock,
    Path,
    check_parameters,
    checked_clock,
    checked_clocks,
    checked_index,
    checked_observables,
    checked_start,
)


class Trajectory:
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

    _opened: ClassVar[Callable[[Path], "Trajectory"]]
    """Function that reads files, set by `physics.trajectory.opening`: this module imports no reader."""

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
            raise InputError(
                "positions must be float32 or float64 of shape (runs, frames, tokens, dim), got "
                f"{self._positions.dtype} of shape {self._positions.shape}"
            )
        self._shape: tuple[int, ...] = self._positions.shape
        self._dtype = self._positions.dtype
        self.steps, self.times = checked_clock("steps", steps, times, self._shape[1])
        self.parameters = check_parameters(mapping("parameters", parameters), self.runs)
        self.start: Mapping[str, NDArray[Any]] = checked_start(start, self.runs)
        self.made_with: dict[str, Any] = mapping("made_with", made_with)
        self.complete = flag("complete", complete)
        self._clocks = checked_clocks(clocks)
        self._observables: Mapping[str, NDArray[Any]] = checked_observables(
            observables, self.runs, self.frames, self._clocks
        )

    @classmethod
    def open(cls, path: Path) -> "Trajectory":
        """Open a file without reading it all: positions and observables are read when they are first used.

        An unfinished ``NAME.partial`` can be opened while it is recorded; see `refresh`.

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
        >>> import pathlib, tempfile, physics
        >>> path = pathlib.Path(tempfile.mkdtemp(), "run.h5")
        >>> _ = physics.simulate(steps=5, out=path)
        >>> physics.Trajectory.open(path).frames
        6
        """
        return cls._opened(path)

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
    def run_numbers(self) -> NDArray[np.int64]:
        """Number k of each run, int64 (runs,): such a run is drawn from the k-th child of the seed."""
        given = self.parameters.get("run_numbers")
        first = int(self.parameters.get("first_run", 0))
        return np.arange(first, first + self.runs) if given is None else np.array(given, np.int64)

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
        >>> steps, times = physics.simulate(steps=4, record_every=2).clock("positions")
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
        return self._read(slice(None), checked_index(index, self.frames, "frame"))[:, 0]

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
        one = checked_index(index, self.runs, "run")
        return self._some(np.arange(one.start, one.stop), whole_number("every", every, 1))

    def __getitem__(self, runs: Any) -> "Trajectory":
        """Return some of the runs as a trajectory, chosen by an index, a slice, a list of indices, or a mask.

        A run that does not exist is an `IndexError`, and a choice of no runs an `InputError`.
        """
        chosen = np.atleast_1d(np.arange(self.runs)[runs])
        if chosen.ndim != 1 or not chosen.size:
            raise InputError(
                f"runs must choose at least one run by number, slice or list, got {short_text(runs)}"
            )
        return self._some(chosen, 1)

    def __iter__(self) -> Iterator["Trajectory"]:
        return map(self.run, range(self.runs))

    def _some(self, runs: NDArray[np.int64], every: int) -> "Trajectory":
        """Copy some of the runs, with every `every`-th frame and the last one."""
        return Trajectory(**views.part_of(self, runs, every))

    def refresh(self) -> int:
        """Read new frames of a run that another process records.

        Only a trajectory that `Trajectory.open` has opened from an unfinished file can have new frames. When
        the run is complete, this trajectory becomes the finished one.

        Returns
        -------
        int
            Number of new frames.

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
        for start in range(0, self.frames, size):
            block = slice(start, min(start + size, self.frames))
            yield block, self._read(slice(None), block)

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
        from physics.trajectory.saving import save

        save(self, path, overwrite=overwrite)

    to_xarray = views.to_xarray
    to_dataframe = views.to_dataframe
    plot = views.plot

    def _kinds(self) -> Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Return the type of each observable, and its shape in one frame of one run."""
        return {name: (values.dtype, values.shape[2:]) for name, values in self.observables.items()}

    def _read(self, runs: slice, frames: slice) -> NDArray[Any]:
        """Return the positions of some runs and frames, which may share memory with the trajectory."""
        return self.positions[runs, frames]

    def __eq__(self, other: object) -> bool:
        """Return whether two trajectories are equal, whatever code made them; NaN equals NaN."""
        return views.same(self, other) if isinstance(other, Trajectory) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.runs, self.tokens, self.dim))  # frames and parameters may change

    def __repr__(self) -> str:
        return views.text(self)

    def _repr_html_(self) -> str:
        return views.html(self)
