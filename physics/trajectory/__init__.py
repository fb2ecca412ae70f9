"""Trajectories: ensembles of point sets that move in time, in memory and in files, whatever moved them.

This package holds the class, the recording of frames so that they survive a kill, the file format, and the
provenance of runs. The systems that move points are in `physics.particles` and `nets`, and the analysis of
their motion is in `analysis`.
"""

from physics.trajectory.header import Path
from physics.trajectory.opening import load
from physics.trajectory.trajectory import Clock, Trajectory

__all__ = ["Clock", "Path", "Trajectory", "load"]
