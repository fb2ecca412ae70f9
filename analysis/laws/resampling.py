"""Intervals of the coefficients of a linear ODE, and how often a penalty keeps each of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.laws.lasso import Moments, ratio, solve
from analysis.laws.pieces import as_pieces, differences
from analysis.laws.regressors import LinearODERegressor
from analysis.stats.intervals import CONFIDENCE
from physics.checks import number, whole_number
from physics.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Resampled:
    """Coefficients of a linear ODE over resamples of its data, which `resample_coefficients` returns.

    The law ``A x + b`` of K components has a matrix A of coefficients and a vector b of constants.

    Attributes
    ----------
    A_low, A_high : ndarray of float64, shape (K, K)
        Bounds of the 95 % percentile interval of every coefficient.
    b_low, b_high : ndarray of float64, shape (K,)
        Bounds of the 95 % percentile interval of every constant.
    inclusion : ndarray of float64, shape (K, K)
        Fraction of the resamples in which the coefficient is not 0.
    resamples : int
        Number of resamples.
    unit : str
        What was drawn: "trajectories", or blocks of successive changes, such as "blocks of 10 changes".

    Examples
    --------
    >>> import analysis, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2)).cumsum(axis=0)
    >>> found = analysis.laws.resample_coefficients(x, penalty=None, resamples=50)
    >>> bool((found.A_low <= found.A_high).all()), found.inclusion.tolist()
    (True, [[1.0, 1.0], [1.0, 1.0]])
    """

    A_low: Array
    A_high: Array
    b_low: Array
    b_high: Array
    inclusion: Array
    resamples: int
    unit: str


def resample_coefficients(
    signals: Any,
    times: Any = None,
    *,
    kind: str = "increment",
    penalty: str | None = "lasso",
    alpha: float = 0.01,
    l1_ratio: float = 0.5,
    resamples: int = 200,
    block: int | None = None,
    seed: int = 0,
) -> Resampled:
    """Fit a linear ODE to many resamples of its data, to see how certain its coefficients are.

    Consecutive changes are correlated. Several trajectories are therefore drawn as a whole, and from a single
    one blocks of successive changes are drawn, which may overlap.

    Parameters
    ----------
    signals : array_like, shape (frames, K) or (runs, frames, K), or a sequence of arrays (frames_i, K)
        Trajectories of the K components, such as Fourier signals.
    times : array_like, shape (frames,), or a sequence with one for each trajectory, optional
        Increasing times of the frames. By default 0, 1, 2, ….
    kind : {"increment", "generator"}, default "increment"
        Whether to fit the change per step, or the rate of change; see `fit_trajectories`.
    penalty : {"lasso", "elastic-net", None}, default "lasso"
        Penalty; None for least squares.
    alpha : float, default 0.01
        Weight of the penalty, at least 0; 0 is least squares. It cannot be chosen by a criterion.
    l1_ratio : float, default 0.5
        Fraction of the L1 norm in the elastic net, greater than 0 and at most 1; the Lasso does not use it.
    resamples : int, default 200
        Number of resamples, at least 2.
    block : int, optional
        Number of changes in a block of a single trajectory, at least 1; by default the rounded square root of
        the number of all changes. It should exceed the correlation time of the signals; otherwise the
        intervals are too narrow.
    seed : int, default 0
        Seed of the resamples.

    Returns
    -------
    Resampled
        Intervals of all coefficients.

    Raises
    ------
    InputError
        If the trajectories are invalid (see `fit_trajectories`), a parameter is out of its range, or `block`
        is given for several trajectories or exceeds the number of changes.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2)).cumsum(axis=0)
    >>> found = analysis.laws.resample_coefficients(x, resamples=50)
    >>> found.unit, found.A_low.shape
    ('blocks of 10 changes', (2, 2))
    """
    resamples = whole_number("resamples", resamples, 2)
    alpha = number("alpha", alpha, 0.0)
    LinearODERegressor(penalty, alpha, l1_ratio=l1_ratio).check()
    pairs = differences(as_pieces(signals, times), kind)
    generator = np.random.default_rng(seed)
    if len(pairs) > 1:
        if block is not None:
            raise InputError(
                f"block must be left out for {len(pairs)} trajectories, which are drawn whole, got {block!r}"
            )
        unit, parts, drawn = "trajectories", pairs, len(pairs)
    else:
        states, changes = pairs[0]
        block = round(len(states) ** 0.5) if block is None else whole_number("block", block, 1)
        if block > len(states):
            raise InputError(f"block must be at most the number of changes, {len(states)}, got {block}")
        starts = range(len(states) - block + 1)
        parts = [(states[k : k + block], changes[k : k + block]) for k in starts]
        unit, drawn = f"blocks of {block} changes", -(-len(states) // block)
    counts = generator.multinomial(drawn, np.full(len(parts), 1 / len(parts)), size=resamples)
    moments = Moments.of(parts).pooled(counts * np.array([len(x) for x, _ in parts], float))
    if penalty is None or alpha == 0:
        # In units in which all components vary alike, none looks constant beside another.
        spread = np.sqrt(np.einsum("rkk->rk", moments.gram)).max(axis=0)
        units = np.ldexp(1.0, np.where(spread > 0, np.frexp(spread)[1], 0))
        inverse = np.linalg.pinv(moments.gram / units / units[:, None], rcond=1e-14, hermitian=True)
        A = np.einsum("rkl,rtl->rtk", inverse, moments.cross / units) / units
        b = moments.target_mean - np.einsum("rtk,rk->rt", A, moments.feature_mean)
    else:
        found = solve(moments, np.array([[alpha]]), l1_ratio=1.0 if penalty == "lasso" else ratio(l1_ratio))
        A, b = found.coef[:, :, 0], found.intercept[:, :, 0]
    tail = (1 - CONFIDENCE) / 2
    A_low, A_high = np.quantile(A, [tail, 1 - tail], axis=0)
    b_low, b_high = np.quantile(b, [tail, 1 - tail], axis=0)
    return Resampled(A_low, A_high, b_low, b_high, np.mean(A != 0, axis=0), resamples, unit)
