"""`grokphys bench`: every benchmark in turn, each against its reference."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from grokphys.options import Directory, Names, Overwrite, check_names, given_otherwise
from grokphys.output import Budget, make_directory, refuse_existing
from physics.checks import number
from physics.errors import InputError


def bench(
    names: Positional[Names] = (),
    *,
    directory: Directory = Path("results/bench"),
    budget: Budget = "default",
    minutes: Annotated[
        float | None, given_otherwise("2 if quick, 10 if default, 60 if paper", "MINUTES")
    ] = None,
    overwrite: Overwrite = False,
) -> int:
    """Measure the speed of this package against references that are timed in the same run.

    Where a reference does the same work, the speed is given as a ratio to it, because seconds depend on the
    machine and its load. The command prints a table for each benchmark, and writes all numbers as JSON.

    Example: grokphys bench particles --budget quick

    Args:
        names: Benchmarks to run: theory (closures and quality of the effective theory), particles (forces and
            simulation), nets (training), ode (laws of motion), start (first calls in new processes) and gpu
            (training and forces on a CUDA device). Without names all run except gpu.
        directory: Directory to write to. It will hold NAME.json for each benchmark.
        budget: How much to compute. quick takes seconds to minutes, default measures what
            docs/develop/benchmarks.md reports, and paper lets the references run at the largest sizes.
        minutes: Number of minutes, greater than 0, that the benchmark gpu may take. It measures as much as it
            can in that time.
        overwrite: Replace files that exist.
    """
    from grokphys.bench.registry import BENCHES

    check_names(names, BENCHES, budget)
    if minutes is not None:
        minutes = number("minutes", minutes, above=0.0)
        if "gpu" not in names:
            raise InputError(
                f"minutes must be left out unless gpu is among the names, got {minutes:g} with "
                f"{' '.join(names) or 'no names'}"
            )
    names = tuple(dict.fromkeys(names)) or tuple(name for name in BENCHES if name != "gpu")
    for name in names:
        refuse_existing(directory / f"{name}.json", overwrite, parents=True)
    make_directory(directory)
    status = 0
    for name in names:
        more = {"minutes": minutes} if name == "gpu" else {}
        status = max(status, BENCHES[name](out=directory / f"{name}.json", budget=budget, **more))
    return status
