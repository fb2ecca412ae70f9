"""The tracks fate and force: where the embedding of a network ends, and which force acts on its shape."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

import physics
from analysis.comparison.relabelling import best_relabelling, no_relabelling, standard_pair
from analysis.forces import Basis, fit_forces
from analysis.forces.frames import gauge_of, projected, training_pairs
from grokphys.arena.track import (
    ANOTHER,
    STILL,
    Array,
    Case,
    Theory,
    Track,
    checked_prediction,
    digest,
    ensemble,
    other_layers,
    seen,
    split,
)
from nets import ConstantAttention, Training
from nets.architecture import EMBEDDING
from physics import ParticleSystem, Trajectory
from physics.trajectory.locks import replace_as_a_whole

STEPS = 2000
RECORD = (*(1, 3, 6, 10, 16, 25, 35, 50), *range(0, STEPS + 1, 20))
SEED, LAYERS = 47_000, 47_001
"""Seeds of the networks, and of the layers of others from the same starts."""
WINDOWS = {"early": (1, 50), "middle": (70, 400), "late": (560, 1980)}
CEILING = "ceiling of laws of the embedding"
"""Reference: the largest R² of a law that does not know the layers, by two draws of these."""
TIMES = 6
"""Frames of a window at which forces are predicted."""
STEP, LONGEST = 0.05, 30
"""Step of a path, in units of the size, and number of steps that are tried."""
OTHERS = "mean shape of eight such networks"


@dataclass(frozen=True)
class Attention:
    """Networks with constant attention: weight decay, and number to fit and to hold out together."""

    decay: float
    networks: int
    others: int = 1
    window: tuple[int, int] = (0, STEPS)
    steps: int = STEPS

    @property
    def record(self) -> tuple[int, ...]:
        """Steps that are recorded."""
        return tuple(sorted({step for step in RECORD if step < self.steps} | {self.steps}))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the training."""
        return {"weight_decay": self.decay, "seed": SEED, "dtype": "float64"}

    def train(self, folder: Path | None, layers: int | None = None) -> Trajectory:
        """Return the networks, or others from the starts of those held out if a seed of layers is given."""
        first = 0 if layers is None else self.networks // 2
        options = {"steps": self.steps, "record": self.record, "observables": ("gradient",)}
        options |= {"first_run": first, "runs": self.networks - first}
        return ensemble(folder, ConstantAttention(), layers=layers, **self.settings, **options)

    def led(self, folder: Path | None) -> Array:
        """Return the gradients (networks, frames, tokens, dim) of other networks on the paths held out.

        Their layers are trained by the same rates, while the embedding is that of the network at each step.
        """
        made = digest(self.settings, self.record, self.networks)
        path = Path() if folder is None else folder / f"led-{made}.npy"
        if path.is_file():
            return np.asarray(np.load(path))
        half, model = self.networks // 2, ConstantAttention()
        some: dict[str, Any] = {"first_run": half, "runs": self.networks - half}
        initial = other_layers(model, seed=LAYERS, **some)
        leader, other = (
            Training(model, **self.settings, **some, **one) for one in ({}, {"initial": initial})
        )
        gradients = [other.machine.gradient(EMBEDDING)]
        for step in range(1, self.steps + 1):
            leader.advance(1)
            other.advance(1)
            other.embeddings = leader.embeddings
            if step in self.record:
                gradients.append(other.machine.gradient(EMBEDDING))
        whole = np.stack(gradients, axis=1)
        if folder is not None:
            replace_as_a_whole(path, lambda file: np.save(file, whole))
        return whole


DECAYS = {"decay 1": Attention(1.0, 320, others=8), "decay 0.3": Attention(0.3, 320, others=8)}


def scaled(shapes: Any) -> Array:
    """Return shapes (networks, tokens, dim), centered and with a root mean square of 1."""
    centered = np.asarray(shapes, np.float64) - np.mean(shapes, axis=1, keepdims=True)
    return np.asarray(centered / np.sqrt((centered**2).mean(axis=(1, 2), keepdims=True)))


# -- fate --------------------------------------------------------------------------------------------------


