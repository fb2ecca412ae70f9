"""Initial positions of particles, with the Python source that gives the same bits."""

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
    """Initial positions, which `simulate` draws from its seed or which are given.

    Attributes
    ----------
    seed : int
    positions : ndarray (tokens, dim), or None
        Given positions; None if `simulate` draws them.
    lines : tuple of str
        Python source after which the variable `name` holds the positions.
    name : str
    """

    seed: int = 0
    positions: Array | None = None
    lines: tuple[str, ...] = ()
    name: str = "E"

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Tokens and dimensions of given positions."""
        return None if self.positions is None else self.positions.shape


def start(kind: str, tokens: int, dim: int, seed: int, noise: float = 0.1) -> Start:
    """Return initial positions of one of `KINDS`.

    "normal" is what `simulate` draws; "circle" puts the tokens on a circle of the first two axes, "grid" on
    the sites of a lattice, in order; both with normal noise from the seed.

    Raises
    ------
    InputError
        If an argument is out of its range.
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
    """Return given initial positions (tokens, dim), which `lines` reproduce as the variable `name`.

    Raises
    ------
    InputError
        If the positions are not one finite point set.
    """
    array = finite_array("start", positions)
    if array.ndim != 2 or len(array) < 3 or array.shape[1] < 1:
        raise InputError(f"start must be one point set (tokens, dim) of at least 3, got {array.shape}")
    return Start(0, array, lines, name)
