"""The weights of a `FourierLottery` as points of a trajectory, and their Fourier coefficients."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import finite_array
from physics.errors import InputError
from physics.neurons.spectrum import neuron_spectrum

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


def pack(self: Any, theta: Any, xi: Any) -> Array:
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


def unpack(self: Any, positions: Any) -> tuple[Complex, Complex]:
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
        raise InputError(f"positions must have the shape (..., {self.tokens}, {self.dim}), got {array.shape}")
    both: Complex = neuron_spectrum(array).theta.astype(np.complex128)
    return both[..., : self.neurons, :], both[..., self.neurons :, :]
