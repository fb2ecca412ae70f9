"""`grokphys bench`: the registry of benchmarks, each against a reference in the same run."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import tyro

from experiments.bench_theory import bench_theory
from experiments.output import Budget
from physics.checks import choice

BENCHES: dict[str, Callable[..., int]] = {"theory": bench_theory}
"""What each name measures: a function of `out`, the JSON file, and `budget`."""


def bench(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME ...")] = (),
    *,
    out: Path = Path("results/bench"),
    budget: Budget = "default",
) -> int:
    """Measure against references, in one run: a table on the screen, and as JSON.

    Args:
        names: benchmarks, such as theory; all of them if none is given.
        out: directory to write NAME.json to; files of the same name are replaced.
        budget: quick takes seconds, paper lets the references run to the largest sizes.
    """
    for name in names:
        choice("names", name, tuple(BENCHES))
    choice("budget", budget, get_args(Budget))
    for name in names or tuple(BENCHES):
        BENCHES[name](out=out / f"{name}.json", budget=budget)
    return 0
