"""Beyond Ding et al.: whether the start settles which circles survive, and how well predictors find them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from analysis.circles.fourier import fourier_signals, trajectory_signals
from analysis.circles.survival import survives
from analysis.laws.nonlinear import MeanFieldRegressor
from analysis.laws.ode import PUBLISHED, fit_trajectories
from analysis.laws.scores import fit_law
from analysis.plots.palette import SERIES
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.beyond.agreement import agreement, strongest
from grokphys.papers.beyond.selection import SOURCE, Place
from grokphys.papers.counters.builders import instead
from grokphys.papers.ding.training import DECAY, show_intervals
from grokphys.papers.evidence import difference, joined, mean, paired_gap, pooled, shuffled, where
from grokphys.papers.recipe import Columns, Result, Run, Statement, Tables, recipe
from nets.architecture import EMBEDDING
from nets.models import EmbeddingMLP
from nets.training import train
from physics.seeds import generator as generator_of

Array = NDArray[np.float64]
EVERY = 10
"""Number of steps from one frame to the next of the signals to which laws are fitted."""
AHEAD = 4
"""Number of steps over which a rate of change is measured, as in Figure 7 of Ding et al."""
FOLDS = 4
UNRELATED = "all fresh"
SHARED = {
    "fresh layers": ("embedding", "split"),
    "fresh split": ("embedding", "layers"),
    "fresh layers and split": ("embedding",),
    "fresh embedding": ("layers", "split"),
    UNRELATED: (),
}
"""Random draws that a network shares with the first one, by the name of what is drawn separately."""
CHANGED = "start × (1 ± {:g})"
"""Name of a change of the initial embedding, by its relative size."""


@dataclass(frozen=True)
class Setting:
    """Setting: networks that are trained again with changes, and networks whose survivors are predicted.

    Attributes
    ----------
    places : sequence of Place
        Moduli, dimensions and numbers of steps.
    bases : int
        Number of networks that are trained again with changes.
    changes : sequence of float
        Relative sizes of a random change of the initial embedding.
    runs : int
        Number of networks whose survivors are predicted.
    starts : sequence of int
        Steps from which the survivors are predicted.
    last : int
        Step to which laws are fitted and rolled out.
    first_base : int, default 0
        Number of the first of the networks that are trained again, from which their seeds follow.
    """

    places: Sequence[Place]
    bases: int
    changes: Sequence[float]
    runs: int
    starts: Sequence[int]
    last: int
    first_base: int = 0


# -- the same network again --------------------------------------------------------------------------------


def _again(setting: Setting, place: Place, base: int) -> dict[str, Any]:
    """Train one network, and others that differ a little from it, and return a table of their agreement.

    The table has a row for each network with a slightly changed embedding at the start, and for each network
    that shares only some random draws with the first. It holds the agreement with the survivors of the first
    network, whose seed the number `base` determines.
    """
    options: dict[str, Any] = {"steps": place.steps, "weight_decay": DECAY, "observables": ()}
    options |= {"seed": 41_000 + 100 * place.tokens + base, "record": place.steps}
    model = EmbeddingMLP(place.tokens, place.dim)
    first = train(model, runs=1, **options)
    E = first.initial[0].astype(float)
    noise = generator_of(base).standard_normal(E.shape) * E.std()
    changed = [E + size * noise for size in setting.changes]
    twins = train(
        model,
        runs=len(changed),
        run_numbers=[0] * len(changed),
        initial={EMBEDDING: np.stack(changed)},
        **options,
    )
    names, finals = [CHANGED.format(size) for size in setting.changes], [twins.final]
    for name, shared in SHARED.items():
        finals.append(train(model, runs=2, first_run=1, shared=shared, **options).final)
        names += [name] * 2
    own, others = (survives(fourier_signals(final)) for final in (first.final, np.concatenate(finals)))
    count = len(names)
    return {
        "tokens": np.full(count, place.tokens),
        "base": np.full(count, base),
        "change": np.array(names),
        "agreement": agreement(own, others),
    }


# -- predictors --------------------------------------------------------------------------------------------


def _predicted(setting: Setting, place: Place) -> dict[str, Any]:
    """Predict the survivors of networks from several steps, and return a table of the agreement.

    The table has a row for each step, predictor and network. No law or classifier is fitted to the network
    that it predicts.
    """
    grid = set(range(0, setting.last + 1, EVERY)) | {step + AHEAD for step in setting.starts}
    steps = sorted(grid | {place.steps})
    trained = train(
        EmbeddingMLP(place.tokens, place.dim),
        runs=setting.runs,
        steps=place.steps,
        seed=42_000 + place.tokens,
        weight_decay=DECAY,
        record=steps,
        observables=(),
    )
    signals = trajectory_signals(trained).astype(float)
    clock = trained.steps
    final = survives(signals[:, -1])
    regular = signals[:, (clock % EVERY == 0) & (clock <= setting.last)]
    rows: list[Columns] = []
    for start in setting.starts:
        now, then = (signals[:, np.searchsorted(clock, step)] for step in (start, start + AHEAD))
        scores = _scores(now, then - now, regular[:, start // EVERY :], final)
        for name, values in scores.items():
            rows.append(
                {
                    "tokens": np.full(setting.runs, place.tokens),
                    "start": np.full(setting.runs, start),
                    "predictor": np.full(setting.runs, name),
                    "network": np.arange(setting.runs),
                    "agreement": agreement(strongest(values, final), final),
                }
            )
    return joined(rows)


def _scores(now: Array, rate: Array, pieces: Array, final: Any) -> dict[str, Array]:
    """Score every circle by each predictor: circles with larger scores should survive.

    Parameters
    ----------
    now, rate : ndarray of float64, shape (networks, K)
        Signals of K frequencies at the step of the prediction, and their changes over `AHEAD` steps.
    pieces : ndarray of float64, shape (networks, frames, K)
        Signals from this step on, to which laws are fitted.
    final : ndarray of bool, shape (networks, K)
        Whether the circle of each frequency survives in the end.

    Returns
    -------
    dict of str to ndarray of float64, shape (networks, K)
        Scores by the name of the predictor.
    """
    found = {"signal": now, "rate": rate}
    fitted: dict[str, Callable[[Any], Any]] = {
        "linear law": lambda x: fit_trajectories(x, **PUBLISHED["lasso"]),
        "mean field": lambda x: fit_law(MeanFieldRegressor(), x),
    }
    for name in ("SVM", *fitted):
        found[name] = np.zeros_like(now)
    X = np.stack([now, rate], axis=2)
    frames = np.arange(pieces.shape[1])
    for fold in range(FOLDS):
        out = np.arange(fold, len(now), FOLDS)
        seen = np.setdiff1d(np.arange(len(now)), out)
        machine = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
        if 0 < final[seen].sum() < final[seen].size:
            machine.fit(X[seen].reshape(-1, 2), final[seen].ravel())
            found["SVM"][out] = machine.decision_function(X[out].reshape(-1, 2)).reshape(len(out), -1)
        for name, fit in fitted.items():
            law = fit(list(pieces[seen]))
            for run in out:
                path, _ = law.rollout(pieces[run, 0], frames)
                # A rollout that diverges is replaced by the signal at its beginning.
                found[name][run] = path[-1] if np.isfinite(path).all() else pieces[run, 0]
    return found


# -- the recipe --------------------------------------------------------------------------------------------


def _changed(tokens: int, change: str) -> Callable[[Tables, float], Interval]:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["changes"], tokens=tokens, change=change)
        return mean(rows["agreement"], level, groups=rows["base"])

    return measure


def _more(tokens: int, change: str, other: str = UNRELATED) -> Callable[[Tables, float], Interval]:
    """Return a `Measure` of the agreement after one change of an embedding minus that after another."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["changes"], tokens=tokens)
        a, b = (rows["change"] == name for name in (change, other))
        return paired_gap(np.mean, (rows["agreement"],), a, b, level, groups=rows["base"])

    return measure


