"""Which circles survive: activations, octaves, what the start settles, votes of neurons, and rounding.

Beyond Ding et al.: activations for which circles compete.

Beyond Ding et al.: pairs of circles of which rarely both survive, the frequencies k and 2k.

Beyond Ding et al.: whether the start settles which circles survive, and how well predictors find them.

Beyond Ding et al. and He et al.: the lottery among the neurons of Ding's network, and a vote of neurons.

A neuron of Ding's network (`EmbeddingMLP`) reads its two tokens by effective weights E @ W of an embedding E
that all neurons share. Suppose that each neuron had separate input weights, as in `TwoLayer`. Then for the
activation x² and small weights, the complex amplitudes θ₁ and θ₂ with which the neuron reads a frequency,
and the amplitude ξ with which it votes for the answer, would follow

    dθ₁/dt = c conj(θ₂) ξ,    dθ₂/dt = c conj(θ₁) ξ,    dξ/dt = c θ₁θ₂:

the equations of three coupled waves with a constant c, of which `FourierLottery` is the case θ₁ = θ₂, in
other units. Each frequency diverges at a time t*. The recipe measures how much of this remains if the
embedding is shared and moves. The rules were written after a pilot at p = 23 (24 networks, of other seeds)
and before any run at p = 31 and 59.

Beyond Ding et al.: what the rounding of one subtraction does to a network that has long generalized.

The gradient of the cross-entropy with respect to the logit of the right class is q - 1, where q is the
probability of this class. Numbers of 32 bits near 1 are multiples of 6e-8, so that the subtraction leaves
only rounding once the loss is that small. PyTorch computes it so, and so did the published codes. Summed over
all other classes, their probabilities give the same number with all its digits. The recipe trains networks in
three kinds of arithmetic from the same starts. The rules were written after a pilot (three networks of
another seed, p = 31), in which the loss jumped up by five orders and circles died with q - 1 in 32 bits only.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.circles import survives
from analysis.circles.fourier import frequency_norms
from analysis.plots import palette
from grokphys.arena import signals as arena
from grokphys.papers import charts, counters, measures
from grokphys.papers.ding.training import DECAY, train_networks
from grokphys.papers.evidence import Columns, Measure, Tables, chosen_rows, joined, mean, table_of, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Result, Run, Setting, Statement, recipe
from nets import EmbeddingMLP, train
from nets import networks as rebuilt
from nets.architecture import EMBEDDING
from physics.neurons.spectrum import neuron_spectrum
from physics.seeds import generator as generator_of

# -- selection ---------------------------------------------------------------------------------------------

SOURCE_SELECTION = "beyond the papers; SCIENCE of this project, measured beforehand on other seeds"


class Kind(NamedTuple):
    """An activation: its name, and the weight λ (`even`) with which the even part of SiLU is added to it."""

    activation: Any
    even: float = 0.0

    def __str__(self) -> str:
        return f"{self.activation}, λ = {self.even:g}" if self.even else str(self.activation)


class Place(NamedTuple):
    """Size and training of a network: modulus (`tokens`), embedding dimension (`dim`), and steps."""

    tokens: int
    dim: int
    steps: int

    def training(self, seed: int, **model: Any) -> dict[str, Any]:
        """Return arguments of `train_networks`; the modulus is added to the seed, and `model` has options."""
        network = EmbeddingMLP(self.tokens, self.dim, **model)
        return {"model": network, "steps": self.steps, "seed": seed + self.tokens}


def effective_number(signals: Any) -> NDArray[np.float64]:
    """Return the effective number of circles, ``(Σx²)² / Σx⁴`` for the Fourier signals x of all frequencies.

    `signals` has the shape (..., K). The result (...) is 1 if only one signal is not zero, K if all are equal
    and not zero, and NaN if all are zero.
    """
    squares = np.asarray(signals, np.float64) ** 2
    return np.asarray(squares.sum(axis=-1) ** 2 / (squares**2).sum(axis=-1))


def octaves(alive: Any, tokens: int) -> NDArray[np.int64]:
    """Count the pairs of survivors of which one has twice the frequency of the other.

    Parameters
    ----------
    alive : array_like of bool, shape (..., K)
        Whether the circle of each frequency k = 1 … K survives.
    tokens : int
        Modulus, an odd number of at least 5; frequencies are taken modulo it and up to sign.

    Returns
    -------
    ndarray of int64, shape (...)
        Number of pairs.
    """
    survived = np.asarray(alive, bool)
    k = np.arange(1, survived.shape[-1] + 1)
    double = 2 * k % tokens
    double = np.minimum(double, tokens - double)
    return np.asarray((survived & survived[..., double - 1]).sum(axis=-1))


def networks(run: Run, seed: int) -> dict[str, NDArray[Any]]:
    """Train networks of all sizes and activations of a setting, and return a table with a row for each.

    The modulus is added to `seed`. `_trained` describes the columns.
    """
    parts = []
    for place, kind in product(run.setting.places, run.setting.kinds):
        name = f"{place.tokens}-{kind.activation}-{kind.even:g}"
        parts.append(run.keep(name, partial(_trained_selection, run, seed, kind, place)))
    return joined(parts)


def _trained_selection(run: Run, seed: int, kind: Kind, place: Place) -> dict[str, Any]:
    """Train networks of one activation and one size, and return a table with a row for each.

    Its columns are modulus, activation and number of the network; the effective number of circles as a
    fraction of all; the numbers of survivors, of their pairs, and of the pairs with the ratio 2; and the
    validation accuracy. All activations share initial weights and training sets, because the seed depends
    only on the modulus.
    """
    runs, options = range(run.setting.runs), place.training(seed, **kind._asdict())
    trained = train_networks(run, runs, place.steps, "validation_accuracy", **options)
    signals = frequency_norms(trained.final)
    alive = survives(signals)
    counts = alive.sum(axis=1)
    return table_of(
        {"tokens": [place.tokens], "activation": [kind.activation], "even": [kind.even], "network": runs},
        effective=effective_number(signals) / signals.shape[1], survivors=counts,
        pairs=counts * (counts - 1) // 2, octaves=octaves(alive, place.tokens),
        accuracy=trained.observables["validation_accuracy"][:, -1],
    )  # fmt: skip


def gap(tokens: int, first: Kind, second: Kind, statistic: Callable[..., Any], *columns: str) -> Measure:
    """Return a measure of a statistic of columns with one activation minus the same with another.

    Networks with the same number share their initial weights, so these are left out together.
    """
    one, other = (partial(chosen_rows, values=kind._asdict()) for kind in (first, second))
    return measures.paired_gap(
        statistic, "networks", *columns, first=one, second=other, by="network", tokens=tokens
    )


PART = "effective number of circles as a part of all"
ANY = counters.shuffled("networks", "effective", within="tokens", among={"even": 0.0})
EFFECTIVE = "(Σs²)²/Σs⁴ of the final signals s: all if they are equal, as they nearly are at the start"
PAIRED_SELECTION = "corrected after the run: networks with the same initial weights are resampled together"
NAMES = {"silu": "SiLU", "relu": "ReLU", "tanh": "tanh", "asinh": "asinh"}
ODD, SELECTS = ("tanh", "asinh"), ("silu", "relu")


def _selection_rules(tokens: int) -> tuple[Statement, ...]:
    at = f"p = {tokens}"
    tanh, silu = Kind("tanh"), Kind("silu")
    plain = {"tokens": tokens, "activation": "tanh", "even": 0.0}
    selecting: Any = (
        (ODD, "selects nothing", "an odd activation lets all circles survive", {"least": 0.85}),
        (SELECTS, "selects", "an activation with an even part lets a few circles survive", {"most": 0.5}),
    )
    return (
        *(
            Statement(f"{at}: {name} {does}", quote, f"{PART}, {name}",
                measures.mean("networks", "effective", tokens=tokens, activation=name, even=0.0),
                chance=ANY, note=EFFECTIVE, **bound)
            for names, does, quote, bound in selecting
            for name in names
        ),
        Statement(f"{at}: tanh generalizes as well", "without an even part the network generalizes as well",
            "validation accuracy with tanh minus that with SiLU",
            gap(tokens, tanh, silu, np.mean, "accuracy"), least=-0.02, note=PAIRED_SELECTION,
            chance=counters.instead("networks", rows=plain | {"tokens": 31, "even": 4.0}, of=plain)),
        Statement(f"{at}: the even part competes", "the more of the even part, the fewer circles survive",
            "Kendall's τ of the effective number of circles and λ, tanh; by chance 0",
            measures.rank_correlation(
                "networks", "even", "effective", by="network", tokens=tokens, activation="tanh",
            ),
            most=-0.5, chance=counters.shuffled("networks", "even", within="activation"),
            note=PAIRED_SELECTION),
    )  # fmt: skip


def _draw_selection(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the effective number of circles over the even part, and by activation."""
    with charts.panels(10.4, 3.9, 1, 2, sharey=True) as (figure, (left, right)):
        for n, p in enumerate(np.unique(tables["networks"]["tokens"])):
            tanh = where(tables["networks"], tokens=p, activation="tanh")
            plain = where(tables["networks"], tokens=p, even=0.0)
            places = [list(NAMES).index(name) + 0.1 * n for name in plain["activation"]]
            charts.means(left, tanh["even"], tanh["effective"], marker="os"[n % 2], label=f"p = {p}")
            charts.means(right, places, plain["effective"], linestyle="none", marker="os"[n % 2])
        left.set_xscale("symlog", linthresh=0.1)
        left.set(xlabel="λ in tanh(x) + λ (x/2) tanh(x/2)", ylim=(0, 1.05))
        left.set_ylabel("effective number of circles\nover all frequencies")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        right.set_xticks(range(4), NAMES.values())
        right.set_title(f"{setting.runs} networks each")
    return {"selection": figure}


