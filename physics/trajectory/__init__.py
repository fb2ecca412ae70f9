"""Trajectories: ensembles of point sets that move in time, in memory and in files, however they were made.

What belongs here: the class, how frames are recorded and survive a kill, the file format, and where a run
comes from. What does not: what moves the points (`physics.particles`, `nets`), and what their motion says
(`analysis`).
"""

from physics.trajectory.header import Path
from physics.trajectory.opening import load
from physics.trajectory.trajectory import Clock, Trajectory

__all__ = ["Clock", "Path", "Trajectory", "load"]
