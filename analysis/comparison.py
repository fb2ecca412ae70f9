"""Simulated against trained: structures, and final shapes after Procrustes alignment."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics import Interval, mean, proportion
from physics.checks import point_sets
from physics.errors import InputError
from physics.structure import grid_imperfections, is_circle
from physics.trajectory import Trajectory

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Structures:
    """What the final embeddings of an ensemble have become.

    Attributes
    ----------
    circle : ndarray of bool, shape (runs,)
    imperfections : ndarray of int64, shape (runs,)
        Grid imperfections of every run, circles included.
    circles : Interval
        Fraction of circles, with Wilson's 95 % interval.
    grid_imperfections : Interval
        Mean over the runs that are no circles, with its 95 % interval.
    """

    circle: NDArray[np.bool_]
    imperfections: NDArray[np.int64]
    circles: Interval
    grid_imperfections: Interval


@dataclass(frozen=True)
class RankTest:
    """Mann-Whitney test that two samples come from one distribution.

    `superiority` is the probability that a value of the first sample exceeds one of the second, ties
    counted half: an effect size, 1/2 without an effect. `p_value` is two-sided.
    """

    superiority: float
    p_value: float


@dataclass(frozen=True)
class Shapes:
    """Distances between final shapes, modulo the symmetries of the problem.

    A distance is the Procrustes disparity after translation, scaling, rotation, reflection, and the
    relabelling i → u i + s (mod N), u a unit, that permutes classes: 0 for the same shape, at most 1.

    Attributes
    ----------
    disparity : ndarray, shape (simulated runs, trained runs)
    relabelling : ndarray of int64, shape (simulated runs, trained runs, 2)
        The (u, s) that align best: token i of the trained shape lies on token u i + s of the simulated one.
    nearest : ndarray, shape (trained runs,)
        Disparity of each trained shape to the simulated one nearest to it.
    nearest_start : ndarray, shape (trained runs,)
        The same to the simulated runs' random starts: what chance gives.
    nearest_trained : ndarray, shape (trained runs,)
        The same to the other trained shapes: what to hope for. NaN for a single run.
    """

    disparity: Array
    relabelling: NDArray[np.int64]
    nearest: Array
    nearest_start: Array
    nearest_trained: Array


@dataclass(frozen=True)
class Comparison:
    """Two ensembles held against each other; see `compare`.

    Attributes
    ----------
    simulated, trained : Structures
    circle_difference : Interval
        Fraction of circles, simulated minus trained, with Newcombe's 95 % interval.
    imperfections_test : RankTest
        On the grid imperfections of the runs that are no circles, simulated first; NaN if there are none.
    shapes : Shapes
    """

    simulated: Structures
    trained: Structures
    circle_difference: Interval
    imperfections_test: RankTest
    shapes: Shapes


def compare(
    simulated: Trajectory | Sequence[Trajectory], trained: Trajectory | Sequence[Trajectory]
) -> Comparison:
    """Hold simulated against trained dynamics by where they end.

    Parameters
    ----------
    simulated, trained : Trajectory or sequence of them
        Ensembles of the same number of tokens; several trajectories count as one ensemble.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If the numbers of tokens differ, or a final state is not finite.
    """
    first, second = _ensemble("simulated", simulated), _ensemble("trained", trained)
    if first[0].shape[1] != second[0].shape[1]:
        raise InputError(
            f"simulated and trained must have the same number of tokens, got {first[0].shape[1]} and "
            f"{second[0].shape[1]}"
        )
    ours, theirs = structures(first[1]), structures(second[1])
    return Comparison(
        ours,
        theirs,
        _difference(ours.circles, theirs.circles),
        _rank_test(ours.imperfections[~ours.circle], theirs.imperfections[~theirs.circle]),
        _shapes(first, second),
    )


def structures(final: Any) -> Structures:
    """Circles and imperfections of final embeddings (runs, tokens, dim)."""
    circle = is_circle(final)
    imperfections = grid_imperfections(final)
    return Structures(
        circle, imperfections, proportion(int(circle.sum()), len(circle)), mean(imperfections[~circle])
    )


def procrustes_disparity(first: Any, second: Any) -> tuple[Array, NDArray[np.int64]]:
    """Procrustes disparities of all pairs of shapes, smallest over the relabellings i → u i + s (mod N).

    Parameters
    ----------
    first : array_like, shape (m, N, D)
    second : array_like, shape (n, N, D')
        The smaller dimension is filled up with zeros.

    Returns
    -------
    disparity : ndarray of float64, shape (m, n)
        As `scipy.spatial.procrustes` defines it, of the best relabelling.
    relabelling : ndarray of int64, shape (m, n, 2)
        The best (u, s): token i of the second shape lies on token u i + s of the first.
    """
    dim = max(np.shape(first)[2], np.shape(second)[2])
    a, b = _standard("first", first, dim), _standard("second", second, dim)
    tokens = a.shape[1]
    best = np.full((len(a), len(b)), -1.0)
    relabelling = np.empty((len(a), len(b), 2), np.int64)
    for unit in range(1, tokens):
        if gcd(unit, tokens) != 1:
            continue
        for shift in range(tokens):
            order = (unit * np.arange(tokens) + shift) % tokens
            overlap = np.einsum("mik,nil->mnkl", a[:, order], b, optimize=True)
            fit = np.linalg.svd(overlap, compute_uv=False).sum(axis=-1)
            better = fit > best
            best[better] = fit[better]
            relabelling[better] = unit, shift
    return np.clip(1 - best**2, 0, 1), relabelling


def aligned(shape: Any, target: Any, relabelling: Any = (1, 0)) -> Array:
    """Move `shape` (N, D) onto `target` (N, D): scaled, rotated, reflected, and relabelled by (u, s).

    Both have the same dimension; `target` is returned to by the alignment in its own place and size.
    """
    a, b = point_sets("shape", shape), point_sets("target", target)
    unit, shift = relabelling
    a = a[(unit * np.arange(len(a)) + shift) % len(a)]
    a, centre = a - a.mean(axis=0), b.mean(axis=0)
    left, values, right = np.linalg.svd(a.T @ (b - centre))
    return np.asarray(a @ (left @ right) * (values.sum() / (a**2).sum()) + centre)


def _ensemble(name: str, trajectories: Trajectory | Sequence[Trajectory]) -> tuple[Array, Array]:
    """First and last frames (runs, tokens, dim) of one or several trajectories."""
    several = [trajectories] if isinstance(trajectories, Trajectory) else list(trajectories)
    if not several or not all(isinstance(one, Trajectory) for one in several):
        raise InputError(f"{name} must be a Trajectory or a sequence of them, got {trajectories!r}")
    sizes = sorted({(one.tokens, one.dim) for one in several})
    if len(sizes) > 1:
        raise InputError(f"{name} must agree in tokens and dimensions, got {sizes}")
    starts = np.concatenate([one.initial for one in several])
    ends = np.concatenate([one.final for one in several])
    return point_sets(f"the start of {name}", starts), point_sets(f"the final state of {name}", ends)


def _difference(first: Interval, second: Interval) -> Interval:
    """Newcombe's hybrid score interval for a difference of proportions."""
    estimate = first.estimate - second.estimate
    low = np.hypot(first.estimate - first.low, second.high - second.estimate)
    high = np.hypot(first.high - first.estimate, second.estimate - second.low)
    return Interval(estimate, estimate - low, estimate + high, first.count + second.count)


def _rank_test(first: NDArray[Any], second: NDArray[Any]) -> RankTest:
    if not len(first) or not len(second):
        return RankTest(np.nan, np.nan)
    result = stats.mannwhitneyu(first, second)
    return RankTest(float(result.statistic) / (len(first) * len(second)), float(result.pvalue))


def _shapes(simulated: tuple[Array, Array], trained: tuple[Array, Array]) -> Shapes:
    start, end = simulated
    target = trained[1]
    disparity, relabelling = procrustes_disparity(end, target)
    among, _ = procrustes_disparity(target, target)
    np.fill_diagonal(among, np.inf)
    nearest_trained = among.min(axis=0) if len(target) > 1 else np.array([np.nan])
    chance, _ = procrustes_disparity(start, target)
    return Shapes(disparity, relabelling, disparity.min(axis=0), chance.min(axis=0), nearest_trained)


def _standard(name: str, shapes: Any, dim: int) -> Array:
    """Centre, scale to unit Frobenius norm, and fill up with zeros to `dim` axes."""
    array = point_sets(name, shapes)
    array = array - array.mean(axis=1, keepdims=True)
    norm = np.sqrt((array**2).sum(axis=(1, 2), keepdims=True))
    if np.any(norm == 0):
        raise InputError(f"{name} must not hold a shape whose tokens all coincide")
    return np.pad(array / norm, ((0, 0), (0, 0), (0, dim - array.shape[2])))
