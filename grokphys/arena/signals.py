"""The tracks signals and survivors: how the circles of networks grow and die, and which of them survive.

The signal of a frequency is the norm of its Fourier coefficient, and its circle survives if it exceeds twice
the mean signal in the end (Ding et al. §3). Theories are fitted to networks that they see from the first
step to the last, with the layers at the start, and then see the path of others up to a step, and `AHEAD`
steps later for a rate of change. Signals are the observable "fourier_signals".
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import elliprf
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import nets
from analysis.circles import fourier_signals, survival, survives
from analysis.circles.fourier import OBSERVABLE
from analysis.laws import PUBLISHED, Law, MeanFieldRegressor, fit_law, fit_trajectories, lotka_volterra
from grokphys.arena.track import ANOTHER, STILL, Array, Case, Theory, Track, ensemble, seen, split
from nets import EmbeddingMLP
from nets.architecture import EMBEDDING
from nets.engines.ensemble import PARAMETER
from nets.networks import LAYERS, Networks
from physics import Trajectory
from physics.errors import InputError
from physics.neurons.spectrum import NeuronSpectrum, neuron_spectrum

Booleans = NDArray[np.bool_]
DECAY = 0.5
EVERY = 10
"""Number of steps from one frame to the next of the signals to which laws are fitted."""
AHEAD = 4
"""Number of steps over which a rate of change is measured, as in Figure 7 of Ding et al."""
FOLDS = 4
SEEDS = {"seed": 47_100, "layers": 47_101}


# -- networks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Circles:
    """Networks of Ding et al., how many to fit and held out together, and the step of the prediction."""

    tokens: int
    dim: int
    networks: int
    steps: int
    start: int

    def train(self, folder: Path | None, layers: int | None = None) -> Trajectory:
        """Train the networks, or others from the starts of those held out if a seed of layers is given."""
        return _trained(replace(self, start=0), folder, layers)


@lru_cache(maxsize=4)
def _trained(size: Circles, folder: Path | None, layers: int | None) -> Trajectory:
    """Return networks with their signals, which all steps of the prediction share."""
    first = 0 if layers is None else size.networks // 2
    steps = {*range(0, size.steps, EVERY), size.steps, *(step + AHEAD for step in STARTS)}
    trained = ensemble(
        folder, EmbeddingMLP(size.tokens, size.dim), layers=layers, first_run=first,
        runs=size.networks - first, steps=size.steps, weight_decay=DECAY, seed=SEEDS["seed"],
        observables=(), record=tuple(sorted(step for step in steps if step <= size.steps)),
    )  # fmt: skip
    return with_signals(trained)


STARTS = (0, 20, 100, 400)
SMALL = Circles(31, 64, 24, 1000, 0)
LARGE = Circles(31, 64, 120, 1500, 0), Circles(59, 128, 60, 2000, 0)


def _from_steps(steps: Sequence[int], *sizes: Circles) -> dict[str, Circles]:
    each = [replace(size, start=step) for size in sizes for step in steps]
    return {f"p = {setting.tokens}, from step {setting.start}": setting for setting in each}


def with_signals(networks: Trajectory) -> Trajectory:
    """Return networks with their Fourier signals as an observable, float64 (networks, frames, K)."""
    signals = fourier_signals(networks).values
    return Trajectory(
        networks.positions, networks.steps, observables={OBSERVABLE: signals},
        parameters=networks.parameters, start=networks.start,
    )  # fmt: skip


def shown(networks: Trajectory, step: int | None = None) -> Trajectory:
    """Return what theories see of networks: their paths up to a step, and their layers at the start.

    The frame `AHEAD` steps after `step` is seen too. By default all frames are seen.
    """
    steps = networks.steps
    frames = np.ones(len(steps), bool) if step is None else (steps <= step) | (steps == step + AHEAD)
    cut = seen(networks, frames, (OBSERVABLE,))
    layers = {
        LAYERS + name.removeprefix(PARAMETER): values[:, None]
        for name, values in networks.start.items()
        if name.startswith(PARAMETER) and name != PARAMETER + EMBEDDING
    }
    return Trajectory(
        cut.positions, cut.steps, observables={**cut.observables, **layers},
        clocks=dict.fromkeys(layers, ([0], None)), parameters=cut.parameters, start=cut.start,
    )  # fmt: skip


def path(networks: Trajectory, since: int = 0) -> Array:
    """Return the signals at every `EVERY`-th step from a step on, as far as they follow one another.

    The result has the shape (networks, frames, K).
    """
    wanted = np.arange(since, networks.steps[-1] + 1, EVERY)
    recorded = np.isin(wanted, networks.steps)
    wanted = wanted if recorded.all() else wanted[: recorded.argmin()]
    return np.asarray(networks.observables[OBSERVABLE][:, np.searchsorted(networks.steps, wanted)])


def start_of(starts: Trajectory) -> int:
    """Return the step of the prediction, which is the last that is a multiple of `EVERY`."""
    return int(starts.steps[-1]) // EVERY * EVERY


def alive(networks: Trajectory) -> Booleans:
    """Return which circles survive in the last frame, bool (networks, K)."""
    return survives(networks.observables[OBSERVABLE][:, -1])


# -- scores ------------------------------------------------------------------------------------------------


def agreement(first: Any, second: Any) -> Array:
    """Return `analysis.circles.agreement` of survivors and predicted ones, or 0 where both sets are empty."""
    return np.asarray(np.nan_to_num(survival.agreement(first, second)))


def strongest(scores: Array, number: Any) -> Booleans:
    """Return which circles have the largest scores (networks, K), as many as a number (networks,) says."""
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    return np.asarray(ranks < np.reshape(number, (-1, 1)))


def ranked(scores: Array, final: Booleans) -> Array:
    """Return how the circles with the largest scores agree with the survivors, both (networks, K).

    As many are predicted as survive on average in the other networks, rounded. The result is (networks,).
    """
    counts = final.sum(axis=1)
    number = np.round((counts.sum() - counts) / (len(counts) - 1))
    return agreement(strongest(scores, number), final)


def ends_of(paths: Array) -> Booleans:
    """Return which circles survive at the end of paths (networks, frames, K); none if a path diverges."""
    sound = np.asarray(np.isfinite(paths).all(axis=(1, 2)))
    return survives(np.where(sound[:, None], paths[:, -1], np.nan))


def relative_errors(paths: Array, truth: Array) -> Array:
    """Return ‖path - truth‖ / ‖truth‖ for paths (networks, frames, K); infinite for one that diverges."""
    sound = np.asarray(np.isfinite(paths).all(axis=(1, 2)))
    apart = np.where(sound[:, None, None], paths, 0) - truth
    errors = np.linalg.norm(apart, axis=(1, 2)) / np.linalg.norm(truth, axis=(1, 2))
    return np.where(sound, errors, np.inf)


class Signals(Track):
    """How signals go on: theories see the path of a network to a step, and predict all further signals."""

    name = "signals"
    measure = "relative error of the signals from the step of the prediction on, at most 1 (divergence)"
    best = 0.0
    settings = {"quick": _from_steps((400,), SMALL), "paper": _from_steps((400, 800), *LARGE)}  # noqa: RUF012

    def entries(self) -> Sequence[Theory]:
        """Return the laws, fitted to other networks, and forward in time to each network alone."""
        alone = [SignalLaw(kind, alone=True) for kind in ("Lasso", "least squares", "mean field")]
        return [*map(SignalLaw, LAWS), *alone]

    def case(self, setting: Circles, folder: Path | None) -> Case:
        """Return networks, and scores by their signals every `EVERY` steps from the start on."""
        fit, held_out = split(setting.train(folder))
        truth, other = (path(x, setting.start) for x in (held_out, setting.train(folder, SEEDS["layers"])))

        def score(predicted: Any) -> Array:
            paths = fourier_signals(predicted).values if isinstance(predicted, Trajectory) else predicted
            return self.score(np.asarray(paths), truth)

        ends = {STILL: score(np.repeat(truth[:, :1], truth.shape[1], axis=1)), ANOTHER: score(other)}
        return Case(shown(fit), shown(held_out, setting.start), score, ends)

    def score(self, paths: NDArray[Any], truth: Array) -> Array:
        """Return the relative error (networks,) of predicted paths (networks, frames, K)."""
        return np.minimum(relative_errors(_of_shape(paths, truth.shape), truth), 1.0)


class Survivors(Signals):
    """Which circles survive: theories see the path of a network to a step."""

    name = "survivors"
    measure = "Jaccard index of the predicted and the true survivors"
    best = 1.0
    settings = {"quick": _from_steps(STARTS, SMALL), "paper": _from_steps(STARTS, *LARGE)}  # noqa: RUF012

    def entries(self) -> Sequence[Theory]:
        """Return rankings of circles, classifiers, and laws of the signals."""
        return [*map(Ranking, SCORES), SVM, LOGISTIC, *map(SignalLaw, LAWS)]

    def score(self, paths: NDArray[Any], truth: Array) -> Array:
        """Return the agreement (networks,) of predicted survivors, bool (networks, K), or of paths."""
        if paths.ndim == 3:
            paths = ends_of(paths)
        if paths.dtype != bool:
            raise InputError(f"prediction must be truth values or paths of signals, got {paths.dtype}")
        final = survives(truth[:, -1])
        return agreement(_of_shape(paths, final.shape), final)


def _of_shape(predicted: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if predicted.shape != shape:
        raise InputError(f"prediction must have the shape {shape}, got {predicted.shape}")
    return predicted


# -- laws of the signals -----------------------------------------------------------------------------------

LAWS: Mapping[str, Callable[[list[Array]], Law]] = {
    "Lasso": lambda signals: fit_trajectories(signals, **PUBLISHED["lasso"]),
    "least squares": lambda signals: fit_trajectories(signals, **PUBLISHED["least-squares"]),
    "mean field": lambda signals: fit_law(MeanFieldRegressor(), signals),
    "Lotka–Volterra": lambda signals: fit_law(lotka_volterra(), signals),
    "κ(|F_k|)": lambda signals: fit_law(MeanFieldRegressor(((1,), (2,), (3,))), signals),
}
"""Fits of laws to the signals (frames, K) of several networks, by the name of the law.

