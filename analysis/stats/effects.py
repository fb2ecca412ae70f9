"""How far two samples differ: differences with intervals, effect sizes, and tests by permutation."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats

from analysis.scaling import scaled
from analysis.stats.intervals import CONFIDENCE, Interval, correlation, difference, is_shown, mean, proportion
from physics.checks import InputError, finite_array, real_array, truth_array
from physics.values import Array, Shown

RESAMPLES = 4000
BLOCK = 2**22
"""Largest number of values in a block of resamples."""
Z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
TAIL = (1 - CONFIDENCE) / 2


@dataclass(frozen=True, eq=False)
class Difference(Shown):
    """Difference between two ensembles in one quantity that has one value per run.

    `compare_values` and `compare_proportions` return it. All intervals have a confidence of 95 %.

    Attributes
    ----------
    name : str
        Name of the quantity.
    samples : tuple of ndarray of float64, shapes (m,) and (n,)
        Values of each ensemble, without those that are not finite.
    first, second : Interval
        Proportions with Wilson's interval, or means with Student's.
    difference : Interval
        First minus second: Newcombe's interval for proportions, an expanded bootstrap interval for means.
    effects : mapping of str to Interval
        Effect sizes: "Cohen's h" of proportions; "Cliff's delta" and "Hedges' g" of values.
    p_value : float
        Two-sided p-value of the test that both ensembles have the same distribution; NaN if a sample is
        empty.
    test : str
        Name of the test: Fisher's exact test, or a permutation test of the means.
    adjusted_p_value : float
        p-value after Holm's correction for all tests of a comparison; NaN outside of a comparison.

    Examples
    --------
    >>> import analysis
    >>> found = analysis.stats.compare_values("quality", [0.8, 0.9, 0.7, 0.8], [0.2, 0.1, 0.3, 0.2])
    >>> found.first.format(2), found.second.format(2), found.differs
    ('0.80 [0.67, 0.93]', '0.20 [0.07, 0.33]', True)
    """

    name: str
    samples: tuple[Array, Array]
    first: Interval
    second: Interval
    difference: Interval
    effects: Mapping[str, Interval]
    p_value: float
    test: str
    adjusted_p_value: float = math.nan

    @property
    def differs(self) -> bool:
        """Whether the two ensembles differ significantly in this quantity.

        The p-value must be below 0.05; in a comparison it is Holm's, and otherwise the p-value of the test.
        In addition, no interval of the difference or of an effect size may contain 0.
        """
        intervals = (self.difference, *self.effects.values())
        return is_shown(self.adjusted_p_value, self.p_value) and not any(x.covers(0.0) for x in intervals)


def compare_proportions(name: str, first: Any, second: Any) -> Difference:
    """Compare how often something is true in two samples of independent runs.

    Parameters
    ----------
    name : str
        What is compared, such as "circles".
    first, second : array_like of bool, shapes (m,) and (n,)
        Whether it is true of each run of the first and of the second sample.

    Returns
    -------
    Difference
        Proportions, their difference, Cohen's h, and the p-value of Fisher's exact test.

    Raises
    ------
    InputError
        If a sample is not a list of booleans.

    Examples
    --------
    >>> import analysis
    >>> first, second = [True] * 18 + [False] * 2, [True] * 3 + [False] * 17
    >>> found = analysis.stats.compare_proportions("circles", first, second)
    >>> round(found.difference.estimate, 2), found.p_value < 0.001, found.differs
    (0.75, True, True)
    """
    x, y = truth_array("first", first, ndim=1), truth_array("second", second, ndim=1)
    ours, theirs = proportion(int(x.sum()), len(x)), proportion(int(y.sum()), len(y))
    table = [[int(x.sum()), int((~x).sum())], [int(y.sum()), int((~y).sum())]]
    p_value = float(stats.fisher_exact(np.array(table)).pvalue) if len(x) and len(y) else math.nan
    samples, effects = (x.astype(float), y.astype(float)), {"Cohen's h": cohens_h(ours, theirs)}
    apart = difference(ours, theirs)
    return Difference(name, samples, ours, theirs, apart, effects, p_value, "Fisher's exact test")


def compare_values(
    name: str,
    first: Any,
    second: Any,
    *,
    seed: int = 0,
    possible: tuple[float, float] = (-math.inf, math.inf),
) -> Difference:
    """Compare a quantity of two samples of independent runs.

    Parameters
    ----------
    name : str
        What is compared, such as "effective dimension".
    first, second : array_like, shapes (m,) and (n,)
        Value of the quantity in each run of both samples; values that are not finite are ignored.
    seed : int, default 0
        Seed of the bootstrap and of the permutations.
    possible : pair of float, optional
        Least and largest possible value of the quantity, at which the intervals of the means end, and those
        of the difference at what is possible for it.

    Returns
    -------
    Difference
        Means, their difference, Cliff's delta, Hedges' g, and the p-value of a permutation test of the means.

    Examples
    --------
    >>> import analysis
    >>> found = analysis.stats.compare_values("quality", [0.8, 0.9, 0.7, 0.8], [0.2, 0.1, 0.3, 0.2])
    >>> round(found.difference.estimate, 2), found.effects["Cliff's delta"].estimate, round(found.p_value, 3)
    (0.6, 1.0, 0.029)
    """
    x, y = real_array("first", first, ndim=1), real_array("second", second, ndim=1)
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    apart = _apart(x, y, lambda a, b: a.mean(axis=-1) - b.mean(axis=-1), seed)
    effects = {"Cliff's delta": cliffs_delta(x, y), "Hedges' g": hedges_g(x, y, seed=seed)}
    p_value, test = permutation_p_value(x, y, seed=seed), "permutation test of the means"
    span = possible[1] - possible[0]
    ours, theirs = (mean(values).within(*possible) for values in (x, y))
    return Difference(name, (x, y), ours, theirs, apart.within(-span, span), effects, p_value, test)


# -- proportions -------------------------------------------------------------------------------------------


def cohens_h(first: Interval, second: Interval) -> Interval:
    """Return Cohen's h, the effect size of two proportions p and q, ``2 asin √p - 2 asin √q``.

    Parameters
    ----------
    first, second : Interval
        The proportions with their 95 % intervals, such as those that `proportion` returns.

    Returns
    -------
    Interval
        From -π to π, where 0 is no difference. Its interval combines those of both proportions (Newcombe
        1998).

    Examples
    --------
    >>> import analysis
    >>> analysis.stats.cohens_h(analysis.proportion(18, 20), analysis.proportion(3, 20)).format(2)
    '1.70 [0.99, 2.16]'
    """
    if not first.count or not second.count:
        return _unknown(first.count + second.count)
    angles = (x.map(lambda p: 2 * math.asin(math.sqrt(min(max(p, 0.0), 1.0)))) for x in (first, second))
    return difference(*angles)


# -- values ------------------------------------------------------------------------------------------------


def cliffs_delta(first: Any, second: Any) -> Interval:
    """Return Cliff's delta, P(x > y) - P(x < y), for random values x of the first sample and y of the second.

    Parameters
    ----------
    first, second : array_like, shapes (m,) and (n,)
        Finite values of both samples.

    Returns
    -------
    Interval
        From -1 to 1, where 0 is no difference, with its 95 % interval. The bounds are NaN if a sample has a
        single value, and the estimate is NaN too if a sample is empty.

    Raises
    ------
    InputError
        If a sample is not a list of finite numbers.

    Notes
    -----
    The interval is that of Newcombe's fifth method for the Mann-Whitney statistic (Statistics in Medicine 25,
    2006, 559), a score interval that remains valid if the samples do not overlap.

    Examples
    --------
    >>> import analysis
    >>> analysis.stats.cliffs_delta([3, 4, 5], [1, 2, 4]).estimate
    0.6666666666666667
    """
    x, y = finite_array("first", first, ndim=1), finite_array("second", second, ndim=1)
    m, n = len(x), len(y)
    if not m or not n:
        return _unknown(m + n)
    ranks = stats.rankdata(np.concatenate([x, y]))
    area = float(ranks[:m].sum() - m * (m + 1) / 2) / (m * n)
    if min(m, n) == 1:
        return Interval(2 * area - 1, np.nan, np.nan, m + n)

    def excess(theta: float) -> float:
        half = (m + n) / 2 - 1
        spread = 1 + half * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return (theta - area) ** 2 - Z**2 * theta * (1 - theta) * spread / (m * n)

    # At 0 and 1 the variance vanishes, so that these are also roots if they are the estimate.
    low = optimize.brentq(excess, 0.0, min(area, 1 - 1e-9)) if area > 0 else 0.0
    high = optimize.brentq(excess, max(area, 1e-9), 1.0) if area < 1 else 1.0
    return Interval(2 * area - 1, 2 * float(low) - 1, 2 * float(high) - 1, m + n)


def hedges_g(first: Any, second: Any, *, seed: int = 0) -> Interval:
    """Return Hedges' g: the difference of two means in units of their pooled standard deviation.

    A factor corrects the bias that this ratio has in small samples.

    Parameters
    ----------
    first, second : array_like, shapes (m,) and (n,)
        Finite values of both samples.
    seed : int, default 0
        Seed of the bootstrap from which the interval comes.

    Returns
    -------
    Interval
        First mean minus second, with its 95 % interval. NaN if neither sample varies, or one has fewer than
        two values.

    Raises
    ------
    InputError
        If a sample is not a list of finite numbers.

    Examples
    --------
    >>> import analysis
    >>> round(analysis.stats.hedges_g([3, 4, 5], [1, 2, 4]).estimate, 2)
    1.03
    """
    x, y = finite_array("first", first, ndim=1), finite_array("second", second, ndim=1)
    freedom = len(x) + len(y) - 2
    if min(len(x), len(y)) < 2 or (np.ptp(x) == 0 and np.ptp(y) == 0):
        return _unknown(len(x) + len(y))
    unbiased = 1 - 3 / (4 * freedom - 1)
    x, y = np.split(scaled(np.concatenate([x, y]))[0], [len(x)])

    def g(a: Array, b: Array) -> Array:
        squares = a.var(axis=-1) * a.shape[-1] + b.var(axis=-1) * b.shape[-1]
        pooled = np.sqrt(squares / freedom)
        distance = a.mean(axis=-1) - b.mean(axis=-1)
        return unbiased * np.divide(distance, pooled, out=np.full_like(pooled, np.nan), where=pooled > 0)

    return _apart(x, y, g, seed)


def _swapped(x: Array, y: Array) -> bool:
    """Return whether the second of two samples is drawn first, so that exchanged samples draw the same."""
    return (len(x), *np.sort(x)) < (len(y), *np.sort(y))


def _apart(x: Array, y: Array, statistic: Callable[..., Array], seed: int) -> Interval:
    """Return a difference of two samples as `bootstrap` does; only its sign changes if they are exchanged."""
    if not _swapped(x, y):
        return bootstrap((x, y), statistic, seed=seed)
    turned = bootstrap((y, x), statistic, seed=seed)
    return Interval(-turned.estimate, -turned.high, -turned.low, turned.count)


def bootstrap(
    samples: Sequence[Any], statistic: Callable[..., Array], *, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Return a statistic of independent samples, with its expanded percentile interval by resampling.

    Rows of the `samples` are drawn as a whole. `statistic` is a function of one array (draws, n, ...) for
    each sample of n rows, and returns (draws,). The interval is NaN if a sample has a single row.

    Notes
    -----
    Percentile intervals of a bootstrap are too narrow for small samples. They are expanded as if Student's
    distribution, with the degrees of freedom of the smallest sample, replaced the normal one (Hesterberg
    2015).
    """
    arrays = [np.asarray(sample, np.float64) for sample in samples]
    sizes = [len(sample) for sample in arrays]
    if not all(sizes):
        return _unknown(sum(sizes))
    estimate = float(statistic(*(sample[None] for sample in arrays))[0])
    if min(sizes) == 1:
        return Interval(estimate, np.nan, np.nan, sum(sizes))

    def drawn(*rows: Array, axis: int = -1) -> Array:
        return statistic(*(sample[row.astype(np.intp)] for sample, row in zip(arrays, rows, strict=True)))

    with warnings.catch_warnings():  # draws without a value are ignored below
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        draws = stats.bootstrap(
            [np.arange(size) for size in sizes], drawn, n_resamples=resamples, vectorized=True, rng=seed,
            method="percentile", batch=max(BLOCK // sum(sample.size for sample in arrays), 1),
        ).bootstrap_distribution  # fmt: skip
    draws = draws[np.isfinite(draws)]
    size = min(sizes)
    tail = float(stats.norm.cdf(math.sqrt(size / (size - 1)) * stats.t.ppf(TAIL, size - 1)))
    low, high = np.quantile(draws, [tail, 1 - tail]) if len(draws) else (np.nan, np.nan)
    return Interval(estimate, float(low), float(high), sum(sizes))


def permutation_p_value(first: Any, second: Any, *, seed: int = 0) -> float:
    """Return the two-sided p-value of the difference of the means of two samples, over permutations.

    It is exact if there are at most 4000 permutations. Otherwise 4000 are drawn and the observed one is
    added, so that the result is never 0. It is NaN if a sample is empty. An `InputError` refuses all but
    lists of finite numbers.
    """
    x, y = finite_array("first", first, ndim=1), finite_array("second", second, ndim=1)
    if not len(x) or not len(y):
        return math.nan
    x, y = (y, x) if _swapped(x, y) else (x, y)
    # With a pooled mean of 0 the difference of the means is proportional to the sum of the first.
    both = scaled(np.concatenate([x, y]))[0]
    rounding = 1e-12 * float(np.abs(both).sum())
    both -= both.mean()
    x, y = np.split(both, [len(x)])
    if min(len(x), len(y)) == 1:  # SciPy refuses a sample of one; each value is equally likely to be it
        alone = abs(x[0]) if len(x) == 1 else abs(y[0])
        return float(np.mean(np.abs(both) >= alone - rounding))
    test = stats.permutation_test(
        (x, y), lambda a, b, axis: np.abs(a.sum(axis=axis)), n_resamples=RESAMPLES, vectorized=True, rng=seed,
        alternative="greater", batch=max(BLOCK // (len(x) + len(y)), 1),
    )  # fmt: skip
    # SciPy's tolerance is relative to the observed difference, which may itself be a rounding error.
    as_large = int(np.count_nonzero(test.null_distribution >= test.statistic - rounding))
    exact = math.comb(len(both), len(x)) <= RESAMPLES
    return (as_large + (not exact)) / (len(test.null_distribution) + (not exact))


def _unknown(count: int) -> Interval:
    """Return an interval without an estimate."""
    return Interval(np.nan, np.nan, np.nan, count)


@dataclass(frozen=True, eq=False)
class Calibration(Shown):
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
    error, unit = scaled(np.sort(np.abs(y - x)))  # the order of the runs must not choose what is drawn
    size = bootstrap((error,), lambda rows: np.sqrt(np.mean(rows**2, axis=1)))
    size = size.map(lambda value: float(np.ldexp(value, unit[0])))
    return Calibration(x, y, mean(y - x), size, correlation(x, y), _slope(x, y))


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
