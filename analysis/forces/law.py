"""`ForceLaw`: a fitted law of pair forces, with its kernels, its scores beside baselines, and its system."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import physics
from analysis.forces.basis import CLASSES, Basis, Terms, one_body
from analysis.forces.frames import frames_of, sites_of
from analysis.forces.moments import directions, moments_of
from analysis.stats.intervals import Interval, mean
from physics.checks import choice
from physics.errors import InputError
from physics.particles.tabulated import PairKernels
from physics.values import Results, Shown

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
BY_CLASS = ("distance", "angle", "jump", "layers")
"""Blocks of features that are sums over different classes, and then over the same class."""


@dataclass(frozen=True, eq=False)
class Kernel(Shown):
    """A kernel of a force law as a curve.

    Attributes
    ----------
    grid : ndarray of float64, shape (n,)
        Distances or radii in units of the size of the embedding, or angles from 0 to π.
    values : ndarray of float64, shape (n,)
        Force, positive along s_a - s_b (repulsion), s_b (alignment) or s_a (outwards). That of "arccos" along
        s_b is in proportion to |s_b|, and is shown for |s_b| = 1.
    low, high : ndarray of float64, shape (n,)
        Bands of 95 % by resampling of networks, at each place; NaN without resamples.
    """

    grid: Array
    values: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class ForceScore(Shown):
    """How much of the force on networks a law explains, beside what one must know to read it.

    Attributes
    ----------
    direction : Interval
        R² of the direction: the squared cosine of predicted and measured force, 0 if they point apart, as a
        mean over frames and networks with Student's interval over networks.
    absolute : Interval
        R² of the force itself, with the amplitude of the fit.
    one_body : Interval
        R² of the direction of the one-body law that was fitted to the same networks.
    chance : float
        Expected R² of a random direction.
    ceiling : Interval or None
        Largest R² of the direction that any law of positions can reach, if the trajectories hold the force
        from a second draw of the layers as "gradient_2": the cosine of both forces, which is the squared
        cosine of each with their mean.
    """

    direction: Interval
    absolute: Interval
    one_body: Interval
    chance: float
    ceiling: Interval | None


@dataclass(frozen=True, eq=False)
class WindowFit:
    """Fit of a law in a window of the training."""

    steps: tuple[float, float]
    terms: Terms
    constants: Array
    resampled: Array
    ridge: float
    scale: float
    one_body: Array
    fitted: Interval
    """R² of the direction in the networks of the fit, with Student's interval over them."""
    ranges: tuple[float, ...] = ()
    """Ranges σ and ξ of a screened law, in units of the size."""


