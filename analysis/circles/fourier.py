"""Fourier signals of embeddings, which measure the sizes of their circles (Ding et al. §2)."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.classes import require_cyclic
from analysis.scaling import scaled
from physics.checks import InputError, misfit, point_sets
from physics.trajectory import Trajectory

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


def signals_and_final(
    trajectory: Trajectory, megabytes: float = 32.0, runs: Any = slice(None)
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the signals of all frames (runs, frames, K), and the last frame, from one pass.

    The last frame (runs, tokens, dim) has the number type of the trajectory. Blocks of about `megabytes` are
    read at a time. An `InputError` names the first frame of `runs`, by default all, whose signals are not
    finite.
    """
    parts, final = [], np.empty(0)
    for _, block in trajectory.blocks(megabytes):
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
