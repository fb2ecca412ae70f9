"""The same bits for any number of threads of BLAS, and of none but ours while it computes."""

import os
import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from physics.blas import one_blas_thread

BITS = """
import hashlib
import numpy as np, physics

def line(name, *arrays):
    print(name, *(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16] for array in arrays))

rng = np.random.default_rng(0)
K = 150
A = rng.standard_normal((K, K)) / np.sqrt(K) - np.eye(K)
flow = physics.AffineFlow(A, rng.standard_normal((K, 3)))
line("flow", physics.simulate(flow, runs=2, steps=20, record_every=7).positions)
line("closed flow", flow.solve(rng.standard_normal((K, 3)), [0.3, 2.0]))

full = physics.EffectiveTheory(120, dim=20)
samples = full.operation.samples
theory = physics.EffectiveTheory(120, dim=20, pairs=samples[rng.permutation(len(samples))[:2000]])
line("theory", physics.simulate(theory, steps=40, step_size=2.0, record_every=11).positions)
line("spectrum", theory.spectrum, theory.ground_states, theory.hessian())
masks = physics.random_training_sets(full, size=3000, sets=3)
line("rates", physics.grokking_rates(full, masks))

network = physics.LinearNetwork(rng.standard_normal((200, 90)), inputs=80)
learnt = physics.simulate(network, steps=3, step_size=1e-3)
line("network", learnt.positions, learnt.observables["loss"], learnt.observables["internal_energy"])
A, b, x = network.unpack(learnt.final[0])
line("velocity", network.velocity(learnt.final))
few = physics.LinearNetwork(rng.standard_normal((4, 200)), inputs=70)
adiabatic = few.adiabatic(*few.unpack(few.start(rng))[:2])
line("adiabatic", adiabatic.A, adiabatic.b)

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
    assert len(one) == 9
    assert one == two


@pytest.fixture(autouse=True)
def two_threads():
    """Give BLAS two threads; conftest.py gives it one."""
    blas_threads()  # loads what there is
    set_blas_threads(2)
    yield
    set_blas_threads(1)


def set_blas_threads(number):
    """Set them in a thread of its own: threadpoolctl lets only the first one that is alive change them."""

    def change():
        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            library.set_num_threads(number)

    thread = threading.Thread(target=change)
    thread.start()
    thread.join()


def blas_threads():
    with one_blas_thread:  # loads what there is
        pass
    return {
        library["filepath"]: library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }


def test_blas_has_one_thread_inside_and_its_own_number_after():
    before = blas_threads()
    assert set(before.values()) <= {2}
    with one_blas_thread, one_blas_thread:
        assert set(blas_threads().values()) <= {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError), one_blas_thread:
        _ = 1 / 0
    assert blas_threads() == before
