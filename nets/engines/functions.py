"""Functions of arrays in place: activations, losses and their gradients, and a step of AdamW."""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from physics.jit import call, kernel, matrix, piece, primitive

Array = NDArray[Any]
Integers = NDArray[Any]

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
    """Take the bits of an int32 as a float32."""
    return types.float32(types.int32), _same_bits(ir.FloatType())


@primitive
def bits_of(typing_context: Any, number: Any) -> Any:
    """Take the bits of a float32 as an int32."""
    return types.int32(types.float32), _same_bits(ir.IntType(32))


def _same_bits(kind: Any) -> Any:
    return lambda context, builder, signature, arguments: builder.bitcast(arguments[0], kind)


# -- activations: in place, with the derivative into `slopes`; `exp` is the address of `exponential` ---------


@kernel()
def relu(states: Array, slopes: Array, exp: int) -> None:
    """Apply max(x, 0)."""
    one, zero = states.dtype.type(1), states.dtype.type(0)
    for i in range(len(states)):
        x = states[i]
        slopes[i] = one if x > zero else zero
        states[i] = zero if zero > x else x  # NaN stays


@kernel()
def silu(states: Array, slopes: Array, exp: int) -> None:
    """Apply x / (1 + exp(-x))."""
    one = states.dtype.type(1)
    for i in range(len(states)):
        slopes[i] = -states[i]
    call(exp, (slopes,))
    for i in range(len(states)):
        gate = one / (one + slopes[i])
        states[i] *= gate
        slopes[i] = gate + states[i] * (one - gate)


@kernel()
def tanh(states: Array, slopes: Array, exp: int) -> None:
    """Apply the hyperbolic tangent."""
    one = states.dtype.type(1)
    hyperbolic_tangent(states, slopes, exp)
    for i in range(len(states)):
        slopes[i] = one - states[i] * states[i]


@kernel()
def asinh(states: Array, slopes: Array, exp: int) -> None:
    """Apply the inverse hyperbolic sine."""
    one = states.dtype.type(1)
    for i in range(len(states)):
        slopes[i] = one / np.sqrt(states[i] * states[i] + one)
    inverse_hyperbolic_sine(states)


@kernel()
def quadratic(states: Array, slopes: Array, exp: int) -> None:
    """Apply x²."""
    for i in range(len(states)):
        slopes[i] = states[i] + states[i]
        states[i] *= states[i]


@kernel()
def absolute(states: Array, slopes: Array, exp: int) -> None:
    """Apply |x|, whose derivative is 0 at 0."""
    for i in range(len(states)):
        slopes[i] = np.sign(states[i])
        states[i] = abs(states[i])


ACTIVATION = {
    "relu": relu,
    "silu": silu,
    "tanh": tanh,
    "asinh": asinh,
    "quadratic": quadratic,
    "abs": absolute,
}


@kernel()
def with_even_part(
    activate: int, states: Array, slopes: Array, even: float, halves: Array, tangents: Array, exp: int
) -> None:
    """Apply an activation, and add `even` times the even part of SiLU.

    With h = x/2 and t = tanh h, that is h t, and its derivative (t + h (1 - t²)) / 2.
    """
    one, half = states.dtype.type(1), states.dtype.type(0.5)
    for i in range(len(states)):
        halves[i] = half * states[i]
        tangents[i] = halves[i]
    hyperbolic_tangent(tangents, slopes, exp)
    call(activate, (states, slopes, exp))
    weight = states.dtype.type(even)
    for i in range(len(states)):
        states[i] += weight * (halves[i] * tangents[i])
        slopes[i] += weight * half * (tangents[i] + halves[i] * (one - tangents[i] * tangents[i]))


@kernel()
def exponential(x: Array) -> None:
    """Exponential in place; in float32 by Cephes' polynomial, which the compiler vectorizes.

    x = n ln 2 + r with |r| <= ln 2 / 2; the relative error stays below 2e-7, and arguments are clipped to the
    range of float32, from -87 to 88. No sum is reordered: ln 2 is split into two parts.
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
def hyperbolic_tangent(x: Array, room: Array, exp: int) -> None:
    """Hyperbolic tangent in place; in float32 with a relative error below 3e-7, small arguments included."""
    if x.itemsize != 4:
        for i in range(len(x)):
            x[i] = math.tanh(x[i])
        return
    c0, c1, c2, c3 = TANGENT
    for i in range(len(x)):
        room[i] = TWO * abs(x[i])
    call(exp, (room,))
    for i in range(len(x)):
        square = x[i] * x[i]
        series = (((LAST_TANGENT * square + c3) * square + c2) * square + c1) * square + c0
        near = series * square * x[i] + x[i]
        far = ONE - TWO / (room[i] + ONE)
        far = far if x[i] > 0 else -far
        x[i] = near if abs(x[i]) < SMALL else far


@kernel()
def inverse_hyperbolic_sine(x: Array) -> None:
    """Inverse hyperbolic sine in place; in float32 with a relative error below 3e-7, up to where x² ends.

    It is ln(|x| + sqrt(x² + 1)) with the sign of x, and a series where |x| is small. The logarithm, Cephes'
    too, takes the bits of a number apart: a power of two, and a factor between 1/√2 and √2.
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