The last one has no competition: the force on a Fourier coefficient is κ F_k, with κ a polynomial of |F_k|.
"""


class SignalLaw:
    """A law of motion of the signals, fitted to other networks, or to the past of each network alone."""

    def __init__(self, kind: str, alone: bool = False) -> None:
        self.kind, self.alone = kind, alone
        self.name = f"{kind}, each network alone" if alone else kind
        self.tracks = ("signals",) if alone else ("signals", "survivors")

    def fit(self, trajectory: Trajectory) -> Self:
        """Keep the networks: the law is fitted to their steps from that of the prediction on."""
        self.networks_ = trajectory
        return self

    def predict(self, starts: Trajectory) -> Array:
        """Return the signals (networks, frames, K) from the start on, infinite where they diverge."""
        past, pieces = path(starts), path(self.networks_, start_of(starts))
        fit, frames = LAWS[self.kind], np.arange(pieces.shape[1])
        laws = [fit([x]) for x in past] if self.alone else [fit(list(pieces))] * len(past)
        return np.stack([law.predict(x[-1], frames) for law, x in zip(laws, past, strict=True)])

    def scores(self, starts: Trajectory) -> Array:
        """Return the last predicted signals (networks, K), or the present ones if they diverge."""
        ends, now = self.predict(starts)[:, -1], path(starts)[:, -1]
        return np.where(np.isfinite(ends).all(axis=1, keepdims=True), ends, now)


# -- rankings of circles -----------------------------------------------------------------------------------


def _signal(networks: Trajectory, step: int) -> Array:
    return np.asarray(networks.observables[OBSERVABLE][:, np.searchsorted(networks.steps, step)])


SCORES: Mapping[str, Callable[[Trajectory, int], Array]] = {
    "signal": _signal,
    "rate": lambda networks, step: _signal(networks, step + AHEAD) - _signal(networks, step),
    "votes": lambda networks, step: ballots(blowup(nets.networks(networks, 0))[1])[0],
    "mean 1/t*": lambda networks, step: ballots(blowup(nets.networks(networks, 0))[1])[1],
}
"""Scores (networks, K) of circles at a step by name; the last two are of the layers at the start."""


class Ranking:
    """Circles with the largest scores survive, as many as in the networks of the fit on average.

    Parameters
    ----------
    *scores : str
        Names among `SCORES`; several are the features of a classifier.
    machine : object, optional
        Classifier of scikit-learn, whose decision function is then the score.
    name : str, optional
        Name of the theory.
    """

    tracks = ("survivors",)

    def __init__(self, *scores: str, machine: Any = None, name: str = "") -> None:
        self.features, self.machine, self.name = scores, machine, name or f"ranking by {scores[0]}"

    def fit(self, trajectory: Trajectory) -> Self:
        """Keep the networks, and count the circles that survive in them."""
        self.networks_, self.final_ = trajectory, alive(trajectory)
        return self

    def scores(self, starts: Trajectory) -> Array:
        """Return the score of each circle, (networks, K)."""
        step = start_of(starts)
        new, old = (
            np.stack([SCORES[name](networks, step) for name in self.features], axis=-1)
            for networks in (starts, self.networks_)
        )
        if self.machine is None:
            return np.asarray(new[..., 0])
        if not self.final_.any():
            return np.zeros(new.shape[:2])
        rows = (-1, len(self.features))
        fitted = clone(self.machine).fit(old.reshape(rows), self.final_.ravel())
        return np.asarray(fitted.decision_function(new.reshape(rows))).reshape(new.shape[:2])

    def predict(self, starts: Trajectory) -> Booleans:
        """Return which circles survive, bool (networks, K)."""
        return strongest(self.scores(starts), np.round(self.final_.sum(axis=1).mean()))


SVM = Ranking(
    "signal", "rate", machine=make_pipeline(StandardScaler(), LinearSVC(random_state=0)), name="SVM"
)
LOGISTIC = Ranking(
    *SCORES, machine=make_pipeline(StandardScaler(), LogisticRegression()),
    name="logistic, embedding and layers",
)  # fmt: skip


# -- votes of neurons --------------------------------------------------------------------------------------


def blowup(networks: Networks) -> tuple[NeuronSpectrum, Array]:
    """Return the spectrum of the first neurons of untrained networks, and their blow-up times.

    The times have the shape (networks, neurons, K). At small weights SiLU is x/2, and so is what the second
    hidden layer makes of a neuron of the first.
    """
    through = networks.parameters["hidden2.weight"] @ networks.parameters["output.weight"] / 2
    weights = networks.neuron_weights()
    spectrum = neuron_spectrum(weights["W_in"], through, second=weights["second"])
    amplitudes = spectrum.theta, spectrum.theta_second, spectrum.xi
    return spectrum, blowup_times(*(np.asarray(amplitude, np.complex128) for amplitude in amplitudes))


def blowup_times(first: Any, second: Any, xi: Any) -> Array:
    """Return the blow-up time t*, at which θ₁, θ₂ and ξ of three coupled waves diverge, for c = 1.

    The complex arrays `first`, `second` and `xi` (...) hold θ₁, θ₂ and ξ at the start; the times (...) are
    float64. The equations are dθ₁/dt = c conj(θ₂) ξ, dθ₂/dt = c conj(θ₁) ξ and dξ/dt = c θ₁θ₂.
    ``R = Re(θ₁θ₂ conj ξ)`` is half of dw/dt for w = |ξ|², and ``M = Im(θ₁θ₂ conj ξ)``, ``A = |θ₁|² -
    w`` and ``B = |θ₂|² - w`` do not change. So ``(dw/dt)² = 4 ((w + A)(w + B)w - M²)``, and t* is Carlson's
    integral ``R_F(w - e₁, w - e₂, w - e₃)`` with the roots of that polynomial. They are eigenvalues of a
    companion matrix, exact enough to rank times. If R < 0, w first falls to the largest root.
    """
    w = np.abs(xi) ** 2
    A, B = np.abs(first) ** 2 - w, np.abs(second) ** 2 - w
    product = np.asarray(first) * second * np.conj(xi)
    companion = np.zeros((*w.shape, 3, 3))
    companion[..., 0, :] = np.stack([-A - B, -A * B, product.imag**2], axis=-1)
    companion[..., 1, 0] = companion[..., 2, 1] = 1
    roots = np.linalg.eigvals(companion).astype(np.complex128)
    top = roots.real.max(axis=-1)  # the largest real root: a pair of complex ones lies to its left
    roots = np.take_along_axis(roots, np.argsort(-roots.real, axis=-1), axis=-1)

    def time(w: Array) -> Array:
        return np.asarray(elliprf(w - top + 0j, w - roots[..., 1], w - roots[..., 2])).real

    ahead = time(np.maximum(w, top))
    return np.where(product.real < 0, 2 * time(top) - ahead, ahead)


def ballots(times: Array) -> tuple[Array, Array]:
    """Return how many neurons vote for each circle, that of their smallest t*, and the mean of 1/t*.

    `times` has the shape (networks, neurons, K), and the results (networks, K). Circles with equally many
    votes are ranked by the mean of 1/t*.
    """
    haste = (1 / times).mean(axis=1)
    counts = (times.argmin(axis=-1)[..., None] == np.arange(times.shape[-1])).sum(axis=1)
    return counts + haste / haste.max() / 2, haste


# -- every network predicted by the others -----------------------------------------------------------------


def crossed(
    theories: Sequence[Any], networks: Trajectory, step: int, method: str = "scores"
) -> list[NDArray[Any]]:
    """Return what theories say of each network at a step, fitted to the networks of the other `FOLDS`.

    Parameters
    ----------
    theories : sequence of Theory
        Theories, which are copied before each fit.
    networks : Trajectory
        Networks with their signals, as `with_signals` returns them.
    step : int
        Step of the prediction.
    method : {"scores", "predict"}, default "scores"
        Method of the theories that is called.

    Returns
    -------
    list of ndarray, shape (networks, ...)
        The answer of each theory.
    """
    fold = np.arange(networks.runs) % FOLDS
    answers = []
    for k in range(FOLDS):
        fit, starts = shown(networks[fold != k]), shown(networks[fold == k], step)
        answers.append([getattr(copy.deepcopy(theory).fit(fit), method)(starts) for theory in theories])
    order = np.argsort(np.argsort(fold, kind="stable"))
    return [np.concatenate(parts)[order] for parts in zip(*answers, strict=True)]
