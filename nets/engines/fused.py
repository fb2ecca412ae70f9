"""The engine for CPUs: one fused kernel computes a step of one member, and each thread has one member."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.engines import kernels
from nets.engines.ensemble import Ensemble, Optimizer
from nets.engines.functions import ACTIVATIONS
from nets.engines.kernels import COMBINE, Examples, Job, Work

TASKS_A_THREAD = 4
"""Number of tasks per thread, so that a thread takes fewer of them if other programs use its core."""


class FusedEngine:
    """Trains an ensemble of dense models in Numba kernels, with results that do not depend on the threads.

    Parameters
    ----------
    ensemble : Ensemble
        Ensemble of a model with an architecture.
    optimizer : Optimizer
        Optimizer and its rates.
    dtype : {"float32", "float64"}
        Number type of the training.
    stable_gradient : bool, default False
        Whether to use `losses.stable_cross_entropy_gradient`, if the loss is the cross-entropy.
    """

    name = "fused"
    device = "cpu"
    chunk = None

    def __init__(
        self, ensemble: Ensemble, optimizer: Optimizer, dtype: str, *, stable_gradient: bool = False
    ) -> None:
        self._ensemble = ensemble
        model, architecture = ensemble.model, ensemble.model.architecture
        assert architecture is not None
        # The kernels count on this order; a file sorts names.
        order = architecture.shapes(0, 0)
        self._places, size = {}, 0
        for name in order:
            count = ensemble.parameters[name][0].size
            self._places[name] = slice(size, size + count)
            size += count
        stacked = [ensemble.parameters[name].reshape(ensemble.runs, -1) for name in order]
        self._parameters = np.concatenate(stacked, axis=1).astype(dtype)
        moments = {name: np.zeros_like(self._parameters) for name in ("first", "second")}
        self._stores = {"parameters": self._parameters, **moments}
        data, neurons = architecture.combine == "data", architecture.combine == "neurons"
        self._sizes = np.array([0, *architecture.sizes] if neurons else architecture.sizes)
        entropy = kernels.STABLE_CROSS_ENTROPY if stable_gradient else kernels.CROSS_ENTROPY
        self._net = kernels.Net(
            COMBINE[architecture.combine],
            ACTIVATIONS[architecture.activation],
            entropy if model.loss == "cross_entropy" else kernels.SQUARED_ERROR,
            0 if data else model.tokens,
            0 if data else model.dim,
            max(self._places[name].stop for name in model.encoder),
            0 if neurons else 1,
            float(model.embedding_penalty),
            float(architecture.even),
        )
        self._each = examples_of(ensemble, ensemble.train, dtype)  # for batches, which name their examples
        together = architecture.combine in ("sum", "neurons")
        self._sets = {
            part: examples_of(ensemble, index, dtype, together=together)
            for part, index in (("train", ensemble.train), ("validation", ensemble.validation))
        }
        self.set_rates(optimizer)
        self._rooms = [self._new_room()]
        self._net = kernels.compiled(Job(self._net, self._sizes, self._each, self._rooms[0]))
        self._training = np.arange(ensemble.runs)

    # -- the interface of an engine ------------------------------------------------------------------------

    def advance(self, step: int, count: int, batches: NDArray[np.int32] | None) -> None:
        """Take `count` optimizer steps after `step` earlier ones, with every member that still trains.

        `batches` (runs, count, size) holds places in the training set; None stands for all examples.
        """
        examples = self._sets["train"] if batches is None else self._each
        batches = np.empty((1, 1, 0), np.int32) if batches is None else batches
        values, first, second = self._stores.values()
        stores, options = (values, first, second), (self._rates, self._betas)

        def compute(members: NDArray[np.int64], job: Job) -> None:
            kernels.train_members(members, stores, job, batches, step, count, options)

        self._spread(self._training, examples, compute)

    def set_rates(self, optimizer: Optimizer) -> None:
        """Use the rates of `optimizer` in all further steps, and keep the moments of the optimizer."""
        self._rates = optimizer.rates
        epsilon = optimizer.epsilon if optimizer.kind == "adamw" else 0.0  # which stands for SGD
        self._betas = np.array([*optimizer.betas, epsilon])

    def losses(self, part: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return loss and accuracy, float64 (runs,) each, on the set `part`: "train" or "validation"."""
        loss, accuracy = np.empty(self._ensemble.runs), np.empty(self._ensemble.runs)

        def compute(members: NDArray[np.int64], job: Job) -> None:
            kernels.evaluate(members, self._parameters, job, loss, accuracy, np.empty(2))

        self._spread(np.arange(self._ensemble.runs), self._sets[part], compute)
        return loss, accuracy

    def gradient(self, name: str) -> NDArray[Any]:
        """Return the gradient (runs, ...) of the full training loss with respect to the parameter `name`."""
        out, batch = np.empty_like(self._parameters), np.empty(0, np.int32)

        def compute(members: NDArray[np.int64], job: Job) -> None:
            for member in members:
                kernels.gradient(member, self._parameters[member], out[member], job, batch)

        self._spread(np.arange(self._ensemble.runs), self._sets["train"], compute)
        return out[:, self._places[name]].reshape(self._ensemble.parameters[name].shape)

    def is_finite(self) -> NDArray[np.bool_]:
        """Return whether all parameters of each member are finite, bool (runs,)."""
        finite: NDArray[np.bool_] = np.isfinite(self._parameters).all(axis=1)
        return finite

    def point_sets(self) -> NDArray[Any]:
        """Return a copy of the point sets that are recorded as positions, (runs, tokens, dim)."""
        if EMBEDDING in self._places:
            return self._copy(EMBEDDING)
        import torch

        model, task = self._ensemble.model, self._ensemble.model.task
        parameters = {name: torch.as_tensor(self._copy(name)).split(1) for name in self._places}
        points = []
        for member, train in enumerate(self._ensemble.train):
            inputs = torch.as_tensor(task.inputs[train][None].astype(self._parameters.dtype))
            examples = inputs, torch.as_tensor(task.labels[train][None])
            points.append(model.point_sets({name: p[member] for name, p in parameters.items()}, examples))
        return torch.cat(points).numpy()

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Return copies of all parameters by name, (runs, ...) each, in the number type of the training."""
        return {name: self._copy(name) for name in self._places}

    def _copy(self, name: str) -> NDArray[Any]:
        """Return a copy of one parameter, (runs, ...)."""
        shape = self._ensemble.parameters[name].shape
        return np.array(self._parameters[:, self._places[name]].reshape(shape))

    def assign(self, name: str, value: NDArray[Any]) -> None:
        """Overwrite one parameter of all members by `value`, (runs, ...), and keep its moments."""
        self._parameters[:, self._places[name]] = value.reshape(len(value), -1)

    def stop(self, members: NDArray[np.bool_]) -> None:
        """End the training of the members for which `members`, bool (runs,), is true."""
        self._training = np.flatnonzero(~members)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of parameters and moments by name, which a resumed run needs."""
        return {name: value.copy() for name, value in self._stores.items()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the parameters and moments that `state` has returned."""
        for name, value in self._stores.items():
            value[:] = state[name]

    # -- implementation ------------------------------------------------------------------------------------

    def _new_room(self) -> Work:
        """Return new working memory, which one task at a time computes in."""
        return kernels.work_for(self._net, self._sizes, self._parameters.shape[1], self._parameters.dtype)

    def _spread(
        self, members: NDArray[np.int64], examples: Examples, task: Callable[[NDArray[np.int64], Job], None]
    ) -> None:
        """Run a task for all members, in pieces that free threads take, each with its own working memory."""

        def work(piece: NDArray[np.int64]) -> None:
            try:
                room = self._rooms.pop()
            except IndexError:
                room = self._new_room()
            task(piece, Job(self._net, self._sizes, examples, room))
            self._rooms.append(room)  # new memory for each task would cost more than a small one

        threads = numba.get_num_threads()
        if threads == 1 or len(members) <= 1:
            work(members)
            return
        pieces = np.array_split(members, min(len(members), TASKS_A_THREAD * threads))
        try:
            for _ in _pool(os.getpid(), threads).map(work, pieces):
                pass
        except BaseException:  # of a signal handler, which may leave the pool in any state
            _pool.cache_clear()
            raise


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return the threads of a process; one that has been forked needs a pool of its own."""
    return ThreadPoolExecutor(threads, "train")


def examples_of(
    ensemble: Ensemble, index: NDArray[np.int64], dtype: str, *, together: bool = False
) -> Examples:
    """Return the examples `index` (runs, n) of an ensemble in a form that kernels can read.

    If `together`, examples that differ only in the order of their tokens become one with a weight: a full
    batch of all p² pairs of p tokens has p (p + 1) / 2 of them.
    """
    task, data = ensemble.model.task, ensemble.model.architecture.combine == "data"  # type: ignore[union-attr]
    inputs = (index[..., None] if data else task.inputs[index]).astype(np.int32)
    labels = task.labels[index].astype(np.int32)
    counts = np.full(len(index), index.shape[1])
    weights = np.ones(index.shape, dtype)
    for run, (pairs, classes) in enumerate(zip(inputs, labels, strict=True) if together else ()):
        rows = np.column_stack([np.sort(pairs, axis=1), classes])
        distinct, occurs = np.unique(rows, axis=0, return_counts=True)
        counts[run] = size = len(distinct)
        inputs[run, :size], labels[run, :size] = distinct[:, :2], distinct[:, 2]
        weights[run, :size] = occurs
    targets = np.empty((ensemble.runs, 0, 0)) if ensemble.targets is None else ensemble.targets
    images = task.inputs.astype(dtype) if data else np.empty((0, 0), dtype)
    return Examples(inputs, labels, weights, counts, index.shape[1], images, targets.astype(dtype))