FOUR = tuple(map(Kind, NAMES))
MIXED = tuple(Kind("tanh", even) for even in (0.1, 0.25, 0.5, 0.75, 1.0, 2.0, 4.0))


@recipe(
    "selection", item="selection: the even part of the activation",
    quick=Setting(kinds=(*FOUR, Kind("tanh", 0.25), Kind("tanh", 4.0)), places=(Place(31, 64, 60),), runs=3),
    paper_setting=Setting(
        kinds=(*FOUR, *MIXED, Kind("asinh", 1.0)),
        places=(Place(31, 64, 1500), Place(59, 128, 3000)), runs=40,
    ),
    draw=_draw_selection, source=SOURCE_SELECTION, cost="one to two hours",
    rules=(*_selection_rules(31), *_selection_rules(59)),
    withdrawn=dict.fromkeys(
        ("p = 31: there is a threshold", "p = 59: there is a threshold"),
        "a smooth curve that begins flat passes as well, without any threshold",
    ),
)  # fmt: skip
def selection(run: Run) -> Result:
    """The effective number of circles, as a share of all, by the even part of the activation.

    Notes
    -----
    The table "networks" has a row for each network. The rules judge the effective number of circles, as a
    fraction of all, and the validation accuracy.
    """
    return Result({"networks": networks(run, 31_000)})


