"""Ticks of logarithmic axes, with labels within a decade where there is room."""

from itertools import pairwise
from math import ceil, floor, inf, log, log10

DIGITS = ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
"""Digits of the ticks in each decade, from the most to the fewest."""
NARROW = 3.0
"""Ratio of the ends of an axis below which ticks are evenly spaced, because it looks nearly linear."""


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers as ticks of a logarithmic axis.

    Parameters
    ----------
    low, high : float
        Ends of the axis.
    most : int, default 6
        Neighboring ticks are at least this fraction of the axis apart: 1 / `most`.

    Returns
    -------
    list of float
        At least two ticks if 0 < low < high: round numbers between the ends or, if fewer than two of them
        fit, the ends with three digits. One tick if low ≥ high, and none if low is not positive.

    Examples
    --------
    >>> log_ticks(1.02, 1.31)
    [1.1, 1.2, 1.3]
    >>> log_ticks(1, 30)
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    if not 0 < low < high < inf:
        return [float(f"{low:.3g}")] if 0 < low < inf else []
    apart = log(high / low) / most
    for ticks in [*(_even(low, high) if high < NARROW * low else ()), *_decades(low, high)]:
        if len(ticks) > 1 and all(log(b / a) >= apart for a, b in pairwise(ticks)):
            return ticks
    return [float(f"{end:.3g}") for end in (low, high)]


def _even(low: float, high: float) -> list[list[float]]:
    """Return lists of evenly spaced ticks between two positive ends, from many ticks to few."""
    power = floor(log10(high - low))
    found = []
    for step in (digit * 10.0**more for more in (power - 1, power) for digit in (1, 2, 5)):
        numbers = range(ceil(low / step), floor(high / step) + 1)
        found.append([float(f"{number * step:.9g}") for number in numbers])
    return found


def _decades(low: float, high: float) -> list[list[float]]:
    """Return lists of ticks with the same digits in each decade, from many ticks to few."""
    first, last = floor(log10(low)), floor(log10(high))
    strides = [(digits, 1) for digits in DIGITS] + [((1.0,), stride) for stride in range(2, last - first + 1)]
    return [
        [
            tick
            for power in range(first - first % stride, last + 1, stride)
            for digit in digits
            if low <= (tick := float(f"{digit}e{power}")) <= high
        ]
        for digits, stride in strides
    ]
