"""Pair forces whose kernels are tables: the features of a force law that is linear in its constants.

With s_a the pair sums x_i + x_j of a training set (or the points themselves), the features are the forces

* ``w Σ_b t(|s_a - s_b|) (s_a - s_b)/|s_a - s_b|`` of each function t of the distance,
* ``w Σ_b t(θ_ab) s_b/|s_b|`` of each function t of the angle between s_a and s_b, and of its jump, which is 1
  below 90 degrees and 0 above,
* ``w Σ_b [(π - θ) s_b + |s_b| sin θ s_a/|s_a|]``, the kernel of random layers of ReLU,
* ``t(|s_a|) s_a/|s_a|`` of each function t of the radius,

where all but the last are divided into the sum over b of the class of a and the sum over b of other classes,
with the weights w of `ParticleSystem`. What acts on a pair sum acts on both of its points.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from physics.checks import InputError, finite_array, number
from physics.jit import kernel
from physics.values import Array, Integers, Shown, Value, read_only


class Tables(NamedTuple):
    """Values of functions on uniform grids that begin at 0; beyond its grid a function is constant."""

    distance: Array
    """Functions of the distance, (n, functions)."""
    angle: Array
    """Functions of the angle from 0 to π, (n, functions)."""
    radius: Array
    """Functions of the radius |s|, (n, functions)."""
    longest: float
    """End of the grid of the distance."""
    farthest: float
    """End of the grid of the radius."""
    jump: bool
    """Whether there is a jump at 90 degrees."""
    layers: bool
    """Whether there is the kernel of random layers."""

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """Number of features of each block: distance, angle, jump, layers, all twice, and radius."""
        distance, angle, radius = (table.shape[1] for table in (self.distance, self.angle, self.radius))
        return 2 * distance, 2 * angle, 2 * int(self.jump), 2 * int(self.layers), radius


@dataclass(frozen=True, eq=False)
class PairKernels(Shown, Value):
    """Kernels of a pair force as tables on uniform grids, between which they are linear.

    On the point (or pair sum) a acts ``Σ_b [φ(|s_a - s_b|) (s_a - s_b)/|s_a - s_b| + ψ(θ_ab) s_b/|s_b|] +
    ρ(|s_a|) s_a/|s_a|``. Rows of a table are the kernel for different classes and that for the same class.

    Parameters
    ----------
    distance : array_like, shape (2, n), optional
        Values of φ at n ≥ 2 distances from 0 to `longest`; beyond, φ is constant. Positive is repulsion.
    angle : array_like, shape (2, n), optional
        Values of ψ at n ≥ 2 angles from 0 to π.
    radius : array_like, shape (n,), optional
        Values of ρ at n ≥ 2 radii from 0 to `farthest`; beyond, ρ is constant. Positive is outwards.
    longest, farthest : float, default 1.0
        Ends of the grids.
    jump : array_like, shape (2,), default (0, 0)
        What is added to ψ below 90 degrees.
    layers : array_like, shape (2,), default (0, 0)
        Factors of ``Σ_b [(π - θ) s_b + |s_b| sin θ s_a/|s_a|]``, the force of random layers of ReLU.

    Raises
    ------
    InputError
        If a table has another shape or is not finite, or an end is not positive.

    Examples
    --------
    >>> import numpy as np, physics
    >>> from physics.particles.tabulated import PairKernels
    >>> spring = PairKernels(distance=[[0.0, -5.0]] * 2, longest=5.0)
    >>> physics.PairForces(spring, tokens=2, dim=1).forces([[0.0], [3.0]]).round(9).tolist()
    [[3.0], [-3.0]]
    """

    distance: Any = None
    angle: Any = None
    radius: Any = None
    longest: float = 1.0
    farthest: float = 1.0
    jump: Any = (0.0, 0.0)
    layers: Any = (0.0, 0.0)

    def __post_init__(self) -> None:
        for name in ("longest", "farthest"):
            number(name, getattr(self, name), above=0.0)
        shapes = {"distance": (2, None), "angle": (2, None), "radius": (None,), "jump": (2,), "layers": (2,)}
        for name, shape in shapes.items():
            if getattr(self, name) is None:
                continue
            table = finite_array(name, getattr(self, name), ndim=len(shape))
            if table.shape[0] != (shape[0] or table.shape[0]) or table.shape[-1] < 2:
                need = str(shape).replace("None", "n")
                raise InputError(f"{name} must have the shape {need} with n of at least 2, got {table.shape}")
            self._set(**{name: read_only(table)})

    @cached_property
    def tables(self) -> Tables:
        """The tables in the form of the kernels, with a function for each kind of classes."""
        empty = np.zeros((2, 0))
        rows = (self.distance, self.angle, None if self.radius is None else self.radius[None])
        distance, angle, radius = (  # copies, as a table that is read-only would be another type to compile
            np.array(empty if row is None else row.T, np.float64, order="C") for row in rows
        )
        jump, layers = bool(np.any(self.jump)), bool(np.any(self.layers))
        return Tables(distance, angle, radius, self.longest, self.farthest, jump, layers)

    @cached_property
    def constants(self) -> Array:
        """The factor of each feature, (features,): the first function acts on different classes."""
        by_class = np.array([1.0, 0.0, 0.0, 1.0])
        blocks = (by_class, by_class, self.jump, self.layers, np.ones(1))
        parts = [block[:count] for block, count in zip(blocks, self.tables.counts, strict=True)]
        return np.concatenate(parts)


class Pairs(NamedTuple):
    """Pair sums of several training sets of one size P, each with the tokens and the class of its pairs."""

    first: Integers
    """Token i of each pair, (sets, P)."""
    second: Integers
    """Token j of each pair, (sets, P), or -1 if the point i takes the place of a pair sum."""
    label: Integers
    """Class of each pair, (sets, P)."""
    weights: Array
    """Weights of other classes and of the same class, (sets, 2)."""


@kernel()
def _interpolate(table: Array, place: float, values: Array) -> None:
    """Write the functions (n, functions) at a place, in units of the grid's spacing, to `values`."""
    last = table.shape[0] - 1
    if place >= last:
        for k in range(table.shape[1]):  # a slice would compile its error of shapes, which takes seconds
            values[k] = table[last, k]
        return
    below = int(place)
    part = place - below
    for k in range(table.shape[1]):
        values[k] = table[below, k] + part * (table[below + 1, k] - table[below, k])


