"""The engine for any model and device: PyTorch computes all members as one batch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nets.engines.ensemble import Ensemble, Optimizer, dropout_seed
from nets.engines.graphs import CapturedStep
from physics.errors import InputError

CPU_BYTES = 2**31
"""Free memory that is assumed on a CPU, in bytes; larger batches of members are not faster there."""


class Dropout:
    """Dropout of some members at one step, with a separate random seed for each member.

    The numbers are drawn on the device: a CPU takes 20 ms for those of one step of the default transformer,
    ten times as long as an H200 for a whole step. Devices of different kinds therefore drop different units.

    Parameters
    ----------
    seeds : list of int
        Seed of each member.
    device : torch.device
        Device of the states.
    """

    def __init__(self, seeds: list[int], device: torch.device) -> None:
        self._generators = [torch.Generator(device).manual_seed(seed % 2**63) for seed in seeds]

    def __call__(self, states: Tensor, rate: float) -> Tensor:
        """Set a random fraction `rate` of `states` (members, ...) to zero; divide the others by 1 - rate."""
        shape = states.shape[1:]
        keep = [torch.rand(shape, generator=own, device=own.device) >= rate for own in self._generators]
        return states * torch.stack(keep) / (1 - rate)


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy (members, examples) of `outputs` (members, examples, classes), by PyTorch."""
    losses = torch.nn.functional.cross_entropy(outputs.flatten(0, 1), labels.flatten(), reduction="none")
    return losses.reshape(labels.shape)