def disparities(first: Any, second: Any) -> Array:
    """Return the Procrustes disparity (networks,) of shapes (networks, tokens, dim) to their partners."""
    a, b = standard_pair(first, second)
    return best_relabelling(a[:, None], b[:, None], no_relabelling(a.shape[1]))[0]


def turned(shapes: Any, onto: Array) -> Array:
    """Return shapes (networks, tokens, dim), each turned and scaled to be nearest to a scaled one."""
    a = scaled(shapes)
    u, sizes, v = np.linalg.svd(a.swapaxes(1, 2) @ onto)
    return np.asarray(a @ u @ v * sizes.sum(axis=1)[:, None, None] / onto[0].size)


def nearest(paths: Array, final: Any) -> int:
    """Return the frame at which paths (frames, networks, tokens, dim) are nearest to the final shapes."""
    return int(np.argmin([disparities(frame, final).mean() for frame in paths]))


def mean_shape(shapes: Sequence[Any]) -> Array:
    """Return the mean of several shapes of each network, (networks, tokens, dim), after a Procrustes fit."""
    mean = scaled(shapes[0])
    for _ in range(3):
        mean = scaled(np.mean([turned(each, mean) for each in shapes], axis=0))
    return mean


class Fate(Track):
    """Where an embedding ends: theories see its start and the training set, and predict its final shape."""

    name = "fate"
    measure = "Procrustes disparity to the network's own final shape"
    best = 0.0
    settings = {  # noqa: RUF012
        "paper": DECAYS,
        "quick": {name: replace(setting, networks=32, others=1) for name, setting in DECAYS.items()},
    }

    def entries(self) -> Sequence[Theory]:
        """Return the theories of the motion of embeddings."""
        return theories()

    def case(self, setting: Attention, folder: Path | None) -> Case:
        """Return networks, of which the first frames are seen, and scores of their final shapes."""
        fit, held_out = split(setting.train(folder))
        others = [setting.train(folder, LAYERS + k).final for k in range(setting.others)]
        final, starts = np.asarray(held_out.final), seen(held_out, slice(1))

        def score(predicted: Any) -> Array:
            shapes = predicted.final if isinstance(predicted, Trajectory) else predicted
            return disparities(checked_prediction(shapes, final.shape), final)

        ends = {STILL: score(starts.initial), ANOTHER: score(others[0])}
        ends |= {OTHERS: score(mean_shape(others))} if setting.others == 8 else {}
        return Case(seen(fit, observables=("gradient",)), starts, score, ends)


# -- force -------------------------------------------------------------------------------------------------


class Force(Track):
    """Which force acts on a shape: theories see the path up to a frame, and predict minus the gradient there.

    Both forces lose their parts along translation, scale and rotation; only directions are compared.
    """

    name = "force"
    measure = "R² of the direction of the force on the shape"
    best = 1.0
    method = "force"
    settings = {  # noqa: RUF012
        budget: {
            f"{name}, {part}": replace(setting, window=window)
            for name, setting in networks.items()
            for part, window in WINDOWS.items()
        }
        for budget, networks in Fate.settings.items()
    }

    def entries(self) -> Sequence[Theory]:
        """Return the theories of the motion of embeddings."""
        return theories()

    def case(self, setting: Attention, folder: Path | None) -> Case:
        """Return networks with their gradients in the window, to fit, and paths up to frames of it."""
        fit, held_out = split(setting.train(folder))
        steps, (first, last) = np.asarray(fit.steps), setting.window
        inside = np.flatnonzero((steps >= first) & (steps <= last))
        asked = inside[np.unique(np.linspace(0, len(inside) - 1, TIMES).round().astype(int))]
        whole = seen(fit, slice(inside[-1] + 1), ("gradient",), asked)
        paths = [seen(held_out, slice(frame + 1)) for frame in asked]
        forces, others = (
            -array[:, asked] for array in (held_out.observables["gradient"], setting.led(folder))
        )
        points = np.concatenate([scaled(path.final) for path in paths])

        def cosines(predicted: Array) -> Array:
            """Return the cosine of two forces on each shape, at least 0, (networks, times)."""
            flat = [a.swapaxes(0, 1).reshape(len(points), -1, 1) for a in (predicted, forces)]
            a, b = (projected(one, gauge_of(points, "shape"))[..., 0] for one in flat)
            sizes = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
            cosine = (a * b).sum(axis=1) / np.where(sizes > 0, sizes, 1.0)
            return np.maximum(cosine, 0.0).reshape(len(asked), -1).T

        def score(predicted: Any) -> Array:
            return np.asarray((cosines(checked_prediction(predicted, forces.shape)) ** 2).mean(axis=1))

        ends = {STILL: score(0 * forces), ANOTHER: score(others), CEILING: cosines(others).mean(axis=1)}
        return Case(whole, paths, score, ends)

    def ask(self, theory: Any, case: Case) -> Any:
        """Return the forces at the ends of all paths, (networks, times, tokens, dim)."""
        shape = (case.starts[0].runs, case.starts[0].tokens, case.starts[0].dim)
        return np.stack([checked_prediction(theory.force(path), shape) for path in case.starts], axis=1)


