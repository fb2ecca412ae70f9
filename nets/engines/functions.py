"""Compiled activations with their derivatives, and the functions that they need."""

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
EXPONENTIAL = F(5.0e-1), F(0.16666665459), F(4.1665795894e-2), F(8.3334519073e-3), F(1.3981999507e-3)
EXPONENTIAL_5 = F(1.9875691500e-4)
TANGENT = F(-0.333332819422), F(0.133314422036), F(-0.0537397155531), F(0.0206390887954), F(-0.00570498872745)
LOWEST, HIGHEST, ONE, HALF, TWO, SMALL = F(-87.0), F(88.0), F(1.0), F(0.5), F(2.0), F(0.625)
ROUNDING = F(1.5 * 2**23)
"""Added to a smaller number, it leaves the nearest whole number in the last bits."""
ARTANH = (F(1 / 3), F(1 / 5), F(1 / 7), F(1 / 9), F(1 / 11))
BITS_OF_ROOT_HALF = np.int32(0x3F3504F3)
ABOVE_ROOT_HALF = np.int32(0x3F800000 - 0x3F3504F3)
"""Bits of 1/√2 in float32, and what is added to those of a number to count its power of two from 1/√2."""


@primitive
def single(typing_context: Any, number: Any) -> Any:
    """Return whether a number is one of float32, which is known when a kernel is compiled."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.boolean, number == types.float32)

    return types.boolean(number), generate


@primitive
def maximum(typing_context: Any, first: Any, second: Any) -> Any:
    """Return the larger of two numbers, or NaN; unlike with `max`, vectors may change their order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        function = ir.FunctionType(kind, [kind, kind])
        return builder.call(builder.module.declare_intrinsic("llvm.maximum", [kind], function), arguments)

    return first(first, first), generate


@kernel(fuse=True)
def exponential(number: Any) -> Any:
    """Return the exponential of a number; in float32 by Cephes' polynomial.

    x = n ln 2 + r with r between ± ln 2 / 2. Arguments in float32 are clipped to the range from -87 to 88,
    and the relative error stays below 2e-7. No sum is reordered; ln 2 is split into two parts to keep digits.
    """
    real = type(number)
    if not single(number):
        return real(math.exp(number))
    c0, c1, c2, c3, c4 = EXPONENTIAL
    x = F(min(max(number, LOWEST), HIGHEST))
    shifted = F(x * LOG2E + ROUNDING)
    scale = np.int32((F(shifted).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    power = shifted - ROUNDING
    r = x - power * LN2_HIGH
    r = r - power * LN2_LOW
    series = ((((EXPONENTIAL_5 * r + c4) * r + c3) * r + c2) * r + c1) * r + c0
    return real((series * (r * r) + r + ONE) * scale)


@kernel(fuse=True)
def hyperbolic_tangent(number: Any) -> Any:
    """Return the hyperbolic tangent of a number; in float32 to a relative 3e-7."""
    real = type(number)
    if not single(number):
        return real(math.tanh(number))
    c0, c1, c2, c3, c4 = TANGENT
    x = F(number)
    square = x * x
    near = (((c4 * square + c3) * square + c2) * square + c1) * square + c0
    near = near * square * x + x
    far = ONE - TWO / (F(exponential(real(TWO * abs(x)))) + ONE)
    far = far if x > 0 else -far
    return real(near if abs(x) < SMALL else far)


@kernel(fuse=True)
def inverse_hyperbolic_sine(number: Any) -> Any:
    """Return the inverse hyperbolic sine of a number.

    In float32 the relative error is below 3e-7 until x² overflows; NaN and infinity become NaN. Small numbers
    are ``2 artanh(x / (1 + sqrt(x² + 1)))``. Others are the logarithm of ``|x| + sqrt(x² + 1) = 2ⁿ m``, with
    m between 1/√2 and √2, which is ``n ln 2 + 2 artanh((m - 1) / (m + 1))``.
    """
    real = type(number)
    if not single(number):
        return real(math.asinh(number))
    c3, c5, c7, c9, c11 = ARTANH
    x = F(number)
    size = abs(x)
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
    return real(TWO * series * (ONE if x > 0 else -ONE) if small else y * (x / size))


# -- activations: applied to `states` (n,) in place, with the derivatives in `slopes`; at a kink they are 0 --


@kernel()
def relu(even: float, states: Array, slopes: Array) -> None:
    """Apply max(x, 0); NaN stays NaN."""
    zero = states.dtype.type(0)
    for i in range(len(states)):
        x = states[i]
        states[i], slopes[i] = zero if zero > x else x, x > zero


@kernel(fuse=True)
def silu(even: float, states: Array, slopes: Array) -> None:
    """Apply x / (1 + exp(-x))."""
    one = states.dtype.type(1)
    for i in range(len(states)):
        x = states[i]
        gate = one / (one + exponential(-x))
        states[i], slopes[i] = x * gate, gate + x * gate * (one - gate)


@kernel(fuse=True)
def tanh(even: float, states: Array, slopes: Array) -> None:
    """Apply the hyperbolic tangent, and `even` times the even part of SiLU."""
    one = states.dtype.type(1)
    if even > 0:
        for i in range(len(states)):
            x, y = states[i], hyperbolic_tangent(states[i])
            states[i], slopes[i] = _with_even(x, y, one - y * y, even)
    else:
        for i in range(len(states)):
            y = hyperbolic_tangent(states[i])
            states[i], slopes[i] = y, one - y * y


@kernel(fuse=True)
def asinh(even: float, states: Array, slopes: Array) -> None:
    """Apply the inverse hyperbolic sine, and `even` times the even part of SiLU."""
    one = states.dtype.type(1)
    if even > 0:
        for i in range(len(states)):
            x, slope = states[i], one / np.sqrt(states[i] * states[i] + one)
            states[i], slopes[i] = _with_even(x, inverse_hyperbolic_sine(x), slope, even)
    else:
        for i in range(len(states)):
            x = states[i]
            states[i], slopes[i] = inverse_hyperbolic_sine(x), one / np.sqrt(x * x + one)


@kernel()
def quadratic(even: float, states: Array, slopes: Array) -> None:
    """Apply the square."""
    for i in range(len(states)):
        x = states[i]
        states[i], slopes[i] = x * x, x + x


@kernel()
def absolute(even: float, states: Array, slopes: Array) -> None:
    """Apply the absolute value."""
    for i in range(len(states)):
        x = states[i]
        states[i], slopes[i] = abs(x), np.sign(x)


ACTIVATIONS = {function.__name__: function for function in (relu, silu, tanh, asinh, quadratic)}
ACTIVATIONS["abs"] = absolute


@kernel(fuse=True)
def _with_even(x: Any, y: Any, slope: Any, even: float) -> tuple[Any, Any]:
    """Add `even` times h tanh h with h = x/2, and its derivative, to an activation `y` and its `slope`."""
    real = type(x)
    half, weight = real(0.5) * x, real(even)
    tangent = hyperbolic_tangent(half)
    turn = tangent + half * (real(1) - tangent * tangent)
    return y + weight * half * tangent, slope + weight * real(0.5) * turn
