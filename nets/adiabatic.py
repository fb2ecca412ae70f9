"""The force on embeddings from layers that have had time to learn: the adiabatic limit of a training."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.engines.choice import choose_engine, optimizer_of
from nets.engines.ensemble import Ensemble
from nets.provenance import ensemble_of
from nets.settings import RATES
from physics.checks import InputError, whole_number
from physics.seeds import Seed, children
from physics.trajectory import Trajectory

PART = 1024
"""Largest number of networks that are trained together."""
SAMPLES = 20
"""Number of gradients whose mean is the force."""


def adiabatic_force(
    trajectory: Trajectory, steps: int = 2000, draws: int = 2, *, averaged: int | None = None, seed: Seed = 0
) -> Trajectory:
    """Return the gradients on recorded embeddings from layers that have converged on them.

    Each embedding of each frame is kept still while layers are trained on it, from fresh starts and, if the
    layers were recorded, from their own. Layers that train along with an embedding lag behind it, so that its
    force depends on the past; the force of converged layers is nearly a function of the embedding.

    Parameters
    ----------
    trajectory : Trajectory
        Result of `nets.train` of a model with an embedding. Its frames are those at which the force is
        wanted: every one trains a network of its own.
    steps : int, default 2000
        Number of steps for which layers are trained, with the optimizer and rates of the trajectory.
    draws : int, default 2
        Number of fresh starts of the layers, at least 1. From two on, `analysis.forces` shows how far the
        forces of two starts agree, which is the ceiling of any law of embeddings.
    averaged : int, optional
        Number of the last steps, at most `steps`, over which the gradient is averaged; by default a tenth.
    seed : int or numpy.random.SeedSequence, default 0
        Seed of the fresh layers.

    Returns
    -------
    Trajectory
        The same positions and training sets, with the observables "gradient", for further draws "gradient_2"
        and so on, and "gradient_own" if the trajectory holds "layers.NAME".

    Raises
    ------
    InputError
        If the trajectory was not made by `nets.train`, its networks have no embedding or train in batches, or
        a number is out of its range.

    Examples
    --------
    >>> import nets
    >>> trained = nets.train(nets.ConstantAttention(7), runs=2, steps=40)
    >>> nets.adiabatic_force(trained, steps=50).observables["gradient_2"].shape
    (2, 3, 7, 2)
    """
    steps, draws = whole_number("steps", steps, 1), whole_number("draws", draws, 1)
    averaged = max(1, steps // 10) if averaged is None else whole_number("averaged", averaged, 1, steps)
    if not isinstance(trajectory, Trajectory):
        raise InputError(f"trajectory must be a Trajectory, got {type(trajectory).__name__}")
    ensemble, made = ensemble_of(trajectory), trajectory.parameters
    if EMBEDDING not in ensemble.parameters:
        kind = type(ensemble.model).__name__
        raise InputError(f"trajectory must be of a model with an embedding, got {kind}")
    if made.get("batch_size") is not None:
        raise InputError(f"trajectory must be trained on whole sets, got batches of {made['batch_size']}")
    runs, frames = trajectory.runs, trajectory.frames
    recorded = {
        name: trajectory.observables[f"layers.{name}"]
        for name in ensemble.parameters
        if name != EMBEDDING and f"layers.{name}" in trajectory.observables
    }
    names = ["gradient", *(f"gradient_{k}" for k in range(2, draws + 1))]
    starts: list[tuple[str, Any]] = list(zip(names, children(seed, range(draws)), strict=True))
    if len(recorded) == len(ensemble.parameters) - 1 and all(
        len(values[0]) == frames for values in recorded.values()
    ):
        starts.append(("gradient_own", None))
    found = {name: np.empty((runs * frames, *trajectory.positions.shape[2:])) for name, _ in starts}
    for first in range(0, runs * frames, PART):
        members = np.arange(first, min(first + PART, runs * frames))
        run, frame = np.divmod(members, frames)
        embedding = np.asarray(trajectory.positions[run, frame], np.float64)
        for name, child in starts:
            if child is None:
                layers = {key: np.asarray(values[run, frame], np.float64) for key, values in recorded.items()}
            else:
                layers = _drawn(ensemble, children(child, members.tolist()))
                scale = np.broadcast_to(_of_members(made.get("layer_scale", 1.0), run), len(members))
                layers = {key: np.einsum("m,m...->m...", scale, value) for key, value in layers.items()}
            values = {key: embedding if key == EMBEDDING else layers[key] for key in ensemble.parameters}
            targets = None if ensemble.targets is None else ensemble.targets[run]
            sets = ensemble.train[run], ensemble.validation[run]
            whole = Ensemble(ensemble.model, values, *sets, targets, [])
            found[name][members] = _converged(whole, made, run, steps, averaged)
    return Trajectory(
        trajectory.positions,
        trajectory.steps,
        trajectory.times,
        observables={name: values.reshape(trajectory.positions.shape) for name, values in found.items()},
        parameters={**made, "adiabatic": {"steps": steps, "draws": draws, "averaged": averaged}},
        start=trajectory.start,
        made_with=trajectory.made_with,
    )


def _drawn(ensemble: Ensemble, seeds: list[np.random.SeedSequence]) -> dict[str, NDArray[np.float64]]:
    """Draw the layers of networks, (networks, ...) each, by their seeds."""
    drawn = []
    for child in seeds:
        first, second = (np.random.default_rng(each) for each in child.spawn(2))
        drawn.append(ensemble.model.initial(first, second))
    return {name: np.stack([np.array(each[name], float) for each in drawn]) for name in drawn[0]}


def _converged(ensemble: Ensemble, made: Any, run: NDArray[Any], steps: int, averaged: int) -> NDArray[Any]:
    """Train the layers of an ensemble; return the mean gradient (members, tokens, dim) of the last steps."""
    rates = {name: _of_members(made[name], run) for name in RATES[:2]} | dict.fromkeys(RATES[2:], 0.0)
    optimizer = optimizer_of(
        ensemble.runs, **rates, betas=tuple(made["betas"]), epsilon=made["epsilon"], kind=made["optimizer"]
    )
    setting = made["engine"], ensemble, optimizer, made["dtype"], "cpu", None
    machine = choose_engine(*setting, stable_gradient=made["stable_gradient"])
    samples = min(SAMPLES, averaged)
    ends = np.linspace(steps - averaged, steps, samples + 1).astype(int)
    total, step = np.zeros_like(ensemble.parameters[EMBEDDING]), 0
    for end in ends:
        if end > step:
            machine.advance(step, int(end - step), None)
            step = int(end)
        if end > ends[0]:
            total += machine.gradient(EMBEDDING)
    return total / samples


def _of_members(rate: Any, run: NDArray[Any]) -> Any:
    """Return a rate of each member, from one of each run or a common one."""
    return np.asarray(rate, float)[run].tolist() if np.ndim(rate) else rate
