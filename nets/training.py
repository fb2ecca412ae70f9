"""`train`: an ensemble of networks as one program."""

import hashlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from nets.checkpoint import Checkpoint
from nets.engines.choice import choose_engine, optimiser
from nets.engines.ensemble import PARAMETER, Ensemble, batch_size_of, batches, draw
from nets.models import ConstantAttention, Model
from nets.observing import (
    DIVERGED,
    LOSSES,
    TRAINING,
    Engine,
    Observer,
    checked_names,
    checked_thresholds,
)
from nets.recording import recording_steps
from physics.checks import number, whole_number
from physics.errors import InputError
from physics.seeds import Seed, describe_seed, numbers_of_runs, parent_seed
from physics.trajectory import Trajectory
from physics.trajectory.layout import Layout
from physics.trajectory.provenance import fields, plain
from physics.trajectory.recording import Recorder, recorder

BATCH_BYTES = 2**26
PER_RUN = (
    "run_numbers",
    "learning_rate",
    "weight_decay",
    "embedding_learning_rate",
    "embedding_weight_decay",
    "layer_scale",
    "embedding_scale",
    "unseen_classes",
)
"""Parameters that may hold an item for each run."""
StopRule = Callable[[int, NDArray[Any], Mapping[str, NDArray[Any]]], Any]


