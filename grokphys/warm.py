"""`grokphys warm`: compiles all kernels, so that no later command has to wait for it."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grokphys.progress import progress


def warm() -> int:
    """Compile all kernels now, for container images and the nodes of a cluster.

    Kernels are compiled once for each processor and version, when they are first used. They are kept in the
    cache of Numba: next to the source files, or in the directory that NUMBA_CACHE_DIR names. This command
    runs the smallest simulations, trainings and analyses that use them all. It takes about two minutes with
    an empty cache, and seconds with a full one.

    Example: grokphys warm
    """
    began = time.perf_counter()
    for work in progress(WORK, "kernels", "part"):
        work()
    print(f"all kernels are compiled ({time.perf_counter() - began:.0f} s)")
    return 0


def _particles() -> None:
    import physics

    rng = np.random.default_rng(0)
    for tokens, dim in ((17, 2), (60, 2), (17, 1), (60, 3), (17, 5), (60, 5)):
        system = physics.ParticleSystem(tokens, dim)
        for softening in (system.softening, 0.0):
            physics.simulate(replace(system, softening=softening), runs=4, steps=2)
        physics.forces(rng.standard_normal((tokens, dim)), system)
        physics.simulate(replace(system, integrator="adaptive"), steps=1, step_size=0.01)
    some = physics.ParticleSystem(17, pairs=[(0, 1), (2, 3), (1, 4)])
    physics.simulate(some, runs=2, steps=2, observables=("circle_ratio", "grid_imperfections"))
    many = physics.ParticleSystem(400)
    for x in rng.standard_normal((2, 1, 400, 2)):
        many.forces(x, tolerance=1e-4)
        many.forces(x, method="direct")
        many.potential(x)


def _theory() -> None:
    import physics

    rng = np.random.default_rng(0)
    for dim in (1, 2):
        theory = physics.EffectiveTheory(10, dim, pairs=[(0, 3), (1, 2), (0, 2), (1, 1), (2, 4), (3, 3)])
        physics.simulate(theory, runs=2, steps=5)
        physics.simulate(physics.EffectiveTheory(10, dim), steps=5)
    for theory in (physics.EffectiveTheory(10), physics.EffectiveTheory(group=physics.symmetric(3))):
        for chosen in (physics.random_training_sets(theory, size, sets=3) for size in (5, 12)):
            physics.closures(theory, chosen)
        physics.critical_sizes(theory, sets=2)
    theory = physics.EffectiveTheory(10)
    physics.representation_quality(rng.standard_normal((3, 10, 1)), theory, 0.1)


def _neurons() -> None:
    import physics

    lottery = physics.FourierLottery(23, 4)
    physics.simulate(lottery, steps=1, step_size=1e-3)


def _networks() -> None:
    import nets

    models = (
        nets.ConstantAttention(),
        nets.EmbeddingMLP(11, 8, (16,)),
        nets.ToyAddition(),
        nets.GroupDecoder(),
        nets.TwoLayer(11, 16),
    )
    for model in models:
        for dtype in ("float32", "float64"):
            nets.train(model, steps=2, record=1, dtype=dtype, engine="fused")


def _laws() -> None:
    import analysis

    rng = np.random.default_rng(0)
    analysis.laws.batch_lasso([(rng.standard_normal((20, 3)), rng.standard_normal((20, 3)))], alpha=0.1)


WORK: tuple[Callable[[], None], ...] = (_particles, _theory, _neurons, _networks, _laws)