# -- theories ----------------------------------------------------------------------------------------------


def forces_of(systems: Sequence[Any], points: Array) -> Array:
    """Return the part along shapes of the forces of systems on their points (networks, tokens, dim)."""
    forces = np.stack([system.forces(x) for system, x in zip(systems, points, strict=True)])
    gauge = gauge_of(points, "shape")
    return projected(forces.reshape(len(points), -1, 1), gauge).reshape(points.shape)


def systems_of(law: Any, networks: Trajectory) -> list[Any]:
    """Return the system of a fitted law for the training set of each network."""
    return [law.system(pairs=pairs, normalise=False) for pairs in training_pairs(networks)]


class Unfitted:
    """What theories of ours share: a name, and a fit that does nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fit(self, trajectory: Trajectory) -> Self:
        """Return the theory: nothing is fitted."""
        return self


class Particles(Unfitted):
    """Musat's particles with the constants of the paper."""

    def force(self, past: Trajectory) -> Array:
        """Return the force on the last frame, (networks, tokens, dim)."""
        return forces_of(self._systems(past), scaled(past.final))

    def predict(self, starts: Trajectory) -> Array:
        """Return where the particles end after the 100 steps of the paper, (networks, tokens, dim)."""
        runs = zip(starts.final, self._systems(starts), strict=True)
        return np.stack([physics.simulate(system, initial=x, record=100).final[0] for x, system in runs])

    def _systems(self, seen_: Trajectory) -> list[Any]:
        return [ParticleSystem(seen_.tokens, seen_.dim, pairs=pairs) for pairs in training_pairs(seen_)]


class Effective(Unfitted):
    """The effective theory of Liu et al., which ends where the fates of the fit are nearest."""

    def fit(self, trajectory: Trajectory) -> Self:
        """Choose the time of the flow at which shapes are nearest to the final ones."""
        paths = self._paths(trajectory)
        self.frame_ = nearest(paths, trajectory.final)
        return self

    def force(self, past: Trajectory) -> Array:
        """Return minus the gradient of ℓ_eff at the last frame, (networks, tokens, dim)."""
        runs = zip(self._systems(past), scaled(past.final), strict=True)
        return -np.stack([system.gradient(x) for system, x in runs])

    def predict(self, starts: Trajectory) -> Array:
        """Return the shapes at that time, (networks, tokens, dim)."""
        return self._paths(starts)[self.frame_]

    def _systems(self, seen_: Trajectory) -> list[Any]:
        size = seen_.tokens, seen_.dim
        return [physics.EffectiveTheory(*size, pairs, seen_.modulus) for pairs in training_pairs(seen_)]

    def _paths(self, seen_: Trajectory) -> Array:
        """Return the shapes of the exact flow, (times, networks, tokens, dim)."""
        times = np.append(0.0, np.geomspace(0.1, 1e3, 41))
        runs = zip(self._systems(seen_), scaled(seen_.initial), strict=True)
        return np.stack([system.solve(x, times) for system, x in runs], axis=1)


