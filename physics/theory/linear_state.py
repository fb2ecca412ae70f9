"""The state of a `LinearNetwork` as one point set: conversion from and to the decoder and its points."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import finite_array
from physics.errors import InputError

Array = NDArray[np.float64]


def pack(self: Any, A: Any, b: Any, x: Any) -> Array:
    """Combine a decoder and points into one state.

    Parameters
    ----------
    A : array_like, shape (..., outputs, inputs)
        Matrix of the decoder.
    b : array_like, shape (..., outputs)
        Constant of the decoder.
    x : array_like, shape (..., points, inputs)
        Points that move: the inputs of the samples, or the embeddings of the symbols.

    Returns
    -------
    ndarray of float64, shape (..., tokens, dim)
        State, as `simulate` takes and records it.

    Raises
    ------
    InputError
        If shapes do not agree or a value is not finite.

    Examples
    --------
    >>> import physics
    >>> network = physics.LinearNetwork([[1.0], [2.0]], inputs=1)
    >>> network.pack([[3.0]], [4.0], [[5.0], [6.0]]).tolist()
    [[5.0, 0.0], [6.0, 0.0], [3.0, 4.0]]
    """
    A, b, x = finite_array("A", A), finite_array("b", b), finite_array("x", x)
    wanted = (self.outputs, self.inputs), (self.outputs,), (self.points, self.inputs)
    if (A.shape[-2:], b.shape[-1:], x.shape[-2:]) != wanted:
        raise InputError(
            f"A, b and x must end in the shapes {wanted}, got {A.shape}, {b.shape} and {x.shape}"
        )
    batch = np.broadcast_shapes(A.shape[:-2], b.shape[:-1], x.shape[:-2])
    state = np.zeros((*batch, self.tokens, self.dim))
    state[..., : self.points, :-1] = x
    state[..., self.points :, :-1] = A
    state[..., self.points :, -1] = b
    return state


def unpack(self: Any, state: Any) -> tuple[Array, Array, Array]:
    """Separate a state into the decoder and the points; this is the inverse of `pack`.

    Parameters
    ----------
    state : array_like, shape (..., tokens, dim)
        State, such as a frame of a trajectory.

    Returns
    -------
    A, b, x : ndarray of float64, shapes (..., outputs, inputs), (..., outputs) and (..., points, inputs)
        Matrix and constant of the decoder, and the points that move.

    Raises
    ------
    InputError
        If `state` is not finite or of another shape.

    Examples
    --------
    >>> import physics
    >>> network = physics.LinearNetwork([[1.0], [2.0]], inputs=1)
    >>> A, b, x = network.unpack(network.pack([[3.0]], [4.0], [[5.0], [6.0]]))
    >>> A.tolist(), b.tolist(), x.tolist()
    ([[3.0]], [4.0], [[5.0], [6.0]])
    """
    array = finite_array("state", state)
    if array.shape[-2:] != (self.tokens, self.dim):
        raise InputError(f"state must have the shape (..., {self.tokens}, {self.dim}), got {array.shape}")
    return (
        array[..., self.points :, :-1],
        array[..., self.points :, -1],
        array[..., : self.points, :-1],
    )
