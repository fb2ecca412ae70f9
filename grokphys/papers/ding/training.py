"""Networks for the figures of Ding et al.: sizes, runs that stop early, and laws of their signals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import StoppingRule, survives
from analysis.laws.flow import affine_solution
from analysis.laws.nonlinear import lotka_volterra
from analysis.laws.ode import PUBLISHED, ODEFit, fit_trajectories
from analysis.laws.scores import Law, fit_law
from analysis.stats.intervals import Interval
from grokphys.papers.recipe import Run
from nets.models import EmbeddingMLP
from nets.training import train

Array = NDArray[np.float64]
DECAY = 0.5
LINEAR, LASSO, SOLVED, QUADRATIC = "least squares", "Lasso", "Eq. 4 of Lasso", "Eq. 2"
"""Names of the laws that `law_of` fits; SOLVED is the law LASSO with its path in closed form (Eq. 4)."""
RULE = StoppingRule()
RECORD = "1:5,20:2005,200"
"""When to record: every step at first, for gradients, and then often enough for the stopping rule, which uses
the last 200 steps."""
SHARD = 100
"""Number of runs whose embeddings are in memory at the same time."""


@dataclass(frozen=True)
class Size:
    """Size of a network of Ding et al. and length of its training.

    Attributes
    ----------
    tokens : int
        Number of tokens, which is the modulus p.
    dim : int
        Embedding dimension d.
    steps : int
        Number of steps of a full run.
    """

    tokens: int
    dim: int
    steps: int

    @property
    def model(self) -> EmbeddingMLP:
        """Network of this size: an embedding and two hidden layers of 100 units, as in the paper."""
        return EmbeddingMLP(tokens=self.tokens, dim=self.dim)


PAPER = Size(59, 128, 30_000)
QUICK = Size(31, 32, 600)
"""Size of a smoke test, in which circles begin to differ after tenths of a second for each network."""


def gathered(
    run: Run, names: Sequence[str], make: Callable[[int], Mapping[str, Any]], *, family: str = ""
) -> dict[str, NDArray[Any]]:
    """Compute a long table in pieces, each of which is stored, so that an interrupted run can continue.

    Parameters
    ----------
    run : Run
        Argument of the recipe, whose method `keep` stores the pieces.
    names : sequence of str
        Names of the pieces.
    make : callable
        Function of the number of a piece that returns its columns.
    family : str, default ""
        Name of a family of recipes that share the pieces; by default only this recipe uses them.

    Returns
    -------
    dict of str to ndarray
        Columns of all pieces, one after the other.
    """
    parts = [run.keep(name, partial(make, n), family=family) for n, name in enumerate(names)]
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


class UntilDecided:
    """A rule for the argument `stop` of `nets.train`, which ends a run once its survivors are decided.

    Most circles die early, and training all networks to the end would take many times as long.

    Parameters
    ----------
    audited : int, default 0
        Number of runs, from the first, that continue to the end, to measure the error of the rule.

    Attributes
    ----------
    steps : list of int
        Recorded steps.
    signals : list of ndarray, shape (runs, K)
        Signals at these steps; zero for a run that has diverged.
    """

    def __init__(self, audited: int = 0) -> None:
        self.audited = audited
        self.steps: list[int] = []
        self.signals: list[Array] = []

    def __call__(self, step: int, embeddings: NDArray[Any], observables: Any) -> NDArray[np.bool_]:
        """Store the signals at a recorded step, and return which runs are decided.

        Parameters
        ----------
        step : int
            Number of the step.
        embeddings : ndarray, shape (runs, p, d)
            Embeddings of all runs.
        observables : mapping
            Not used.

        Returns
        -------
        ndarray of bool, shape (runs,)
            Which runs `StoppingRule` has decided; never those that are audited.
        """
        self.steps.append(step)
        self.signals.append(fourier_signals(np.nan_to_num(embeddings)))
        decided = np.array([RULE.decided(self.steps, run) for run in np.stack(self.signals, axis=1)])
        decided[: self.audited] = False
        return decided


@dataclass(frozen=True)
class Circles:
    """Signals of an ensemble from its start to the end of each run.

    Attributes
    ----------
    steps : ndarray of int64, shape (frames,)
        Recorded steps.
    signals : ndarray of float64, shape (runs, frames, K)
        Norms ‖F_k‖ of the frequencies k = 1 … K; those of a stopped run stay constant.
    audited : int
        Number of runs, from the first, that were not stopped.
    """

    steps: NDArray[np.int64]
    signals: Array
    audited: int

    @property
    def survived(self) -> NDArray[np.bool_]:
        """Which circles (runs, K) are above twice the mean signal at the end."""
        return survives(self.signals[:, -1])

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of circles (runs,) that survive."""
        return self.survived.sum(axis=1)

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Mask (runs,) of the runs whose survivors the rule has decided by the end."""
        return np.array([RULE.first(self.steps, run) is not None for run in self.signals])

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Circles (runs, K) that appeared or died after the decision; only audited runs can show them."""
        stops = [RULE.first(self.steps, run) for run in self.signals]
        at = [-1 if stop is None else int(np.searchsorted(self.steps, stop)) for stop in stops]
        return survives(self.signals[np.arange(len(at)), at]) != self.survived

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with a row for each network.

        Returns
        -------
        dict of str to ndarray, shape (runs,)
            How many circles survive ("circles"), whether the stopping rule has decided them ("decided"),
            whether the run was trained to the end ("audited"), and how many circles changed after the
            decision ("changed").
        """
        return {
            "circles": self.counts,
            "decided": self.decided,
            "audited": np.arange(len(self.counts)) < self.audited,
            "changed": self.changed.sum(axis=1),
        }


def train_circles(
    model: EmbeddingMLP, *, runs: int, steps: int, audited: int = 0, initial: Any = None, **options: Any
) -> Circles:
    """Train each run until its survivors are decided.

    Parameters
    ----------
    model : EmbeddingMLP
        Network to train.
    runs : int
        Number of runs.
    steps : int
        Largest number of steps.
    audited : int, default 0
        Number of runs, from the first, that are trained to the end.
    initial : array_like, shape (p, d) or (runs, p, d), optional
        Embeddings to begin with; by default they are drawn.
    **options
        Other arguments of `nets.train`.

    Returns
    -------
    Circles
        Signals of all runs at the recorded steps.
    """
    given: dict[str, Any] = {"weight_decay": DECAY, "record": RECORD, "observables": ()} | options
    clock: list[int] = []
    signals = []
    for first in range(0, runs, SHARD):
        count = min(SHARD, runs - first)
        stop = UntilDecided(max(audited - first, 0))
        if initial is not None:
            own = initial if np.ndim(initial) == 2 else initial[first : first + count]
            given["initial"] = {"embedding": own}
        train(model, runs=count, first_run=first, steps=steps, stop=stop, **given)
        clock = stop.steps
        signals.append(np.stack(stop.signals, axis=1))
    return Circles(np.array(clock), np.concatenate(signals), audited)


@dataclass(frozen=True)
class Fits:
    """Setting of fits: laws are fitted to the signals of each network alone.

    Attributes
    ----------
    tokens : int
        Modulus p.
    dims : sequence of int
        Embedding dimensions d.
    networks : int
        Number of networks of each dimension.
    seed : int
        Seed, to which the dimension is added.
    laws : sequence of str, default (LINEAR, LASSO)
        Names of the laws, as in `law_of`.
    steps : int, default 1000
        Number of steps of training, all of which are fitted.
    """

    tokens: int
    dims: Sequence[int]
    networks: int
    seed: int
    laws: Sequence[str] = (LINEAR, LASSO)
    steps: int = 1000


def law_of(name: str, x: Array) -> Law:
    """Fit a law to the signals of one network.

    Parameters
    ----------
    name : {"least squares", "Lasso", "Eq. 4 of Lasso", "Eq. 2"}
        Name of the law. The first three are linear and fitted with the settings of the paper; "Eq. 2" is the
        quadratic law.
    x : ndarray of float64, shape (frames, K)
        Signals at consecutive steps.

    Returns
    -------
    Law
        The fitted law.
    """
    if name == QUADRATIC:
        return fit_law(lotka_volterra(), x)
    return fit_trajectories(x, **PUBLISHED["least-squares" if name == LINEAR else "lasso"])


def path_of(name: str, law: Law, x: Array) -> Array:
    """Return the path of a law from the first of the given signals.

    Parameters
    ----------
    name : str
        Name of the law, as in `law_of`. "Eq. 4 of Lasso" is solved in closed form, and any other law step by
        step.
    law : Law
        The law.
    x : ndarray of float64, shape (frames, K)
        Signals, of which only the first frame and the number of frames matter.

    Returns
    -------
    ndarray of float64, shape (frames, K)
        Predicted signals; infinite or NaN where the law overflows.
    """
    times = np.arange(len(x))
    if name == SOLVED:
        assert isinstance(law, ODEFit)
        return affine_solution(law.A, law.b, x[0], times.astype(float))
    return law.predict(x[0], times)


def show_intervals(ax: Axes, x: Any, values: Sequence[Interval], **look: Any) -> Axes:
    """Draw estimates as points with error bars.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    x : array_like, shape (n,)
        Horizontal positions.
    values : sequence of Interval
        Estimates; those without an interval have no bar.
    **look
        Options of `Axes.errorbar`.

    Returns
    -------
    matplotlib Axes
        The axes.
    """
    middle, low, high = (
        np.array([getattr(value, side) for value in values]) for side in ("estimate", "low", "high")
    )
    bars = np.nan_to_num(np.clip([middle - low, high - middle], 0, None))
    style: dict[str, Any] = {"marker": "o", "markersize": 4, "capsize": 2} | look
    ax.errorbar(x, middle, bars, **style)
    return ax
