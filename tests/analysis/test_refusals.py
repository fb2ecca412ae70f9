"""What the analysis refuses: each call with the name that its message must contain."""

import math

import numpy as np
import pytest

import analysis
from analysis.circles.prediction import fitness, survival_rates
from analysis.comparison.compared import EnsembleOf
from analysis.comparison.timing import onsets
from analysis.laws.ode import Recipe
from analysis.laws.regressors import LinearODERegressor
from analysis.laws.scores import as_pieces, unit
from analysis.phases import Refinement, phase_diagram
from analysis.plots.embeddings import plane, show_classifier, show_embedding
from analysis.plots.neurons import show_neurons
from analysis.plots.signals import show_trajectory
from analysis.stats.effects import permutation_p_value
from physics import InputError, Trajectory

RNG = np.random.default_rng(0)
E = RNG.normal(size=(7, 2))
PATH = RNG.normal(size=(12, 2)).cumsum(axis=0)
X, Y = RNG.normal(size=(2, 9, 2))
ALIVE = np.array([[True, False, False], [False, True, False]])
SIGNALS = RNG.normal(size=(2, 3))
MOVES = Trajectory(RNG.normal(size=(2, 3, 5, 2)), [0, 5, 10])
UNIT = np.eye(2)
SPECTRUM = analysis.neuron_spectrum(np.cos(2 * np.pi * np.arange(7)[:, None] / 7 + np.arange(3)))


def axis(**options):
    return analysis.Axis("x", **({"low": 0.0, "high": 1.0, "cells": 1} | options))


OTHER = analysis.Axis("y", 0, 1, 1)


def outcome(points, done):
    return np.ones((len(points), 3))


