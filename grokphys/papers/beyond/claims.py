"""Simulated and trained dynamics in pairs: what the comparisons of `pairings` found."""

import math

from analysis.stats.intervals import Interval, difference
from grokphys.papers.claims import Claim, Item, Reader, Written, number
from grokphys.papers.verdicts import Circumstances, Finding, interval


def _estimate(written: Written, recipe: str, quantity: str, statistic: str) -> Interval:
    row = written.rows(recipe, quantity=quantity, statistic=statistic)[0]
    return interval((number(row[name]) for name in ("estimate", "low", "high")), int(row["count"]))


def _nearer_than_chance(recipe: str) -> Reader:
    """Whether paired trajectories lie nearer to each other than to those of other runs."""

    def read(written: Written) -> Finding:
        own, chance = (_estimate(written, recipe, "scaling", name) for name in ("mean_error", "chance_error"))
        gap = difference(own, chance)
        text = f"distance {own.format(2)}, to other runs {chance.format(2)}"
        return Finding(None if math.isnan(gap.high) else gap.high < 0, text, own.count)

    return read


def _alike(quantity: str, scale: float, digits: int) -> Reader:
    """Whether particles and networks differ in a structure, f_a = 1 against weight decay 1."""

    def read(written: Written) -> Finding:
        found = _estimate(written, "compare-particles", quantity, "difference")
        text = f"particles minus networks {found.format(digits, scale)}"
        return Finding(None if math.isnan(found.estimate) else found.covers(0), text, found.count)

    return read


JITTER = Circumstances(
    "particles jitter by their step of 0.02: at 0.005 they have about a fifth fewer imperfections (musat-map)"
)
FEW = Circumstances("few pairs: their intervals overlap")
ITEMS = (
    Item(
        "beyond the papers",
        "side by side: theory and networks",
        "The effective theory's trajectories against those of toy networks (Liu, Figs. 4 and 5).",
        "compare-theory",
        claims=(Claim("motion", "they agree qualitatively", _nearer_than_chance("compare-theory"), FEW),),
    ),
    Item(
        "beyond the papers",
        "side by side: particles and networks",
        "Particles against networks with constant attention (Musat, Tables 1 and 2).",
        "compare-particles",
        claims=(
            Claim("circles (%)", "very similar to the networks'", _alike("circles", 100, 0)),
            Claim("grid imperfections", "very similar as well", _alike("grid_imperfections", 1, 1), JITTER),
        ),
    ),
    Item(
        "beyond the papers",
        "side by side: linear law and networks",
        "The linear law's signals against those of embedding networks (Ding, Fig. 9).",
        "compare-ode",
        claims=(Claim("motion", "the law follows the signals", _nearer_than_chance("compare-ode"), FEW),),
    ),
)
