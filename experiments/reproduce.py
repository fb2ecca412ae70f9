"""`grokphys reproduce`: the registry of published figures, each made anew with its data."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import tyro

from experiments import liu_examples, liu_scaling, liu_theory
from experiments.output import Budget
from physics.checks import choice
from physics.errors import OutputError

Recipe = Callable[[Path, Budget], list[Path]]

FIGURES: dict[str, Recipe] = {
    "liu-4a": liu_theory.probability,
    "liu-4c": liu_theory.trajectories,
    "liu-5a": liu_theory.rates,
    "liu-5b": liu_theory.steps,
    "liu-9": liu_examples.curriculum,
    "liu-10": liu_theory.bounds,
    "liu-11": liu_examples.hierarchy,
    "liu-16": liu_examples.deduction,
    "liu-L": liu_examples.emergence,
    "liu-scaling": liu_scaling.scaling,
    "liu-groups": liu_scaling.groups,
}
"""What each name makes: a function of the directory and the budget that returns the files it wrote."""


def reproduce(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FIGURE ...")] = (),
    *,
    out: Path = Path("results/reproduce"),
    budget: Budget = "default",
) -> int:
    """Reproduce published figures: the data as CSV, the figure as PNG, the finding on the screen.

    Args:
        names: figures, such as liu-4a; all of them if none is given.
        out: directory to write to; files of the same name are replaced.
        budget: quick for a look, default for what this package reports, paper for the largest ensembles.
    """
    for name in names:
        choice("names", name, tuple(FIGURES))
    choice("budget", budget, get_args(Budget))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {out}: {error.strerror}") from None
    for name in names or tuple(FIGURES):
        print(f"{name}: {(FIGURES[name].__doc__ or '').splitlines()[0]}")
        for path in FIGURES[name](out, budget):
            print(f"  wrote {path}")
    return 0