def train(
    model: Model | None = None,
    *,
    runs: int = 1,
    steps: int = 2000,
    seed: Seed = 0,
    first_run: int = 0,
    run_numbers: Sequence[int] | None = None,
    learning_rate: float | Sequence[float] = 0.01,
    weight_decay: float | Sequence[float] = 1.0,
    embedding_learning_rate: float | Sequence[float] | None = None,
    embedding_weight_decay: float | Sequence[float] | None = None,
    freeze_embedding: bool = False,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    batch_size: int | None = None,
    train_fraction: float = 0.8,
    train_examples: Any = None,
    validation_examples: Any = None,
    shared: Sequence[str] = (),
    initial: Mapping[str, Any] | None = None,
    layer_scale: float | Sequence[float] = 1.0,
    embedding_scale: float | Sequence[float] = 1.0,
    record: int | str | Sequence[int] = 20,
    observables: Sequence[str] = LOSSES,
    thresholds: Mapping[str, float] | None = None,
    track: int | None = None,
    delta: float = 0.01,
    stop: str | StopRule | None = None,
    dtype: str = "float32",
    engine: str = "auto",
    device: str = "auto",
    chunk: int | None = None,
    keep_start: bool = True,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = False,
) -> Trajectory:
    """Train an ensemble of networks with AdamW, and record their embeddings.

    Members differ in their seed: embedding, layers, training set, targets and noise are drawn anew for each,
    from streams of their own. Rates and scales may differ too: each takes a number, or one for each member.

    Parameters
    ----------
    model : Model, optional
        The architecture; `ConstantAttention()`, that of Musat §3, by default.
    runs : int, default 1
        Number of members R, at least 1.
    steps : int, default 2000
        Number of optimiser steps (epochs, where the batch is full), at least 1.
    seed : int or numpy.random.SeedSequence, default 0
        Member k is drawn from the k-th child of the seed, whatever the number of runs.
    first_run : int, default 0
        The ensemble holds the members `first_run … first_run + runs - 1` of the seed.
    run_numbers : sequence of int (runs,), optional
        The ensemble holds these members of the seed instead; a number may come again, with other rates.
    learning_rate, weight_decay : float or sequence (runs,), default 0.01 and 1.0
        AdamW's rate, at least 0, and decoupled weight decay, at least 0.
    embedding_learning_rate, embedding_weight_decay : float or sequence (runs,), optional
        Those of the embedding, where they differ from those of the layers (the decoder).
    freeze_embedding : bool, default False
        Keep the embedding as it begins.
    betas : pair of float, default (0.9, 0.999)
        Decay rates of AdamW's moments, at least 0 and less than 1.
    epsilon : float, default 1e-8
        AdamW's ε, greater than 0.
    batch_size : int, optional
        Examples of a step, drawn anew each epoch; all by default.
    train_fraction : float, default 0.8
        Part of all examples to train on; the rest validates.
    train_examples, validation_examples : sequence of int, optional
        Train all members on these examples of the task, by number, instead; the rest validates if not named.
    shared : sequence of str, default ()
        Streams that all members draw from the first child of the seed instead of their own: of "embedding",
        "layers", "split", "targets", "noise". With ``("embedding",)`` one embedding meets fresh layers.
    initial : mapping of str to array, optional
        Parameters to begin with instead of drawn ones, of one member or of all: ``{"embedding": E}``.
    layer_scale, embedding_scale : float or sequence (runs,), default 1.0
        Factors of the drawn layers and of the drawn embedding, greater than 0.
    record : int, str or sequence of int, default 20
        When to record; see `recording_steps`.
    observables : sequence of str
        What to record beside the embeddings: "train_loss", "train_accuracy", "validation_loss",
        "validation_accuracy" (the default), "weight_norm" and "bias_norm" (mean absolute value of the first
        hidden layer, Musat Fig. 6), "quality" (representation quality index), "gradient" (of the training
        loss by the embedding), "layers" (all other parameters, so that `networks` revives the networks).
    thresholds : mapping of str to float, optional
        Of "train_accuracy", "validation_accuracy", "quality": the first step at or above the value is
        recorded as ``steps_to_<name>``, NaN before it and where it is never reached.
    track : int, optional
        Look at the thresholds every so many steps, besides the recorded ones.
    delta : float, default 0.01
        Tolerance of "quality"; see `physics.representation_quality`.
    stop : "thresholds" or callable, optional
        When a member has come to its end: when it has reached all thresholds, or where
        ``stop(step, embeddings, observables)`` returns True (shape (runs,)) at a recorded step. It then
        stays as it is, and the others go on undisturbed. A rule should answer from what it is given: of a
        resumed run it sees only the steps since the checkpoint.
    dtype : {"float32", "float64"}, default "float32"
        Number type of the training and of the recorded embeddings.
    engine : {"auto", "fused", "torch"}, default "auto"
        "fused": compiled kernels on a CPU, one member a thread, for models that have an architecture;
        "torch": PyTorch, all members as one batch; "auto": fused where it can be. They differ by rounding.
    device : str, default "auto"
        "cpu", "cuda", or "auto": CUDA where there is one.
    chunk : int, optional
        Members whose activations PyTorch holds at the same time; by default what fits.
    keep_start : bool, default True
        Keep in `Trajectory.start` what each member began with: its parameters ("parameter.NAME"),
        "train_examples", "validation_examples" and, under a squared error, "targets". Without it they can be
        drawn again from the seed, as long as NumPy draws the same numbers.
    out, overwrite, progress
        As in `physics.simulate`.
    resume : bool, default False
        Go on with the unfinished ``out.partial`` of the same configuration, from its last checkpoint, to the
        same bits that the undisturbed run would have had. A run that is complete already is returned as it
        is.

    Returns
    -------
    Trajectory
        `positions` (runs, frames, tokens, dim) are the embeddings after that many steps; the observables
        (runs, frames, ...) belong to the same parameters. Losses are in nats or mean squares, accuracies are
        fractions. `status` is 0 while a member trains, 1 once it has been stopped, 2 once its loss was not
        finite; the frames of a diverged member hold NaN.

    Raises
    ------
    InputError
        If an argument is not of that kind; nothing is written then.
    OutputError
        If `out` exists or cannot be written.

    Warns
    -----
    RuntimeWarning
        If the loss of a member is not finite; the others are not affected.
    """
    model = ConstantAttention() if model is None else model
    if not isinstance(model, Model):
        raise InputError(f"model must be a model such as ConstantAttention(), got {type(model).__name__}")
    runs = whole_number("runs", runs, 1)
    steps = whole_number("steps", steps, 1)
    parent_seed(seed)
    schedule = recording_steps(record, steps)
    delta = number("delta", delta, above=0.0)
    if stop is not None and stop != "thresholds" and not callable(stop):
        raise InputError(f"stop must be 'thresholds', a callable or None, got {stop!r}")
    if stop == "thresholds" and not thresholds:
        raise InputError("stop 'thresholds' needs thresholds, got none")
    ensemble = draw(
        model,
        runs=runs,
        seed=seed,
        first_run=first_run,
        run_numbers=run_numbers,
        train_fraction=train_fraction,
        train_examples=train_examples,
        validation_examples=validation_examples,
        shared=shared,
        initial=initial,
        layer_scale=layer_scale,
        embedding_scale=embedding_scale,
    )
    settings = optimiser(
        runs,
        learning_rate,
        weight_decay,
        0.0 if freeze_embedding else embedding_learning_rate,
        0.0 if freeze_embedding else embedding_weight_decay,
        betas,
        epsilon,
    )
    batch_size = batch_size_of(batch_size, ensemble.train.shape[1])
    observables = checked_names(observables, ensemble)
    observer = Observer(ensemble, observables, checked_thresholds(thresholds, ensemble), delta)
    machine = choose_engine(engine, ensemble, settings, dtype, device, chunk)
    parameters: dict[str, Any] = {
        "program": "nets.train",
        "model": {"type": type(model).__name__, **fields(model)},
        "runs": runs,
        "steps": steps,
        "seed": describe_seed(seed),
        "first_run": first_run,
        "run_numbers": None if run_numbers is None else [int(number) for number in run_numbers],
        "learning_rate": plain(learning_rate),
        "weight_decay": plain(weight_decay),
        "embedding_learning_rate": plain(embedding_learning_rate),
        "embedding_weight_decay": plain(embedding_weight_decay),
        "freeze_embedding": bool(freeze_embedding),
        "betas": plain(betas),
        "epsilon": epsilon,
        "batch_size": batch_size,
        "train_fraction": train_fraction,
        "train_examples": plain(train_examples),
        "validation_examples": plain(validation_examples),
        "shared": plain(shared),
        "initial": {name: _digest(value) for name, value in (initial or {}).items()},
        "layer_scale": plain(layer_scale),
        "embedding_scale": plain(embedding_scale),
        "record": record if isinstance(record, int | str) else [int(step) for step in record],
        "observables": list(observables),
        "thresholds": dict(thresholds or {}),
        "track": track,
        "delta": delta,
        "stop": getattr(stop, "__name__", "callable") if callable(stop) else stop,
        "not_stored": ["stop"] if callable(stop) else [],
        "dtype": dtype,
        "engine": machine.name,
        "device": str(getattr(machine, "_device", "cpu")),
        "chunk": getattr(machine, "_chunk", None),
        "unseen_classes": ensemble.unseen_classes,
    }
    parameters["per_run"] = [name for name in PER_RUN if isinstance(parameters[name], list)]
    chosen = set(schedule.tolist())
    if track is not None:
        track = whole_number("track", track, 1)
    events = sorted(chosen | set(range(0, steps + 1, track or steps)))
    observed = {name: ("<f8", shape) for name, shape in observer.shapes.items()}
    layout = Layout(runs, model.tokens, model.dim, dtype, len(schedule), observed)
    checkpoint = None if out is None else Checkpoint(out, parameters)
    start = _start(ensemble, dtype) if keep_start else None
    with (
        recorder(
            out,
            layout,
            parameters,
            start=start,
            packages=("physics", "nets"),
            overwrite=overwrite,
            resume=resume,
        ) as frames,
        tqdm(total=steps, unit="step", desc="train", disable=None if progress else True) as bar,
    ):
        recorded = frames.last_step if frames.frames else -1
        at = None if checkpoint is None else _restored(checkpoint, machine, observer, schedule, recorded)
        events = [event for event in events if (at is None or event > at) and not frames.complete]
        at = at or 0
        bar.update(at)
        pace = _Pace(ensemble, batch_size)
        for event in events:
            while at < event:
                count = pace.steps(event - at)
                machine.advance(at, count, batches(ensemble, batch_size, at, count))
                at += count
                bar.update(count)
                if checkpoint is not None and checkpoint.due and at < event:
                    _save(checkpoint, at, machine, observer, frames)
            measured = observer.measure(machine, at, all_names=at in chosen)
            if at in chosen:
                positions = observer.masked(machine.point_sets())
                if at > recorded:
                    frames.append(at, float(at), positions, **measured)
                if callable(stop):
                    for array in (positions, *measured.values()):
                        array.setflags(write=False)  # a rule that changes them has an error
                    observer.end(stop(at, positions, measured))
            if stop == "thresholds":
                observer.end(observer.all_reached)
            machine.stop(observer.status != TRAINING)
            if checkpoint is not None and checkpoint.due and 0 < at < steps:
                _save(checkpoint, at, machine, observer, frames)
    if checkpoint is not None:
        checkpoint.remove()
    _warn(observer, numbers_of_runs(runs, first_run, run_numbers))
    return frames.result()


