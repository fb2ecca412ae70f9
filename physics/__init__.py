"""Equations that move embeddings: particles, effective theories, and the trajectories that they produce.

`simulate` moves a system, such as `ParticleSystem` or `EffectiveTheory`, and returns a `Trajectory`. Other
functions test whether points have formed circles or grids, compute what a training set implies, or make the
finite groups whose products a network learns. Terms of the field are explained in ``docs/glossary.md``.

Examples
--------
>>> import physics
>>> trajectory = physics.simulate(steps=10, runs=3)
>>> trajectory.positions.shape  # runs, frames, tokens, dimensions
(3, 11, 17, 2)
>>> physics.grid_imperfections(trajectory.final).shape
(3,)
"""

from typing import TYPE_CHECKING

from physics.errors import FileFormatError, InputError, OutputError, SimulationError
from physics.lazy import lazy
from physics.simulate import simulate

if TYPE_CHECKING:
    from physics.examples import example
    from physics.flows import AffineFlow
    from physics.neurons.lottery import FourierLottery
    from physics.pair_forces import PairForces
    from physics.particles.forces import forces
    from physics.particles.structures import circle_ratio, grid_imperfections, is_circle
    from physics.particles.system import ParticleSystem
    from physics.system import System
    from physics.theory.closure import Closures, closures, critical_sizes
    from physics.theory.groups import (
        FiniteGroup,
        alternating,
        cyclic,
        dihedral,
        direct_product,
        from_permutations,
        quaternion,
        symmetric,
    )
    from physics.theory.linear_network import LinearNetwork
    from physics.theory.operations import Operation, random_training_sets
    from physics.theory.quality import (
        augmented_training_set,
        ideal_accuracy,
        ideal_quality,
        predicted_accuracy,
        representation_quality,
    )
    from physics.theory.rates import grokking_rates
    from physics.theory.system import EffectiveTheory
    from physics.trajectory import Trajectory, load

__all__ = [
    "AffineFlow",
    "Closures",
    "EffectiveTheory",
    "FileFormatError",
    "FiniteGroup",
    "FourierLottery",
    "InputError",
    "LinearNetwork",
    "Operation",
    "OutputError",
    "PairForces",
    "ParticleSystem",
    "SimulationError",
    "System",
    "Trajectory",
    "alternating",
    "augmented_training_set",
    "circle_ratio",
    "closures",
    "critical_sizes",
    "cyclic",
    "dihedral",
    "direct_product",
    "example",
    "forces",
    "from_permutations",
    "grid_imperfections",
    "grokking_rates",
    "ideal_accuracy",
    "ideal_quality",
    "is_circle",
    "load",
    "predicted_accuracy",
    "quaternion",
    "random_training_sets",
    "representation_quality",
    "simulate",
    "symmetric",
]

HOMES = {
    "AffineFlow": "physics.flows",
    "Closures": "physics.theory.closure",
    "EffectiveTheory": "physics.theory.system",
    "FiniteGroup": "physics.theory.groups",
    "FourierLottery": "physics.neurons.lottery",
    "LinearNetwork": "physics.theory.linear_network",
    "Operation": "physics.theory.operations",
    "PairForces": "physics.pair_forces",
    "ParticleSystem": "physics.particles.system",
    "System": "physics.system",
    "Trajectory": "physics.trajectory",
    "alternating": "physics.theory.groups",
    "augmented_training_set": "physics.theory.quality",
    "circle_ratio": "physics.particles.structures",
    "closures": "physics.theory.closure",
    "critical_sizes": "physics.theory.closure",
    "cyclic": "physics.theory.groups",
    "dihedral": "physics.theory.groups",
    "direct_product": "physics.theory.groups",
    "example": "physics.examples",
    "forces": "physics.particles.forces",
    "from_permutations": "physics.theory.groups",
    "grid_imperfections": "physics.particles.structures",
    "grokking_rates": "physics.theory.rates",
    "ideal_accuracy": "physics.theory.quality",
    "ideal_quality": "physics.theory.quality",
    "is_circle": "physics.particles.structures",
    "load": "physics.trajectory",
    "predicted_accuracy": "physics.theory.quality",
    "quaternion": "physics.theory.groups",
    "random_training_sets": "physics.theory.operations",
    "representation_quality": "physics.theory.quality",
    "symmetric": "physics.theory.groups",
}
"""Module of each name that is imported on first use: `import physics` loads no Numba, SciPy or h5py."""

__getattr__, __dir__ = lazy(__name__, HOMES)
