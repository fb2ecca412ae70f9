"""`train`, which trains and records an ensemble, and `Training`, which trains it step by step."""

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.checkpoint import Checkpoint
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batches, draw, part_of
from nets.models import ConstantAttention, Model
from nets.models.model import require_model
from nets.networks import Networks
from nets.observing import TRAINING, Observer
from nets.provenance import described
from nets.settings import RATES, Settings, TrainingSettings
from physics.checks import InputError, file_path, finite_array, flag, short_text, whole_number
from physics.hooks import Callback, Progress, check_hooks, goes_on, shown
from physics.seeds import numbers_of_runs
from physics.trajectory import Trajectory
from physics.trajectory.header import Layout
from physics.trajectory.locks import signals_deferred
from physics.trajectory.recording import FileRecorder, recorder
from physics.trajectory.schedule import recording_steps

BATCH_BYTES = 2**26
"""Memory in bytes for the indices of the examples that are drawn for one piece of the training."""
Function = TypeVar("Function", bound=Callable[..., Any])


def _shows(settings: type[TrainingSettings]) -> Callable[[Function], Function]:
    """Return a decorator by which help and editors show the settings instead of ``**settings``."""

    def decorate(function: Function) -> Function:
        whole = inspect.signature(function)
        stated = [each for each in whole.parameters.values() if each.kind is not each.VAR_KEYWORD]
        keywords = inspect.signature(settings).parameters.values()
        place = next((n for n, each in enumerate(stated) if each.kind is each.KEYWORD_ONLY), len(stated))
        signature = whole.replace(parameters=[*stated[:place], *keywords, *stated[place:]])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


