"""`grokphys bench nets`: training against plain PyTorch loops of the same models, in one run.

References run with the number of PyTorch threads that is fastest for them. The time of `nets.train` includes
its start, and that of a reference does not, so that a short training looks slower than it is.
"""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

import nets
from grokphys.bench.timing import Call, Effort, Row, compare, seconds


class PlainNetwork(torch.nn.Module):
    """One member of a model with an architecture in plain PyTorch, the reference of the benchmark.

    Embeddings of a pair are added, concatenated or, as square matrices, multiplied, as the architecture of
    the `model` says. A two-layer network ("neurons") activates their sum at once, and its layers have no
    biases. The initial parameters are those of PyTorch.
    """

    def __init__(self, model: nets.DenseModel) -> None:
        super().__init__()
        self.architecture = model.architecture
        self.embedding = torch.nn.Embedding(model.tokens, model.dim)
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(inputs, outputs, bias=model.architecture.combine != "neurons")
            for inputs, outputs in pairwise(model.architecture.sizes)
        )

    def forward(self, pairs: Tensor) -> Tensor:
        """Return the outputs (examples, outputs) for pairs of tokens (examples, 2) of type int64."""
        first, second = self.embedding(pairs[:, 0]), self.embedding(pairs[:, 1])
        if self.architecture.combine in ("sum", "neurons"):
            states = first + second
        elif self.architecture.combine == "concatenate":
            states = torch.cat([first, second], dim=1)
        else:
            side = math.isqrt(first.shape[1])
            states = (first.view(-1, side, side) @ second.view(-1, side, side)).flatten(1)
        if self.architecture.combine == "neurons":
            states = self.architecture.activate(states)
        for layer in self.layers[:-1]:
            states = self.architecture.activate(layer(states))
        outputs: Tensor = self.layers[-1](states)
        return outputs


def plain_steps(
    model: nets.DenseModel,
    steps: int,
    *,
    dtype: torch.dtype = torch.float32,
    validate: bool = False,
    device: str = "cpu",
    train_fraction: float = 0.8,
) -> Callable[[], None]:
    """Return a function that trains one network by autograd and `torch.optim.AdamW`, as a reference.

    Each of its calls takes `steps` steps on all training examples, and with `validate` also evaluates the
    loss on the others in each step. The learning rate is 0.01 and the weight decay 0.5.
    """
    network = PlainNetwork(model).to(device, dtype)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.5)
    inputs, labels = (
        torch.as_tensor(np.asarray(values), device=device)
        for values in (model.task.inputs, model.task.labels)
    )
    order = torch.randperm(len(labels), device=device)
    train, validation = order.tensor_split([round(train_fraction * len(order))])
    targets = torch.randn(int(labels.max()) + 1, model.architecture.sizes[-1], device=device, dtype=dtype)

    def loss_of(index: Tensor) -> Tensor:
        outputs = network(inputs[index])
        if model.loss == "cross_entropy":
            return torch.nn.functional.cross_entropy(outputs, labels[index])
        return torch.nn.functional.mse_loss(outputs, targets[labels[index]])

    def take() -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(train).backward()
            optimizer.step()
            if validate:
                with torch.no_grad():
                    loss_of(validation)

    return take


def _train(model: nets.Model, runs: int, steps: int, **more: Any) -> Call:
    return lambda: nets.train(
        model, **{"runs": runs, "steps": steps, "record": [steps], "observables": (), **more}
    )


def _against(
    what: str, ours: Call, steps: float, references: Mapping[str, tuple[Call, float]], effort: Effort
) -> list[Row]:
    """Compare steps of one network, each reference with the number of threads that is fastest for it."""
    threads = {"ours": numba.get_num_threads()}
    for name, (call, _) in references.items():
        took = {}
        for count in (1, numba.get_num_threads()):
            torch.set_num_threads(count)
            call()
            took[count] = seconds(call)
        threads[name] = min(took, key=lambda count: took[count])
    before = lambda name: torch.set_num_threads(threads[name])  # noqa: E731
    return compare(what, ours, references, units=steps, rounds=effort.rounds, before=before)


def attention(effort: Effort) -> list[Row]:
    """A hundred networks with constant attention."""
    steps, few, model = 2000 // effort.part, max(3, 200 // effort.part), nets.ConstantAttention()
    batched = _train(model, 100, few, engine="torch")
    references = {
        "serial PyTorch": (plain_steps(model, few), few),
        "our batched engine": (batched, 100 * few),
    }
    ours = _train(model, 100, steps)
    return _against("constant attention, 100 networks", ours, 100 * steps, references, effort)


def toy_addition(effort: Effort) -> list[Row]:
    """A hundred cells of a phase diagram, whose thresholds are checked every ten steps."""
    rates = [(10.0**rate, decay) for rate in np.linspace(-4, -2, 10) for decay in np.linspace(0, 10, 10)]
    steps, few = max(20, 400 // effort.part), max(3, 200 // effort.part)
    ours = _train(
        nets.ToyAddition(),
        100,
        steps,
        learning_rate=[rate for rate, _ in rates],
        weight_decay=[decay for _, decay in rates],
        embedding_learning_rate=1e-3,
        embedding_weight_decay=0.0,
        thresholds={"train_accuracy": 0.9, "validation_accuracy": 0.9, "quality": 0.95},
        track=10,
    )
    references = {"serial PyTorch, not tracked": (plain_steps(nets.ToyAddition(), few), few)}
    return _against("toy addition, 100 cells, tracked", ours, 100 * steps, references, effort)


def embedding_mlp(effort: Effort) -> list[Row]:
    """One and four embedding MLPs of Ding's size."""
    steps, model = max(5, 60 // effort.part), nets.EmbeddingMLP()
    serial = {"serial PyTorch": (plain_steps(model, 5), 5.0)}
    published = {"published recipe": (plain_steps(model, 5, dtype=torch.float64, validate=True), 5.0)}
    rows = _against("embedding MLP, one network", _train(model, 1, steps), steps, serial, effort)
    ours = _train(model, 4, steps)
    return rows + _against("embedding MLP, four networks", ours, 4 * steps, serial | published, effort)


def two_layers(effort: Effort) -> list[Row]:
    """Four networks of two layers on all pairs."""
    steps, few, model = max(5, 1000 // effort.part), max(3, 200 // effort.part), nets.TwoLayer()
    ours = _train(model, 4, steps, train_fraction=1.0)
    references = {"serial PyTorch": (plain_steps(model, few, train_fraction=1.0), few)}
    return _against("two layers of 512 neurons, four networks", ours, 4 * steps, references, effort)


BENCHMARKS = (attention, toy_addition, embedding_mlp, two_layers)
