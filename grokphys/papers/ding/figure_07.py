"""Ding et al., Figure 7: how often circles survive, by the changes of their signals in the first steps."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from analysis.circles.prediction import survival_rates
from analysis.plots.palette import DEAD, INK, SERIES, SURVIVES
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import drawn
from grokphys.papers.ding.training import BY_THE_RULE, show_intervals
from grokphys.papers.ding.trials import PAPER, QUICK, Trials, train_trials
from grokphys.papers.evidence import correlation, jackknife, mean, share, shuffled
from grokphys.papers.recipe import Number, Printed, Result, Run, Statement, Tables, recipe

SECTION = "Section 3.2.2"
MACHINE = "it sees the initial signal and its change in step 4, of unit variance; all circles weigh the same"


def _machine(balanced: bool = False) -> Any:
    return make_pipeline(
        StandardScaler(), LinearSVC(class_weight="balanced" if balanced else None, random_state=0)
    )


def _plane(tables: Tables) -> tuple[Any, Any, Any]:
    rows = tables["circles"]
    return np.stack([rows["signal"], rows["change_4"]], axis=1), rows["survived"], rows["embedding"]


def _accuracy(tables: Tables, level: float) -> Interval:
    X, y, groups = _plane(tables)

    def percent(index: Any) -> float:
        if np.ptp(y[index].astype(int)) == 0:
            return np.nan  # a machine needs both classes
        return 100 * float(_machine().fit(X[index], y[index]).score(X[index], y[index]))

    return jackknife(percent, (np.arange(len(y)),), level, groups=groups)


def _area_left_out(tables: Tables, level: float) -> Interval:
    """Return the mean area under the ROC curve on embeddings to which the classifier was not fitted.

    Each embedding is left out in turn, and the interval is over embeddings. An embedding does not count if
    all of its circles have the same fate, or if all circles of the other embeddings do.
    """
    X, y, groups = _plane(tables)
    areas = []
    for left in np.unique(groups):
        out = groups == left
        if all(0 < y[part].sum() < part.sum() for part in (out, ~out)):
            scores = _machine().fit(X[~out], y[~out]).decision_function(X[out])
            areas.append(roc_auc_score(y[out], scores))
    return mean(areas, level)


def _rises(tables: Tables, level: float) -> Interval:
    rows = tables["circles"]
    alive = rows["survived"].astype(float)
    return correlation(rows["change_4"], alive, level, groups=rows["embedding"])


def _decrease(tables: Tables, level: float) -> Interval:
    rows = tables["circles"]
    return share(rows["change_4"] < 0, level, groups=rows["embedding"])


def _draw_gradients(setting: Trials, tables: Tables) -> dict[str, Figure]:
    """Draw survival over the changes of the signal in the steps 1 to 4, and a classifier of survivors."""
    circles = tables["circles"]
    survived = circles["survived"]
    with style(11.4):
        figure = Figure(figsize=(11.4, 4.6))
        left, middle, right = figure.subplots(1, 3)
        edges = np.histogram_bin_edges(circles["change_4"], 40)
        for alive, color, name in ((False, DEAD, "dead"), (True, SURVIVES, "survived")):
            values = circles["change_4"][survived == alive]
            if len(values):  # an empty histogram has no density
                label = f"{name} ({len(values)})"
                left.hist(values, edges, color=color, alpha=0.55, density=True, label=label)
        left.set(xlabel="change of ‖$F_k$‖ in step 4", ylabel="density")
        legend_below(left)
        for step in range(1, 5):
            change = circles[f"change_{step}"]
            bins = survival_rates(change[:, None], survived[:, None], groups=circles["embedding"])
            show_intervals(
                middle,
                [b.value for b in bins],
                [b.rate for b in bins],
                color=SERIES[step - 1],
                label=f"step {step}",
            )
        middle.set(xlabel="change of ‖$F_k$‖ in that step", ylabel="survival rate", ylim=(0, None))
        middle.set_title("bins of equally many circles")
        legend_below(middle)
        _show_plane(right, circles)
    return {"ding-7": figure}


@recipe(
    "ding-7",
    paper="Ding",
    item="Figure 7",
    shows="How often frequencies survive, by the changes of their signals in the first four steps.",
    quick=QUICK,
    paper_setting=PAPER,
    cost="half an hour to two hours; no time after ding-6, whose networks it shares",
    rules=(
        Statement(
            "left",
            "all gradient signals decrease over time",
            SECTION,
            "share of circles whose signal falls in step 4",
            _decrease,
            chance="half of them, if signals only fluctuated",
            counter=drawn(
                "a random sign of each `change_4`",
                "circles",
                change_4=lambda rows, rng: rows["change_4"] * rng.choice([-1, 1], len(rows["change_4"])),
            ),
            least=0.95,
            independent="embedding",
        ),
        Statement(
            "middle",
            "as the initial gradient increases, the survival rate of those frequencies increases",
            SECTION,
            "Pearson correlation of survival with the change of the signal in step 4; by chance 0",
            _rises,
            chance=shuffled("circles", "survived", within="embedding"),
            least=0.1,
            independent="embedding",
            note=BY_THE_RULE,
        ),
        Number(
            "right: accuracy of the linear support vector machine, in sample (%)",
            Printed("83.8", SECTION),
            _accuracy,
            margin=3.0,
            independent="embedding",
            digits=1,
            note=f"{BY_THE_RULE}; {MACHINE}",
        ),
        Statement(
            "right",
            "frequencies with both high initial signal and gradient are more likely to survive",
            SECTION,
            "area under the ROC curve on embeddings that the machine has not seen; by chance 0.5",
            _area_left_out,
            chance=shuffled("circles", "survived", within="embedding"),
            least=0.6,
            independent="embedding",
            note=f"{BY_THE_RULE}; {MACHINE}",
        ),
    ),
    draw=_draw_gradients,
)
def initial_gradients(run: Run) -> Result:
    """Reproduce Figure 7 of Ding et al.: survival over the change of the signal in each of the steps 1 to 4.

    The networks are those of Figure 6 (left). The table "circles" has a row for each frequency of each
    network. The rules judge how survival depends on the change of the signal in step 4, and how well a linear
    classifier predicts it from the initial signal and this change.
    """
    circles = train_trials(run)
    return Result({"circles": circles})


def _show_plane(ax: Axes, circles: Any) -> None:
    """Draw circles by initial signal and change in step 4, and the boundary of a linear classifier.

    Survivors and dead circles have equal total weight in the classifier. There is no boundary if all circles
    survive or none does.
    """
    X, y, _ = _plane({"circles": circles})
    for alive, color in ((False, DEAD), (True, SURVIVES)):
        ax.scatter(X[y == alive, 0], X[y == alive, 1], s=5, color=color, alpha=0.5, linewidths=0)
    ax.set(xlabel="initial signal ‖$F_k$‖", ylabel="change of ‖$F_k$‖\nin step 4", ylim=ax.get_ylim())
    if not 0 < y.sum() < len(y):
        return
    scaler, svm = (step for _, step in _machine(balanced=True).fit(X, y).steps)
    weights = svm.coef_[0] / scaler.scale_
    x = np.array([X[:, 0].min(), X[:, 0].max()])
    line = scaler.mean_[1] - (svm.intercept_[0] + weights[0] * (x - scaler.mean_[0])) / weights[1]
    ax.plot(x, line, color=INK, linewidth=1, linestyle="--", label="linear classifier, balanced classes")
    legend_below(ax)
