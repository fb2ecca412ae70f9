"""Calibration of predictions: bias, error, correlation and slope, with intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.stats.effects import bootstrap
from analysis.stats.intervals import CONFIDENCE, Interval, correlation, mean
from physics.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """How well predictions agree with measurements, for one pair of values per run.

    Attributes
    ----------
    predicted, measured : ndarray, shape (n,)
        Predicted and measured values of the runs that have both.
    bias : Interval
        Mean of measured minus predicted, with Student's interval.
    error : Interval
        Root mean square of that difference, with a bootstrap interval.
    correlation : Interval
        Pearson correlation, with Fisher's interval.
    slope : Interval
        Slope of measured on predicted values, by least squares, with Student's interval; 1 if well
        calibrated.
    """

    predicted: Array
    measured: Array
    bias: Interval
    error: Interval
    correlation: Interval
    slope: Interval


def calibrate(predicted: Any, measured: Any) -> Calibration:
    """Compare predictions with measurements, such as predicted with measured accuracies.

    Parameters
    ----------
    predicted, measured : array_like, shape (n,)
        Pairs in which one value is NaN are ignored.

    Returns
    -------
    Calibration
        Bias, error, correlation and slope, each with a 95 % interval.

    Raises
    ------
    InputError
        If their shapes differ.
    """
    x, y = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise InputError(f"predicted and measured must have one shape (n,), got {x.shape} and {y.shape}")
    sound = np.isfinite(x) & np.isfinite(y)
    x, y = x[sound], y[sound]
    return Calibration(
        x,
        y,
        mean(y - x),
        bootstrap((y - x,), lambda rows: np.sqrt(np.mean(rows**2, axis=1))),
        correlation(x, y),
        _slope(x, y),
    )


def _slope(x: Array, y: Array) -> Interval:
    if len(x) < 3 or np.ptp(x) == 0:
        return Interval(np.nan, np.nan, np.nan, len(x))
    found = stats.linregress(x, y)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 2)) * float(found.stderr)
    return Interval(float(found.slope), float(found.slope) - half, float(found.slope) + half, len(x))
