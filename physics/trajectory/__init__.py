"""Trajectories: ensembles of point sets that move in time, in memory and in files, whatever moved them.

This package holds the class `Trajectory`, the recording of frames so that they survive a crash, the file
format, and the provenance of runs: how they were made. The systems that move points are in `physics` and
`nets`, and the analysis of their motion is in `analysis`.
"""

from physics.trajectory.header import Clock, Path
from physics.trajectory.trajectory import Trajectory, load

__all__ = ["Clock", "Path", "Trajectory", "load"]
