"""Compiled activations with their derivatives, and the functions that they need; all work in place."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.jit import kernel

Array = NDArray[Any]

F = np.float32
LOG2E, LN2_HIGH, LN2_LOW = F(1.44269504088896341), F(0.693359375), F(-2.12194440e-4)
EXPONENTIAL = (F(5.0e-1), F(1.6666665459e-1), F(4.1665795894e-2), F(8.3334519073e-3), F(1.3981999507e-3))
LAST_EXPONENTIAL = F(1.9875691500e-4)
TANGENT = (F(-3.33332819422e-1), F(1.33314422036e-1), F(-5.37397155531e-2), F(2.06390887954e-2))
LAST_TANGENT = F(-5.70498872745e-3)
LOWEST, HIGHEST, ONE, HALF, TWO, SMALL = F(-87.0), F(88.0), F(1.0), F(0.5), F(2.0), F(0.625)
ARTANH = (F(1 / 3), F(1 / 5), F(1 / 7), F(1 / 9), F(1 / 11))
BITS_OF_ROOT_HALF = np.int32(0x3F3504F3)
ABOVE_ROOT_HALF = np.int32(0x3F800000 - 0x3F3504F3)
"""Bits of 1/√2 in float32, and what is added to those of a number to count its power of two from 1/√2."""


ACTIVATIONS = {"relu": 0, "silu": 1, "tanh": 2, "asinh": 3, "quadratic": 4, "abs": 5}
"""Numbers by which `activate` calls the activations."""


@kernel()
def exponential(x: Array) -> None:
    """Apply the exponential to `x` (n,) in place; in float32 by Cephes' polynomial, which is vectorized.

    x = n ln 2 + r with r between ± ln 2 / 2. Arguments in float32 are clipped to the range from -87 to 88,
    and the relative error stays below 2e-7. No sum is reordered; ln 2 is split into two parts to keep digits.
    """
    if x.itemsize != 4:
        for i in range(len(x)):
            x[i] = math.exp(x[i])
        return
    c0, c1, c2, c3, c4 = EXPONENTIAL
    for i in range(len(x)):
        value = min(max(x[i], LOWEST), HIGHEST)
        power = np.floor(value * LOG2E + HALF)
        scale = np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
        r = value - power * LN2_HIGH
        r = r - power * LN2_LOW
        series = ((((LAST_EXPONENTIAL * r + c4) * r + c3) * r + c2) * r + c1) * r + c0
        x[i] = (series * (r * r) + r + ONE) * scale


@kernel()
def hyperbolic_tangent(x: Array, room: Array) -> None:
    """Apply the hyperbolic tangent to `x` (n,) in place, with a relative error below 3e-7 in float32.

    This holds for small arguments too. `room` is working memory of the same length.
    """
    if x.itemsize != 4:
        for i in range(len(x)):
            x[i] = math.tanh(x[i])
        return
    c0, c1, c2, c3 = TANGENT
    for i in range(len(x)):
        room[i] = TWO * abs(x[i])
    exponential(room)
    for i in range(len(x)):
        square = x[i] * x[i]
        series = (((LAST_TANGENT * square + c3) * square + c2) * square + c1) * square + c0
        near = series * square * x[i] + x[i]
        far = ONE - TWO / (room[i] + ONE)
        far = far if x[i] > 0 else -far
        x[i] = near if abs(x[i]) < SMALL else far


@kernel()
def inverse_hyperbolic_sine(x: Array) -> None:
    """Apply the inverse hyperbolic sine to `x` in place.

    In float32 the relative error is below 3e-7 until x² overflows; NaN and infinity become NaN. Small numbers
    are ``2 artanh(x / (1 + sqrt(x² + 1)))``. Others are the logarithm of ``|x| + sqrt(x² + 1) = 2ⁿ m``, with
    m between 1/√2 and √2, which is ``n ln 2 + 2 artanh((m - 1) / (m + 1))``.
    """
    if x.itemsize != 4:
        for i in range(len(x)):
            x[i] = math.asinh(x[i])
        return
    c3, c5, c7, c9, c11 = ARTANH
    for i in range(len(x)):
        size = abs(x[i])
        root = np.sqrt(size * size + ONE)
        bits = F(size + root).view(np.int32) + ABOVE_ROOT_HALF
        power = (bits >> np.int32(23)) - np.int32(127)
        m = np.int32((bits & np.int32(0x007FFFFF)) + BITS_OF_ROOT_HALF).view(np.float32)
        small = size < HALF
        n = F(0) if small else F(power)
        s = size / (ONE + root) if small else (m - ONE) / (m + ONE)
        square = s * s
        series = ((((c11 * square + c9) * square + c7) * square + c5) * square + c3) * square * s + s
        y = TWO * series + n * LN2_LOW + n * LN2_HIGH
        x[i] = TWO * series * (ONE if x[i] > 0 else -ONE) if small else y * (x[i] / size)


@kernel()
def activate(kind: int, even: float, states: Array, slopes: Array, halves: Array, tangents: Array) -> None:
    """Apply an activation to `states` (n,) in place, and write its derivative to `slopes` (n,).

    Derivatives at a kink are 0, and NaN stays NaN. The even part of SiLU, h tanh h with h = x/2, times `even`
    is added to the activation. `halves` and `tangents` (n,) are working memory for it.
    """
    one, zero, half = states.dtype.type(1), states.dtype.type(0), states.dtype.type(0.5)
    size = len(states)
    if even > 0:
        for i in range(size):
            halves[i] = half * states[i]
            tangents[i] = halves[i]
        hyperbolic_tangent(tangents, slopes)
    if kind == 0:
        for i in range(size):
            x = states[i]
            slopes[i] = one if x > zero else zero
            states[i] = zero if zero > x else x
    elif kind == 1:
        for i in range(size):
            slopes[i] = -states[i]
        exponential(slopes)
        for i in range(size):
            gate = one / (one + slopes[i])
            states[i] *= gate
            slopes[i] = gate + states[i] * (one - gate)
    elif kind == 2:
        hyperbolic_tangent(states, slopes)
        for i in range(size):
            slopes[i] = one - states[i] * states[i]
    elif kind == 3:
        for i in range(size):
            slopes[i] = one / np.sqrt(states[i] * states[i] + one)
        inverse_hyperbolic_sine(states)
    elif kind == 4:
        for i in range(size):
            slopes[i] = states[i] + states[i]
            states[i] *= states[i]
    else:
        for i in range(size):
            slopes[i] = np.sign(states[i])
            states[i] = abs(states[i])
    if even > 0:
        weight = states.dtype.type(even)
        for i in range(size):
            states[i] += weight * (halves[i] * tangents[i])
            slopes[i] += weight * half * (tangents[i] + halves[i] * (one - tangents[i] * tangents[i]))
