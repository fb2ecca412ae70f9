"""Beyond Ding et al.: pairs of circles of which rarely both survive, the frequencies k and 2k."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.plots.palette import REFERENCE, SERIES
from analysis.plots.style import legend_below, style
from analysis.stats.intervals import Interval
from grokphys.papers.beyond.selection import SOURCE, SPELLED, Kind, Place, Setting, gap, networks
from grokphys.papers.ding.training import show_intervals
from grokphys.papers.evidence import Chance, jackknife, where
from grokphys.papers.recipe import Columns, Result, Run, Statement, Tables, recipe


def relative_frequency(rows: Columns, level: float) -> Interval:
    """Return how often pairs of survivors have the ratio 2, relative to equally likely ratios.

    It is 1 by chance, and its interval at the confidence level `level` is that of a jackknife over networks,
    the `rows` of the table. The modulus p must be a prime that is 3 modulo 4. Then the K = (p - 1)/2
    frequencies, up to sign, form a group of odd order under multiplication. Their pairs have (K - 1)/2 ratios
    up to order, each of K pairs, so that by chance a ratio has the share 2/(K - 1).
    """
    return jackknife(_relative, (rows["octaves"], rows["pairs"], rows["tokens"]), level)


def _relative(found: Any, pairs: Any, tokens: Any) -> float:
    return float((found * (np.asarray(tokens) - 3) / 4).sum() / pairs.sum())


def _octaves(kind: Kind, tokens: int) -> Callable[[Tables, float], Interval]:
    def measure(tables: Tables, level: float) -> Interval:
        chosen = where(tables["networks"], activation=kind.activation, even=kind.even, tokens=tokens)
        return relative_frequency(chosen, level)

    return measure


@partial(Chance, "each pair of survivors has the ratio 2 as often as any other ratio")
def _any_ratio(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which pairs of survivors have the ratio 2 as often as any other ratio, by chance."""
    rows = tables["networks"]
    found = generator.binomial(rows["pairs"].astype(int), 4 / (rows["tokens"] - 3))
    return {**tables, "networks": {**rows, "octaves": found}}


MODULI = (Place(23, 48, 1500), Place(31, 64, 1500), Place(43, 92, 2000), Place(59, 128, 2000))
COMPETING = (Kind("silu"), Kind("relu"), Kind("tanh", 1.0), Kind("tanh", 2.0), Kind("tanh", 4.0))


def _draw_octaves(setting: Setting, tables: Tables) -> dict[str, Figure]:
    """Draw how often survivors have the ratio 2, relative to any ratio, by modulus and activation."""
    places = [place.tokens for place in setting.places]
    with style(6.8):
        figure = Figure(figsize=(6.8, 4.0))
        ax = figure.subplots()
        for n, kind in enumerate(setting.kinds):
            found = [_octaves(kind, p)(tables, 0.95) for p in places]
            x = np.array(places) + 0.6 * (n - len(setting.kinds) / 2)
            look: Any = {"marker": "os^Dv"[n], "label": SPELLED.get(str(kind), str(kind))}
            show_intervals(ax, x, found, color=SERIES[n], linestyle="none", **look)
        ax.axhline(1, color=REFERENCE, linewidth=1, linestyle=":", label="all ratios alike")
        ax.set(xlabel="p", xticks=places, ylabel="frequency of the ratio 2\nover chance", ylim=(0, None))
        ax.set_title(f"{setting.runs} networks each")
        legend_below(ax)
    return {"octaves": figure}


@recipe(
    "octaves",
    paper="beyond",
    item="octaves: survivors k and 2k",
    shows="How often two survivors have the frequencies k and 2k, relative to chance. λ is the weight with "
    "which the even part of SiLU is added to tanh.",
    quick=Setting(COMPETING[:2], (Place(23, 48, 300),), 4),
    paper_setting=Setting(COMPETING, MODULI, 200),
    cost="two to four hours",
    rules=(
        *(
            Statement(
                f"p = {place.tokens}, {kind}",
                "pairs of survivors (k, 2k) are rarer than other ratios",
                SOURCE,
                "frequency of the ratio 2 among pairs of survivors, over that of any ratio; by chance 1",
                _octaves(kind, place.tokens),
                chance=_any_ratio,
                most=0.8,
            )
            for kind in COMPETING[:2]
            for place in MODULI
        ),
        Statement(
            "rarer as λ grows",
            "the more of the even part, the rarer",
            SOURCE,
            "the same with tanh and λ = 4 minus that with λ = 1, p = 31; by chance 0",
            gap(31, Kind("tanh", 4.0), Kind("tanh", 1.0), _relative, "octaves", "pairs", "tokens"),
            chance=_any_ratio,
            most=-0.1,
        ),
    ),
    draw=_draw_octaves,
)
def pairs_of_survivors(run: Run) -> Result:
    """Beyond the papers: measure how often one survivor has twice the frequency of another.

    The table "networks" has a row for each network. The rules judge this frequency relative to that of any
    ratio, and whether it falls with the weight λ.
    """
    return Result({"networks": networks(run, 32_000)})