@kernel(parallel=True, rows=lambda points, *_: len(points), least=2)
def features(points: Array, member: Integers, pairs: Pairs, tables: Tables, out: Array) -> None:
    """Write the features (frames, tokens, dim, K) of points (frames, tokens, dim).

    `member` (frames,) is the training set of each frame. The blocks of features are those of
    `Tables.counts`, in each block the sums over other classes first.
    """
    for frame in prange(len(points)):
        _frame(points[frame], member[frame], pairs, tables, out[frame])


@kernel()
def _frame(x: Array, which: int, pairs: Pairs, tables: Tables, out: Array) -> None:
    """Write the features (tokens, dim, K) of one frame."""
    first, second, label = pairs.first[which], pairs.second[which], pairs.label[which]
    weights = pairs.weights[which]
    dim = x.shape[1]
    count = first.size
    distances, angles, radii = tables.distance.shape[1], tables.angle.shape[1], tables.radius.shape[1]
    at_angle = 2 * distances
    at_jump = at_angle + 2 * angles
    at_layers = at_jump + (2 if tables.jump else 0)
    at_radius = at_layers + (2 if tables.layers else 0)
    features = at_radius + radii
    per_distance = (tables.distance.shape[0] - 1) / tables.longest
    per_radius = (tables.radius.shape[0] - 1) / tables.farthest
    per_angle = (tables.angle.shape[0] - 1) / math.pi
    turning = angles > 0 or tables.layers
    s, norm = np.empty((count, dim)), np.empty(count)
    for a in range(count):
        square = 0.0
        for d in range(dim):
            s[a, d] = x[first[a], d] + (x[second[a], d] if second[a] >= 0 else 0.0)
            square += s[a, d] * s[a, d]
        norm[a] = math.sqrt(square)
    on = np.zeros((count, dim, features))  # the features on each pair sum
    values = np.empty(max(distances, angles, radii, 1))
    for a in range(count):
        for b in range(a):
            same = 1 if label[a] == label[b] else 0
            weight = weights[same]
            square = dot = 0.0
            for d in range(dim):
                gap = s[a, d] - s[b, d]
                square += gap * gap
                dot += s[a, d] * s[b, d]
            if distances and square > 0.0:
                r = math.sqrt(square)
                _interpolate(tables.distance, r * per_distance, values)
                start = same * distances
                for d in range(dim):
                    along = weight * (s[a, d] - s[b, d]) / r
                    for k in range(distances):
                        push = along * values[k]
                        on[a, d, start + k] += push
                        on[b, d, start + k] -= push
            if norm[a] == 0.0 or norm[b] == 0.0:
                continue
            cosine = min(1.0, max(-1.0, dot / (norm[a] * norm[b])))
            angle = math.acos(cosine) if turning else 0.0
            if angles:
                _interpolate(tables.angle, angle * per_angle, values)
                start = at_angle + same * angles
                for d in range(dim):
                    from_a, from_b = weight * s[a, d] / norm[a], weight * s[b, d] / norm[b]
                    for k in range(angles):
                        on[a, d, start + k] += values[k] * from_b
                        on[b, d, start + k] += values[k] * from_a
            if tables.jump and dot > 0.0:
                for d in range(dim):
                    on[a, d, at_jump + same] += weight * s[b, d] / norm[b]
                    on[b, d, at_jump + same] += weight * s[a, d] / norm[a]
            if tables.layers:
                sine = math.sqrt(1.0 - cosine * cosine)
                for d in range(dim):
                    ua, ub = s[a, d] / norm[a], s[b, d] / norm[b]
                    on[a, d, at_layers + same] += weight * norm[b] * ((math.pi - angle) * ub + sine * ua)
                    on[b, d, at_layers + same] += weight * norm[a] * ((math.pi - angle) * ua + sine * ub)
    out[:] = 0.0
    for a in range(count):
        if radii and norm[a] > 0.0:
            _interpolate(tables.radius, norm[a] * per_radius, values)
            for d in range(dim):
                for k in range(radii):
                    on[a, d, at_radius + k] = values[k] * s[a, d] / norm[a]
        if tables.layers:  # a pair sum meets itself, at the angle 0
            for d in range(dim):
                on[a, d, at_layers + 1] += weights[1] * math.pi * s[a, d]
        for d in range(dim):
            for k in range(features):
                out[first[a], d, k] += on[a, d, k]
        if second[a] >= 0:
            for d in range(dim):
                for k in range(features):
                    out[second[a], d, k] += on[a, d, k]
