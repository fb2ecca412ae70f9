"""What trajectories say: signals, laws of motion, survival, comparison, figures. Reads and never trains."""

from analysis.calibration import Calibration, calibrate
from analysis.comparison import Comparison, compare
from analysis.effects import Difference, cliffs_delta, cohens_h, compare_proportions, compare_values, hedges_g
from analysis.flow import (
    FixedPoints,
    Stability,
    affine_rollout,
    affine_solution,
    fixed_points,
    interactions,
    stability,
    to_generator,
    to_increment,
)
from analysis.fourier import fourier_signals, survives, surviving_frequencies, trajectory_signals
from analysis.geometry import (
    Plane,
    PrincipalComponents,
    circle_delta,
    circularity,
    effective_dimension,
    frequency_plane,
    principal_components,
)
from analysis.lasso import LassoSolution, batch_lasso
from analysis.laws import HonestScores, Law, RegressorLaw, Score, fit_law, honest_scores
from analysis.matching import match_trajectories
from analysis.motion import Motion
from analysis.nonlinear import MeanFieldRegressor, lotka_volterra
from analysis.ode import PUBLISHED, BatchFit, FitWarning, ODEFit, fit_each, fit_trajectories
from analysis.onsets import OnsetDifference, Onsets, compare_onsets, onsets
from analysis.phase_axes import Axis
from analysis.phase_diagram import Cell, PhaseDiagram, Refinement, phase_diagram
from analysis.phases import PHASES, Majority, classify_phases
from analysis.regressors import LinearODERegressor
from analysis.relabelling import (
    Symmetry,
    affine_maps,
    automorphisms,
    no_relabelling,
    procrustes_disparity,
    symmetry_of,
)
from analysis.resampling import Resampled, resample_coefficients
from analysis.statistics import Interval, correlation, mean, proportion
from analysis.structures import Structures, structures
from analysis.survival import (
    StoppingRule,
    circle_counts,
    decision_error,
    fitness,
    survival_rates,
)

__all__ = [
    "PHASES",
    "PUBLISHED",
    "Axis",
    "BatchFit",
    "Calibration",
    "Cell",
    "Comparison",
    "Difference",
    "FitWarning",
    "FixedPoints",
    "HonestScores",
    "Interval",
    "LassoSolution",
    "Law",
    "LinearODERegressor",
    "Majority",
    "MeanFieldRegressor",
    "Motion",
    "ODEFit",
    "OnsetDifference",
    "Onsets",
    "PhaseDiagram",
    "Plane",
    "PrincipalComponents",
    "Refinement",
    "RegressorLaw",
    "Resampled",
    "Score",
    "Stability",
    "StoppingRule",
    "Structures",
    "Symmetry",
    "affine_maps",
    "affine_rollout",
    "affine_solution",
    "automorphisms",
    "batch_lasso",
    "calibrate",
    "circle_counts",
    "circle_delta",
    "circularity",
    "classify_phases",
    "cliffs_delta",
    "cohens_h",
    "compare",
    "compare_onsets",
    "compare_proportions",
    "compare_values",
    "correlation",
    "decision_error",
    "effective_dimension",
    "fit_each",
    "fit_law",
    "fit_trajectories",
    "fitness",
    "fixed_points",
    "fourier_signals",
    "frequency_plane",
    "hedges_g",
    "honest_scores",
    "interactions",
    "lotka_volterra",
    "match_trajectories",
    "mean",
    "no_relabelling",
    "onsets",
    "phase_diagram",
    "principal_components",
    "procrustes_disparity",
    "proportion",
    "resample_coefficients",
    "stability",
    "structures",
    "survival_rates",
    "survives",
    "surviving_frequencies",
    "symmetry_of",
    "to_generator",
    "to_increment",
    "trajectory_signals",
]
