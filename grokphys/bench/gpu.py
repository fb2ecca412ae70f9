"""`grokphys bench gpu`: training on CUDA, checked against the CPU and timed against it and a PyTorch loop."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import torch

import nets
from grokphys.bench.nets import plain_steps
from grokphys.bench.timing import Effort, Row, compare
from grokphys.models import MODELS
from nets.settings import LOSSES

DEVICE = "cuda"
BOUNDS = {"float64": 1e-10, "float32": 1e-3}
"""Largest difference from the CPU after five steps, relative to the largest parameter."""
RATES: dict[str, Any] = {"learning_rate": 0.01, "weight_decay": 0.5}
SHORT: dict[str, Any] = {"runs": 3, "steps": 5, "record": [5], "engine": "torch", **RATES}
"""Arguments of the training that is compared with the CPU."""
NETWORKS: dict[str, Any] = {name: kind() for name, kind in MODELS.items()}
"""Every kind of model, by its name; the transformer is smaller than by default."""
NETWORKS["token-transformer"] = nets.TokenTransformer(23, 64, heads=2, width=64)


def agreement(effort: Effort) -> list[Row]:
    """Five steps of three networks of every model on both devices, in both number types, and again."""
    rows: list[Row] = []
    for (dtype, bound), (name, model) in itertools.product(BOUNDS.items(), NETWORKS.items()):
        observables = ("train_loss", "layers") if name != "image-mlp" else LOSSES
        trained = (
            nets.train(model, device=device, dtype=dtype, observables=observables, **SHORT)
            for device in (DEVICE, DEVICE, "cpu")
        )
        first, second, cpu = (
            [run.final, *(values[:, -1] for values in run.observables.values())] for run in trained
        )
        pairs = zip(first, cpu, strict=True)
        error = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-12)) for a, b in pairs)
        what = f"{name}, {dtype}, five steps against the CPU"
        row: Row = {"what": what, "error": error, "same_bits_again": all(map(np.array_equal, first, second))}
        rows.append(row | {"target": f"at most {bound:g}", "met": error <= bound})
    return rows


def steps(effort: Effort) -> list[Row]:
    """A step of ensembles of growing size on CUDA, against the CPU's kernels and a PyTorch loop."""
    rows: list[Row] = []
    sizes = (1, 100, 1000) if effort.part > 1 else (1, 100, 1000, 10_000)
    for members, name in itertools.product(sizes, ("constant-attention", "embedding-mlp")):
        model = NETWORKS[name]
        count = max(2, 200 // members)
        here, there = (
            nets.Training(model, runs=members, device=device, **RATES) for device in (DEVICE, "cpu")
        )
        references: dict[str, Any] = {
            "the CPU": partial(there.advance, count),
            "a PyTorch loop": (_waiting(plain_steps(model, 20, device=DEVICE)), 20 / members),
        }
        ours = _waiting(partial(here.advance, count))
        what = f"a step of {members} networks, {name}"
        timed = compare(what, ours, references, units=count, rounds=effort.rounds)
        rows += [row | {"peak_bytes": torch.cuda.max_memory_allocated()} for row in timed]
    return rows


def _waiting(call: Any) -> Any:
    def work() -> None:
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return work


BENCHMARKS = (agreement, steps)
