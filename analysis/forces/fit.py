"""`fit_forces`: least squares for the constants of a force law, with an amplitude in each frame."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from analysis.forces.basis import SCREENING, Basis, Extent, Named, Terms, checked_basis, one_body, terms_of
from analysis.forces.frames import ROUNDING, Frames, Projection, Sites, checked_windows, frames_of
from analysis.forces.law import ForceLaw, WindowFit, by_network
from analysis.forces.moments import Moments, directions, moments_of
from physics.checks import choice, number, whole_number
from physics.errors import InputError
from physics.seeds import Seed, generator

Array = NDArray[np.float64]
Amplitude = Literal["frame", "shared"]
FOLDS = 5
RIDGES = 10.0 ** np.arange(-9, 0)
"""Penalties among which cross-validation chooses, in units of the mean square of a standardized feature."""
ROUNDS, CHANGE = 200, 1e-7
"""Largest number of rounds of the alternation, and the change of R² at which it has converged."""
COLLINEAR = 1e-12
"""Smallest eigenvalue of the correlations of forces of terms that the data tell apart."""
SEARCHED = 300
"""Number of frames by which the ranges of the screened law are searched."""


def fit_forces(
    trajectories: Any,
    target: Any = "gradient",
    *,
    lag: int = 20,
    on: Sites = "pair sums",
    pairs: Any = None,
    modulus: int | None = None,
    basis: Basis | Named = Basis(),  # noqa: B008 (a frozen value)
    project: Projection = "shape",
    amplitude: Amplitude = "frame",
    windows: Any = None,
    ridge: float | None = None,
    resamples: int = 100,
    seed: Seed = 0,
) -> ForceLaw:
    """Fit a law of pair forces to the forces that act on embeddings, as they were recorded.

    On the pair sums ``s_a = x_i + x_j`` of the training set act ``f_a = Σ_b [φ(r) (s_a - s_b)/r + ψ(θ)
    s_b/|s_b|] + ρ(|s_a|) s_a/|s_a|``, with the distance r and the angle θ of s_a and s_b, and kernels φ and ψ
    of their own for the same class and for different classes. On each token acts what acts on its pair sums.
    The kernels are sums of functions with free constants.

    Parameters
    ----------
    trajectories : Trajectory, ndarray (runs, frames, tokens, dim), or list of these
        Networks or particles with the same numbers of tokens N and of dimensions D; networks are the runs of
        all of them. Frames count in units of their own size: centered and with a root mean square of 1.
    target : {"gradient", "displacement"} or ndarray (runs, frames, tokens, dim), default "gradient"
        The force: minus the recorded gradient, the displacement by `lag` steps, or forces of your own, of one
        trajectory. A gradient counts times the size of the points, displacements and your own forces by it.
        Particles that are normalised have their size after the first step: leave out their start.
    lag : int, default 20
        Number of steps of a displacement. One step of Adam is jitter, late in a training.
    on : {"pair sums", "tokens"}, default "pair sums"
        Between what the forces act. Tokens have no classes: all of them are different.
    pairs : array_like of int, shape (pairs, 2) or (runs, pairs, 2), optional
        Pairs of tokens with interacting sums; by default those of each network's training set.
    modulus : int, optional
        Pairs (i, j) and (k, l) are of one class if i + j = k + l modulo this number. By default it is what
        the trajectory records, or the number of tokens.
    basis : Basis or {"musat", "screened", "harmonic", "arccos"}, default Basis()
        Functions of the law. "musat" has the three terms of Musat, §5, "screened" ``-r exp(-r²/2σ²)`` in a
        class and ``exp(-r/ξ) r/(r² + ε²)`` between classes with the best σ and ξ, "harmonic" springs, and
        "arccos" ``Σ_b (δ_ab - 1/C) [(π-θ) s_b + |s_b| sin θ s_a/|s_a|]`` for C classes, the force of random
        layers of ReLU on embeddings.
    project : {"shape", "axes", "none"}, default "shape"
        What is taken from both forces before they are compared: their parts along translation, scale and
        rotation, along mean and scale of each axis (of runs that are normalised), or nothing.
    amplitude : {"frame", "shared"}, default "frame"
        Whether the force of each frame has an amplitude of its own, so that only its direction counts, or
        all frames of a window one scale.
    windows : mapping of str to (first, last), or sequence of (first, last), optional
        Steps of parts of the training, each of which has constants of its own. By default the whole.
    ridge : float, optional
        Penalty on standardized constants, at least 0. By default cross-validation over networks chooses it
        for a `Basis`, and it is 0 for a named law.
    resamples : int, default 100
        Number of resamples of networks for the bands of the kernels, which show how far networks differ at
        each place, and not the error of the splines or of the ridge. One network has no bands.
    seed : int or numpy.random.SeedSequence, default 0
        Seed of folds and resamples.

    Returns
    -------
    ForceLaw
        The law, with its kernels, scores on other networks and the system that moves by it.

    Raises
    ------
    InputError
        If an argument is invalid or does not fit the others, the trajectories hold no gradient or no training
        sets, there are too few networks or frames, or the data do not determine a function of the basis.

    Notes
    -----
    Weights of both kinds of pairs are those of `physics.ParticleSystem`. With an amplitude c in each frame,
    amplitudes and constants take turns in minimizing ``Σ |F/|F| - c (force of the law)|²``, which maximizes
    the mean R² of the direction. Springs between all pair sums, a one-body spring, or a constant force within
    classes have no part along shapes if all pairs are there, and a small one if most are: compare kernels of
    distance and radius up to a multiple of r. Never read a score without its baselines: decay alone explains
    0.65 of a late gradient that is not projected.

    Examples
    --------
    >>> import analysis.forces, physics
    >>> runs = physics.simulate(physics.ParticleSystem(7), runs=6, steps=20)
    >>> law = analysis.forces.fit_forces(
    ...     runs, "displacement", lag=1, basis="musat", project="axes", resamples=0
    ... )
    >>> law.score(runs)["all"].direction.estimate > 0.9
    True
    """
    basis = checked_basis(basis)
    if basis == "arccos" and on == "tokens":
        raise InputError("on must be 'pair sums' for the basis 'arccos', which acts on classes, got 'tokens'")
    choice("amplitude", amplitude, get_args(Amplitude))
    whole_number("resamples", resamples, 0)
    if ridge is not None:
        ridge = number("ridge", ridge, 0.0)
    options = {"target": target, "lag": lag, "on": on, "pairs": pairs, "modulus": modulus, "project": project}
    frames = frames_of(trajectories, **options)
    chosen = checked_windows(windows, frames.step)
    draws = generator(seed)
    fits = {}
    for name, (first, last) in chosen.items():
        part = frames.within(first, last)
        networks = np.unique(part.network)
        if ridge is None and isinstance(basis, Basis) and len(networks) < 2:
            raise InputError(
                "trajectories must hold at least 2 networks for cross-validation, got 1; pass a ridge"
            )
        extent = extent_of(part, basis)
        ranges = _ranges(part, extent) if basis == "screened" else ()
        terms = terms_of(basis, extent, part.classes, ranges)
        moments, body = moments_of(part, terms, one_body(terms))
        freedom = max(part.gauge.shape[1] - part.gauge.shape[2], 1)
        _require_determined(moments, terms, name, freedom, named=not isinstance(basis, Basis))
        used = ridge
        if used is None:
            used = _chosen_ridge(moments, amplitude, draws) if isinstance(basis, Basis) else 0.0
        constants = solve(moments, used, amplitude)
        numbers = np.searchsorted(networks, part.network)
        drawn = np.empty((resamples if len(networks) > 1 else 0, len(constants)))
        for k in range(len(drawn)):
            counts = np.bincount(draws.integers(len(networks), size=len(networks)), minlength=len(networks))
            drawn[k] = solve(moments, used, amplitude, counts[numbers].astype(float), constants)
        alone = solve(body, 1e-6, amplitude)
        scale = float((moments.along @ constants).sum())
        scale /= float(np.einsum("i,mij,j->", constants, moments.gram, constants, optimize=True))
        fitted = by_network(directions(moments, constants), part.network)
        fits[name] = WindowFit((first, last), terms, constants, drawn, used, scale, alone, fitted, ranges)
    return ForceLaw(basis, fits, options, frames.points.shape[1:], frames.modulus)


def extent_of(frames: Frames, basis: Basis | Named) -> Extent:
    """Return between which distances and radii the pair sums of some frames lie, for the grids of a law.

    Free functions end at the median of what frames reach, and begin to differ where some pairs are as near,
    so that the data determine all of them; laws by name end at the largest distance.
    """
    some = _some(frames, SEARCHED)
    nearest, innermost, spans, radii = [], [], [], []
    for points, network in zip(some.points, some.network, strict=True):
        first, second, label = (array[network] for array in frames.pairs[:3])
        sums = points[first] + np.where(second[:, None] >= 0, points[second], 0.0)
        gaps = np.sqrt(((sums[:, None] - sums) ** 2).sum(axis=-1))
        same = label[:, None] == label
        np.fill_diagonal(same, False)
        kinds = [gaps[kind] for kind in (same, ~same & ~np.eye(len(gaps), dtype=bool)) if kind.any()]
        nearest.append(max(kind.min() for kind in kinds))
        spans.append(kinds[0].max() if isinstance(basis, Basis) else 2 * gaps.max())
        lengths = np.sqrt((sums**2).sum(axis=-1))
        innermost.append(lengths.min())
        radii.append(lengths.max())
    middle = np.median if isinstance(basis, Basis) else np.max
    inner = [float(np.median(values)) for values in (nearest, innermost)]
    return Extent._make([*inner, float(middle(spans)), float(middle(radii))])


def _some(frames: Frames, most: int) -> Frames:
    """Return at most `most` frames, evenly spread."""
    chosen = np.linspace(0, len(frames.points) - 1, min(most, len(frames.points))).astype(int)
    return frames.only(chosen)


def solve(
    moments: Moments,
    ridge: float,
    amplitude: Amplitude,
    counts: Array | None = None,
    start: Array | None = None,
) -> Array:
    """Return the constants (terms,) of the least squares with an amplitude in each frame, or a shared one.

    `counts` (frames,) says how often each frame counts. With "frame" the forces are directions, and constants
    and amplitudes take turns; the constants are scaled to a mean square of 1 of the forces.
    """
    frames, size = moments.along.shape
    gram = moments.gram.reshape(frames, -1)
    weight = np.full(frames, 1.0 / frames) if counts is None else counts / counts.sum()
    spread = np.sqrt(np.maximum(weight @ np.einsum("mii->mi", moments.gram), 1e-300))
    penalty = ridge * np.diag(spread**2)
    if amplitude == "shared":
        left = (weight @ gram).reshape(size, size)
        return _solution(left + penalty, weight @ moments.along)
    unit = 1.0 / np.sqrt(moments.square)
    constants, factor, best = start, unit, -np.inf
    for _ in range(ROUNDS):
        if constants is not None:
            squared = np.maximum(gram @ np.outer(constants, constants).ravel(), 1e-300)
            constants = constants / np.sqrt(weight @ squared)
            squared = squared / (weight @ squared)
            pointed = np.maximum((moments.along @ constants) * unit, 0.0)
            total = weight @ (pointed**2 / squared)
            if total - best < CHANGE:
                break
            best, factor = total, pointed / squared
        left = ((weight * factor**2) @ gram).reshape(size, size)
        scale = np.trace(left / np.outer(spread, spread)) / size
        constants = _solution(left + scale * penalty, (weight * factor * unit) @ moments.along)
    assert constants is not None
    return np.asarray(constants)


def _solution(left: Array, right: Array) -> Array:
    """Return the smallest constants that solve the normal equations, which may be collinear."""
    scale = np.sqrt(np.maximum(np.diag(left), 1e-300))
    return np.asarray(linalg.lstsq(left / np.outer(scale, scale), right / scale, cond=1e-13)[0] / scale)


def _chosen_ridge(moments: Moments, amplitude: Amplitude, draws: np.random.Generator) -> float:
    """Return the penalty with the best mean R² on held-out networks."""
    networks = np.unique(moments.network)
    fold = np.empty(int(networks.max()) + 1, int)
    fold[draws.permutation(networks)] = np.arange(len(networks)) % min(FOLDS, len(networks))
    fold = fold[moments.network]
    scores = np.zeros(len(RIDGES))
    for number_of_fold in np.unique(fold):
        training, test = moments.of(fold != number_of_fold), moments.of(fold == number_of_fold)
        start = None
        for place in reversed(range(len(RIDGES))):
            start = solve(training, float(RIDGES[place]), amplitude, start=start)
            scores[place] += directions(test, start).sum()
    return float(RIDGES[np.argmax(scores)])


def _ranges(frames: Frames, extent: Extent) -> tuple[float, float]:
    """Return σ and ξ of the screened law with the best R² in some frames."""
    few = _some(frames, SEARCHED)

    def loss(logarithms: Array) -> float:
        ranges = tuple(np.exp(np.clip(logarithms, -3.0, 3.0)).tolist())
        moments = moments_of(few, terms_of("screened", extent, frames.classes, ranges))[0]
        return -float(directions(moments, solve(moments, 1e-9, "frame")).mean())

    start = np.log(list(SCREENING.values()))
    simplex = start + np.array([[0.0, 0.0], [0.4, 0.0], [0.0, 0.4]])
    limits: dict[str, Any] = {"xatol": 3e-3, "fatol": 1e-6, "maxfev": 80, "initial_simplex": simplex}
    search: Any = optimize.minimize
    best = search(loss, start, method="Nelder-Mead", options=limits)
    sigma, xi = np.exp(np.clip(best.x, -3.0, 3.0)).tolist()
    return sigma, xi


def _require_determined(moments: Moments, terms: Terms, window: str, freedom: int, named: bool) -> None:
    """Refuse functions that the frames of a window, of `freedom` numbers each, do not determine.

    Of free functions those alone that have no part along shapes: a ridge chooses between the others.
    """
    frames, count = moments.along.shape
    if frames < 2 or frames * freedom < count:
        raise InputError(
            f"trajectories must hold at least {max(2, -(-count // freedom))} frames of the window {window} "
            f"for {count} functions, got {frames}"
        )
    size = np.sqrt(np.maximum(moments.whole.sum(axis=0), 1e-300))
    gram = moments.gram.sum(axis=0) / np.outer(size, size)
    missing = np.diag(gram) <= ROUNDING
    if named and not missing.any():
        values, vectors = np.linalg.eigh(gram / np.sqrt(np.outer(np.diag(gram), np.diag(gram))))
        missing = (np.abs(vectors[:, values < COLLINEAR]) > 0.1).any(axis=1)
    if missing.any():
        names = "; ".join(name for name, lost in zip(terms.names, missing, strict=True) if lost)
        raise InputError(f"basis must be one that the data determine; in {window} they do not tell {names}")
