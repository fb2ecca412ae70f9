"""Liu et al., *Towards Understanding Grokking*: the toy model, its effective theory, and worked examples."""

from typing import Any

import numpy as np

from analysis.stats.intervals import Interval, correlation, proportion
from grokphys.papers.claims import Claim, Item, Reader, Written
from grokphys.papers.verdicts import Circumstances, Finding, Printed, interval, trend

CLOSE = 0.1
"""Accuracies that differ by no more count as agreeing."""
GROKKED = 0.95


def crossing(x: Any, y: Any, level: float = 0.5) -> float:
    """Where a rising curve passes a level, between its points; NaN where it does not."""
    places, values = np.asarray(x, float), np.asarray(y, float)
    above = np.flatnonzero(values >= level)
    if not len(above) or above[0] == 0:
        return float("nan")
    k = int(above[0])
    return float(np.interp(level, values[k - 1 : k + 1], places[k - 1 : k + 1]))


# -- Figures 3 to 5 -----------------------------------------------------------------------------------------


def _agreement(stem: str) -> Reader:
    def read(written: Written) -> Finding:
        real, predicted = (written.column(stem, name) for name in ("accuracy", "predicted_accuracy"))
        near = proportion(int((abs(real - predicted) <= CLOSE).sum()), len(real))
        related = correlation(real, predicted)
        text = f"within {CLOSE:g} in {near.format(0, 100)} % of networks, correlation {related.format(2)}"
        return Finding(related.low > 0.5, text, len(real))

    return read


def _critical(written: Written) -> Interval:
    (row,) = written.rows("liu-4a-fit")
    sets = int(written.rows("liu-4a")[0]["sets"])
    return interval((float(row[name]) for name in ("r_c", "low", "high")), sets)


def _network_transition(written: Written) -> Interval:
    """Where the median RQI passes one half; interval by resampling the networks of every size."""
    size, fraction, rqi = (written.column("liu-4b", name) for name in ("size", "fraction", "rqi"))
    groups = [rqi[size == s] for s in np.unique(size)]
    places = np.unique(fraction)
    generator = np.random.default_rng(0)
    drawn = [
        crossing(places, [np.median(generator.choice(group, len(group))) for group in groups])
        for _ in range(1000)
    ]
    if np.isnan(drawn).all():
        return Interval(np.nan, np.nan, np.nan, len(rqi))
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return Interval(crossing(places, [np.median(g) for g in groups]), float(low), float(high), len(rqi))


def _formed(stem: str, quality: str) -> Reader:
    """After how many n_h RQI passes 0.95; the paper says "about 3"."""

    def read(written: Written) -> Finding:
        step, rqi = written.column(stem, "step"), written.column(stem, quality)
        if stem == "liu-4c":
            n_h = float(written.rows(stem)[-1]["step"]) / float(written.rows(stem)[-1]["steps_over_n_h"])
        else:
            n_h = float(written.rows(stem)[0]["n_h"])
        passed = step[rqi > GROKKED]
        if not len(passed):
            return Finding(None, f"RQI does not pass {GROKKED} in {step[-1] / n_h:.1f} n_h", 1)
        return Finding(
            bool(1.5 <= passed[0] / n_h <= 6), f"RQI > {GROKKED} after {passed[0] / n_h:.1f} n_h", 1
        )

    return read


def _rate_transition(written: Written) -> Interval:
    """The fraction at which half of the training sets have λ_3 > 0; Wilson's limits, read across."""
    fraction = written.column("liu-5a", "fraction")
    at = [crossing(fraction, written.column("liu-5a", f"positive{side}")) for side in ("", "_high", "_low")]
    return interval(at, int(written.column("liu-5a", "sets").sum()))


def _rate_rises(written: Written) -> Finding:
    fraction, rate = (written.column("liu-5a", name) for name in ("fraction", "mean"))
    above = fraction > 0.4
    return trend(fraction[above], rate[above], 1, "mean λ_3 above r = 0.4")


def _faster(written: Written) -> Finding:
    fraction, steps = (written.column("liu-5b-networks", name) for name in ("fraction", "steps_to_rqi"))
    passed = np.isfinite(steps)
    return trend(fraction[passed], steps[passed], -1, "steps to RQI > 0.95 over the fraction")


def _follow(written: Written) -> Finding:
    steps, n_h = (written.column("liu-5b-networks", name) for name in ("steps_to_rqi", "n_h"))
    both = np.isfinite(steps) & np.isfinite(n_h)
    related = correlation(np.log(steps[both]), np.log(n_h[both]))
    text = f"logarithms of steps and n_h correlate by {related.format(2)}"
    return Finding(None if np.isnan(related.low) else related.low > 0, text, int(both.sum()))


RESOLUTION = "the paper's curve has its median between two sizes; ours has other sizes, decoder rate and δ"
ITEMS = (
    Item(
        "Liu",
        "Table 1",
        "Definitions of the four phases of learning.",
        none="a definition; the tests of the phases pin it",
    ),
    Item(
        "Liu",
        "Figure 2",
        "Two-dimensional embeddings for p = 11 and their decoder's classes.",
        none="no recipe; Musat's Figures 3 and 4 draw the same of another network",
    ),
    Item(
        "Liu",
        "Figure 3",
        "Accuracy can be foretold from the parallelograms of the embedding.",
        "liu-3",
        claims=(
            Claim(
                "agreement",
                "predicted and true accuracy agree well (correlation above 0.5)",
                _agreement("liu-3"),
            ),
        ),
    ),
    Item(
        "Liu",
        "Figure 4 (a)",
        "The probability of a unique linear representation jumps at a critical fraction.",
        "liu-4a",
        claims=(Claim("r_c", Printed("0.4", "Figure 4 (a)"), _critical, digits=3),),
    ),
    Item(
        "Liu",
        "Figure 4 (b)",
        "Trained networks pass the same transition.",
        "liu-4b",
        claims=(
            Claim(
                "r_c of networks",
                Printed("0.4", "Figure 4 (b)"),
                _network_transition,
                Circumstances(RESOLUTION),
            ),
        ),
    ),
    Item(
        "Liu",
        "Figure 4 (c)",
        "Embeddings of the effective theory move onto a line.",
        "liu-4c",
        claims=(
            Claim(
                "duration",
                "about 3 n_h to the linear structure (here: 1.5 to 6)",
                _formed("liu-4c", "rqi_delta_0.1"),
            ),
        ),
    ),
    Item(
        "Liu",
        "Figure 4 (d)",
        "Embeddings of a trained network do as well.",
        "liu-4d",
        claims=(
            Claim(
                "duration",
                "about 3 n_h to the linear structure (here: 1.5 to 6)",
                _formed("liu-4d", "rqi"),
                Circumstances(
                    "n_h is of the gradient flow; the network's embeddings move by Adam, whose steps do "
                    "not scale with the gradient"
                ),
            ),
        ),
    ),
    Item(
        "Liu",
        "Figure 5 (a)",
        "The grokking rate vanishes below the critical fraction and rises above it.",
        "liu-5a",
        claims=(
            Claim(
                "r at which λ_3 > 0 for half of the sets",
                Printed("0.4", "Figure 5 (a)"),
                _rate_transition,
                digits=3,
            ),
            Claim("λ_3 above it", "an increasing function of data size", _rate_rises),
        ),
    ),
    Item(
        "Liu",
        "Figure 5 (b)",
        "More data, fewer steps, in theory and in networks.",
        "liu-5b",
        claims=(
            Claim("networks", "grokking steps decrease with data size", _faster),
            Claim("theory", "theory and networks agree qualitatively", _follow),
        ),
    ),
)
