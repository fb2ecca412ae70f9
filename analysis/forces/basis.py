"""The terms of a force law: functions of distance, angle and radius, and the laws of the papers by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from physics.checks import choice, flag, number, whole_number
from physics.errors import InputError
from physics.particles.tabulated import Tables

Array = NDArray[np.float64]
Named = Literal["musat", "screened", "harmonic", "arccos"]
CLASSES = ("different classes", "same class")
GRID, FINE = 513, 8193
"""Numbers of values of a tabulated function of the angle or the radius, and of the distance."""
RADIAL = 8
"""Number of functions of the one-body law to which each law is compared."""
SCREENING = {"sigma": 1.0, "xi": 0.7}
"""Where the search for the two ranges of the screened law begins, in length scales."""


@dataclass(frozen=True)
class Basis:
    """Free functions of which a force law is made, all of them with free constants.

    Parameters
    ----------
    distance : int, default 14
        Number of functions of the distance r of two pair sums, at least 5 or 0, for pair sums of the same
        class and of different classes each: the softened ``r/(r² + ε²)``, and cubic splines whose knots grow
        from the softening ε on.
    angle : int, default 9
        Number of functions of the angle between two pair sums, along the second of them, at least 5 or 0, for
        each kind: cubic splines and, with `jump`, a step at 90 degrees.
    radial : int, default 8
        Number of cubic splines in the length of a pair sum, along itself: the one-body term. At least 4 or 0.
    jump : bool, default True
        Whether a function of the angle is 1 below 90 degrees and 0 above.
    softening : float, default 0.1
        Length ε > 0, in units of the root mean square of the coordinates.

    Raises
    ------
    InputError
        If a number is out of its range, or there is no function at all.

    Examples
    --------
    >>> import analysis.forces
    >>> analysis.forces.Basis(distance=10, angle=0).distance
    10
    """

    distance: int = 14
    angle: int = 9
    radial: int = RADIAL
    jump: bool = True
    softening: float = 0.1

    def __post_init__(self) -> None:
        flag("jump", self.jump)
        number("softening", self.softening, above=0.0)
        for name, least in (("distance", 5), ("angle", 5), ("radial", 4)):
            count = whole_number(name, getattr(self, name), 0)
            if 0 < count < least:
                raise InputError(f"{name} must be 0 or at least {least} functions, got {count}")
        if not self.distance + self.angle + self.radial:
            raise InputError("distance, angle and radial must not all be 0, as a law needs a function")


class Extent(NamedTuple):
    """Between which distances and which radii the pair sums lie, in units of the size."""

    nearest: float
    innermost: float
    longest: float
    farthest: float


class Terms(NamedTuple):
    """A force law up to its constants: tables of functions, and the terms as sums of their features."""

    tables: Tables
    mix: Array
    """Each term as a sum of features, (features, terms), for other weights of the classes see `weighted`."""
    names: tuple[str, ...]
    weighted: bool = True
    """Whether sums over a class and over the others are weighted as in `ParticleSystem`, or equally."""

    def block(self, name: str) -> slice:
        """Return where the features of a block begin and end: "distance", "angle", "jump", …, "radius"."""
        ends = np.cumsum([0, *self.tables.counts])
        place = ("distance", "angle", "jump", "layers", "radius").index(name)
        return slice(int(ends[place]), int(ends[place + 1]))


def checked_basis(basis: Any) -> Basis | Named:
    """Return a basis, or the name of one; anything else is an `InputError`."""
    if isinstance(basis, Basis):
        return basis
    if not isinstance(basis, str):
        raise InputError(f"basis must be a Basis or one of {get_args(Named)}, got {type(basis).__name__}")
    choice("basis", basis, get_args(Named))
    return basis  # type: ignore[return-value]


def terms_of(basis: Basis | Named, extent: Extent, classes: int, ranges: Sequence[float] = ()) -> Terms:
    """Return the terms of a basis for pair sums of an extent; 0 classes mean that all are different.

    `ranges` are σ and ξ of the screened law. The radial splines of `Basis` come last in the tables of every
    basis, whether or not the law has terms of them: they are the one-body law.
    """
    if isinstance(basis, Basis):
        return _free(basis, extent, by_class=classes > 0)
    softening, reach = Basis().softening, extent[2:]
    r = np.linspace(0.0, reach[0], FINE)
    attraction, repulsion = r / np.sqrt(r**2 + softening**2), r / (r**2 + softening**2)
    radius = _splines(RADIAL, max(0.25, extent.innermost), reach[1], np.linspace(0.0, reach[1], GRID))
    angle = np.zeros((GRID, 0))
    if basis == "musat":
        tables = Tables(np.stack([attraction, repulsion], 1), angle, radius, *reach, True, False)
        names: tuple[str, ...] = ("attraction", "repulsion", "alignment")
        wanted = {("attraction", 2): -1.0, ("repulsion", 1): 1.0, ("alignment", 4): -1.0, ("alignment", 5): 1}
    elif basis == "screened":
        sigma, xi = ranges or SCREENING.values()
        functions = [r * np.exp(-(r**2) / (2 * sigma**2)), np.exp(-r / xi) * repulsion]
        tables = Tables(np.stack(functions, 1), angle, radius, *reach, False, False)
        names, wanted = ("attraction", "repulsion"), {("attraction", 2): -1.0, ("repulsion", 1): 1.0}
    elif basis == "harmonic":
        tables = Tables(r[:, None], angle, radius, *reach, False, False)
        names, wanted = ("attraction", "repulsion"), {("attraction", 1): -1.0, ("repulsion", 0): 1.0}
    else:
        tables = Tables(np.zeros((FINE, 0)), angle, radius, *reach, False, True)
        names = ("random layers",)
        wanted = {("random layers", 0): -1 / classes, ("random layers", 1): 1 - 1 / classes}
    mix = np.zeros((sum(tables.counts), len(names)))
    for (name, feature), factor in wanted.items():
        mix[feature, names.index(name)] = factor
    return Terms(tables, mix, names, weighted=basis != "arccos")


def _free(basis: Basis, extent: Extent, by_class: bool) -> Terms:
    reach = extent[2:]
    r = np.linspace(0.0, reach[0], FINE)
    radii = np.linspace(0.0, reach[1], GRID)
    distance = np.zeros((FINE, 0))
    if basis.distance:
        own = r / (r**2 + basis.softening**2)
        splines = _splines(basis.distance - 1, max(basis.softening, extent.nearest), reach[0], r)
        distance = np.column_stack([basis.softening * own, splines])
    jump = basis.jump and basis.angle > 0
    angles = np.linspace(0.0, np.pi, GRID)
    count = basis.angle - jump if basis.angle else 0
    angle = _splines(count, None, np.pi, angles) if count else np.zeros((GRID, 0))
    radius = _splines(basis.radial or RADIAL, max(0.25, extent.innermost), reach[1], radii)
    tables = Tables(distance, angle, radius, *reach, jump, False)
    names = [
        *(f"distance {k}, {kind}" for kind in CLASSES for k in range(distance.shape[1])),
        *(f"angle {k}, {kind}" for kind in CLASSES for k in range(angle.shape[1])),
        *(f"jump, {kind}" for kind in CLASSES * jump),
        *(f"radius {k}" for k in range(basis.radial)),
    ]
    mix = np.eye(sum(tables.counts), len(names))
    kept = [by_class or CLASSES[1] not in name for name in names]
    return Terms(tables, mix[:, kept], tuple(name for name, keep in zip(names, kept, strict=True) if keep))


def _splines(count: int, first: float | None, reach: float, grid: Array) -> Array:
    """Return `count` cubic B-splines on a grid; knots grow from `first`, or are even, up to `reach`."""
    inner = count - 4
    if first is None:
        knots = np.linspace(0.0, reach, inner + 2)[1:-1]
    else:
        knots = (
            np.geomspace(min(first, 0.4 * reach), 0.75 * reach, inner)
            if inner > 1
            else np.full(inner, 0.4 * reach)
        )
    padded = np.concatenate([np.zeros(4), knots, np.full(4, reach)])
    return np.asarray(BSpline.design_matrix(np.minimum(grid, reach), padded, 3).toarray(), np.float64)


def one_body(terms: Terms) -> Terms:
    """Return the one-body law of the same tables: the radial splines alone."""
    columns = terms.block("radius")
    features, count = sum(terms.tables.counts), terms.tables.counts[-1]
    mix = np.zeros((features, count))
    mix[columns] = np.eye(count)
    return terms._replace(mix=mix, names=tuple(f"radius {k}" for k in range(count)))
