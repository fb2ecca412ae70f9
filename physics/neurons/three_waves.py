"""The closed solution of ``dθ/dt = 2c conj(θ) ξ``, ``dξ/dt = c θ²`` for complex θ and ξ: three waves.

With u = |θ|² and w = |ξ|², the equations give ``du/dt = 4cR``, ``dw/dt = 2cR`` and ``dR/dt = cu(u + 4w)`` for
R = Re(θ² conj ξ). Hence C = u - 2w and M = Im(θ² conj ξ) do not change, and as R² + M² = u²w,

    (dw/dt)² = 4c² ((C + 2w)² w - M²).

So w comes down from infinity to the largest root e of the polynomial in brackets, turns there, and goes up to
infinity again, in a finite time. Let y = w - e, and let v = C + 2e be the value of u at the turning point.
Then e v² = M², and nothing cancels in

    R² = 4y (y² + Sy + H²),    S = v + e,    H² = v (v + 4e)/4,    u = v + 2y,    w = e + y.

In z = 2ct the time between two values of y is the elliptic integral of dy / 2√(y (y² + Sy + H²)), which the
map y → H²/y does not change. Therefore one function, in Carlson's form

    q(y) = √y R_F((y - H)², y² + Sy + H², (y + H)²),

serves twice. For y ≥ H it is the time from y to the blow-up, where it equals R_F(w - e₁, w - e₂, w - e₃) with
all three roots. For y ≤ H it is the time from the turning point to y. The time from y = 0 to y = H is Q =
q(H), and so is the time from y = H to the blow-up. Jacobi's functions invert q. The phases follow from d arg
ξ/dt = cM/w, an integral of the third kind (Carlson's R_J), and from 2 arg θ - arg ξ = arg(R + iM).
"""

from dataclasses import dataclass

import numpy as np

from physics.values import Array, Complex, Mask

SPLIT = 2.0**27 + 1
"""Factor that splits a number into two halves of its digits."""
NEWTON = 8
"""Number of steps of Newton's method, which needs no more for any state."""


@dataclass(frozen=True, eq=False)
class ThreeWaves:
    """The exact solution of dθ/dt = 2c conj(θ) ξ, dξ/dt = c θ² through an initial state.

    The module explains its symbols. θ and ξ are in units of `size`, in which their largest real or imaginary
    part is between 1 and 2. Hence y, e, v, S and H are in units of size², M is in units of size³, and the
    times z = 2ct and Q are in units of 1/size.

    Attributes
    ----------
    theta, xi : ndarray of complex128, shape (...)
        Initial state, in units of `size`.
    size : ndarray of float64, shape (...)
        Unit of θ and ξ, a power of two. The unit of the time t is 1/(2c size).
    y : ndarray of float64, shape (...)
        Initial value of |ξ|² - e.
    M : ndarray of float64, shape (...)
        Conserved quantity Im(θ² conj ξ).
    lowest_w, lowest_u : ndarray of float64, shape (...)
        e and v, the values of |ξ|² and |θ|² at the turning point.
    S, H, Q : ndarray of float64, shape (...)
        As in the module; Q is infinite where the turning point takes an infinite time to reach.
    rising : ndarray of bool, shape (...)
        Whether |ξ| grows initially.
    ahead : ndarray of float64, shape (...)
        Time z from the initial state to the blow-up in the future.
    behind : ndarray of float64, shape (...)
        Time z from the blow-up in the past to the initial state.
    turned : ndarray of float64, shape (...)
        Time z from the turning point to the initial state, negative before it.
    """

    theta: Complex
    xi: Complex
    size: Array
    y: Array
    M: Array
    lowest_w: Array
    lowest_u: Array
    S: Array
    H: Array
    Q: Array
    rising: Mask
    ahead: Array
    behind: Array
    turned: Array

    @property
    def still(self) -> Mask:
        """Whether θ = 0, so that nothing moves, bool of shape (...)."""
        return self.theta == 0

    def at(self, z: Array) -> tuple[Complex, Complex]:
        """Return θ and ξ, in units of `size`, at times z between both blow-ups.

        `z` broadcasts with the initial state, and so do the two arrays of complex128 that are returned.
        """
        with np.errstate(all="ignore"):  # in branches that `where` discards
            y, rising = self._place(z)
            turn, turn_start = self._turn(y, rising), self._turn(self.y, self.rising)
            around = 0.5 * self.M * (self._third(self.y, self.rising) - self._third(y, rising))
            around = np.where(self.M == 0, turn_start - turn, around)
            around = np.where(np.isfinite(around), around, 0.0)  # if M and the roots underflow
            theta_angle = np.angle(self.theta) + 0.5 * (around + turn - turn_start)
            xi_angle = np.where(self.xi == 0, 2 * np.angle(self.theta), np.angle(self.xi)) + around
            theta = np.sqrt(self.lowest_u + 2 * y) * np.exp(1j * theta_angle)
            xi = np.sqrt(self.lowest_w + y) * np.exp(1j * xi_angle)
        keep = self.still | (z == 0)
        return np.where(keep, self.theta, theta), np.where(keep, self.xi, xi)

    def _turn(self, y: Array, rising: Mask) -> Array:
        """Return 2 arg θ - arg ξ, which is between 0 and π times the sign of M."""
        R = 2 * np.sqrt(y) * np.hypot(np.sqrt(y * (y + self.S)), self.H)
        return np.asarray(np.arctan2(self.M, np.where(rising, R, -R)))

    def _place(self, z: Array) -> tuple[Array, Mask]:
        """Return y, and whether it grows, at times z after the initial state."""
        ahead, behind, turned = self.ahead - z, self.behind + z, self.turned + z
        before, after = ahead < self.Q, behind < self.Q
        distance = np.where(before, ahead, np.where(after, behind, np.abs(turned)))
        y = _beyond(np.minimum(distance, self.Q), self.S, self.H)
        far = before | after
        return np.where(far, y, self.H * (self.H / y)), np.where(far, before, turned >= 0)

    def _third(self, y: Array, rising: Mask) -> Array:
        """Return the integral of dz/w from y to the blow-up, through the turning point if y does not grow."""
        from scipy.special import elliprj

        e, v = self.lowest_w, self.lowest_u
        root = np.sqrt((e * (e - 2 * v)).astype(np.complex128))
        far = (self.S + root) / 2
        near = np.where(root.imag == 0, self.H * (self.H / far), far.conj())

        def integral(y: Array) -> Array:
            return np.asarray(elliprj(y + 0j, y + near, y + far, e + y + 0j)).real / 3

        return np.where(rising, integral(y), 2 * integral(np.zeros_like(e)) - integral(y))