# -- losses: what they add to `sums`, and their gradients --------------------------------------------------


@kernel(reorder=True)
def cross_entropy(
    logits: Array, labels: Integers, targets: Array, room: Array, exp: int, sums: Array
) -> None:
    """Add the cross-entropies to `sums`, and how often the (first) largest logit is correct."""
    rows, width = logits.shape
    powers = matrix(room, 0, rows, width)
    total, hits = 0.0, 0
    for n in range(rows):
        largest = logits[n, 0]
        for j in range(width):
            largest = max(largest, logits[n, j])
        for j in range(width):
            powers[n, j] = logits[n, j] - largest
        first = 0
        while first < labels[n] and powers[n, first] < 0:
            first += 1
        hits += first == labels[n] and powers[n, first] == 0
        total -= powers[n, labels[n]]
    call(exp, (piece(room, 0, rows * width),))
    for n in range(rows):
        norm = 0.0
        for j in range(width):
            norm += powers[n, j]
        total += math.log(norm)
    sums[0] += total
    sums[1] += hits


@kernel(reorder=True)
def squared_error(
    outputs: Array, labels: Integers, targets: Array, room: Array, exp: int, sums: Array
) -> None:
    """Add the squared errors to `sums`, and how often the (first) nearest target is correct."""
    rows, width = outputs.shape
    total, hits = 0.0, 0
    for n in range(rows):
        best, nearest = 0, np.inf
        for c in range(len(targets)):
            distance = 0.0
            for j in range(width):
                difference = outputs[n, j] - targets[c, j]
                distance += difference * difference
            if distance < nearest:
                best, nearest = c, distance
            if c == labels[n]:
                total += distance / width
        hits += best == labels[n]
    sums[0] += total
    sums[1] += hits


@kernel(reorder=True)
def squared_error_gradient(
    outputs: Array,
    labels: Integers,
    targets: Array,
    batch: Integers,
    start: int,
    total: int,
    exp: int,
    out: Array,
) -> None:
    """Gradient of the mean squared error over `total` examples, with respect to the outputs from `start`."""
    rows, width = outputs.shape
    share = outputs.dtype.type(2 / (total * width))
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        target = targets[labels[example]]
        for j in range(width):
            out[n, j] = share * (outputs[n, j] - target[j])


@kernel(reorder=True)
def cross_entropy_gradient(
    logits: Array,
    labels: Integers,
    targets: Array,
    batch: Integers,
    start: int,
    total: int,
    exp: int,
    out: Array,
) -> None:
    """Gradient of the mean cross-entropy over `total` examples, with respect to the logits from `start`."""
    rows, width = logits.shape
    for n in range(rows):
        largest = logits[n, 0]
        for j in range(width):
            largest = max(largest, logits[n, j])
        for j in range(width):
            out[n, j] = logits[n, j] - largest
    call(exp, (piece(out, 0, rows * width),))
    for n in range(rows):
        example = batch[start + n] if len(batch) else start + n
        norm = logits.dtype.type(0)
        for j in range(width):
            norm += out[n, j]
        norm = 1 / (norm * total)
        for j in range(width):
            out[n, j] *= norm
        out[n, labels[example]] -= logits.dtype.type(1 / total)


@kernel(reorder=True)
def adamw(
    values: Array,
    gradient: Array,
    first: Array,
    second: Array,
    head: int,
    number: int,
    rates: Array,
    betas: Array,
) -> None:
    """Take step `number` of decoupled AdamW, in PyTorch's order; the scalars are computed in float64.

    `rates` (4,) are learning rate and weight decay of the first `head` values, the encoder, and then of the
    others. At a rate of 0, the values stay and the moments change, as in PyTorch. An epsilon of 0 stands for
    SGD, whose weight decay shrinks the values as in AdamW.
    """
    real = values.dtype.type
    for start, end, part in ((0, head, 0), (head, len(values), 2)):
        rate, decay = rates[part], rates[part + 1]
        size = end - start
        x, slope = piece(values, start, size), piece(gradient, start, size)
        mean, square = piece(first, start, size), piece(second, start, size)
        if betas[2] == 0:
            for i in range(size):
                x[i] = real(1 - rate * decay) * x[i] - real(rate) * slope[i]
            continue
        keep1, take1 = real(betas[0]), real(1 - betas[0])
        keep2, take2 = real(betas[1]), real(1 - betas[1])
        shrink, reach = real(1 - rate * decay), real(rate / (1 - betas[0] ** number))
        root, epsilon = real(1 / math.sqrt(1 - betas[1] ** number)), real(betas[2])
        for i in range(size):  # from 0: from `start`, where an index could be negative, is not vectorized
            g = slope[i]
            m = keep1 * mean[i] + take1 * g
            v = keep2 * square[i] + take2 * (g * g)
            mean[i], square[i] = m, v
            x[i] = shrink * x[i] - reach * (m / (np.sqrt(v) * root + epsilon))
