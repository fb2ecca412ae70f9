"""`Training`, which trains an ensemble step by step."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import batch_size_of, batches, draw, part_of
from nets.models import ConstantAttention, Model
from nets.networks import Networks
from nets.provenance import RATES
from physics.checks import flag, whole_number
from physics.errors import InputError
from physics.seeds import Seed
from physics.trajectory.locks import signals_deferred

BATCH_BYTES = 2**26
"""Memory in bytes for the indices of the examples that are drawn for one piece of the training."""


class Training:
    """Train an ensemble step by step, with rates that may be changed on the way.

    Use `train` to train and record in one call, and this class to act between steps. As long as `set_rates`
    is not called and `train` stops no member, both give bit-identical embeddings at each step, however the
    steps are divided among calls of `advance`.

    Parameters
    ----------
    model : Model, optional
        Model to train, by default `ConstantAttention()`.
    runs : int, default 1
        Number of members, at least 1.
    seed : int or numpy.random.SeedSequence, default 0
        Member k, counted from 0, is drawn from the k-th child of the seed, whatever the number of runs.
    first_run : int, default 0
        Number of the first member in the seed.
    run_numbers : sequence of int (runs,), optional
        Number of each member in the seed, in place of ``first_run, first_run + 1, …``.
    learning_rate, weight_decay : float or sequence (runs,), default 0.01 and 1.0
        Initial learning rate and decoupled weight decay, both at least 0: one number, or one for each member.
    embedding_learning_rate, embedding_weight_decay : float or sequence (runs,), optional
        The same for the embedding, if they differ from those of the layers.
    freeze_embedding : bool, default False
        Whether to keep the initial embedding. Its rates must be left out then.
    betas : pair of float, default (0.9, 0.999)
        Decay rates of the moments of AdamW, at least 0 and less than 1.
    epsilon : float, default 1e-8
        Constant ε of AdamW, greater than 0.
    optimizer : {"adamw", "sgd"}, default "adamw"
        Optimizer; "sgd" is gradient descent without moments.
    batch_size : int, optional
        Number of examples in each step; by default each step uses all training examples.
    train_fraction : float, default 0.8
        Fraction of all examples to train on, greater than 0; the others are the validation set. See `train`
        for tasks with a test set, and for tasks that may be trained on as a whole.
    train_examples, validation_examples : sequence of int, optional
        Indices of the examples on which all members train or validate instead.
    shared : sequence of str, default ()
        Random streams that all members have in common: "embedding", "layers", "split", "targets", "noise".
    initial : mapping of str to array, optional
        Initial parameters by name, to use instead of drawn ones. Each has the shape of one member's
        parameter, or a first axis of length `runs` before it.
    layer_scale, embedding_scale : float or sequence (runs,), default 1.0
        Factors by which the drawn layers and the drawn embedding are multiplied, greater than 0.
    dtype : {"float32", "float64"}, default "float32"
        Number type of the training.
    stable_gradient : bool, default False
        Whether to compute the gradient of the cross-entropy without cancellation; see `train`.
    engine : {"auto", "fused", "torch"}, default "auto"
        Engine that trains; "auto" is "fused" if the model and the device allow it.
    device : str, default "auto"
        "cpu", a CUDA device such as "cuda" or "cuda:1", or "auto", which is CUDA if it is available.
    chunk : int, optional
        Number of members whose activations PyTorch holds at the same time, by default as many as fit into
        half of the free memory. The fused engine ignores it.

    Attributes
    ----------
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

    def __init__(
        self,
        model: Model | None = None,
        *,
        runs: int = 1,
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
        dtype: str = "float32",
        stable_gradient: bool = False,
        engine: str = "auto",
        device: str = "auto",
        chunk: int | None = None,
    ) -> None:
        model = ConstantAttention() if model is None else model
        given = dict(locals())
        self.ensemble = draw(**{name: given[name] for name in signature(draw).parameters})
        self._fixed: dict[str, Any] = {"betas": betas, "epsilon": epsilon, "kind": optimizer}
        self._rates = {name: given[name] for name in RATES}
        if flag("freeze_embedding", freeze_embedding):
            for name in RATES[2:]:
                if self._rates[name] is not None:
                    raise InputError(
                        f"{name} must be left out if freeze_embedding keeps the initial embedding, "
                        f"got {self._rates[name]!r}"
                    )
                self._rates[name] = 0.0
        runs = self.ensemble.runs
        settings = optimizer_of(runs, **self._rates, **self._fixed)
        self.batch_size = batch_size_of(batch_size, self.ensemble.train.shape[1])
        self.machine = choose_engine(
            engine, self.ensemble, settings, dtype, device, chunk, stable_gradient=stable_gradient
        )
        self._dtype, self._pace, self.step = dtype, 1, 0
        self._most = 10**9 if self.batch_size is None else max(1, BATCH_BYTES // (4 * runs * self.batch_size))

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
        self.machine.set_rates(optimizer_of(self.ensemble.runs, **(self._rates | rates), **self._fixed))
        self._rates |= rates

    @property
    def embeddings(self) -> NDArray[Any]:
        """Copy of the present embeddings, (runs, tokens, dim), in the number type of the training.

        For a model without an embedding, such as `ImageMLP`, they are the points that `train` records.
        """
        return self.machine.point_sets()

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
        return Networks(dataclasses.replace(self.ensemble, parameters=parameters), self._dtype)
