"""Beyond Ding et al. and He et al.: the lottery among the neurons of Ding's network, and a vote of neurons.

A neuron of Ding's network (`EmbeddingMLP`) reads its two tokens by effective weights E @ W of an embedding E
that all neurons share. Suppose that each neuron had separate input weights, as in `TwoLayer`. Then for the
activation x² and small weights, the complex amplitudes θ₁ and θ₂ with which the neuron reads a frequency,
and the amplitude ξ with which it votes for the answer, would follow

    dθ₁/dt = c conj(θ₂) ξ,    dθ₂/dt = c conj(θ₁) ξ,    dξ/dt = c θ₁θ₂:

the equations of three coupled waves with a constant c, of which `FourierLottery` is the case θ₁ = θ₂, in
other units. Each frequency diverges at a time t*. The recipe measures how much of this remains if the
embedding is shared and moves. The rules were written after a pilot at p = 23 (24 networks, of other seeds)
and before any run at p = 31 and 59.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import elliprf

from analysis.circles.fourier import fourier_signals
from analysis.circles.survival import survives
from analysis.plots.palette import REFERENCE, SOFT
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.beyond.agreement import agreement, strongest
from grokphys.papers.beyond.selection import Place
from grokphys.papers.ding.training import DECAY, show_intervals
from grokphys.papers.evidence import Chance, by_network, joined, mean, shuffled, where
from grokphys.papers.pieces import in_parts
from grokphys.papers.recipe import Columns, Measure, Result, Run, Statement, Tables, recipe
from nets.models import EmbeddingMLP
from nets.networks import networks
from nets.training import train
from physics.neurons.spectrum import neuron_spectrum

Array = NDArray[np.float64]
READERS = {"time": "smallest t*", "magnitude": "largest |θ₁θ₂|", "phase": "smallest |φ₁ + φ₂ − ψ|"}
SCORES = {"signal": "signal", "votes": "votes for smallest t*", "haste": "mean of 1/t*"}
PIECE = 50, 50
"""Largest number of networks that are trained together, on a CPU and on a GPU."""
ROWS = 40
"""Largest number of neurons of each network that the table lists."""


@dataclass(frozen=True)
class Setting:
    """Setting: sizes of networks with their numbers of steps, and number of networks of each size."""

    places: Sequence[Place]
    runs: Sequence[int]


def blowup_times(first: Any, second: Any, xi: Any) -> Array:
    """Return the blow-up time t*, at which θ₁, θ₂ and ξ of the module's equations diverge, for c = 1.

    The complex arrays `first`, `second` and `xi` (...) hold θ₁, θ₂ and ξ at the start; the times (...) are
    float64. ``R = Re(θ₁θ₂ conj ξ)`` is half of dw/dt for w = |ξ|², and ``M = Im(θ₁θ₂ conj ξ)``, ``A = |θ₁|² -
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


