"""`grokphys bench`: every benchmark in turn, each against its references."""

import importlib
import sys
from pathlib import Path
from typing import Annotated, Literal, get_args

import tyro
from tyro.conf import Positional

from grokphys.options import Directory, Overwrite, given_otherwise
from grokphys.output import Budget, make_directory, refuse_existing, write_json
from grokphys.progress import progress
from physics.checks import number
from physics.errors import InputError

Bench = Literal["theory", "particles", "nets", "ode", "start", "gpu"]
"""Names of the benchmarks, which are the modules of this package whose BENCHMARKS list functions."""


def bench(
    names: Annotated[Positional[tuple[Bench, ...]], tyro.conf.arg(help_behavior_hint="")] = (),
    *,
    directory: Directory = Path("results/bench"),
    budget: Budget = "default",
    minutes: Annotated[float | None, given_otherwise("as many as it needs", "MINUTES")] = None,
    overwrite: Overwrite = False,
) -> int:
    """Measure the speed of this package against references that are timed in the same run.

    Where a reference does the same work, the speed is given as a ratio to it, because seconds depend on the
    machine and its load. The command prints a table for each benchmark, and writes all numbers as JSON.

    Example: grokphys bench particles --budget quick

    Args:
        names: Benchmarks to run: theory (closures and quality of the effective theory), particles (forces and
            simulation), nets (training), ode (laws of motion), start (first calls in new processes) and gpu
            (training on a CUDA device). Without names all run except gpu.
        directory: Directory to write to. It will hold NAME.json for each benchmark.
        budget: How much to compute. quick takes seconds to a minute, default measures what
            docs/develop/benchmarks.md reports, and paper takes more rounds.
        minutes: Number of minutes, greater than 0, after which the benchmark gpu begins nothing more.
        overwrite: Replace files that exist.
    """
    if minutes is not None:
        minutes = number("minutes", minutes, above=0.0)
        if "gpu" not in names:
            raise InputError(
                f"minutes must be left out unless gpu is among the names, got {minutes:g} with "
                f"{' '.join(names) or 'no names'}"
            )
    names = tuple(dict.fromkeys(names)) or tuple(name for name in get_args(Bench) if name != "gpu")
    for name in names:
        refuse_existing(directory / f"{name}.json", overwrite, parents=True)
    if "gpu" in names:
        import torch

        if not torch.cuda.is_available():
            print("grokphys: gpu needs CUDA, which this machine or this PyTorch has not", file=sys.stderr)
            return 1
    make_directory(directory)
    return max(run(name, directory / f"{name}.json", budget, minutes) for name in names)


def run(name: str, out: Path, budget: Budget, minutes: float | None = None) -> int:
    """Run one benchmark, print its table and write its rows; return 1 if devices disagree, else 0."""
    from grokphys.bench.timing import EFFORTS, machine, table

    module = importlib.import_module(f"grokphys.bench.{name}")
    rows = []
    for function in progress(module.BENCHMARKS, f"bench {name}", "part"):
        rows += function(EFFORTS[budget]) if name != "gpu" else function(EFFORTS[budget], minutes)
    print(table(name, rows).text(), end="\n\n")
    write_json(out, {"machine": machine(), "budget": budget, "rows": rows})
    print(f"wrote {out}")
    return int(name == "gpu" and not all(row.get("met", True) for row in rows))
