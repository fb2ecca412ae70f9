"""Prediction of the survival of circles from their initial signals and gradients (Ding et al. §3)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from analysis.scaling import scaled
from analysis.stats.intervals import CONFIDENCE, Interval, clustered_proportion, correlation, mean, proportion
from physics.blas import one_blas_thread
from physics.checks import InputError, finite_array, regular_array, short_text, whole_number
from physics.values import Array, Mask, Shown


@dataclass(frozen=True)
class RateBin(Shown):
    """Survival of the circles whose initial value lies in one bin, which `survival_rates` returns.

    Attributes
    ----------
    low, high : float
        Ends of the bin, which includes `low`; only the last bin includes `high`.
    value : float
        Mean value of the circles in the bin.
    rate : Interval
        Fraction of these circles that survive, with its 95 % interval.
    """

    low: float
    high: float
    value: float
    rate: Interval


def survival_rates(values: Any, survived: Any, *, bins: int = 8, groups: Any = None) -> list[RateBin]:
    """Return the survival rate as a function of an initial value (Ding et al. 2024, Figs. 6 and 7).

    Parameters
    ----------
    values : array_like of float, any shape
        Initial value of every circle of every run, such as its signal; finite.
    survived : array_like of bool, the shape of `values`
        Whether each circle survived.
    bins : int, default 8
        Number of bins, at least 1. They hold about equally many circles. There are fewer if many values are
        equal, because equal values are in the same bin.
    groups : array_like, shape (runs,) or that of `values`, optional
        Names of groups of circles that are not independent of each other, such as those of runs with the same
        initial embedding. Without them all circles count as independent.

    Returns
    -------
    list of RateBin
        Bins that hold circles, in increasing order. Each rate has Wilson's 95 % interval; with groups, the
        interval allows for the dependence within them.

    Raises
    ------
    InputError
        If shapes do not agree, a value is not finite, `survived` is not boolean, there are no circles, or
        `bins` is not a whole number of at least 1.

    Examples
    --------
    >>> import analysis, physics
    >>> circles = analysis.circles_of(physics.example("ding"))
    >>> bins = analysis.circles.survival_rates(circles.signals[:, 0], circles.survived, bins=3)
    >>> [one.rate.format(2) for one in bins]
    ['0.00 [0.00, 0.28]', '0.22 [0.06, 0.55]', '0.30 [0.11, 0.60]']
    """
    x, y = _pair("values", values, survived)
    names = None if groups is None else _names(groups, np.shape(values))
    edges = np.unique(np.quantile(x, np.linspace(0, 1, whole_number("bins", bins, 1) + 1)))
    edges = edges if len(edges) > 1 else np.repeat(edges, 2)
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    rows = []
    for k in np.unique(place):
        here = place == k
        alive = y[here]
        rate = proportion(int(alive.sum()), alive.size) if names is None else _clustered(alive, names[here])
        rows.append(RateBin(float(edges[k]), float(edges[k + 1]), float(x[here].mean()), rate))
    return rows


@dataclass(frozen=True)
class Classifier(Shown):
    """How well a rule predicts which circles survive.

    Attributes
    ----------
    left_out : Interval
        Accuracy on groups that the fit has not seen, which measures the value of the rule. Its 95 % interval
        treats circles of one group as dependent.
    in_sample : Interval
        Accuracy on the circles that the rule was fitted to, as the paper reports it.
    balanced : float
        Mean of the accuracies among survivors and among dead circles of the left-out groups; 1/2 by chance.
    area : float
        Probability that a survivor is ranked above a dead circle in the left-out groups; 1/2 by chance.
    """

    left_out: Interval
    in_sample: Interval
    balanced: float
    area: float


@dataclass(frozen=True)
class Fitness(Shown):
    """Relation of the initial signal and gradient of a circle to its survival, which `fitness` returns.

    Attributes
    ----------
    groups : int
        Number of groups, which are the units of all intervals.
    signal_correlation, gradient_correlation : Interval
        Pearson correlations with survival.
    majority : float
        Accuracy of predicting for every circle the more frequent outcome, which a useful rule must exceed.
    svm : Classifier
        Linear support vector machine on signal and gradient, as in the paper.
    logistic : Classifier
        Logistic model on signal and gradient, which also gives probabilities.
    odds : ndarray of float64, shape (2, 3)
        Estimate, lower and upper bound of the logistic coefficients of signal and gradient: the increase of
        the log odds for one standard deviation. The intervals resample groups.
    """

    groups: int
    signal_correlation: Interval
    gradient_correlation: Interval
    majority: float
    svm: Classifier
    logistic: Classifier
    odds: Array


@one_blas_thread  # several threads would wait for one another a hundred times longer than they compute
def fitness(
    signals: Any, gradients: Any, survived: Any, groups: Any = None, *, resamples: int = 200, seed: int = 0
) -> Fitness:
    """Relate the survival of circles to their initial signals and gradients (Ding et al. §3.2).

    Parameters
    ----------
    signals, gradients : array_like, shape (runs, K), or (n,)
        Initial signal of each of K circles in each run, and its change over the first recorded steps; or
        those of n circles.
    survived : array_like of bool, the shape of `signals`
        Whether each circle survived.
    groups : array_like, shape (runs,) or (n,), optional
        Name of the group of each run or circle, such as the runs that share an initial embedding. Groups are
        left out as a whole. By default each run is a group; for the shape (n,) groups must be given.
    resamples : int, default 200
        Number of resamples of the groups for the intervals of the odds, at least 1.
    seed : int, default 0
        Seed of the resamples.

    Returns
    -------
    Fitness
        Correlations, two classifiers, and logistic coefficients.

    Raises
    ------
    InputError
        If shapes do not agree, if a value is not finite, if all circles or none survive, if there are fewer
        than two groups, or if no survivor or no dead circle remains when some groups are left out.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> signals, gradients = np.random.default_rng(0).normal(size=(2, 40, 10))
    >>> found = analysis.fitness(signals, gradients, signals > 0.5, resamples=20)
    >>> found.groups, found.svm.left_out.estimate > found.majority
    (40, True)
    """
    x, y = _pair("signals", signals, survived)
    g, _ = _pair("gradients", gradients, survived)
    resamples = whole_number("resamples", resamples, 1)
    if groups is None:
        if np.ndim(signals) != 2:
            raise InputError(f"groups must be given for signals of shape {np.shape(signals)}, not (runs, K)")
        groups = np.arange(len(signals))
    names = _names(groups, np.shape(signals))
    if len(np.unique(names)) < 2:
        raise InputError(f"groups must name at least 2 groups of the runs, got {len(np.unique(names))}")
    if y.all() or not y.any():
        raise InputError(f"survived must hold both outcomes, got {int(y.sum())} survivors of {y.size}")
    X = scaled(np.stack([x, g], axis=1), 0)[0]
    folds = GroupKFold(min(10, len(np.unique(names))))
    if any(y[rest].all() or not y[rest].any() for rest, _ in folds.split(X, y, names)):
        alive, dead = (len(np.unique(names[kind])) for kind in (y, ~y))
        got = f"survivors in {alive} and dead circles in {dead} of {len(np.unique(names))} groups"
        raise InputError(f"survived must hold both outcomes whichever groups are left out, got {got}")
    svm = make_pipeline(StandardScaler(), LinearSVC(C=1.0, random_state=0))
    logit = make_pipeline(StandardScaler(), LogisticRegression(C=np.inf, max_iter=1000))
    judged = []
    for model in (svm, logit):
        inside = model.fit(X, y).predict(X) == y
        scores = cross_val_predict(model, X, y, groups=names, cv=folds, method="decision_function")
        accuracies = _clustered((scores > 0) == y, names), _clustered(inside, names)
        ranked = float(balanced_accuracy_score(y, scores > 0)), float(roc_auc_score(y, scores))
        judged.append(Classifier(*accuracies, *ranked))
    majority = float(max(y.mean(), 1 - y.mean()))
    odds = _odds(StandardScaler().fit_transform(X), y, names, resamples, seed)
    of_signal, of_gradient = (correlation(values, y, names) for values in (x, g))
    return Fitness(len(np.unique(names)), of_signal, of_gradient, majority, judged[0], judged[1], odds)


def _names(groups: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the name (n,) of the group of each circle in a `shape`, from those of its runs or circles."""
    names, circles = regular_array("groups", groups), math.prod(shape)
    if names.shape == shape[:1]:
        names = np.repeat(names, circles // names.size)
    if names.size != circles:
        raise InputError(f"groups must name each run or circle, got {names.size} for {circles} circles")
    return names.ravel()


def _clustered(true: Mask, names: NDArray[Any]) -> Interval:
    """Return the fraction of circles for which something is true, with an interval for dependent groups."""
    group = np.unique(names, return_inverse=True)[1]
    return clustered_proportion(np.bincount(group, weights=true), np.bincount(group))


def _odds(X: Array, y: Mask, names: NDArray[Any], resamples: int, seed: int) -> Array:
    """Return the coefficients of a logistic regression with their bounds, as `Fitness.odds`."""
    generator = np.random.default_rng(seed)
    members = [np.flatnonzero(names == name) for name in np.unique(names)]
    estimate = LogisticRegression(C=np.inf, max_iter=1000).fit(X, y).coef_[0]
    draws = []
    for _ in range(resamples):
        rows = np.concatenate([members[k] for k in generator.integers(len(members), size=len(members))])
        if 0 < y[rows].sum() < len(rows):
            # A small ridge penalty keeps the coefficients finite if a resample separates perfectly.
            draws.append(LogisticRegression(C=1e4, max_iter=1000).fit(X[rows], y[rows]).coef_[0])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return np.stack([estimate, low, high], axis=1)


def circle_counts(counts: Any, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tabulate the mean number of circles by parameters of the runs (Ding et al. 2024, Figs. 5, 10, 14).

    Parameters
    ----------
    counts : array_like of int, shape (runs,)
        Number of circles that survived in each run.
    parameters : mapping of str to array_like (runs,)
        Values of each parameter by its name, such as the number of tokens and the weight decay.

    Returns
    -------
    list of dict
        One row for each combination of values that occurs, sorted by these values, numbers before text. It
        holds the values by name, and the mean number as ``circles``, an `Interval`.

    Raises
    ------
    InputError
        If lengths do not agree, a count is not finite, or a parameter is neither a number nor text.

    Examples
    --------
    >>> import analysis
    >>> rows = analysis.circles.circle_counts([2, 4, 5, 6], {"p": [11, 11, 59, 59]})
    >>> [(row["p"], row["circles"].estimate) for row in rows]
    [(11, 3.0), (59, 5.5)]
    """
    numbers = finite_array("counts", counts, ndim=1)
    columns = {name: list(values) for name, values in parameters.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if any(length != len(numbers) for length in lengths.values()):
        raise InputError(f"parameters must hold one value for each of {numbers.size} counts, got {lengths}")
    keys = list(zip(*columns.values(), strict=True)) if columns else [()] * len(numbers)
    try:
        order = sorted(set(keys), key=lambda key: [(isinstance(value, str), value) for value in key])
    except TypeError:
        raise InputError(f"parameters must hold numbers or text, got {short_text(columns)}") from None
    return [
        dict(zip(columns, key, strict=True)) | {"circles": mean(numbers[[row == key for row in keys]])}
        for key in order
    ]


def _pair(name: str, values: Any, survived: Any) -> tuple[Array, Mask]:
    """Return checked values and outcomes, each as a flat array."""
    x, y = finite_array(name, values), regular_array("survived", survived)
    if y.dtype != np.bool_ or x.shape != y.shape or not x.size:
        raise InputError(f"{name} and survived (bool) must agree, got {x.shape} and {y.dtype} {y.shape}")
    return x.ravel(), y.ravel()
