"""Arrays in units of a power of two, so that their squares neither overflow nor vanish."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

SAFE = 250
"""Largest exponent, and smallest inverse, of numbers whose squares and products need no other unit."""


def scaled(array: NDArray[np.float64], axis: Any = None) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return an array in units in which squares of its largest magnitude over each `axis` are in range.

    The second result is the exponent of the unit, a power of two: ``ldexp(result, exponent)`` is the array.
    It keeps the axes, as 1. Nothing is rounded but what is 1e-308 times the largest or less. Numbers that
    are in range already keep their unit.
    """
    largest = np.abs(array).max(axis=axis, keepdims=True, initial=0.0)
    exponent = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    exponent[np.abs(exponent) <= SAFE] = 0
    return np.ldexp(array, -exponent) if exponent.any() else array, exponent
