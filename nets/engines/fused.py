"""The engine for CPUs: one fused kernel computes a step of one member, and each thread has one member."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.engines import first_layer, neurons
from nets.engines import step as dense
from nets.engines.ensemble import Ensemble, Optimizer
from physics.jit import kernel, primitive

COMBINE = {
    "sum": first_layer.SUM,
    "concatenate": first_layer.CONCATENATE,
    "product": first_layer.PRODUCT,
    "data": first_layer.DATA,
}
TASKS_A_THREAD = 4
"""Number of tasks per thread, so that a thread takes fewer of them if other programs use its core."""
FLUSH = 0x8040
"""Two bits of the control register of x86 processors: to write subnormal numbers as 0 and to read them so."""


@primitive
def _exchanged(typing_context: Any, bits: Any) -> Any:
    """Set the bits `FLUSH` of this thread's control register to those of `bits`, and return the former ones.

    On processors other than x86, nothing is set.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (chosen,) = arguments
        if not builder.module.triple.startswith(("x86", "i386", "i686")):
            return chosen
        word = ir.IntType(32)
        place = cgutils.alloca_once(builder, word)
        pointer = builder.bitcast(place, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type])
        store, load = (
            cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
            for name in ("stmxcsr", "ldmxcsr")
        )
        builder.call(store, [pointer])
        before = builder.load(place)
        kept = builder.and_(before, ir.Constant(word, ~FLUSH))
        builder.store(builder.or_(kept, builder.trunc(chosen, word)), place)
        builder.call(load, [pointer])
        return builder.zext(builder.and_(before, ir.Constant(word, FLUSH)), chosen.type)

    return types.int64(types.int64), generate


