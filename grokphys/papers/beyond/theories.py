"""Whether a law fitted to some networks predicts the survivors of others, or later steps of the same ones.

Comparisons of three simulated systems of the papers with the networks that they describe.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles.fourier import trajectory_signals
from analysis.circles.survival import StoppingRule, survives
from analysis.comparison.compared import Comparison, compare
from analysis.comparison.motion import frame_mean
from analysis.comparison.relabelling import no_relabelling
from analysis.laws.nonlinear import MeanFieldRegressor
from analysis.laws.ode import PUBLISHED, fit_trajectories
from analysis.laws.scores import Law, fit_law
from analysis.plots import palette
from analysis.plots.comparison import show_motion, show_nearest, show_typical_pair
from analysis.plots.distributions import show_distributions
from analysis.stats.intervals import CONFIDENCE, Interval
from grokphys.papers import charts, counters, evidence, measures
from grokphys.papers.beyond.survivors import agreement as common
from grokphys.papers.beyond.survivors import strongest
from grokphys.papers.ding.figures_09_to_16 import fit_networks
from grokphys.papers.ding.training import LASSO, LINEAR, PAPER, QUICK, law_of, train_networks
from grokphys.papers.evidence import Columns, Measure, Tables
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from grokphys.report import circles as ding
from nets.models import ConstantAttention, EmbeddingMLP, ToyAddition
from nets.provenance import training_sets
from nets.training import train
from physics import EffectiveTheory, ParticleSystem, representation_quality, simulate
from physics.trajectory import Trajectory

# -- laws --------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]
Booleans = NDArray[np.bool_]
FOLDS = 4
STARTS = (0, 20, 50, 100, 200, 300, 400)
WILD = 1e4
"""Largest relative error of a rollout, which one that diverges has."""
MEAN_FIELD, LINEAR_LAW, RANKING = "mean field, nine terms", "linear, Lasso", "ranking by the signal there"
LAWS: dict[str, Callable[[list[Array]], Law]] = {
    MEAN_FIELD: lambda x: fit_law(MeanFieldRegressor(), x),
    LINEAR_LAW: lambda x: fit_trajectories(x, **PUBLISHED["lasso"]),
}
COLUMNS = {MEAN_FIELD: "mean_field", LINEAR_LAW: "linear", RANKING: "ranking"}


def _better(name: str, start: int) -> Statement:
    over = COLUMNS[name]
    return Statement(f"mean field and {over}, from step {start}",
        f"a mean field tells the survivors better than {name}",
        "agreement on the survivors: that of the mean field minus the other's; by chance 0",
        measures.mean("networks", f"mean_field - {over}", start=start), least=0.02,
        source="this project; no paper says it",
        chance=counters.exchanged("networks", "mean_field", over))  # fmt: skip


@recipe(
    "ding-law", item="one law for many networks",
    quick=Setting(size=QUICK, starts=(0, 100), every=10, last=300, networks=8, seed=0),
    paper_setting=Setting(size=PAPER, starts=STARTS, every=10, last=1000, networks=50, seed=170_000),
    cost="one to two hours",
    rules=tuple(_better(name, start) for name in (RANKING, LINEAR_LAW) for start in STARTS),
)  # fmt: skip
def across_networks(run: Run) -> Result:
    """Whether a law fitted to some networks predicts the survivors of others.

    Notes
    -----
    The table "networks" has a row for each network and step of the prediction, with the agreement on the
    survivors of a mean-field law, of the linear law of Ding et al., and of a ranking by the signal. The rules
    judge whether the mean field agrees better. The figure is "ding-law".
    """
    setting = run.setting
    size = setting.size

    def train_all() -> dict[str, Any]:
        trained = train_networks(run, range(setting.networks), f"{setting.every}:{setting.last},{size.steps}")
        return {"signals": trajectory_signals(trained)}

    signals = run.keep("networks", train_all)["signals"]
    final, head = survives(signals[:, -1]), signals[:, : setting.last // setting.every + 1]
    parts = []
    for start in setting.starts:
        pieces = head[:, start // setting.every :]
        part = {"start": np.full(len(pieces), start), "network": np.arange(len(pieces))}
        for name, fit in LAWS.items():
            part[COLUMNS[name]], part[f"{COLUMNS[name]}_error"] = _judge(fit, pieces, final)
        parts.append(part | {"ranking": common(strongest(pieces[:, 0], final), final)})
    rows = evidence.joined(parts)
    with charts.panels(9.8, 3.7, 1, 2) as (figure, (left, right)):
        for n, (name, column) in enumerate(COLUMNS.items()):
            shown = np.array(setting.starts) + 4.0 * (n - 1)  # so that bars do not hide each other
            own = [evidence.where(rows, start=start) for start in setting.starts]
            look: Any = {"label": name, "color": palette.SERIES[n]}
            charts.intervals(left, shown, [evidence.mean(part[column], CONFIDENCE) for part in own], **look)
            if name in LAWS:
                errors = [evidence.mean(part[f"{column}_error"], CONFIDENCE) for part in own]
                charts.intervals(right, shown, errors, **look)
        left.set(xlabel="step of the prediction", ylabel="agreement on the survivors", ylim=(0, 1.03))
        left.set_yticks(np.linspace(0, 1, 6))
        left.set_title(f"p = {size.tokens}, d = {size.dim}, {setting.networks} networks, unseen in the fit")
        charts.legend_below(left)
        right.set(xlabel="step of the prediction", ylabel="log₁₀ relative error")
        right.set_title(f"rollouts to step {setting.last}, mean and 95 % interval")
    return Result({"networks": rows}, {"ding-law": figure})


def _judge(fit: Callable[[list[Array]], Law], pieces: Array, final: Booleans) -> tuple[Array, Array]:
    """Predict the survivors of each run by a law that was fitted to the runs of the other folds.

    Parameters
    ----------
    fit : callable
        Function of a list of signals, each of shape (frames, K), that returns a fitted law.
    pieces : ndarray of float64, shape (runs, frames, K)
        Signals of K frequencies from the step of the prediction on.
    final : ndarray of bool, shape (runs, K)
        Whether the circle of each frequency survives in the end.

    Returns
    -------
    pair of ndarray of float64, shape (runs,)
        Agreement of predicted and final survivors, from 0 to 1, and log₁₀ of the relative error of the
        rollout, at most that of `WILD`. A rollout that diverges predicts no survivor.
    """
    agreement, error = np.empty(len(pieces)), np.empty(len(pieces))
    for fold in range(FOLDS):
        left = np.arange(fold, len(pieces), FOLDS)
        law = fit(list(np.delete(pieces, left, axis=0)))
        for run in left:
            path, _ = law.rollout(pieces[run, 0], np.arange(pieces.shape[1]))
            sound = np.isfinite(path).all()
            alive = survives(path[-1]) if sound else np.zeros_like(final[run])
            agreement[run] = common(alive, final[run])
            miss = float(np.linalg.norm(path - pieces[run]) / np.linalg.norm(pieces[run])) if sound else WILD
            error[run] = np.log10(min(miss, WILD))
    return agreement, error


# -- forward in time ----------------------------------------------------------------------------------------


def _fails(law: str) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = evidence.where(tables["forward"], law=law)
        parts = [evidence.share(rows[half] < 0, level) for half in ("later", "early")]
        return replace(evidence.difference(*parts), count=len(rows["network"]))

    return measure


def _flatters(law: str) -> Statement:
    return Statement(law,
        f"the R² of {law} in sample flatters: half of a network's steps do not tell the other half",
        "share of networks in which the law of the first 500 steps has an R² below 0 on the next 500, minus "
        "the share in which it is below 0 on its own 500; 0 where the halves are exchanged by chance",
        _fails(law), least=0.75, possible=(-1.0, 1.0), source="this project; no paper says it",
        chance=counters.exchanged("forward", "early", "later"),
        note="corrected after the run: intervals of shares; before, that of a mean, "
        "which had no width")  # fmt: skip


def _draw_forward(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw R² of the changes in the first and in the second half of the steps, for each network and law."""
    table, half = tables["forward"], setting.steps // 2
    with charts.panels(5.6, 3.8) as (figure, ax):
        for n, name in enumerate((LINEAR, LASSO)):
            mine = evidence.where(table, law=name)
            for k, part in enumerate(("early", "later")):
                look: Any = {"color": palette.SERIES[n], "label": name if not k else None, "alpha": 0.5}
                ax.plot(np.full(len(mine[part]), k + 0.1 * n), mine[part], "o", markersize=4, **look)
        ax.set_yscale("symlog", linthresh=1, linscale=1.5)
        worst = np.log10(max(10.0, -float(np.min(table["later"]))))
        powers = [(-(10.0**k), f"$-10^{{{k}}}$") for k in range(1, int(worst) + 1)]
        ax.set_yticks(*zip((1, "1"), (0.5, "0.5"), (0, "0"), (-1, "−1"), *powers, strict=True))
        ax.set(
            xticks=(0, 1), xticklabels=(f"first {half} steps, fitted", f"next {half} steps"), xlim=(-0.5, 1.6)
        )
        ax.axhline(0, color=palette.INK, linewidth=0.8)
        ax.set(
            ylabel="R² of the changes",
            title=f"{len(np.unique(table['network']))} networks, each fitted alone",
        )
        charts.legend_below(ax)
    return {"ding-forward": figure}