class Training:
    """Train an ensemble step by step, with rates that may be changed on the way.

    Use `train` to train and record in one call, and this class to act between steps. As long as `set_rates`
    is not called and `train` stops no member, both give bit-identical embeddings at each step, however the
    steps are divided among calls of `advance`.

    Parameters
    ----------
    model : Model, optional
        Model to train, by default `ConstantAttention()`.
    **settings
        Settings of the training, from `runs` to `chunk`, as in `train`. A rate or a training fraction that is
        not given is that of the model's paper, ``model.settings``; `settings` then holds it.

    Attributes
    ----------
    settings : nets.settings.TrainingSettings
        All settings, with those of the model's paper where none were given.
    ensemble : nets.engines.ensemble.Ensemble
        Initial parameters of the members, and the training examples of each.
    machine : nets.engines.choice.Engine
        Engine that trains them.
    batch_size : int or None
        Number of examples in each step; None for all.
    step : int
        Number of optimizer steps taken so far.

    Raises
    ------
    InputError
        If an argument has the wrong type or shape, or is out of its range, or the engine cannot train the
        model on the device.

    Examples
    --------
    >>> import nets
    >>> training = nets.Training(seed=3, weight_decay=0.3)
    >>> training.advance(400)
    >>> training.set_rates(weight_decay=1.0)
    >>> training.advance(100)
    >>> training.step, training.embeddings.shape
    (500, (1, 17, 2))
    """

    @_shows(TrainingSettings)
    def __init__(self, model: Model | None = None, **settings: Any) -> None:
        model = require_model(ConstantAttention() if model is None else model)
        self.settings = chosen = TrainingSettings(**settings).of(model)
        self.ensemble = draw(model, **chosen.values())
        frozen = dict.fromkeys(RATES[2:], 0.0) if chosen.freeze_embedding else {}
        self._rates = {name: getattr(chosen, name) for name in RATES} | frozen
        runs, size = self.ensemble.train.shape
        self.batch_size = chosen.batch_size
        if self.batch_size is not None:
            self.batch_size = whole_number("batch_size", self.batch_size, 1, size)
        parts = chosen.engine, self.ensemble, self._optimizer(self._rates)
        where = chosen.dtype, chosen.device, chosen.chunk
        self.machine = choose_engine(*parts, *where, stable_gradient=chosen.stable_gradient)
        self._pace, self.step = 1, 0
        self._most = 10**9 if self.batch_size is None else max(1, BATCH_BYTES // (4 * runs * self.batch_size))

    def __repr__(self) -> str:
        return f"Training({repr(self.model).partition('  #')[0]}, {self.settings})"

    def _optimizer(self, rates: dict[str, Any]) -> Any:
        """Return the checked optimizer with these rates."""
        chosen = self.settings
        fixed: dict[str, Any] = {"betas": chosen.betas, "epsilon": chosen.epsilon, "kind": chosen.optimizer}
        return optimizer_of(self.ensemble.runs, **rates, **fixed)

    @property
    def model(self) -> Model:
        """Model of all members."""
        return self.ensemble.model

    def advance(self, steps: int) -> None:
        """Train all members for some more steps of the optimizer.

        Parameters
        ----------
        steps : int
            Number of steps, at least 1.

        Raises
        ------
        InputError
            If `steps` is not a whole number of at least 1.

        Examples
        --------
        >>> import nets
        >>> training = nets.Training(nets.ConstantAttention(7))
        >>> training.advance(3)
        >>> training.step
        3
        """
        for _ in self.pieces(self.step + whole_number("steps", steps, 1)):
            pass

    def pieces(self, until: int) -> Iterator[int]:
        """Take steps of the optimizer in pieces of about a second, so that the caller can act between them.

        Ctrl-C takes effect at the end of a piece, so that the training may continue from there.

        Parameters
        ----------
        until : int
            Number of steps after which to end, counted from the start of the training. If as many have been
            taken already, nothing is done.

        Yields
        ------
        int
            Number of steps taken so far, after each piece.

        Examples
        --------
        >>> import nets
        >>> training = nets.Training(nets.ConstantAttention(7))
        >>> list(training.pieces(1))
        [1]
        """
        while self.step < until:
            count, began = min(until - self.step, self._pace, self._most), monotonic()
            drawn = batches(self.ensemble, self.batch_size, self.step, count)
            with signals_deferred():  # all members must stand at the step that `step` says
                self.machine.advance(self.step, count, drawn)
                self.step += count
            took = monotonic() - began
            if took > 2.0:
                self._pace = max(1, self._pace // 2)
            elif took < 0.5 and count == self._pace:
                self._pace *= 2
            yield self.step

    def set_rates(self, **rates: Any) -> None:
        """Change learning rates or weight decays for all further steps, and keep the optimizer's moments.

        Parameters
        ----------
        **rates : float or sequence of float, shape (runs,)
            Any of `learning_rate`, `weight_decay`, `embedding_learning_rate` and `embedding_weight_decay`,
            each at least 0. None makes a rate of the embedding equal to that of the layers.

        Raises
        ------
        InputError
            If there is no such rate, or a value is out of range. All previous rates are kept then.

        Examples
        --------
        >>> import nets
        >>> training = nets.Training(nets.ConstantAttention(7), runs=2)
        >>> training.set_rates(learning_rate=[0.01, 0.0])  # one rate for each member
        >>> before = training.embeddings
        >>> training.advance(5)
        >>> (training.embeddings == before).all(axis=(1, 2)).tolist()
        [False, True]
        """
        for name in rates:
            if name not in RATES:
                raise InputError(f"rates must be among {', '.join(RATES)}, got {name!r}")
        self.machine.set_rates(self._optimizer(self._rates | rates))
        self._rates |= rates

    @property
    def embeddings(self) -> NDArray[Any]:
        """Copy of the present embeddings, (runs, tokens, dim), in the number type of the training.

        For a model without an embedding, such as `ImageMLP`, they are the points that `train` records. Where
        there is one, an array of this shape may be assigned: the layers then go on from other embeddings.
        """
        return self.machine.point_sets()

    @embeddings.setter
    def embeddings(self, values: Any) -> None:
        shape = self.ensemble.parameters.get(EMBEDDING, np.empty(0)).shape
        array = finite_array("embeddings", values)
        if array.shape != shape or not array.size:
            raise InputError(f"embeddings must have the shape {shape} of the model, got {array.shape}")
        self.machine.assign(EMBEDDING, array)

    def losses(self, part: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the present loss and accuracy on a set, without a penalty on the embedding.

        Parameters
        ----------
        part : {"train", "validation"}
            Set of examples, the training set or the validation set.

        Returns
        -------
        loss : ndarray of float64, shape (runs,)
            Mean cross-entropy in nats, or mean squared error; NaN if the set is empty.
        accuracy : ndarray of float64, shape (runs,)
            Fraction of correct answers, from 0 to 1; NaN if the set is empty, and without meaning if the loss
            is not finite.

        Raises
        ------
        InputError
            If `part` is neither "train" nor "validation".

        Examples
        --------
        >>> import nets
        >>> loss, accuracy = nets.Training(nets.ConstantAttention(7), runs=3).losses("validation")
        >>> loss.shape, accuracy.shape
        ((3,), (3,))
        """
        return self.machine.losses(part_of(part))

    def networks(self) -> Networks:
        """Return the networks in their present state, with their training and validation sets.

        Returns
        -------
        Networks
            All members, with copies of their parameters.

        Examples
        --------
        >>> import nets
        >>> nets.Training(nets.ConstantAttention(7), runs=3).networks().logits().shape
        (3, 7, 7, 7)
        """
        parameters = self.machine.parameters()
        return Networks(dataclasses.replace(self.ensemble, parameters=parameters), self.settings.dtype)


@_shows(Settings)
def train(
    model: Model | None = None,
    *,
    keep_start: bool = True,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    callback: Callback | None = None,
    progress: Progress = False,
    **settings: Any,
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
    steps : int, optional
        Number of optimizer steps, at least 1. With the full batch, a step is an epoch. By default it is that
        of the model's paper: ``model.settings`` holds the settings of each model that are used where none
        are given, and the trajectory stores those that were used.
    seed : int or numpy.random.SeedSequence, default 0
        Member k, counted from 0, is drawn from the k-th child of the seed, whatever the number of runs. On
        a CPU, the fused engine trains it to the same bits in every ensemble, and PyTorch does with
        ``chunk=1``.
    first_run : int, default 0
        The ensemble holds the members `first_run … first_run + runs - 1` of the seed.
    run_numbers : sequence of int (runs,), optional
        The ensemble holds these members of the seed instead. A number may occur several times, with different
        rates.
    learning_rate, weight_decay : float or sequence (runs,), optional
        Learning rate of the optimizer and decoupled weight decay, both at least 0; by default those of the
        model's paper, such as 0.01 and 1.0 for `ConstantAttention`.
    embedding_learning_rate, embedding_weight_decay : float or sequence (runs,), optional
        The same for the embedding, if they differ from those of the layers (the decoder). By default they are
        those of the model's paper, or, if it states none, equal to those of the layers.
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
    train_fraction : float, optional
        Fraction of all examples to train on, greater than 0; the others are the validation set. By default it
        is that of the model's paper, which is 0.8 for `ConstantAttention`. Only
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
        half of the free memory. PyTorch rounds products of one member differently from those of several
        (1e-7 in float32), so that only with 1 a member has the same bits in every ensemble, on a CPU; small
        networks then train several times more slowly. The fused engine ignores it.
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
        member trains, 1 after it has been stopped, and 2 after its loss or a parameter was found not to be
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
        If the loss or a parameter of a member is not finite.

    Examples
    --------
    >>> import nets
    >>> trained = nets.train(nets.ConstantAttention(7), runs=3, steps=100, record=50)
    >>> trained.positions.shape, trained.observables["train_loss"].shape
    ((3, 3, 7, 2), (3, 3))
    """
    model = require_model(ConstantAttention() if model is None else model)
    chosen = Settings(**settings).of(model)
    stop = chosen.stop
    steps = whole_number("steps", chosen.steps, 1)
    schedule = recording_steps(chosen.record, steps)
    recorded_steps = set(schedule.tolist())
    tracked = range(0, steps + 1, steps if chosen.track is None else whole_number("track", chosen.track, 1))
    events = sorted(recorded_steps | set(tracked))
    if not (stop is None or callable(stop) or (isinstance(stop, str) and stop == "thresholds")):
        raise InputError(f"stop must be 'thresholds', a callable or None, got {short_text(stop)}")
    if stop == "thresholds" and not chosen.thresholds:
        raise InputError("stop must be None or a callable without thresholds, got 'thresholds'")
    check_hooks(callback, progress)
    if out is not None:
        out = file_path("out", out)
    training = Training(model, **chosen.values(TrainingSettings))
    ensemble, machine = training.ensemble, training.machine
    observer = Observer(ensemble, chosen.observables, chosen.thresholds, chosen.delta)
    parameters = described(chosen, machine, ensemble, training.batch_size, observer.names)
    observed = {name: ("<f8", shape) for name, shape in observer.shapes.items()}
    with recorder(
        out,
        Layout(ensemble.runs, model.tokens, model.dim, chosen.dtype, len(schedule), observed),
        parameters,
        start=ensemble.start(chosen.dtype) if flag("keep_start", keep_start) else None,
        packages=("physics", "nets"),
        overwrite=overwrite,
        resume=resume,
    ) as frames:
        recorded = frames.last_step if frames.frames else -1
        checkpoint = None
        if isinstance(frames, FileRecorder):
            checkpoint = Checkpoint(frames, {"engine": machine, "observer": observer})
            restored = None if frames.complete else checkpoint.restore()
            if restored is not None:
                training.step, events = restored, [event for event in events if event > restored]
                machine.stop(observer.status != TRAINING)
        with shown(progress, steps, training.step, "train") as show:
            for event in [] if frames.complete else events:
                for at in training.pieces(event):
                    show(at)
                    if checkpoint is not None and checkpoint.due and at < event:
                        checkpoint.save(at)
                if event not in recorded_steps:
                    observer.check(machine, event)
                else:
                    positions, measured = observer.frame(machine, event)
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
    observer.warn(numbers_of_runs(ensemble.runs, chosen.first_run, chosen.run_numbers))
    return frames.result()