def _knows(tokens: int, predictor: str, start: int) -> Callable[[Tables, float], Interval]:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["predictions"], tokens=tokens, predictor=predictor, start=start)
        return mean(rows["agreement"], level)

    return measure


def _less(tokens: int, other: Callable[[Tables, float], Interval]) -> Callable[[Tables, float], Interval]:
    """Return a `Measure` of the agreement after a change of the start by 1e-4 of its size, minus `other`."""
    twin = _changed(tokens, CHANGED.format(1e-4))
    return lambda tables, level: difference(twin(tables, level), other(tables, level))


BOTH = "fresh layers and split"
MIXED = shuffled("changes", "change", within="tokens")
TWIN = "part of the circles that survive in either network that do in both"
POOLED = "corrected after the run: only the two groups that are compared are shuffled; before, all changes"
SAME = "the mean-field law keeps the order of the signals, and so names the same circles"
PAIRED = "corrected after the run: both changes of an embedding are resampled together"
LITTLE = "circles that are called survivors and are, as a part of those that are either"


def _rules(tokens: int) -> tuple[Statement, ...]:
    at = f"p = {tokens}"
    settled = tuple(
        Statement(
            f"{at}: settled, start changed by {size:g}",
            "survivors are settled at step 0",
            SOURCE,
            f"{TWIN}; the second begins with an embedding changed by {size:g} of its size",
            _changed(tokens, CHANGED.format(size)),
            chance=MIXED,
            least=0.9,
            independent="embedding",
            note="embeddings of their own, as 40 others had left a claim open in which all pairs agreed",
            possible=(0.0, 1.0),
        )
        for size in (1e-6, 1e-4, 1e-2)
    )
    return (
        *settled,
        Statement(
            f"{at}: the embedding is not all",
            "networks with the same embedding and split, but fresh layers, choose other circles",
            SOURCE,
            "the same of a start changed by 1e-4, minus that of fresh layers; by chance 0",
            _more(tokens, CHANGED.format(1e-4), "fresh layers"),
            chance=MIXED,
            least=0.2,
            independent="embedding",
            note=PAIRED,
        ),
        Statement(
            f"{at}: the embedding tells something",
            "networks with the same embedding choose the same circles more often than unrelated ones",
            SOURCE,
            "the same of fresh layers and split, minus that of unrelated networks; by chance 0",
            _more(tokens, "fresh layers and split"),
            chance=MIXED,
            least=0.1,
            independent="embedding",
            note=PAIRED,
        ),
        Statement(
            f"{at}: layers and split alone tell nothing",
            "networks with the same layers and split, but fresh embeddings, are like unrelated ones",
            SOURCE,
            "the same of fresh embeddings, minus that of unrelated networks",
            _more(tokens, "fresh embedding"),
            chance="shuffling would make them alike, as the statement says they are",
            counter=instead("changes", rows={"change": BOTH}, of={"change": "fresh embedding"}),
            least=-0.1,
            most=0.1,
            independent="embedding",
            note=PAIRED,
        ),
        *(
            Statement(
                f"{at}: {name} knows little at step 0",
                "what is settled at step 0 is not known to any predictor there",
                SOURCE,
                f"the same of a start changed by 1e-4, minus that of survivors predicted by {name}",
                _less(tokens, _knows(tokens, name, 0)),
                chance=pooled(
                    "agreement",
                    ("changes", {"tokens": tokens, "change": CHANGED.format(1e-4)}),
                    ("predictions", {"tokens": tokens, "predictor": name, "start": 0}),
                ),
                least=0.2,
                note=f"{POOLED}; {SAME}" if name == "mean field" else POOLED,
            )
            for name in ("signal", "rate", "SVM", "linear law", "mean field")
        ),
        Statement(
            f"{at}: the signal knows at step 400",
            "ranking by the signal tells the survivors from step 400 on",
            SOURCE,
            LITTLE,
            _knows(tokens, "signal", 400),
            chance=shuffled("predictions", "start", within="tokens"),
            least=0.8,
        ),
    )


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw how well networks from nearly one start agree, and how well predictors do at each step."""
    with style(12.6):
        figure = Figure(figsize=(12.6, 6.4))
        axes = figure.subplots(1, 1 + len(setting.places), squeeze=False)[0]
        places = np.arange(len(setting.starts))  # one place for each step, as most of them are early
        names = list(dict.fromkeys(tables["changes"]["change"].tolist()))
        for n, place in enumerate(setting.places):
            found = [_changed(place.tokens, name)(tables, 0.95) for name in names]
            look: Any = {"color": SERIES[n], "marker": "os"[n % 2], "label": f"p = {place.tokens}"}
            at = np.arange(len(names)) + 0.2 * n
            show_intervals(axes[0], at, found, across=True, linestyle="none", **look)
            ax = axes[n + 1]
            for k, name in enumerate(dict.fromkeys(tables["predictions"]["predictor"].tolist())):
                values = [_knows(place.tokens, name, start)(tables, 0.95) for start in setting.starts]
                shape: Any = {"color": SERIES[k], "marker": "os^Dv"[k], "label": name}
                show_intervals(ax, places + 0.14 * (k - 2), values, **shape)
            ax.set_xticks(places, map(str, setting.starts), rotation=45)
            ax.set(xlabel="step of the prediction", ylim=(0, 1.02), title=f"Predictors, p = {place.tokens}")
            legend_below(ax)
            ax.set_ylabel("agreement on the survivors")
        axes[0].set_yticks(range(len(names)), names)
        axes[0].set(xlabel="agreement on the survivors", xlim=(0, 1.02), title="The same network again")
        axes[0].invert_yaxis()
        legend_below(axes[0])
    return {"predictability": figure}


PAPER = Setting(
    (Place(31, 64, 1500), Place(59, 128, 2000)),
    60,
    (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    60,
    (0, 10, 20, 50, 100, 150, 200, 300, 400, 600),
    1000,
    first_base=40,  # the first forty left four rules undecided, and take no part in a decision
)


@recipe(
    "predictability",
    paper="beyond",
    item="predictability: survivors are settled at step 0",
    shows="How often networks from nearly the same start keep the same circles, and how well predictors name "
    f"them, for {PAPER.bases} networks of each modulus p. Fresh parts are drawn again. The rate is the "
    f"change of the signal over {AHEAD} steps; near step 50 of p = 31 the signals of survivors fall fastest, "
    "so that it names them last.",
    quick=Setting((Place(31, 64, 60),), 2, (1e-4, 1e-1), 8, (0, 20), 60),
    paper_setting=PAPER,
    cost="two hours",
    rules=(*_rules(31), *_rules(59)),
    draw=_draw,
)
def predictability(run: Run) -> Result:
    """Beyond the papers: compare how well networks from nearly one start agree, and how well predictors do.

    The result holds the tables "changes" and "predictions" and the figure "predictability". The rules judge
    the agreement on the survivors in both tables, for each modulus.
    """
    setting: Setting = run.setting
    changes, predictions = [], []
    for place in setting.places:
        changes += [
            run.keep(f"changes-{place.tokens}-{base}", partial(_again, setting, place, base))
            for base in range(setting.first_base, setting.first_base + setting.bases)
        ]
        predictions.append(run.keep(f"predictions-{place.tokens}", partial(_predicted, setting, place)))
    return Result({"changes": joined(changes), "predictions": joined(predictions)})
