"""`grokphys bench nets`: training against plain PyTorch loops of the same models, in one run.

All contenders are timed in turn within one process, round by round. A ratio therefore compares measurements
that are close in time, and its spread is that of the rounds. References run with the number of PyTorch
threads that is fastest for them. The time of `nets.train` includes its start, and that of a reference does
not, so that a short training makes `nets.train` look slower than it is.
"""

import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

import nets
from analysis.compare.comparison import structures
from grokphys.bench.timing import against, duration, in_turn, machine, measured, ratio, seconds, table
from grokphys.output import Budget
from grokphys.report.page import Table
from nets.engines.ensemble import draw
from nets.models import DenseModel

MEMORY = """
import sys
import nets
steps, out = int(sys.argv[1]), sys.argv[2]
nets.train(nets.EmbeddingMLP(), steps=steps, record=1, observables=(), out=out)
try:
    with open("/proc/self/status") as status:
        print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024)
except OSError:
    print("nan")
"""
NEURONS = "two layers of 512 neurons, all pairs"
WEIGHT_DECAYS = (0.0, 0.3, 0.6, 1.0)
ACTIVATIONS = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "silu": torch.nn.functional.silu,
    "quadratic": torch.square,
    "abs": torch.abs,
}


class PlainNetwork(torch.nn.Module):
    """One member of a model with an architecture in plain PyTorch, the reference of the benchmark.

    Embeddings of a pair are added, concatenated or, as square matrices, multiplied, as the architecture of
    the `model` says. A two-layer network ("neurons") activates their sum at once, and its layers have no
    biases. The initial parameters are those of PyTorch.
    """

    def __init__(self, model: DenseModel) -> None:
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
        activate = ACTIVATIONS[self.architecture.activation]
        if self.architecture.combine in ("sum", "neurons"):
            states = first + second
        elif self.architecture.combine == "concatenate":
            states = torch.cat([first, second], dim=1)
        else:
            side = math.isqrt(first.shape[1])
            states = (first.view(-1, side, side) @ second.view(-1, side, side)).flatten(1)
        if self.architecture.combine == "neurons":
            states = activate(states)
        for layer in self.layers[:-1]:
            inputs = layer(states)
            states = activate(inputs)
            if self.architecture.even:
                states = states + self.architecture.even * (inputs / 2) * torch.tanh(inputs / 2)
        outputs: Tensor = self.layers[-1](states)
        return outputs


def plain_steps(
    model: DenseModel,
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
    ensemble = draw(model, runs=1, seed=0, train_fraction=train_fraction)
    network = PlainNetwork(model).to(device, dtype)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.5)
    inputs, labels, train, validation = (
        torch.tensor(values, device=device)
        for values in (model.task.inputs, model.task.labels, ensemble.train[0], ensemble.validation[0])
    )
    targets = None if ensemble.targets is None else torch.tensor(ensemble.targets[0]).to(device, dtype)

    def loss_of(index: Tensor) -> Tensor:
        outputs = network(inputs[index])
        if targets is None:
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


