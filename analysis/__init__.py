"""Analysis of trajectories: signals, laws of motion, survival, comparison and figures. It never trains."""

from analysis.circles.fourier import (
    agreement,
    fourier_signals,
    frequency_shares,
    survives,
    surviving_frequencies,
    trajectory_signals,
)
from analysis.circles.geometry import (
    Plane,
    PrincipalComponents,
    circle_delta,
    circularity,
    effective_dimension,
    frequency_plane,
    principal_components,
)
from analysis.circles.neurons import Diversification, diversification, neuron_ablation
from analysis.circles.signals import Circles, Signals, circles_of, signals_of
from analysis.circles.structures import Structures, structures
from analysis.circles.survival import StoppingRule, circle_counts, decision_error, fitness, survival_rates
from analysis.compare.comparison import Comparison, compare
from analysis.compare.motion import Motion
from analysis.compare.onsets import OnsetDifference, Onsets, compare_onsets, onsets
from analysis.compare.relabelling import (
    Symmetry,
    affine_maps,
    automorphisms,
    no_relabelling,
    procrustes_disparity,
    symmetry_of,
)
from analysis.laws.batch import Recipe, fit_batch
from analysis.laws.flow import (
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
from analysis.laws.lasso import LassoSolution, batch_lasso
from analysis.laws.matching import match_trajectories
from analysis.laws.nonlinear import MeanFieldRegressor, lotka_volterra
from analysis.laws.ode import PUBLISHED, BatchFit, FitWarning, ODEFit, fit_each, fit_trajectories
from analysis.laws.regressors import LinearODERegressor
from analysis.laws.resampling import Resampled, resample_coefficients
from analysis.laws.scores import HonestScores, Law, RegressorLaw, Score, fit_law, honest_scores
from analysis.phases.axes import Axis
from analysis.phases.classification import PHASES, Majority, classify_phases
from analysis.phases.diagram import Cell, PhaseDiagram, Refinement, phase_diagram
from analysis.stats.calibration import Calibration, calibrate
from analysis.stats.effects import (
    Difference,
    cliffs_delta,
    cohens_h,
    compare_proportions,
    compare_values,
    hedges_g,
)
from analysis.stats.intervals import Interval, correlation, mean, proportion
from analysis.stats.transitions import Transition, fit_critical_values, fit_transition, median_crossing
from physics.neurons.logits import (
    LogitSpectrum,
    exclude_logits,
    excluded_loss,
    frequency_ablation,
    logit_spectrum,
    restrict_logits,
    restricted_loss,
)
from physics.neurons.spectrum import NeuronSpectrum, neuron_spectrum

__all__ = [
    "PHASES",
    "PUBLISHED",
    "Axis",
    "BatchFit",
    "Calibration",
    "Cell",
    "Circles",
    "Comparison",
    "Difference",
    "Diversification",
    "FitWarning",
    "FixedPoints",
    "HonestScores",
    "Interval",
    "LassoSolution",
    "Law",
    "LinearODERegressor",
    "LogitSpectrum",
    "Majority",
    "MeanFieldRegressor",
    "Motion",
    "NeuronSpectrum",
    "ODEFit",
    "OnsetDifference",
    "Onsets",
    "PhaseDiagram",
    "Plane",
    "PrincipalComponents",
    "Recipe",
    "Refinement",
    "RegressorLaw",
    "Resampled",
    "Score",
    "Signals",
    "Stability",
    "StoppingRule",
    "Structures",
    "Symmetry",
    "Transition",
    "affine_maps",
    "affine_rollout",
    "affine_solution",
    "agreement",
    "automorphisms",
    "batch_lasso",
    "calibrate",
    "circle_counts",
    "circle_delta",
    "circles_of",
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
    "diversification",
    "effective_dimension",
    "exclude_logits",
    "excluded_loss",
    "fit_batch",
    "fit_critical_values",
    "fit_each",
    "fit_law",
    "fit_trajectories",
    "fit_transition",
    "fitness",
    "fixed_points",
    "fourier_signals",
    "frequency_ablation",
    "frequency_plane",
    "frequency_shares",
    "hedges_g",
    "honest_scores",
    "interactions",
    "logit_spectrum",
    "lotka_volterra",
    "match_trajectories",
    "mean",
    "median_crossing",
    "neuron_ablation",
    "neuron_spectrum",
    "no_relabelling",
    "onsets",
    "phase_diagram",
    "principal_components",
    "procrustes_disparity",
    "proportion",
    "resample_coefficients",
    "restrict_logits",
    "restricted_loss",
    "signals_of",
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
