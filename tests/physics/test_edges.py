"""Bounds of the arguments of `physics`: the last value that is taken, and the sentence on the next one."""

import numpy as np
import pytest
from edges import taken_and_refused

import analysis
import physics
from physics import Trajectory
from physics.particles.adaptive import checked_tolerance
from physics.seeds import numbers_of_runs, run_seeds

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 2))
W = RNG.normal(size=(7, 3))
FIVE = physics.ParticleSystem(5)
SMOOTH = physics.ParticleSystem(60)
FLOW = physics.AffineFlow(np.zeros((2, 2)), np.ones(2))
WAVES = analysis.logit_spectrum(RNG.normal(size=(5, 5, 5)))
FRAMES = Trajectory(np.zeros((2, 3, 5, 2)) + np.arange(3)[:, None, None], [0, 5, 10])


def simulate(system=FLOW, **options):
    return physics.simulate(system, **({"steps": 1} | options))


def attract(distance):
    return -distance


def pull(**options):
    return physics.PairForces(attract, **({"tokens": 2, "dim": 1} | options))


POSITIVE = "must be a finite number greater than 0, got 0"
FRACTION = "must be a finite number greater than 0 and at most 1, got "
BOUNDS = [
    # what is taken, what is not, and why
    (lambda n: simulate(steps=n), 1, 0, "steps must be at least 1, got 0"),
    (lambda n: simulate(runs=n), 1, 0, "runs must be at least 1, got 0"),
    (lambda n: simulate(record_every=n), 1, 0, "record_every must be at least 1, got 0"),
    (lambda n: simulate(first_run=n), 0, -1, "first_run must be at least 0, got -1"),
    (lambda h: simulate(step_size=h), 1e-9, 0, f"step_size {POSITIVE}"),
    (lambda n: run_seeds(0, 1, n), 0, -1, "first_run must be at least 0, got -1"),
    (lambda n: numbers_of_runs(1, 0, [n]), 0, -1, "run_numbers must be at least 0, got -1"),
    (lambda n: numbers_of_runs(1, n, None), 0, -1, "first_run must be at least 0, got -1"),
    (lambda n: numbers_of_runs(1, n, [4]), 0, 1, "first_run must be 0 if run_numbers are given, got 1"),
    (
        lambda n: numbers_of_runs(n, 0, [4, 4]), 2, 3,
        "run_numbers must hold one number for each of 3 runs, got 2",
   ),
    (lambda n: physics.ParticleSystem(n), 3, 2, "tokens must be at least 3, got 2"),
    (lambda n: physics.ParticleSystem(5, n), 1, 0, "dim must be at least 1, got 0"),
    (
        lambda n: physics.ParticleSystem(group=physics.cyclic(n)), 3, 2,
        "the order of the group must be at least 3, got 2",
    ),
    (
        lambda x: physics.ParticleSystem(5, softening=x), 0, -0.1,
        "softening must be a finite number of at least 0, got -0.1",
    ),
    (
        checked_tolerance, 1e-12, 9e-13,
        "relative_tolerance must be a finite number from 1e-12 to 0.1, got 9e-13",
    ),
    (
        checked_tolerance, 0.1, 0.1000000001,
        "relative_tolerance must be a finite number from 1e-12 to 0.1, got 0.1000000001",
    ),
    (lambda x: physics.forces(X, FIVE, tolerance=x), 1e-300, 0, f"tolerance {POSITIVE}"),
    (
        lambda x: physics.forces(x * np.ones((5, 2)), FIVE), 1e150, 1.1e150,
        "positions must be at most 1e+150 in size, got 1.1e+150",
    ),
    (
        lambda x: physics.forces(RNG.normal(size=(60, 2)), SMOOTH, method="fast", tolerance=x), 1e-10, 9e-11,
        "tolerance of method 'fast' must be a finite number of at least 1e-10, got 9e-11",
    ),
    (
        lambda x: physics.is_circle(X, threshold=x), 1.0001, 1,
        "threshold must be a finite number greater than 1, got 1",
    ),
    (lambda n: pull(tokens=n), 2, 1, "tokens must be at least 2, got 1"),
    (lambda n: pull(dim=n), 1, 0, "dim must be at least 1, got 0"),
    (
        lambda x: pull(parameters=x), (), [[1.0]],
        "parameters must be a sequence of numbers, got the shape (1, 1)",
    ),
    (
        lambda x: pull(modulus=x), None, 2,
        "on must be 'pair sums' if modulus is given, as tokens have no classes, got 'tokens'",
    ),
    (lambda n: FRAMES.run(0, every=n), 1, 0, "every must be at least 1, got 0"),
    (lambda n: FRAMES.run(n), 1, 2, "run must be below 2, got 2"),
    (lambda n: FRAMES.run(n), -2, -3, "run must be at least -2, got -3"),
    (lambda n: FRAMES.frame(n), 2, 3, "frame must be below 3, got 3"),
    (lambda n: FRAMES.frame(n), -3, -4, "frame must be at least -3, got -4"),
    (lambda n: physics.FourierLottery(n, 1), 3, 2, "tokens must be at least 3, got 2"),
    (lambda n: physics.FourierLottery(5, n), 1, 0, "neurons must be at least 1, got 0"),
    (lambda x: physics.FourierLottery(5, 1, scale=x), 1e-9, 0, f"scale {POSITIVE}"),
    (lambda x: physics.FourierLottery(5, 1, coupling=x), 1e-9, 0, f"coupling {POSITIVE}"),
    (lambda x: WAVES.key_frequencies(x), 1, 1.0000001, f"share {FRACTION}1.0000001"),
    (lambda x: WAVES.key_frequencies(x), 1e-9, 0, f"share {FRACTION}0"),
    (lambda x: analysis.neuron_spectrum(W, share=x), 1, 1.01, f"share {FRACTION}1.01"),
    (lambda x: analysis.neuron_spectrum(W, share=x), 1e-9, 0, f"share {FRACTION}0"),
    (
        lambda x: analysis.neuron_spectrum(W, dead_below=x), 0, -1,
        "dead_below must be a finite number of at least 0, got -1",
    ),
    (lambda n: physics.LinearNetwork(np.eye(3), inputs=n), 1, 0, "inputs must be at least 1, got 0"),
    *(
        (
            lambda x, name=name: physics.LinearNetwork(np.eye(3), inputs=1, **{name: x}), 0, -0.1,
            f"{name} must be a finite number of at least 0, got -0.1",
        )
        for name in ("network_rate", "input_rate", "decay")
    ),
    (lambda n: physics.Operation(n), 2, 1, "tokens must be at least 2, got 1"),
    (lambda n: physics.Operation(5, n), 2, 1, "modulus must be at least 2, got 1"),
    (
        lambda n: physics.Operation(group=physics.cyclic(n)), 2, 1,
        "group must have at least 2 elements, got 1",
    ),
    (
        lambda n: physics.Operation(n, group=physics.cyclic(3)), 3, 4,
        "tokens must be 3, the order of the group, got 4",
    ),
    (lambda n: physics.cyclic(n), 1, 0, "order must be at least 1, got 0"),
    (lambda n: physics.symmetric(n), 1, 0, "degree must be at least 1, got 0"),
    (lambda n: physics.alternating(n), 1, 0, "degree must be at least 1, got 0"),
    (lambda n: physics.dihedral(n), 1, 0, "sides must be at least 1, got 0"),
    (lambda n: physics.EffectiveTheory(5, n), 1, 0, "dim must be at least 1, got 0"),
    (lambda x: physics.EffectiveTheory(5).hessian(x), 1e-9, 0, f"norm {POSITIVE}"),
    (lambda x: physics.EffectiveTheory(5).grokking_steps(x), 1e-9, 0, f"step_size {POSITIVE}"),
    (
        lambda n: physics.random_training_sets(physics.Operation(3), size=n), 1, 0,
        "size must be at least 1, got 0",
    ),
    (
        lambda n: physics.random_training_sets(physics.Operation(3), size=n), 6, 7,
        "size must be at most 6, the number of samples, got 7",
    ),
    (
        lambda n: physics.random_training_sets(physics.Operation(3), size=1, sets=n), 1, 0,
        "sets must be at least 1, got 0",
    ),
    (lambda x: physics.representation_quality(X, physics.Operation(5), x), 1e-9, 0, f"delta {POSITIVE}"),
    (
        lambda x: physics.AffineFlow(np.eye(2), x), [1, 1], [1],
        "b must have the shape (2,) or (2, dim), got (1,)",
    ),
    (
        lambda x: physics.AffineFlow(x, [1]), [[1]], [[1, 1]],
        "A must have the shape (K, K) with K of at least 1, got (1, 2)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "taken", "refused", "sentence"), BOUNDS, ids=range(len(BOUNDS)))
def test_the_last_value_is_taken_and_the_next_one_refused(call, taken, refused, sentence):
    taken_and_refused(call, taken, refused, sentence)