def bench_nets(*, out: Path = Path("results/bench-nets.json"), budget: Budget = "default") -> int:
    """Time the training of ensembles against plain PyTorch loops, as ratios taken in one run.

    Medians of rounds are stated with the spread from the fastest to the slowest.

    Args:
        out: JSON file to write all numbers to.
        budget: quick takes fewer rounds and steps, and paper more rounds.
    """
    rounds, part = {"quick": (2, 20), "default": (5, 1), "paper": (9, 1)}[budget]
    parts: dict[str, Callable[[], Any]] = {
        "machine": machine,
        "multiply_adds_per_s": lambda: _product_rate(rounds),
        "comparisons": lambda: _comparisons(rounds, part),
        "one_thread": lambda: _one_thread(rounds, part),
        "cores": lambda: [_cores(name, rounds, part) for name in _ensembles(part)],
        "recording": lambda: _recording(rounds, part),
        "table_1_s": lambda: seconds(partial(_table_1, max(1, 100 // part))),
        "table_1_networks": lambda: max(1, 100 // part) * len(WEIGHT_DECAYS),
    }
    return measured("nets", out, parts, _tables)


def _ensembles(part: int) -> dict[str, dict[str, Any]]:
    """Return the options of `nets.train` for each comparison; `part` divides the numbers of steps."""
    cells = [(10.0**rate, decay) for rate in np.linspace(-4, -2, 10) for decay in np.linspace(0, 10, 10)]
    return {
        "constant attention, 100 networks": {
            "model": nets.ConstantAttention(),
            "runs": 100,
            "steps": 2000 // part,
        },
        "toy addition, 100 cells, tracked": {
            "model": nets.ToyAddition(),
            "runs": 100,
            "steps": max(20, 400 // part),
            "learning_rate": [rate for rate, _ in cells],
            "weight_decay": [decay for _, decay in cells],
            "embedding_learning_rate": 1e-3,
            "embedding_weight_decay": 0.0,
            "thresholds": {"train_accuracy": 0.9, "validation_accuracy": 0.9, "quality": 0.95},
            "track": 10,
        },
        "embedding MLP, one network": {"model": nets.EmbeddingMLP(), "runs": 1, "steps": max(5, 60 // part)},
        "embedding MLP, an ensemble": {"model": nets.EmbeddingMLP(), "runs": 4, "steps": max(5, 60 // part)},
        NEURONS: {
            "model": nets.TwoLayer(),
            "runs": 4,
            "steps": max(5, 1000 // part),  # so that our start, which is timed, weighs little
            "train_fraction": 1.0,
        },
    }


def _train(options: dict[str, Any], **more: Any) -> None:
    nets.train(**{"record": [options["steps"]], "observables": (), **options, **more})


def _references(part: int) -> dict[str, dict[str, tuple[Callable[[], Any], int]]]:
    """Return the references of each comparison: a call, and the number of steps of one network it takes.

    `part` divides the numbers of steps.
    """
    attention, mlp, neurons = nets.ConstantAttention(), nets.EmbeddingMLP(), nets.TwoLayer()
    few = max(3, 200 // part)
    return {
        "constant attention, 100 networks": {
            "serial PyTorch": (plain_steps(attention, few), few),
            "batched PyTorch": (
                partial(
                    _train, {"model": attention, "runs": 100, "steps": max(3, 60 // part)}, engine="torch"
                ),
                100 * max(3, 60 // part),
            ),
        },
        "toy addition, 100 cells, tracked": {
            "serial PyTorch, not tracked": (plain_steps(nets.ToyAddition(), few), few)
        },
        "embedding MLP, one network": {"serial PyTorch": (plain_steps(mlp, 5), 5)},
        "embedding MLP, an ensemble": {
            "serial PyTorch": (plain_steps(mlp, 5), 5),
            "published recipe": (plain_steps(mlp, 5, dtype=torch.float64, validate=True), 5),
        },
        NEURONS: {"serial PyTorch": (plain_steps(neurons, few, train_fraction=1.0), few)},
    }


def _comparisons(rounds: int, part: int) -> list[dict[str, Any]]:
    """Return rows that compare the time of one step of one network in `nets.train` with each reference."""
    rows, references = [], _references(part)
    for name, options in _ensembles(part).items():
        first = seconds(partial(_train, {**options, "steps": 1}, record=[1], thresholds=None, track=None))
        threads = {reference: _best_threads(call) for reference, (call, _) in references[name].items()}
        ours = partial(_train, options), options["runs"] * options["steps"]
        took = in_turn(
            {"ours": ours, **references[name]},
            rounds,
            lambda turn: torch.set_num_threads(threads.get(turn, numba.get_num_threads())),  # noqa: B023
        )
        rows += [
            {
                "what": name,
                "reference_threads": threads[row["reference"]],
                "first_call_s": first,
                "multiply_adds": multiply_adds(options["model"]),
            }
            | row
            for row in against(took)
        ]
    return rows


def _one_thread(rounds: int, part: int) -> list[dict[str, Any]]:
    """Time one step of one two-layer network with one thread, against the reference with one thread."""
    options, threads = _ensembles(part)[NEURONS], numba.get_num_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    ours = partial(_train, options), options["runs"] * options["steps"]
    took = in_turn({"ours": ours, **_references(part)[NEURONS]}, rounds)
    numba.set_num_threads(threads)
    torch.set_num_threads(threads)
    return [{"what": NEURONS} | row for row in against(took)]


def _best_threads(call: Callable[[], Any]) -> int:
    """Return the number of PyTorch threads with which a reference is fastest."""
    took = {}
    for threads in (1, numba.get_num_threads()):
        torch.set_num_threads(threads)
        call()
        took[threads] = min(seconds(call) for _ in range(2))
    return min(took, key=lambda threads: took[threads])


def multiply_adds(model: DenseModel) -> int:
    """Count the multiply-adds of a step of a model on all training examples.

    The first layer counts once per token; a two-layer network sees each unordered pair once.
    """
    sizes = model.architecture.sizes
    if model.architecture.combine == "neurons":
        return 3 * model.tokens * (model.tokens + 1) // 2 * sizes[0] * sizes[1]
    examples = model.task.training_size(0.8)
    first = model.tokens * sizes[0] * sizes[1]
    rest = examples * sum(inputs * outputs for inputs, outputs in pairwise(sizes[1:]))
    return 3 * (first + rest)


def _product_rate(rounds: int) -> float:
    """Measure the multiply-adds per second of all cores, by float32 products of large matrices."""
    size = 1500
    a = torch.rand(size, size)
    torch.set_num_threads(numba.get_num_threads())
    a @ a
    return size**3 / min(seconds(lambda: a @ a) for _ in range(rounds + 2))


def _cores(name: str, rounds: int, part: int) -> dict[str, Any]:
    """Return how many times as long a training takes on one core as on all cores.

    `name` is that of one of `_ensembles`, whose number of steps `part` divides, and `rounds` is how often
    each is timed.
    """
    options, threads = _ensembles(part)[name], numba.get_num_threads()
    call = partial(_train, options), 1
    took = in_turn(
        {"one": call, "all": call},
        rounds,
        lambda turn: numba.set_num_threads(1 if turn == "one" else threads),
    )
    numba.set_num_threads(threads)
    return {"what": name, "threads": threads, "ratio": ratio(took["one"], took["all"])}


def _recording(rounds: int, part: int) -> dict[str, Any]:
    """Compare recording every step with not recording, and measure the peak memory for two lengths."""
    steps = max(20, 200 // part)
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        for runs in (1, 2):
            options = {"model": nets.EmbeddingMLP(), "runs": runs, "steps": steps}
            recorded = partial(_train, options, record=1, out=Path(folder) / f"{runs}.h5", overwrite=True)
            took = in_turn({"ours": (partial(_train, options), 1), "recorded": (recorded, 1)}, rounds)
            ratios[runs] = ratio(took["recorded"], took["ours"])
        peaks = {
            length: float(
                subprocess.run(
                    [sys.executable, "-c", MEMORY, str(length), str(Path(folder) / f"m{length}.h5")],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            for length in (steps, 3 * steps)
        }
    return {
        "steps": steps,
        "ratio": ratios,
        "peak_mib": peaks,
    }


def _table_1(networks: int) -> None:
    """Train the networks of Musat's Table 1, so many at each weight decay, and find their structures."""
    for weight_decay in WEIGHT_DECAYS:
        trajectory = nets.train(runs=networks, weight_decay=weight_decay, record=[2000])
        structures(trajectory.final)


def _tables(result: dict[str, Any]) -> list[Table]:
    rate = result["multiply_adds_per_s"]
    recording = result["recording"]
    low, high = recording["peak_mib"].values()
    floors = [row | {"floor_s": row["multiply_adds"] / rate} for row in result["comparisons"]]
    recorded = [
        {
            "what": f"{recording['steps']} steps of {runs}, every one recorded, against none",
            "ratio": found,
        }
        for runs, found in recording["ratio"].items()
    ]
    whole = {
        "peak memory of a run three times as long, less that of this": f"{high - low:.0f} MiB of {high:.0f}",
        f"Table 1 with {result['table_1_networks']} networks x 2000 epochs and its statistics": duration(
            result["table_1_s"]
        ),
        "multiply-adds a second of all cores (float32 products)": f"{rate:.3g}",
    }
    return [
        table(
            f"A step of one network against references; {result['machine']['threads']} threads; "
            "ratios: median [least, most] of rounds.",
            floors,
            {
                "what": "{what}",
                "reference": "{reference}",
                "its threads": "{reference_threads}",
                "ours": "{ours_s:time}",
                "reference takes": "{reference_s:time}",
                "ratio": "{ratio:spread}",
                "floor of all cores": "{floor_s:time}",
            },
        ),
        table(
            "A step of one network with one thread, against references with one thread.",
            result["one_thread"],
            {
                "what": "{what}",
                "reference": "{reference}",
                "ours": "{ours_s:time}",
                "reference takes": "{reference_s:time}",
                "ratio": "{ratio:spread}",
            },
        ),
        table(
            "All cores against one.",
            result["cores"],
            {"what": "{what}", "threads": "{threads}", "ratio": "{ratio:spread}"},
        ),
        table("Recording.", recorded, {"what": "{what}", "ratio": "{ratio:spread}"}),
        Table("Whole tables.", ["what", "found"], [[*item] for item in whole.items()]),
    ]
