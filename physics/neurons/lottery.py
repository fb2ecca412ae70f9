"""The system `FourierLottery`: the frequencies of a neuron compete, in an exactly solved flow (He et al.)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from physics.checks import complex_array, finite_array, misfit, number, whole_number
from physics.errors import InputError, SimulationError
from physics.neurons.spectrum import neuron_spectrum
from physics.neurons.three_waves import ThreeWaves, first_divergence, invariants, three_waves
from physics.values import Array, Complex, Integers

LEAST = 1e-145
"""Smallest nonzero ratio |θ/ξ| that is accepted; the square of a smaller one would underflow in sums."""


@dataclass(frozen=True)
class FourierLottery:
    """The flow in which the frequencies of a quadratic neuron compete, while its weights are small.

    The network ``Σ_m W_out[m] (W_in[a, m] + W_in[b, m])²`` learns (a + b) mod p by cross-entropy on all
    pairs. While its logits are small, every frequency of every neuron moves independently. With the
    coefficients θ of its input weights and ξ of its output weights (see `analysis.neuron_spectrum`) and c =
    1/p,

        dθ/dt = 2c conj(θ) ξ,    dξ/dt = c θ².

    In general both become infinite at a finite time t*. The frequency with the smallest t* wins: it has
    outgrown the others when the logits become large, which ends the validity of this flow.

    Parameters
    ----------
    tokens : int, default 23
        Modulus p, at least 3.
    neurons : int, default 1
        Number of neurons of a run, at least 1; methods of θ and ξ, except `pack`, take any number.
    coupling : float, optional
        Constant c, greater than 0; by default 1/p, for the mean loss over pairs and a learning rate of 1.
        Time is the number of steps of gradient descent times the learning rate.
    scale : float, default 0.1
        Greater than 0; the initial weights are normal with the standard deviation scale/√p.

    Raises
    ------
    InputError
        If a value is out of its range.

    Notes
    -----
    As a system of `simulate`, a run has a point for each token, and the axes of point a are the real weights
    (W_in[a, 0], …, W_out[0, a], …). The mean weights do not move. The flow is exact for every step size.
    There are K = ⌊p/2⌋ frequencies. For even p the last one, p/2, has real θ and ξ and twice the coupling.

    ``C = |θ|² - 2|ξ|²`` and ``M = Im(θ² conj ξ)`` are conserved; `physics.neurons.three_waves` derives the
    solution. If θ = 0, nothing moves. If M = 0, Re(θ² conj ξ) < 0 and C ≤ 0, θ goes to 0 and t* is infinite.

    References
    ----------
    He, Wang, Chen and Yang 2026, arXiv 2602.16849, who integrate the flow by Euler steps. On their web page,
    dφ/dt and dψ/dt have the opposite sign, so that 2φ - ψ = 0 would be unstable. Their code is correct.

    Examples
    --------
    >>> import numpy as np, physics
    >>> race = physics.FourierLottery(11, neurons=3)
    >>> theta, xi = race.unpack(race.start(np.random.default_rng(0)))
    >>> race.blowup_times(theta, xi).shape, race.winners(theta, xi)
    ((3, 5), array([5, 4, 1]))
    >>> moving = physics.simulate(race, steps=10, step_size=2.0)
    >>> moving.positions.shape, sorted(moving.observables)
    ((1, 11, 11, 6), ['C', 'M', 'time_left'])
    """

    tokens: int = 23
    neurons: int = 1
    coupling: float | None = None
    scale: float = 0.1

    default_step_size: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        checked = {
            "tokens": whole_number("tokens", self.tokens, 3),
            "neurons": whole_number("neurons", self.neurons, 1),
            "scale": number("scale", self.scale, above=0.0),
        }
        if self.coupling is not None:
            checked["coupling"] = number("coupling", self.coupling, above=0.0)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def frequencies(self) -> int:
        """Number K = ⌊p/2⌋ of frequencies of the modulus p."""
        return self.tokens // 2

    @property
    def dim(self) -> int:
        """Number of axes of a token: an input weight and an output weight for each neuron."""
        return 2 * self.neurons

    def start(self, generator: np.random.Generator) -> Array:
        """Draw initial weights from the normal distribution with the standard deviation ``scale/√p``.

        Parameters
        ----------
        generator : numpy.random.Generator

        Returns
        -------
        ndarray of float64, shape (tokens, 2 neurons)
            Input weights of all neurons, and then their output weights.

        Examples
        --------
        >>> import numpy as np, physics
        >>> physics.FourierLottery(5, neurons=2).start(np.random.default_rng(0)).shape
        (5, 4)
        """
        return self.scale * self.tokens**-0.5 * generator.standard_normal((self.tokens, self.dim))

    def velocity(self, theta: Any, xi: Any) -> tuple[Complex, Complex]:
        """Return the time derivatives dθ/dt and dξ/dt of a state.

        Parameters
        ----------
        theta, xi : array_like, complex, shape (..., K)
            Fourier coefficients of the input (θ) and output (ξ) weights at frequencies 1 … K.

        Returns
        -------
        tuple of ndarray of complex128, shape (..., K)
            dθ/dt and dξ/dt, for t in steps times the learning rate.

        Raises
        ------
        InputError
            If shapes do not agree, a value is not finite, or a coefficient at p/2 of an even p is not real.

        Examples
        --------
        >>> import physics
        >>> physics.FourierLottery(3, coupling=1.0).velocity([2.0], [3.0])
        (array([12.+0.j]), array([4.+0.j]))
        """
        first, second = self._checked(theta, xi)
        return 2 * self._couplings * first.conj() * second, self._couplings * first**2

    def conserved(self, theta: Any, xi: Any) -> tuple[Array, Array]:
        """Return the two quantities of each frequency that do not change in time.

        Parameters
        ----------
        theta, xi : array_like, complex, shape (..., K)
            Coefficients as in `velocity`.

        Returns
        -------
        tuple of ndarray of float64, shape (..., K)
            C = |θ|² - 2|ξ|² and M = Im(θ² conj ξ).

        Raises
        ------
        InputError
            As in `velocity`.

        Examples
        --------
        >>> import physics
        >>> physics.FourierLottery(3).conserved([2.0], [1j])
        (array([2.]), array([-4.]))
        """
        return invariants(*self._checked(theta, xi))

    def blowup_times(self, theta: Any, xi: Any) -> Array:
        """Return the time t* at which each frequency would become infinite.

        Parameters
        ----------
        theta, xi : array_like, complex, shape (..., K)
            Coefficients as in `velocity`, at time 0.

        Returns
        -------
        ndarray of float64, shape (..., K)
            Times from this state, in steps times the learning rate; infinite if a frequency never diverges.

        Raises
        ------
        InputError
            As in `velocity`, or if a θ is smaller than 1e-145 of its ξ but not 0.

        Examples
        --------
        >>> import physics
        >>> physics.FourierLottery(3, coupling=1.0).blowup_times([2**0.5], [1.0]).round(6)  # dξ/dt = 2ξ²
        array([0.5])
        """
        waves = three_waves(*self._begun(theta, xi))
        return self._times(waves.ahead, waves.size)

    def winners(self, theta: Any, xi: Any) -> Integers:
        """Return the frequency of each neuron that diverges first, which wins the lottery.

        Parameters
        ----------
        theta, xi : array_like, complex, shape (..., K)
            Coefficients as in `velocity`, at time 0.

        Returns
        -------
        ndarray of int64, shape (...)
            Frequency with the smallest t*, from 1; 0 if none diverges.

        Raises
        ------
        InputError
            As in `blowup_times`.

        Examples
        --------
        >>> import physics
        >>> int(physics.FourierLottery(5).winners([1.0, 2.0], [1.0, 1.0]))
        2
        """
        times = self.blowup_times(theta, xi)
        return np.where(np.isfinite(times).any(axis=-1), times.argmin(axis=-1) + 1, 0)

    def solve(self, theta: Any, xi: Any, times: Any) -> tuple[Complex, Complex]:
        """Return the closed solution of the flow at any times.

        Parameters
        ----------
        theta, xi : array_like, complex, shape (..., K)
            State at time 0, such as (neurons, K) or (runs, neurons, K).
        times : array_like, shape (n,), or a number
            Times in any order, between the divergences in the past (below 0) and in the future.

        Returns
        -------
        tuple of ndarray of complex128, shape (n, ..., K)
            θ and ξ, without the first axis for a single time.

        Raises
        ------
        InputError
            As in `blowup_times`, or if a time is not between the divergences; the message names the neuron.

        Examples
        --------
        >>> import physics
        >>> theta, xi = physics.FourierLottery(3, coupling=1.0).solve([2**0.5], [1.0], times=0.25)
        >>> xi.round(6)  # 1/(1 - 2t)
        array([2.+0.j])
        """
        first, second = self._begun(theta, xi)
        clock = finite_array("times", times)
        if clock.ndim > 1:
            raise InputError(f"times must be a number or have the shape (n,), got {clock.shape}")
        waves = three_waves(first, second)
        if problem := self._beyond(waves, clock):
            raise InputError(f"times must be between the divergences of every state, got {problem}")
        return self._after(waves, clock.reshape(*clock.shape, *[1] * first.ndim))

    def advance(self, positions: Array, step_size: float, steps: int) -> None:
        """Move an ensemble in place along the exact solution over the time ``steps * step_size``.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, 2 neurons)
            Weights, which are overwritten.
        step_size : float
            Length of a step, in steps of gradient descent times the learning rate.
        steps : int

        Raises
        ------
        SimulationError
            If a frequency of a neuron diverges within this time.
        InputError
            If a weight is not finite, or a θ is smaller than 1e-145 of its ξ but not 0.

        Examples
        --------
        >>> import physics
        >>> race = physics.FourierLottery(3, coupling=1.0)
        >>> positions = race.pack([[2**0.5]], [[1.0]])[None]  # one run
        >>> race.advance(positions, step_size=0.05, steps=5)
        >>> race.unpack(positions)[1].real.round(6).item()  # 1/(1 - 2t)
        2.0
        """
        waves = three_waves(*self._begun(*self.unpack(positions)))
        time = np.array(step_size * steps)
        if problem := self._beyond(waves, time):
            raise SimulationError(f"the state diverges in a step of {problem}")
        moved = self.pack(*self._after(waves, time))
        positions[:] = positions.mean(axis=1, keepdims=True) + moved

    def observables(self, positions: Array) -> dict[str, Array]:
        """Measure the quantities that `simulate` records with every frame.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, 2 neurons)

        Returns
        -------
        dict of ndarray of float64, shape (runs, neurons, K) each
            "C" and "M" of `conserved`, and "time_left", the time until t*.

        Examples
        --------
        >>> import physics
        >>> race = physics.FourierLottery(3, coupling=1.0)
        >>> race.observables(race.pack([[2**0.5]], [[1.0]])[None])["time_left"].round(6).item()
        0.5
        """
        theta, xi = self.unpack(positions)
        C, M = self.conserved(theta, xi)
        return {"C": C, "M": M, "time_left": self.blowup_times(theta, xi)}

    def pack(self, theta: Any, xi: Any) -> Array:
        """Return the real weights that have given Fourier coefficients, and the mean zero.

        Parameters
        ----------
        theta, xi : array_like, complex, shape (..., neurons, K)
            Coefficients of the input and of the output weights.

        Returns
        -------
        ndarray of float64, shape (..., tokens, 2 neurons)
            Positions, as `simulate` takes and records them.

        Raises
        ------
        InputError
            As in `velocity`, or if there is another number of neurons.

        Examples
        --------
        >>> import physics
        >>> physics.FourierLottery(3).pack([[2.0]], [[0.0]])[:, 0].round(9).tolist()  # 2 cos(2πa/3)
        [2.0, -1.0, -1.0]
        """
        first, second = self._checked(theta, xi)
        if first.ndim < 2 or first.shape[-2] != self.neurons:
            wanted = f"(..., {self.neurons}, {self.frequencies})"
            raise InputError(f"theta and xi must have the shape {wanted}, got {first.shape}")
        turns = np.outer(np.arange(self.tokens), np.arange(1, self.frequencies + 1)) % self.tokens
        wave = np.exp(2j * np.pi / self.tokens * turns)
        both = np.concatenate([first, second], axis=-2)
        return np.ascontiguousarray((wave @ both.swapaxes(-1, -2)).real)

    def unpack(self, positions: Any) -> tuple[Complex, Complex]:
        """Return the Fourier coefficients of real weights, without their means: the inverse of `pack`.

        Parameters
        ----------
        positions : array_like, shape (..., tokens, 2 neurons)
            Weights, such as a frame of a trajectory.

        Returns
        -------
        tuple of ndarray of complex128, shape (..., neurons, K)
            θ and ξ.

        Raises
        ------
        InputError
            If `positions` are not finite or of another shape.

        Examples
        --------
        >>> import numpy as np, physics
        >>> weights = np.stack([np.cos(2 * np.pi * np.arange(3) / 3), np.zeros(3)], axis=1)
        >>> theta, xi = physics.FourierLottery(3).unpack(2 * weights)
        >>> theta.round(9) + 0
        array([[2.+0.j]])
        """
        array = finite_array("positions", positions)
        if array.shape[-2:] != (self.tokens, self.dim):
            raise misfit("positions", array, f"have the shape (..., {self.tokens}, {self.dim})")
        both: Complex = neuron_spectrum(array).theta.astype(np.complex128)
        return both[..., : self.neurons, :], both[..., self.neurons :, :]

    @property
    def _couplings(self) -> Array:
        """Coupling c of each frequency, (K,)."""
        couplings = np.full(self.frequencies, 1 / self.tokens if self.coupling is None else self.coupling)
        if self.tokens % 2 == 0:
            couplings[-1] *= 2  # because the waves of p/2 and -p/2 are the same
        return couplings

    def _after(self, waves: ThreeWaves, times: Array) -> tuple[Complex, Complex]:
        """Return θ and ξ at `times` that broadcast to them."""
        theta, xi = (waves.size * state for state in waves.at(times * self._rate(waves.size)))
        if self.tokens % 2 == 0:
            theta[..., -1].imag = xi[..., -1].imag = 0.0
        return theta, xi

    def _rate(self, size: Array) -> Array:
        """Return the units of the solution's time z that pass per unit of t, for its `size`."""
        return 2 * self._couplings * size

    def _times(self, z: Array, size: Array) -> Array:
        """Return times z of the solution in units of t; those that overflow are infinite."""
        with np.errstate(over="ignore", divide="ignore"):
            return z / self._rate(size)

    def _checked(self, theta: Any, xi: Any) -> tuple[Complex, Complex]:
        first, second = complex_array("theta", theta), complex_array("xi", xi)
        if first.shape != second.shape or first.shape[-1:] != (self.frequencies,):
            got = f"{first.shape} and {second.shape}"
            raise InputError(f"theta and xi must have the same shape (..., {self.frequencies}), got {got}")
        if self.tokens % 2 == 0 and (first[..., -1].imag.any() or second[..., -1].imag.any()):
            half = f"{self.frequencies} of {self.tokens} tokens"
            raise InputError(f"theta and xi must be real at frequency {half}, got complex values")
        return first, second

    def _begun(self, theta: Any, xi: Any) -> tuple[Complex, Complex]:
        """Return a state after checking that the flow can be solved from it."""
        first, second = self._checked(theta, xi)
        small = (np.abs(first) < LEAST * np.abs(second)) & (first != 0)
        if small.any():
            one = f"{np.abs(first[small][0]):g} for xi of {np.abs(second[small][0]):g}"
            raise InputError(f"theta must be 0 or at least {LEAST:g} times xi in size, got {one}")
        return first, second

    def _beyond(self, waves: ThreeWaves, times: Array) -> str:
        """Describe the neuron that diverges first if it does so within these times; otherwise return ""."""
        ends = self._times(waves.ahead, waves.size), -self._times(waves.behind, waves.size)
        return first_divergence(times, *ends)