class FittedLaw(Unfitted):
    """A law of pair forces fitted to gradients, of a basis as in `analysis.fit_forces`.

    In the track fate embeddings move by the force of the steps from 1 to 50 at unit speed, and stop where the
    fates of the fit are nearest.
    """

    def __init__(self, name: str, basis: Any) -> None:
        self.name, self.basis = name, basis

    def fit(self, trajectory: Trajectory) -> Self:
        """Fit the constants, and the length of the path if there is a gradient at every frame."""
        whole = np.array_equal(trajectory.clock("gradient")[0], trajectory.steps)
        windows = {"early": WINDOWS["early"]} if whole else None
        self.law_ = fit_forces(trajectory, basis=self.basis, windows=windows, resamples=0)
        if whole:
            self.frame_ = nearest(self._paths(trajectory, LONGEST), trajectory.final)
        return self

    def force(self, past: Trajectory) -> Array:
        """Return the force on the last frame, (networks, tokens, dim)."""
        return forces_of(systems_of(self.law_, past), scaled(past.final))

    def predict(self, starts: Trajectory) -> Array:
        """Return where embeddings stop, (networks, tokens, dim)."""
        return self._paths(starts, self.frame_)[-1]

    def _paths(self, seen_: Trajectory, steps: int) -> Array:
        """Return shapes that move by `STEP` at a time, (1 + steps, networks, tokens, dim)."""
        paths, systems = [scaled(seen_.initial)], systems_of(self.law_, seen_)
        for _ in range(steps):
            force = forces_of(systems, paths[-1])
            size = np.sqrt((force**2).mean(axis=(1, 2), keepdims=True))
            paths.append(scaled(paths[-1] + STEP * force / np.maximum(size, 1e-300)))
        return np.stack(paths)


class AimedLaw(Unfitted):
    """Pair laws that are fitted to fates: each moves all shapes half of the way that a law can tell.

    A law of each stage is fitted to the displacements from where the ones before it lead to the final shapes.
    How many stages there are is chosen by laws of half of the networks, which predict the other half.
    """

    tracks = ("fate",)

    def __init__(self, name: str, basis: Any, stages: int = 12) -> None:
        self.name, self.basis, self.stages = name, basis, stages

    def fit(self, trajectory: Trajectory) -> Self:
        """Fit the laws of all stages."""
        some, others = split(trajectory)
        laws = self._laws(some, self.stages)
        self.laws_ = self._laws(trajectory, nearest(self._paths(others, laws), others.final))
        return self

    def predict(self, starts: Trajectory) -> Array:
        """Return where the laws lead, (networks, tokens, dim)."""
        return self._paths(starts, self.laws_)[-1]

    def _laws(self, networks: Trajectory, stages: int) -> list[Any]:
        start, shapes, laws = seen(networks, slice(1)), scaled(networks.initial), list[Any]()
        for _ in range(stages):
            here = Trajectory(shapes[:, None], [0], parameters=start.parameters, start=start.start)
            way = (turned(networks.final, shapes) - shapes)[:, None]
            laws.append(fit_forces(here, way, basis=self.basis, amplitude="shared", resamples=0))
            shapes = self._moved(shapes, start, laws[-1])
        return laws

    def _paths(self, starts: Trajectory, laws: list[Any]) -> Array:
        """Return the shapes before, between and after the laws, (1 + laws, networks, tokens, dim)."""
        paths = [scaled(starts.initial)]
        for law in laws:
            paths.append(self._moved(paths[-1], starts, law))
        return np.stack(paths)

    def _moved(self, shapes: Array, seen_: Trajectory, law: Any) -> Array:
        return scaled(shapes + forces_of(systems_of(law, seen_), shapes) / 2)


class Inertia(Unfitted):
    """The force on an embedding is along its last recorded motion."""

    def force(self, past: Trajectory) -> Array:
        """Return the last displacement, (networks, tokens, dim)."""
        return np.asarray(past.final - past.frame(max(past.frames - 2, 0)), np.float64)


def theories() -> list[Any]:
    """Return the theories of ours about embeddings of constant attention."""
    return [
        Particles("Musat's particles, as printed"),
        FittedLaw("Musat's terms, refitted", "musat"),
        FittedLaw("free pair law", Basis()),
        FittedLaw("screened clustering", "screened"),
        FittedLaw("arc-cosine kernel", "arccos"),
        FittedLaw("one-body law", Basis(distance=0, angle=0)),
        AimedLaw("free pair laws, aimed at fates", Basis()),
        Effective("effective theory"),
        Inertia("as it moved last"),
    ]