@recipe(
    "ding-forward", item="the linear law, forward in time",
    quick=Setting(
        tokens=QUICK.tokens, dims=(QUICK.dim,), networks=6, seed=3, laws=(LINEAR, LASSO), steps=150,
    ),
    paper_setting=Setting(
        tokens=PAPER.tokens, dims=(PAPER.dim,), networks=30, seed=280_000, laws=(LINEAR, LASSO), steps=1000,
    ),
    draw=_draw_forward, cost="five to fifteen minutes",
    rules=(_flatters(LINEAR), _flatters(LASSO)),
)  # fmt: skip
def forward(run: Run) -> Result:
    """How well a linear law fitted to the first half of the training steps predicts the second half.

    Notes
    -----
    The signals of embedding MLPs are fitted by least squares and by Lasso. The table "forward" has a row for
    each network and law. The rules judge in how many more networks R² is negative in the second half of the
    steps, to which the law was not fitted, than in the first half.
    """
    _, signals = fit_networks(run)
    half = run.setting.steps // 2
    rows: list[dict[str, Any]] = []
    for network, x in enumerate(signals):
        for name in (LINEAR, LASSO):
            law = law_of(name, x[: half + 1])
            own = {
                part: law.score(s).derivative for part, s in (("early", x[: half + 1]), ("later", x[half:]))
            }
            rows.append({"network": network, "law": name} | own)
    return Result({"forward": evidence.columns_of(rows)})