def _trained(place: Place, seed: int, part: range) -> dict[str, Any]:
    """Train a part of the networks of one size, and return what their start predicts and how they end.

    Parameters
    ----------
    place : Place
        Modulus, dimension and number of steps.
    seed : int
        Seed, to which the modulus is added.
    part : range
        Numbers of the networks.

    Returns
    -------
    dict of str to ndarray, shape (networks, ...)
        For each neuron its final frequency (0 if it is dead) and the predicted ones; for each circle three
        scores, and whether it survives; for each network its accuracy.
    """
    trained = train(
        EmbeddingMLP(place.tokens, place.dim),
        runs=len(part),
        first_run=part.start,
        steps=place.steps,
        seed=seed + place.tokens,
        weight_decay=DECAY,
        record=place.steps,
        observables=("layers", "validation_accuracy"),
        device="cpu",
    )
    begun, ended = networks(trained, 0), networks(trained)
    # At small weights SiLU is x/2, and so is what the second hidden layer makes of a neuron of the first.
    through = begun.parameters["hidden2.weight"] @ begun.parameters["output.weight"] / 2
    read, reads = begun.neuron_weights(), ended.neuron_weights()
    start = neuron_spectrum(read["W_in"], through, second=read["second"])
    end = neuron_spectrum(reads["W_in"], second=reads["second"])
    parts = start.theta, start.theta_second, start.xi
    first, second, xi = (np.asarray(part, np.complex128) for part in parts)
    product = first * second * xi.conj()
    times = blowup_times(first, second, xi)
    named = times.argmin(axis=-1)
    signals, final = (fourier_signals(one.parameters["embedding"]) for one in (begun, ended))
    haste = (1 / times).mean(axis=1)
    return {
        "chosen": end.frequency,
        "single": end.kind == "single",
        "single_at_start": start.kind == "single",
        "time": 1 + named,
        "magnitude": 1 + np.abs(first * second).argmax(axis=-1),
        "phase": 1 + np.abs(np.angle(product)).argmin(axis=-1),
        "signal": signals,
        # Circles with equally many votes are ranked by their speed.
        "votes": (named[..., None] == np.arange(place.tokens // 2)).sum(axis=1) + haste / haste.max() / 2,
        "haste": haste,
        "survived": survives(final),
        "accuracy": trained.observables["validation_accuracy"][:, -1],
    }


def _tables(run: Run, seed: int) -> dict[str, dict[str, NDArray[Any]]]:
    """Train the networks of all sizes; return tables of their first `ROWS` neurons and of their circles."""
    setting: Setting = run.setting
    tables: dict[str, list[Columns]] = {"neurons": [], "circles": []}
    for place, runs in zip(setting.places, setting.runs, strict=True):
        part = joined(
            in_parts(run, runs, PIECE, partial(_trained, place, seed), f"p-{place.tokens}-networks")
        )
        for table, columns, width in (
            ("neurons", ("chosen", "single", "single_at_start", *READERS), ROWS),
            ("circles", (*SCORES, "survived"), place.tokens),
        ):
            own = {name: part[name][:, :width] for name in columns}
            shape = own[columns[0]].shape
            own["tokens"] = np.full(shape, place.tokens)
            own["network"] = np.broadcast_to(1000 * place.tokens + np.arange(runs)[:, None], shape)
            tables[table].append({name: values.ravel() for name, values in own.items()})
    return {table: joined(parts) for table, parts in tables.items()}


# -- rules -------------------------------------------------------------------------------------------------


def _single(tokens: int) -> Measure:
    def measure(tables: Tables, level: float) -> Interval:
        rows = where(tables["neurons"], tokens=tokens)
        return mean(rows["single"], level, groups=rows["network"])

    return measure


def _alive(tables: Tables, tokens: int) -> dict[str, NDArray[Any]]:
    """Return the rows of the table "neurons" for one modulus, without neurons that are dead in the end."""
    rows = where(tables["neurons"], tokens=tokens)
    return {name: values[rows["chosen"] > 0] for name, values in rows.items()}


def _foretells(reader: str, tokens: int) -> Measure:
    """Return a `Measure` of the share of living neurons that end at the frequency of a predictor."""

    def measure(tables: Tables, level: float) -> Interval:
        rows = _alive(tables, tokens)
        return mean(rows["chosen"] == rows[reader], level, groups=rows["network"])

    return measure


def _beyond_survival(tokens: int) -> Measure:
    """Return a `Measure` of how much better blow-up times predict the frequencies of neurons than chance.

    This is the share of living neurons that end at the frequency with the smallest blow-up time, minus the
    same share if the neurons of a network exchange their predicted frequencies.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = _alive(tables, tokens)
        gains = []
        for own in by_network(rows):
            chosen, named = (np.bincount(own[name], minlength=tokens) for name in ("chosen", "time"))
            count = len(own["chosen"])
            gains.append(np.mean(own["chosen"] == own["time"]) - chosen @ named / count**2)
        return mean(gains, level)

    return measure


def _lead(tokens: int) -> Measure:
    """Return a `Measure` of how much better blow-up times predict frequencies than magnitude and phase do.

    This is the share of living neurons for which the blow-up time is right, minus the larger of the shares
    for which magnitude and phase are right.
    """

    def measure(tables: Tables, level: float) -> Interval:
        rows = _alive(tables, tokens)
        other = max(("magnitude", "phase"), key=lambda reader: int(np.sum(rows[reader] == rows["chosen"])))
        gain = 1.0 * (rows["time"] == rows["chosen"]) - (rows[other] == rows["chosen"])
        return mean(gain, level, groups=rows["network"])

    return measure


def _agreement(tables: Tables, score: str, tokens: int) -> Array:
    """Return how well the circles with the largest scores agree with the survivors, for each network.

    `score` is a column of the table "circles". The agreement, float64 (networks,), is the number of circles
    in both sets as a fraction of those in either.
    """
    rows = where(tables["circles"], tokens=tokens)
    shape = -1, tokens // 2
    final = np.asarray(rows["survived"], bool).reshape(shape)
    return agreement(strongest(np.asarray(rows[score], float).reshape(shape), final), final)


def _knows(score: str, tokens: int) -> Measure:
    return lambda tables, level: mean(_agreement(tables, score, tokens), level)


def _better(score: str, tokens: int) -> Measure:
    return lambda tables, level: mean(
        _agreement(tables, score, tokens) - _agreement(tables, "signal", tokens), level
    )


@partial(Chance, "`single` of each neuron replaced by what it was at the start")
def _as_begun(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which neurons have a single frequency if they had it at the start, as by chance."""
    rows = tables["neurons"]
    return {**tables, "neurons": {**rows, "single": rows["single_at_start"]}}


SOURCE, HE = "beyond both papers: a question of this project", "Abstract of He et al., who train `TwoLayer`"
ENDS_THERE = "share of the neurons that are not dead which end at the frequency of smallest t*"
LISTED = f"of the first {ROWS} neurons of each network, which are the ones that the table lists"
EXCHANGED = "if neurons of a network exchange their predictions, the share is 1.4 to 1.6 times that chance"
OVERLAP = (
    "the circles in both sets, predicted and final survivors, over those in at least one of them; as many "
    "are predicted as the other networks keep on average"
)
COMMON = "part of the circles that survive or are called survivors at step 0 that do and are"
DRAWN = shuffled("neurons", "time", within="network")


def _rules(tokens: int) -> tuple[Statement, ...]:
    at = f"p = {tokens}"
    return (
        Statement(
            f"{at}: a single frequency",
            "every neuron concentrates its energy at a single frequency",
            "Section 3.1, Observation 1 of He et al. (authors' page)",
            "share of neurons that hold at least 90 % of their input power in one frequency",
            _single(tokens),
            chance=_as_begun,
            least=0.9,
            note=LISTED,
        ),
        Statement(
            f"{at}: t* names the winner",
            "the “winner” determined by its initial spectral magnitude and phase alignment",
            HE,
            f"{ENDS_THERE}; by chance {2 / (tokens - 1):.2g}",
            _foretells("time", tokens),
            chance=DRAWN,
            least=0.5,
            note=f"{LISTED}; {EXCHANGED}",
        ),
        Statement(
            f"{at}: t* tells neurons apart",
            "a neuron ends where its own t* is smallest, and not only where those of its network end",
            SOURCE,
            f"{ENDS_THERE}, minus what it is if neurons of a network exchange their t*; by chance 0",
            _beyond_survival(tokens),
            chance=DRAWN,
            least=0.05,
            note=LISTED,
        ),
        Statement(
            f"{at}: neither alone",
            "the “winner” determined by its initial spectral magnitude and phase alignment",
            HE,
            f"{ENDS_THERE}, minus that for largest |θ₁θ₂| or for best phase, whichever is larger",
            _lead(tokens),
            chance=DRAWN,
            least=0.05,
            note=LISTED,
        ),
        Statement(
            f"{at}: a vote tells survivors",
            "the frequencies for which most neurons vote at the start survive",
            SOURCE,
            f"{COMMON}; every neuron votes for its frequency of smallest t*",
            _knows("votes", tokens),
            chance=shuffled("circles", "votes", within="network"),
            least=0.3,
            note=OVERLAP,
        ),
        *(
            Statement(
                f"{at}: {words}",
                "a vote of the neurons tells the survivors better than the ranking by signal",
                SOURCE,
                f"{COMMON}, ranked by {SCORES[score]}, minus that ranked by signal; 0 if neither is better",
                _better(score, tokens),
                chance=shuffled("circles", score, within="network"),
                least=0.05,
                note=OVERLAP,
            )
            for score, words in (
                ("votes", "the vote is better than the signal"),
                ("haste", "a vote weighted by 1/t* is better"),
            )
        ),
    )


def _draw(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw how often each predictor is right about neurons, and how well each ranking of circles agrees."""
    with style(10.4):
        figure = Figure(figsize=(10.4, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for n, place in enumerate(setting.places):
            p = place.tokens
            named = [_foretells(reader, p)(tables, 0.95) for reader in READERS]
            known = [_knows(score, p)(tables, 0.95) for score in SCORES]
            for ax, found in ((left, named), (right, known)):
                look: Any = {"linestyle": "none", "marker": "os"[n % 2], "label": f"p = {p}"}
                show_intervals(ax, np.arange(3) + 0.1 * n, found, **look)
            left.axhline(2 / (p - 1), color=REFERENCE, linewidth=1, linestyle=":")
            above: Any = {
                "xytext": (0, 2),
                "va": "bottom",
                "textcoords": "offset points",
                "ha": "center",
                "color": SOFT,
            }
            left.annotate(f"chance, p = {p}", (0.55, 2 / (p - 1)), **above)
        left.set_xticks(range(3), [words.replace(" ", "\n", 1) for words in READERS.values()])
        left.set(title="neurons; bars: 95 % intervals", ylabel="share predicted correctly", ylim=(0, None))
        for ax in (left, right):
            ax.margins(x=0.15)
        right.set_xticks(range(3), [fill(words, 14) for words in SCORES.values()])
        right.set(title="circles, ranked at step 0", ylabel="agreement with survivors", ylim=(0, 1))
        legend_below(left)
        legend_below(right)
    return {"votes": figure}


PAPER = Setting((Place(31, 64, 1500), Place(59, 128, 1500)), (120, 16))


@recipe(
    "votes",
    paper="beyond",
    item="votes: the lottery in Ding's network",
    shows="How well blow-up times t* name the frequencies of neurons, and votes of neurons the survivors, in "
    f"{PAPER.runs[0]} networks of p = {PAPER.places[0].tokens} and {PAPER.runs[1]} of "
    f"p = {PAPER.places[1].tokens}.",
    quick=Setting((Place(23, 48, 150),), (4,)),
    paper_setting=PAPER,
    cost="ten minutes",
    rules=(*_rules(31), *_rules(59)),
    draw=_draw,
)
def votes(run: Run) -> Result:
    """Beyond the papers: judge predictors of the frequencies of neurons, and rankings of circles, at step 0.

    The result holds the tables "neurons" and "circles".
    """
    return Result(_tables(run, 46_000))
