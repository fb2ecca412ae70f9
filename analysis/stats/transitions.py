"""Transitions: critical values at which a probability passes one half, with intervals from a fit."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from analysis.stats.intervals import CONFIDENCE, Interval
from physics.checks import InputError, finite_array, number, short_text
from physics.values import Array, Shown

Cost = Callable[[float, float, float], tuple[float, Array]]
FARTHEST = 500.0
"""Largest magnitude of the logarithm of a critical value in the search."""
TINY = 1e-12
"""Smallest control parameter; a smaller one is raised to it, so that it has a logarithm."""
SPACE = [(-200.0, 200.0), (-10.0, 10.0), (6e-6, 4.02)]
"""Bounds of r_c (in units of the guessed width), log w and log(1 + s) in the search.

The curve can be computed accurately within them. At smaller s it has Gumbel's shape, at larger s it is a
power law up to 1.
"""


@dataclass(frozen=True)
class Transition(Shown):
    """A fitted transition of a probability from 0 to 1, which `fit_transition` returns.

    The curve is ``P(r) = (1 + (2^s - 1) (r_c/r)^(1/w))^(-1/s)`` for a control parameter r > 0, with the
    critical value r_c, at which it is one half, the width w and the shape s. In log r it is Richards' curve:
    logistic for s = 1, and of Gumbel's shape, as for the last of many rare events, in the limit s → 0.

    Attributes
    ----------
    critical : Interval
        Critical value r_c with its 95 % profile-likelihood interval, and the number of trials or samples.
    width : float
        Width w of the transition, relative to r_c.
    shape : float
        Shape s.
    misfit : float
        Distance of the data from the curve. From `fit_transition` it is the deviance per degree of freedom,
        or NaN if no degree of freedom is left; if it exceeds 1, the interval is widened accordingly. From
        `fit_critical_values` it is the largest distance between the distribution of the samples and the
        curve.

    Examples
    --------
    >>> import analysis
    >>> found = analysis.fit_transition([0.2, 0.3, 0.4, 0.5, 0.6], [0, 3, 10, 17, 20], 5 * [20])
    >>> found.critical.format(2), found.probability([0.1, found.critical.estimate, 1.0]).round(2).tolist()
    ('0.40 [0.35, 0.45]', [0.0, 0.5, 1.0])
    """

    critical: Interval
    width: float
    shape: float
    misfit: float

    def probability(self, r: Any) -> Array:
        """Return the probability P(r) of the fitted curve.

        Parameters
        ----------
        r : array_like
            Control parameter, greater than 0; values below 1e-12 count as 1e-12.

        Returns
        -------
        ndarray of float64, the shape of `r`
            Probabilities from 0 to 1.

        Examples
        --------
        >>> import analysis
        >>> found = analysis.fit_transition([0.2, 0.3, 0.4, 0.5, 0.6], [0, 3, 10, 17, 20], 5 * [20])
        >>> found.probability(found.critical.estimate).round(6).item()
        0.5
        """
        log_r = np.log(np.maximum(np.asarray(r, float), TINY))
        return np.exp(_with_slopes(log_r, self.critical.estimate, self.width, self.shape)[0])


def fit_transition(values: Any, successes: Any, trials: Any) -> Transition:
    """Fit a transition to independent trials at several values of a control parameter.

    If the same samples are tried at all values, as the orders of `physics.critical_sizes` are, the interval
    would be too narrow; use `fit_critical_values` instead.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        Control parameter, such as the training fraction. At most one value may be below 1e-12, such as 0; it
        counts as 1e-12.
    successes, trials : array_like of int, shape (n,)
        Number of successes, from 0 to `trials`, and of trials, at least 1, at each value.

    Returns
    -------
    Transition
        Transition of maximum likelihood, whatever the order of the values; `misfit` measures how well the
        curve fits. An end of the interval that the data do not bound is 0 or infinite.

    Raises
    ------
    InputError
        If shapes do not agree, a number is out of its range, or no value has both successes and failures, so
        that nothing can be fitted.

    Examples
    --------
    >>> import analysis
    >>> found = analysis.fit_transition([0.2, 0.3, 0.4, 0.5, 0.6], [0, 3, 10, 17, 20], 5 * [20])
    >>> round(found.critical.estimate, 2)
    0.4
    """
    r, hits = finite_array("values", values), finite_array("successes", successes)
    count = finite_array("trials", trials)
    if r.ndim != 1 or not r.shape == hits.shape == count.shape:
        got = f"{r.shape}, {hits.shape} and {count.shape}"
        raise InputError(f"values, successes and trials must have one shape (n,), got {got}")
    for k in np.flatnonzero((count < 1) | (hits < 0) | (hits > count))[:1]:
        raise InputError(f"successes must be from 0 to trials, got {hits[k]:g} of {count[k]:g}")
    if not ((hits > 0) & (hits < count)).any():
        raise InputError("successes must lie between 0 and trials at some value, got none")

    order = np.lexsort((count, hits, r))
    r, hits, count = r[order], hits[order], count[order]
    log_r, fails = np.log(np.maximum(r, TINY)), count - hits

    def cost(center: float, width: float, shape: float) -> tuple[float, Array]:
        log_p, slopes = _with_slopes(log_r, center, width, shape)
        log_q, slope = _log_complement(log_p)
        return -float(hits @ log_p + fails @ log_q), -(slopes @ (hits + fails * slope))

    p = hits / count
    perfect = -float(np.sum(special.xlogy(hits, p) + special.xlogy(count - hits, 1 - p)))
    inside = int(np.count_nonzero((hits > 0) & (hits < count)))
    return _fit(cost, *_guess(r, hits / count), int(count.sum()), perfect, inside - 3)


def fit_critical_values(values: Any, step: float) -> Transition:
    """Fit a transition to the critical values of single samples.

    Each sample fails below some value of the control parameter and passes above it. These values are known
    within one `step`, because only multiples of it were tried.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        First value of the control parameter at which each sample had passed; at ``value - step`` it had not.
        At most one may be below 1e-12, such as 0.
    step : float
        Spacing of the values, greater than 0, in the same unit.

    Returns
    -------
    Transition
        Transition of maximum likelihood.

    Raises
    ------
    InputError
        If `values` have another shape, are fewer than 3, are all equal, or are not finite, or `step` is not
        greater than 0.

    Examples
    --------
    >>> import analysis
    >>> found = analysis.fit_critical_values([0.3, 0.4, 0.4, 0.4, 0.5, 0.5, 0.6], 0.1)
    >>> round(found.critical.estimate, 2)
    0.39
    """
    r, step = finite_array("values", values), number("step", step, above=0.0)
    if r.ndim != 1 or len(r) < 3 or np.ptp(r) == 0:
        got = short_text(r.tolist())
        raise InputError(f"values must be a list of at least 3 numbers that are not all equal, got {got}")
    level, weight = np.unique(r, return_counts=True)
    log_level, log_below = (np.log(np.maximum(values, TINY)) for values in (level, level - step))

    def cost(center: float, width: float, shape: float) -> tuple[float, Array]:
        upper, of_upper = _with_slopes(log_level, center, width, shape)
        lower, of_lower = _with_slopes(log_below, center, width, shape)
        rest, slope = _log_complement(lower - upper)
        slopes = of_upper @ (weight * (1 - slope)) + of_lower @ (weight * slope)
        return -float(weight @ (upper + rest)), -slopes

    passed = np.cumsum(weight) / len(r)
    fit = _fit(cost, *_guess(level, passed), len(r), math.nan, 0)
    return replace(fit, misfit=float(np.abs(fit.probability(level) - passed).max()))


def _guess(r: Array, p: Array) -> tuple[float, float]:
    """Return guesses of the logarithm of the critical value, and of the width on this logarithmic scale.

    `p` (n,) are the fractions that passed at the values `r` (n,) of the control parameter, of which at most
    one may be below `TINY`.
    """
    small = np.unique(r[r < TINY])
    if len(small) > 1:
        got = f"{short_text(small.tolist())}; divide them by a unit of their size"
        raise InputError(f"values must be at least {TINY:g}, except for one such as 0, got {got}")
    low, center, high = np.interp([0.25, 0.5, 0.75], np.maximum.accumulate(p), np.log(np.maximum(r, TINY)))
    return float(center), float(max(high - low, 1e-3)) / 2


def _fit(cost: Cost, log_center: float, scale: float, count: int, perfect: float, freedom: int) -> Transition:
    """Return the `Transition` with the least `cost`, with an interval from the profile of the cost.

    `cost` is a function of critical value, width and shape, which also returns its derivatives with respect
    to their logarithms. `log_center` and `scale` are what `_guess` returns. `count` is the number of trials.
    The cost of a `perfect` fit and the degrees of `freedom` give the misfit.
    """

    def value_at(place: float) -> float:
        logarithm = log_center + scale * place
        return math.exp(min(max(logarithm, -FARTHEST), FARTHEST)) if math.isfinite(place) else max(place, 0.0)

    def of(x: Array) -> tuple[float, Array]:
        value, slopes = cost(value_at(x[0]), scale * math.exp(x[1]), math.expm1(x[2]))
        return value, slopes * (scale, 1.0, 1.0 + 1.0 / math.expm1(x[2]))

    # Start from the best of a few guesses: if outcomes are nearly impossible, gradients mislead.
    starts = [np.array([0.0, wider, bend]) for wider in range(-1, 6) for bend in (0.1, 0.7, 2.0)]
    best = _minimise(of, min(starts, key=lambda x: of(x)[0]), SPACE)
    misfit = 2 * float(best.fun - perfect) / freedom if freedom > 0 else math.nan
    allowed = float(stats.chi2.ppf(CONFIDENCE, 1)) / 2 * (misfit if misfit > 1 else 1.0)

    def profile(offset: float, start: Array | None = None) -> float:
        def there(x: Array) -> tuple[float, Array]:
            value, slopes = of(np.array([best.x[0] + offset, *x]))
            return value, slopes[1:]

        start = min((guess[1:] for guess in starts), key=lambda x: there(x)[0]) if start is None else start
        return float(_minimise(there, start, SPACE[1:]).fun) - float(best.fun) - allowed

    @cache
    def excess(offset: float) -> float:
        return profile(offset, best.x[1:]) if offset else -allowed

    def thorough_excess(offset: float) -> float:
        return min(excess(offset), profile(offset))

    def side(direction: float) -> float:
        end = _root(excess, direction, 100 / scale)
        # Another start of the search may fit better there, so that this is no end.
        if math.isfinite(end) and thorough_excess(end) <= -1e-3 * allowed:
            end = _root(thorough_excess, direction, 100 / scale)
        return end

    at, log_width, bend = (float(x) for x in best.x)
    critical = Interval(value_at(at), value_at(at + side(-1.0)), value_at(at + side(1.0)), count)
    return Transition(critical, scale * math.exp(log_width), math.expm1(bend), misfit)


def _root(excess: Callable[[float], float], direction: float, farthest: float) -> float:
    """Return the offset in a direction (±1) at which an excess is 0, or infinity if it is too far."""
    reach = 0.02
    while excess(direction * reach) < 0:
        if reach >= farthest:
            return direction * math.inf
        reach *= 2
    return float(optimize.brentq(excess, 0.0, direction * reach, xtol=1e-5))


def _minimise(cost: Callable[[Array], tuple[float, Array]], start: Array, space: list[Any]) -> Any:
    """Minimize a cost, which also returns its gradient, within bounds."""
    # As accurate as L-BFGS-B, which is many times slower because it sends tiny matrices to a threaded LAPACK.
    return optimize.minimize(
        cost, start, jac=True, method="SLSQP", bounds=space, options={"ftol": 1e-11, "maxiter": 1000}
    )


def _with_slopes(log_r: Array, center: float, width: float, shape: float) -> tuple[Array, Array]:
    """Return log `Transition.probability`, and its derivatives (3, n) by the logarithms of the parameters."""
    # log(2^s - 1) by expm1, so that the limit s → 0 keeps its digits.
    doubled = shape * math.log(2)
    distance = (log_r - math.log(center)) / width
    exponent = math.log(math.expm1(doubled)) - distance
    log_p = -np.logaddexp(0.0, exponent) / shape
    by_exponent = -special.expit(exponent) / shape
    by_shape = -log_p - by_exponent * (doubled / math.expm1(-doubled))
    return log_p, np.array([by_exponent / width, by_exponent * distance, by_shape])


def _log_complement(log_p: Array) -> tuple[Array, Array]:
    """Return log(1 - p) and its derivative by log p, from log p ≤ 0; 1 - p is at least 1e-300."""
    rest = np.maximum(-np.expm1(log_p), 1e-300)
    return np.log(rest), -np.exp(log_p) / rest
