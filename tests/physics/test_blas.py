"""The same bits for any number of threads of BLAS."""

import os

BITS = """
import hashlib
import numpy as np, physics

def line(name, *arrays):
    print(name, *(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16] for array in arrays))

rng = np.random.default_rng(0)
K = 150
A = rng.standard_normal((K, K)) / np.sqrt(K) - np.eye(K)
flow = physics.AffineFlow(A, rng.standard_normal((K, 3)))
line("flow", physics.simulate(flow, runs=2, steps=20, record=7).positions)
line("closed flow", flow.solve(rng.standard_normal((K, 3)), [0.3, 2.0]))

full = physics.EffectiveTheory(120, dim=20)
samples = full.operation.samples
theory = physics.EffectiveTheory(120, dim=20, pairs=samples[rng.permutation(len(samples))[:2000]])
line("theory", physics.simulate(theory, steps=40, step_size=2.0, record=11).positions)
line("spectrum", theory.spectrum, theory.ground_states, theory.hessian())
masks = physics.random_training_sets(full, size=3000, sets=3)
line("rates", physics.grokking_rates(full, masks))

network = physics.LinearNetwork(rng.standard_normal((200, 90)), inputs=80)
learnt = physics.simulate(network, steps=3, step_size=1e-3)
line("network", learnt.positions, learnt.observables["loss"], learnt.observables["internal_energy"])
A, b, x = network.unpack(learnt.final[0])
line("velocity", network.velocity(learnt.final))

E = rng.standard_normal((6, 96, 96))
group = physics.Operation(group=physics.symmetric(3))
print("quality", [physics.representation_quality(E, group, delta) for delta in (1.0, 1e2, 1.8e4)])
"""


def test_bits_do_not_depend_on_the_threads_of_blas(python):
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
    one, two = (
        python(BITS, env={**os.environ, **dict.fromkeys(names, str(threads))}).stdout.splitlines()
        for threads in (1, 2)
    )
    assert len(one) == 8
    assert one == two
