"""Equations that move embeddings: particles, effective theories, and the trajectories they leave."""

from physics.errors import FileFormatError, InputError, OutputError, SimulationError
from physics.simulate import simulate
from physics.structure import circle_ratio, grid_imperfections, is_circle
from physics.systems.particles import ParticleSystem, forces
from physics.trajectory import Trajectory, load

__all__ = [
    "FileFormatError",
    "InputError",
    "OutputError",
    "ParticleSystem",
    "SimulationError",
    "Trajectory",
    "circle_ratio",
    "forces",
    "grid_imperfections",
    "is_circle",
    "load",
    "simulate",
]
