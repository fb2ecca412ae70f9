"""`grokphys reproduce`: the registry of published figures, each made anew with its data."""

from collections.abc import Callable
from pathlib import Path

from experiments import liu_examples, liu_scaling, liu_theory, musat_particles
from experiments.output import Budget

Recipe = Callable[[Path, Budget], list[Path]]

FIGURES: dict[str, Recipe] = {
    "musat-table2": musat_particles.table_2,
    "musat-map": musat_particles.phase_map,
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