class ForceLaw(Shown):
    """A law of pair forces that `fit_forces` has fitted, with constants of its own in each window.

    Attributes
    ----------
    basis : Basis or str
        Functions of the law.
    fits : dict of str to WindowFit
        Constants, their resamples and the ridge, by the name of the window; "all" without windows.
    kernels : dict of str to dict of str to Kernel
        Curves with their bands, by window and name: "distance", "angle" and "radius", the first two for the
        same class and for different classes.

    Examples
    --------
    >>> import analysis.forces, physics
    >>> runs = physics.simulate(physics.ParticleSystem(7), runs=6, steps=20)
    >>> law = analysis.forces.fit_forces(
    ...     runs, "displacement", lag=1, basis="musat", project="axes", resamples=0
    ... )
    >>> sorted(law.kernels["all"])[-2:]
    ['distance, different classes', 'distance, same class']
    """

    def __init__(
        self,
        basis: Basis | str,
        fits: dict[str, WindowFit],
        options: Mapping[str, Any],
        size: tuple[int, ...],
        modulus: int | None,
    ) -> None:
        self.basis, self.fits = basis, fits
        self._options, self._size, self._modulus = dict(options), size, modulus

    def _shown(self) -> dict[str, str]:
        named = isinstance(self.basis, str)
        rows = {"basis": str(self.basis) if named else "free", "on": self._options["on"]}
        for window, fit in self.fits.items():
            rows[f"{window}: networks"] = str(fit.fitted.count)
            rows[f"{window}: R² of the direction"] = (
                f"{fit.fitted} in these networks; .score(others) tests it"
            )
            if named:
                rows |= {f"{window}: {name}": str(value) for name, value in self.constants(window).items()}
            else:
                rows[f"{window}: constants"] = f"{len(fit.constants)} of free functions, which .plot() draws"
        return rows

    @property
    def kernels(self) -> dict[str, dict[str, Kernel]]:
        """Curves of the law with their bands, by window and by name."""
        return Results({name: Results(_kernels(fit)) for name, fit in self.fits.items()})

    def constants(self, window: str | None = None) -> dict[str, Interval]:
        """Return the constants of a window by the names of their functions, with bands of 95 %.

        Parameters
        ----------
        window : str, optional
            Name of the window; it may be left out if there is one.

        Returns
        -------
        dict of str to Interval
            Constants; with an amplitude in each frame only their ratios mean something.
        """
        fit = self._fit(window)
        low, high = _band(fit.resampled)
        count = len(fit.resampled)
        rows = zip(fit.terms.names, fit.constants, low, high, strict=True)
        return Results({name: Interval(float(v), float(a), float(b), count) for name, v, a, b in rows})

    def score(self, held_out: Any, *, pairs: Any = None, target: Any = None) -> dict[str, ForceScore]:
        """Return how much of the force on other networks the law explains, window by window.

        Parameters
        ----------
        held_out : Trajectory or sequence of Trajectory
            Networks that were not fitted.
        pairs : array_like of int, optional
            Their pairs, as in `fit_forces`; by default those that the fit was given for all its runs.
        target : str or ndarray, optional
            Their force, as in `fit_forces`; by default what was fitted. Forces of your own must be given.

        Returns
        -------
        dict of str to ForceScore
            Scores by window.

        Raises
        ------
        InputError
            If the trajectories do not fit the law, or hold no frame of a window.
        """
        scores = Results()
        for name, rows in self._scored(held_out, pairs, target).items():
            network, ceiling = rows["network"], rows.get("ceiling")
            scores[name] = ForceScore(
                by_network(rows["direction"], network),
                _share(rows["residual"], rows["square"], network),
                by_network(rows["one_body"], network),
                float(rows["chance"].mean()),
                None if ceiling is None else by_network(ceiling, network),
            )
        return scores

    def frame_scores(self, held_out: Any, *, pairs: Any = None, target: Any = None) -> dict[str, Array]:
        """Return the R² of the direction of the force on other networks frame by frame, as a table.

        Parameters
        ----------
        held_out, pairs, target
            As in `score`.

        Returns
        -------
        dict of str to ndarray, shape (rows,)
            The columns "window", "network", "step", "direction", "one_body", "chance" and, if it was
            measured, "ceiling", as in `ForceScore`.

        Raises
        ------
        InputError
            As in `score`.
        """
        tables = self._scored(held_out, pairs, target)
        names = ["network", "step", "direction", "one_body", "chance"]
        names += ["ceiling"] * all("ceiling" in rows for rows in tables.values())
        columns = {name: np.concatenate([rows[name] for rows in tables.values()]) for name in names}
        return {"window": np.repeat(list(tables), [len(r["step"]) for r in tables.values()])} | columns

    def _scored(self, held_out: Any, pairs: Any, target: Any) -> dict[str, dict[str, Any]]:
        """Return scores and squares of each frame of other networks as columns, window by window."""
        given = {"pairs": pairs, "target": target}
        options = self._options | {name: value for name, value in given.items() if value is not None}
        for name, value in given.items():
            if value is None and np.ndim(options[name]) > 2:
                raise InputError(f"{name} must be given for held_out, as those of the fit are of its runs")
        frames = frames_of(held_out, **options)
        points = frames.points
        if points.shape[1:] != self._size:
            raise InputError(
                f"held_out must have the tokens and dim of the fit, {self._size}, got {points.shape[1:]}"
            )
        if frames.modulus != self._modulus:
            raise InputError(
                f"held_out must have the modulus of the fit, {self._modulus}, got {frames.modulus}"
            )
        tables = {}
        for name, fit in self.fits.items():
            part = frames.within(*fit.steps)
            if not len(part.points):
                raise InputError(f"held_out must hold a frame of the window {name}, got none")
            moments, body = moments_of(part, fit.terms, one_body(fit.terms))
            predicted = np.einsum("i,mij,j->m", fit.constants, moments.gram, fit.constants, optimize=True)
            residual = moments.square - 2 * fit.scale * (moments.along @ fit.constants)
            residual += fit.scale**2 * predicted
            freedom = part.force.shape[1] - np.rint((part.gauge**2).sum(axis=(1, 2)))
            tables[name] = {
                "network": part.network,
                "step": part.step,
                "direction": directions(moments, fit.constants),
                "one_body": directions(body, fit.one_body),
                "chance": 0.5 / freedom,
                "residual": residual,
                "square": moments.square,
            }
            if part.second_force is not None:
                dot = (part.force * part.second_force).sum(axis=1)
                norms = np.sqrt((part.force**2).sum(axis=1) * (part.second_force**2).sum(axis=1))
                tables[name]["ceiling"] = np.maximum(dot / np.maximum(norms, 1e-300), 0.0)
        return tables

    def system(
        self, window: str | None = None, *, pairs: Any = None, normalise: bool = True
    ) -> physics.PairForces:
        """Return the system of particles that move by the law, for `physics.simulate`.

        Parameters
        ----------
        window : str, optional
            Name of the window; it may be left out if there is one.
        pairs : array_like of int, shape (pairs, 2), optional
            Pairs with interacting sums, such as the training set of one network; by default all.
        normalise : bool, default True
            Whether every axis has zero mean and unit variance after each step. The law was fitted to frames
            in units of their size, so it means nothing for points of another size.

        Returns
        -------
        physics.PairForces
            System with as many tokens and dimensions as the networks of the fit. Its unit of time is that of
            the measured force, on average.
        """
        fit = self._fit(window)
        (tokens, dim), on = self._size, self._options["on"]
        sites = {} if on == "tokens" else {"pairs": pairs, "modulus": self._modulus}
        members = sites_of(tokens, **sites)
        weights = members.weights[0][:, None] if fit.terms.weighted else np.ones((2, 1))
        features = fit.scale * (fit.terms.mix @ fit.constants)
        tables, block = fit.terms.tables, fit.terms.block
        halves = {name: features[block(name)].reshape(2, -1) for name in BY_CLASS}
        kernels = PairKernels(
            distance=weights * (halves["distance"] @ tables.distance.T),
            angle=weights * (halves["angle"] @ tables.angle.T) if tables.angle.size else None,
            radius=tables.radius @ features[block("radius")],
            longest=tables.longest,
            farthest=tables.farthest,
            jump=weights[:, 0] * halves["jump"][:, 0] if tables.jump else (0.0, 0.0),
            layers=weights[:, 0] * halves["layers"][:, 0] if tables.layers else (0.0, 0.0),
        )
        return physics.PairForces(kernels, tokens, dim, on=on, normalise=normalise, **sites)

    def plot(self, window: str | None = None) -> "Figure":
        """Draw the kernels with their bands, those of all windows or of one.

        Parameters
        ----------
        window : str, optional
            Name of a window; by default all.

        Returns
        -------
        matplotlib.figure.Figure
            A panel each for the distance, the angle and the radius, as far as the law has them.
        """
        from analysis.plots.forces import show_kernels
        from analysis.plots.style import figure_of

        kernels = self.kernels if window is None else {window: _kernels(self._fit(window))}
        return figure_of(show_kernels(kernels)[0])

    def to_dataframe(self) -> "pandas.DataFrame":
        """Return all kernels as a table with the columns window, kernel, place, value, low and high."""
        import pandas

        parts = [
            pandas.DataFrame({"place": k.grid, "value": k.values, "low": k.low, "high": k.high}).assign(
                window=window, kernel=name
            )
            for window, kernels in self.kernels.items()
            for name, k in kernels.items()
        ]
        columns = ["window", "kernel", "place", "value", "low", "high"]
        return pandas.concat(parts, ignore_index=True)[columns]

    def _fit(self, window: str | None) -> WindowFit:
        if window is None and len(self.fits) == 1:
            return next(iter(self.fits.values()))
        choice("window", window, tuple(self.fits))
        return self.fits[str(window)]