# -- octaves -----------------------------------------------------------------------------------------------


def _relative(found: Any, pairs: Any, tokens: Any) -> float:
    return float((found * (np.asarray(tokens) - 3) / 4).sum() / pairs.sum())


def _octaves(kind: Kind, tokens: int) -> Measure:
    """Return a measure of how often pairs of survivors have the ratio 2, relative to equally likely ratios.

    It is 1 by chance. The modulus p must be a prime that is 3 modulo 4. Then the K = (p - 1)/2 frequencies,
    up to sign, form a group of odd order under multiplication. Their pairs have (K - 1)/2 ratios up to order,
    each of K pairs, so that by chance a ratio has the share 2/(K - 1).
    """
    columns = "octaves", "pairs", "tokens"
    return measures.statistic(_relative, "networks", *columns, tokens=tokens, **kind._asdict())


ANY_RATIO = counters.drawn(
    "each pair of survivors has the ratio 2 as often as any other ratio", "networks",
    octaves=lambda rows, rng: rng.binomial(rows["pairs"].astype(int), 4 / (rows["tokens"] - 3)),
)  # fmt: skip
MODULI = (Place(23, 48, 1500), Place(31, 64, 1500), Place(43, 92, 2000), Place(59, 128, 2000))
COMPETING = (Kind("silu"), Kind("relu"), Kind("tanh", 1.0), Kind("tanh", 2.0), Kind("tanh", 4.0))


def _draw_octaves(setting: Setting, tables: Tables, ax: Any) -> None:
    """Draw how often survivors have the ratio 2, relative to any ratio, by modulus and activation."""
    places = [place.tokens for place in setting.places]
    for n, kind in enumerate(setting.kinds):
        found = [_octaves(kind, p)(tables, 0.95) for p in places]
        x = np.array(places) + 0.6 * (n - len(setting.kinds) / 2)
        label = NAMES.get(str(kind), str(kind))
        charts.intervals(ax, x, found, linestyle="none", marker="os^Dv"[n], label=label)
    ax.axhline(1, color=palette.REFERENCE, linewidth=1, linestyle=":", label="all ratios alike")
    title, y = f"{setting.runs} networks each", "frequency of the ratio 2\nover chance"
    charts.label(ax, "p", y, title, xticks=places, ylim=(0, None))


@recipe(
    "octaves", item="octaves: survivors k and 2k",
    quick=Setting(kinds=COMPETING[:2], places=(Place(23, 48, 300),), runs=4),
    paper_setting=Setting(kinds=COMPETING, places=MODULI, runs=200), draw=_draw_octaves, panels=(6.8, 4.0),
    source=SOURCE_SELECTION, cost="two to four hours",
    rules=(
        *(
            Statement(f"p = {place.tokens}, {kind}", "pairs of survivors (k, 2k) are rarer than other ratios",
                "frequency of the ratio 2 among pairs of survivors, over that of any ratio; by chance 1",
                _octaves(kind, place.tokens), most=0.8, chance=ANY_RATIO)
            for kind in COMPETING[:2]
            for place in MODULI
        ),
        Statement("rarer as λ grows", "the more of the even part, the rarer",
            "the same with tanh and λ = 4 minus that with λ = 1, p = 31; by chance 0",
            gap(31, Kind("tanh", 4.0), Kind("tanh", 1.0), _relative, "octaves", "pairs", "tokens"), most=-0.1,
            chance=ANY_RATIO),
    ),
)  # fmt: skip
def pairs_of_survivors(run: Run) -> Result:
    """How often two survivors have the frequencies k and 2k, relative to chance.

    λ is the weight with which the even part of SiLU is added to tanh.

    Notes
    -----
    The table "networks" has a row for each network. The rules judge this frequency relative to that of any
    ratio, and whether it falls with the weight λ.
    """
    return Result({"networks": networks(run, 32_000)})


# -- predictability ----------------------------------------------------------------------------------------

Array = NDArray[np.float64]
UNRELATED, BOTH = "all fresh", "fresh layers and split"
SHARED = {
    "fresh layers": ("embedding", "split"), "fresh split": ("embedding", "layers"), BOTH: ("embedding",),
    "fresh embedding": ("layers", "split"), UNRELATED: (),
}  # fmt: skip
"""Random draws that a network shares with the first one, by the name of what is drawn separately."""
CHANGED = "start × (1 ± {:g})"
"""Name of a change of the initial embedding, by its relative size."""


# -- the same network again --------------------------------------------------------------------------------


def _again(run: Run, place: Place, base: int) -> dict[str, Any]:
    """Train one network, and others that differ a little from it, and return a table of their agreement.

    The table has a row for each network with a slightly changed embedding at the start, and for each network
    that shares only some random draws with the first. It holds the agreement with the survivors of the first
    network, whose seed the number `base` determines.
    """
    model, sizes = EmbeddingMLP(place.tokens, place.dim), np.array(run.setting.changes)
    options: dict[str, Any] = {"steps": place.steps, "record": place.steps, "weight_decay": DECAY}
    options |= {"seed": run.seed(41_000 + 100 * place.tokens + base), "observables": ()}
    first = train(model, runs=1, **options)
    E = first.initial[0].astype(float)
    noise = generator_of(run.seed(base)).standard_normal(E.shape) * E.std()
    twins: Any = {"runs": len(sizes), "run_numbers": [0] * len(sizes)}
    twins["initial"] = {EMBEDDING: E + sizes[:, None, None] * noise}
    strangers: Any = [{"runs": 2, "first_run": 1, "shared": shared} for shared in SHARED.values()]
    finals = [train(model, **which, **options).final for which in (twins, *strangers)]
    survivors, others = (survives(frequency_norms(final)) for final in (first.final, np.concatenate(finals)))
    names = [*map(CHANGED.format, run.setting.changes), *np.repeat(list(SHARED), 2)]
    index = {"tokens": [place.tokens], "base": [base], "change": names}
    return table_of(index, agreement=arena.agreement(survivors, others))