def stable_cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy in a form whose gradient keeps its digits in all entries.

    At the right class, PyTorch subtracts 1 from the probability q, which cancels its digits if q is nearly 1.
    The loss is also ``log(1 + r)``, where r is the sum of the probabilities of all other classes over q. The
    gradient at the right class is then the negative sum of their probabilities. The arguments are as in
    `cross_entropy`.
    """
    own = labels[..., None]
    gaps = outputs - outputs.gather(-1, own)
    return -torch.nn.functional.logsigmoid(-gaps.scatter(-1, own, -torch.inf).logsumexp(-1))


class BatchedEngine:
    """Trains an ensemble with PyTorch; autograd computes the gradients, and members do not interact.

    Parameters
    ----------
    ensemble : Ensemble
        The members before training.
    optimizer : Optimizer
        Optimizer and its rates.
    dtype : {"float32", "float64"}
        Number type of the training.
    device : torch.device
        Device that computes.
    chunk : int or None
        Number of members whose activations are in memory at the same time; None for as many as fit.
    graphs : bool, default False
        Whether to capture full-batch steps without dropout as a CUDA graph, which keeps the memory of its
        activations.
    stable_gradient : bool, default False
        Whether to compute the gradient of the cross-entropy without cancellation; see `stable_cross_entropy`.

    Raises
    ------
    InputError
        If the activations of a single member do not fit into half of the free memory of a CUDA device.
    """

    name = "torch"

    def __init__(
        self,
        ensemble: Ensemble,
        optimizer: Optimizer,
        dtype: str,
        device: torch.device,
        chunk: int | None,
        *,
        graphs: bool = False,
        stable_gradient: bool = False,
    ) -> None:
        self._ensemble, self.device = ensemble, device
        self._cross_entropy = stable_cross_entropy if stable_gradient else cross_entropy
        self._graphs = graphs and not ensemble.model.dropout
        self._bias = torch.ones(2, dtype=torch.float64, device=device)
        self._dtype = getattr(torch, dtype)
        self._parameters = {name: self._tensor(value) for name, value in ensemble.parameters.items()}
        self._stores = {"parameters": self._parameters}
        for moment in ("first", "second"):
            self._stores[moment] = {name: torch.zeros_like(value) for name, value in self._parameters.items()}
        task = ensemble.model.task
        data = torch.as_tensor(task.inputs)
        self._inputs = (data if data.dtype is torch.int64 else data.to(self._dtype)).to(device)
        self._labels = torch.as_tensor(task.labels, device=device)
        self._targets = None if ensemble.targets is None else self._tensor(ensemble.targets)
        self._sets = {
            "train": torch.as_tensor(ensemble.train, device=device),
            "validation": torch.as_tensor(ensemble.validation, device=device),
        }
        self._everybody = self._training = torch.arange(ensemble.runs, device=device)
        self._stopped = np.zeros(ensemble.runs, bool)
        self.chunk = chunk or self._affordable()
        self.set_rates(optimizer)

    # -- the interface of an engine ------------------------------------------------------------------------

    def advance(self, step: int, count: int, batches: NDArray[np.int32] | None) -> None:
        """Take `count` optimizer steps after `step` earlier ones, with every member that still trains.

        `batches` (runs, count, size) holds places in the training set; None stands for all examples.
        """
        for offset in range(count if len(self._training) else 0):
            self._correct_bias(step + offset + 1)
            if batches is None and self._captured is not None:
                self._captured.take(lambda: self._update(self._gradients(None, None)))
                continue
            batch = None if batches is None else torch.as_tensor(batches[:, offset], device=self.device)
            self._update(self._gradients(step + offset, batch))

    def set_rates(self, optimizer: Optimizer) -> None:
        """Use the rates of `optimizer` in all further steps, and keep the moments of the optimizer."""
        self._optimizer = optimizer
        rates = torch.as_tensor(optimizer.rates.T, device=self.device)  # float64, as PyTorch's scalars
        self._rates = {True: rates[:2], False: rates[2:]}  # of the encoder and of the decoder
        self._capture_anew()

    def losses(self, part: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return loss and accuracy, float64 (runs,) each, on the set `part`: "train" or "validation"."""
        found: list[tuple[Tensor, Tensor]] = []
        with torch.no_grad():
            for members in self._everybody.split(self.chunk):
                index = self._sets[part][members]
                # In float32 a loss near 1e-7 would be too small: terms are rounded to multiples of 1.2e-7.
                outputs = self._ensemble.model.outputs(self._of(members), self._inputs[index]).double()
                value = self._loss(outputs, index, members, cross_entropy)
                found.append((value, self._hits(outputs, index, members)))
        loss, accuracy = (torch.cat(column).double().cpu().numpy() for column in zip(*found, strict=True))
        return loss, accuracy

    def gradient(self, name: str) -> NDArray[Any]:
        """Return the gradient (runs, ...) of the full training loss with respect to the parameter `name`."""
        training, self._training = self._training, self._everybody
        gradient = self._gradients(None, None)[name]
        self._training = training
        return gradient.cpu().numpy()

    def is_finite(self) -> NDArray[np.bool_]:
        """Return whether all parameters of each member are finite, bool (runs,)."""
        each = [value.isfinite().flatten(1).all(1) for value in self._parameters.values()]
        return np.array(torch.stack(each).all(0).cpu().numpy())

    def point_sets(self) -> NDArray[Any]:
        """Return a copy of the point sets that are recorded as positions, (runs, tokens, dim)."""
        found = []
        with torch.no_grad():
            for members in self._everybody.split(self.chunk):
                index = self._sets["train"][members]
                examples = (self._inputs[index], self._labels[index])
                found.append(self._ensemble.model.point_sets(self._of(members), examples))
        return np.array(torch.cat(found).cpu().numpy())

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Return copies of all parameters by name, (runs, ...) each, in the number type of the training."""
        return {name: np.array(value.cpu().numpy()) for name, value in self._parameters.items()}

    @torch.no_grad()
    def assign(self, name: str, value: NDArray[Any]) -> None:
        """Overwrite one parameter of all members by `value`, (runs, ...), and keep its moments."""
        self._parameters[name].copy_(torch.as_tensor(value))

    def stop(self, members: NDArray[np.bool_]) -> None:
        """End the training of the members for which `members`, bool (runs,), is true."""
        if not np.array_equal(members, self._stopped):
            self._stopped = members.copy()
            self._training = torch.as_tensor(np.flatnonzero(~members), device=self.device)
            self._capture_anew()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of parameters and moments by name, which a resumed run needs."""
        return {
            f"{kind}/{name}": np.array(value.cpu().numpy())
            for kind, tensors in self._stores.items()
            for name, value in tensors.items()
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the parameters and moments that `state` has returned."""
        for kind, tensors in self._stores.items():
            for name, value in tensors.items():
                value.copy_(torch.as_tensor(state[f"{kind}/{name}"]))

    # -- implementation ------------------------------------------------------------------------------------

    def _gradients(self, step: int | None, batch: Tensor | None) -> dict[str, Tensor]:
        """Return the gradients of the members that train, by name, with dropout if a step is given."""
        found: list[dict[str, Tensor]] = []
        for members in self._training.split(self.chunk):
            parameters = {name: value.requires_grad_() for name, value in self._of(members).items()}
            index = self._sets["train"][members]
            if batch is not None:
                index = index.gather(1, batch[members].long())
            dropout = None if step is None else self._dropout(members, step)
            outputs = self._ensemble.model.outputs(parameters, self._inputs[index], dropout)
            loss = self._loss(outputs, index, members, self._cross_entropy)
            penalty = self._ensemble.model.embedding_penalty
            if penalty:
                loss = loss + penalty * parameters["embedding"].abs().mean((1, 2))
            gradients = torch.autograd.grad(loss.sum(), list(parameters.values()))
            found.append(dict(zip(parameters, gradients, strict=True)))
        return {name: torch.cat([part[name] for part in found]) for name in self._parameters}

    def _correct_bias(self, number: int) -> None:
        """Set the bias corrections of AdamW for a step, in float64; a captured step reads the tensor."""
        for divisor, beta in zip(self._bias, self._optimizer.betas, strict=True):
            divisor.fill_(1 - beta**number)

    def _capture_anew(self) -> None:
        """Discard the captured step, which is valid only for the rates and the members at its capture."""
        self._captured = CapturedStep(self.device) if self._graphs else None

    @torch.no_grad()
    def _update(self, gradients: dict[str, Tensor]) -> None:
        """Update by AdamW or SGD as in PyTorch; rates differ by member, and for encoder and decoder."""
        adamw = self._optimizer.kind == "adamw"
        beta1, beta2 = self._optimizer.betas
        first_bias, second_bias = self._bias
        everybody = len(self._training) == self._ensemble.runs
        factors = {
            encoder: (
                (1 - rate * decay)[self._training].to(self._dtype),
                (rate / first_bias if adamw else rate)[self._training].to(self._dtype),
            )
            for encoder, (rate, decay) in self._rates.items()
        }
        for name, gradient in gradients.items():
            stores = [tensors[name] for tensors in self._stores.values()]
            value, first, second = (store if everybody else store[self._training] for store in stores)
            shrink, size = (
                factor.reshape(-1, *[1] * (value.ndim - 1))
                for factor in factors[name in self._ensemble.model.encoder]
            )
            change = gradient
            if adamw:
                first.lerp_(gradient, 1 - beta1)
                second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
                divisor = (second.sqrt() / second_bias.sqrt()).add_(self._optimizer.epsilon)
                change = first / divisor
            value.mul_(shrink).sub_(size * change)
            if not everybody:
                for store, changed in zip(stores, (value, first, second), strict=True):
                    store[self._training] = changed

    def _of(self, members: Tensor) -> dict[str, Tensor]:
        """Return the detached parameters of some members; for all members without a copy."""
        if len(members) == self._ensemble.runs:
            return {name: value.detach() for name, value in self._parameters.items()}
        return {name: value[members] for name, value in self._parameters.items()}

    def _loss(
        self, outputs: Tensor, index: Tensor, members: Tensor, entropy: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Return the mean loss of each member, (members,), from its outputs and its examples' indices.

        `entropy` is the function that computes the cross-entropy, if this is the loss.
        """
        labels = self._labels[index]
        if self._targets is None:
            return entropy(outputs, labels).mean(-1)
        targets = self._targets[members[:, None], labels]
        return (outputs - targets).square().mean((1, 2))

    def _hits(self, outputs: Tensor, index: Tensor, members: Tensor) -> Tensor:
        """Return the fraction of correct answers, (members,), by the largest logit or the nearest target.

        Outputs that are not finite are no answer; `argmax` would take the first NaN for the largest.
        """
        if self._targets is not None:
            targets = self._targets[members].to(outputs.dtype)
            outputs = outputs @ targets.transpose(1, 2) - targets.square().sum(-1)[:, None] / 2
        right = (outputs.argmax(-1) == self._labels[index]) & outputs.amax(-1).isfinite()
        return right.double().mean(-1)

    def _dropout(self, members: Tensor, step: int) -> Dropout | None:
        """Return the dropout of some members at a step, or None if the model has none."""
        if not self._ensemble.model.dropout:  # seeding each member would cost more than the step
            return None
        noise = self._ensemble.noise
        return Dropout([dropout_seed(noise[run], step) for run in members.tolist()], self.device)

    def _tensor(self, value: NDArray[np.float64]) -> Tensor:
        """Return a copy of an array as a tensor of the engine's device and number type."""
        return torch.as_tensor(value, device=self.device).to(self._dtype, copy=True)

    def _affordable(self) -> int:
        """Return how many members have activations that fit into half of the free memory of the device."""
        cuda = self.device.type == "cuda"
        free = CPU_BYTES
        if cuda:  # also what PyTorch has reserved but does not use
            unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            free = torch.cuda.mem_get_info(self.device)[0] + unused
        runs = self._ensemble.runs
        examples = max(index.shape[1] for index in self._sets.values())
        need = self._ensemble.model.activation_numbers * examples * self._dtype.itemsize
        if cuda and need > free / 2:
            raise InputError(
                f"runs must need at most half of the device's free {free / 2**30:.1f} GiB for their "
                f"activations, got {need / 2**30:.1f} GiB each; use batches (batch_size) or the CPU"
            )
        return max(1, min(runs, int(free / 2 / max(need, 1))))