class _Pace:
    """How many steps to take at once: about a second's work, and a bounded number of drawn batches."""

    def __init__(self, ensemble: Ensemble, batch_size: int | None) -> None:
        self._most = 10**9 if batch_size is None else max(1, BATCH_BYTES // (4 * ensemble.runs * batch_size))
        self._count, self._given, self._began = 1, 1, monotonic()

    def steps(self, left: int) -> int:
        """Return the next number of steps, at most `left`; to be asked once they are to begin."""
        took, self._began = monotonic() - self._began, monotonic()
        if took > 2.0:
            self._count = max(1, self._count // 2)
        elif took < 0.5 and self._given == self._count:
            self._count *= 2
        self._given = min(left, self._count, self._most)
        return self._given


def _restored(
    checkpoint: Checkpoint, machine: Engine, observer: Observer, schedule: NDArray[np.int64], recorded: int
) -> int | None:
    """Go back to the last checkpoint, and return its step.

    None where there is none, or where it is older than this run or newer than the frames on disk: the run is
    then repeated from its start, to the same bits, and only frames that are missing are added.
    """
    if recorded < 0:
        checkpoint.remove()
        return None
    found = checkpoint.read()
    if found is None or recorded < schedule[schedule <= found[0]].max(initial=-1):
        return None
    step, state = found
    machine.restore({name[7:]: value for name, value in state.items() if name.startswith("engine/")})
    observer.restore({name[9:]: value for name, value in state.items() if name.startswith("observer/")})
    machine.stop(observer.status != TRAINING)
    return step


def _save(checkpoint: Checkpoint, step: int, machine: Engine, observer: Observer, frames: Recorder) -> None:
    """Write a checkpoint, after the frames that come before it."""
    frames.flush()
    engine = {f"engine/{name}": value for name, value in machine.state().items()}
    checkpoint.write(step, engine | {f"observer/{name}": v for name, v in observer.state().items()})


def _warn(observer: Observer, numbers: Sequence[int]) -> None:
    diverged = np.flatnonzero(observer.status == DIVERGED)
    if len(diverged):
        warnings.warn(
            f"{len(diverged)} of {len(observer.status)} runs diverged: the training loss of run "
            f"{', '.join(str(numbers[run]) for run in diverged[:10])} is not finite; try a smaller "
            "learning_rate",
            RuntimeWarning,
            stacklevel=3,
        )


def _start(ensemble: Ensemble, dtype: str) -> dict[str, NDArray[Any]]:
    """What the members begin with; NumPy does not promise to draw the same numbers in later versions."""
    start: dict[str, NDArray[Any]] = {
        f"{PARAMETER}{name}": value.astype(dtype) for name, value in ensemble.parameters.items()
    }
    start |= {"train_examples": ensemble.train, "validation_examples": ensemble.validation}
    return start if ensemble.targets is None else start | {"targets": ensemble.targets}


def _digest(value: Any) -> str:
    """Fingerprint of a given start, so that a resumed run has the same one."""
    array = np.ascontiguousarray(value, dtype=np.float64)
    return "sha256:" + hashlib.sha256(array.tobytes()).hexdigest()