# -- predictors --------------------------------------------------------------------------------------------

THEORIES = {
    "signal": arena.Ranking("signal"), "rate": arena.Ranking("rate"), "SVM": arena.SVM,
    "linear law": arena.SignalLaw("Lasso"), "mean field": arena.SignalLaw("mean field"),
}  # fmt: skip


def _predicted(run: Run, place: Place) -> dict[str, Any]:
    """Predict the survivors of networks from several steps, and return a table of the agreement.

    The table has a row for each step, predictor and network. No theory is fitted to the network that it
    predicts.
    """
    setting, rows = run.setting, []
    ahead = {step + arena.AHEAD for step in setting.starts}
    steps = sorted({*range(0, setting.last + 1, arena.EVERY), *ahead, place.steps})
    trained = train_networks(run, range(setting.runs), steps, **place.training(42_000))
    networks = arena.with_signals(trained)
    final = arena.alive(networks)
    for start in setting.starts:
        scores = arena.crossed([*THEORIES.values()], networks, start)
        index = {"tokens": [place.tokens], "start": [start], "predictor": list(THEORIES)}
        agreed = [arena.ranked(values, final) for values in scores]
        rows.append(table_of(index | {"network": range(setting.runs)}, agreement=agreed))
    return joined(rows)


def _changed(tokens: int, change: str) -> Measure:
    return measures.mean("changes", "agreement", by="base", tokens=tokens, change=change)


def _more(tokens: int, change: str, other: str = UNRELATED) -> Measure:
    """Return a measure of the agreement after one change of an embedding minus that after another."""
    halves: Any = {"first": f"change == {change!r}", "second": f"change == {other!r}"}
    return measures.paired_gap(np.mean, "changes", "agreement", **halves, by="base", tokens=tokens)


MIXED_PREDICTABILITY = counters.shuffled("changes", "change", within="tokens")
TWIN = "Jaccard index of the survivors of two networks"
POOLED = "corrected after the run: only the two groups that are compared are shuffled; before, all changes"
SAME = "the mean-field law keeps the order of the signals, and so names the same circles"
PAIRED_PREDICTABILITY = "corrected after the run: both changes of an embedding are resampled together"


def _rules_predictability(tokens: int) -> tuple[Statement, ...]:
    at, slightly = f"p = {tokens}", CHANGED.format(1e-4)
    settled = "survivors are settled at step 0, by embedding, layers and training set together"
    known_at = "predictors that see the embedding alone know little at step 0, and most at step 400"
    paired: Any = {"independent": "embedding", "note": PAIRED_PREDICTABILITY, "family": settled}
    known = {"tokens": tokens, "start": 0}
    signal = measures.mean("predictions", "agreement", tokens=tokens, predictor="signal", start=400)
    return (
        *(
            Statement(f"{at}: settled, start changed by {size:g}", "survivors are settled at step 0",
                f"{TWIN}; the second begins with an embedding changed by {size:g} of its size",
                _changed(tokens, CHANGED.format(size)), least=0.9, possible=(0.0, 1.0),
                independent="embedding", chance=MIXED_PREDICTABILITY,
                note="embeddings of their own, as 40 others had left a claim open in which all pairs agreed",
                family=settled)
            for size in (1e-6, 1e-4, 1e-2)
        ),
        Statement(f"{at}: the embedding is not all",
            "networks with the same embedding and split, but fresh layers, choose other circles",
            "the same of a start changed by 1e-4, minus that of fresh layers; by chance 0",
            _more(tokens, slightly, "fresh layers"), least=0.2, chance=MIXED_PREDICTABILITY, **paired),
        Statement(f"{at}: the embedding tells something",
            "networks with the same embedding choose the same circles more often than unrelated ones",
            "the same of fresh layers and split, minus that of unrelated networks; by chance 0",
            _more(tokens, BOTH), least=0.1, chance=MIXED_PREDICTABILITY, **paired),
        Statement(f"{at}: layers and split alone tell nothing",
            "networks with the same layers and split, but fresh embeddings, are like unrelated ones",
            "the same of fresh embeddings, minus that of unrelated networks",
            _more(tokens, "fresh embedding"), least=-0.1, most=0.1, **paired,
            chance=counters.instead("changes", rows={"change": BOTH}, of={"change": "fresh embedding"})),
        *(
            Statement(f"{at}: {name} knows little at step 0",
                "what is settled at step 0 is not known there to predictors that see the embedding alone",
                f"the same of a start changed by 1e-4, minus that of survivors predicted by {name}",
                measures.difference(
                    _changed(tokens, slightly),
                    measures.mean("predictions", "agreement", **known, predictor=name),
                ),
                least=0.2, note=f"{POOLED}; {SAME}" if name == "mean field" else POOLED, family=known_at,
                chance=counters.pooled(
                    "agreement", ("changes", {"tokens": tokens, "change": slightly}),
                    ("predictions", known | {"predictor": name}),
                ))
            for name in THEORIES
        ),
        Statement(f"{at}: the signal knows at step 400",
            "ranking by the signal tells the survivors from step 400 on",
            "Jaccard index of the predicted and the true survivors", signal, least=0.8, family=known_at,
            chance=counters.shuffled("predictions", "start", within="tokens")),
    )  # fmt: skip


