"""`grokphys reproduce`: the registry of published figures, each made anew with its data."""

from collections.abc import Callable
from pathlib import Path

from grokphys.output import Budget
from grokphys.papers.beyond import pairings
from grokphys.papers.beyond import scaling as liu_scaling
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
    "liu-groups": liu_scaling.groups,
    "liu-scaling": liu_scaling.scaling,
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
    "compare-theory": pairings.theory_and_toy,
    "compare-particles": pairings.particles_and_attention,
    "compare-ode": pairings.ode_and_mlp,
}
"""What each name makes: a function of the directory and the budget that returns the files it wrote."""