# -- side by side ------------------------------------------------------------------------------------------

TOKENS, LEARNING_RATE, DECODER_RATE = 10, 1e-3, 3e-5
DELTA, GROKKED, TRACK = 0.1, 0.95, 20
THEORY_SPAN = 100
"""Multiple of the networks' steps for which the theory is followed, at the same learning rate."""


def _ratio(table: str, first: str, second: str, **constants: Any) -> Measure:
    """Return a measure of the ratio of two columns of distances, as a geometric mean over rows.

    Two networks that are each other's nearest have one distance, the `second`, and are resampled together.
    """
    logs = measures.statistic(np.mean, table, f"np.log({first} / {second})", by=second, **constants)
    return measures.mapped(logs, np.exp)


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


PAPER_TOYS = Setting(sizes=tuple(range(15, 55, 3)), runs=20, steps=10_000)


@recipe(
    "compare-theory", item="side by side: theory and networks",
    quick=Setting(sizes=(30, 45), runs=3, steps=120), paper_setting=PAPER_TOYS,
    source="beyond the papers: Liu compares them by eye, Figures 4 (c) and (d)",
    shows="Trajectories of the effective theory compared with those of toy networks from the same starts. "
    "The first picture is the pair of median error, with a color for each token. The second has medians and "
    f"quartiles of {len(PAPER_TOYS.sizes) * PAPER_TOYS.runs} networks, and the factor between the times "
    "with "
    "its interval. From step 500 to 2700 the median pair is no nearer than a random one; the claim holds "
    "because its mean over the networks is geometric, and those with many samples are far nearer. The gray "
    "curve stops where the theory ends, at the time factor that suits random pairs best.",
    cost="half an hour",
    rules=(
        Statement("motion", "the effective theory predicts the trajectory of embeddings", NEARER,
            _ratio("networks", "distance", "to_another"), most=0.5,
            chance=counters.exchanged("networks", "distance", "to_another"),
            note=f"{GEOMETRIC}, and decides: the median is above 0.5, as is the mean for few samples"),
    ),
)  # fmt: skip
def theory_and_toy(run: Run) -> Result:
    """Beyond the papers: compare the effective theory of Liu et al. with toy networks, pair by pair.

    The partner of a network is the theory with the start and the training set of that network. The table
    "networks" has a row for each network. The rule judges how much nearer networks are to their partners than
    to those of other networks.
    """
    setting = run.setting
    networks = [
        _toys(size, setting.runs, setting.steps, run.seed(8100 + n)) for n, size in enumerate(setting.sizes)
    ]
    theories = [_theory_of(one) for one in networks]
    comparison = compare(
        theories, networks, names=("theory", "networks"), paired=True, symmetry=no_relabelling(TOKENS),
        delta=DELTA, most_pairs=len(setting.sizes) * setting.runs,
    )  # fmt: skip
    table = {"samples": np.repeat(setting.sizes, setting.runs), **_pairs(comparison)}
    drawn = [show_typical_pair(comparison, theories, networks), show_motion(comparison)]
    return Result({"networks": table}, _named("compare-theory", drawn))


