"""Nested lists of unequal lengths and samples of a wrong shape are refused in one sentence, at every door."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import analysis
import nets
import physics
from analysis.circles.prediction import decision_error, fitness
from analysis.comparison.timing import onsets
from analysis.plots.distributions import show_distributions
from analysis.plots.maps import show_classifier
from analysis.plots.signals import show_signals
from physics import InputError
from physics.neurons.logits import restricted_loss

RAGGED = [[0, 1], [1]]
TRAINED = nets.ConstantAttention(5)
CUBES = np.zeros((1, 2, 3, 1))


def trajectory(positions=CUBES, steps=(0, 1), **more):
    return physics.Trajectory(positions, steps, **more)


DOORS = [
    ("labels", lambda: physics.LinearNetwork(RAGGED)),
    ("pairs", lambda: physics.LinearNetwork([[1.0], [2.0]], pairs=RAGGED)),
    ("pairs", lambda: physics.EffectiveTheory(5, pairs=RAGGED)),
    ("masks", lambda: physics.Operation(3).masks(RAGGED)),
    ("orders", lambda: physics.critical_sizes(physics.Operation(3), orders=RAGGED)),
    ("table", lambda: physics.FiniteGroup(RAGGED)),
    ("frequencies", lambda: restricted_loss(np.zeros((5, 5, 5)), RAGGED)),
    ("examples", lambda: restricted_loss(np.zeros((5, 5, 5)), [1], examples=RAGGED)),
    ("positions", lambda: physics.PairForces(lambda r2: 1.0, 3, 1).forces(RAGGED)),
    ("positions", lambda: trajectory(RAGGED)),
    ("steps", lambda: trajectory(steps=RAGGED)),
    ("observables['loss']", lambda: trajectory(observables={"loss": RAGGED})),
    ("start['layer']", lambda: trajectory(start={"layer": RAGGED})),
    ("betas", lambda: nets.train(TRAINED, steps=1, betas=[0.9, [0.99, 0.9]])),
    ("learning_rate", lambda: nets.train(TRAINED, runs=2, steps=1, learning_rate=RAGGED)),
    ("validation_examples", lambda: TRAINED.task.given_split([0], RAGGED)),
    ("train_examples", lambda: nets.train(TRAINED, steps=1, train_examples=RAGGED)),
    ("first", lambda: analysis.circles.agreement(RAGGED, [True])),
    ("second", lambda: analysis.circles.agreement([True], RAGGED)),
    ("signals", lambda: analysis.survives(RAGGED)),
    ("labels", lambda: analysis.neuron_ablation(np.eye(2), np.eye(2), RAGGED)),
    ("groups", lambda: analysis.neuron_ablation(np.eye(2), np.eye(2), [0, 1], groups=RAGGED)),
    ("groups", lambda: fitness(np.eye(2), np.eye(2), np.eye(2) > 0, groups=RAGGED)),
    ("survived", lambda: fitness(np.eye(2), np.eye(2), RAGGED)),
    ("steps", lambda: decision_error(RAGGED, np.zeros((1, 2, 2)))),
    ("classes", lambda: show_classifier(RAGGED, (0, 1, 0, 1), count=3)),
    ("values", lambda: analysis.mean(RAGGED)),
    ("x", lambda: analysis.correlation(RAGGED, [1, 2])),
    ("y", lambda: analysis.correlation([1, 2], RAGGED)),
    ("first", lambda: analysis.stats.compare_values("quality", RAGGED, [1])),
    ("second", lambda: analysis.stats.compare_values("quality", [1], RAGGED)),
    ("predicted", lambda: analysis.stats.calibrate(RAGGED, [1, 2])),
    ("values", lambda: onsets(RAGGED, [0, 1], 0.5)),
    ("samples['a']", lambda: show_distributions({"a": RAGGED})),
    ("signals", lambda: show_signals([0, 1], RAGGED)),
]


@pytest.mark.parametrize(("name", "door"), DOORS, ids=range(len(DOORS)))
def test_rows_of_unequal_lengths_are_refused_by_name(name, door):
    with pytest.raises(InputError) as refused:
        door()
    plt.close("all")
    assert str(refused.value).startswith(f"{name} must "), str(refused.value)
    assert str(refused.value).endswith(("got list [[0, 1], [1]]", "got list [0.9, [0.99, 0.9]]"))


SHAPES = [
    ("values must have 1 axis, got the shape (2, 2)", lambda: analysis.mean(np.eye(2))),
    (
        "first must have 1 axis, got the shape ()",
        lambda: analysis.stats.compare_values("quality", 1.0, [1.0]),
    ),
    ("x and y must have the same length, got 2 and 1", lambda: analysis.correlation([1, 2], [1])),
    ("x must be an array of real numbers, got list ['a']", lambda: analysis.correlation(["a"], [1])),
    ("signals must have 2 axes, got the shape (2,)", lambda: show_signals([0, 1], [0, 1])),
    ("threshold must be a finite number, got nan", lambda: onsets([[0, 1]], [0, 1], np.nan)),
    (
        "betas must be two numbers of at least 0 and less than 1, got [nan, 0.9]",
        lambda: nets.train(TRAINED, steps=1, betas=[np.nan, 0.9]),
    ),
]


@pytest.mark.parametrize(("sentence", "door"), SHAPES, ids=range(len(SHAPES)))
def test_samples_of_another_shape_are_refused(sentence, door):
    with pytest.raises(InputError) as refused:
        door()
    plt.close("all")
    assert str(refused.value) == sentence


def test_the_digits_of_a_huge_number_are_counted():
    with pytest.raises(InputError, match="got a number of 40 digits$"):
        physics.Operation(10**40 - 10**20)
    with pytest.raises(InputError, match="got a negative number of 41 digits$"):
        physics.Operation(-(10**40))
