"""What phases, comparisons and figures refuse, in the words that a user reads, and what they still take."""

import math

import numpy as np
import pytest

import analysis
from analysis.comparison.ensembles import EnsembleOf
from analysis.comparison.timing import onsets
from analysis.laws.batch import batch_signals
from analysis.phases.diagram import Refinement, phase_diagram
from analysis.plots import maps
from analysis.plots.embeddings import show_embedding
from analysis.plots.neurons import show_neurons
from analysis.plots.trajectory import show_trajectory
from analysis.stats.effects import permutation_p_value
from physics import InputError, Operation, Trajectory

RNG = np.random.default_rng(0)
E = RNG.normal(size=(7, 2))
ENDS = np.full((2, 3, 5, 2), np.nan)
MOVES = Trajectory(
    RNG.normal(size=(2, 3, 5, 2)),
    [0, 5, 10],
    observables={"loss": np.ones((2, 3)), "maps": np.ones((2, 3, 4, 4))},
)


def axis(**options):
    return analysis.Axis("x", **({"low": 0.0, "high": 1.0, "cells": 1} | options))


def outcome(points, done):
    return np.ones((len(points), 3))


NOT_FINITE = " must be finite, got 1 NaN or infinite among 2 values"
NO_LEVEL = " must be a finite number greater than 0 and less than 1, got "

