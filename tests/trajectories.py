"""Small trajectories, blocks of frames, and a system of one's own, that tests of files and runs share."""

import numpy as np
import xarray

from physics import Trajectory
from physics.trajectory.header import Layout

LAYOUT = Layout(1, 3, 1, "float64")


def circles(steps, values, survived):
    """Signals (run, step, frequency) or (step, frequency) and survivors, as from `analysis.circles_of`."""
    axes = ("run", "step", "frequency")[3 - np.ndim(values) :]
    data = {"signals": (axes, values), "survived": ([axis for axis in axes if axis != "step"], survived)}
    return xarray.Dataset(data, {"step": steps, "frequency": 1 + np.arange(np.shape(values)[-1])})


def made(**changes):
    arguments = {
        "positions": np.arange(72.0).reshape(3, 4, 3, 2),
        "steps": [0, 2, 5, 6],
        "times": np.array([0.0, 0.2, 0.5, 0.6]),
        "observables": {
            "loss": np.arange(12.0).reshape(3, 4),
            "own": np.arange(6).reshape(3, 2),
            "alive": np.arange(12).reshape(3, 4) % 3 == 0,
        },
        "clocks": {"own": ([1, 4], np.array([0.1, 0.4]))},
        "parameters": {"first_run": 2},
        "start": {"split": np.arange(6).reshape(3, 2) > 2},
    }
    return Trajectory(**(arguments | changes))


def frames(first, count, runs=1):
    """Columns of a block of frames without observables."""
    steps = np.arange(first, first + count, dtype="<i8")
    return steps, steps / 4, np.arange(3.0 * runs * count).reshape(count, runs, 3, 1)


class Still:
    """A system that does not move."""

    tokens, dim, default_step_size = 4, 2, 0.1

    def start(self, generator):
        return generator.standard_normal((4, 2))

    def advance(self, positions, step_size, steps):
        return positions


def interrupt(step, *_):
    if step == 3:
        raise KeyboardInterrupt