def _band(values: Array) -> tuple[Array, Array]:
    known = values if len(values) else np.full((1, values.shape[1]), np.nan)
    low, high = np.quantile(known, [0.025, 0.975], axis=0)
    return low, high


def _kernels(fit: WindowFit) -> dict[str, Kernel]:
    """Return the curves of a fit by name; the table that a curve is drawn from has a function in each row."""
    terms, tables = fit.terms, fit.terms.tables
    features = terms.mix @ np.column_stack([fit.constants, *fit.resampled])  # (features, 1 + resamples)
    curves: dict[str, Kernel] = {}

    def add(name: str, grid: Array, values: Array) -> None:
        if np.any(values):
            curves[name] = Kernel(grid, values[:, 0], *_band(values[:, 1:].T))

    r = np.linspace(0.0, tables.longest, len(tables.distance))
    angles = np.linspace(0.0, np.pi, len(tables.angle))
    parts = {name: np.split(features[terms.block(name)], 2) for name in BY_CLASS}
    for kind in (1, 0):
        add(f"distance, {CLASSES[kind]}", r, tables.distance @ parts["distance"][kind])
        along = tables.angle @ parts["angle"][kind]
        if tables.jump:
            along = along + (angles < np.pi / 2)[:, None] * parts["jump"][kind]
        if tables.layers:
            along = along + (np.pi - angles)[:, None] * parts["layers"][kind]
        add(f"angle, {CLASSES[kind]}", angles, along)
    radii = np.linspace(0.0, tables.farthest, len(tables.radius))
    add("radius", radii, tables.radius @ features[terms.block("radius")])
    return curves


def by_network(values: Array, network: NDArray[np.int64]) -> Interval:
    """Return the mean of the frames of each network, as a mean over networks."""
    numbers, places = np.unique(network, return_inverse=True)
    return mean(np.bincount(places, values) / np.bincount(places, minlength=len(numbers)))


def _share(residual: Array, square: Array, network: NDArray[np.int64]) -> Interval:
    """Return the mean over networks of 1 - (residual sum of squares) / (sum of squares)."""
    places = np.unique(network, return_inverse=True)[1]
    return mean(1.0 - np.bincount(places, residual) / np.bincount(places, square))
