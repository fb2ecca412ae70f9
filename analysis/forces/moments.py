"""Products of the forces of a law's terms with each other and with the measured force, frame by frame."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.forces.basis import Terms
from analysis.forces.frames import Frames, projected
from physics.particles.tabulated import features

Array = NDArray[np.float64]
BLOCK = 64
"""Frames whose features are in memory at once."""


class Moments(NamedTuple):
    """What a fit needs of each frame."""

    gram: Array
    """Products of the terms' projected forces, (frames, terms, terms)."""
    along: Array
    """Their products with the measured force, (frames, terms)."""
    square: Array
    """Squared norm of the measured force, (frames,)."""
    whole: Array
    """Squared norms of the terms' forces before the projection, (frames, terms)."""
    network: NDArray[np.int64]
    """Network of each frame, (frames,)."""

    def of(self, chosen: NDArray[Any]) -> "Moments":
        """Return the moments of some frames."""
        return Moments(*(array[chosen] for array in self))


def moments_of(frames: Frames, terms: Terms, *others: Terms) -> list[Moments]:
    """Return the moments of each law in frames; the laws share their tables, and so their features."""
    count, square = len(frames.points), (frames.force**2).sum(axis=1)
    mixes = [law.mix for law in (terms, *others)]
    results = []
    for terms_of_law in (mix.shape[1] for mix in mixes):
        gram, along, whole = (np.empty((count, *[terms_of_law] * axes)) for axes in (2, 1, 1))
        results.append(Moments(gram, along, square, whole, frames.network))
    pairs = (
        frames.pairs if terms.weighted else frames.pairs._replace(weights=np.ones_like(frames.pairs.weights))
    )
    for start in range(0, count, BLOCK):
        part = slice(start, start + BLOCK)
        raw = np.empty((*frames.points[part].shape, len(terms.mix)))
        features(np.ascontiguousarray(frames.points[part]), frames.network[part], pairs, terms.tables, raw)
        for moments, mix in zip(results, mixes, strict=True):
            forces = raw.reshape(len(raw), -1, len(mix)) @ mix
            moments.whole[part] = (forces**2).sum(axis=1)
            forces = projected(forces, frames.gauge[part])
            moments.gram[part] = forces.swapaxes(1, 2) @ forces
            moments.along[part] = (forces.swapaxes(1, 2) @ frames.force[part][..., None])[..., 0]
    return results


def directions(moments: Moments, constants: Array) -> Array:
    """Return the R² of the direction of the force in each frame, (frames,): cos², or 0 if it points away."""
    squared = np.einsum("i,mij,j->m", constants, moments.gram, constants, optimize=True)
    cosine = moments.along @ constants / np.sqrt(np.maximum(squared * moments.square, 1e-300))
    return np.asarray(np.maximum(cosine, 0.0) ** 2)
