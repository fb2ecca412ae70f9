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
from numpy.typing import NDArray

from physics.neurons import start_kernels as kernels

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


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
    rising: NDArray[np.bool_]
    ahead: Array
    behind: Array
    turned: Array

    @property
    def still(self) -> NDArray[np.bool_]:
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

    def _turn(self, y: Array, rising: NDArray[np.bool_]) -> Array:
        """Return 2 arg θ - arg ξ, which is between 0 and π times the sign of M."""
        R = 2 * np.sqrt(y) * np.hypot(np.sqrt(y * (y + self.S)), self.H)
        return np.asarray(np.arctan2(self.M, np.where(rising, R, -R)))

    def _place(self, z: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return y, and whether it grows, at times z after the initial state."""
        ahead, behind, turned = self.ahead - z, self.behind + z, self.turned + z
        before, after = ahead < self.Q, behind < self.Q
        distance = np.where(before, ahead, np.where(after, behind, np.abs(turned)))
        y = _beyond(np.minimum(distance, self.Q), self.S, self.H)
        far = before | after
        return np.where(far, y, self.H * (self.H / y)), np.where(far, before, turned >= 0)

    def _third(self, y: Array, rising: NDArray[np.bool_]) -> Array:
        """Return the integral of dz/w from y to the blow-up, through the turning point if y does not grow."""
        from scipy.special import elliprj

        e, v = self.lowest_w, self.lowest_u
        root = np.sqrt((e * (e - 2 * v)).astype(np.complex128))
        far = (self.S + root) / 2
        near = np.where(root.imag == 0, self.H * (self.H / far), far.conj())

        def integral(y: Array) -> Array:
            return np.asarray(elliprj(y + 0j, y + near, y + far, e + y + 0j)).real / 3

        return np.where(rising, integral(y), 2 * integral(np.zeros_like(e)) - integral(y))


def three_waves(theta: Complex, xi: Complex) -> ThreeWaves:
    """Return the exact solution of dθ/dt = 2c conj(θ) ξ, dξ/dt = c θ² through given initial states.

    `theta` and `xi` are complex128 (...), one state for each neuron and frequency.
    """
    found = _found(theta, xi, kernels.ROWS)
    size, M = found[kernels.SIZE], found[kernels.M]
    e, v = found[kernels.LOWEST_W], found[kernels.LOWEST_U]
    return ThreeWaves(
        theta / size,
        xi / size,
        size,
        found[kernels.Y],
        np.where((e == 0) | (v == 0), 0.0, M),
        e,
        v,
        v + e,
        found[kernels.H],
        found[kernels.Q],
        found[kernels.R] >= 0,
        found[kernels.AHEAD],
        found[kernels.BEHIND],
        found[kernels.TURNED],
    )


def blowups(theta: Complex, xi: Complex) -> tuple[Array, Array]:
    """Return the times at which given initial states become infinite, and their unit, float64 (...) each.

    They are `ahead` and `size` of `ThreeWaves`, whose other constants are not computed. `theta` and `xi` are
    complex128 (...).
    """
    found = _found(theta, xi, kernels.SIZE + 1)
    return found[kernels.AHEAD], found[kernels.SIZE]


def invariants(theta: Complex, xi: Complex) -> tuple[Array, Array]:
    """Return C = |θ|² - 2|ξ|² and M = Im(θ² conj ξ) of given states, float64 (...), each rounded only once.

    `theta` and `xi` are complex128 (...), one state for each neuron and frequency.
    """
    found = _found(theta, xi, kernels.M + 1)
    size = found[kernels.SIZE]
    return found[kernels.C] * size**2, found[kernels.M] * size**3


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


def _found(theta: Complex, xi: Complex, rows: int) -> Array:
    """Return the first `rows` quantities of the kernel for initial states (...), as (rows, ...)."""
    found = np.empty((rows, theta.size))
    first, second = (np.ascontiguousarray(part).reshape(-1) for part in (theta, xi))
    kernels.constants(first, second, found)
    return found.reshape(rows, *theta.shape)


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
