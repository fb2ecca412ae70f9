"""What circles and laws refuse, in the words that a user reads, and the last value that it still takes."""

import numpy as np
import pytest

import analysis
from analysis.circles.prediction import decision_error, fitness, survival_rates
from analysis.laws.batch import Recipe
from analysis.laws.pieces import as_pieces, unit
from analysis.laws.regressors import LinearODERegressor
from analysis.laws.scores import Law
from physics import InputError, Trajectory

RNG = np.random.default_rng(0)
E = RNG.normal(size=(7, 2))
PATH = RNG.normal(size=(12, 2)).cumsum(axis=0)
X, Y = RNG.normal(size=(2, 9, 2))
ALIVE = np.array([[True, False, False], [False, True, False]])
SIGNALS = RNG.normal(size=(2, 3))
MOVES = Trajectory(np.zeros((1, 3, 5, 2)) + np.arange(3)[:, None, None], [0, 5, 10])
UNIT = np.eye(2)
SPECTRUM = analysis.neuron_spectrum(np.cos(2 * np.pi * np.arange(7)[:, None] / 7 + np.arange(3)))


class Nameless(Law):
    """A law without named coefficients."""

    def changes(self, states):
        return states


REFUSED = [
    (lambda: analysis.fit_trajectories(PATH, 0.1),
     "times of trajectory 0 must have 12 entries, got the shape ()"),
    (lambda: analysis.fit_trajectories(PATH, []),
     "times of trajectory 0 must have 12 entries, got the shape (0,)"),
    (lambda: analysis.fit_trajectories([PATH, PATH[:, 0]]),
     "signals[1] must have 2 axes, got the shape (12,)"),
    (lambda: analysis.diversification(SPECTRUM, 2), "orders must be a list of whole numbers, got 2"),
    (lambda: analysis.circles.StoppingRule().first([0, 10], [[1, 1]]),
     "steps and signals must be (frames,) and (frames, K), got (2,) and (1, 2)"),
    (lambda: analysis.circles.StoppingRule().decided([0, 10], [1, 1]),
     "steps and signals must be (frames,) and (frames, K), got (2,) and (2,)"),
    (lambda: analysis.circles.circle_counts([1, 2], {"p": [None, 3]}),
     "parameters must hold numbers or text, got {'p': [None, 3]}"),
    (lambda: analysis.circles_of(MOVES, "a"), "first must be a finite number, got 'a'"),
    (lambda: analysis.circles_of(MOVES, 0, [5]), "last must be a finite number, got [5]"),
    (lambda: analysis.survives([1.0], factor=0), "factor must be a finite number greater than 0, got 0"),
    (lambda: analysis.survives([1.0], threshold=0),
     "threshold must be a finite number greater than 0, got 0"),
    (lambda: analysis.surviving_frequencies(E[None]),
     "E must be one embedding (tokens, dim), got the shape (1, 7, 2); `survives` takes several"),
    (lambda: analysis.circles.StoppingRule(factor=0), "factor must be a finite number greater than 0, got 0"),
    (lambda: analysis.circles.StoppingRule(margin=1), "margin must be a finite number of at least 0 and less "
     "than 1, got 1"),
    (lambda: analysis.circles.StoppingRule(margin=-0.1),
     "margin must be a finite number of at least 0 and less "
     "than 1, got -0.1"),
    (lambda: analysis.circles.StoppingRule(hold=-1), "hold must be at least 0, got -1"),
    (lambda: analysis.frequency_plane(E, 0), "frequency must be at least 1, got 0"),
    (lambda: analysis.frequency_plane(E, 4), "frequency must be at most 3, got 4"),
    (lambda: analysis.frequency_plane(E[None], 1),
     "E must be one embedding (tokens, dim), got the shape (1, 7, 2)"),
    (lambda: analysis.circles.circle_delta(1, 2), "p must be at least 3, got 2"),
    (lambda: analysis.circles.circle_delta(0, 7), "frequency must be at least 1, got 0"),
    (lambda: analysis.circles.circle_delta(4, 7), "frequency must be at most 3, got 4"),
    (
        lambda: analysis.circles.circle_delta(6, 15),
        "frequency must have no factor in common with 15, got 6, whose circle has 5 places with 3 tokens on "
        "each",
    ),
    (lambda: analysis.fourier_signals(E, kind="cube"), "kind must be one of 'norm', 'square', got 'cube'"),
    (lambda: analysis.fourier_signals(E[:2]), "E must hold at least 3 tokens, got 2"),
    (lambda: analysis.diversification(E), "spectrum must be what neuron_spectrum returns, got ndarray"),
    (lambda: analysis.diversification(SPECTRUM, (0,)), "orders must be at least 1, got 0"),
    (
        lambda: analysis.neuron_ablation(UNIT[0], UNIT, [0, 1]),
        "activations and W_out must have the shapes (..., examples, hidden) and (..., hidden, classes), got "
        "(2,) and (2, 2)",
    ),
    (
        lambda: analysis.neuron_ablation(UNIT, UNIT[None], [0, 1]),
        "activations and W_out must have the shapes (..., examples, hidden) and (..., hidden, classes), got "
        "(2, 2) and (1, 2, 2)",
    ),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [0.0, 1.0]),
     "labels must be whole numbers of shape (2,), got float64 of shape (2,)"),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [0]),
     "labels must be whole numbers of shape (2,), got int64 of shape (1,)"),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [0, 2]), "labels must be from 0 to 1, got 0 to 2"),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [-1, 1]), "labels must be from 0 to 1, got -1 to 1"),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [0, 1], groups=UNIT),
     "groups must be bool of shape (..., groups, 2), got float64 (2, 2)"),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [0, 1], groups=[True, False]),
     "groups must be bool of shape (..., groups, 2), got bool (2,)"),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [0, 1], groups=[[True]]),
     "groups must be bool of shape (..., groups, 2), got bool (1, 1)"),
    (lambda: analysis.circles_of(MOVES).gradient(0), "at must be at least 1, got 0"),
    (lambda: analysis.circles_of(MOVES).gradient(11), "at must be at most the last step, 10, got 11"),
    (lambda: analysis.circles_of(MOVES, 6),
     "first and last must enclose at least 2 frames, got 1 from step 6 to the last, of 3 from 0 to 10"),
    (lambda: analysis.circles_of(MOVES, 1, 9),
     "first and last must enclose at least 2 frames, got 1 from step 1 to 9, of 3 from 0 to 10"),
    (lambda: survival_rates(SIGNALS, ALIVE, bins=0), "bins must be at least 1, got 0"),
    (lambda: survival_rates(SIGNALS, ALIVE[:1]),
     "values and survived (bool) must have the same shape, got (2, 3) and bool of (1, 3)"),
    (lambda: survival_rates([], np.array([], bool)),
     "values and survived (bool) must have the same shape, got (0,) and bool of (0,)"),
    (lambda: survival_rates(SIGNALS, ALIVE.astype(int)),
     "values and survived (bool) must have the same shape, got (2, 3) and int64 of (2, 3)"),
    (lambda: survival_rates(SIGNALS, ALIVE, groups=[1, 2, 3, 4]),
     "groups must hold one name for each run or circle, got 4 for 6 circles"),
    (lambda: survival_rates(SIGNALS, ALIVE, groups=[1, 2, 3]),
     "groups must hold one name for each run or circle, got 3 for 6 circles"),
    (lambda: fitness(SIGNALS.T, SIGNALS.T, ALIVE.T, [1, 2]),
     "groups must hold one name for each run or circle, got 2 for 6 circles"),
    (lambda: survival_rates(SIGNALS, ALIVE, groups=[]),
     "groups must hold one name for each run or circle, got 0 for 6 circles"),
    (lambda: fitness(SIGNALS, SIGNALS[:1], ALIVE),
     "gradients and survived (bool) must have the same shape, got (1, 3) and bool of (2, 3)"),
    (lambda: fitness(SIGNALS[0], SIGNALS[0], ALIVE[0]),
     "groups must be given unless signals have the shape (runs, K), got (3,)"),
    (lambda: fitness(SIGNALS, SIGNALS, ALIVE, [1, 1]),
     "groups must name at least 2 groups of the runs, got 1"),
    (lambda: fitness(SIGNALS, SIGNALS, ~np.zeros_like(ALIVE)),
     "survived must hold survivors and dead circles, got 6 survivors of 6 circles"),
    (lambda: fitness(SIGNALS, SIGNALS, np.zeros_like(ALIVE)),
     "survived must hold survivors and dead circles, got 0 survivors of 6 circles"),
    (lambda: fitness(SIGNALS, SIGNALS, ALIVE, resamples=0), "resamples must be at least 1, got 0"),
    (lambda: analysis.circles.circle_counts([1, 2], {"p": [5]}),
     "parameters must hold one value for each of the 2 counts, got {'p': 1}"),
    (lambda: analysis.circles.circle_counts([[1, 2]], {}),
     "parameters must hold one value for each of the 2 counts, got {}"),
    (lambda: decision_error([0, 1], np.ones((1, 3, 2))),
     "steps and signals must be (frames,) and (runs, frames, K), got (2,) and (1, 3, 2)"),
    (lambda: analysis.honest_scores(analysis.fit_trajectories, PATH, split=1),
     "split must be a finite number greater than 0 and less than 1, got 1"),
    (lambda: analysis.honest_scores(analysis.fit_trajectories, PATH, split=0),
     "split must be a finite number greater than 0 and less than 1, got 0"),
    (lambda: analysis.laws.batch_lasso([(X, Y), (X[:, 0], Y)]),
     "problem 1 must hold X (n, K) and Y (n, T), got the shapes (9,) and (9, 2)"),
    (lambda: analysis.laws.batch_lasso([(X, Y[:, 0])]),
     "problem 0 must hold X (n, K) and Y (n, T), got the shapes (9, 2) and (9,)"),
    (lambda: analysis.laws.batch_lasso([(X, Y[1:])]),
     "problem 0 must hold X (n, K) and Y (n, T), got the shapes (9, 2) and (8, 2)"),
    (lambda: analysis.laws.batch_lasso([(X[:0], Y[:0])]),
     "problem 0 must hold X (n, K) and Y (n, T), got the shapes (0, 2) and (0, 2)"),
    (lambda: analysis.laws.batch_lasso([]), "problems must hold at least one regression, got none"),
    (lambda: analysis.laws.batch_lasso([(X, Y), (X, Y[:, :1])]),
     "problems must agree in features and targets, got [(2, 1), (2, 2)]"),
    (lambda: analysis.laws.batch_lasso([(X, Y)], alpha=0),
     "alpha must be a finite number greater than 0, got 0"),
    (lambda: analysis.laws.batch_lasso([(X, Y)], l1_ratio=0),
     "l1_ratio must be a finite number greater than 0 and at most 1, got 0"),
    (lambda: analysis.laws.batch_lasso([(X, Y)], l1_ratio=1.1),
     "l1_ratio must be a finite number greater than 0 and at most 1, got 1.1"),
    (lambda: analysis.laws.batch_lasso([(X, Y)], max_iter=0), "max_iter must be at least 1, got 0"),
    (lambda: analysis.laws.batch_lasso([(X, Y)], tol=0), "tol must be a finite number greater than 0, got 0"),
    (lambda: analysis.laws.fit_each(PATH, alpha=0),
     "alpha must be a finite number greater than 0, got 0"),
    (lambda: analysis.laws.fit_each(PATH, l1_ratio=2), "l1_ratio must be a finite number greater than 0 and "
     "at most 1, got 2"),
    (lambda: analysis.laws.fit_each(PATH, max_iter=0), "max_iter must be at least 1, got 0"),
    (lambda: analysis.laws.fit_each(PATH, tol=0), "tol must be a finite number greater than 0, got 0"),
    (lambda: analysis.laws.resample_coefficients(PATH, resamples=1), "resamples must be at least 2, got 1"),
    (lambda: analysis.laws.resample_coefficients(PATH, alpha=-1),
     "alpha must be a finite number of at least 0, got -1"),
    (lambda: analysis.laws.resample_coefficients([PATH, PATH], block=2),
     "block must be left out for 2 trajectories, which are drawn whole, got 2"),
    (lambda: analysis.laws.resample_coefficients(PATH, block=0), "block must be at least 1, got 0"),
    (lambda: analysis.laws.resample_coefficients(PATH, block=12),
     "block must be at most the number of changes, 11, got 12"),
    (lambda: LinearODERegressor("ridge").check(),
     "penalty must be 'lasso', 'elastic-net' or None, got 'ridge'"),
    (lambda: LinearODERegressor(alpha="hic").check(),
     "alpha must be a number of at least 0, 'aic', 'bic' or 'cv', got 'hic'"),
    (lambda: LinearODERegressor(alpha=-1).check(), "alpha must be a finite number of at least 0, got -1"),
    (lambda: LinearODERegressor(max_iter=0).check(), "max_iter must be at least 1, got 0"),
    (lambda: LinearODERegressor(tol=0).check(), "tol must be a finite number greater than 0, got 0"),
    (lambda: LinearODERegressor(cv=1).check(), "cv must be at least 2, got 1"),
    (lambda: LinearODERegressor(alpha="aic").fit(X[:3], Y[:3]),
     "alpha='aic' needs more samples than unknowns, got 3 samples for 3 unknowns"),
    (lambda: LinearODERegressor(alpha="cv", cv=5).fit(X[:5], Y[:5]),
     "alpha='cv' needs more samples than cv = 5 folds, got 5"),
    (
        lambda: analysis.to_generator(-UNIT, [0, 0]),
        "A must be the increment map of a flow, got 1 + A with the eigenvalues 0, 0, of which no real "
        "principal logarithm exists: a component that flips its sign or vanishes in one step has no "
        "continuous generator",
    ),
    (lambda: analysis.to_generator(UNIT, [0, 0], 0), "step must be a finite number greater than 0, got 0"),
    (lambda: analysis.to_increment(UNIT, [0, 0], 0), "step must be a finite number greater than 0, got 0"),
    (lambda: analysis.laws.affine_rollout(UNIT, [0, 0], [0, 0], -1), "steps must be at least 0, got -1"),
    (lambda: analysis.laws.affine_rollout(UNIT, [0, 0], [0], 1), "x0 must have the shape (2,), got (1,)"),
    (lambda: analysis.affine_solution(np.ones((2, 3)), [0, 0], [0, 0], [0]),
     "A and b must have the shapes (K, K) and (K,) with K at least 1, got (2, 3) and (2,)"),
    (lambda: analysis.affine_solution(UNIT, [0], [0], [0]),
     "A and b must have the shapes (K, K) and (K,) with K at least 1, got (2, 2) and (1,)"),
    (lambda: analysis.affine_solution(np.ones((0, 0)), [], [], [0]),
     "A and b must have the shapes (K, K) and (K,) with K at least 1, got (0, 0) and (0,)"),
    (lambda: analysis.laws.stability(UNIT, kind="map"),
     "kind must be one of 'increment', 'generator', got 'map'"),
    (lambda: analysis.laws.interactions(np.ones((1, 2))),
     "A must have the shape (K, K) with K at least 1, got (1, 2)"),
    (lambda: analysis.laws.stability(3.0), "A must have the shape (K, K) with K at least 1, got ()"),
    (
        lambda: analysis.fit_trajectories(PATH[:2], alpha=0),
        "signals must hold at least as many changes as unknowns for least squares, got 1 changes for 3 "
        "unknowns of each target; give more frames or a penalty",
    ),
    (lambda: as_pieces(PATH[:, 0]),
     "signals must have the shape (frames, K) or (runs, frames, K), got (12,)"),
    (lambda: as_pieces([PATH, PATH[:, :1]]), "signals must agree in the number of components, got [2, 1]"),
    (lambda: as_pieces([PATH, PATH], [np.arange(12)] * 3),
     "times must be given once or for each of 2 trajectories, got 3"),
    (lambda: as_pieces([PATH, PATH], [np.arange(12), np.arange(11)]),
     "times of trajectory 1 must have 12 entries, got the shape (11,)"),
    (lambda: as_pieces(PATH, [0, 1, 2, 2, *range(4, 12)]),
     "times of trajectory 0 must increase, got 2 followed by 2"),
    (
        lambda: unit(as_pieces(PATH[:3], [0.0, 1.0, 3.0])),
        "times must be equally spaced for an increment map, got spacings from 1 to 2; choose other steps or "
        'kind="generator"',
    ),
    (lambda: unit(as_pieces([PATH[:3], PATH[:3]], [[0.0, 1.0, 2.0], [0.0, 3.0, 6.0]])),
     "times must have one spacing in all trajectories for an increment map, got [1.0, 3.0]"),
    (lambda: analysis.laws.match_trajectories(np.ones((4, 3))),
     "signals must hold at least as many values as unknowns, got 12 for 15"),
    (lambda: analysis.laws.match_trajectories(PATH[:3]), "trajectory 0 must have at least 4 frames, got 3"),
    (lambda: analysis.fit_trajectories(PATH).to_increment(0.5),
     "step must be a whole multiple of the map's step, 1, got 0.5"),
    (lambda: analysis.fit_trajectories(PATH).to_increment(1.5),
     "step must be a whole multiple of the map's step, 1, got 1.5"),
    (lambda: analysis.fit_trajectories(PATH).predict([0, 0], [0.5]),
     "times of an increment map must be whole numbers of steps of at least 0, got 0.5"),
    (lambda: analysis.fit_trajectories(PATH).predict([0, 0], [2, -1]),
     "times of an increment map must be whole numbers of steps of at least 0, got -1"),
    (
        lambda: analysis.fit_trajectories(PATH[:3], penalty=None),
        "signals must hold at least as many changes as unknowns for least squares, got 2 changes for 3 "
        "unknowns of each target; give more frames or a penalty",
    ),
    (lambda: Nameless().table(), "law must have named coefficients to be shown as a table, got Nameless"),
    (lambda: Recipe("cubic"), "law must be one of 'linear', 'mean-field', 'lotka-volterra', got 'cubic'"),
    (lambda: Recipe(kind="map"),
     "kind must be one of 'increment', 'generator', got 'map'"),
    (lambda: Recipe(alpha="hic"), "alpha must be one of 'aic', 'bic', 'cv', got 'hic'"),
    (lambda: Recipe(alpha=-1), "alpha must be a finite number of at least 0, got -1"),
    (lambda: Recipe(l1_ratio=0), "l1_ratio must be a finite number greater than 0 and at most 1, got 0"),
    (lambda: Recipe("mean-field", l1_ratio=1.5), "l1_ratio must be a finite number from 0 to 1, got 1.5"),
    (lambda: Recipe("mean-field", l1_ratio=-0.5), "l1_ratio must be a finite number from 0 to 1, got -0.5"),
    (lambda: Recipe(max_iter=0), "max_iter must be at least 1, got 0"),
    (
        lambda: Recipe("mean-field").check_resamples(5),
        "resamples must be 0 unless the law is linear and alpha a number, got 5 with the mean-field law and "
        "alpha 0.01",
    ),
    (
        lambda: Recipe(alpha="cv").check_resamples(5),
        "resamples must be 0 unless the law is linear and alpha a number, got 5 with the linear law and "
        "alpha cv",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_names_the_argument_and_what_is_allowed(call, sentence):
    with pytest.raises(InputError) as refused:
        call()
    assert str(refused.value) == sentence


ALLOWED = [
    lambda: analysis.circles.StoppingRule(margin=0, hold=0),
    lambda: analysis.frequency_plane(E, 3),
    lambda: analysis.circles.circle_delta(3, 7),
    lambda: analysis.circles.circle_delta(1, 3),
    lambda: analysis.fourier_signals(E[:3]),
    lambda: analysis.neuron_ablation(UNIT, UNIT, [0, 1], groups=[[True, False]]),
    lambda: analysis.circles_of(MOVES).gradient(1),
    lambda: analysis.circles_of(MOVES).gradient(10),
    lambda: analysis.circles_of(MOVES, 5, 10),
    lambda: survival_rates(SIGNALS, ALIVE, bins=1, groups=[1, 2]),
    lambda: survival_rates(SIGNALS, ALIVE, groups=[1, 1, 2, 2, 3, 3]),
    lambda: survival_rates(SIGNALS, ALIVE, groups=[[1, 1, 2], [2, 3, 3]]),
    lambda: fitness(SIGNALS, SIGNALS, ALIVE, resamples=1),
    lambda: analysis.laws.batch_lasso([(X, Y)], l1_ratio=1, max_iter=1),
    lambda: analysis.laws.fit_each(PATH, l1_ratio=1, max_iter=1),
    lambda: analysis.laws.resample_coefficients(PATH, alpha=0, resamples=2, block=11),
    lambda: analysis.laws.resample_coefficients(PATH, block=1, resamples=2),
    lambda: LinearODERegressor(alpha="aic").fit(X[:4], Y[:4]),
    lambda: LinearODERegressor(alpha="cv", cv=5).fit(X[:6], Y[:6]),
    lambda: LinearODERegressor(alpha="cv", cv=2).fit(X, Y),
    lambda: LinearODERegressor("elastic-net", 0, l1_ratio=1, cv=2, max_iter=1).check(),
    lambda: analysis.laws.affine_rollout(UNIT, [0, 0], [1, 1], 0),
    lambda: analysis.fit_trajectories(PATH[:4], penalty=None),
    lambda: analysis.fit_trajectories(PATH).to_increment(1.0),
    lambda: Recipe("mean-field", l1_ratio=0, alpha=0, max_iter=1),
    lambda: Recipe("mean-field", l1_ratio=1),
    lambda: Recipe().check_resamples(5),
]  # fmt: skip


@pytest.mark.parametrize("call", ALLOWED, ids=range(len(ALLOWED)))
def test_the_last_value_before_a_refusal_is_taken(call):
    call()


@pytest.mark.parametrize("call", [analysis.laws.stability, analysis.laws.interactions])
def test_a_matrix_that_is_not_finite_is_named(call):
    with pytest.raises(InputError, match=r"^A must be finite, got 1 NaN or infinite among 4 values$"):
        call([[0.0, np.nan], [0.0, 0.0]])
