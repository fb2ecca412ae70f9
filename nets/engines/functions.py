"""Compiled activations with their derivatives, and the functions that they need; all work in place."""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from physics.jit import kernel, primitive

Array = NDArray[Any]

F = np.float32
LOG2E, LN2_HIGH, LN2_LOW = F(1.44269504088896341), F(0.693359375), F(-2.12194440e-4)
EXPONENTIAL = (F(5.0e-1), F(1.6666665459e-1), F(4.1665795894e-2), F(8.3334519073e-3), F(1.3981999507e-3))
LAST_EXPONENTIAL = F(1.9875691500e-4)
TANGENT = (F(-3.33332819422e-1), F(1.33314422036e-1), F(-5.37397155531e-2), F(2.06390887954e-2))
LAST_TANGENT = F(-5.70498872745e-3)
LOWEST, HIGHEST, ONE, HALF, TWO, SMALL = F(-87.0), F(88.0), F(1.0), F(0.5), F(2.0), F(0.625)
SINE = (F(-1.6666288134e-1), F(7.4847586088e-2), F(-4.2699340972e-2))
LAST_SINE = F(2.0122003309e-2)
LOGARITHM = (
    F(3.3333331174e-1),
    F(-2.4999993993e-1),
    F(2.0000714765e-1),
    F(-1.6668057665e-1),
    F(1.4249322787e-1),
    F(-1.2420140846e-1),
    F(1.1676998740e-1),
    F(-1.1514610310e-1),
)
LAST_LOGARITHM, ROOT_HALF = F(7.0376836292e-2), F(0.707106781186547524)


@primitive
def float_of(typing_context: Any, bits: Any) -> Any:
    """Return the float32 whose bits are those of the int32 `bits`; kernels leave out the first argument."""
    return types.float32(types.int32), _same_bits(ir.FloatType())


@primitive
def bits_of(typing_context: Any, number: Any) -> Any:
    """Return the int32 whose bits are those of the float32 `number`; kernels leave out the first argument."""
    return types.int32(types.float32), _same_bits(ir.IntType(32))


def _same_bits(kind: Any) -> Any:
    return lambda context, builder, signature, arguments: builder.bitcast(arguments[0], kind)


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
        scale = float_of((np.int32(power) + np.int32(127)) << np.int32(23))
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

    In float32 the relative error is below 3e-7 until x² overflows. The function is ``ln(|x| + sqrt(x² + 1))``
    with the sign of x, and a series where x is small. The logarithm follows Cephes too: it splits the bits of
    a number into a power of two and a factor between 1/√2 and √2.
    """
    if x.itemsize != 4:
        for i in range(len(x)):
            x[i] = math.asinh(x[i])
        return
    s0, s1, s2 = SINE
    c0, c1, c2, c3, c4, c5, c6, c7 = LOGARITHM
    for i in range(len(x)):
        bits = bits_of(F(abs(x[i]) + np.sqrt(x[i] * x[i] + ONE)))
        power = F((bits >> np.int32(23)) - np.int32(126))
        factor = float_of((bits & np.int32(0x007FFFFF)) | np.int32(0x3F000000))
        low = factor < ROOT_HALF
        power = power - ONE if low else power
        r = TWO * factor - ONE if low else factor - ONE
        square = r * r
        series = ((((LAST_LOGARITHM * r + c7) * r + c6) * r + c5) * r + c4) * r + c3
        series = ((series * r + c2) * r + c1) * r + c0
        far = r + (series * r * square + power * LN2_LOW - HALF * square) + power * LN2_HIGH
        square = x[i] * x[i]
        near = (((LAST_SINE * square + s2) * square + s1) * square + s0) * square * x[i] + x[i]
        x[i] = near if abs(x[i]) < HALF else far * (x[i] / abs(x[i]))  # NaN and infinity become NaN


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
