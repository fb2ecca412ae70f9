"""Curves of two measures of particles: the circle ratio, and the number of grid imperfections."""

from typing import Any

import numpy as np
from bokeh.models import BasicTicker

from grokphys.explorer.plots.plane import Curves
from grokphys.explorer.runs.particles import ParticleRun
from grokphys.explorer.runs.verdicts import CIRCLE

STARTS, MEASURES = ("first start", "second start"), ("circle_ratio", "imperfections")


class MeasureCurves:
    """Two figures against the step: the circle ratio and the grid imperfections of one or two runs.

    Attributes
    ----------
    ratio : Curves
        Largest distance of a particle from the origin over the smallest, which is below 1.2 for a circle.
    imperfections : Curves
        Number of pair sums whose nearest other pair sum is of another class.
    """

    def __init__(self) -> None:
        title = f"Circle ratio (circle below {CIRCLE})"
        self.ratio = Curves(title, ["ratio"], starts=STARTS, y_axis_type="log")
        self.ratio.mark(CIRCLE)
        self.imperfections = Curves("Grid imperfections", ["imperfections"], starts=STARTS)
        self.imperfections.figure.yaxis.ticker = BasicTicker(min_interval=1)

    def show(self, run: ParticleRun, second: ParticleRun | None) -> None:
        """Show the curves of a run, and dashed those of a second one, if there is one."""
        for kind, shown in (("show", run), ("show_beside", second)):
            steps: Any = np.empty(0)
            ratio, count = np.empty((2, 0))
            if shown is not None:
                steps, ratio, count = shown.history.steps, *map(shown.history.__getitem__, MEASURES)
            getattr(self.ratio, kind)(steps, ratio=ratio)
            getattr(self.imperfections, kind)(steps, imperfections=count.astype(float))

    def end_at(self, step: int, ratio: float, imperfections: int) -> None:
        """Move the dots of both curves of the first run to `step` and the given values, as during a drag."""
        self.ratio.end_at(step, ratio=ratio)
        self.imperfections.end_at(step, imperfections=float(imperfections))
