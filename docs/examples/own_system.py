"""
Simulate a system of your own
=============================

In Thomson's problem electrons repel each other on a sphere. Four methods make it a system that the package
simulates, records, resumes and compares like the particles of the papers.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist

import physics


def coulomb(r2):
    """Divide the Coulomb force by the distance, as a function of the squared distance."""
    return r2**-1.5


@dataclass(frozen=True)
class Thomson:
    """Electrons on the unit sphere."""

    tokens: int
    dim: int = 3
    default_step_size = 0.02

    def start(self, generator):
        """Draw places on the sphere."""
        points = generator.standard_normal((self.tokens, self.dim))
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    def advance(self, positions, step_size, steps):
        """Move all runs in place."""
        repulsion = physics.PairForces(coulomb, self.tokens, self.dim)
        for _ in range(steps):
            positions += step_size * repulsion.forces(positions)
            positions /= np.linalg.norm(positions, axis=2, keepdims=True)

    def observables(self, positions):
        """Measure the energy of every run."""
        return {"energy": np.array([(1 / pdist(points)).sum() for points in positions])}


# %%
# Twelve electrons end at the corners of an icosahedron, whose energy is known.

run = physics.simulate(Thomson(12), runs=10, steps=600, record=10)
energy = run.observables["energy"]
print(f"Energies at the end: {energy[:, -1].min():.6f} to {energy[:, -1].max():.6f}; known minimum 49.165253")

# %%

plt.style.use("analysis.plots.grokphys")
figure = plt.figure(figsize=(7.2, 3.4))
left = figure.add_subplot(1, 2, 1)
left.plot(run.steps, energy.T - 49.165253058, linewidth=1)
left.set(xlabel="step", ylabel="energy above the minimum", yscale="log", ylim=(1e-7, None))
right = figure.add_subplot(1, 2, 2, projection="3d")
points = run.final[0]
gaps = np.linalg.norm(points[:, None] - points, axis=2)
for i, j in np.argwhere(np.triu(gaps < 1.2, 1)):
    right.plot(*points[[i, j]].T, color="#0b6e99", linewidth=1)
right.scatter(*points.T, s=60, color="#d1603d", depthshade=False)
right.set_box_aspect((1, 1, 1))
right.set_axis_off()
plt.show()
