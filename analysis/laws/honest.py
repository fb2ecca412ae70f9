"""Scores of a law on the data of its fit, on later frames, and on runs that the fit has not seen."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.laws.pieces import Array, as_pieces
from analysis.laws.regressors import FitWarning
from analysis.laws.scores import Law, Score
from physics.checks import number
from physics.errors import InputError

FOLDS = 10
"""Largest number of runs that are left out one by one; more runs are left out in this many groups."""


@dataclass(frozen=True)
class HonestScores:
    """Scores of a law in sample, forward in time, and across runs, which `honest_scores` returns.

    Attributes
    ----------
    law : Law
        Law that was fitted to all data.
    in_sample : Score
        Score on the data of the fit. Ding et al. report this number; it says little about prediction.
    forward : Score or None
        Score of a law that was fitted to the early part of every run, on the later part. Rollouts start at
        the split. None if either part of some run has fewer than three frames, or the law cannot be fitted to
        the early part alone, which may hold too few changes.
    across : tuple of Score
        Score of each run by a law that was fitted to other runs: to all others if there are at most ten runs,
        and otherwise to about nine tenths of them. Empty for a single run, or if the law cannot be fitted to
        the others alone.

    Examples
    --------
    >>> import analysis, physics
    >>> scores = analysis.fit_batch(physics.example("ding"))
    >>> scores.in_sample.derivative > 0, scores.forward.rollout < 0, scores.across
    (True, True, ())
    """

    law: Law
    in_sample: Score
    forward: Score | None
    across: tuple[Score, ...]

    def mean(self, name: str) -> float:
        """Return a score on runs that the fit has not seen, averaged over these runs.

        Parameters
        ----------
        name : str
            Name of a field of `Score`, such as "rollout".

        Returns
        -------
        float
            Mean of the values that are not NaN; NaN if there are none.

        Examples
        --------
        >>> import analysis
        >>> x = [analysis.laws.affine_rollout([[-0.1]], [1.0], [x0], 40) for x0 in (0.0, 5.0)]
        >>> fit = lambda signals, times: analysis.fit_trajectories(signals, times, penalty=None)
        >>> round(analysis.honest_scores(fit, x).mean("rollout"), 6)
        1.0
        """
        values = np.array([getattr(score, name) for score in self.across])
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else np.nan

    def median(self, name: str) -> float:
        """Return the median of a score over the runs that the fit has not seen.

        Parameters
        ----------
        name : str
            Name of a field of `Score`, such as "rollout".

        Returns
        -------
        float
            Median; NaN if no run was left out, or if a value is NaN.

        Examples
        --------
        >>> import analysis
        >>> x = [analysis.laws.affine_rollout([[-0.1]], [1.0], [x0], 40) for x0 in (0.0, 5.0)]
        >>> fit = lambda signals, times: analysis.fit_trajectories(signals, times, penalty=None)
        >>> round(analysis.honest_scores(fit, x).median("derivative"), 6)
        1.0
        """
        return float(np.median([getattr(score, name) for score in self.across])) if self.across else np.nan


def honest_scores(
    fit: Callable[[Any, Any], Law], signals: Any, times: Any = None, *, split: float = 0.5
) -> HonestScores:
    """Score a law on the data of its fit, on later frames, and on runs that the fit has not seen.

    Parameters
    ----------
    fit : callable
        Function ``fit(signals, times)`` of two lists with one array for each run, which returns a law.
    signals, times : array_like of float
        Trajectories (runs, frames, K) of K components and their times (frames,), by default 0, 1, 2, …; see
        `fit_trajectories` for all accepted forms.
    split : float, default 0.5
        Fraction of the frames of each run that the forward fit sees, greater than 0 and less than 1.

    Returns
    -------
    HonestScores
        The law, and its scores in sample, forward in time, and across runs.

    Raises
    ------
    InputError
        If the data are invalid (see `fit_trajectories`), or `split` is not between 0 and 1.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> x = [analysis.laws.affine_rollout([[-0.1]], [1.0], [x0], 40) for x0 in (0.0, 5.0)]
    >>> fit = lambda signals, times: analysis.fit_trajectories(signals, times, penalty=None)
    >>> scores = analysis.honest_scores(fit, x)
    >>> round(scores.forward.rollout, 6), round(scores.mean("rollout"), 6)
    (1.0, 1.0)
    """
    number("split", split, above=0.0, below=1.0)
    pieces = as_pieces(signals, times)
    clocks, values = [t for t, _ in pieces], [x for _, x in pieces]
    law = fit(values, clocks)

    def fit_part(values: list[Array], clocks: list[Array]) -> Law | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # it would seem to be about the law that is returned
            try:
                return fit(values, clocks)
            except InputError:  # a part may be too short for a fit, or not vary, although the whole is not
                return None

    at = [int(split * (len(t) - 1)) for t in clocks]
    forward = None
    if all(a >= 2 and len(t) - a > 2 for a, t in zip(at, clocks, strict=True)):
        early = fit_part(
            [x[: a + 1] for x, a in zip(values, at, strict=True)],
            [t[: a + 1] for t, a in zip(clocks, at, strict=True)],
        )
        late = (
            [x[a:] for x, a in zip(values, at, strict=True)],
            [t[a:] for t, a in zip(clocks, at, strict=True)],
        )
        forward = early.score(*late) if early else None
    held: dict[int, Score] = {}
    folds = min(len(pieces), FOLDS) if len(pieces) > 1 else 0
    for fold in range(folds):
        left = range(fold, len(pieces), folds)
        rest = fit_part(
            [x for k, x in enumerate(values) if k not in left],
            [t for k, t in enumerate(clocks) if k not in left],
        )
        if rest is None:
            held = {}
            break
        held |= {k: rest.score([values[k]], [clocks[k]]) for k in left}
    return HonestScores(law, law.score(values, clocks), forward, tuple(held[k] for k in range(len(held))))
