"""`grokphys reproduce`: the registry of published figures, each made anew with its data."""

from collections.abc import Callable
from pathlib import Path

from grokphys.output import Budget
from grokphys.papers.ding import (
    figures as ding_figures,
)
from grokphys.papers.ding import (
    interventions as ding_interventions,
)
from grokphys.papers.ding import (
    law as ding_law,
)
from grokphys.papers.ding import (
    networks as ding_networks,
)
from grokphys.papers.ding import (
    selection as ding_selection,
)
from grokphys.papers.liu import (
    components as liu_components,
)
from grokphys.papers.liu import (
    diagrams as liu_diagrams,
)
from grokphys.papers.liu import (
    examples as liu_examples,
)
from grokphys.papers.liu import (
    images as liu_images,
)
from grokphys.papers.liu import (
    networks as liu_networks,
)
from grokphys.papers.liu import (
    small as liu_small,
)
from grokphys.papers.liu import (
    theory as liu_theory,
)
from grokphys.papers.liu import (
    toy as liu_toy,
)

Recipe = Callable[[Path, Budget], list[Path]]

FIGURES: dict[str, Recipe] = {
    "liu-1": liu_components.emergence,
    "liu-3": liu_toy.accuracies,
    "liu-4a": liu_theory.probability,
    "liu-4b": liu_toy.qualities,
    "liu-4c": liu_theory.trajectories,
    "liu-4d": liu_toy.trajectories,
    "liu-5a": liu_theory.rates,
    "liu-5b": liu_toy.grokking_steps,
    "liu-6a": liu_diagrams.competition,
    "liu-6b": liu_diagrams.regression,
    "liu-6c": liu_diagrams.classification,
    "liu-6d": liu_diagrams.permutation,
    "liu-7": liu_networks.phases,
    "liu-8": liu_images.grokking,
    "liu-8b": liu_images.phases,
    "liu-9": liu_examples.curriculum,
    "liu-10": liu_theory.bounds,
    "liu-11": liu_examples.hierarchy,
    "liu-12": liu_small.four,
    "liu-13": liu_diagrams.batches,
    "liu-14": liu_diagrams.initialisation,
    "liu-15": liu_diagrams.representation_decay,
    "liu-16": liu_examples.deduction,
    "liu-17": liu_small.hexagon,
    "liu-18": liu_small.permutations,
    "liu-20": liu_images.sizes,
    "liu-21": liu_components.tickets,
    "liu-22": liu_components.projections,
    "liu-L": liu_examples.emergence,
    "ding-2": ding_figures.signals,
    "ding-3": ding_figures.components,
    "ding-4": ding_networks.frozen,
    "ding-5": ding_networks.by_size,
    "ding-6": ding_selection.initial_signals,
    "ding-7": ding_selection.initial_gradients,
    "ding-8": ding_interventions.collaboration,
    "ding-9": ding_figures.equations,
    "ding-9a": ding_networks.fits_by_size,
    "ding-10": ding_networks.by_decay,
    "ding-11": ding_figures.initial_circularity,
    "ding-11b": ding_selection.by_circularity,
    "ding-12": ding_interventions.ablation,
    "ding-13": ding_networks.gradients,
    "ding-14": ding_networks.all_moduli,
    "ding-15": ding_networks.three_fits,
    "ding-16": ding_figures.all_trajectories,
    "ding-law": ding_law.across_runs,
}
"""What each name makes: a function of the directory and the budget that returns the files it wrote."""
