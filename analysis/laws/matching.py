"""Fits of the generator whose exact solutions are nearest to noisy trajectories at uneven times."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from analysis.laws.flow import affine_solution
from analysis.laws.ode import ODEFit, linear_law
from analysis.laws.regressors import FitWarning
from analysis.laws.scores import Array, as_pieces
from analysis.scaling import scaled
from physics.errors import InputError
from physics.memory import require_memory


def match_trajectories(signals: Any, times: Any = None) -> ODEFit:
    """Fit `dx/dt = A x + b` to whole trajectories, instead of to their difference quotients.

    Noise biases difference quotients, and their error grows with the spacing of the frames. This fit has
    neither problem, but takes longer than `fit_trajectories`.

    Parameters
    ----------
    signals : array_like, shape (frames, K) or (runs, frames, K), or a sequence of arrays (frames_i, K)
        Trajectories of the K components, with at least 4 frames each. Up to a dozen components are practical,
        because the work grows with the fourth power of their number.
    times : array_like, shape (frames,), or a sequence with one for each trajectory, optional
        Increasing times of the frames. By default 0, 1, 2, ….

    Returns
    -------
    ODEFit
        Fitted law of kind "generator".

    Raises
    ------
    InputError
        If the data are invalid (see `fit_trajectories`), if there are more unknowns than values, or if there
        are too many components for the memory.

    Warns
    -----
    FitWarning
        If the trajectories do not determine A, b and the starts of the solutions.

    Notes
    -----
    The fit minimizes ``Σ |x(t_n; A, b, x₀) - x_n|²``, summed over all states x_n at times t_n, over A, b and
    the start x₀ of every trajectory. In a second round, components are weighted by the inverse size of their
    residuals, as for independent noise whose size differs between components. Data without noise give A and b
    up to rounding, unless they oscillate faster than half a turn between frames.

    Examples
    --------
    >>> import analysis, numpy as np
    >>> times = np.array([0.0, 0.5, 2.0, 3.0, 7.0])
    >>> fit = analysis.laws.match_trajectories(analysis.affine_solution([[-1.0]], [1.0], [0.0], times), times)
    >>> fit.A.round(6).tolist(), fit.b.round(6).tolist()
    ([[-1.0]], [1.0])
    """
    pieces = as_pieces(signals, times, minimum=4)
    size = pieces[0][1].shape[1]
    values = sum(x.size for _, x in pieces)
    unknowns = size * (size + 1 + len(pieces))
    if values < unknowns:
        raise InputError(f"signals must hold a value for each unknown, got {values} for {unknowns}")
    require_memory("the derivatives", 8 * values * unknowns, "thin the signals, or use fit_trajectories")
    # Units of time and of the components in which the problem is well scaled.
    unit = max(float(t[-1] - t[0]) for t, _ in pieces)
    units, exponents = scaled(np.concatenate([x for _, x in pieces]), 0)
    scale = np.ldexp(units.std(axis=0), exponents[0])
    scale[scale == 0] = 1.0
    clocks, truth = [(t - t[0]) / unit for t, _ in pieces], [x / scale for _, x in pieces]
    theta = _start(clocks, truth)
    weights = np.ones(size)
    found: Any = None
    for _ in range(2):
        found = least_squares(
            _residuals, theta, jac=_jacobian, args=(clocks, truth, weights), method="trf", x_scale="jac",
            ftol=1e-13, xtol=1e-13, gtol=1e-13, max_nfev=100,
        )  # fmt: skip
        theta = found.x
        spread = np.sqrt(np.mean(_residuals(theta, clocks, truth, np.ones(size)).reshape(-1, size) ** 2, 0))
        weights = 1 / np.maximum(spread, 1e-9)
        weights /= weights.max()
    _say_what_is_open(found.jac)
    matrix, _ = _unpack(theta, size)
    A, b = matrix[:, :-1] * scale[:, None] / scale / unit, matrix[:, -1] * scale / unit
    converged = np.full(size, bool(found.success))
    return linear_law("generator", A, b, pieces, alpha=np.zeros(size), converged=converged)


def _say_what_is_open(jacobian: Array) -> None:
    """Warn if the trajectories do not determine all unknowns."""
    columns = np.linalg.norm(jacobian, axis=0)
    values = np.linalg.svd(jacobian / np.where(columns > 0, columns, 1.0), compute_uv=False)
    open_ = int(np.count_nonzero(values < 1e-9 * values[0]))
    if open_:
        said = f"the trajectories do not determine {open_} of {len(columns)} unknowns; add trajectories"
        warnings.warn(said, FitWarning, stacklevel=3)


def _start(clocks: list[Array], truth: list[Array]) -> Array:
    """Return a first guess by least squares of ``x(t) = x₀ + A ∫x + b t``, which averages noise out."""
    size, runs = truth[0].shape[1], len(truth)
    rows = []
    for k, (t, x) in enumerate(zip(clocks, truth, strict=True)):
        area = np.zeros_like(x)
        area[1:] = np.cumsum((x[1:] + x[:-1]) / 2 * np.diff(t)[:, None], axis=0)
        which = np.zeros((len(t), runs))
        which[:, k] = 1
        rows.append(np.hstack([area, t[:, None], which]))
    found = np.linalg.lstsq(np.concatenate(rows), np.concatenate(truth), rcond=None)[0]
    return np.concatenate([found[: size + 1].T.ravel(), found[size + 1 :].ravel()])


def _unpack(theta: Array, size: int) -> tuple[Array, Array]:
    """Return A and b as a matrix (size, size + 1), and the starts (runs, size), from all unknowns."""
    matrix, starts = np.split(theta, [size * (size + 1)])
    return matrix.reshape(size, -1), starts.reshape(-1, size)


def _residuals(theta: Array, clocks: list[Array], truth: list[Array], weights: Array) -> Array:
    """Return the differences between the solutions and the data, times a weight of each component.

    `_unpack` separates the unknowns `theta`. `clocks` are the times (frames,) of each trajectory, and `truth`
    its states (frames, components). The result is a vector of all trajectories, each frame by frame.
    """
    size = len(weights)
    matrix, starts = _unpack(theta, size)
    values, V = np.linalg.eig(np.vstack([matrix, np.zeros(size + 1)]))
    parts = []
    with np.errstate(over="ignore", invalid="ignore"):
        for x0, t, x in zip(starts, clocks, truth, strict=True):
            if np.linalg.cond(V) < 1e4:  # the sum of exponentials is then correct to twelve digits
                w = np.linalg.solve(V, np.append(x0, 1.0))
                found = np.real((np.exp(values * t[:, None]) * w) @ V[:size].T)
            else:
                found = affine_solution(matrix[:, :-1], matrix[:, -1], x0, t)
            parts.append(((found - x) * weights).ravel())
    return np.concatenate(parts)


def _jacobian(theta: Array, clocks: list[Array], truth: list[Array], weights: Array) -> Array:
    """Return the derivatives of `_residuals`, whose arguments it takes, with respect to the unknowns.

    They are found by divided differences of the exponential (Daleckii-Krein).
    """
    size = len(weights)
    matrix, starts = _unpack(theta, size)
    M = np.vstack([matrix, np.zeros(size + 1)])
    values, V = np.linalg.eig(M)
    if np.linalg.cond(V) > 1e8:  # a tiny change makes the matrix diagonalizable
        values, V = np.linalg.eig(M + 1e-9 * np.linalg.norm(M) * np.random.default_rng(0).random(M.shape))
    inverse = np.linalg.inv(V)
    blocks = []
    for run, (x0, t) in enumerate(zip(starts, clocks, strict=True)):
        w = inverse @ np.append(x0, 1.0)
        # Φ_pq(t) = (e^{λp t} - e^{λq t}) / (λp - λq), without cancellation where they are close.
        middle = (values[:, None] + values) / 2 * t[:, None, None]
        half = (values[:, None] - values) / 2 * t[:, None, None]
        phi = np.exp(middle) * t[:, None, None] * _sinhc(half)
        right = np.einsum("npq,jq,q->npj", phi, V, w)
        left = V[:size, :, None] * inverse[None, :, :size]
        by_matrix = np.real(np.einsum("cpi,npj->ncij", left, right))
        power = np.real(np.einsum("cp,np,pj->ncj", V[:size], np.exp(values * t[:, None]), inverse[:, :size]))
        block = np.zeros((len(t), size, len(theta)))
        block[:, :, : matrix.size] = by_matrix.reshape(len(t), size, -1)
        first = matrix.size + run * size
        block[:, :, first : first + size] = power
        blocks.append((block * weights[:, None]).reshape(-1, len(theta)))
    return np.concatenate(blocks)


def _sinhc(z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return sinh(z) / z, without cancellation near 0."""
    small = np.abs(z) < 1e-3
    safe = np.where(small, 1.0, z)
    return np.where(small, 1 + z * z / 6, np.sinh(safe) / safe)