# fmt: off
REFUSED = [
    (lambda: analysis.fit_trajectories(PATH, 0.1), "times"),
    (lambda: analysis.fit_trajectories([PATH, PATH[:, 0]]), "signals[1]"),
    (lambda: analysis.diversification(SPECTRUM, 2), "orders"),
    (lambda: analysis.circles.StoppingRule().first([0, 10], [[1, 1]]), "steps"),
    (lambda: analysis.circles.circle_counts([1, 2], {"p": [None, 3]}), "parameters"),
    (lambda: analysis.circles_of(MOVES, "a"), "first"),
    (lambda: analysis.circles_of(MOVES, 0, [5]), "last"),
    (lambda: analysis.survives([1.0], factor=0), "factor"),
    (lambda: analysis.survives([1.0], threshold=0), "threshold"),
    (lambda: analysis.surviving_frequencies(E[None]), "E"),
    (lambda: analysis.circles.StoppingRule(factor=0), "factor"),
    (lambda: analysis.circles.StoppingRule(margin=1), "margin"),
    (lambda: analysis.frequency_plane(E, 0), "frequency"),
    (lambda: analysis.frequency_plane([[1.0, 2.0], [3.0]], 1), "E"),
    (lambda: analysis.survives(3), "signals"),
    (lambda: analysis.circles.circle_delta(1, 2), "p"),
    (lambda: analysis.circles.circle_delta(0, 7), "frequency"),
    (lambda: analysis.fourier_signals(E[:2]), "E"),
    (lambda: analysis.diversification(E), "spectrum"),
    (lambda: analysis.neuron_ablation(UNIT[0], UNIT, [0, 1]), "activations"),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [0.0, 1.0]), "labels"),
    (lambda: analysis.neuron_ablation(UNIT, UNIT, [0, 1], groups=UNIT), "groups"),
    (lambda: analysis.circles.signal_gradient(analysis.circles_of(MOVES).signals, 0), "at"),
    (lambda: survival_rates(SIGNALS, ALIVE, bins=0), "bins"),
    (lambda: survival_rates(SIGNALS, ALIVE[:1]), "values"),
    (lambda: survival_rates(SIGNALS, ALIVE, groups=[1, 2, 3, 4]), "groups"),
    (lambda: fitness(SIGNALS.T, SIGNALS.T, ALIVE.T, [1, 2]), "groups"),
    (lambda: fitness(SIGNALS, SIGNALS[:1], ALIVE), "gradients"),
    (lambda: fitness(SIGNALS, SIGNALS, ~np.zeros_like(ALIVE)), "survived"),
    (lambda: analysis.honest_scores(analysis.fit_trajectories, PATH, split=1), "split"),
    (lambda: analysis.laws.resample_coefficients(PATH, resamples=1), "resamples"),
    (lambda: analysis.laws.resample_coefficients(PATH, alpha=-1), "alpha"),
    (lambda: analysis.laws.resample_coefficients([PATH, PATH], block=2), "block"),
    (lambda: LinearODERegressor("ridge").check(), "penalty"),
    (lambda: LinearODERegressor(alpha="hic").check(), "alpha"),
    (lambda: LinearODERegressor(max_iter=0).check(), "max_iter"),
    (lambda: LinearODERegressor(tol=0).check(), "tol"),
    (lambda: analysis.to_generator(-UNIT, [0, 0]), "A"),
    (lambda: analysis.to_generator(UNIT, [0, 0], 0), "step"),
    (lambda: analysis.laws.affine_rollout(UNIT, [0, 0], [0, 0], -1), "steps"),
    (lambda: analysis.laws.affine_rollout(UNIT, [0, 0], [0], 1), "x0"),
    (lambda: analysis.affine_solution(np.ones((2, 3)), [0, 0], [0, 0], [0]), "A"),
    (lambda: analysis.laws.interactions(np.ones((1, 2))), "A"),
    (lambda: analysis.laws.interactions(3.0), "A"),
    (lambda: analysis.fit_trajectories(PATH[:2], alpha="0"), "signals"),
    (lambda: analysis.fit_trajectories(PATH, alpha=np.ones(2)), "alpha"),
    (lambda: as_pieces(PATH[:, 0]), "signals"),
    (lambda: as_pieces([PATH, PATH], [np.arange(12)] * 3), "times"),
    (lambda: unit(as_pieces(PATH[:3], [0.0, 1.0, 3.0])), "times"),
    (lambda: analysis.fit_trajectories(PATH).to_increment(0.5), "step"),
    (lambda: Recipe(kind="map"), "kind"),
    (lambda: Recipe(l1_ratio=0), "l1_ratio"),
    (lambda: Recipe("mean-field").check_resamples(5), "resamples"),
    (lambda: axis(scale="root"), "scale"),
    (lambda: axis(cells=0), "cells"),
    (lambda: axis(low=1), "x"),
    (lambda: Refinement(seeds=0), "seeds"),
    (lambda: Refinement(seeds=3, most_seeds=2), "most_seeds"),
    (lambda: phase_diagram(axis(), axis(), outcome), "x"),
    (lambda: phase_diagram(axis(), "y", outcome), "y"),
    (lambda: phase_diagram(axis(), OTHER, outcome, {"seeds": 1}), "refinement"),
    (lambda: phase_diagram(axis(), OTHER, lambda points, done: outcome(points, done) / 2), "evaluate"),
    (lambda: phase_diagram(axis(), OTHER, outcome, delay=0), "delay"),
    (lambda: analysis.classify_phases([1.0], [1.0, 2.0]), "validation_steps"),
    (lambda: analysis.classify_phases([math.inf], [1.0]), "train_steps"),
    (lambda: analysis.comparison.procrustes_disparity([E], RNG.normal(size=(1, 6, 2))), "first"),
    (lambda: analysis.comparison.procrustes_disparity([E], np.ones((2, 7, 2))), "second"),
    (lambda: analysis.stats.calibrate([1.0], [1.0, 2.0]), "predicted"),
    (lambda: analysis.fit_transition([1.0, 2.0], [0, 3], [3, 3]), "successes"),
    (lambda: analysis.fit_transition([2e-170, 4e-170, 6e-170], [1, 10, 19], [20] * 3), "values"),
    (lambda: analysis.fit_critical_values([3e-170, 4e-170, 4e-170, 5e-170], 1e-170), "values"),
    (lambda: analysis.comparison.Onsets([1.0, np.nan], [True, True]), "times"),
    (lambda: onsets([[0.0, 1.0]], [-1.0, 0.0], 0.5), "times"),
    (lambda: EnsembleOf("simulated", np.ones((2, 3, 5))), "simulated"),
    (lambda: EnsembleOf("trained", "a.h5"), "trained"),
    (lambda: onsets(np.ones((2, 3)), np.arange(4), 1.0), "values"),
    (lambda: analysis.comparison.no_relabelling(0), "tokens"),
    (lambda: analysis.comparison.symmetry_of(7), "theory"),
    (lambda: analysis.compare(MOVES, MOVES, delta=0), "delta"),
    (lambda: analysis.compare(MOVES, MOVES, align="quality"), "align"),
    (lambda: analysis.compare(MOVES, MOVES, paired="no"), "paired"),
    (lambda: analysis.compare(MOVES, MOVES, operation="Z_5"), "operation"),
    (lambda: analysis.compare(MOVES, MOVES, accuracies=0.9), "accuracies"),
    (lambda: analysis.fit_batch([]), "signals"),
    (lambda: show_embedding(E[None]), "E"),
    (lambda: plane(np.ones((0, 2))), "points"),
    (lambda: show_classifier(np.zeros(4), (0, 1, 0, 1), count=2), "classes"),
    (lambda: show_classifier(np.zeros((2, 2)), (0, 1, 0, 1), count=2, sums=E, labels=[0]), "labels"),
    (lambda: show_trajectory(MOVES, run=2), "run"),
    (lambda: show_trajectory(MOVES, "speed"), "what"),
    (lambda: show_neurons(analysis.neuron_spectrum(RNG.normal(size=(2, 7, 3)))), "spectrum"),
    (lambda: analysis.stats.cliffs_delta([1.0, np.nan], [0.0, 1.0]), "first"),
    (lambda: analysis.stats.hedges_g([0.0, 1.0], [1.0, np.inf]), "second"),
    (lambda: permutation_p_value([0.0, 1.0], [1.0, np.nan]), "second"),
    (lambda: analysis.correlation(range(5), range(5), groups=[1, 2, 3]), "groups"),
    (lambda: analysis.compare(MOVES, MOVES, names=5), "names"),
    (lambda: analysis.compare(MOVES, MOVES, names=np.ones((2, 2))), "names"),
]
# fmt: on


@pytest.mark.parametrize(("call", "name"), REFUSED)
def test_a_refusal_names_the_argument(call, name):
    with pytest.raises(InputError) as refused:
        call()
    assert name in str(refused.value).partition(" must ")[0]
