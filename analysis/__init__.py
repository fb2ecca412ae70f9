"""What trajectories say: signals, laws of motion, survival, comparison, figures. Reads and never trains."""

from analysis.comparison import Comparison, compare, procrustes_disparity, structures
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
from analysis.nonlinear import MeanFieldRegressor, lotka_volterra
from analysis.ode import PUBLISHED, BatchFit, FitWarning, ODEFit, fit_each, fit_trajectories
from analysis.phase_axes import Axis
from analysis.phase_diagram import Cell, PhaseDiagram, Refinement, phase_diagram
from analysis.phases import PHASES, Majority, classify_phases
from analysis.regressors import LinearODERegressor
from analysis.resampling import Resampled, resample_coefficients
from analysis.statistics import Interval, correlation, mean, proportion
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
    "Cell",
    "Comparison",
    "FitWarning",
    "FixedPoints",
    "HonestScores",
    "Interval",
    "LassoSolution",
    "Law",
    "LinearODERegressor",
    "Majority",
    "MeanFieldRegressor",
    "ODEFit",
    "PhaseDiagram",
    "Plane",
    "PrincipalComponents",
    "Refinement",
    "RegressorLaw",
    "Resampled",
    "Score",
    "Stability",
    "StoppingRule",
    "affine_rollout",
    "affine_solution",
    "batch_lasso",
    "circle_counts",
    "circle_delta",
    "circularity",
    "classify_phases",
    "compare",
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
    "honest_scores",
    "interactions",
    "lotka_volterra",
    "match_trajectories",
    "mean",
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
    "to_generator",
    "to_increment",
    "trajectory_signals",
]
