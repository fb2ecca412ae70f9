"""Kernel that computes the constants of `three_waves` for thousands of initial states.

States are taken in blocks. Each step is a loop over a block without a call or a branch, which the compiler
turns into vector instructions. Carlson's duplication and the arithmetic-geometric mean take a number of steps
that suffices for nearly every state, and the few near a separatrix continue one by one. The result for a
state depends on no other state.

Duplication ends where the largest X = 1 - x/mean is at most `NEAR`. The series has terms up to degree 7, and
those of degree 8 are below 0.02 X⁸ < 1e-17 (Carlson 1995; DLMF 19.36.1). The error of the mean is squared at
each step and also ends below 1e-17.
"""

import math

import numpy as np
from numba import prange
from numpy.typing import NDArray

from physics.jit import kernel

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

WIDTH = 64
"""Number of states in a block, whose data fit into the nearest cache."""
AHEAD, SIZE, BEHIND, TURNED, C, R, M, LOWEST_W, LOWEST_U, H, Q, Y = range(12)
"""Rows of the results, with the names of `ThreeWaves`, and R = Re(θ² conj ξ)."""
ROWS = 12
"""Number of results."""
W, X1, X2, X3, LEFT, RIGHT = range(ROWS, ROWS + 6)
"""Rows of intermediate numbers."""
SPLIT, UNIT = 2.0**27 + 1, 2.0**52 + 1
"""Factors that split a number into two halves of its digits, and that find its leading power of two."""
NEAR, NEARLY = 0.01, 1e-8
"""Limits at which duplication, and the arithmetic-geometric mean, end."""
DOUBLINGS, MEANS, NEWTON = 6, 5, 8
"""Numbers of steps of duplication, of the mean, and of Newton's method, which needs no more for any state."""
HALF_TURN = math.pi / 2


