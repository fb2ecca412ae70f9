"""Where a probability passes one half: critical values with intervals from a fit."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from analysis.statistics import CONFIDENCE, Interval, proportion
from physics.checks import finite_array
from physics.errors import InputError

Array = NDArray[np.float64]
TINY = 1e-12
"""Control parameters below it count as it, so that they have a logarithm."""


@dataclass(frozen=True)
class Transition:
    """A fitted transition of a probability from 0 to 1.

    ``P(r) = (1 + (2^s - 1) (r_c/r)^(1/w))^(-1/s)`` for r > 0, which is one half at r_c. In log r it is
    Richards' curve: logistic for s = 1, and of Gumbel's shape, as for the last of many rare events, in the
    limit s → 0.

    Attributes
    ----------
    critical : Interval
        r_c with its 95 % profile-likelihood interval, and the number of trials.
    width : float
        w, relative to r_c.
    shape : float
        s.
    misfit : float
        How far the data are from the curve. Where trials at each value are independent, the deviance per
        degree of freedom; where it exceeds 1, the interval is widened by its square root. Where single
        samples pass, the largest distance between their distribution and the curve.
    """

    critical: Interval
    width: float
    shape: float
    misfit: float

    def probability(self, r: Any) -> Array:
        """P(r) of the fitted curve."""
        return np.exp(_log_probability(np.asarray(r, float), self.critical.estimate, self.width, self.shape))


def fit_transition(values: Any, successes: Any, trials: Any) -> Transition:
    """Fit a transition to independent trials at several values of a control parameter.

    Parameters
    ----------
    values : array_like, shape (n,)
        Control parameter, such as the training fraction, greater than 0.
    successes, trials : array_like of int, shape (n,)

    Returns
    -------
    Transition
        By maximum likelihood; `misfit` judges the curve.

    Raises
    ------
    InputError
        If shapes do not agree, or there is no value with successes and failures, so that nothing can be
        fitted.
    """
    r, hits = finite_array("values", values), finite_array("successes", successes)
    count = finite_array("trials", trials)
    if r.ndim != 1 or not r.shape == hits.shape == count.shape:
        raise InputError(
            f"values, successes and trials must have one shape (n,), got {r.shape}, {hits.shape} and "
            f"{count.shape}"
        )
    if not ((hits > 0) & (hits < count)).any():
        raise InputError(
            "successes must lie between 0 and trials at some value for a transition to be fitted"
        )

    def cost(centre: float, width: float, shape: float) -> float:
        log_p = _log_probability(r, centre, width, shape)
        return -float(hits @ log_p + (count - hits) @ _log_complement(log_p))

    p = hits / count
    perfect = -float(np.sum(special.xlogy(hits, p) + special.xlogy(count - hits, 1 - p)))
    inside = int(np.count_nonzero((hits > 0) & (hits < count)))
    return _fit(cost, *_guess(r, hits / count), int(count.sum()), perfect, inside - 3)


def fit_critical_values(values: Any, step: float) -> Transition:
    """Fit a transition to the values at which single samples passed, each known to within one `step`.

    Parameters
    ----------
    values : array_like, shape (n,)
        The first value at which a sample had passed; at ``value - step`` it had not.
    step : float
        Spacing of the values.

    Returns
    -------
    Transition

    Raises
    ------
    InputError
        If `values` are not of that kind or do not differ.
    """
    r = finite_array("values", values)
    if r.ndim != 1 or len(r) < 3 or np.ptp(r) == 0:
        raise InputError(f"values must hold at least 3 numbers that differ, got the shape {r.shape}")
    level, weight = np.unique(r, return_counts=True)

    def cost(centre: float, width: float, shape: float) -> float:
        upper = _log_probability(level, centre, width, shape)
        lower = _log_probability(level - step, centre, width, shape)
        return -float(weight @ (upper + _log_complement(lower - upper)))

    passed = np.cumsum(weight) / len(r)
    fit = _fit(cost, *_guess(level, passed), len(r), math.nan, 0)
    return replace(fit, misfit=float(np.abs(fit.probability(level) - passed).max()))


def median_crossing(values: Any, step: float) -> Interval:
    """Return where half of the samples have passed, without a model of the curve.

    The fraction that has passed, with Wilson's interval, is interpolated between the values; the interval
    holds the places where its bounds cross one half. Arguments are those of `fit_critical_values`.
    """
    r = finite_array("values", values)
    level, weight = np.unique(r, return_counts=True)
    level = np.append(level[0] - step, level)
    passed = np.append(0, np.cumsum(weight))
    bounds = [proportion(int(k), len(r)) for k in passed]
    estimate, low, high = (
        float(np.interp(0.5, [getattr(bound, side) for bound in bounds], level))
        for side in ("estimate", "high", "low")
    )
    return Interval(estimate, low, high, len(r))


def _guess(r: Array, p: Array) -> tuple[float, float]:
    low, centre, high = np.interp([0.25, 0.5, 0.75], np.maximum.accumulate(p), np.log(np.maximum(r, TINY)))
    return float(centre), float(max(high - low, 1e-3)) / 2


def _fit(
    cost: Callable[[float, float, float], float],
    log_centre: float,
    scale: float,
    count: int,
    perfect: float,
    freedom: int,
) -> Transition:
    """Minimise `cost` over r_c, w and s from a guess, and find where its profile has risen."""

    def of(x: Array) -> float:
        return cost(math.exp(log_centre + scale * x[0]), scale * math.exp(x[1]), _shape(x[2]))

    best: Any = _minimise(of, np.zeros(3))
    misfit = 2 * float(best.fun - perfect) / freedom if freedom > 0 else math.nan
    allowed = float(stats.chi2.ppf(CONFIDENCE, 1)) / 2 * (misfit if misfit > 1 else 1.0)

    def side(direction: float) -> float:
        def excess(distance: float) -> float:
            at = best.x[0] + direction * distance
            rest = _minimise(lambda x: of(np.array([at, *x])), best.x[1:])
            return float(rest.fun - best.fun) - allowed

        reach = 0.02
        while excess(reach) < 0 and reach < 100:
            reach *= 2
        return direction * float(optimize.brentq(excess, 0.0, reach, xtol=1e-5))

    at, log_width, log_shape = (float(x) for x in best.x)
    critical = Interval(
        math.exp(log_centre + scale * at),
        math.exp(log_centre + scale * (at + side(-1.0))),
        math.exp(log_centre + scale * (at + side(1.0))),
        count,
    )
    return Transition(critical, scale * math.exp(log_width), _shape(log_shape), misfit)


def _minimise(cost: Callable[[Any], float], start: Array) -> Any:
    return optimize.minimize(
        cost, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-8, "maxiter": 4000}
    )


def _shape(logarithm: float) -> float:
    """Keep s where the curve has digits: below, it has Gumbel's shape, above, it is a power law up to 1."""
    return math.exp(min(max(logarithm, -12.0), 4.0))


def _log_probability(r: Array, centre: float, width: float, shape: float) -> Array:
    # log(2^s - 1) by expm1, so that the limit s → 0 keeps its digits.
    distance = np.log(np.maximum(r, TINY) / centre) / width
    exponent = np.log(np.expm1(shape * math.log(2))) - distance
    return -np.logaddexp(0.0, exponent) / shape


def _log_complement(log_p: Array) -> Array:
    """log(1 - p) from log p ≤ 0; bounded below, so that an impossible outcome costs much, not infinity."""
    return np.log(np.maximum(-np.expm1(log_p), 1e-300))
