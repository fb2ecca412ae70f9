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
from nets.engines.products import padded, room

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
        data, neurons = architecture.combine == "data", architecture.combine == "neurons"
        sizes = np.array([0, *architecture.sizes] if neurons else architecture.sizes)
        pitches = np.array([padded(width, dtype) for width in sizes])
        pitches[0] = architecture.sizes[0] if data else padded(model.dim, dtype)
        self._places, end = {}, 0
        for name in architecture.shapes(0, 0):  # in the order of the kernels; a file sorts names
            rows, width = ensemble.parameters[name].shape[1:]
            start, end = end, end + rows * padded(width, dtype)
            self._places[name] = slice(start, end), rows, width
        self._stores = {name: room((ensemble.runs, end), dtype) for name in ("parameters", "first", "second")}
        self._parameters = self._stores["parameters"]
        for name, value in ensemble.parameters.items():
            self._part(self._parameters, name)[:] = value
        starts = [0] * neurons + [self._places[f"{layer}.weight"][0].start for layer in architecture.layers]
        entropy = kernels.STABLE_CROSS_ENTROPY if stable_gradient else kernels.CROSS_ENTROPY
        self._net = kernels.Net(
            sizes,
            pitches,
            np.array(starts),
            COMBINE[architecture.combine],
            entropy if model.loss == "cross_entropy" else kernels.SQUARED_ERROR,
            0 if data else model.tokens,
            0 if data else model.dim,
            max(self._places[name][0].stop for name in model.encoder),
            1 if architecture.biases and not neurons else 0,
            float(model.embedding_penalty),
            float(architecture.even),
            architecture.projector(model.tokens).astype(dtype),
        )
        self._each = examples_of(ensemble, ensemble.train, dtype)  # for batches, which name their examples
        together = architecture.combine in ("sum", "neurons")
        self._sets = {
            part: examples_of(ensemble, index, dtype, together=together)
            for part, index in (("train", ensemble.train), ("validation", ensemble.validation))
        }
        self.set_rates(optimizer)
        self._rooms = [self._new_room()]
        job = Job(self._net, self._each, self._rooms[0])
        self._net = kernels.compiled(job, ACTIVATIONS[architecture.activation])
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
            kernels.evaluate(members, self._parameters, job, loss, accuracy)

        self._spread(np.arange(self._ensemble.runs), self._sets[part], compute)
        return loss, accuracy

    def gradient(self, name: str) -> NDArray[Any]:
        """Return the gradient (runs, ...) of the full training loss with respect to the parameter `name`."""
        out, batch = room(self._parameters.shape, self._parameters.dtype), np.empty(0, np.int32)

        def compute(members: NDArray[np.int64], job: Job) -> None:
            for member in members:
                kernels.gradient(member, self._parameters[member], out[member], job, batch, True)

        self._spread(np.arange(self._ensemble.runs), self._sets["train"], compute)
        return self._part(out, name).copy()

    def is_finite(self) -> NDArray[np.bool_]:
        """Return whether all parameters of each member are finite, bool (runs,)."""
        return np.asarray(np.isfinite(self._parameters).all(axis=1))

    def point_sets(self) -> NDArray[Any]:
        """Return a copy of the point sets that are recorded as positions, (runs, tokens, dim)."""
        if EMBEDDING in self._places:
            return self._part(self._parameters, EMBEDDING).copy()
        import torch

        model, task = self._ensemble.model, self._ensemble.model.task
        parameters = {name: torch.as_tensor(value).split(1) for name, value in self.parameters().items()}
        points = []
        for member, train in enumerate(self._ensemble.train):
            inputs = torch.as_tensor(task.inputs[train][None].astype(self._parameters.dtype))
            examples = inputs, torch.as_tensor(task.labels[train][None])
            points.append(model.point_sets({name: p[member] for name, p in parameters.items()}, examples))
        return torch.cat(points).numpy()

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Return copies of all parameters by name, (runs, ...) each, in the number type of the training."""
        return {name: self._part(self._parameters, name).copy() for name in self._places}

    def _part(self, store: NDArray[Any], name: str) -> NDArray[Any]:
        """Return a view of one parameter in a store (runs, numbers), (runs, ...), without its pads."""
        place, rows, width = self._places[name]
        return store[:, place].reshape(len(store), rows, -1)[:, :, :width]

    def assign(self, name: str, value: NDArray[Any]) -> None:
        """Overwrite one parameter of all members by `value`, (runs, ...), and keep its moments."""
        self._part(self._parameters, name)[:] = value

    def stop(self, members: NDArray[np.bool_]) -> None:
        """End the training of the members for which `members`, bool (runs,), is true."""
        self._training = np.flatnonzero(~members)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of parameters and moments by name, which a resumed run needs."""
        return {
            f"{kind}/{name}": self._part(store, name).copy()
            for kind, store in self._stores.items()
            for name in self._places
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the parameters and moments that `state` has returned."""
        for key, value in state.items():
            kind, name = key.split("/")
            self._part(self._stores[kind], name)[:] = value

    # -- implementation ------------------------------------------------------------------------------------

    def _new_room(self) -> Work:
        """Return new working memory, which one task at a time computes in."""
        return kernels.work_for(self._net, self._parameters.shape[1], self._parameters.dtype)

    def _spread(
        self, members: NDArray[np.int64], examples: Examples, task: Callable[[NDArray[np.int64], Job], None]
    ) -> None:
        """Run a task for all members, in pieces that free threads take, each with its own working memory."""

        def work(piece: NDArray[np.int64]) -> None:
            try:
                memory = self._rooms.pop()
            except IndexError:
                memory = self._new_room()
            task(piece, Job(self._net, examples, memory))
            self._rooms.append(memory)  # new memory for each task would cost more than a small one

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
