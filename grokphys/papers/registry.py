"""`grokphys reproduce`: the registry of published figures, each made anew with its data."""

from collections.abc import Callable
from pathlib import Path

from grokphys.output import Budget
from grokphys.papers.beyond import pairings
from grokphys.papers.beyond import scaling as liu_scaling
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
from grokphys.papers.musat import (
    networks as musat_networks,
)
from grokphys.papers.musat import (
    particles as musat_particles,
)
from grokphys.papers.musat import (
    start as musat_start,
)

Recipe = Callable[[Path, Budget], list[Path]]

FIGURES: dict[str, Recipe] = {
    "musat-table1": musat_networks.table_1,
    "musat-table2": musat_particles.table_2,
    "musat-3": musat_networks.grid_map,
    "musat-4": musat_networks.circle_map,
    "musat-5": musat_particles.arrangements,
    "musat-6": musat_networks.norms,
    "musat-D": musat_networks.gallery,
    "musat-G": musat_networks.higher,
    "musat-map": musat_particles.phase_map,
    "musat-start": musat_start.starts,
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
    "liu-groups": liu_scaling.groups,
    "liu-scaling": liu_scaling.scaling,
    "compare-theory": pairings.theory_and_toy,
    "compare-particles": pairings.particles_and_attention,
    "compare-ode": pairings.ode_and_mlp,
}
"""What each name makes: a function of the directory and the budget that returns the files it wrote."""
