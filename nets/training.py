"""`train`, which trains an ensemble, records it, and stops each member by a rule."""

import os
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from numpy.typing import NDArray

from nets.checkpoint import Checkpoint
from nets.models import Model
from nets.observing import LOSSES, TRAINING, Observer, checked_names, checked_thresholds
from nets.provenance import described
from nets.recording import recording_steps
from nets.stepping import Training
from physics.checks import flag, number, whole_number
from physics.errors import InputError
from physics.hooks import Callback, Progress, check_hooks, goes_on, shown
from physics.seeds import Seed, numbers_of_runs
from physics.trajectory import Trajectory
from physics.trajectory.header import Layout
from physics.trajectory.recording import recorder
from physics.trajectory.writer import FileRecorder

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
    optimizer: str = "adamw",
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
    stable_gradient: bool = False,
    engine: str = "auto",
    device: str = "auto",
    chunk: int | None = None,
    keep_start: bool = True,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    callback: Callback | None = None,
    progress: Progress = False,
) -> Trajectory:
    """Train an ensemble of networks with AdamW or SGD, and record how their embeddings move.

    Members differ in their seed: embedding, layers, training set, targets and noise are drawn for each member
    from separate random streams. Rates and scales may differ too: each is one number, or a sequence with one
    number for each member. A model without an embedding, such as `ImageMLP`, uses the rates of the embedding
    for the layers that its attribute `encoder` names.

    Parameters
    ----------
    model : Model, optional
        What to train; it may be a `nets.Model` of your own. By default it is `ConstantAttention()`, the model
        of Musat §3.
    runs : int, default 1
        Number of members, at least 1.
    steps : int, default 2000
        Number of optimizer steps, at least 1. With the full batch, a step is an epoch.
    seed : int or numpy.random.SeedSequence, default 0
        Member k, counted from 0, is drawn from the k-th child of the seed, whatever the number of runs.
    first_run : int, default 0
        The ensemble holds the members `first_run … first_run + runs - 1` of the seed.
    run_numbers : sequence of int (runs,), optional
        The ensemble holds these members of the seed instead. A number may occur several times, with different
        rates.
    learning_rate, weight_decay : float or sequence (runs,), default 0.01 and 1.0
        Learning rate of the optimizer and decoupled weight decay, both at least 0.
    embedding_learning_rate, embedding_weight_decay : float or sequence (runs,), optional
        The same for the embedding, if they differ from those of the layers (the decoder).
    freeze_embedding : bool, default False
        Whether to keep the initial embedding. Its rates must be left out then.
    betas : pair of float, default (0.9, 0.999)
        Decay rates of the moments of AdamW, at least 0 and less than 1.
    epsilon : float, default 1e-8
        Constant ε of AdamW, greater than 0.
    optimizer : {"adamw", "sgd"}, default "adamw"
        "sgd" is gradient descent without moments, for which `betas` and `epsilon` have no effect.
    batch_size : int, optional
        Number of examples in each step; batches are drawn again in each epoch. By default each step uses all
        training examples.
    train_fraction : float, default 0.8
        Fraction of all examples to train on, greater than 0; the others are the validation set. Only
        `TwoLayer`, and tasks of your own with ``whole=True``, may leave none. A test set that comes with the
        data is the validation set instead, and the fraction refers to the remaining examples.
    train_examples, validation_examples : sequence of int, optional
        Indices of the examples on which all members train or validate instead. By default the members
        validate on the test set of the data, if it has one, or else on all other examples.
    shared : sequence of str, default ()
        Streams that all members draw from the first child of the seed instead of their own: "embedding",
        "layers", "split", "targets", "noise". With ``("embedding",)`` only the initial embedding is the same.
    initial : mapping of str to array, optional
        Initial parameters to use instead of drawn ones, such as ``{"embedding": E}``. Each has the shape of
        one member's parameter, or a first axis of length `runs` before it.
    layer_scale, embedding_scale : float or sequence (runs,), default 1.0
        Factors by which the drawn layers and the drawn embedding are multiplied, greater than 0. `initial` is
        not scaled.
    record : int, str or sequence of int, default 20
        When to record: every k-th step, ``"log:n"`` for about n steps a decade, ``"1:100,50"`` for every step
        up to 100 and then every fiftieth, or a list of steps; see `recording_steps`.
    observables : sequence of str
        What to record besides the embeddings. The default is "train_loss", "train_accuracy",
        "validation_loss" and "validation_accuracy". Every model also has "layers" (all parameters except the
        embedding, for `networks`). Models with an embedding have "gradient" (of the training loss with
        respect to it), and those that learn an operation have "quality" (representation quality index).
        Models with a hidden dense layer have "weight_norm" and "bias_norm" (mean absolute value in the first
        one, Musat Fig. 6). Models that learn modular addition by cross-entropy have "restricted_loss" and
        "excluded_loss" (on all pairs and on training pairs, by the key frequencies of the step; see
        `analysis.restricted_loss`). Those of them with dense layers, unlike transformers, also have
        "neuron_frequency" and "neuron_purity" (of each neuron of the first layer; see
        `analysis.neuron_spectrum`).
    thresholds : mapping of str to float, optional
        Thresholds, from 0 to 1, of "train_accuracy", "validation_accuracy" or "quality". The first checked
        step at or above the value is recorded as ``steps_to_<name>``, which is NaN before that step and if it
        is never reached.
    track : int, optional
        Number of steps from one check of the thresholds to the next. They are also checked at every recorded
        step and at step 0. By default they are otherwise checked only after the last step.
    delta : float, default 0.01
        Tolerance of "quality", greater than 0; see `physics.representation_quality`.
    stop : "thresholds" or callable, optional
        When to stop a member: when it has reached all thresholds, or when ``stop(step, embeddings,
        observables)`` returns True for it (shape (runs,)) at a recorded step. It then no longer changes, and
        the others continue. A rule should only use its arguments, because in a resumed run it is only called
        for the steps since the checkpoint.
    dtype : {"float32", "float64"}, default "float32"
        Number type of the training and of the recorded embeddings.
    stable_gradient : bool, default False
        Whether to compute the gradient of the cross-entropy without cancellation. By default, 1 is subtracted
        from the probability of the right class, as PyTorch does it. In float32 this gradient is rounding once
        the loss is near 1e-7; in long trainings the loss then jumps up again (see `docs/findings.md`). A
        squared error does not change.
    engine : {"auto", "fused", "torch"}, default "auto"
        "fused" runs compiled kernels on a CPU, one member in each thread, for models that have an
        architecture. "torch" runs PyTorch with all members as one batch. "auto" is "fused" if the model and
        the device allow it. The results of the two engines differ by rounding.
    device : str, default "auto"
        "cpu", a CUDA device such as "cuda" or "cuda:1", or "auto", which is CUDA if it is available.
    chunk : int, optional
        Number of members whose activations PyTorch holds at the same time, by default as many as fit into
        half of the free memory. The fused engine ignores it.
    keep_start : bool, default True
        Whether to keep the initial state of each member in `Trajectory.start`: its parameters
        ("parameter.NAME"), "train_examples", "validation_examples" and, under a squared error, "targets".
        Without it they can be drawn again from the seed, as long as NumPy draws the same numbers.
    out : path, optional
        File to stream the trajectory to; it is called ``out.partial`` until it is complete. By default the
        trajectory stays in memory.
    overwrite : bool, default False
        Whether to replace an existing or unfinished file.
    resume : bool, default False
        Whether to continue the unfinished ``out.partial`` of the same configuration, or to return a complete
        `out` of it. Without either file, the run starts from its beginning. The result is bit-identical to
        that of an uninterrupted run.
    callback : callable, optional
        Function that is called as ``callback(step, time, positions, observables)`` after each recorded frame,
        with its embeddings and its observables, which must not be changed. If it raises `StopIteration`, the
        training ends.
    progress : bool or callable, default False
        Whether to show a progress bar on stderr if that is a terminal; or a function that is called as
        ``progress(done, total)`` with numbers of steps about once a second.

    Returns
    -------
    Trajectory
        `positions` (runs, frames, tokens, dim) are the embeddings at the recorded steps; a model without an
        embedding, such as `ImageMLP`, defines its own. The observables (runs, frames, ...) belong to the same
        parameters. Losses are in nats or mean squares, and accuracies are fractions. `status` is 0 while a
        member trains, 1 after it has been stopped, and 2 after its loss or its embedding was found not to be
        finite. The positions and measured values of such a diverged member are NaN.

    Raises
    ------
    InputError
        If an argument is invalid, if the run to resume has another configuration, or if `stop` returns
        another shape. Nothing is written, except in this last case.
    OutputError
        If `out` exists or cannot be written.
    FileFormatError
        If a run is resumed, and its checkpoint or its unfinished file is damaged.

    Warns
    -----
    RuntimeWarning
        If the loss or the embedding of a member is not finite.

    Examples
    --------
    >>> import nets
    >>> trained = nets.train(nets.ConstantAttention(7), runs=3, steps=100, record=50)
    >>> trained.positions.shape, trained.observables["train_loss"].shape
    ((3, 3, 7, 2), (3, 3))
    """
    given = dict(locals())
    steps = whole_number("steps", steps, 1)
    schedule = recording_steps(record, steps)
    chosen = set(schedule.tolist())
    tracked = range(0, steps + 1, steps if track is None else whole_number("track", track, 1))
    events = sorted(chosen | set(tracked))
    delta = number("delta", delta, above=0.0)
    if stop is not None and stop != "thresholds" and not callable(stop):
        raise InputError(f"stop must be 'thresholds', a callable or None, got {stop!r}")
    if stop == "thresholds" and not thresholds:
        raise InputError("stop 'thresholds' (--stop-at-thresholds) needs thresholds (--threshold), got none")
    check_hooks(callback, progress)
    training = Training(**{name: given[name] for name in signature(Training).parameters})
    model, ensemble, machine = training.model, training.ensemble, training.machine
    names = checked_names(observables, ensemble)
    observer = Observer(ensemble, names, checked_thresholds(thresholds, ensemble), delta)
    parameters = described(given, training.machine, ensemble, training.batch_size, names)
    observed = {name: ("<f8", shape) for name, shape in observer.shapes.items()}
    with recorder(
        out,
        Layout(ensemble.runs, model.tokens, model.dim, dtype, len(schedule), observed),
        parameters,
        start=ensemble.start(dtype) if flag("keep_start", keep_start) else None,
        packages=("physics", "nets"),
        overwrite=overwrite,
        resume=resume,
    ) as frames:
        recorded = frames.last_step if frames.frames else -1
        checkpoint = restored = None
        if out is not None and isinstance(frames, FileRecorder):
            checkpoint = Checkpoint(out, frames, {"engine": machine, "observer": observer})
            restored = None if frames.complete else checkpoint.restore()
        if restored is not None:
            training.step = restored
            machine.stop(observer.status != TRAINING)
        with shown(progress, steps, training.step, "train") as show:
            for event in [] if frames.complete else events:
                if restored is not None and event <= restored:
                    continue
                for at in training.pieces(event):
                    show(at)
                    if checkpoint is not None and checkpoint.due and at < event:
                        checkpoint.save(at)
                measured = observer.measure(machine, event, all_names=event in chosen)
                if event in chosen:
                    positions = observer.masked(machine.point_sets())
                    for array in (positions, *measured.values()):
                        array.setflags(write=False)  # so that a rule that changes them raises an error
                    if event > recorded:
                        frames.append(event, float(event), positions, measured)
                    if callable(stop):
                        observer.end(stop(event, positions, measured))
                    if event > recorded and not goes_on(callback, event, float(event), positions, measured):
                        break
                if stop == "thresholds":
                    observer.end(observer.all_reached)
                machine.stop(observer.status != TRAINING)
                if checkpoint is not None and checkpoint.due and 0 < event < steps:
                    checkpoint.save(event)
    if checkpoint is not None:
        checkpoint.remove()
    observer.warn(numbers_of_runs(ensemble.runs, first_run, run_numbers))
    return frames.result()
