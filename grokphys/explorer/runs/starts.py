"""Initial positions of particles, with Python source that gives the same bits."""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import choice, finite_array, number, whole_number
from physics.errors import InputError

Array = NDArray[np.float64]
KINDS = ("normal", "circle", "grid")


@dataclass(frozen=True)
class Start:
    """Initial positions of particles: given ones, or those that `physics.simulate` draws from a seed.

    Attributes
    ----------
    seed : int
        Seed of the positions, or of their noise; 0 for positions that were read from a file or a network.
    positions : ndarray of float64, shape (tokens, dim), or None
        Given positions; None if `physics.simulate` draws them.
    lines : tuple of str
        Python source after which the variable `name` holds given positions; empty for drawn ones.
    name : str
        Name of the variable.
    """

    seed: int = 0
    positions: Array | None = None
    lines: tuple[str, ...] = ()
    name: str = "E"

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Numbers of tokens and dimensions of given positions; None for drawn ones."""
        return None if self.positions is None else self.positions.shape


def start(kind: str, tokens: int, dim: int, seed: int, noise: float = 0.1) -> Start:
    """Return initial positions of a kind.

    Parameters
    ----------
    kind : {"normal", "circle", "grid"}
        "normal" is what `physics.simulate` draws. "circle" puts the tokens, in order, on a circle of radius
        √2 around the origin in the first two axes, of which a single dimension has only the first. "grid"
        puts them, in order, on the sites of a lattice of spacing 1 around the origin. Both add normal noise.
    tokens, dim : int
        Numbers of tokens and dimensions.
    seed : int
        Seed of the positions or of the noise, at least 0.
    noise : float, default 0.1
        Standard deviation of the noise, at least 0; "normal" ignores it.

    Raises
    ------
    InputError
        If the kind, the seed or the noise is not allowed.
    """
    choice("start", kind, KINDS)
    seed, noise = whole_number("seed", seed, 0), number("noise", noise, 0.0)
    if kind == "normal":
        return Start(seed)
    shape = f"({tokens}, {dim})"
    jitter = f"E += {noise!r} * np.random.default_rng({seed}).standard_normal({shape})"
    E = np.zeros((tokens, dim))
    if kind == "circle":
        angle = 2 * np.pi * np.arange(tokens) / tokens
        E[:, :2] = np.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :dim]
        lines = [
            f"angle = 2 * np.pi * np.arange({tokens}) / {tokens}",
            f"E = np.zeros({shape})",
            f"E[:, :2] = np.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :{dim}]",
        ]
    else:
        side = ceil(round(tokens ** (1 / dim), 9))
        E = np.stack([np.arange(tokens) // side**k % side for k in range(dim)], axis=1) - (side - 1) / 2
        lines = [
            f"E = np.stack([np.arange({tokens}) // {side}**k % {side} for k in range({dim})], axis=1)"
            f" - {(side - 1) / 2!r}"
        ]
    E += noise * np.random.default_rng(seed).standard_normal((tokens, dim))
    return Start(seed, E, (*lines, jitter))


def given(positions: Any, lines: tuple[str, ...], name: str = "E") -> Start:
    """Return given initial positions as a start.

    Parameters
    ----------
    positions : array_like, shape (tokens, dim)
        Finite positions of at least 3 tokens in at least 1 dimension.
    lines : tuple of str
        Lines of Python source that reproduce the positions.
    name : str, default "E"
        Variable of this source that holds the positions.

    Raises
    ------
    InputError
        If the positions are not as described.
    """
    array = finite_array("start", positions)
    if array.ndim != 2 or len(array) < 3 or array.shape[1] < 1:
        raise InputError(
            "start must have the shape (tokens, dim) with at least 3 tokens and 1 dimension, "
            f"got {array.shape}"
        )
    return Start(0, array, lines, name)
