"""What is no valid input is refused in one sentence that names the argument."""

import numpy as np
import pytest

import physics
from physics import (
    AffineFlow,
    EffectiveTheory,
    InputError,
    LinearNetwork,
    Operation,
    PairForces,
    ParticleSystem,
    Trajectory,
)
from physics.neurons import excluded_loss, logit_spectrum, neuron_spectrum, restrict_logits

FLOW, THEORY, NETWORK = (
    AffineFlow([[-1.0]], [0.0]),
    EffectiveTheory(5),
    LinearNetwork([[1.0], [2.0]], inputs=1),
)
LOTTERY, SETS = physics.FourierLottery(5), physics.random_training_sets(Operation(5), 6, sets=2)
LOGITS, E = np.zeros((5, 5, 5)), np.arange(5.0)[:, None]
MASKED = np.ma.masked_array(np.ones((5, 2)), mask=[[True, False]] * 5)
S_3 = physics.symmetric(3)
FRAMES, MEASURED = np.zeros((1, 3, 4, 2)), {"a": np.zeros((1, 3)), "b": np.zeros((1, 2))}
MOVES = Trajectory(FRAMES, [0, 1, 2], observables=MEASURED, clocks={"b": ([0, 5], None)})


def alone(r2):
    return r2


REFUSED = [
    (lambda: physics.simulate(steps=0), "steps"),
    (lambda: physics.simulate(step_size=np.nan), "step_size"),
    (lambda: physics.simulate(runs=0), "runs"),
    (lambda: physics.simulate(record=0), "record"),
    (lambda: physics.simulate(seed=-1), "seed"),
    (lambda: physics.simulate(first_run=-1), "first_run"),
    (lambda: physics.simulate(initial=np.zeros((16, 2))), "initial"),
    (lambda: physics.simulate(observables=["colour"]), "observables"),
    (lambda: physics.simulate(callback=3), "callback"),
    (lambda: physics.simulate(progress="yes"), "progress"),
    (lambda: physics.simulate(ParticleSystem), "the class ParticleSystem"),
    (lambda: physics.simulate(type("Mine", (), {"tokens": 2, "dim": 1, "start": 0})()), "lacks advance"),
    (lambda: physics.simulate(type("Mine", (physics.System,), {"tokens": 2})()), "lacks dim, advance, start"),
    (lambda: physics.simulate(runs=10**12), "GiB"),
    (lambda: ParticleSystem(2), "tokens"),
    (lambda: ParticleSystem(5, 0), "dim"),
    (lambda: ParticleSystem(5, softening=-1.0), "softening"),
    (lambda: ParticleSystem(5, alignment=np.inf), "alignment"),
    (lambda: ParticleSystem(5, normalise="no"), "normalise"),
    (lambda: ParticleSystem(5, integrator="rk4"), "integrator"),
    (lambda: ParticleSystem(5, relative_tolerance=1.0), "relative_tolerance"),
    (lambda: ParticleSystem(5, pairs=[(0, 1)]), "pairs"),
    (lambda: ParticleSystem(5, modulus=1), "modulus"),
    (lambda: ParticleSystem(group=S_3), "group"),
    (lambda: ParticleSystem(group=[[0, 1], [1]]), "table"),
    (lambda: ParticleSystem(5).forces(np.zeros((4, 2))), "positions"),
    (lambda: physics.forces(np.full((5, 2), 1e200), ParticleSystem(5)), "positions"),
    (lambda: physics.forces(np.zeros((5, 2)), FLOW), "system"),
    (lambda: physics.forces(np.zeros((5, 2)), ParticleSystem(5), method="slow"), "method"),
    (lambda: physics.forces(np.zeros((5, 3)), ParticleSystem(5, 3), method="fast"), "dim"),
    (lambda: physics.forces(np.zeros((5, 2)), ParticleSystem(5), tolerance=0), "tolerance"),
    (lambda: PairForces(3, 4, 2), "function"),
    (lambda: PairForces(alone, 1, 2), "tokens"),
    (lambda: PairForces(alone, 4, 2, on="lines"), "on"),
    (lambda: PairForces(alone, 4, 2, modulus=3), "modulus"),
    (lambda: PairForces(alone, 4, 2).forces(np.zeros((2, 3, 2))), "positions"),
    (lambda: physics.is_circle([[1, 2], [3]]), "E"),
    (lambda: physics.is_circle(MASKED), "masked"),
    (lambda: physics.is_circle(np.zeros((5, 2)), threshold=1), "threshold"),
    (lambda: physics.circle_ratio(np.zeros((2, 2))), "E"),
    (lambda: physics.grid_imperfections(np.zeros((5, 2)), modulus=5, group=physics.cyclic(5)), "modulus"),
    (lambda: AffineFlow([[1.0, 2.0]], [1.0]), "A"),
    (lambda: AffineFlow([[1.0]], [1.0, 2.0]), "b"),
    (lambda: FLOW.solve([1.0, 2.0], [0.0]), "initial"),
    (lambda: LinearNetwork([1.0]), "labels"),
    (lambda: LinearNetwork([[1.0]], network_rate=-1), "network_rate"),
    (lambda: LinearNetwork([[1.0]], pairs=[(0, -1)]), "pairs"),
    (lambda: NETWORK.pack([[1.0]], [1.0], [[1.0]]), "x"),
    (lambda: NETWORK.loss(np.zeros((2, 2))), "state"),
    (lambda: EffectiveTheory(1), "tokens"),
    (lambda: EffectiveTheory(5, modulus=5, group=physics.cyclic(5)), "modulus and group"),
    (lambda: EffectiveTheory(6, group=S_3).loss(np.ones((6, 1))), "group must commute"),
    (lambda: EffectiveTheory(5, pairs=[(0, 0)]).loss(E), "pairs"),
    (lambda: THEORY.loss(np.zeros((5, 1))), "E"),
    (lambda: THEORY.solve(E, [-1.0]), "times"),
    (lambda: THEORY.hessian(norm=0), "norm"),
    (lambda: THEORY.grokking_steps(0), "step_size"),
    (lambda: Operation(10**7), "GiB"),
    (lambda: physics.closures("Z_5", SETS), "theory"),
    (lambda: physics.closures(THEORY, SETS.astype(int)), "masks"),
    (lambda: physics.critical_sizes(THEORY, orders=[[0] * 15]), "orders"),
    (lambda: physics.critical_sizes(THEORY, sets=0), "sets"),
    (lambda: physics.random_training_sets(THEORY, 16), "size"),
    (lambda: physics.grokking_rates(Operation(group=S_3), np.ones((1, 36), bool)), "theory"),
    (lambda: physics.representation_quality(E, THEORY, delta=0), "delta"),
    (lambda: physics.representation_quality(E[:4], THEORY), "E"),
    (lambda: physics.FiniteGroup([[0, 1], [1, 1]]), "table"),
    (lambda: physics.cyclic(2001), "order"),
    (lambda: physics.theory.dihedral(0), "sides"),
    (lambda: physics.theory.direct_product(physics.cyclic(67), physics.cyclic(30)), "groups"),
    (lambda: physics.FourierLottery(2), "tokens"),
    (lambda: physics.FourierLottery(5, coupling=0), "coupling"),
    (lambda: LOTTERY.velocity([1.0], [1.0]), "theta and xi"),
    (lambda: LOTTERY.blowup_times([1e-200, 1.0], [1.0, 1.0]), "theta"),
    (lambda: LOTTERY.solve([1.0, 1.0], [1.0, 1.0], 1e9), "times"),
    (lambda: physics.FourierLottery(4).velocity([1.0, 1j], [1.0, 1.0]), "real"),
    (lambda: logit_spectrum(np.zeros((5, 5, 4))), "logits"),
    (lambda: restrict_logits(LOGITS, [3]), "frequencies"),
    (lambda: excluded_loss(LOGITS, [1], examples=[(0, 5)]), "examples"),
    (lambda: neuron_spectrum(np.zeros((2, 4))), "W_in"),
    (lambda: neuron_spectrum(np.zeros((5, 4)), np.zeros((5, 4))), "W_out"),
    (lambda: neuron_spectrum(np.zeros((5, 4)), share=0), "share"),
    (lambda: physics.example("nobody"), "name"),
    (lambda: Trajectory(np.zeros((2, 3, 4)), [0, 1, 2]), "positions"),
    (lambda: Trajectory(np.zeros((1, 3, 4, 2), int), [0, 1, 2]), "positions"),
    (lambda: Trajectory(FRAMES, [0, 1]), "steps"),
    (lambda: Trajectory(FRAMES, [0.0, 1.0, 2.0]), "steps"),
    (lambda: Trajectory(FRAMES, [0, 2, 2]), "steps"),
    (lambda: Trajectory(FRAMES, [0, 1, 2], [0, 1]), "times"),
    (lambda: Trajectory(FRAMES, [0, 1, 2], observables={"a": np.zeros((2, 4))}), "observables['a']"),
    (lambda: MOVES.frame(3), "frame"),
    (lambda: MOVES.run(-2), "run"),
    (lambda: MOVES.to_dataframe("size"), "observables"),
    (lambda: MOVES.to_dataframe(["a"]), "observables"),
    (lambda: MOVES.to_dataframe("a", "b"), "observables"),
]


@pytest.mark.parametrize(("call", "word"), REFUSED)
def test_a_refusal_is_one_sentence_that_names_what_is_wrong(call, word):
    with pytest.raises(InputError) as error:
        call()
    sentence = str(error.value)
    assert word in sentence
    assert len(sentence) < 300
    assert "\n" not in sentence
