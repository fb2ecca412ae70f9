"""Liu et al., Figures 4 (c), 4 (d): embeddings that move onto a line, in the theory and in networks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.plots.palette import FIRST, REFERENCE, SECOND, graded_colors
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.counters.builders import drawn
from grokphys.papers.evidence import Chance, by_network, columns_of, mean, shuffled
from grokphys.papers.liu.figures_03_04b_05b import DECODER_RATE, TRACK
from grokphys.papers.liu.figures_04a_05a import DELTA, GROKKED, LEARNING_RATE, SHOWN_SIZE, TOKENS
from grokphys.papers.liu.measures import median
from grokphys.papers.recipe import Result, Run, Statement, Tables, recipe
from nets.models import ToyAddition
from nets.networks import networks
from nets.training import train
from physics import EffectiveTheory, Operation, random_training_sets, representation_quality
from physics.seeds import generator as generator_of


def grokking_steps(theory: EffectiveTheory) -> dict[str, float]:
    """Return the steps n_h = 1/(λ_3 η) of a training set, by the three conventions of the loss in use.

    λ_3 is the grokking rate and η the learning rate. "mean" is the convention of Eq. 5 of Liu et al., with
    the factor 1/|P_0(D)|, one over the number of parallelograms that the training set permits. "sum" leaves
    this factor out, as Appendix F does. "code" is that of the published `toy/train_add.py`: the
    parallelograms of all samples, no such factor, and embeddings whose squares add up to one less than the
    number of tokens.
    """
    by_mean = theory.grokking_steps(LEARNING_RATE)
    full = EffectiveTheory(theory.tokens)
    by_code = full.grokking_steps(LEARNING_RATE) / full.parallelogram_count * (1 - 1 / theory.tokens)
    return {"mean": by_mean, "sum": by_mean / max(theory.parallelogram_count, 1), "code": by_code}


# -- Figure 4 (c) ------------------------------------------------------------------------------------------


def _in_words(n_h: dict[str, float]) -> str:
    """Return what `grokking_steps` returns in words, on two lines."""
    mean, total, code = (f"{n_h[name]:.0f}" for name in ("mean", "sum", "code"))
    return f"$n_h$ = {mean} steps by Eq. 5; {total} without\n$1/|P_0(D)|$; {code} of the published code"


@dataclass(frozen=True)
class Flows:
    """Setting of Figure 4 (c): flows of the effective theory for training sets of 45 samples.

    Attributes
    ----------
    sets : int
        Number of training sets, with one start each.
    frames : int, default 401
        Number of times at which the flow is evaluated.
    multiples : float, default 10.0
        Duration in units of n_h, the time scale of the theory in steps.
    """

    sets: int
    frames: int = 401
    multiples: float = 10.0


def _in_units(tables: Tables, level: float) -> Interval:
    return median(tables["flows"]["formed_over_n_h"], level)


PAPER_FLOWS = Flows(1000)


@recipe(
    "liu-4c",
    paper="Liu",
    item="Figure 4 (c)",
    shows="An embedding that follows the effective theory, and how many n_h the embeddings of "
    f"{PAPER_FLOWS.sets} training sets take to reach a line.",
    quick=Flows(12, 201),
    paper_setting=PAPER_FLOWS,
    cost="a minute",
    rules=(
        Statement(
            "duration",
            "it takes about 3 n_h steps for two trajectories to converge to the linear structure",
            "Section 3.2",
            "median time at which RQI passes 0.95 (δ = 0.1), in units of n_h; the same by every convention "
            "of the loss, which only changes the unit of time",
            _in_units,
            chance="none: the time is computed, and what could be shuffled leaves its median as it is",
            counter=drawn(
                "times drawn from an exponential distribution of mean n_h",
                "flows",
                formed_over_n_h=lambda rows, rng: rng.standard_exponential(len(rows["set"])),
            ),
            least=2.0,
            most=4.5,
            independent="training set",
            note="RQI is the representation quality index, and n_h = 1/(λ_3 η) the time scale of the theory",
        ),
    ),
)
def trajectories(run: Run) -> Result:
    """Reproduce Figure 4 (c) of Liu et al.: embeddings in the theory, and when they have formed a line.

    The flow is solved in closed form for random training sets of 45 samples, with one start each. The table
    "flows" has a row for each set whose embeddings converge to a line. The rule judges the median time until
    the representation quality index exceeds 0.95, in units of n_h = 1/(λ_3 η), with the grokking rate λ_3 and
    the learning rate η.
    """
    setting: Flows = run.setting
    full = EffectiveTheory(TOKENS)
    masks = random_training_sets(full, SHOWN_SIZE, sets=setting.sets, seed=143)
    generator = generator_of(143)
    times = np.linspace(0, setting.multiples, setting.frames)
    rows: list[dict[str, float]] = []
    shown: Any = None
    for number, mask in enumerate(masks):
        theory = EffectiveTheory(TOKENS, pairs=full.operation.samples[mask])
        n_h = grokking_steps(theory)
        if not np.isfinite(n_h["mean"]):
            continue  # the training set leaves more than a line: nothing converges
        E: Any = theory.solve(theory.start(generator), times * n_h["mean"] * LEARNING_RATE)[:, :, 0]
        E = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
        passed = representation_quality(E[:, :, None], full, DELTA) > GROKKED
        formed = float(times[np.argmax(passed)]) if passed.any() else np.inf
        rows.append(
            {"set": number, "formed_over_n_h": formed} | {f"n_h_{name}": n for name, n in n_h.items()}
        )
        shown = (E, n_h) if shown is None else shown
    table = columns_of(rows)
    E, n_h = shown
    with style(9.6):
        figure = Figure(figsize=(9.6, 4.0))
        left, right = figure.subplots(1, 2)
        show_embeddings(times, E, left)
        for multiple, name in ((1, "$n_h$"), (3, "$3n_h$")):
            left.axvline(multiple, color=REFERENCE, linestyle=":", linewidth=1)
            left.annotate(name, (multiple, left.get_ylim()[1]), xytext=(3, -10), textcoords="offset points")
        left.set(xlabel="time in units of $n_h$", title=_in_words(n_h))
        all_formed = table["formed_over_n_h"]
        right.hist(all_formed[np.isfinite(all_formed)], 25, color=FIRST, alpha=0.7)
        right.axvline(3, color=SECOND, linewidth=1, label="the paper's 3 $n_h$")
        right.set(xlabel="time to RQI > 0.95 in $n_h$", ylabel="training sets")
        legend_below(right)
    return Result({"flows": table}, {"liu-4c": figure})


def show_embeddings(x: Any, E: Any, ax: Axes) -> None:
    """Draw normalized embeddings E (frames, tokens) in one dimension over times or steps x (frames,).

    Each curve has the number of its token at the end.
    """
    for token, color in enumerate(graded_colors(E.shape[1])):
        ax.plot(x, E[:, token], color=color)
        place: Any = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "color": color}
        ax.annotate(str(token), (x[-1], E[-1, token]), **place)
    ax.set(ylabel="normalized embedding", xlim=(0, x[-1]))


# -- Figure 4 (d) ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paths:
    """Setting of Figure 4 (d): networks that are trained on 45 samples, whose embeddings are recorded.

    Attributes
    ----------
    model : ToyAddition
        Network to train.
    seeds : int
        Number of networks.
    steps : int
        Number of steps of training.
    rate : float, default DECODER_RATE
        Learning rate of the decoder.
    """

    model: ToyAddition
    seeds: int
    steps: int
    rate: float = DECODER_RATE


def _steps_over(name: str) -> Any:
    def measure(tables: Tables, level: float) -> Interval:
        rows = tables["networks"]
        return median(rows["steps_to_rqi"] / rows[f"n_h_{name}"], level)

    return measure


def _waiting(name: str) -> Chance:
    """Return a model of data in which networks take times of the mean n_h that end at random."""
    return drawn(
        "steps drawn from an exponential distribution of mean n_h",
        "networks",
        steps_to_rqi=lambda rows, rng: rng.exponential(rows[f"n_h_{name}"]),
    )


def _linear(tables: Tables, level: float) -> Interval:
    rows = tables["tokens"]
    found = [abs(np.corrcoef(own["token"], own["final"])[0, 1]) for own in by_network(rows)]
    return mean(found, level)


PAPER_PATHS = Paths(ToyAddition(TOKENS), 50, 5000)


@recipe(
    "liu-4d",
    paper="Liu",
    item="Figure 4 (d)",
    shows=f"The embedding of the network, out of {PAPER_PATHS.seeds}, that reaches an RQI above 0.95 in the "
    "median time.",
    quick=Paths(ToyAddition(TOKENS, hidden=(50, 50)), 4, 1000, 3e-4),
    paper_setting=PAPER_PATHS,
    cost="a few minutes",
    rules=(
        *(
            Statement(
                f"duration, n_h {words}",
                "it takes about 3 n_h steps for two trajectories to converge to the linear structure",
                "Section 3.2",
                f"median of the steps to RQI > 0.95 (δ = 0.1) over n_h = 1/(λ_3 η) {words}",
                _steps_over(name),
                chance="none: a median of networks, which no order changes",
                counter=_waiting(name),
                least=2.0,
                most=4.5,
            )
            for name, words in (
                ("mean", "of Eq. 5, with 1/|P_0(D)|"),
                ("sum", "without 1/|P_0(D)|, as in Appendix F"),
                ("code", "of the published code"),
            )
        ),
        Statement(
            "linear",
            "The two trajectories agree qualitatively",
            "Section 3.2",
            "mean correlation (absolute) of the final embeddings with the numbers they stand for",
            _linear,
            chance=shuffled("tokens", "final", within="network"),
            least=0.9,
        ),
    ),
)
def trained_trajectories(run: Run) -> Result:
    """Reproduce Figure 4 (d) of Liu et al.: embeddings on a line, of networks trained on 45 of 55 samples.

    Toy networks learn the addition of 10 tokens. The rules compare the median number of steps until the
    representation quality index reaches 0.95 with three conventions of n_h (see `grokking_steps`), and judge
    how linear the final embeddings are.
    """
    setting: Paths = run.setting
    trained = train(
        setting.model,
        runs=setting.seeds,
        steps=setting.steps,
        seed=3400,
        learning_rate=setting.rate,
        weight_decay=0.0,
        embedding_learning_rate=LEARNING_RATE,
        train_fraction=SHOWN_SIZE / 55,
        record=max(setting.steps // 100, 1),
        thresholds={"quality": GROKKED},
        track=TRACK,
        delta=DELTA,
        observables=("validation_accuracy", "layers"),
    )
    samples = Operation(TOKENS).samples
    own = networks(trained).examples("train")
    n_h = [grokking_steps(EffectiveTheory(TOKENS, pairs=samples[np.sort(one)])) for one in own]
    reached = np.asarray(trained.observables["steps_to_quality"])[:, -1].astype(float)
    E = trained.positions[:, :, :, 0].astype(float)
    E = (E - E.mean(axis=2, keepdims=True)) / E.std(axis=2, keepdims=True)
    rows = {
        "network": np.arange(setting.seeds),
        "steps_to_rqi": np.where(np.isfinite(reached), reached, np.inf),
        **{f"n_h_{name}": np.array([one[name] for one in n_h]) for name in n_h[0]},
    }
    tokens = {
        "network": np.repeat(rows["network"], TOKENS),
        "token": np.tile(np.arange(TOKENS), setting.seeds),
        "final": E[:, -1].ravel(),
    }
    quickest = np.argsort(rows["steps_to_rqi"], kind="stable")
    run_shown = int(quickest[len(quickest) // 2])  # the median network
    when = float(rows["steps_to_rqi"][run_shown])
    figure = show_path(trained.steps, E[run_shown], when, n_h[run_shown])
    return Result({"networks": rows, "tokens": tokens}, {"liu-4d": figure})


def show_path(steps: Any, E: Any, when: float, n_h: dict[str, float]) -> Figure:
    """Draw the embedding E (frames, tokens) of one network, and the step `when` its quality becomes high."""
    with style(6.4):
        figure = Figure(figsize=(6.4, 4.2))
        ax = figure.subplots()
        show_embeddings(steps, E, ax)
        if np.isfinite(when):
            ax.axvline(when, color=REFERENCE, linestyle=":", linewidth=1)
            ax.annotate("RQI > 0.95", (when, ax.get_ylim()[1]), (3, -10), textcoords="offset points")
        ax.set(xlabel="steps", title=f"network of median time; {_in_words(n_h)}")
    return figure
