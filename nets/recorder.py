"""`Recorder`, which records the embedding of any PyTorch network from your own training loop."""

import atexit
import contextlib
import os
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Self

import h5py  # noqa: F401 - it cannot be imported when Python ends and a file is completed
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nets.checkpoint import SECONDS, remove
from physics.checks import file_path, flag, mapping, misfit, names_in, regular_array
from physics.errors import FileFormatError, InputError, OutputError
from physics.trajectory import Trajectory, load
from physics.trajectory.header import Layout, chosen_tokens, observable_name
from physics.trajectory.locks import replace_as_a_whole
from physics.trajectory.provenance import plain
from physics.trajectory.recording import FileRecorder, Log, is_log
from physics.trajectory.schedule import due


class Recorder:
    """Record a parameter of any PyTorch network from your own training loop, in the format of `nets.train`.

    The resulting file can be used like every other trajectory, by `analysis` and by ``grokphys explore``.
    Recorded frames survive if the process is killed. Frame 0 is the parameter when the recorder is created.

    Parameters
    ----------
    parameter : torch.Tensor of shape (tokens, dim) or (runs, tokens, dim), or a callable that returns one
        What to record, such as ``model.embedding.weight`` or a view of it. It is copied at each recorded
        step. What is computed from parameters must be a function, such as ``lambda: model.W_E.T.float()``,
        and so must arrays of JAX, which never change: ``lambda: parameters["embedding"]``.
    path : path
        Trajectory file. It is called ``path.partial`` while the loop runs.
    record : int, str or sequence of int, default 1
        When to record: every k-th step, ``"log:n"`` for about n steps a decade, ``"1:100,50"`` for every step
        up to 100 and then every fiftieth, or a list of steps. The last step is recorded too, unless an
        exception ends the loop.
    parameters : mapping, optional
        How the network is trained, in values that JSON can hold. ``{"modulus": 7}`` tells `analysis`
        that tokens are added modulo 7; without it, their number is taken as the modulus.
    tokens : slice, sequence of int or mask, optional
        Tokens to record, such as ``slice(113)`` for the numbers without "=" and other signs; all by default.
        The parameters list them under "selected_tokens".
    observables : sequence of str, default ()
        Names of numbers that are not measured at the first step, such as ``["val_loss"]`` where that is
        measured at every tenth.
    checkpoint : mapping of str to objects, optional
        Objects with ``state_dict`` and ``load_state_dict``, such as the model and the optimizer. Their state
        is saved in ``path.checkpoint`` every half minute, with the state of PyTorch's random numbers on the
        CPU. Those of other devices, such as for dropout on a GPU, are not restored.
    overwrite : bool, default False
        Whether to replace `path` and an unfinished run.
    resume : bool, default False
        Whether to continue an unfinished run, which needs `checkpoint`. Its objects are then restored to
        their state at step `at`. Without a checkpoint of this run, `at` is 0.

    Attributes
    ----------
    at : int
        Number of optimizer steps taken so far.

    Raises
    ------
    InputError
        If an argument is invalid.
    FileFormatError
        If the checkpoint is damaged or belongs to other objects.
    OutputError
        If the run to resume is complete. Other errors of the file are raised when it is created, by the first
        `step`.

    Examples
    --------
    >>> import tempfile, torch, nets, physics
    >>> embedding = torch.nn.Embedding(7, 2)
    >>> optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1)
    >>> path = f"{tempfile.mkdtemp()}/run.h5"
    >>> with nets.Recorder(embedding.weight, path, record="1:10,5") as recorder:
    ...     while recorder.at < 22:
    ...         loss = (embedding.weight.norm(dim=1) - 1).square().mean()
    ...         optimizer.zero_grad(); loss.backward(); optimizer.step()
    ...         recorder.step(loss=loss)
    >>> physics.load(path).steps.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 22]
    """

    def __init__(
        self,
        parameter: Tensor | Callable[[], Tensor],
        path: str | os.PathLike[str],
        *,
        record: int | str | list[int] = 1,
        parameters: Mapping[str, Any] | None = None,
        tokens: Any = None,
        observables: Sequence[str] = (),
        checkpoint: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        resume: bool = False,
    ) -> None:
        _require_live(parameter)
        self._read = parameter if callable(parameter) else lambda: parameter
        self._tokens = tokens
        self._path = file_path("path", path)
        self._overwrite, self._resume = flag("overwrite", overwrite), flag("resume", resume)
        self._due = due(record)
        self._later = names_in("observables", observables)
        self._objects = mapping("checkpoint", checkpoint)
        for name, thing in self._objects.items():
            if not hasattr(thing, "state_dict") or not hasattr(thing, "load_state_dict"):
                need, got = "state_dict and load_state_dict", type(thing).__name__
                raise InputError(f"checkpoint[{name!r}] must have {need}, got a {got}")
        if resume and not self._objects:
            raise InputError("resume needs checkpoint, the objects to restore, such as the model, got none")
        self._saved = Path(f"{self._path}.checkpoint")
        self._parameters = {
            "program": "nets.Recorder",
            **mapping("parameters", parameters),
            "record": plain(record),
        }
        self.at = 0
        self._runs: int | None = None  # number of runs, if the parameter has an axis of them
        self._start = self._positions()
        if tokens is not None:
            self._parameters["selected_tokens"] = chosen_tokens(tokens, self._count).tolist()
        self._from = 0  # the step from which this process goes on
        self._frames: FileRecorder | None = None
        self._last: dict[str, Any] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._moved = False
        self._written = monotonic()
        self._ended, self._process = False, os.getpid()
        if self._resume:
            self._restore()
        atexit.register(self._at_exit)

    def step(self, loss: Any = None, /, **observables: Any) -> None:
        """Report that the optimizer has taken a step, and the values that were measured at it.

        Parameters
        ----------
        loss : number, array or tensor, optional
            The loss, which is recorded under the name "loss".
        **observables
            Numbers, arrays or tensors, with the names and shapes of the first step, or names of
            `observables`. If the parameter has an axis of runs, each has the shape (runs, ...). A frame
            holds the last value since the frame before, or NaN; frame 0 precedes every step.

        Raises
        ------
        InputError
            If a name was not passed at the first step, the loss is given twice, a recorded value has another
            shape, or the unfinished run has another configuration.
        OutputError
            If the file exists, a frame could not be written, or the recorder is closed.
        """
        self._require_open()
        if loss is not None and "loss" in observables:
            raise InputError("loss must be given once, got it by its place and by its name")
        observables |= {} if loss is None else {"loss": loss}
        if self._frames is None:
            runs = () if self._runs is None else (self._runs,)
            self._begin(dict.fromkeys(self._later, np.full(runs, np.nan)) | observables)
        for name in observables.keys() - self._last.keys():
            need = f"name what the first step does not measure, as observables=[{name!r}]"
            raise InputError(f"observables must {need}, got {name!r} at a later one")
        self._last |= {
            name: value.detach() if isinstance(value, Tensor) else value
            for name, value in observables.items()
        }
        self.at += 1
        if self._due(self.at):
            self._append()
        if self._objects and monotonic() - self._written > SECONDS:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Save the state of the objects now, without waiting for the next half minute.

        Raises
        ------
        InputError
            If no `step` has been reported yet.
        OutputError
            If a frame or the checkpoint cannot be written, or the recorder is closed.
        """
        self._require_open()
        if self._frames is None:
            raise InputError("checkpoint needs at least one step before it, got none")
        self._frames.flush()
        state = {
            "step": self.at,
            "recorded": self._frames.last_step,
            "run": self._frames.identity,
            "random": torch.get_rng_state(),
            "last": {
                name: torch.tensor(self._values(name, value).tolist(), dtype=torch.float64)
                for name, value in self._last.items()
                if value is not None
            },
            "state": {name: thing.state_dict() for name, thing in self._objects.items()},
        }
        replace_as_a_whole(self._saved, lambda file: torch.save(state, file), alone=True)
        self._written = monotonic()

    def result(self) -> Trajectory:
        """Open the finished file.

        Returns
        -------
        Trajectory
            The recording, read lazily from its file.

        Raises
        ------
        FileNotFoundError
            If there is no such file, because the recording is not complete yet.
        FileFormatError
            If the file has been damaged.
        """
        return load(self._path)

    def __enter__(self) -> Self:
        return self

    def _require_open(self) -> None:
        if self._ended:
            raise OutputError(f"cannot record to {self._path}: its recorder is closed")

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if not self._ended:
            self._end(error)

    def close(self) -> None:
        """Record the last step, and make the finished file; at the end of a ``with`` block this is done.

        Without either, the file is made when Python ends, unless an exception ends it.

        Raises
        ------
        OutputError
            If the file exists or cannot be written.

        Warns
        -----
        RuntimeWarning
            If the recorded parameter never changed in more than one step.
        """
        if not self._ended:
            self._end(None)

    def _at_exit(self) -> None:
        if self.at and os.getpid() == self._process:  # a process that was forked has a copy of this
            self._end(getattr(sys, "last_value", None))

    def _end(self, error: BaseException | None) -> None:
        """Make the finished file, unless an `error` has ended the loop."""
        self._ended = True
        atexit.unregister(self._at_exit)
        if error is not None:
            if self._frames is not None:
                self._frames.__exit__(type(error), error, None)
            return
        frames = self._frames or self._begin({})
        with frames:
            if frames.last_step < self.at:
                self._append()
        remove(self._saved)
        if self.at - self._from > 1 and not self._moved:
            advice = "if it is a copy of what is trained, pass a function, such as lambda: model.weight.T"
            text = f"the recorded parameter never changed; {advice}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)

    def _restore(self) -> None:
        """Restore the objects to the last checkpoint, if there is one of the frames on disk."""
        if self._path.exists() and not self._overwrite:
            raise OutputError(f"{self._path} is complete; there is nothing to resume")
        partial = Path(f"{self._path}.partial")
        if not self._saved.exists():
            return
        log = None
        if partial.exists() and is_log(partial):
            with contextlib.suppress(FileFormatError):  # which is raised when the recording begins
                log = Log(partial)
        try:
            with zipfile.ZipFile(self._saved) as archive:
                if archive.testzip():  # torch.load does not look at the checksums
                    raise ValueError("its checksum fails")
            stored = torch.load(self._saved, weights_only=True)
            step, recorded = int(stored["step"]), int(stored["recorded"])
            if log is None or log.header.identity != stored["run"] or recorded not in log.steps:
                return  # it belongs to another run, or is newer than the frames: start again
            if step < recorded or any(map(self._due, range(recorded + 1, step + 1))):
                raise ValueError(f"its step {step} does not follow the last frame, {recorded}")
            for name, thing in self._objects.items():
                thing.load_state_dict(stored["state"][name])
            torch.set_rng_state(stored["random"])
            self._last = {name: v.numpy()[() if self._runs else 0] for name, v in stored["last"].items()}
        except Exception as error:
            why = f"{str(error).splitlines()[0][:200]}; remove it, and the run is resumed from its start"
            raise FileFormatError(f"{self._saved} does not match the objects to restore: {why}") from None
        self.at = self._from = step

    def _begin(self, observables: Mapping[str, Any]) -> FileRecorder:
        """Create the file, once the names and shapes of the observables are known."""
        measured = {observable_name(name): self._values(name, value) for name, value in observables.items()}
        self._shapes = {name: values.shape for name, values in measured.items()}
        types = {name: ("<f8", shape[1:]) for name, shape in self._shapes.items()}
        runs, tokens, dim = self._start.shape
        frames = FileRecorder(
            self._path,
            Layout(runs, tokens, dim, str(self._start.dtype), 0, types),
            self._parameters,
            packages=("nets",),
            overwrite=self._overwrite,
            resume=self._resume,
            until=self.at,
        )
        if not self.at:
            remove(self._saved)  # it belongs to an earlier run
        if not frames.frames:
            if self._due(0):
                unknown = {name: np.full_like(values, np.nan) for name, values in measured.items()}
                frames.append(0, 0.0, self._start, unknown)
        elif frames.resumed and self.at == 0 and not np.array_equal(frames.resumed.initial, self._start):
            frames.close()
            raise InputError("parameter must equal the start of the unfinished run, got other values")
        self._last, self._frames = dict.fromkeys(observables) | self._last, frames
        return frames

    def _append(self) -> None:
        """Record the present step; a run that is resumed has no later frames than its checkpoint."""
        assert self._frames is not None
        measured = {
            name: np.full(self._shapes[name], np.nan) if value is None else self._values(name, value)
            for name, value in self._last.items()
        }
        positions = self._positions()
        alone = int(self._runs is None)  # the axis of runs is not the user's
        for name, values in [("parameter", positions), *measured.items()]:
            first = self._start.shape if values is positions else self._shapes[name]
            if values.shape != first:
                got = f"{first[alone:]}, got {values.shape[alone:]}"
                raise InputError(f"{name} must keep the shape of the first step, {got}")
        self._moved = self._moved or not np.array_equal(positions, self._start)
        self._frames.append(self.at, float(self.at), positions, measured)
        self._last = dict.fromkeys(self._last)

    def _positions(self) -> NDArray[Any]:
        """Return a copy of the parameter, (runs, tokens, dim)."""
        value: Any = self._read()
        if not isinstance(value, Tensor) and hasattr(value, "__array__"):  # of JAX or NumPy
            value = torch.from_numpy(np.array(value))
        if not isinstance(value, Tensor) or value.ndim not in (2, 3) or not value.is_floating_point():
            shape = f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
            need, got = "(tokens, dim) or (runs, tokens, dim)", shape or type(value).__name__
            raise InputError(f"parameter must be real numbers of shape {need}, got {got}")
        self._count = int(value.shape[-2])  # before tokens are selected
        wide = torch.float64 if value.dtype == torch.float64 else torch.float32
        array = _numbers("parameter", value, wide)
        if self._tokens is None:
            array = array.copy()
        else:
            array = array[..., chosen_tokens(self._tokens, self._count), :]
        self._runs = len(array) if array.ndim == 3 else None
        return array if array.ndim == 3 else array[None]

    def _values(self, name: str, value: Any) -> NDArray[np.float64]:
        """Return the values (runs, ...) of one observable."""
        raw = _numbers(name, value, torch.float64) if isinstance(value, Tensor) else value
        try:
            array = np.asarray(regular_array(name, raw), np.float64)
        except InputError:
            raise
        except (TypeError, ValueError):
            raise InputError(f"{name} must be numbers, got {type(value).__name__}") from None
        if self._runs is None:
            return array[None]
        if array.ndim == 0 or len(array) != self._runs:
            raise misfit(name, array, f"have the shape ({self._runs}, ...), a row for each run")
        return array


def _require_live(parameter: Any) -> None:
    """Refuse modules, and tensors that were computed from parameters and would never change."""
    if isinstance(parameter, torch.nn.Module):
        matrices = {name: tuple(p.shape) for name, p in parameter.named_parameters() if p.ndim in (2, 3)}
        names = ", ".join(f"{name} of shape {shape}" for name, shape in matrices.items()) or "none"
        got = f"a {type(parameter).__name__} (its matrices: {names})"
        raise InputError(f"parameter must be one parameter of the module, such as module.weight, got {got}")
    if not callable(parameter) and hasattr(parameter, "at") and hasattr(parameter, "__array__"):
        example = "such as lambda: parameters['embedding']"
        raise InputError(f"parameter must be a function for an array of JAX, {example}")
    if isinstance(parameter, Tensor):
        base = parameter if parameter._base is None else parameter._base
        if not (parameter.is_leaf or base.is_leaf):
            need = "a parameter, a view of one, or a function such as lambda: model.weight.T"
            got = f"a copy made by {type(parameter.grad_fn).__name__}, which would never change"
            raise InputError(f"parameter must be {need}, got {got}")


def _numbers(name: str, value: Tensor, kind: torch.dtype) -> NDArray[Any]:
    """Return the numbers of a tensor of any device and layout, such as a sparse one, as an array."""
    try:
        dense = value.detach().to_dense() if value.layout != torch.strided else value.detach()
        return dense.to("cpu", kind).resolve_conj().resolve_neg().numpy()
    except (RuntimeError, TypeError, NotImplementedError):
        what = f"{value.layout} on the device {value.device}"
        raise InputError(f"{name} must be a tensor with values that NumPy can hold, got {what}") from None
