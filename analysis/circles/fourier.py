"""Circles in embeddings: their Fourier signals (Ding et al. §2), planes and circularity, and components."""

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.classes import require_cyclic
from analysis.scaling import scaled
from physics.checks import InputError, misfit, one_embedding, point_sets, whole_number
from physics.trajectory import Trajectory
from physics.values import Array, Shown

if TYPE_CHECKING:
    import xarray

OBSERVABLE = "fourier_signals"
"""Name of the observable that holds signals, often at more steps than the embeddings."""


def fourier_signals(E: Any) -> "xarray.DataArray":
    """Return the Fourier signal of every frequency: the size of each circle of embeddings.

    Parameters
    ----------
    E : Trajectory, or array_like of shape (..., p, d)
        Finite embeddings ``E_n`` of the tokens n = 0 … p-1 in d dimensions; p is at least 3. If a trajectory
        has the observable `fourier_signals`, which may be recorded more often than the embeddings, this is
        taken, and the signals of later embeddings follow.

    Returns
    -------
    xarray.DataArray of float64, (run, step, frequency) or (..., frequency)
        Norm of the Fourier coefficient ``F_k = Σ_n exp(-2πi k n / p) E_n`` of each frequency k, with the
        coordinate "frequency" from 1 to ⌊p/2⌋; the coefficient of p - k is the conjugate of that of k. The
        paper's figures show this norm, and its text uses the square. Frames have the coordinates "step" and
        "time"; runs have those of `Trajectory.run_numbers`, and "member", their places in the trajectory.

    Raises
    ------
    InputError
        If `E` has another shape, or if an embedding is not finite, of which the message names the first frame
        of a trajectory. If a trajectory states another operation than addition modulo its number of tokens,
        was selected from other tokens, or records signals of another number of frequencies.

    References
    ----------
    Ding et al. 2024, Eq. 1.

    Examples
    --------
    >>> import analysis, numpy as np, physics
    >>> angle = 2 * np.pi * 2 * np.arange(7) / 7  # a circle of radius 1 and frequency 2
    >>> signals = analysis.fourier_signals(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    >>> signals.round(2).values.tolist(), signals.frequency[signals.argmax("frequency")].item()
    ([0.0, 4.95, 0.0], 2)
    >>> run = analysis.fourier_signals(physics.example("ding"))
    >>> run.sizes, bool(run.sel(frequency=7, step=1000) > run.sel(frequency=6, step=1000))
    (Frozen({'run': 1, 'step': 1005, 'frequency': 29}), True)
    """
    if not isinstance(E, Trajectory):
        return labelled(frequency_norms(E))
    require_cyclic(E)
    return trajectory_signals(E)


def trajectory_signals(trajectory: Trajectory, runs: Any = slice(None)) -> "xarray.DataArray":
    """Return the signals of some runs, by default all, of a trajectory whose operation has been checked."""
    steps, times, values = trajectory.steps, trajectory.times, signals_and_final(trajectory, runs=runs)[0]
    if OBSERVABLE in trajectory.observables:
        recorded = np.asarray(trajectory.observables[OBSERVABLE], np.float64)
        if recorded.shape[2:] != values.shape[2:]:
            need = f"have {values.shape[2]} frequencies for its {trajectory.tokens} tokens"
            raise misfit("fourier_signals of the trajectory", recorded, need)
        clock = trajectory.clock(OBSERVABLE)
        later = steps > clock[0][-1]
        steps, times = (np.append(*each) for each in ((clock[0], steps[later]), (clock[1], times[later])))
        values = np.concatenate([recorded, values[:, later]], axis=1)
    numbers = {"run": trajectory.run_numbers[runs], "member": ("run", np.arange(trajectory.runs)[runs])}
    return labelled(values[runs], {**numbers, "step": steps, "time": ("step", times)})


def labelled(values: Any, of: Any = None) -> "xarray.DataArray":
    """Return values (..., K) with the coordinate "frequency" from 1 to K, and those of runs and frames.

    These are given, or those of all frames of a trajectory; values of other embeddings have none.
    """
    import xarray

    if isinstance(of, Trajectory):
        of = {"run": of.run_numbers, "step": of.steps, "time": ("step", of.times)}
    coordinates = of if isinstance(of, dict) else {}
    axes = ("run", "step") if coordinates else tuple(f"axis_{k}" for k in range(np.ndim(values) - 1))
    frequencies = np.arange(1, np.shape(values)[-1] + 1)
    return xarray.DataArray(values, {"frequency": frequencies, **coordinates}, (*axes, "frequency"))


