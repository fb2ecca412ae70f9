"""Counters of Figures 6, 9, 10 and 16 of Ding et al.: random survivors, a jump, laws of no signal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.papers.counters.builders import drawn


def _jump(rows: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the largest number of circles up to a decay drawn at random, and the smallest above it."""
    decay, circles = rows["weight_decay"], rows["circles"]
    return np.where(decay <= rng.choice(np.unique(decay)[:-1]), circles.max(), circles.min())


DRIFT = drawn(
    "laws of constant drift, which have an R² of 0 and follow no circle", "fits", r2=0, missed=1, followed=0
)
COMPETING = drawn("coefficients that are all negative", "fits", collaborate=0)
SURVIVORS_AT_RANDOM = drawn(
    "survivors drawn at random from the 29 circles, as many as survive",
    "runs",
    larger=lambda rows, rng: 29 * rng.random(len(rows["circles"])) < rows["circles"],
)
ONE_JUMP = drawn(
    "a single jump from the largest to the smallest number of circles, at a weight decay drawn at random",
    "networks",
    circles=_jump,
)
NONE_REVIVED = drawn(
    "no other frequency that survives", "runs", revived=lambda rows, _: rows["revived"] & False
)
