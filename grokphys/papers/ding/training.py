"""Training of the networks of Ding et al. until their survivors are known, and laws of their signals.

Networks on shared initial embeddings, for Figures 6 (left) and 7 of Ding et al.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles import StoppingRule, survives
from analysis.circles.fourier import frequency_norms
from analysis.laws import PUBLISHED, Law, affine_solution, fit_law, fit_trajectories, lotka_volterra
from grokphys.papers.evidence import joined, table_of
from grokphys.papers.recipe import Run, Setting
from nets import EmbeddingMLP, train
from physics import SimulationError, Trajectory

# -- training ----------------------------------------------------------------------------------------------

Array = NDArray[np.float64]
DECAY = 0.5
LINEAR, LASSO, SOLVED, QUADRATIC = "least squares", "Lasso", "Eq. 4 of Lasso", "Eq. 2"
"""Names of the laws that `law_of` fits and `path_of` evaluates; equations are those of Ding et al."""
RULE = StoppingRule()
BITS = "nearest: floats of 32 bits, where the code has 64"
"""Fidelity of recipes on the first 1000 steps."""
SINGLE = "nearest: floats of 32 bits, whose rounding kills some circles late, where the code has 64"
"""Fidelity of recipes whose networks are trained to the end."""
STOPPED = (
    f"{BITS}; most networks stop near step 1000, where a rule says who survives, and some circles die later"
)
"""Fidelity of recipes whose networks are not trained to the end."""
RECORD = "1:5,20:2005,200"
"""When to record: the first five steps, for early changes of the signals; then often enough for `RULE`, which
compares the last 200 steps."""
SHARD = 240
"""Largest number of networks that are trained together, because their embeddings are in memory."""


@dataclass(frozen=True)
class Size:
    """Size of the networks of a figure, and length of their training.

    Attributes
    ----------
    tokens : int
        Number of tokens, which is the modulus p.
    dim : int
        Embedding dimension d.
    steps : int
        Number of steps of a full training.
    """

    tokens: int
    dim: int
    steps: int

    @property
    def model(self) -> EmbeddingMLP:
        """Network of this size, with two hidden layers of 100 units, as in the paper."""
        return EmbeddingMLP(tokens=self.tokens, dim=self.dim)


PAPER = Size(59, 128, 30_000)
QUICK = Size(31, 32, 600)
"""Size of a smoke test."""


def train_networks(run: Run, part: range, record: Any, *observables: str, **options: Any) -> Trajectory:
    """Train the networks `part` of a run, and refuse those that blow up.

    All arguments from `record` on are those of `nets.train`. By default `model` and `steps` are those of the
    size in the setting of the run, and `seed` is the one there.
    """
    setting, given = run.setting, {"weight_decay": DECAY} | options
    model = given.pop("model", None) or setting.size.model
    steps, seed = given.pop("steps", None) or setting.size.steps, given.pop("seed", None)
    trained = train(
        model, runs=len(part), first_run=part.start, record=record, observables=observables, steps=steps,
        seed=run.seed(setting.seed if seed is None else seed), **given,
    )  # fmt: skip
    require_finite(trained.final)
    return trained


def require_finite(embeddings: Any) -> None:
    """Refuse networks that have blown up, which would count as networks without circles."""
    lost = np.flatnonzero(~np.isfinite(embeddings).all(axis=(-2, -1)))
    if len(lost):
        raise SimulationError(
            f"{len(lost)} of {len(embeddings)} networks have blown up, the first of them number {lost[0]} of "
            "its part; use a smaller learning rate"
        )


def means_by(x: Any, values: Any) -> tuple[Array, Array]:
    """Return the distinct values of a column x (n,), and the means of another column at each of them."""
    places, group = np.unique(x, return_inverse=True)
    return places.astype(float), np.bincount(group, values) / np.bincount(group)


def parts_of(networks: int, most: int) -> list[range]:
    """Return ranges of at most `most` networks, one after the other, that together are all `networks`."""
    return [range(first, min(first + most, networks)) for first in range(0, networks, most)]


class UntilDecided:
    """Rule for the argument `stop` of `nets.train`: a network stops once `RULE` has decided its survivors.

    Most circles die early, so that trainings to the end would take many times as long.

    Parameters
    ----------
    audited : int, default 0
        Number of networks, from the first, that never stop, so that errors of the rule can be counted.

    Attributes
    ----------
    steps : list of int
        Recorded steps.
    signals : list of ndarray of float64, shape (runs, K)
        Norms ‖F_k‖ of the frequencies k = 1 … K at each of these steps.
    """

    def __init__(self, audited: int = 0) -> None:
        self.audited = audited
        self.steps: list[int] = []
        self.signals: list[Array] = []

    def __call__(self, step: int, embeddings: NDArray[Any], observables: Any) -> NDArray[np.bool_]:
        """Store the signals of embeddings (runs, tokens, dim), and return which runs stop, bool (runs,)."""
        self.steps.append(step)
        self.signals.append(frequency_norms(np.nan_to_num(embeddings)))
        decided = np.array([RULE.decided(self.steps, run) for run in np.stack(self.signals, axis=1)])
        decided[: self.audited] = False
        return decided


@dataclass(frozen=True)
class Circles:
    """Signals of networks from the start to the end of training, and the circles that survive.

    Attributes
    ----------
    steps : ndarray of int64, shape (frames,)
        Recorded steps.
    signals : ndarray of float64, shape (runs, frames, K)
        Norms ‖F_k‖ of the frequencies k = 1 … K; they are constant once a network has stopped.
    audited : int
        Number of networks, from the first, that were exempt from the stopping rule.
    """

    steps: NDArray[np.int64]
    signals: Array
    audited: int

    @property
    def survived(self) -> NDArray[np.bool_]:
        """Whether the final signal of each circle exceeds twice the mean, bool (runs, frequencies)."""
        return survives(self.signals[:, -1])

    def by_frequency(self, index: Any, **columns: Any) -> dict[str, NDArray[Any]]:
        """Return a table with a row for each network and frequency, with further columns (networks, K).

        Among them are whether the circle "survived", whether `RULE` has "decided" the network at some step,
        whether the network was "audited", and whether the circle "changed" after the decision, which only
        audited networks can show. `index` is as in `table_of`.
        """
        stops = [RULE.first(self.steps, run) for run in self.signals]
        at = [-1 if stop is None else int(np.searchsorted(self.steps, stop)) for stop in stops]
        numbers, decided = np.arange(len(at)), np.array([stop is not None for stop in stops])
        return table_of(
            index, **columns, survived=self.survived, decided=decided[:, None],
            audited=(numbers < self.audited)[:, None],
            changed=survives(self.signals[numbers, at]) != self.survived,
        )  # fmt: skip


def train_circles(model: EmbeddingMLP, runs: int, audited: int = 0, **options: Any) -> Circles:
    """Train networks until their survivors are decided, and return their signals at the recorded steps.

    Of `runs` networks of a `model`, the first `audited` are trained for all steps, and so is a network that
    is never decided. The `options` are further arguments of `nets.train`, among them the initial embeddings
    as `initial` (runs, tokens, dim).
    """
    given: dict[str, Any] = {"weight_decay": DECAY, "record": RECORD, "observables": ()} | options
    initial, first_run = given.pop("initial", None), given.pop("first_run", 0)
    signals = []
    for part in parts_of(runs, SHARD):
        stop = UntilDecided(max(audited - part.start, 0))
        if initial is not None:
            given["initial"] = {"embedding": initial[part.start : part.stop]}
        trained = train(model, runs=len(part), first_run=first_run + part.start, stop=stop, **given)
        require_finite(trained.final)
        signals.append(np.stack(stop.signals, axis=1))
    return Circles(np.array(stop.steps), np.concatenate(signals), audited)


def law_of(name: str, x: Array) -> Law:
    """Fit a law, by its name, to the signals x (frames, frequencies) of one network at consecutive steps.

    The name QUADRATIC stands for Eq. 2 of Ding et al., and LINEAR for a linear law by least squares. LASSO
    and SOLVED are the same linear law by Lasso, which `path_of` evaluates in two ways.
    """
    if name == QUADRATIC:
        return fit_law(lotka_volterra(), x)
    return fit_trajectories(x, **PUBLISHED["least-squares" if name == LINEAR else "lasso"])


def path_of(name: str, law: Any, x: Array) -> Array:
    """Return the signals that a law predicts from the first frame of signals x (frames, frequencies).

    For the name SOLVED the linear law is solved in continuous time (Eq. 4 of Ding et al.); any other law
    advances step by step. The result has the shape of x, and predictions that diverge are infinite or NaN.
    """
    times = np.arange(len(x))
    if name == SOLVED:
        return affine_solution(law.A, law.b, x[0], times.astype(float))
    return np.asarray(law.predict(x[0], times))


# -- trials ------------------------------------------------------------------------------------------------

AUDITED = 4
"""Number of embeddings of which one network is trained to the end, to count errors of the stopping rule."""
FIRST_SEED = 6000


FEW_TRIALS = Setting(size=QUICK, embeddings=3, trials=6)
TRIALS = Setting(size=PAPER, embeddings=10, trials=50)


def train_trials(run: Run) -> dict[str, Any]:
    """Train the networks of a `Trials` setting, and return a table of their frequencies.

    A row belongs to one frequency of one network. Its columns include the initial signal, its changes in the
    steps 1 to 4, and whether the circle survives.
    """
    setting = run.setting
    return joined(
        run.keep(f"embedding-{n}", partial(_one_embedding, run, n), family="ding-trials")
        for n in range(setting.embeddings)
    )


def _one_embedding(run: Run, number: int) -> dict[str, Any]:
    setting, size = run.setting, run.setting.size
    found = train_circles(
        size.model, runs=setting.trials, seed=run.seed(FIRST_SEED + number), shared=("embedding",),
        steps=size.steps, audited=int(number < AUDITED),
    )  # fmt: skip
    changes = np.diff(found.signals[:, :5], axis=1)
    frequencies = range(1, size.tokens // 2 + 1)
    return found.by_frequency(
        {"embedding": [number], "trial": range(setting.trials), "frequency": frequencies},
        signal=found.signals[:, 0], **{f"change_{step}": changes[:, step - 1] for step in range(1, 5)},
    )  # fmt: skip
