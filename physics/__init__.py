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

import runpy

import lazy_loader

runpy.run_path(f"{__path__[0]}/../physics/siblings.py")

from physics import neurons, particles, theory, trajectory  # noqa: E402, F401 - so that `physics.theory` is there
from physics.simulate import simulate  # noqa: E402, F401 - now, because its module has the same name

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