def _draw_predictability(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw how well networks from nearly one start agree, and how well predictors do at each step."""
    changes, predictions = tables["changes"], tables["predictions"]
    names = list(dict.fromkeys(changes["change"].tolist()))
    with charts.panels(12.6, 6.4, 1, 1 + len(setting.places), squeeze=False) as (figure, ((first, *each),)):
        for n, (place, ax) in enumerate(zip(setting.places, each, strict=True)):
            values = [_changed(place.tokens, name)(tables, 0.95) for name in names]
            look: Any = {"linestyle": "none", "marker": "os"[n % 2], "label": f"p = {place.tokens}"}
            charts.intervals(first, np.arange(len(names)) + 0.2 * n, values, across=True, **look)
            for k, name in enumerate(dict.fromkeys(predictions["predictor"].tolist())):
                rows = where(predictions, tokens=place.tokens, predictor=name)
                at = np.searchsorted(setting.starts, rows["start"]) + 0.14 * (k - 2)  # most steps are early
                charts.means(ax, at, rows["agreement"], marker="os^Dv"[k], label=name)
            ax.set_xticks(range(len(setting.starts)), map(str, setting.starts), rotation=45)
            words = "step of the prediction", "agreement on the survivors", f"Predictors, p = {place.tokens}"
            charts.label(ax, *words, ylim=(0, 1.02))
        first.set_yticks(range(len(names)), names)
        first.invert_yaxis()
        charts.label(first, "agreement on the survivors", title="The same network again", xlim=(0, 1.02))
    return {"predictability": figure}


PAPER_PREDICTABILITY = Setting(
    places=(Place(31, 64, 1500), Place(59, 128, 2000)), bases=60,
    changes=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1), runs=60,
    starts=(0, 10, 20, 50, 100, 150, 200, 300, 400, 600), last=1000, first_base=40,
)  # fmt: skip


@recipe(
    "predictability", item="predictability: survivors are settled at step 0",
    quick=Setting(
        places=(Place(31, 64, 60),), bases=2, changes=(1e-4, 1e-1), runs=8, starts=(0, 20), last=60,
        first_base=0,
    ),
    paper_setting=PAPER_PREDICTABILITY, draw=_draw_predictability, source=SOURCE_SELECTION,
    shows="How often networks from nearly the same start keep the same circles, and how well predictors name "
    f"them, for {PAPER_PREDICTABILITY.bases} networks of each modulus p. Fresh parts are drawn again. The "
    f"rate is the change of the signal over {arena.AHEAD} steps; near step 50 of p = 31 the signals of "
    "survivors fall fastest, so that it names them last.",
    cost="two hours", rules=(*_rules_predictability(31), *_rules_predictability(59)),
)  # fmt: skip
def predictability(run: Run) -> Result:
    """Beyond the papers: compare how well networks from nearly one start agree, and how well predictors do.

    The result holds the tables "changes" and "predictions" and the figure "predictability". The rules judge
    the agreement on the survivors in both tables, for each modulus.
    """
    setting = run.setting
    changes, predictions = [], []
    for place in setting.places:
        changes += [
            run.keep(f"changes-{place.tokens}-{base}", partial(_again, run, place, base))
            for base in range(setting.first_base, setting.first_base + setting.bases)
        ]
        predictions.append(run.keep(f"predictions-{place.tokens}", partial(_predicted, run, place)))
    return Result({"changes": joined(changes), "predictions": joined(predictions)})


# -- votes -------------------------------------------------------------------------------------------------

READERS = {"time": "smallest t*", "magnitude": "largest |θ₁θ₂|", "phase": "smallest |φ₁ + φ₂ − ψ|"}
SCORES = {"signal": "signal", "votes": "votes for smallest t*", "haste": "mean of 1/t*"}
PIECE_VOTES = 50, 50
"""Largest number of networks that are trained together, on a CPU and on a GPU."""
ROWS = 40
"""Largest number of neurons of each network that the table lists."""


def _trained_votes(run: Run, place: Place, seed: int, part: range) -> dict[str, Any]:
    """Train a part of the networks of one size, and return what their start predicts and how they end.

    The arrays (networks, ...) hold, for each neuron, its final frequency (0 if it is dead) and the predicted
    ones, and for each circle three scores, and whether it survives.
    """
    trained = train_networks(run, part, place.steps, "layers", device="cpu", **place.training(seed))
    begun, times = arena.blowup(rebuilt(trained, 0))
    reads, (ballots, haste) = rebuilt(trained).neuron_weights(), arena.ballots(times)
    end = neuron_spectrum(reads["W_in"], second=reads["second"])
    first, second, xi = (np.asarray(z, np.complex128) for z in (begun.theta, begun.theta_second, begun.xi))
    return {
        "chosen": end.frequency, "single": end.kind == "single", "single_at_start": begun.kind == "single",
        "time": 1 + times.argmin(axis=-1), "magnitude": 1 + np.abs(first * second).argmax(axis=-1),
        "phase": 1 + np.abs(np.angle(first * second * xi.conj())).argmin(axis=-1),
        "signal": frequency_norms(trained.initial), "haste": haste, "votes": ballots,
        "survived": survives(frequency_norms(trained.final)),
    }  # fmt: skip


def _tables_votes(run: Run, seed: int) -> dict[str, dict[str, NDArray[Any]]]:
    """Train the networks of all sizes; return tables of their first `ROWS` neurons and of their circles."""
    tables: dict[str, list[Columns]] = {"neurons": [], "circles": []}
    for place, runs in zip(run.setting.places, run.setting.runs, strict=True):
        make = partial(_trained_votes, run, place, seed)
        parts = joined(in_parts(run, runs, PIECE_VOTES, make, f"p-{place.tokens}-networks"))
        index = {"tokens": [place.tokens], "network": 1000 * place.tokens + np.arange(runs)}
        for table, names, most in (
            ("neurons", ("chosen", "single", "single_at_start", *READERS), ROWS),
            ("circles", (*SCORES, "survived"), place.tokens // 2),
        ):
            columns = {name: parts[name][:, :most] for name in names}
            tables[table].append(table_of(index | {"_": range(most)}, **columns))
    return {table: joined(parts) for table, parts in tables.items()}


def _foretells(reader: str, tokens: int) -> Measure:
    """Return a measure of the share of living neurons that end at the frequency of a predictor."""
    return measures.mean("neurons", f"chosen == {reader}", by="network", among="chosen > 0", tokens=tokens)


def _beyond_survival(rows: Columns) -> Any:
    """Return how much better blow-up times predict the frequencies of a network's neurons than chance.

    This is the share of living neurons that end at the frequency with the smallest blow-up time, minus the
    same share if the neurons exchange their predicted frequencies.
    """
    chosen, named = (np.bincount(rows[name], minlength=rows["tokens"][0]) for name in ("chosen", "time"))
    return np.mean(rows["chosen"] == rows["time"]) - chosen @ named / len(rows["chosen"]) ** 2


def _lead(rows: Columns) -> Any:
    """Return for living neurons whether the blow-up time is right, minus whether a rival is.

    The rival is magnitude or phase, whichever is right for more of the neurons.
    """
    right = {reader: rows[reader] == rows["chosen"] for reader in ("time", "magnitude", "phase")}
    rival = max(("magnitude", "phase"), key=lambda reader: int(right[reader].sum()))
    return 1.0 * right["time"] - right[rival]


def _agreement(score: str, rows: Columns) -> Array:
    """Return how well the circles with the largest scores agree with the survivors, for each network.

    `score` is a column of the table "circles", of which `rows` are those of one modulus.
    """
    shape = -1, rows["tokens"][0] // 2
    final = np.asarray(rows["survived"], bool).reshape(shape)
    return arena.ranked(np.asarray(rows[score], float).reshape(shape), final)


HE = "Abstract of He et al., who train `TwoLayer`"
ENDS_THERE = "share of the neurons that are not dead which end at the frequency of smallest t*"
LISTED = f"of the first {ROWS} neurons of each network, which are the ones that the table lists"
EXCHANGED = "if neurons of a network exchange their predictions, the share is 1.4 to 1.6 times that chance"
OVERLAP = "as many survivors are predicted as the other networks keep on average"
COMMON = "Jaccard index of the true survivors and of those predicted at step 0"
DRAWN = counters.shuffled("neurons", "time", within="network")


def _rules_votes(tokens: int) -> tuple[Statement, ...]:
    at = f"p = {tokens}"
    ballot = "a vote of neurons names the survivors"
    quote = "the “winner” determined by its initial spectral magnitude and phase alignment"
    living: Any = {"among": "chosen > 0", "tokens": tokens}
    circles = partial(measures.mean, "circles", tokens=tokens)
    return (
        Statement(f"{at}: t* names the winner", quote, f"{ENDS_THERE}; by chance {2 / (tokens - 1):.2g}",
            _foretells("time", tokens), least=0.5, source=HE, chance=DRAWN, note=f"{LISTED}; {EXCHANGED}"),
        Statement(f"{at}: t* tells neurons apart",
            "a neuron ends where its own t* is smallest, and not only where those of its network end",
            f"{ENDS_THERE}, minus what it is if neurons of a network exchange their t*; by chance 0",
            measures.of_networks("neurons", _beyond_survival, **living), least=0.05, chance=DRAWN,
            note=LISTED),
        Statement(f"{at}: neither alone", quote,
            f"{ENDS_THERE}, minus that for largest |θ₁θ₂| or for best phase, whichever is larger",
            measures.mean("neurons", _lead, by="network", **living), least=0.05, source=HE, chance=DRAWN,
            note=LISTED),
        Statement(f"{at}: a vote tells survivors",
            "the frequencies for which most neurons vote at the start survive",
            f"{COMMON}; each neuron votes for its frequency of smallest t*",
            circles(partial(_agreement, "votes")), least=0.3,
            chance=counters.shuffled("circles", "votes", within="network"), note=OVERLAP, family=ballot),
        *(
            Statement(f"{at}: {words}",
                "a vote of the neurons tells the survivors better than the ranking by signal",
                f"{COMMON}, ranked by {SCORES[score]}, minus that ranked by signal; 0 if neither is better",
                circles(lambda rows, score=score: _agreement(score, rows) - _agreement("signal", rows)),
                least=0.05, chance=counters.shuffled("circles", score, within="network"), note=OVERLAP,
                family=ballot)
            for score, words in (
                ("votes", "the vote is better than the signal"),
                ("haste", "a vote weighted by 1/t* is better"),
            )
        ),
    )  # fmt: skip


def _draw_votes(setting: Setting, tables: Tables, left: Any, right: Any) -> None:
    """Draw how often each predictor is right about neurons, and how well each ranking of circles agrees."""
    for n, place in enumerate(setting.places):
        p, at = place.tokens, np.arange(3) + 0.1 * n
        look: Any = {"linestyle": "none", "marker": "os"[n % 2], "label": f"p = {p}"}
        charts.intervals(left, at, [_foretells(reader, p)(tables, 0.95) for reader in READERS], **look)
        rows = where(tables["circles"], tokens=p)
        charts.intervals(right, at, [mean(_agreement(score, rows), 0.95) for score in SCORES], **look)
        left.axhline(2 / (p - 1), color=palette.SERIES[n], linewidth=1, linestyle=":", label=f"chance, {p}")
    left.set_xticks(range(3), [words.replace(" ", "\n", 1) for words in READERS.values()])
    right.set_xticks(range(3), [fill(words, 14) for words in SCORES.values()])
    charts.label(left, "", "share predicted correctly", "neurons; bars: 95 % intervals", ylim=(0, None))
    charts.label(right, "", "agreement with survivors", "circles, ranked at step 0", ylim=(0, 1))


PAPER_VOTES = Setting(places=(Place(31, 64, 1500), Place(59, 128, 1500)), runs=(120, 96))


@recipe(
    "votes", item="votes: the lottery in Ding's network",
    quick=Setting(places=(Place(23, 48, 150),), runs=(4,)), paper_setting=PAPER_VOTES,
    draw=_draw_votes, panels=(10.4, 4.2, 1, 2),
    shows="How well blow-up times t* name the frequencies of neurons, and votes of neurons the survivors, "
    f"in {PAPER_VOTES.runs[0]} networks of p = {PAPER_VOTES.places[0].tokens} and {PAPER_VOTES.runs[1]} of "
    f"p = {PAPER_VOTES.places[1].tokens}.",
    source="beyond both papers: a question of this project", cost="half an hour", looks=2,
    rules=(*_rules_votes(31), *_rules_votes(59)),
    withdrawn={f"p = {p}: a single frequency": "see that of `he-neurons`" for p in (31, 59)},
)  # fmt: skip
def votes(run: Run) -> Result:
    """Beyond the papers: judge predictors of the frequencies of neurons, and rankings of circles, at step 0.

    The result holds the tables "neurons" and "circles".
    """
    return Result(_tables_votes(run, 46_000))


# -- rounding ----------------------------------------------------------------------------------------------

USUAL, STABLE, DOUBLE = "subtraction, 32 bits", "sum, 32 bits", "subtraction, 64 bits"
OPTIONS: dict[str, dict[str, Any]] = {
    USUAL: {"dtype": "float32"}, STABLE: {"dtype": "float32", "stable_gradient": True},
    DOUBLE: {"dtype": "float64"},
}  # fmt: skip
"""Arguments of `nets.train` for each arithmetic."""
PIECE_ROUNDING = 8, 120
"""Largest number of networks that are trained together, on a CPU and on a GPU."""
FRAMES = 300
"""Number of recorded steps, at equal distances."""
SETTLED = 5000
"""Step before which a rise of the loss does not count. Networks have long generalized by then."""
SEED = 48_000


def rises(losses: Any) -> NDArray[np.float64]:
    """Return the decimal log of each loss (..., steps) but the first over the least before, (..., steps - 1).

    A loss that always falls gives numbers below 0.
    """
    logs = np.log10(losses)
    return np.asarray(logs[..., 1:] - np.minimum.accumulate(logs, axis=-1)[..., :-1])


def _trained_rounding(run: Run, place: Place, arithmetic: str, part: range) -> dict[str, NDArray[Any]]:
    """Train a part of the networks of one size; return the loss, and which circles survive, at each frame."""
    options = place.training(SEED) | OPTIONS[arithmetic] | {"keep_start": False}
    trained = train_networks(run, part, place.steps // FRAMES, "train_loss", **options)
    steps, alive = np.tile(trained.steps, (len(part), 1)), survives(frequency_norms(trained.positions))
    return {"step": steps, "loss": trained.observables["train_loss"], "alive": alive}


def _tables_rounding(run: Run) -> dict[str, Columns]:
    """Train all networks; return tables of the networks at the end, and of losses and circles on the way."""
    setting = run.setting
    ends: list[Columns] = []
    courses: list[Columns] = []
    for place, runs, doubles in zip(setting.places, setting.runs, setting.doubles, strict=True):
        in_double: Any = None
        for arithmetic, count in {DOUBLE: doubles, USUAL: runs, STABLE: runs}.items():
            make = partial(_trained_rounding, run, place, arithmetic)
            rows = joined(in_parts(run, count, PIECE_ROUNDING, make, f"{place.tokens}, {arithmetic}"))
            steps, alive = rows["step"][0], rows["alive"]
            late = steps >= min(SETTLED, place.steps // 2)
            rise, before, end = rises(rows["loss"][:, late]), alive[:, late.argmax()], alive[:, -1]
            jumps = np.where((rise > 1).any(axis=1), steps[late][1:][(rise > 1).argmax(axis=1)], np.nan)
            in_double = end if arithmetic == DOUBLE else in_double
            as_double = np.full(count, np.nan)
            as_double[:doubles] = arena.agreement(end[:doubles], in_double)
            each = {
                "rise": rise.max(axis=1), "jump": jumps,  # to ten times the least before
                "loss": np.log10(rows["loss"][:, -1]), "circles": end.sum(axis=1),
                "died": (before & ~end).sum(axis=1), "as_double": as_double,
            }  # fmt: skip
            index = {"tokens": [place.tokens], "arithmetic": [arithmetic]}
            ends.append(table_of(index | {"network": 1000 * place.tokens + np.arange(count)}, **each))
            mean_course = alive[:doubles].sum(axis=2).mean(axis=0)
            course = {"first_loss": np.log10(rows["loss"][0]), "circles": mean_course}
            courses.append(table_of(index | {"step": steps}, **course))
    return {"networks": joined(ends), "course": joined(courses)}


# -- rules -------------------------------------------------------------------------------------------------


def _gaps(column: str, first: str, second: str, rows: Columns) -> Any:
    """Return a column in one arithmetic minus that in another, for the networks that both have trained."""
    halves = (where(rows, arithmetic=name)[column] for name in (first, second))
    return np.array([one - other for one, other in zip(*halves, strict=False)])


RISE = (
    f"decimal log of the largest rise of the training loss after step {SETTLED} above its least before, at "
    "every hundredth step"
)


def _rules_rounding(tokens: int) -> tuple[Statement, ...]:
    at, circles = f"p = {tokens}", float(tokens // 2)
    mean_of = partial(measures.mean, "networks", tokens=tokens)
    mixed = partial(counters.shuffled, "networks", within="network")
    return (
        Statement(f"{at}: one subtraction lets the loss jump up",
            "the gradient at the right class is its probability minus 1; in 32 bits this subtraction throws "
            "a network back that has long generalized",
            f"{RISE}: by subtraction minus that by the sum, both in 32 bits; by chance 0",
            mean_of(partial(_gaps, "rise", USUAL, STABLE)), least=2.0, chance=mixed("rise")),
        Statement(f"{at}: it does not by the sum",
            "the loss does not jump up if the probabilities of the other classes are summed instead",
            f"{RISE}: by the sum in 32 bits",
            mean_of("rise", arithmetic=STABLE), most=0.3, chance=mixed("rise")),
        Statement(f"{at}: nor in 64 bits", "nor does it jump up by subtraction in 64 bits",
            f"{RISE}: by subtraction in 64 bits",
            mean_of("rise", arithmetic=DOUBLE), most=0.3, chance=mixed("rise")),
        Statement(f"{at}: circles die of it", "circles that have survived the competition die of rounding",
            f"circles that survive at step {SETTLED} and not at the end: by subtraction minus by the sum, "
            "both in 32 bits; by chance 0",
            mean_of(partial(_gaps, "died", USUAL, STABLE)), least=0.25, possible=(-circles, circles),
            chance=mixed("died")),
        Statement(f"{at}: the loss is that of 64 bits", "by the sum, training in 32 bits is like that in 64",
            "decimal log of the training loss at the end, by the sum in 32 bits minus by subtraction in 64: "
            "its absolute value",
            mean_of(lambda rows: abs(_gaps("loss", STABLE, DOUBLE, rows))), most=0.1, chance=mixed("loss"),
            note="the mean of these absolute values"),
        Statement(f"{at}: and so are the circles",
            "by the sum, 32 bits keep more of the circles that 64 keep than they do by subtraction",
            "part of the circles that survive in 32 or in 64 bits that do in both: by the sum in 32 bits "
            "minus that by subtraction in 32; by chance 0",
            mean_of(partial(_gaps, "as_double", STABLE, USUAL), among="as_double == as_double"), least=0.1,
            possible=(-1.0, 1.0), chance=mixed("as_double")),
    )  # fmt: skip


def _draw_rounding(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw the loss of one network and the mean number of circles over the steps, for each size."""
    looks = {USUAL: (1, "-"), STABLE: (0, "-"), DOUBLE: (5, ":")}
    count = len(setting.places)
    with charts.panels(10.4, 0.6 + 3.1 * count, count, 2, squeeze=False) as (figure, axes):
        for (left, right), place, doubles in zip(axes, setting.places, setting.doubles, strict=True):
            for arithmetic, (color, line) in looks.items():
                course = where(tables["course"], tokens=place.tokens, arithmetic=arithmetic)
                look: Any = {"color": palette.SERIES[color], "linestyle": line, "linewidth": 1.4}
                left.plot(course["step"][1:], 10 ** course["first_loss"][1:], label=arithmetic, **look)
                right.plot(course["step"][1:], course["circles"][1:], **look)
            title = f"p = {place.tokens}, d = {place.dim}: one network"
            left.set(ylabel="training loss (nats)", title=title, yscale="log")
            right.set(ylabel="circles that survive", ylim=(0, None), title=f"mean of {doubles} networks")
        for ax in axes[-1]:
            ax.set_xlabel("step")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return {"rounding": figure}


PAPER_ROUNDING = Setting(
    places=(Place(31, 64, 30_000), Place(59, 128, 30_000)), runs=(24, 12), doubles=(12, 8)
)


@recipe(
    "rounding", item="rounding: one subtraction in 32 bits",
    quick=Setting(places=(Place(31, 32, 600),), runs=(3,), doubles=(2,)), paper_setting=PAPER_ROUNDING,
    draw=_draw_rounding, source="a question of this project, after a pilot at p = 31 with other seeds",
    shows=f"Training loss and circles over {PAPER_ROUNDING.places[0].steps} steps, in three kinds of "
    "arithmetic. The gradient is the probability of the right class minus 1 (subtraction), or else minus "
    "the sum of the probabilities of all other classes (sum).",
    cost="two hours", rules=(*_rules_rounding(31), *_rules_rounding(59)),
)  # fmt: skip
def rounding(run: Run) -> Result:
    """Beyond the papers: train the same networks in 32 and 64 bits, and with a gradient without cancellation.

    The table "networks" has a row for each network and arithmetic, and "course" one for each arithmetic and
    recorded step.
    """
    return Result(_tables_rounding(run))
