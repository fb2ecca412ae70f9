"""`grokphys bench gpu`: the batched engine on CUDA, checked against the CPU and timed, in given minutes.

Every part prints its table as soon as it is done, and rewrites the JSON file. A measurement that fails gives
the reason in its row, and the others continue. Measurements for which there is no time are not in the tables.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch

import nets
from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from analysis.stats.intervals import mean
from grokphys.bench.gpu_tables import (
    BOUNDS,
    FEW,
    LEARNING_RATE,
    MANY,
    WEIGHT_DECAY,
    agreement_table,
    memory_table,
    steps_table,
    training_table,
)
from grokphys.bench.nets import plain_steps
from grokphys.bench.timing import Row, against, in_turn, machine, seconds, spread
from grokphys.output import Budget, make_directory, write_json
from grokphys.report.page import Table
from nets.engines.choice import optimizer_of
from nets.engines.ensemble import Ensemble, draw
from nets.engines.fused import FusedEngine
from nets.engines.graphs import WARM_UPS
from nets.engines.torch import BatchedEngine
from nets.models import DenseModel, Model

MINUTES = {"quick": 2.0, "default": 10.0, "paper": 60.0}
ENDS = {"agreement": 0.25, "steps": 0.6, "memory": 0.7, "training": 0.95}
"""Fraction of the time by which each part must end."""
LARGEST_CHUNK = 1000
FAULTS = (RuntimeError, MemoryError, ValueError)
"""Exceptions of PyTorch and of our checks if a device is too small or does not work correctly."""


def _models() -> dict[str, Model]:
    return {
        "constant attention": nets.ConstantAttention(),
        "embedding MLP": nets.EmbeddingMLP(),
        "toy addition": nets.ToyAddition(),
        "group decoder": nets.GroupDecoder(),
        "image MLP": nets.ImageMLP(),
        "token transformer": nets.TokenTransformer(23, 64, heads=2, width=64),
        "two layers": nets.TwoLayer(),
    }


@dataclass(frozen=True)
class Plan:
    """Sizes of the measurements.

    Attributes
    ----------
    device : str
        Device that is compared with the CPU.
    graphs : bool
        Whether to measure captured CUDA graphs too.
    minutes, timing_s : float
        Minutes that all parts together may take, and seconds that a contender may take in a round.
    rounds : int
        Number of rounds in which the contenders are timed in turn.
    checked : dict of str to Model
        Models by name, for which the devices are compared.
    timed, members : tuple of str, tuple of int
        Names of the models whose steps are timed, and sizes of their ensembles.
    trained, networks, steps : str, int, int
        Name of the model that is trained at the paper's setting, its number of members, and the last step.
    chunks : tuple of int
        Numbers of members at a time for which the memory is measured.
    """

    device: str = "cuda"
    graphs: bool = True
    minutes: float = 10.0
    rounds: int = 5
    timing_s: float = 0.3
    checked: dict[str, Model] = field(default_factory=_models)
    timed: tuple[str, ...] = ("constant attention", "embedding MLP")
    members: tuple[int, ...] = (1, 100, 1000, 10_000)
    trained: str = "embedding MLP"
    networks: int = 1000
    chunks: tuple[int, ...] = (1, 10, 100, 1000)
    steps: int = 30_000


def bench_gpu(
    *, out: Path = Path("results/bench-gpu.json"), budget: Budget = "default", minutes: float | None = None
) -> int:
    """Check the batched engine on CUDA against the CPU, and measure it against the CPU and a PyTorch loop.

    The exit status is 1 if there is no CUDA device, the devices disagree, or a part failed; otherwise 0.

    Args:
        out: JSON file to write all numbers to.
        budget: quick takes two minutes, default takes ten minutes, and paper takes an hour.
        minutes: Number of minutes to take, in place of that of the budget.
    """
    if not torch.cuda.is_available():
        print("grokphys: gpu needs CUDA, which this machine or this PyTorch has not", file=sys.stderr)
        return 1
    return run(Plan(minutes=minutes or MINUTES[budget], rounds=2 if budget == "quick" else 5), out)


def run(plan: Plan, out: Path) -> int:
    """Run all parts of a plan, print their tables, and write all rows to the JSON file `out`.

    The exit status is 1 if the devices disagree or a part failed, and otherwise 0.
    """
    make_directory(out.parent)
    began = monotonic()
    result: dict[str, Any] = {"machine": {**machine(), **_device(plan)}, "minutes": plan.minutes}
    parts: dict[str, tuple[Callable[[Plan, float], Iterator[Row]], Callable[[list[Row]], Table]]] = {
        "agreement": (agreement, agreement_table),
        "steps": (steps, steps_table),
        "memory": (memory, memory_table),
        "training": (training, training_table),
    }
    for name, (measure, table) in parts.items():
        rows = result[name] = list(measure(plan, began + 60 * plan.minutes * ENDS[name]))
        print(table([row for row in rows if "error" not in row]).text())
        for row in rows:
            if "error" in row:
                print(" ".join(str(row[key]) for key in row if key != "error"), "failed:", row["error"])
        print(flush=True)
        result["took_s"] = monotonic() - began
        write_json(out, result)
    print(f"wrote {out} after {result['took_s']:.0f} s")
    sound = all("error" not in row and row.get("agrees", True) for name in parts for row in result[name])
    return 0 if sound else 1


def _device(plan: Plan) -> Row:
    cuda = plan.device == "cuda"
    return {
        "device": torch.cuda.get_device_name() if cuda else "CPU",
        "device_gib": torch.cuda.mem_get_info()[1] / 2**30 if cuda else None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "float32_products": torch.get_float32_matmul_precision(),
    }


def _tried(what: Row, measure: Callable[[], Row]) -> Row:
    """Return the row `what` with the results of a measurement, or with the reason why it failed."""
    try:
        return what | measure()
    except FAULTS as error:
        return _failed(error, **what)
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _failed(error: BaseException, **what: Any) -> Row:
    return what | {"error": str(error).partition("\n")[0] or type(error).__name__}


def _engine(
    ensemble: Ensemble, device: str, dtype: str = "float32", chunk: int | None = None, *, graphs: bool = False
) -> BatchedEngine:
    return BatchedEngine(ensemble, _rates(ensemble.runs), dtype, torch.device(device), chunk, graphs=graphs)


def _rates(runs: int) -> Any:
    return optimizer_of(runs, LEARNING_RATE, WEIGHT_DECAY, None, None, (0.9, 0.999), 1e-8)


# -- agreement -------------------------------------------------------------------------------------------


def agreement(plan: Plan, end: float) -> Iterator[Row]:
    """Compare three networks of each model in `plan` on the CPU, in two runs on CUDA, and in CUDA graphs.

    It yields a row for each model and number type. No model is begun after `end` (monotonic seconds).
    """
    for dtype in BOUNDS:
        for name, model in plan.checked.items():
            if monotonic() < end:
                yield _tried({"model": name, "dtype": dtype}, partial(_agree, plan, model, dtype))


def _agree(plan: Plan, model: Model, dtype: str) -> Row:
    ensemble = draw(model, runs=3, seed=0)
    there = [_engine(ensemble, place, dtype) for place in ("cpu", plan.device, plan.device)]
    captured = _engine(ensemble, plan.device, dtype, graphs=True) if plan.graphs else None
    row: Row = {}
    for before, step in ((0, FEW), (FEW, MANY)):
        for engine in (*there, captured):
            if engine is not None:
                engine.advance(before, step - before, None)
        cpu, first, second = there
        row[f"after_{step}"] = _distance(cpu, first, dtype)
        row[f"captured_after_{step}"] = None if captured is None else _distance(cpu, captured, dtype)
    row["same_bits_again"] = all(
        np.array_equal(value, second.parameters()[name]) for name, value in first.parameters().items()
    )
    found = [row[name] for name in (f"after_{FEW}", f"captured_after_{FEW}") if row[name] is not None]
    row["agrees"] = all(value <= BOUNDS[dtype] for value in found)  # NaN does not agree
    return row


def _distance(cpu: BatchedEngine, other: BatchedEngine, dtype: str) -> float:
    """Return how much an ensemble on another device differs from that on the CPU.

    In float64 this is the largest difference of a parameter or a loss. In float32 it is the difference of a
    loss, or the norm of the difference of all parameters of a member relative to their norm. The first step
    of AdamW divides a gradient by its size, so that a gradient of pure rounding error, such as that of the
    biases of attention keys, moves its parameter by the whole learning rate.
    """
    here, there = cpu.parameters(), other.parameters()
    losses = [np.abs(cpu.losses(part)[0] - other.losses(part)[0]).max() for part in ("train", "validation")]
    if dtype == "float64":
        return float(max(*losses, *(np.abs(here[name] - there[name]).max() for name in here)))
    a, b = (
        np.concatenate([value.reshape(len(value), -1) for value in values.values()], axis=1, dtype=np.float64)
        for values in (here, there)
    )
    relative = np.linalg.norm(a - b, axis=1) / np.linalg.norm(a, axis=1)
    return float(np.max([*losses, *relative]))


# -- the time of a step ----------------------------------------------------------------------------------


class Stepper:
    """An engine that is called to take steps, and returns once the device has computed them."""

    def __init__(self, engine: BatchedEngine | FusedEngine) -> None:
        self._engine, self._at = engine, 0

    def __call__(self, count: int) -> None:
        """Take `count` further steps."""
        self._engine.advance(self._at, count, None)
        self._at += count
        _wait()


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def steps(plan: Plan, end: float) -> Iterator[Row]:
    """Time a step of ensembles of each size in `plan` on CUDA, on the CPU, and in a PyTorch loop.

    The contenders take turns. It yields a row for each model and size. No ensemble is begun after `end`
    (monotonic seconds).
    """
    for members in plan.members:
        for name in plan.timed:
            if monotonic() < end:
                what = {"model": name, "members": members}
                yield _tried(what, partial(_times, plan, plan.checked[name], members))


def _times(plan: Plan, model: Model, members: int) -> Row:
    """Return the seconds that a step of `members` networks takes; the contenders take turns."""
    assert isinstance(model, DenseModel)
    ensemble = draw(model, runs=members, seed=0)
    chunk = min(members, LARGEST_CHUNK)
    contenders: dict[str, Callable[[int], None]] = {
        "ours": Stepper(_engine(ensemble, plan.device, chunk=chunk)),
        "CPU": Stepper(FusedEngine(ensemble, _rates(members), "float32")),
        "loop": _loop(model, plan.device),
    }
    if plan.graphs:
        contenders["captured"] = Stepper(_engine(ensemble, plan.device, chunk=chunk, graphs=True))
    counts = {}
    for name, take in contenders.items():
        take(WARM_UPS + 2)
        counts[name] = int(np.clip(plan.timing_s / seconds(partial(take, 1)), 1, 1000))
    work = {}
    for name, take in contenders.items():  # the loop trains one member after the other
        whole = members if name == "loop" else 1
        work[name] = partial(take, counts[name]), counts[name] / whole
    took = in_turn(work, plan.rounds)
    return {
        "chunk": chunk,
        "step_s": {name: spread(found) for name, found in took.items()},
        "times_as_long": {row["reference"]: row["ratio"] for row in against(took)},
    }


def _loop(model: DenseModel, device: str) -> Callable[[int], None]:
    one = plain_steps(model, 1, device=device)

    def take(count: int) -> None:
        for _ in range(count):
            one()
        _wait()

    return take


# -- memory ----------------------------------------------------------------------------------------------


def memory(plan: Plan, end: float) -> Iterator[Row]:
    """Measure the peak memory and the time of a step for several numbers of networks at a time.

    It yields a row for each number in `plan`. No measurement is begun after `end` (monotonic seconds).
    """
    ensemble = draw(plan.checked[plan.trained], runs=plan.networks, seed=0)
    for chunk in plan.chunks:
        if monotonic() < end and plan.device == "cuda":
            what = {"members": plan.networks, "chunk": chunk}
            yield _tried(what, partial(_peak, ensemble, plan.device, chunk))


def _peak(ensemble: Ensemble, device: str, chunk: int) -> Row:
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    take = Stepper(_engine(ensemble, device, chunk=chunk))
    stored = torch.cuda.memory_allocated() - before
    take(2)
    peak = torch.cuda.max_memory_allocated() - before
    model, examples = ensemble.model, ensemble.train.shape[1]
    return {
        "stored_bytes": stored,
        "peak_bytes": peak,
        "activations_expected_bytes": 4 * model.activation_numbers * examples * chunk,
        "step_s": spread([seconds(partial(take, 1)) for _ in range(3)]),
    }


# -- training --------------------------------------------------------------------------------------------


def training(plan: Plan, end: float) -> Iterator[Row]:
    """Train the networks of `plan` at the paper's setting until `end` (monotonic seconds).

    It yields rows with accuracies and surviving circles, after ever more steps.
    """
    if monotonic() < end:
        try:
            yield from _trained(plan, end)
        except FAULTS as error:
            yield _failed(error, networks=plan.networks)


def _trained(plan: Plan, end: float) -> Iterator[Row]:
    networks = nets.Training(
        plan.checked[plan.trained],
        runs=plan.networks,
        learning_rate=LEARNING_RATE,
        weight_decay=WEIGHT_DECAY,
        device=plan.device,
        engine="torch",
    )
    began, count = monotonic(), 1
    while networks.step < plan.steps:
        block = monotonic()
        networks.advance(min(count, plan.steps - networks.step))
        row = {"networks": plan.networks, "step": networks.step, **_state(networks)}
        now = monotonic()
        yield row | {"seconds": now - began}
        pace, left = (now - block) / count, end - now
        count = int(min(2 * count, 0.2 * left / pace))
        if count < 1:
            return


def _state(networks: nets.Training) -> Row:
    """Return the accuracies and losses of the networks, and how many circles survive in each, as a row."""
    row: Row = {}
    for part in ("train", "validation"):
        loss, accuracy = networks.losses(part)
        sound = np.isfinite(loss)
        row[f"{part}_accuracy"] = vars(mean(accuracy[sound]))
        row[f"{part}_reached_99"] = int((accuracy[sound] >= 0.99).sum())
    survivors = survives(fourier_signals(networks.embeddings[sound])).sum(-1)
    return row | {
        "diverged": int((~sound).sum()),
        "survivors": vars(mean(survivors)),
        "networks_by_survivors": np.bincount(survivors).tolist(),
    }