def frequency_norms(E: Any) -> NDArray[np.float64]:
    """Return the signals of embeddings (..., p, d) as a plain array: entry k - 1 belongs to frequency k."""
    array, exponent = scaled(point_sets("E", E), (-2, -1))
    coefficients = np.fft.rfft(array, axis=-2)[..., 1:, :]
    squares = (coefficients.real**2 + coefficients.imag**2).sum(axis=-1)
    return np.asarray(np.ldexp(np.sqrt(squares), exponent[..., 0]))


def signals_and_final(trajectory: Trajectory, runs: Any = slice(None)) -> tuple[Array, NDArray[Any]]:
    """Return the signals of all frames (runs, frames, K), and the last frame, from one pass.

    The last frame (runs, tokens, dim) has the number type of the trajectory, which is read block by block. An
    `InputError` names the first frame of `runs`, by default all, whose signals are not finite.
    """
    parts, final = [], np.empty(0)
    for _, block in trajectory.blocks():
        parts.append(_block_signals(block))
        final = block[:, -1].copy()
    signals = np.concatenate(parts, axis=1)
    numbers = np.arange(trajectory.runs)[runs]
    bad = np.argwhere(~np.isfinite(signals[numbers]).all(axis=2))
    if len(bad):
        first = f"step {trajectory.steps[bad[0, 1]]} of run {numbers[bad[0, 0]]}"
        got = f"NaN or infinity in {len(bad)} frames, the first of them {first}"
        raise InputError(f"positions must be finite, got {got}")
    return signals, final


def _block_signals(block: NDArray[Any]) -> NDArray[np.float64]:
    """Return the signals (runs, frames, tokens // 2) of a block (runs, frames, tokens, dim).

    Products with the real Fourier matrix are several times as fast as fast Fourier transforms, because there
    are few tokens, and often a prime number of them.
    """
    tokens = block.shape[2]
    count = tokens // 2
    angle = 2 * np.pi * np.arange(1, count + 1)[:, None] * np.arange(tokens) / tokens
    basis = np.concatenate([np.cos(angle), np.sin(angle)])
    signals = np.empty((*block.shape[:2], count))
    for run, frames in enumerate(block):
        for first in range(0, len(frames), 8):  # few enough frames to stay in the cache
            part = slice(first, first + 8)
            points, exponent = scaled(np.asarray(frames[part], np.float64), (-2, -1))
            waves = basis @ points
            squares = np.einsum("fkd,fkd->fk", waves, waves)
            norms = np.sqrt(squares[:, :count] + squares[:, count:])
            signals[run, part] = np.ldexp(norms, exponent[..., 0])
    return signals