@np.errstate(all="ignore")  # in branches that `where` discards
def three_waves(theta: Complex, xi: Complex) -> ThreeWaves:
    """Return the exact solution of dθ/dt = 2c conj(θ) ξ, dξ/dt = c θ² through given initial states.

    `theta` and `xi` are complex128 (...), one state for each neuron and frequency.
    """
    size, w, C, R, M = _unit_and_invariants(theta, xi)
    e, v = _turning_point(C, np.abs(M))
    S, H = v + e, np.sqrt(v * (v + 4 * e)) / 2
    y = _distance(e, w, S, H, np.abs(R) / 2)
    y = np.where(S > 0, y, w)  # C = M = 0
    y = np.where(R != 0, y, 0.0)
    rising, far, moves = R >= 0, y >= H, y + H > 0
    Q = np.where(H > 0, _time(H, S, H), np.inf)
    here = np.where(y > 0, _time(np.where(y > 0, y, 1.0), S, H), 0.0)
    onward, around = np.where(far, here, 2 * Q - here), np.where(far, 4 * Q - here, 2 * Q + here)
    turned = np.where(far, 2 * Q - here, here)
    return ThreeWaves(
        theta / size,
        xi / size,
        size,
        y,
        np.where((e == 0) | (v == 0), 0.0, M),
        e,
        v,
        S,
        H,
        Q,
        rising,
        np.where(moves, np.where(rising, onward, around), np.inf),
        np.where(moves, np.where(rising, around, onward), np.inf),
        np.where(rising, turned, -turned),
    )


def invariants(theta: Complex, xi: Complex) -> tuple[Array, Array]:
    """Return C = |θ|² - 2|ξ|² and M = Im(θ² conj ξ) of given states, float64 (...), each rounded only once.

    `theta` and `xi` are complex128 (...), one state for each neuron and frequency.
    """
    size, _, C, _, M = _unit_and_invariants(theta, xi)
    return C * size**2, M * size**3


def first_divergence(times: Array, future: Array, past: Array) -> str:
    """Describe the neuron that diverges first if it does so within `times`; otherwise return "".

    `future` and `past` (..., K) are the times, above and below 0, at which the frequencies diverge.
    """
    if not times.size or not future.size:
        return ""
    for time, ends in ((float(times.max()), future), (float(times.min()), past)):
        at = np.unravel_index(int(np.abs(ends).argmin()), ends.shape)
        end = float(ends[at])
        if (time >= end > 0) or (time <= end < 0):
            *place, k = map(int, at)
            neuron = f"neuron {place[-1]}" if place else "the neuron"
            run = f" of run {', '.join(map(str, place[:-1]))}" if len(place) > 1 else ""
            return f"{time:g}: {neuron}{run} diverges at t* = {end:.6g} in frequency {k + 1}"
    return ""


