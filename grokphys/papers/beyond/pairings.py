"""Comparisons of three simulated systems of the papers with the networks that they describe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.circles.survival import StoppingRule, survives
from analysis.comparison.compared import Comparison, compare
from analysis.comparison.progress import frame_mean
from analysis.comparison.symmetry import no_relabelling
from analysis.laws.ode import fit_trajectories
from analysis.plots.comparison import show_motion, show_nearest, show_typical_pair
from analysis.plots.distributions import show_distributions
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import replaced
from grokphys.papers.ding.training import DECAY
from grokphys.papers.evidence import exchanged, jackknife, joined, where
from grokphys.papers.recipe import Columns, Result, Run, Statement, Tables, recipe
from grokphys.report import circles as ding
from nets.models import ConstantAttention, EmbeddingMLP, ToyAddition
from nets.provenance import training_sets
from nets.training import train
from physics import EffectiveTheory, ParticleSystem, representation_quality, simulate
from physics.trajectory import Trajectory

Array = NDArray[np.float64]
TOKENS, LEARNING_RATE, DECODER_RATE = 10, 1e-3, 3e-5
DELTA, GROKKED, TRACK = 0.1, 0.95, 20
THEORY_SPAN = 100
"""Multiple of the networks' steps for which the theory is followed, at the same learning rate."""


