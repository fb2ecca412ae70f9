"""Calibration of predictions: bias, error, correlation and slope, with intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.scaling import scaled
from analysis.stats.effects import bootstrap
from analysis.stats.intervals import CONFIDENCE, Interval, correlation, mean
from physics.checks import real_array
from physics.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """How well predictions agree with measurements, which `calibrate` returns.

    All intervals have a confidence of 95 %.

    Attributes
    ----------
    predicted, measured : ndarray of float64, shape (n,)
        Predicted and measured values of the runs that have both.
    bias : Interval
        Mean of measured minus predicted, with Student's interval.
    error : Interval
        Root mean square of measured minus predicted, with a bootstrap interval.
    correlation : Interval
        Pearson correlation, with Fisher's interval; NaN for fewer than 4 runs.
    slope : Interval
        Slope of measured on predicted values, by least squares, with Student's interval; 1 if well
        calibrated, and NaN for fewer than 3 runs.

    Examples
    --------
    >>> import analysis
    >>> found = analysis.stats.calibrate([0.1, 0.4, 0.6, 0.9], [0.2, 0.5, 0.7, 1.0])  # always 0.1 too low
    >>> round(found.bias.estimate, 6), round(found.error.estimate, 6)
    (0.1, 0.1)
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
        Values of each run. Runs in which one value is not finite are ignored.

    Returns
    -------
    Calibration
        Bias, error, correlation and slope, each with a 95 % interval.

    Raises
    ------
    InputError
        If `predicted` and `measured` differ in shape, or have more than one axis.

    Examples
    --------
    >>> import analysis
    >>> found = analysis.stats.calibrate([0.1, 0.4, 0.6, 0.9], [0.2, 0.5, 0.7, 1.0])
    >>> round(found.bias.estimate, 6), round(found.slope.estimate, 6)
    (0.1, 1.0)
    """
    x, y = real_array("predicted", predicted), real_array("measured", measured)
    if x.shape != y.shape or x.ndim != 1:
        raise InputError(f"predicted and measured must have one shape (n,), got {x.shape} and {y.shape}")
    sound = np.isfinite(x) & np.isfinite(y)
    x, y = x[sound], y[sound]
    error, unit = scaled(y - x)
    return Calibration(
        x,
        y,
        mean(y - x),
        bootstrap((error,), lambda rows: np.sqrt(np.mean(rows**2, axis=1))).map(
            lambda value: float(np.ldexp(value, unit[0]))
        ),
        correlation(x, y),
        _slope(x, y),
    )


def _slope(x: Array, y: Array) -> Interval:
    """Return the slope of y on x with Student's interval; NaN for fewer than 3 points."""
    if len(x) < 3 or np.ptp(x) == 0:
        return Interval(np.nan, np.nan, np.nan, len(x))
    (x, along), (y, up) = scaled(x), scaled(y)
    fit = stats.linregress(x, y)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 2)) * float(fit.stderr)
    slope = float(fit.slope)
    return Interval(slope, slope - half, slope + half, len(x)).map(
        lambda value: float(np.ldexp(value, (up - along)[0]))
    )