def _unit_and_invariants(theta: Complex, xi: Complex) -> tuple[Array, Array, Array, Array, Array]:
    """Return the unit `size` of states, and in this unit w, C, R = Re(θ² conj ξ) and M.

    Each is rounded only once, because differences may cancel.
    """
    parts = np.stack([theta.real, theta.imag, xi.real, xi.imag])
    largest = np.abs(parts).max(axis=0)
    size = np.ldexp(1.0, np.maximum(np.frexp(largest)[1] - 1, -1000))  # so that its inverse is finite
    size = np.where(largest > 0, size, 1.0)
    a, b, c, d = parts / size
    (aa, aa_rest), (bb, bb_rest), (cc, cc_rest), (dd, dd_rest) = (_product(x, x) for x in (a, b, c, d))
    ab, ab_rest = _product(2 * a, b)
    u, u_rest = _sum(aa, bb)
    w, w_rest = _sum(cc, dd)
    w_rest = w_rest + (cc_rest + dd_rest)
    real, real_rest = _sum(aa, -bb)  # the real part of θ²; the imaginary part is 2ab
    real_rest = real_rest + (aa_rest - bb_rest)
    lead, lead_rest = _sum(u, -2 * w)
    C = lead + (lead_rest + (u_rest + (aa_rest + bb_rest) - 2 * w_rest))
    R = _two_products(real, real_rest, c, ab, ab_rest, d)
    M = _two_products(ab, ab_rest, c, real, real_rest, -d)
    return size, w + w_rest, C, R, M


def _turning_point(C: Array, M: Array) -> tuple[Array, Array]:
    """Return the values e and v of |ξ|² and |θ|² at the turning point, for M ≥ 0.

    √e is the largest root x ≥ 0 of 2x³ + Cx = M. Newton's method approaches it from an upper bound, where the
    polynomial is convex.
    """
    x = np.cbrt(M / 2) + np.sqrt(np.maximum(-C, 0.0) / 2)
    x = np.where(C > 0, np.minimum(x, M / C), x)
    for _ in range(NEWTON):
        slope = 6 * x * x + C
        step = (2 * x * x * x + C * x - M) / np.where(slope > 0, slope, 1.0)
        x = np.maximum(x - step, 0.0)
    below = M / np.where(x > 0, x, 1.0)  # for C < 0, where C + 2e would cancel
    return x * x, np.where(C < 0, below, C + 2 * x * x)


def _distance(e: Array, w: Array, S: Array, H: Array, r: Array) -> Array:
    """Find y = w - e from r = |R|/2, as the difference would lose digits near the turning point.

    In s = 2y√S/|R| it is the root of as³ + s² + bs = 1, whose coefficients neither overflow nor underflow.
    Newton's method approaches it from an upper bound.
    """
    root = np.sqrt(S)
    moves = (r > 0) & (root > 0)
    r, root = np.where(moves, r, 1.0), np.where(moves, root, 1.0)
    a, b = r / (root * root * root), np.minimum(H / r * (H / root), 1e300)
    s = np.minimum((np.abs(w - e) + 1e-15 * w) * (root / r), 1.0)
    s = np.minimum(s, 1 / np.maximum(b, 1.0))
    for _ in range(NEWTON):
        s = s - (s * (s * (a * s + 1) + b) - 1) / (s * (3 * a * s + 2) + b)
    return np.maximum(s * (r / root), 0.0)


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return ab and its rounding error (Dekker)."""
    total = a * b
    a_high, b_high = SPLIT * a - (SPLIT * a - a), SPLIT * b - (SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    return total, ((a_high * b_high - total) + a_high * b_low + a_low * b_high) + a_low * b_low


def _two_products(a: Array, a_rest: Array, c: Array, b: Array, b_rest: Array, d: Array) -> Array:
    """Return ac + bd, rounded only once, for a and b that are given as sums of two parts."""
    (ac, ac_rest), (bd, bd_rest) = _product(a, c), _product(b, d)
    total, rest = _sum(ac, bd)
    return np.asarray(total + (rest + ((ac_rest + bd_rest) + (a_rest * c + b_rest * d))))


def _time(y: Array, S: Array, H: Array) -> Array:
    """Return q(y): the time from y to the blow-up for y ≥ H, and from the turning point to y for y ≤ H."""
    from scipy.special import elliprf

    y = np.where(y < H, H * (H / y), y)
    ratio = H / y
    return np.asarray(elliprf(y * (1 - ratio) ** 2, y + S + H * ratio, y * (1 + ratio) ** 2))


def _beyond(z: Array, S: Array, H: Array) -> Array:
    """Find y ≥ H with q(y) = z for 0 < z ≤ Q: by Jacobi's functions, and the last bits by Newton's method."""
    from scipy.special import ellipj

    wide = 2 * H < S
    scale = np.where(wide, S + 2 * H, 4 * H)
    m = np.where(wide, (S - 2 * H) / (S + 2 * H), (2 * H - S) / (4 * H))
    v = z * np.sqrt(scale)
    sn, cn, dn, _ = ellipj(v, np.where(np.isfinite(m), m, 0.0))
    y = scale / 4 * ((np.where(wide, dn, 1.0) + cn) / sn) ** 2
    y = np.where(v < 1e-6, 1 / z**2, y)
    for _ in range(2):
        slope = 0.5 / np.sqrt(y + S + H * (H / y))  # -dq / d(log y)
        step = (_time(y, S, H) - z) / slope
        y = np.where(np.isfinite(step), np.maximum(y * np.exp(np.clip(step, -1, 1)), H), y)
    return np.asarray(y)
