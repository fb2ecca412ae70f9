"""Estimates that several figures of Liu et al. need: medians, transitions, and differences of shares."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.stats.intervals import Interval
from grokphys.papers.evidence import difference, jackknife, share
from grokphys.papers.recipe import Measure, Tables

RESAMPLES = 10_000
TOGETHER = "corrected after the run: two networks with the same start are resampled together"
"""Note on rules for the networks of two settings."""


def median(values: Any, level: float) -> Interval:
    """Return the median of independent values (n,), which may be infinite, with a distribution-free interval.

    The bounds are order statistics. They are NaN if there are too few values for an interval of this level,
    and the median is NaN if there are none.
    """
    ordered = np.sort(np.asarray(values, np.float64))
    count = len(ordered)
    if not count:
        return Interval(np.nan, np.nan, np.nan, 0)
    rank = int(stats.binom.ppf((1 - level) / 2, count, 0.5))
    if rank < 1:
        return Interval(float(np.median(ordered)), np.nan, np.nan, count)
    return Interval(float(np.median(ordered)), float(ordered[rank - 1]), float(ordered[count - rank]), count)


def above_median(values: Any, others: Any, level: float) -> Interval:
    """Return the share of independent values (n,) that exceed the median of others (m,), n + m counted.

    The level is divided between both errors, and the interval reaches from the lower limit of the share above
    the largest median that is possible to the upper limit of that above the smallest.
    """
    half = (1 + level) / 2
    usual = median(others, half)
    if not usual.count:
        return Interval(np.nan, np.nan, np.nan, len(values))
    most, least = np.nan_to_num(usual.high, nan=np.inf), np.nan_to_num(usual.low, nan=-np.inf)
    found = [share(np.asarray(values) > one, half) for one in (usual.estimate, most, least)]
    return Interval(found[0].estimate, found[1].low, found[2].high, len(values) + usual.count)


def crossing(x: Any, successes: Any, trials: Any, level: float) -> Interval:
    """Return the place at which a share of trials first reaches one half, by linear interpolation.

    Parameters
    ----------
    x : array_like, shape (n,)
        Places, increasing.
    successes, trials : array_like of int, shape (n,)
        Numbers of successes and of trials at each place.
    level : float
        Confidence level, such as 0.95.

    Returns
    -------
    Interval
        The bounds are the places at which Wilson's upper and lower limits of the share reach one half. A
        value is NaN if its curve never reaches one half, or does so at the first place already.
    """
    at = [
        share(np.arange(n) < k, level)
        for k, n in zip(np.asarray(successes, int), np.asarray(trials, int), strict=True)
    ]
    found, low, high = (
        _passes(x, [getattr(one, side) for one in at]) for side in ("estimate", "high", "low")
    )
    return Interval(found, low, high, int(np.sum(trials)))


def contrast(hits: Any, inside: Any, level: float) -> Interval:
    """Return the share of `hits` inside a part of a table minus their share outside, from -1 to 1.

    Both arguments are truth values (n,). The interval treats the two shares as independent.
    """
    hits, inside = np.asarray(hits, bool), np.asarray(inside, bool)
    return difference(share(hits[inside], level), share(hits[~inside], level))


def smallest(found: Sequence[Interval]) -> Interval:
    """Return the smallest of several estimates, with the smallest lower and the smallest upper bound."""
    return Interval(
        min(one.estimate for one in found),
        min(one.low for one in found),
        min(one.high for one in found),
        found[0].count,
    )


def _passes(x: Any, values: Any, half: float = 0.5) -> float:
    places, curve = np.asarray(x, np.float64), np.asarray(values, np.float64)
    above = np.flatnonzero(curve >= half)
    if not len(above) or above[0] == 0:
        return float("nan")
    k = int(above[0])
    return float(np.interp(half, curve[k - 1 : k + 1], places[k - 1 : k + 1]))


def frequency_of(E: NDArray[Any]) -> int:
    """Return the frequency of largest power in a projection E (p, axes) of p tokens, from 1 to ⌊p/2⌋."""
    power = (np.abs(np.fft.rfft(E, axis=0)) ** 2).sum(axis=1)
    return int(power[1:].argmax()) + 1


def share_of(E: NDArray[Any], frequency: int) -> float:
    """Return the fraction of the variance of a projection E (p, axes) that belongs to one frequency.

    The number p of tokens must be odd, and the frequency from 1 to ⌊p/2⌋. The tokens must not coincide.
    """
    power = (np.abs(np.fft.fft(E - E.mean(axis=0), axis=0)) ** 2).sum(axis=1)
    return float(2 * power[frequency] / power.sum())


def structure_of(E: NDArray[Any], like: NDArray[Any] | None = None) -> float:
    """Return the fraction of the variance of a projection that lies at one frequency for each axis.

    `E` (p, axes) holds the projections of p tokens, and `like`, of the same shape, those that name the
    frequencies: of each axis the one of largest power. By default E names its own. Tokens must not coincide.
    """
    power, chosen = (
        np.abs(np.fft.rfft(points - points.mean(axis=0), axis=0))[1:] ** 2
        for points in (E, E if like is None else like)
    )
    return float(np.take_along_axis(power, chosen.argmax(axis=0)[None], axis=0).sum() / power.sum())


def _jump(places: Any, missing: Any) -> Any:
    """Return the places (...) of the jumps that leave the area of what is `missing` from 1 (..., n)."""
    return places[0] + np.trapezoid(missing, places, axis=-1)


def half_rise(fraction: Any, passed: Any) -> float:
    """Return the training fraction of a jump from 0 to 1 that stands for a gradual rise.

    The rise is the share of the networks that have `passed` (n,), over their training `fraction` (n,). The
    area between the curve and 1 is the same for the jump and for the rise. The result is NaN if the share is
    1 everywhere or 0 everywhere.
    """
    places = np.unique(fraction)
    rates = np.array([np.mean(passed[fraction == place]) for place in places])
    if not 0 < rates.sum() < len(rates):
        return float("nan")
    return float(_jump(places, 1 - rates))


def best_passes(tables: Tables, level: float) -> Interval:
    """Return the training fraction from which the best network of each size reaches an RQI of 0.95.

    The fraction is that of a jump, as in `half_rise`. Its interval resamples the networks of each size, of
    which none passes with the probability (1 - k/n)^n if k of n passed. A jackknife would have no width: the
    best of several networks hardly ever depends on one of them. RQI is the representation quality index. The
    table "networks" needs the columns "fraction" and "steps_to_rqi" (infinite if never).
    """
    rows = tables["networks"]
    places, own = np.unique(rows["fraction"], return_inverse=True)
    count = np.bincount(own)
    passed = np.bincount(own, np.isfinite(rows["steps_to_rqi"]))
    none = (passed == 0).astype(float)
    if not 0 < none.sum() < len(none):
        return Interval(np.nan, np.nan, np.nan, len(own))
    drawn = np.random.default_rng(0).random((RESAMPLES, len(places))) < (1 - passed / count) ** count
    jumps = _jump(places, np.vstack([none, drawn]))
    low, high = np.quantile(jumps[1:], [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(jumps[0]), float(low), float(high), len(own))


def _distance(column: Any, row: Any, phase: Any) -> float:
    """Return how much farther from memorization networks of comprehension are than those of grokking.

    The arguments (n,) are the column and the row of each network, and the name of its phase. Distances in
    cells are means over pairs of networks. The result is NaN if one of the three phases is absent.
    """
    places = np.stack([column, row], axis=1).astype(float)
    goal = places[phase == "memorization"]
    if not len(goal):
        return float("nan")
    distance = np.linalg.norm(places[:, None] - goal, axis=2).mean(axis=1)
    parts = [distance[phase == name] for name in ("comprehension", "grokking")]
    return float(parts[0].mean() - parts[1].mean()) if all(map(len, parts)) else float("nan")


def closer_to_memorization(tables: Tables, level: float) -> Interval:
    """Return how much farther from memorization comprehension is than grokking, in cells of the plane.

    The difference of mean distances has a jackknife interval over cells. The table "networks" needs the
    columns "column", "row" and "phase".
    """
    rows = tables["networks"]
    cells = rows["row"].astype(int) * 10_000 + rows["column"].astype(int)
    return jackknife(_distance, (rows["column"], rows["row"], rows["phase"]), level, groups=cells)


def comprehends(here: tuple[float, float], there: tuple[float, float]) -> Measure:
    """Return a `Measure` of the share of comprehension in one range of log₁₀ ratios minus that in another.

    The ratio is that of the learning rates of representation and decoder. Ranges exclude their lower end.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["networks"]
        ratio = np.log10(rows["embedding_learning_rate"] / rows["learning_rate"]).round(6)
        done = rows["phase"] == "comprehension"
        return difference(*(share(done[(a < ratio) & (ratio <= b)], level) for a, b in (here, there)))

    return measure


def passing_gap(tables: Tables, level: float) -> Interval:
    """Return the share of networks that pass RQI 0.95 with over 0.6 of the data, minus that below 0.4."""
    rows = tables["networks"]
    passed, r = np.isfinite(rows["steps_to_rqi"]), rows["fraction"]
    return difference(share(passed[r > 0.6], level), share(passed[r < 0.4], level))