@kernel()
def flush(bits: int) -> int:
    """Let this thread's arithmetic take subnormal numbers for 0 or not, and return what it did before.

    Parameters
    ----------
    bits : int
        `FLUSH`, or what an earlier call has returned.

    Returns
    -------
    int
        The bits before the call.

    Notes
    -----
    Weight decay multiplies the weights of units that have died by the same factor in each step, until they
    are subnormal: below 1e-38 in float32, which takes 17 000 steps at the rates of Ding et al. Arithmetic
    with such numbers takes up to twenty times as long.
    """
    return _exchanged(bits)


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
        data = architecture.combine == "data"
        self._places, size = {}, 0
        for name, value in ensemble.parameters.items():
            self._places[name] = slice(size, size + value[0].size)
            size += value[0].size
        stacked = [value.reshape(ensemble.runs, -1) for value in ensemble.parameters.values()]
        self._parameters = np.concatenate(stacked, axis=1).astype(dtype)
        self._first = np.zeros_like(self._parameters)
        self._second = np.zeros_like(self._parameters)
        encoded = [self._places[name].stop for name in model.encoder]
        self._sizes = np.array(architecture.sizes)
        entropy = first_layer.STABLE_CROSS_ENTROPY if stable_gradient else first_layer.CROSS_ENTROPY
        self._shape = first_layer.Shape(
            COMBINE.get(architecture.combine, first_layer.DATA),
            entropy if architecture.loss == "cross_entropy" else first_layer.SQUARED_ERROR,
            0 if data else model.tokens,
            0 if data else model.dim,
            max(encoded),
            float(architecture.embedding_penalty),
            float(architecture.even),
        )
        task = model.task
        targets = np.empty((ensemble.runs, 0, 0)) if ensemble.targets is None else ensemble.targets
        self._kernels: Any = neurons if architecture.combine == "neurons" else dense
        self._sets: dict[str, Any] = {
            part: first_layer.Examples(
                (index[..., None] if data else task.inputs[index]).astype(np.int32),
                task.labels[index].astype(np.int32),
                task.inputs.astype(dtype) if data else np.empty((0, 0), dtype),
                targets.astype(dtype),
            )
            for part, index in (("train", ensemble.train), ("validation", ensemble.validation))
        }
        if self._kernels is neurons:
            self._sets = {
                part: neurons.taken_together(examples.inputs, examples.labels, dtype)
                for part, examples in self._sets.items()
            }
        self.set_rates(optimizer)
        self._rooms = [self._new_room()]
        self._calls = self._kernels.calls_for(
            self._shape,
            architecture.activation,
            self._sizes,
            self._sets["train"],
            self._rooms[0],
            self._betas,
        )
        self._training = np.arange(ensemble.runs)

    # -- the interface of an engine ------------------------------------------------------------------------

    def advance(self, step: int, count: int, batches: NDArray[np.int32] | None) -> None:
        """Take `count` optimizer steps after `step` earlier ones, with every member that still trains.

        `batches` (runs, count, size) holds places in the training set; None stands for all examples.
        """
        if batches is None:
            batches = np.empty((1, 1, 0), np.int32)
        self._spread(
            self._training,
            lambda members, room: dense.train_members(
                members,
                self._parameters,
                self._first,
                self._second,
                self._shape,
                self._sizes,
                self._sets["train"],
                batches,
                step,
                count,
                self._rates,
                self._betas,
                room,
                self._calls,
            ),
        )

    def set_rates(self, optimizer: Optimizer) -> None:
        """Use the rates of `optimizer` in all further steps, and keep the moments of the optimizer."""
        rates = [*optimizer.rates(encoder=True), *optimizer.rates(encoder=False)]
        self._rates = np.stack(rates, axis=1)
        self._betas = optimizer.betas_and_epsilon

    def losses(self, part: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return loss and accuracy, float64 (runs,) each, on the set `part`: "train" or "validation"."""
        loss, accuracy = np.empty(self._ensemble.runs), np.empty(self._ensemble.runs)
        self._spread(
            np.arange(self._ensemble.runs),
            lambda members, room: self._kernels.evaluate(
                members,
                self._parameters,
                self._shape,
                self._sizes,
                self._sets[part],
                loss,
                accuracy,
                np.empty(2),
                room,
                self._calls,
            ),
        )
        return loss, accuracy

    def gradient(self, name: str) -> NDArray[Any]:
        """Return the gradient (runs, ...) of the full training loss with respect to the parameter `name`."""
        gradients = np.empty_like(self._parameters)
        self._spread(
            np.arange(self._ensemble.runs),
            lambda members, room: dense.gradients(
                members,
                self._parameters,
                gradients,
                self._shape,
                self._sizes,
                self._sets["train"],
                room,
                self._calls,
            ),
        )
        return gradients[:, self._places[name]].reshape(self._ensemble.parameters[name].shape)

    def is_finite(self) -> NDArray[np.bool_]:
        """Return whether all parameters of each member are finite, bool (runs,)."""
        finite: NDArray[np.bool_] = np.isfinite(self._parameters).all(axis=1)
        return finite

    def point_sets(self) -> NDArray[Any]:
        """Return a copy of the point sets that are recorded as positions, (runs, tokens, dim)."""
        if EMBEDDING in self._places:
            return self._own(EMBEDDING)
        import torch

        model, task = self._ensemble.model, self._ensemble.model.task
        found = []
        for member, train in enumerate(self._ensemble.train):
            parameters = {name: torch.as_tensor(self._own(name, member)) for name in self._places}
            inputs = torch.as_tensor(task.inputs[train][None].astype(self._parameters.dtype))
            found.append(model.point_sets(parameters, (inputs, torch.as_tensor(task.labels[train][None]))))
        return torch.cat(found).numpy()

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Return copies of all parameters by name, (runs, ...) each, in the number type of the training."""
        return {name: self._own(name) for name in self._places}

    def _own(self, name: str, member: int | None = None) -> NDArray[Any]:
        """Return a copy of one parameter, (runs, ...), of all members or of one."""
        members = slice(None) if member is None else slice(member, member + 1)
        shape = self._ensemble.parameters[name].shape[1:]
        return self._parameters[members, self._places[name]].reshape(-1, *shape).copy()

    def stop(self, members: NDArray[np.bool_]) -> None:
        """End the training of the members for which `members`, bool (runs,), is true."""
        self._training = np.flatnonzero(~members)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of parameters and moments by name, which a resumed run needs."""
        return {
            "parameters": self._parameters.copy(),
            "first": self._first.copy(),
            "second": self._second.copy(),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the parameters and moments that `state` has returned."""
        self._parameters[:] = state["parameters"]
        self._first[:] = state["first"]
        self._second[:] = state["second"]

    # -- implementation ------------------------------------------------------------------------------------

    def _new_room(self) -> Any:
        """Return new working memory, which one task at a time computes in."""
        numbers, dtype = self._parameters.shape[1], self._parameters.dtype
        return self._kernels.room_for(self._shape, self._sizes, numbers, dtype)

    def _spread(self, members: NDArray[np.int64], task: Callable[[NDArray[np.int64], Any], None]) -> None:
        """Run a task for all members, in pieces that free threads take, each with its own working memory."""

        def work(piece: NDArray[np.int64]) -> None:
            try:
                room = self._rooms.pop()
            except IndexError:
                room = self._new_room()
            before = flush(FLUSH)
            try:
                task(piece, room)
            finally:
                flush(before)
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