def _ratio(table: str, first: str, second: str, **constants: Any) -> Callable[[Tables, float], Interval]:
    """Return a `Measure` of the ratio of two columns of distances, as a geometric mean over rows.

    Only rows of the table count whose columns have the values `constants`. Two networks that are each other's
    nearest have one distance, the `second`, and are resampled together.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables[table], **constants)
        logs = np.log(rows[first] / rows[second])
        return jackknife(np.mean, (logs,), level, groups=rows[second]).map(np.exp)

    return measure


def _pairs(comparison: Comparison) -> dict[str, Array]:
    """Return the distances of each run to its partner and to the partner of another run, each (pairs,).

    Distances are means over all frames but the first.
    """
    motion = comparison.motion
    assert motion is not None
    assert len(motion.error) == len(motion.chance)
    return {"distance": frame_mean(motion.error[:, 1:]), "to_another": frame_mean(motion.chance[:, 1:])}


GEOMETRIC = "the mean over the networks is geometric"
OPPOSITE = f"{GEOMETRIC}, and decides: by the median both verdicts of this item would be the opposite"
ONE_CLOCK = "corrected after the run: both have the clock of the training; before, its unit was fitted"
NEARER = "distance to its own partner over that to the partner of another run; by chance 1"


# -- effective theory against toy network ------------------------------------------------------------------


@dataclass(frozen=True)
class Toys:
    """Setting: toy networks that are compared with the effective theory.

    Attributes
    ----------
    sizes : sequence of int
        Numbers of training examples.
    runs : int
        Number of networks of each size.
    steps : int
        Number of steps of training.
    """

    sizes: Sequence[int]
    runs: int
    steps: int


PAPER_TOYS = Toys(tuple(range(15, 55, 3)), 20, 10_000)


@recipe(
    "compare-theory",
    paper="beyond",
    item="side by side: theory and networks",
    shows="Trajectories of the effective theory compared with those of toy networks from the same starts. "
    "The first picture is the pair of median error, with a color for each token. The second has medians and "
    f"quartiles of {len(PAPER_TOYS.sizes) * PAPER_TOYS.runs} networks, and the factor between the times with "
    "its interval. From step 500 to 2700 the median pair is no nearer than a random one; the claim holds "
    "because its mean over the networks is geometric, and those with many samples are far nearer. The gray "
    "curve stops where the theory ends, at the time factor that suits random pairs best.",
    quick=Toys((30, 45), 3, 120),
    paper_setting=PAPER_TOYS,
    cost="half an hour",
    rules=(
        Statement(
            "motion",
            "the effective theory predicts the trajectory of embeddings",
            "beyond the papers: Liu compares them by eye, Figures 4 (c) and (d)",
            NEARER,
            _ratio("networks", "distance", "to_another"),
            chance=exchanged("networks", "distance", "to_another"),
            most=0.5,
            note=f"{GEOMETRIC}, and decides: the median is above 0.5, as is the mean for few samples",
        ),
    ),
)
def theory_and_toy(run: Run) -> Result:
    """Beyond the papers: compare the effective theory of Liu et al. with toy networks, pair by pair.

    The partner of a network is the theory with the start and the training set of that network. The table
    "networks" has a row for each network. The rule judges how much nearer networks are to their partners than
    to those of other networks.
    """
    setting: Toys = run.setting
    networks = [_toys(size, setting.runs, setting.steps, n) for n, size in enumerate(setting.sizes)]
    theories = [_theory_of(one) for one in networks]
    comparison = compare(
        theories,
        networks,
        names=("theory", "networks"),
        paired=True,
        symmetry=no_relabelling(TOKENS),
        delta=DELTA,
        most_pairs=len(setting.sizes) * setting.runs,
    )
    table = {"samples": np.repeat(setting.sizes, setting.runs), **_pairs(comparison)}
    drawn = [show_typical_pair(comparison, theories, networks), show_motion(comparison)]
    return Result({"networks": table}, _named("compare-theory", drawn))


def _named(name: str, drawn: Sequence[Any]) -> dict[str, Any]:
    """Return the figures of axes, or of arrays of axes, by the names `name`, `name`-2, and so on.

    None is left out.
    """
    figures = [np.ravel(one)[0].figure for one in drawn if one is not None]
    return {name if not n else f"{name}-{n + 1}": figure for n, figure in enumerate(figures)}


def _toys(size: int, seeds: int, steps: int, number: int) -> Trajectory:
    return train(
        ToyAddition(TOKENS),
        runs=seeds,
        steps=steps,
        seed=8100 + number,
        learning_rate=DECODER_RATE,
        weight_decay=0.0,
        embedding_learning_rate=LEARNING_RATE,
        train_fraction=size / 55,
        record=steps // 60,
        observables=("train_accuracy", "validation_accuracy"),
        thresholds={"quality": GROKKED},
        track=TRACK,
        delta=DELTA,
    )


def _theory_of(networks: Trajectory) -> Trajectory:
    """Return the flow of the theory from the normalized start of each network, with its training set.

    Times are steps of the networks, of which each is the learning rate in units of the theory. They reach to
    `THEORY_SPAN` times the last step of the networks.
    """
    span = THEORY_SPAN * float(networks.steps[-1])
    times = np.append(0.0, np.geomspace(span / 20_000, span, 300))
    states, reached = [], []
    for E, theory in zip(networks.initial.astype(float), _own_theories(networks), strict=True):
        states.append(theory.solve((E - E.mean(axis=0)) / E.std(axis=0), times * LEARNING_RATE))
        above = representation_quality(states[-1], theory, DELTA) >= GROKKED
        reached.append(float(above.argmax()) if above.any() else np.nan)
    return Trajectory(
        np.stack(states),
        np.arange(len(times)),
        times,
        observables={"steps_to_quality": np.repeat(np.array(reached)[:, None], len(times), axis=1)},
        parameters={"program": "effective theory", "system": {"type": "EffectiveTheory", "tokens": TOKENS}},
    )


def _own_theories(networks: Trajectory) -> list[EffectiveTheory]:
    model, examples = training_sets(networks)
    assert model.theory is not None
    return [replace(model.theory, pairs=model.theory.operation.samples[chosen]) for chosen in examples]


# -- particles against constant attention ------------------------------------------------------------------


@dataclass(frozen=True)
class Two:
    """Setting: `runs` of the particles and as many networks, which are trained for `epochs` steps."""

    runs: int
    epochs: int


PAPER_TWO = Two(400, 2000)


@recipe(
    "compare-particles",
    paper="beyond",
    item="side by side: particles and networks",
    shows="Final shapes of particles compared with those of networks with constant attention. The first "
    f"picture has the distances of {PAPER_TWO.runs} networks to the nearest shapes. The second shows four "
    "networks (discs) and the particles nearest to them (open circles), from the best match to the worst.",
    quick=Two(8, 200),
    paper_setting=PAPER_TWO,
    cost="a quarter of an hour",
    rules=(
        Statement(
            "shapes",
            "identical structures emerge",
            "Musat, abstract",
            "Procrustes disparity of a network's shape to the nearest of the particles, over that to the "
            "nearest of the other networks; 1 where both are drawn from the same shapes",
            _ratio("networks", "to_particles", "to_networks"),
            chance="swapping the two would make it hold: the next rule tells what it cannot be by chance",
            counter=replaced("networks", to_particles="to_starts"),
            least=0.67,
            most=1.5,
            note=f"{OPPOSITE}; corrected after the run: networks that are each other's nearest are one unit",
        ),
        Statement(
            "nearer than the start",
            "particles converge to the same structures as the embedding vectors in the trained transformer",
            "Musat, Section 6",
            "disparity of a network's shape to the nearest of the particles, over that to the nearest of "
            "their starts; by chance 1",
            _ratio("networks", "to_particles", "to_starts"),
            chance=exchanged("networks", "to_particles", "to_starts"),
            most=0.5,
            note=OPPOSITE,
        ),
    ),
)
def particles_and_attention(run: Run) -> Result:
    """Beyond the papers: compare Musat's particles at f_a = 1 with networks at weight decay 1.

    The table "networks" has a row for each network, with Procrustes disparities to the nearest shapes. The
    rules compare the disparity to particles with those to other networks and to the particles' starts.
    """
    setting: Two = run.setting
    moved = simulate(ParticleSystem(alignment=1.0), runs=setting.runs, seed=8300, record_every=2)
    trained = train(
        ConstantAttention(),
        runs=setting.runs,
        steps=setting.epochs,
        seed=8301,
        weight_decay=1.0,
        record=setting.epochs // 50,
    )
    comparison = compare(moved, trained, names=("particles", "networks"), align="grid_imperfections")
    shapes = comparison.shapes
    assert shapes is not None
    near = show_distributions(
        shapes.distances(comparison.names),
        xlabel="Procrustes disparity to the nearest shape",
        title=f"Nearest shape to each of {setting.runs} networks",
    )
    drawn = [near, show_nearest(comparison, [moved], [trained])]
    table = {
        "to_particles": shapes.nearest,
        "to_starts": shapes.nearest_start,
        "to_networks": shapes.nearest_trained,
    }
    return Result({"networks": table}, _named("compare-particles", drawn))


# -- linear ODE against embedding MLP ----------------------------------------------------------------------


BLOWN_UP = 10
"""Largest absolute value of a rollout, in units of the largest signal of all networks."""


@dataclass(frozen=True)
class Signals:
    """Setting: network to train, number of networks, and last step of training, fit and rollout."""

    model: EmbeddingMLP
    runs: int
    steps: int


PAPER_SIGNALS = Signals(EmbeddingMLP(), 20, 1000)


@recipe(
    "compare-ode",
    paper="beyond",
    item="side by side: linear law and networks",
    shows="Signals of the linear law (ODE) compared with those of the network that it was fitted to. The "
    "first two pictures are of laws by Lasso, the last two by least squares. Signals |F_k| are those of the "
    f"pair of median error, with a color for each frequency; errors are medians and quartiles of "
    f"{PAPER_SIGNALS.runs} networks. Times are steps, and equal for both.",
    quick=Signals(EmbeddingMLP(tokens=11, dim=8, hidden=(16,)), 6, 100),
    paper_setting=PAPER_SIGNALS,
    cost="ten minutes",
    rules=tuple(
        Statement(
            name,
            "the dynamics of the signals is approximated by a linear ordinary differential equation",
            "beyond the papers: Ding, Figure 9, shows one run",
            f"{NEARER}; in sample; a law that blows up is held at {BLOWN_UP} times the largest signal",
            _ratio("networks", "distance", "to_another", law=name),
            chance=exchanged("networks", "distance", "to_another"),
            most=0.5,
            note=f"{GEOMETRIC}; the partner of a network is the law that was fitted to it; {ONE_CLOCK}",
        )
        for name in ding.RECIPES
    ),
)
def ode_and_mlp(run: Run) -> Result:
    """Beyond the papers: compare the signals of the linear law with those of the network it was fitted to.

    The table "networks" has a row for each network and fit. The rules judge how much nearer a network is to
    its own law than to the law of another network.
    """
    setting: Signals = run.setting
    trained = train(
        setting.model,
        runs=setting.runs,
        steps=setting.steps,
        seed=8400,
        weight_decay=DECAY,
        record=1,
        observables=(),
    )
    signals = ding.signals_of(trained, 0, setting.steps)
    clock = signals[0].steps
    networks = _as_trajectory(np.stack([one.values for one in signals]), clock)
    bound = BLOWN_UP * float(networks.positions.max())
    parts: list[Columns] = []
    drawn: list[Any] = []
    for name, recipe_ in ding.RECIPES.items():
        laws = [fit_trajectories(one.values, **recipe_) for one in signals]
        frames = np.arange(len(clock))
        paths = [law.predict(one.values[0], frames) for law, one in zip(laws, signals, strict=True)]
        held = np.nan_to_num(np.stack(paths), nan=bound, posinf=bound, neginf=-bound)
        rolled = _as_trajectory(held.clip(-bound, bound), clock)
        found = compare(rolled, networks, names=("ODE", "networks"), states=True, paired=True, align="none")
        parts.append({"law": np.full(setting.runs, name), "run": np.arange(setting.runs), **_pairs(found)})
        drawn += [show_typical_pair(found, [rolled], [networks]), show_motion(found)]
    return Result({"networks": joined(parts)}, _named("compare-ode", drawn))


def _as_trajectory(signals: Array, steps: NDArray[np.int64]) -> Trajectory:
    """Return signals (runs, frames, K) at steps (frames,) as a trajectory, for `analysis.compare`.

    The trajectory has a token for each of the K frequencies, and observables such as the number of surviving
    circles.
    """
    rule = StoppingRule()
    decided = np.array([_or_nan(rule.first(steps, np.nan_to_num(one))) for one in signals])
    return Trajectory(
        signals[..., None],
        steps,
        observables={
            "surviving_circles": survives(signals).sum(axis=-1).astype(float),
            "strongest_signal": signals.max(axis=-1),
            "steps_to_decided_survivors": np.repeat(decided[:, None], len(steps), axis=1),
        },
    )


def _or_nan(step: int | None) -> float:
    return np.nan if step is None else float(step)
