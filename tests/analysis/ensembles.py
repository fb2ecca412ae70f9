"""Small ensembles that tests compare."""

import numpy as np

from physics import Trajectory


def ring(p, frequency, radius=1.0):
    angle = 2 * np.pi * frequency * np.arange(p) / p
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def ensemble(final, initial=None):
    final = np.asarray(final, float)
    start = np.random.default_rng(5).standard_normal(final.shape) if initial is None else initial
    return Trajectory(np.stack([start, final], axis=1), [0, 1])


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def guise(trajectory, *, stretch=1.0, u=3, s=2, seed=0, frames=None):
    """The same motion with other labels, axes and clock."""
    turn = np.linalg.qr(noise(2, 2, seed=seed))[0]
    p = trajectory.tokens
    moved = 2.0 * trajectory.positions[:, :frames, (u * np.arange(p) + s) % p] @ turn
    return Trajectory(moved, trajectory.steps[:frames], trajectory.times[:frames] * stretch)