REFUSED = [
    (lambda: axis(scale="root"), "scale must be one of 'linear', 'log', got 'root'"),
    (lambda: axis(cells=0), "cells of x must be at least 1, got 0"),
    (lambda: axis(cells=1001), "cells of x must be at most 1000, got 1001"),
    (lambda: axis(low=1), "x must go from a lower to a higher value, got 1 to 1"),
    (lambda: axis(scale="log"), "x must begin above 0 on a logarithmic axis, got 0"),
    (lambda: axis(scale="log", whole=True), "x must begin above 0.5 on a logarithmic axis, got 0"),
    (lambda: analysis.stats.median_crossing([], 0.1), "values must hold at least one number, got none"),
    (lambda: axis(high=math.nan), "high of x must be a finite number, got nan"),
    (
        lambda: axis(whole=True, cells=3),
        "cells of x must each hold a whole number, got one from 0.166667 to 0.833333; take "
        "fewer cells or a wider range",
    ),
    (lambda: Refinement(seeds=0), "seeds must be at least 1, got 0"),
    (lambda: Refinement(seeds=3, most_seeds=2), "most_seeds must be at least 3, got 2"),
    (lambda: Refinement(levels=-1), "levels must be at least 0, got -1"),
    (lambda: Refinement(certain=1), "certain must be a finite number greater than 0 and less than 1, got 1"),
    (lambda: Refinement(certain=0), "certain must be a finite number greater than 0 and less than 1, got 0"),
    (
        lambda: phase_diagram(axis(), axis(), outcome),
        "x and y must be two different hyperparameters, got 'x' for both",
    ),
    (
        lambda: phase_diagram(axis(), analysis.Axis("y", 0, 1, 2), outcome, Refinement(seeds=2, most_runs=3)),
        "most_runs must be at least 4, got 3",
    ),
    (
        lambda: phase_diagram(axis(), analysis.Axis("y", 0, 1, 1), outcome, delay=0),
        "delay must be a finite number greater than 0, got 0",
    ),
    (
        lambda: phase_diagram(axis(), analysis.Axis("y", 0, 1, 1), lambda points, done: np.ones((3, 2))),
        "evaluate must return 3 numbers for each of 3 runs, got the shape (3, 2)",
    ),
    (
        lambda: analysis.classify_phases([1.0], [1.0, 2.0]),
        "validation_steps must have the shape of train_steps, (1,), got (2,)",
    ),
    (
        lambda: analysis.classify_phases([1.0], [-1.0]),
        "validation_steps must be at least 0, or NaN for never, got -1",
    ),
    (
        lambda: analysis.classify_phases([math.inf], [1.0]),
        "train_steps must be at least 0, or NaN for never, got inf",
    ),
    (
        lambda: analysis.comparison.procrustes_disparity([E], RNG.normal(size=(1, 6, 2))),
        "first and second must have the same number of tokens, got 7 and 6",
    ),
    (
        lambda: analysis.comparison.procrustes_disparity([E], np.ones((2, 7, 2))),
        "second must not hold a shape whose tokens all coincide",
    ),
    (
        lambda: analysis.comparison.procrustes_disparity([E], [E], analysis.comparison.affine_maps(5)),
        "symmetry must be one of 7 tokens, got one of 5",
    ),
    (
        lambda: analysis.stats.calibrate([1.0], [1.0, 2.0]),
        "predicted and measured must have one shape (n,), got (1,) and (2,)",
    ),
    (
        lambda: analysis.fit_transition([1.0], [1.0, 2.0], [3.0]),
        "values, successes and trials must have one shape (n,), got (1,), (2,) and (1,)",
    ),
    (
        lambda: analysis.fit_transition([1.0, 2.0], [0, 3], [3, 3]),
        "successes must lie between 0 and trials at some value for a transition to be fitted, got none",
    ),
    (
        lambda: EnsembleOf("simulated", np.ones((2, 3, 5))),
        "simulated must be a Trajectory, an array (runs, frames, tokens, dim) of real numbers, or a sequence "
        "of these, got an array (2, 3, 5) of float64",
    ),
    (
        lambda: EnsembleOf("simulated", np.ones((2, 0, 5, 2))),
        "simulated must be a Trajectory, an array (runs, frames, tokens, dim) of real numbers, or a sequence "
        "of these, got an array (2, 0, 5, 2) of float64",
    ),
    (
        lambda: EnsembleOf("trained", "a.h5"),
        "trained must be a Trajectory, an array (runs, frames, tokens, dim) of real numbers, or a sequence "
        "of these, got str",
    ),
    (lambda: EnsembleOf("trained", []), "trained must hold at least one Trajectory or array, got none"),
    (
        lambda: EnsembleOf("trained", [MOVES, np.ones((1, 2, 5, 3))]),
        "trained must agree in tokens and dimensions, got [(5, 2), (5, 3)]",
    ),
    (
        lambda: EnsembleOf("trained", ENDS),
        "the first and last frames of trained must be finite in at least one run, got NaN or infinite values "
        "in all 2",
    ),
    (
        lambda: onsets(np.ones((2, 3)), np.arange(4), 1.0),
        "values and times must have the shapes (runs, frames) and (frames,), got (2, 3) and (4,)",
    ),
    (
        lambda: onsets(np.ones(3), np.arange(3), 1.0),
        "values and times must have the shapes (runs, frames) and (frames,), got (3,) and (3,)",
    ),
    (
        lambda: onsets(np.ones((2, 0)), np.arange(0), 1.0),
        "values and times must have the shapes (runs, frames) and (frames,), got (2, 0) and (0,)",
    ),
    (lambda: analysis.comparison.no_relabelling(0), "tokens must be at least 1, got 0"),
    (lambda: analysis.comparison.affine_maps(0), "tokens must be at least 1, got 0"),
    (
        lambda: analysis.comparison.symmetry_of(7),
        "theory must be an Operation, EffectiveTheory or group, got int",
    ),
    (
        lambda: analysis.comparison.symmetry_of(Operation(5, 8)),
        "the modulus of theory must be 5, its number of tokens, or at least 9, where no sum wraps around, to "
        "have relabelings, got 8",
    ),
    (lambda: analysis.compare(MOVES, MOVES, delta=0), "delta must be a finite number greater than 0, got 0"),
    (lambda: analysis.compare(MOVES, MOVES, most_pairs=0), "most_pairs must be at least 1, got 0"),
    (lambda: batch_signals([]), "batch must hold at least one run, got none"),
    (lambda: batch_signals([E]), "batch must hold trajectories or signals, got ndarray"),
    (
        lambda: batch_signals([MOVES, Trajectory(np.zeros((1, 2, 7, 2)), [0, 1])]),
        "batch must agree in the number of frequencies, got [2, 3]",
    ),
    (lambda: show_embedding(E[None]), "E must be one embedding (tokens, dim), got the shape (1, 7, 2)"),
    (lambda: maps.plane(np.ones((0, 2))), "points must have the shape (n, 2), got (0, 2)"),
    (lambda: maps.plane(np.ones((4, 3))), "points must have the shape (n, 2), got (4, 3)"),
    (lambda: maps.plane(np.ones(2)), "points must have the shape (n, 2), got (2,)"),
    (
        lambda: maps.show_classifier(np.zeros(4), (0, 1, 0, 1), count=2),
        "classes must be a grid (rows, columns), got the shape (4,)",
    ),
    (
        lambda: maps.show_classifier(np.zeros((2, 2)), (0, 1, 0, 1), count=2, sums=E, labels=[0]),
        "labels must hold one class for each of 7 sums, got the shape (1,)",
    ),
    (lambda: show_trajectory(MOVES, run=2), "run must be below 2, got 2"),
    (lambda: show_trajectory(MOVES, run=-3), "run must be at least -2, got -3"),
    (
        lambda: show_trajectory(MOVES, "speed"),
        "what must be one of 'positions', 'signals', 'loss', 'maps', got 'speed'",
    ),
    (
        lambda: show_trajectory(MOVES, "maps"),
        "what must name an observable of numbers or lists, got 'maps' of tables (4, 4)",
    ),
    (
        lambda: show_neurons(analysis.neuron_spectrum(RNG.normal(size=(2, 7, 3)))),
        "spectrum must hold one layer, with coefficients of shape (hidden, K), got the shape (2, 3, 3); give "
        "neuron_spectrum the weights of one run",
    ),
    (lambda: analysis.stats.cliffs_delta([1.0, np.nan], [0.0, 1.0]), "first" + NOT_FINITE),
    (lambda: analysis.stats.hedges_g([0.0, 1.0], [1.0, np.inf]), "second" + NOT_FINITE),
    (lambda: permutation_p_value([0.0, 1.0], [1.0, np.nan]), "second" + NOT_FINITE),
    (lambda: analysis.comparison.procrustes_disparity(E, [E]),
     "first must have 3 axes, got the shape (7, 2)"),
    (lambda: analysis.stats.cliffs_delta([[1, 2]], [[3, 4]]), "first must have 1 axis, got the shape (1, 2)"),
    (lambda: analysis.stats.cliffs_delta([1, 2], 3), "second must have 1 axis, got the shape ()"),
    (lambda: analysis.stats.hedges_g([1, 2], [[3, 4]]), "second must have 1 axis, got the shape (1, 2)"),
    (lambda: permutation_p_value([[1, 2]], [3, 4]), "first must have 1 axis, got the shape (1, 2)"),
    (lambda: analysis.mean([1, 2], level=95), "level" + NO_LEVEL + "95"),
    (lambda: analysis.mean([1, 2], level=1), "level" + NO_LEVEL + "1"),
    (lambda: analysis.proportion(3, 10, level=0), "level" + NO_LEVEL + "0"),
    (
        lambda: analysis.correlation(range(5), range(5), groups=[1, 2, 3]),
        "groups must hold one name for each of 5 values, got the shape (3,)",
    ),
    (lambda: analysis.compare(MOVES, MOVES, names=5), "names must be two different names, got 5"),
    (lambda: analysis.compare(MOVES, MOVES, names="ab"), "names must be two different names, got 'ab'"),
    (lambda: analysis.compare(MOVES, MOVES, names=(1, 2)), "names must be two different names, got (1, 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_names_the_argument_and_what_is_allowed(call, sentence):
    with pytest.raises(InputError) as refused:
        call()
    assert str(refused.value) == sentence


ALLOWED = [
    lambda: axis(cells=1000),
    lambda: axis(whole=True, cells=2),
    lambda: Refinement(seeds=1, most_seeds=1, levels=0),
    lambda: phase_diagram(
        axis(), analysis.Axis("y", 0, 1, 2), outcome, Refinement(seeds=2, most_seeds=2, most_runs=4)
    ),
    lambda: analysis.classify_phases([0.0], [0.0]),
    lambda: analysis.comparison.no_relabelling(1),
    lambda: analysis.comparison.affine_maps(1),
    lambda: analysis.comparison.symmetry_of(Operation(5, 9)),
    lambda: batch_signals(MOVES),
    lambda: show_trajectory(MOVES, run=-2),
    lambda: show_trajectory(MOVES, "loss", run=1),
    lambda: maps.plane(np.ones((1, 2)), resolution=2),
]  # fmt: skip


@pytest.mark.parametrize("call", ALLOWED, ids=range(len(ALLOWED)))
def test_the_last_value_before_a_refusal_is_taken(call):
    call()