def circularity(E: Any) -> "xarray.DataArray":
    """Return how close an embedding is to a circle, or an ellipse, in the plane of each frequency.

    Parameters
    ----------
    E : Trajectory, or array_like of shape (..., p, d)
        Finite embeddings of the tokens 0 … p-1 in d dimensions; p is at least 3.

    Returns
    -------
    xarray.DataArray of float64, (..., frequency)
        For each frequency k = 1 … ⌊p/2⌋, ``c_k = 2 |Σ_j X_j e^{2πi jk/p}|² / (p Σ_j X_j²)``, from 0 to 1.
        Here X_j is the projection of token j on the plane of frequency k (see `frequency_plane`), and squares
        are summed over both axes of the plane. c_k is 1 if the plane holds only an ellipse of frequency k,
        and 0 if the embedding has no signal at k. For k = p/2 the plane is a line, and the factor is 1.

    Raises
    ------
    InputError
        If `E` is not finite or has another shape.

    References
    ----------
    Ding et al. 2024, Eq. 5, after Zhong et al. 2023. The paper does not say along which axis X_j is taken. A
    single axis would make c_k depend on the phase of the circle, so the sum over both is used.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> angle = 2 * np.pi * 2 * np.arange(7) / 7
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> analysis.circularity(circle).sel(frequency=2).round(6).item()
    1.0
    """
    array = scaled(point_sets("E", E), (-2, -1))[0]
    p = array.shape[-2]
    coefficients = np.fft.rfft(array, axis=-2)[..., 1:, :]
    spans = np.stack([coefficients.real, coefficients.imag], axis=-1)
    left, values, _ = np.linalg.svd(spans, full_matrices=False)
    strong = values > 1e-9 * np.maximum(values[..., :1], 1e-300)
    axes = left * strong[..., None, :]
    inside = np.zeros(coefficients.shape[:-1])
    for axis in range(axes.shape[-1]):
        inside += (np.einsum("...nd,...kd->...kn", array, axes[..., axis]) ** 2).sum(axis=-1)
    energy = (np.abs(coefficients) ** 2).sum(axis=-1)
    weight = np.full(p // 2, 2.0)
    if p % 2 == 0:
        weight[-1] = 1.0
    # If a frequency is absent, its signal is a rounding error and not a circle.
    absent = energy <= 1e-24 * np.sum(array**2, axis=(-2, -1))[..., None] * p
    return labelled(np.where(absent, 0.0, weight * energy / np.where(inside > 0, p * inside, 1.0)), E)


@dataclass(frozen=True)
class Plane(Shown):
    """Projection of an embedding on the plane of one frequency, which `frequency_plane` returns.

    Attributes
    ----------
    points : ndarray of float64, shape (p, 2)
        Coordinates of the p tokens in the plane, relative to their mean.
    axes : ndarray of float64, shape (2, d)
        Orthonormal axes of the plane in the d dimensions of the embedding; the first is the longer one of the
        ellipse. The second is 0 if the plane is a line, as for d = 1 and for the frequency p/2. The axes have
        no meaning if the embedding has no signal at the frequency.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> angle = 2 * np.pi * 2 * np.arange(7) / 7
    >>> circle = np.stack([np.cos(angle), np.sin(angle), np.ones(7)], axis=1)
    >>> np.hypot(*analysis.frequency_plane(circle, 2).points.T).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    points: Array
    axes: Array


def frequency_plane(E: Any, frequency: int) -> Plane:
    """Project an embedding on the plane of one of its circles, to draw this circle.

    The plane of frequency k is spanned by the real and the imaginary part of the Fourier coefficient
    ``F_k = Σ_n exp(-2πi k n / p) E_n``, where E_n is the embedding of token n.

    Parameters
    ----------
    E : array_like, shape (p, d)
        One finite embedding of the tokens 0 … p-1 in d dimensions; p is at least 3.
    frequency : int
        Frequency k of the circle, from 1 to ⌊p/2⌋.

    Returns
    -------
    Plane
        Coordinates of the tokens, and the axes of the plane.

    Raises
    ------
    InputError
        If `E` is not one finite embedding, or there is no such frequency.

    Examples
    --------
    >>> import analysis, physics
    >>> plane = analysis.frequency_plane(physics.example("ding").final[0], 11)
    >>> plane.points.shape, plane.axes.shape
    ((59, 2), (2, 128))
    """
    array = one_embedding("E", E)
    k = whole_number("frequency", frequency, 1, len(array) // 2)
    F = np.fft.rfft(scaled(array)[0], axis=0)[k]
    left, values, _ = np.linalg.svd(np.stack([F.real, F.imag], axis=1), full_matrices=False)
    axes = np.zeros((2, array.shape[1]))
    real = values > 1e-9 * max(values[0], 1e-300)
    axes[: len(values)][real] = left.T[real]
    return Plane((array - array.mean(axis=0)) @ axes.T, axes)


def circle_delta(frequency: int, p: int) -> int:
    """Return the difference Δ between tokens that are neighbors on the circle of a frequency.

    On this circle, the tokens n and n + Δ (mod p) are next to each other, because ``k Δ ≡ ±1 (mod p)``. Of
    the two solutions Δ and p - Δ, the smaller is returned.

    Parameters
    ----------
    frequency : int
        Frequency k of the circle, from 1 to ⌊p/2⌋.
    p : int
        Number of tokens, at least 3.

    Returns
    -------
    int
        Δ, from 1 to ⌊p/2⌋.

    Raises
    ------
    InputError
        If an argument is out of its range, or k and p have a common factor g, which is impossible for a prime
        p. The circle then has p/g places with g tokens each, and no Δ passes through all of them.

    References
    ----------
    Ding et al. 2024, Fig. 3, footnote 3; Appendix F for composite p.

    Examples
    --------
    >>> import analysis
    >>> analysis.circles.circle_delta(2, 7)  # on the circle of frequency 2 the order is 0, 4, 1, 5, 2, 6, 3
    3
    """
    p = whole_number("p", p, 3)
    k = whole_number("frequency", frequency, 1, p // 2)
    shared = gcd(k, p)
    if shared > 1:
        raise InputError(f"frequency must have no factor in common with {p}, got {k}, divisible by {shared}")
    inverse = pow(k, -1, p)
    return min(inverse, p - inverse)


@dataclass(frozen=True)
class PrincipalComponents(Shown):
    """Principal components of an embedding of p tokens in d dimensions; `principal_components` returns them.

    Attributes
    ----------
    points : ndarray of float64, shape (p, n)
        Coordinates of the tokens along the n = min(p, d) components, the largest variance first.
    axes : ndarray of float64, shape (n, d)
        Orthonormal directions of the components.
    fractions : ndarray of float64, shape (n,)
        Fraction of the variance along each component; all 0 if the tokens coincide.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> angle = 2 * np.pi * 2 * np.arange(7) / 7
    >>> circle = np.stack([np.cos(angle), np.sin(angle), np.ones(7)], axis=1)
    >>> found = analysis.circles.principal_components(circle)
    >>> found.fractions.round(6).tolist(), found.frequency(0)
    ([0.5, 0.5, 0.0], 2)
    """

    points: Array
    axes: Array
    fractions: Array

    def frequency(self, pair: int) -> int:
        """Return the frequency with the largest Fourier signal in the plane of two successive components.

        Parameters
        ----------
        pair : int
            Number of the plane, from 0. It is spanned by the components 2·pair and 2·pair + 1, counted from
            0, or by the first of them if there is no second.

        Returns
        -------
        int
            Frequency, from 1 to ⌊p/2⌋ for p tokens.

        Raises
        ------
        InputError
            If `pair` is negative, or there is no component 2·pair.

        Examples
        --------
        >>> import analysis, physics
        >>> found = analysis.circles.principal_components(physics.example("ding").final[0])
        >>> [found.frequency(pair) for pair in range(3)]
        [11, 11, 13]
        """
        pair = whole_number("pair", pair, 0, (self.points.shape[1] - 1) // 2)
        return int(frequency_norms(self.points[:, 2 * pair : 2 * pair + 2]).argmax()) + 1


def principal_components(E: Any) -> PrincipalComponents:
    """Return the principal components of one embedding (Ding et al. 2024, Fig. 3).

    Unlike scikit-learn's `PCA`, this allows tokens that all coincide.

    Parameters
    ----------
    E : array_like, shape (p, d)
        One finite embedding of p tokens, at least 3, in d dimensions.

    Returns
    -------
    PrincipalComponents
        Coordinates, axes, and fractions of the variance.

    Raises
    ------
    InputError
        If `E` is not one finite embedding.

    Examples
    --------
    >>> import analysis, physics
    >>> found = analysis.circles.principal_components(physics.example("ding").final[0])
    >>> found.points.shape, found.frequency(0)
    ((59, 59), 11)
    """
    array = one_embedding("E", E)
    centered = array - array.mean(axis=0)
    left, values, right = np.linalg.svd(centered, full_matrices=False)
    squares = scaled(values)[0] ** 2
    total = float(squares.sum())
    return PrincipalComponents(left * values, right, squares / total if total else values)


def effective_dimension(E: Any) -> Array:
    """Return the number of dimensions in which an embedding spreads.

    Parameters
    ----------
    E : array_like, shape (..., p, d)
        Finite embeddings of p tokens, at least 3, in d dimensions.

    Returns
    -------
    ndarray of float64, shape (...)
        ``exp(S)`` with the entropy ``S = -Σ_i σ_i log σ_i``, where σ_i is the fraction of the variance along
        principal component i. It is 2 for one circle, 1 if all tokens coincide, and at most min(p - 1, d).

    Raises
    ------
    InputError
        If `E` is not finite or has another shape.

    References
    ----------
    Liu et al. 2022, §4.2 and Fig. 7.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> angle = 2 * np.pi * np.arange(7) / 7
    >>> float(analysis.effective_dimension(np.stack([np.cos(angle), np.sin(angle)], axis=1)).round(6))
    2.0
    """
    from scipy.stats import entropy  # takes half a second, which other functions need not wait for

    array = point_sets("E", E)
    centered = scaled(array - array.mean(axis=-2, keepdims=True), (-2, -1))[0]
    values = np.linalg.svd(centered, compute_uv=False) ** 2
    values[..., 0] += ~values.any(axis=-1)  # all tokens coincide
    return np.asarray(np.exp(entropy(values, axis=-1)))
