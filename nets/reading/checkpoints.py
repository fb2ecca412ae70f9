"""A trajectory out of the files of another program, or a description of what they hold."""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.reading.files import numbers_of
from nets.reading.source import METRIC, Progress, Source, Wanted, few, files_of_runs, shortened, table
from nets.reading.steps import candidates
from physics.checks import choice, file_path, mapping, short_text, whole_number
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory


def read_checkpoints(
    path: Any,
    *,
    array: str | None = None,
    kind: str = "embedding",
    steps: str | Sequence[int] | None = None,
    step_key: str | None = None,
    step_name: str | None = None,
    modulus: int | None = None,
    transpose: bool | None = None,
    tokens: Any = None,
) -> Trajectory:
    r"""Read checkpoints, arrays or H5MD of another program as a trajectory. No code in the files is run.

    Losses and other measurements in or beside the files become observables, and settings become the entry
    "configuration" of the parameters. The entry "notes" says what was assumed or left out.

    Parameters
    ----------
    path : path
        A file of PyTorch (``.pt``, ``.pth``, ``.ckpt``, ``.bin``), a pickle, a ``.safetensors`` file, an
        array (``.npy``, ``.npz``) with the axes (steps, tokens, dim) or (runs, steps, tokens,
        dim), or H5MD; a directory of checkpoints, of such directories as steps, or of runs; or a pattern.
        A file may hold the state of a network, or a list or mapping of states.
    array : str, optional
        Name of the parameter, such as ``embed.W_E``; by default the only one that is an embedding by its
        name.
    kind : {"embedding", "neurons"}, default "embedding"
        What the positions are. "neurons" are the weights into a hidden layer, one row for each token, and
        beside them those out of it, if there are any.
    steps : str or sequence of int, optional
        Steps of the frames, such as ``"0,1:3001:30"``, where ranges have both ends.
    step_key : str, optional
        Name of the number in each file, or of the list in a single file, that is the step; ``"none"`` for 0,
        1, 2, … By default ``global_step``, ``step``, ``epoch`` and the like are looked for, then the name.
    step_name : str, optional
        Regular expression with one group, the step in the names of the files, such as ``r"model(\d+)_"``.
    modulus : int, optional
        Modulus p of the addition, by default that of the settings or examples in the files. The axis of p
        or a few more is that of the tokens, and the first p of them are kept.
    transpose : bool, optional
        Whether the last axis is the tokens, if neither the modulus nor the name says so.
    tokens : slice or sequence of int, optional
        Tokens to keep; by default the first `modulus`, or all. If they are p, they are the numbers 0 to
        p - 1.

    Returns
    -------
    Trajectory
        The recorded positions, losses and settings.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If a file is damaged, not finite from the start, or holds no such array.
    InputError
        If the array, the steps or the axes are not clear, or an argument is invalid.

    Examples
    --------
    >>> import tempfile, torch, nets
    >>> directory = tempfile.mkdtemp()
    >>> for epoch in (0, 500):
    ...     torch.save({"embed.W_E": torch.randn(128, 114)}, f"{directory}/model_{epoch}.pt")
    >>> trajectory = nets.read_checkpoints(directory, modulus=113)
    >>> trajectory.positions.shape, trajectory.steps.tolist()
    ((1, 2, 113, 128), [0, 500])
    """
    return read(path, Wanted(array, kind, steps, step_key, step_name, modulus, transpose, tokens))


def read(path: Any, wanted: Wanted, progress: Progress = list) -> Trajectory:
    """Do what `read_checkpoints` describes, under a bar over the files."""
    choice("kind", wanted.kind, ("embedding", "neurons"))
    if wanted.modulus is not None:
        whole_number("modulus", wanted.modulus, 3)
    runs = files_of_runs(file_path("path", path))
    trajectories = [Source(files, wanted, progress).trajectory(path) for files in runs]
    first = trajectories[0]
    if len(runs) == 1:
        return first
    for files, run in zip(runs, trajectories, strict=True):
        if run.positions.shape != first.positions.shape or run.steps.tolist() != first.steps.tolist():
            differ = f"{runs[0][0].parent} and {files[0].parent} differ; read each by itself"
            raise InputError(f"path must hold runs of the same steps and shape, but those of {differ}")
    measured = [{k for k in run.observables if run.clock(k)[0] is run.steps} for run in trajectories]
    shared = sorted(set.intersection(*measured))
    return Trajectory(
        np.concatenate([run.positions for run in trajectories]),
        first.steps,
        observables={k: np.concatenate([run.observables[k] for run in trajectories]) for k in shared},
        parameters=first.parameters | {"directories": [str(files[0].parent) for files in runs]},
    )


