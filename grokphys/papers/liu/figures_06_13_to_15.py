"""Liu et al., Figures 6 and 13 to 15, Table 1: phases of toy networks on addition and on permutations."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure

from analysis.phases.axes import Span
from analysis.phases.classification import DELAY, PHASES, classify_phases
from analysis.plots.palette import PHASES as PHASE_COLORS
from analysis.plots.palette import REFERENCE, WHITE
from analysis.plots.style import style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.liu import OF_RATE, UNNAMED
from grokphys.papers.evidence import exact, shuffled
from grokphys.papers.liu.measures import above_median, comprehends, contrast
from grokphys.papers.liu.planes import (
    CHANCE,
    FOUR,
    GENERAL,
    HIGH,
    LOW,
    SANDWICH,
    Plane,
    between,
    corner,
    drawing,
    inside,
    trained,
)
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets.models import DenseModel, GroupDecoder, ToyAddition

KINDS: tuple[Literal["regression", "classification"], ...] = ("regression", "classification")
LABELS = {
    "weight_decay": "decoder weight decay",
    "embedding_learning_rate": "representation learning rate",
    "embedding_weight_decay": "representation weight decay",
    "embedding_scale": "initialization scale",
    "batch_size": "batch size",
}
COST = "an hour or two: 300 networks of at most 1e5 steps, 0.2 ms for each step and network"
COST_OF_TWO = "one to two hours: 600 networks of at most 1e5 steps"


def plane_of(
    models: Mapping[str, DenseModel], y: str, limits: tuple[float, float], seed: int, **others: Any
) -> dict[str, Any]:
    """Return the arguments of `recipe` for a plane: the setting of the paper, and that of a smoke test.

    `models` are those of the diagrams by title, and `y` and `limits` describe the vertical axis. `others` may
    set "least", the lowest learning rate of the decoder, which is 1e-5 by default, and "each", the number of
    networks in a cell at the setting of the paper, which is 3 by default.
    """
    fraction = 24 / 36 if any(isinstance(model, GroupDecoder) for model in models.values()) else 45 / 55
    least, each = others.pop("least", 1e-5), others.pop("each", 3)
    options = {"weight_decay": 0.0, "embedding_learning_rate": 1e-3, "embedding_weight_decay": 0.0}
    options = {name: value for name, value in options.items() if name != y} | {"train_fraction": fraction}
    small = {title: type(model)(**_small(model)) for title, model in models.items()}
    common: dict[str, Any] = {"x": ("learning_rate", least, 1e-2), "y": (y, *limits), "seed": seed}
    common |= {"options": options, "labels": ("decoder learning rate", LABELS[y])}
    return {
        "paper_setting": Plane(models, cells=10, each=each, steps=100_000, **common),
        "quick": Plane(small, cells=3, each=1, steps=1500, delay=100, **common),
    }


def _small(model: Any) -> dict[str, Any]:
    return {"hidden": (20, 20)} | ({"kind": model.kind} if isinstance(model, ToyAddition) else {})


def both(y: str, limits: tuple[float, float], seed: int, each: int = 3) -> dict[str, Any]:
    """Return what `plane_of` returns for addition with both losses, at rates of the decoder from 1e-4."""
    models = {f"Addition, {kind}": ToyAddition(kind=kind) for kind in KINDS}
    return plane_of(models, y, limits, seed, least=1e-4, each=each)


# -- Figure 6 ----------------------------------------------------------------------------------------------


def _generalizes_slowly_decoded(tables: Tables, level: float) -> Interval:
    rows = tables["networks"]
    return contrast(np.isin(rows["phase"], GENERAL), inside(rows, LOW, HIGH), level)


def _takes_long(tables: Tables, level: float) -> Interval:
    """Return the share of networks generalizing top left that are slower than the median elsewhere."""
    steps = tables["networks"]["validation_steps"]
    done, here = np.isfinite(steps), inside(tables["networks"], LOW, HIGH)
    return above_median(steps[done & here], steps[done & ~here], level)


SECTION = "Section 4.1"
STRICT = "corrected after the run: equal rates are not faster, and rounding does not split a diagonal"
RATES = plane_of({"Addition, regression": ToyAddition()}, "embedding_learning_rate", (1e-5, 1e-2), seed=600)


@recipe(
    "liu-6a",
    paper="Liu",
    item="Figure 6 (a)",
    shows="Phases of the toy model over the learning rates of the representation and of the decoder.",
    **RATES,
    cost=COST,
    rules=(
        corner(
            "memorization",
            "a fast decoder coupled with slow representation learning (bottom right) lead to memorization",
            SECTION,
            "memorization",
            HIGH,
            LOW,
            note="all networks in this corner memorize, but so do most of the others",
        ),
        Statement(
            "slow decoder",
            "an extremely slow decoder coupled with fast representation learning (top left) will generalize",
            SECTION,
            "share of both in that ninth of the plane minus that elsewhere; by chance 0",
            _generalizes_slowly_decoded,
            chance=CHANCE,
            least=0.1,
            note="the share of comprehension and grokking together",
        ),
        Statement(
            "long",
            "the generalization time is long due to the inefficient decoder training",
            SECTION,
            "share of the networks that generalize there which need more steps than the median of those that "
            "do elsewhere; by chance a half",
            _takes_long,
            chance=shuffled("networks", "validation_steps"),
            least=0.7,
            note="corrected after the run: the median elsewhere has an error of its own",
        ),
        Statement(
            "faster",
            "The ideal phase (comprehension) requires representation learning to be faster ... than the"
            " decoder",
            SECTION,
            "share of comprehension where the representation is faster minus that where it is slower; by "
            "chance 0, although most of what can be comprehension may lie on one side",
            comprehends((0, np.inf), (-np.inf, -1e-6)),
            chance=CHANCE,
            least=0.1,
            note=STRICT,
        ),
        Statement(
            "but not too much",
            "representation learning to be faster, but not too much, than the decoder",
            SECTION,
            "share of comprehension where the representation is up to 32 times as fast minus that where it "
            "is faster still; by chance 0",
            comprehends((0, 1.5), (1.5, np.inf)),  # 10^1.5 = 32
            chance=CHANCE,
            least=0.1,
            note=STRICT,
        ),
    ),
    draw=drawing("liu-6a", downwards=False),
)
def competition(run: Run) -> Result:
    """Reproduce Figure 6 (a) of Liu et al.: the phases over the learning rates of decoder and representation.

    The rules judge where memorization, comprehension and late generalization are frequent.
    """
    return trained(run)


CAPACITY = (
    FOUR,
    corner(
        "top right",
        "The top right corner (a fast and capable decoder) is the memorization phase",
        SECTION,
        "memorization",
        HIGH,
        LOW,  # the weight decay grows downwards in the paper
    ),
    corner(
        "bottom right",
        "the bottom right corner (a fast and simple decoder) is the confusion phase",
        SECTION,
        "confusion",
        HIGH,
        HIGH,
    ),
    SANDWICH,
)
for _letter, _title, _model, _most in (
    ("b", "Addition, regression", ToyAddition(), 10.0),
    ("c", "Addition, classification", ToyAddition(kind="classification"), 20.0),
    ("d", "Permutations S_3, regression", GroupDecoder(), 200.0),
):

    @recipe(
        f"liu-6{_letter}",
        paper="Liu",
        item=f"Figure 6 ({_letter})",
        shows=f"{_title}: phases over the decoder's learning rate and weight decay.",
        **plane_of({_title: _model}, "weight_decay", (0.0, _most), seed=610 + ord(_letter)),
        cost=COST,
        rules=CAPACITY,
        draw=drawing(f"liu-6{_letter}"),
    )
    def capacity(run: Run) -> Result:
        """Reproduce Figure 6 (b), (c) or (d): the phases over learning rate and weight decay of the decoder.

        The rules ask whether all four phases occur, which phases fill two corners of the plane, and whether
        grokking lies between comprehension and memorization.
        """
        return trained(run)


# -- Figures 13 to 15 --------------------------------------------------------------------------------------
# In Figure 6 (a), nearly all networks with rates of the decoder above 1e-3 memorize, whatever else changes.
# The rules therefore compare the ends of the other axis at low rates.

LOWER: Span = (0.0, 0.5)
UPPER: Span = (0.5, 1.0)


def _for_both(name: str, quote: str, source: str, effect: str, phase: str, *spans: Any) -> list[Statement]:
    """Return the same rule for both losses. `phase` and the three `spans` are arguments of `between`."""
    return [
        Statement(
            f"{name}, {kind}",
            quote,
            source,
            f"{effect}; by chance 0",
            between(phase, *spans, title=f"Addition, {kind}"),
            chance=CHANCE,
            least=0.1,
        )
        for kind in KINDS
    ]


@recipe(
    "liu-13",
    paper="Liu",
    item="Figure 13; Appendix G",
    shows="Phases over the decoder's learning rate and the batch size.",
    **both("batch_size", (5, 45), seed=1300),
    cost=COST_OF_TWO,
    rules=(
        *_for_both(
            "small batches",
            "the grokking region appears at the top left … (small decoder learning rate and small batch"
            " size)",
            "Appendix G",
            "in the lowest third of rates, share of grokking in the smallest third of batches minus that in "
            "the largest",
            "grokking",
            *(LOW, LOW, HIGH),
        ),
        *_for_both(
            "large batches",
            "large batch size (with small learning rate) leads to comprehension",
            "Appendix G",
            "in the lowest third of rates, share of comprehension in the largest third of batches minus that "
            "in the smallest",
            "comprehension",
            *(LOW, HIGH, LOW),
        ),
    ),
    draw=drawing("liu-13"),
)
def batches(run: Run) -> Result:
    """Reproduce Figure 13 of Liu et al.: phases over rate and batch size, judged at the lowest rates."""
    return trained(run)


@recipe(
    "liu-14",
    paper="Liu",
    item="Figure 14; Appendix G",
    shows="Phases over the decoder's learning rate and the scale of the initial embeddings.",
    **both("embedding_scale", (0.1, 10.0), seed=1400),
    cost=COST_OF_TWO,
    rules=_for_both(
        "small start",
        "Small initialization scale (top) leads to comprehension",
        "Figure 14",
        "at rates up to 1e-3, share of comprehension in the half of smaller scales minus that in the other",
        "comprehension",
        *(LOWER, LOWER, UPPER),
    ),
    draw=drawing("liu-14"),
)
def initialisation(run: Run) -> Result:
    """Reproduce Figure 14 of Liu et al.: phases over rate and scale; whether small scales help."""
    return trained(run)


@recipe(
    "liu-15",
    paper="Liu",
    item="Figure 15; Appendix G",
    shows="Phases over the decoder's learning rate and the representation's weight decay.",
    **both("embedding_weight_decay", (0.0, 5.0), seed=1500, each=5),
    cost="two to three hours: 1000 networks of at most 1e5 steps",
    rules=tuple(
        Statement(
            f"no matter, {kind}",
            "the representation weight decay in general does not affect model performance much",
            "Appendix G",
            "at rates up to 1e-3, share of networks that generalize in the half of larger decays minus that "
            "in the other",
            between(GENERAL, LOWER, UPPER, LOWER, title=f"Addition, {kind}"),
            chance="none: a shuffle can only make this statement of no effect truer",
            counter=OF_RATE,
            least=-0.2,
            most=0.2,
        )
        for kind in KINDS
    ),
    draw=drawing("liu-15"),
)
def representation_decay(run: Run) -> Result:
    """Reproduce Figure 15 of Liu et al.: phases over rate and embedding's decay; whether it matters."""
    return trained(run)


