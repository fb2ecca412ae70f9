"""`grokphys bench`: every benchmark in turn, each against its references."""

import importlib
from pathlib import Path
from typing import Annotated, Literal, get_args

import tyro
from tyro.conf import Positional

from grokphys.options import Directory, Overwrite
from grokphys.output import Budget, make_directory, refuse_existing, write_json
from grokphys.progress import progress
from physics.errors import OutputError

Bench = Literal["particles", "nets", "gpu"]
"""Names of the benchmarks, which are the modules of this package whose BENCHMARKS list functions."""


def bench(
    names: Annotated[Positional[tuple[Bench, ...]], tyro.conf.arg(help_behavior_hint="")] = (),
    *,
    directory: Directory = Path("results/bench"),
    budget: Budget = "default",
    overwrite: Overwrite = False,
) -> int:
    """Measure the speed of this package against references that are timed in the same run.

    Where a reference does the same work, the speed is given as a ratio to it, because seconds depend on the
    machine and its load. The command prints a table for each benchmark, and writes all numbers as JSON.

    Example: grokphys bench particles --budget quick

    Args:
        names: Benchmarks to run: particles (forces of many), nets (training) and gpu
            (training on a CUDA device). Without names all run except gpu.
        directory: Directory to write to. It will hold NAME.json for each benchmark.
        budget: How much to compute. quick takes seconds to a minute, default measures what
            docs/develop/benchmarks.md reports, and paper takes more rounds.
        overwrite: Replace files that exist.
    """
    from grokphys.bench.timing import EFFORTS, machine, table

    names = tuple(dict.fromkeys(names)) or tuple(name for name in get_args(Bench) if name != "gpu")
    for name in names:
        refuse_existing(directory / f"{name}.json", overwrite, parents=True)
    if "gpu" in names:
        import torch

        if not torch.cuda.is_available():
            raise OutputError("gpu needs CUDA, which this machine or this PyTorch has not")
    make_directory(directory)
    status = 0
    for name in names:
        module, rows = importlib.import_module(f"grokphys.bench.{name}"), []
        for function in progress(module.BENCHMARKS, f"bench {name}", "part"):
            rows += function(EFFORTS[budget])
        print(table(name, rows).text(), end="\n\n")
        out = write_json(directory / f"{name}.json", {"machine": machine(), "budget": budget, "rows": rows})
        print(f"wrote {out}")
        status |= name == "gpu" and not all(row.get("met", True) for row in rows)
    return status