def _named(name: str, drawn: Sequence[Any]) -> dict[str, Any]:
    """Return the figures of axes, or of arrays of axes, by the names `name`, `name`-2, and so on.

    None is left out.
    """
    figures = [np.ravel(one)[0].figure for one in drawn if one is not None]
    return {name if not n else f"{name}-{n + 1}": figure for n, figure in enumerate(figures)}


def _toys(size: int, seeds: int, steps: int, seed: int) -> Trajectory:
    return train(
        ToyAddition(TOKENS), runs=seeds, steps=steps, seed=seed, learning_rate=DECODER_RATE, weight_decay=0.0,
        embedding_learning_rate=LEARNING_RATE, train_fraction=size / 55, record=steps // 60,
        observables=("train_accuracy", "validation_accuracy"), thresholds={"quality": GROKKED}, track=TRACK,
        delta=DELTA,
    )  # fmt: skip


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
        np.stack(states), np.arange(len(times)), times,
        observables={"steps_to_quality": np.repeat(np.array(reached)[:, None], len(times), axis=1)},
        parameters={"program": "effective theory", "system": {"type": "EffectiveTheory", "tokens": TOKENS}},
    )  # fmt: skip


def _own_theories(networks: Trajectory) -> list[EffectiveTheory]:
    model, examples = training_sets(networks)
    assert model.theory is not None
    return [replace(model.theory, pairs=model.theory.operation.samples[chosen]) for chosen in examples]


# -- particles against constant attention ------------------------------------------------------------------


PAPER_TWO = Setting(runs=400, epochs=2000)