# -- Table 1 -----------------------------------------------------------------------------------------------


def _as_printed(tables: Tables, level: float) -> Interval:
    """Return the share of the outcomes named in Table 1 to which `classify_phases` gives the same name."""
    rows = tables["outcomes"]
    named = rows["printed"] != "not named"
    return exact(np.mean(rows["printed"][named] == rows["phase"][named]))


def _named(tables: Tables, level: float) -> Interval:
    rows = tables["outcomes"]
    answers = np.isfinite(rows["train_steps"]) * 2 + np.isfinite(rows["validation_steps"])
    return exact(len(np.unique(answers[rows["printed"] != "not named"])) / len(np.unique(answers)))


@recipe(
    "liu-table1",
    paper="Liu",
    item="Table 1; Appendix A",
    shows="The four phases by the steps to 90 % in training and in validation; one outcome has no name.",
    quick=12,
    paper_setting=60,
    cost="a second",
    rules=(
        Statement(
            "definitions",
            "Table 1: Definitions of the four phases of learning",
            "Appendix A",
            "share of the outcomes that the table names in which this project's phase is the printed one",
            _as_printed,
            chance=shuffled("outcomes", "phase"),
            least=0.9,
            independent="outcome",
            digits=3,
        ),
        Statement(
            "complete",
            "The 2D plane is split into four phases",
            SECTION,
            "share of the answers to its first two questions (yes or no) that the table names: not that of "
            "validation above 90 % with training below",
            _named,
            chance="none: the outcomes are counted, not drawn",
            counter=UNNAMED,
            least=0.99,
            independent="outcome",
            digits=3,
        ),
    ),
)
def definitions(run: Run) -> Result:
    """Compare the phases of Table 1 of Liu et al. with those of `classify_phases`, on a grid of steps.

    Nothing is trained. The table "outcomes" has a row for each point of the grid. The rules ask how often
    both phases agree, and whether the table of the paper names every outcome.
    """
    steps = np.append(np.geomspace(10, 1e5, run.setting - 1).round(), np.inf)
    train, validation = (side.ravel() for side in np.meshgrid(steps, steps))
    fits, generalizes = np.isfinite(train), np.isfinite(validation)
    cases = (fits & (validation < train + DELAY), fits & generalizes, fits, ~generalizes)
    printed = np.select(cases, PHASES, "not named")
    rows = {"train_steps": train, "validation_steps": validation, "printed": printed}
    rows["phase"] = classify_phases(*(np.where(np.isfinite(x), x, np.nan) for x in (train, validation)))
    with style(5.6):
        figure = Figure(figsize=(5.6, 4.6))
        ax = figure.subplots()
        places = [np.where(np.isfinite(side), side, 4e5) for side in (train, validation)]
        for name, color in (*PHASE_COLORS.items(), ("not named", WHITE)):
            look: Any = {"color": color, "edgecolors": REFERENCE, "linewidths": 0.2, "s": 22, "marker": "s"}
            ax.scatter(*(side[printed == name] for side in places), label=name, **look)
        ax.set(xscale="log", yscale="log", xlabel="steps to 90 % in training (last: never)")
        ax.set(ylabel="steps to 90 % in validation (last: never)")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return Result({"outcomes": rows}, {"liu-table1": figure})