def look(path: Any, wanted: Wanted | None = None, progress: Progress = list) -> str:
    """Return a screen of text on what files hold, and on what `read_checkpoints` would make of it.

    Parameters
    ----------
    path : path
        File, directory or pattern.
    wanted : Wanted, optional
        What else is known, such as the modulus.
    progress : callable, optional
        Function that yields the files while they are read, such as a progress bar.

    Returns
    -------
    str
        Lines of text, with a guess or a question.

    Raises
    ------
    FileNotFoundError, FileFormatError, InputError
        If nothing can be read.
    """
    runs = files_of_runs(file_path("path", path))
    source = Source(runs[0], wanted or Wanted(), progress)
    files = source.files
    lines = [f"{len(runs)} runs, of which this is the first:"] if len(runs) > 1 else []
    lines.append(f"{files[0]}" if len(files) == 1 else f"{len(files)} files, {files[0]} to {files[-1].name}")
    content = max(source.contents, key=lambda one: len(one.top.arrays))
    parts = [(f"series {name} of {len(states)} states", states[0]) for name, states in content.series.items()]
    for title, state in [*parts, (f"arrays of {content.path.name}", content.top)]:
        if state.arrays:
            lines += [f"{title}:", *(f"  {line}" for line in shortened(table(state.arrays)))]
    for title, names in (
        ("numbers in each file", [name for name in content.top.numbers if METRIC.search(name)]),
        ("lists", [f"{name} of {len(values)}" for name, values in source.lists().items()]),
        ("tables", [path.name for path in source.tables()]),
        ("settings", [f"{name} = {value}" for name, value in source.settings.items()]),
    ):
        if names:
            lines.append(f"{title}: {few(names)}")
    try:
        name, states = source.frames()
        for where, numbers in candidates(states, [state.label for state in states]).items():
            lines.append(f"steps may be: {where} {few([str(number) for number in numbers])}")
        swap, modulus = source.axes(name, states)
        steps, where = source.steps(name, states)
        known = sorted(step for step in steps if step is not None)
        lines.append(
            f"guess: {name}, {'transposed, ' * swap}{len(known)} frames, steps {known[0]} to "
            f"{known[-1]} ({where}), modulus {modulus or 'unknown'}"
        )
    except (FileFormatError, InputError) as error:
        lines += ["question:", str(error)]
    return "\n".join([*lines, *(f"note: {note}" for note in source.notes)])


def from_frames(
    frames: Iterable[tuple[int, Any]],
    *,
    modulus: int | None = None,
    observables: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Trajectory:
    """Make a trajectory of matrices that you have read or computed.

    Parameters
    ----------
    frames : iterable of (int, array_like of shape (tokens, dim))
        Step and matrix of each frame: arrays of NumPy or JAX, or tensors. They need not be in order.
    modulus : int, optional
        Modulus of the addition. Of more tokens, such as "=", the first `modulus` are kept.
    observables : mapping of str to array_like of shape (frames,), optional
        What was measured at the frames, in the order of `frames`.
    parameters : mapping, optional
        How the network was trained, in values that JSON can hold.

    Returns
    -------
    Trajectory
        One run.

    Raises
    ------
    InputError
        If there is no frame, shapes differ, a step occurs twice, or there are fewer tokens than `modulus`.

    Examples
    --------
    >>> import numpy as np, nets
    >>> matrices = [np.random.default_rng(step).normal(size=(8, 2)) for step in (0, 100)]
    >>> nets.from_frames([(0, matrices[0]), (100, matrices[1])], modulus=7, observables={"loss": [2, 1]})
    <Trajectory: 1 runs × 2 frames × 7 tokens × 2 dimensions, float64, nets.from_frames>
      loss: (1, 2) float64
    """
    try:
        steps, matrices = zip(*((index(step), _numbers(matrix)) for step, matrix in frames), strict=True)
        measured = {
            name: np.asarray([_numbers(value) for _, value in zip(steps, values, strict=True)])
            for name, values in mapping("observables", observables).items()
        }
    except (TypeError, ValueError):
        need = "pairs of a whole step and a matrix of real numbers, and observables one value for each"
        raise InputError(f"frames must be {need}") from None
    order = np.argsort(steps)
    if any(matrix.shape != matrices[0].shape or matrix.ndim != 2 for matrix in matrices):
        shapes = short_text(sorted({matrix.shape for matrix in matrices}))
        raise InputError(f"frames must be matrices (tokens, dim) of one shape, got {shapes}")
    if modulus is not None:
        whole_number("modulus", modulus, 3, len(matrices[0]))
    return Trajectory(
        np.stack(matrices)[None, order, :modulus],
        np.asarray(steps)[order],
        observables={name: values[None, order] for name, values in measured.items()},
        parameters={
            "program": "nets.from_frames",
            **({} if modulus is None else {"modulus": modulus}),
            **mapping("parameters", parameters),
        },
    )


def _numbers(value: Any) -> NDArray[Any]:
    """Return a tensor or array as an array of float32 or float64."""
    array = value.cpu() if hasattr(value, "cpu") else np.asarray(value)
    if array.dtype == object:
        raise TypeError
    array = numbers_of(array)
    if array.dtype.kind not in "biuf":
        raise TypeError
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