@kernel(parallel=True, least=64 * WIDTH)
def constants(theta: Complex, xi: Complex, out: Array) -> None:
    """Compute constants of the solution for initial states `theta` and `xi` (n,).

    The constants are written to `out` (rows, n), in the order of the names of rows in this module. If `out`
    has fewer rows than `ROWS`, the later constants are left out.
    """
    for block in prange(-(-len(theta) // WIDTH)):
        s = np.empty((ROWS + 6) * WIDTH)
        first = block * WIDTH
        count = min(WIDTH, len(theta) - first)
        for i in range(WIDTH):
            one = first + min(i, count - 1)
            s[X1 * WIDTH + i], s[X2 * WIDTH + i] = theta[one].real, theta[one].imag
            s[LEFT * WIDTH + i], s[RIGHT * WIDTH + i] = xi[one].real, xi[one].imag
        _invariants(s)
        _turning_points(s)
        _distances(s)
        _integrals(s)
        _ends(s)
        for k in range(len(out)):
            for i in range(count):
                out[k, first + i] = s[k * WIDTH + i]


@kernel()
def _invariants(s: Array) -> None:
    """Find the unit `size` of a block, and in this unit C, R, M and w of `three_waves`.

    Each is rounded only once, because differences may cancel.
    """
    for i in range(WIDTH):
        a, b = s[X1 * WIDTH + i], s[X2 * WIDTH + i]
        c, d = s[LEFT * WIDTH + i], s[RIGHT * WIDTH + i]
        largest = max(max(abs(a), abs(b)), max(abs(c), abs(d)))
        # The unit in the first place (Rump, Ogita and Oishi 2008): dividing by a power of two loses no bits.
        shift = 2.0**-100 if largest > 1.0 else 2.0**100
        spread = largest * shift * UNIT
        size = abs(spread - spread * (1 - 2.0**-53)) / shift
        size = max(size, 2.0**-1000) if size > 0 else 1.0  # so that its inverse is finite
        a, b, c, d = a / size, b / size, c / size, d / size
        aa, aa_rest = _product(a, a)
        bb, bb_rest = _product(b, b)
        cc, cc_rest = _product(c, c)
        dd, dd_rest = _product(d, d)
        ab, ab_rest = _product(2 * a, b)
        u, u_rest = _sum(aa, bb)
        w, w_rest = _sum(cc, dd)
        real, real_rest = _sum(aa, -bb)  # the real part of θ²; the imaginary part is 2ab
        w_rest += cc_rest + dd_rest
        real_rest += aa_rest - bb_rest
        lead, lead_rest = _sum(u, -2 * w)
        s[C * WIDTH + i] = lead + (lead_rest + (u_rest + (aa_rest + bb_rest) - 2 * w_rest))
        s[R * WIDTH + i] = _two_products(real, real_rest, c, ab, ab_rest, d)
        s[M * WIDTH + i] = _two_products(ab, ab_rest, c, real, real_rest, -d)
        s[W * WIDTH + i] = w + w_rest
        s[SIZE * WIDTH + i] = size


@kernel()
def _turning_points(s: Array) -> None:
    """Find the values e and v of |ξ|² and |θ|² at the turning points of a block, and H of `three_waves`.

    √e is the largest root x ≥ 0 of 2x³ + Cx = |M|. Newton's method approaches it from an upper bound, where
    the polynomial is convex.
    """
    for i in range(WIDTH):  # a separate loop, as it calls the C library
        s[X1 * WIDTH + i] = np.cbrt(abs(s[M * WIDTH + i]) / 2)
    for i in range(WIDTH):
        lead = s[C * WIDTH + i]
        x = s[X1 * WIDTH + i] + math.sqrt(max(-lead, 0.0) / 2)
        lone = abs(s[M * WIDTH + i]) / (lead if lead > 0 else 1.0)
        s[X1 * WIDTH + i] = min(x, lone) if lead > 0 else x
    for _ in range(NEWTON):
        for i in range(WIDTH):
            lead, x = s[C * WIDTH + i], s[X1 * WIDTH + i]
            slope = 6 * x * x + lead
            step = (2 * x * x * x + lead * x - abs(s[M * WIDTH + i])) / (slope if slope > 0 else 1.0)
            s[X1 * WIDTH + i] = max(x - step, 0.0)
    for i in range(WIDTH):
        lead, x = s[C * WIDTH + i], s[X1 * WIDTH + i]
        e = x * x
        below = abs(s[M * WIDTH + i]) / (x if x > 0 else 1.0)  # for C < 0, where C + 2e would cancel
        v = below if lead < 0 else lead + 2 * e
        s[LOWEST_W * WIDTH + i], s[LOWEST_U * WIDTH + i] = e, v
        s[H * WIDTH + i] = math.sqrt(v * (v + 4 * e)) / 2


@kernel()
def _distances(s: Array) -> None:
    """Find y = w - e of `three_waves` from R, as the difference would lose digits near the turning point.

    In s = 2y√S/|R| it is the root of as³ + s² + bs = 1, whose coefficients neither overflow nor underflow.
    Newton's method approaches it from an upper bound.
    """
    for i in range(WIDTH):
        e, w, h = s[LOWEST_W * WIDTH + i], s[W * WIDTH + i], s[H * WIDTH + i]
        r, root = abs(s[R * WIDTH + i]) / 2, math.sqrt(s[LOWEST_U * WIDTH + i] + e)
        moves = r > 0 and root > 0
        r, root = (r if moves else 1.0), (root if moves else 1.0)
        near = min(h / r * (h / root), 1e300)
        high = min((abs(w - e) + 1e-15 * w) * (root / r), 1.0)
        s[X1 * WIDTH + i] = r / (root * root * root)
        s[X2 * WIDTH + i] = near
        s[X3 * WIDTH + i] = min(high, 1 / max(near, 1.0))
        s[LEFT * WIDTH + i] = r / root
    for _ in range(NEWTON):
        for i in range(WIDTH):
            a, b, x = s[X1 * WIDTH + i], s[X2 * WIDTH + i], s[X3 * WIDTH + i]
            s[X3 * WIDTH + i] = x - (x * (x * (a * x + 1) + b) - 1) / (x * (3 * a * x + 2) + b)
    for i in range(WIDTH):
        y = max(s[X3 * WIDTH + i] * s[LEFT * WIDTH + i], 0.0)
        y = y if s[LOWEST_W * WIDTH + i] + s[LOWEST_U * WIDTH + i] > 0 else s[W * WIDTH + i]  # C = M = 0
        s[Y * WIDTH + i] = y if s[R * WIDTH + i] != 0 else 0.0


@kernel()
def _integrals(s: Array) -> None:
    """Compute the times Q and q(y) of `three_waves`, with H²/y in place of y < H; q goes to the row LEFT."""
    for i in range(WIDTH):
        y, h = s[Y * WIDTH + i], s[H * WIDTH + i]
        y = y if y >= h else h * (h / max(y, 1e-300))
        y = min(y, 1e300) if y > 0 else 1.0
        ratio, S = h / y, s[LOWEST_U * WIDTH + i] + s[LOWEST_W * WIDTH + i]
        s[X1 * WIDTH + i] = y * ((1 - ratio) * (1 - ratio))
        s[X2 * WIDTH + i] = y + S + h * ratio
        s[X3 * WIDTH + i] = y * ((1 + ratio) * (1 + ratio))
        # R_F(0, a², b²) is a quarter of a turn over the mean of a and b.
        s[LEFT * WIDTH + i], s[RIGHT * WIDTH + i] = math.sqrt(S + 2 * h), 2 * math.sqrt(h)
    for _ in range(DOUBLINGS):
        for i in range(WIDTH):
            s[X1 * WIDTH + i], s[X2 * WIDTH + i], s[X3 * WIDTH + i] = _doubled(
                s[X1 * WIDTH + i], s[X2 * WIDTH + i], s[X3 * WIDTH + i]
            )
    for _ in range(MEANS):
        for i in range(WIDTH):
            a, b = s[LEFT * WIDTH + i], s[RIGHT * WIDTH + i]
            s[LEFT * WIDTH + i], s[RIGHT * WIDTH + i] = (a + b) / 2, math.sqrt(a * b)
    late = 0
    for i in range(WIDTH):
        a, b = s[LEFT * WIDTH + i], s[RIGHT * WIDTH + i]
        spread = _spread(s[X1 * WIDTH + i], s[X2 * WIDTH + i], s[X3 * WIDTH + i])
        late += 1 if spread > NEAR or abs(a - b) > NEARLY * a else 0
    if late:
        _go_on(s)
    for i in range(WIDTH):
        mean = (s[LEFT * WIDTH + i] + s[RIGHT * WIDTH + i]) / 2
        s[Q * WIDTH + i] = HALF_TURN / mean if s[H * WIDTH + i] > 0 else math.inf
        s[LEFT * WIDTH + i] = _series(s[X1 * WIDTH + i], s[X2 * WIDTH + i], s[X3 * WIDTH + i])


@kernel()
def _go_on(s: Array) -> None:
    """Take further steps for those states of a block that need them, which are near a separatrix."""
    for i in range(WIDTH):
        x, y, z = s[X1 * WIDTH + i], s[X2 * WIDTH + i], s[X3 * WIDTH + i]
        while _spread(x, y, z) > NEAR:
            x, y, z = _doubled(x, y, z)
        s[X1 * WIDTH + i], s[X2 * WIDTH + i], s[X3 * WIDTH + i] = x, y, z
        a, b = s[LEFT * WIDTH + i], s[RIGHT * WIDTH + i]
        while abs(a - b) > NEARLY * a and b > 0:
            a, b = (a + b) / 2, math.sqrt(a * b)
        s[LEFT * WIDTH + i], s[RIGHT * WIDTH + i] = a, b


@kernel()
def _ends(s: Array) -> None:
    """Find the times from the states of a block to both blow-ups, and from the turning point."""
    for i in range(WIDTH):
        y, h, q = s[Y * WIDTH + i], s[H * WIDTH + i], s[Q * WIDTH + i]
        far, rising = y >= h, s[R * WIDTH + i] >= 0
        here = s[LEFT * WIDTH + i] if y > 0 else 0.0
        onward = here if far else 2 * q - here
        around = 4 * q - here if far else 2 * q + here
        turned = 2 * q - here if far else here
        moves = y + h > 0
        s[AHEAD * WIDTH + i] = (onward if rising else around) if moves else math.inf
        s[BEHIND * WIDTH + i] = (around if rising else onward) if moves else math.inf
        s[TURNED * WIDTH + i] = turned if rising else -turned


# -- arithmetic --------------------------------------------------------------------------------------------


@kernel()
def _sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel()
def _product(a: float, b: float) -> tuple[float, float]:
    """Return ab and its rounding error (Dekker)."""
    total = a * b
    a_high = SPLIT * a - (SPLIT * a - a)
    b_high = SPLIT * b - (SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    return total, ((a_high * b_high - total) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel()
def _two_products(a: float, a_rest: float, c: float, b: float, b_rest: float, d: float) -> float:
    """Return ac + bd, rounded only once, for a and b that are given as sums of two parts."""
    ac, ac_rest = _product(a, c)
    bd, bd_rest = _product(b, d)
    total, rest = _sum(ac, bd)
    return total + (rest + ((ac_rest + bd_rest) + (a_rest * c + b_rest * d)))


@kernel()
def _doubled(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return arguments of Carlson's integral R_F with the same value, four times closer together."""
    a, b, c = math.sqrt(x), math.sqrt(y), math.sqrt(z)
    shift = a * b + b * c + c * a
    return (x + shift) / 4, (y + shift) / 4, (z + shift) / 4


@kernel()
def _spread(x: float, y: float, z: float) -> float:
    """Return how far the arguments of Carlson's integral R_F are from their mean, relative to it."""
    mean = (x + y + z) / 3
    return max(abs(mean - x), max(abs(mean - y), abs(mean - z))) / mean


@kernel()
def _series(x: float, y: float, z: float) -> float:
    """Return Carlson's elliptic integral R_F of arguments that are close to each other (DLMF 19.36.1)."""
    mean = (x + y + z) / 3
    X, Y_ = 1 - x / mean, 1 - y / mean
    Z = -X - Y_
    E2, E3 = X * Y_ - Z * Z, X * Y_ * Z
    terms = -E2 / 10 + E3 / 14 + E2 * E2 / 24 - 3 / 44 * E2 * E3
    terms += -5 / 208 * E2 * E2 * E2 + 3 / 104 * E3 * E3 + E2 * E2 * E3 / 16
    return (1 + terms) / math.sqrt(mean)
