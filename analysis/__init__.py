"""What trajectories say: Fourier signals, linear ODEs, comparison, figures. Reads and never trains."""

from analysis.comparison import Comparison, compare, procrustes_disparity, structures
from analysis.fourier import fourier_signals, survives, surviving_frequencies
from analysis.ode import LinearODERegressor, ODEFit, affine_rollout, affine_solution, fit_trajectories
from analysis.statistics import Interval, correlation, mean, proportion

__all__ = [
    "Comparison",
    "Interval",
    "LinearODERegressor",
    "ODEFit",
    "affine_rollout",
    "affine_solution",
    "compare",
    "correlation",
    "fit_trajectories",
    "fourier_signals",
    "mean",
    "procrustes_disparity",
    "proportion",
    "structures",
    "survives",
    "surviving_frequencies",
]