@recipe(
    "compare-particles", item="side by side: particles and networks", quick=Setting(runs=8, epochs=200),
    paper_setting=PAPER_TWO, source="Musat, abstract",
    shows="Final shapes of particles compared with those of networks with constant attention. The first "
    f"picture has the distances of {PAPER_TWO.runs} networks to the nearest shapes. The second shows four "
    "networks (discs) and the particles nearest to them (open circles), from the best match to the worst.",
    cost="a quarter of an hour",
    rules=(
        Statement("shapes", "identical structures emerge",
            "Procrustes disparity of a network's shape to the nearest of the particles, over that to the "
            "nearest of the other networks; 1 where both are drawn from the same shapes",
            _ratio("networks", "to_particles", "to_networks"), least=0.67, most=1.5,
            chance="swapping the two would make it hold: the next rule tells what it cannot be by chance",
            counter=counters.replaced("networks", to_particles="to_starts"),
            note=f"{OPPOSITE}; corrected after the run: networks that are each other's nearest are one unit"),
        Statement("nearer than the start",
            "particles converge to the same structures as the embedding vectors in the trained transformer",
            "disparity of a network's shape to the nearest of the particles, over that to the nearest of "
            "their starts; by chance 1",
            _ratio("networks", "to_particles", "to_starts"), most=0.5, source="Musat, Section 6",
            chance=counters.exchanged("networks", "to_particles", "to_starts"), note=OPPOSITE),
    ),
)  # fmt: skip
def particles_and_attention(run: Run) -> Result:
    """Beyond the papers: compare Musat's particles at f_a = 1 with networks at weight decay 1.

    The table "networks" has a row for each network, with Procrustes disparities to the nearest shapes. The
    rules compare the disparity to particles with those to other networks and to the particles' starts.
    """
    setting = run.setting
    moved = simulate(ParticleSystem(alignment=1.0), runs=setting.runs, seed=run.seed(8300), record_every=2)
    every, steps = setting.epochs // 50, setting.epochs
    options: dict[str, Any] = {"weight_decay": 1.0, "record": every, "seed": run.seed(8301)}
    trained = train(ConstantAttention(), runs=setting.runs, steps=steps, **options)
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


PAPER_SIGNALS = Setting(model=EmbeddingMLP(), runs=20, steps=1000)


@recipe(
    "compare-ode", item="side by side: linear law and networks",
    quick=Setting(model=EmbeddingMLP(tokens=11, dim=8, hidden=(16,)), runs=6, steps=100),
    paper_setting=PAPER_SIGNALS, source="beyond the papers: Ding, Figure 9, shows one run",
    shows="Signals of the linear law (ODE) compared with those of the network that it was fitted to. The "
    "first two pictures are of laws by Lasso, the last two by least squares. Signals |F_k| are those of the "
    "pair of median error, with a color for each frequency; errors are medians and quartiles of "
    f"{PAPER_SIGNALS.runs} networks. Times are steps, and equal for both.",
    cost="ten minutes",
    rules=tuple(
        Statement(name,
            "the dynamics of the signals is approximated by a linear ordinary differential equation",
            f"{NEARER}; in sample; a law that blows up is held at {BLOWN_UP} times the largest signal",
            _ratio("networks", "distance", "to_another", law=name), most=0.5,
            chance=counters.exchanged("networks", "distance", "to_another"),
            note=f"{GEOMETRIC}; the partner of a network is the law that was fitted to it; {ONE_CLOCK}")
        for name in ding.RECIPES
    ),
)  # fmt: skip
def ode_and_mlp(run: Run) -> Result:
    """Beyond the papers: compare the signals of the linear law with those of the network it was fitted to.

    The table "networks" has a row for each network and fit. The rules judge how much nearer a network is to
    its own law than to the law of another network.
    """
    setting = run.setting
    trained = train_networks(run, range(setting.runs), 1, model=setting.model, steps=setting.steps, seed=8400)
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
    return Result({"networks": evidence.joined(parts)}, _named("compare-ode", drawn))


def _as_trajectory(signals: Array, steps: NDArray[np.int64]) -> Trajectory:
    """Return signals (runs, frames, K) at steps (frames,) as a trajectory, for `analysis.compare`.

    The trajectory has a token for each of the K frequencies, and observables such as the number of surviving
    circles.
    """
    rule = StoppingRule()
    decided = np.array([_or_nan(rule.first(steps, np.nan_to_num(one))) for one in signals])
    return Trajectory(
        signals[..., None], steps,
        observables={
            "surviving_circles": survives(signals).sum(axis=-1).astype(float),
            "strongest_signal": signals.max(axis=-1),
            "steps_to_decided_survivors": np.repeat(decided[:, None], len(steps), axis=1),
        },
    )  # fmt: skip


def _or_nan(step: int | None) -> float:
    return np.nan if step is None else float(step)
