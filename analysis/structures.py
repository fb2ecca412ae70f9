"""What final embeddings have become: circles, or grids with imperfections."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.statistics import Interval, mean, proportion
from physics.structure import grid_imperfections, is_circle


@dataclass(frozen=True, eq=False)
class Structures:
    """What the final embeddings of an ensemble have become.

    Attributes
    ----------
    circle : ndarray of bool, shape (runs,)
    imperfections : ndarray of int64, shape (runs,)
        Grid imperfections of every run, circles included.
    circles : Interval
        Fraction of circles, with Wilson's 95 % interval.
    grid_imperfections : Interval
        Mean over the runs that are no circles, with its 95 % interval.
    """

    circle: NDArray[np.bool_]
    imperfections: NDArray[np.int64]
    circles: Interval
    grid_imperfections: Interval


def structures(final: Any, *, modulus: int | None = None, group: Any = None) -> Structures:
    """Circles and imperfections of final embeddings (runs, tokens, dim); classes as `grid_imperfections`."""
    circle = is_circle(final)
    imperfections = grid_imperfections(final, modulus=modulus, group=group)
    return Structures(
        circle, imperfections, proportion(int(circle.sum()), len(circle)), mean(imperfections[~circle])
    )
