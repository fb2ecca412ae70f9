"""Liu et al., *Towards Understanding Grokking*: the toy model, its effective theory, and worked examples."""

from typing import Any

import numpy as np

from analysis.statistics import Interval, correlation, mean, proportion
from experiments.scoreboard.rows import Claim, Item, Reader, Unreadable, Written
from experiments.scoreboard.verdicts import (
    Circumstances,
    Finding,
    Printed,
    difference,
    exact,
    interval,
    rare,
    trend,
)

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


# -- Appendices C, D, E, H, L -------------------------------------------------------------------------------


def _freedom(written: Written) -> Finding:
    found = {row["stage"]: int(row["n_0"]) for row in written.rows("liu-9")}
    given = {"".join(row[k] for k in "ijmn") for row in written.rows("liu-9", stage="D_1 to D_4")}
    text = "n_0 = " + ", ".join(map(str, found.values())) + "; (0,5,2,3) "
    implied = any(
        {frozenset((q[0], q[1])), frozenset((q[2], q[3]))} == {frozenset("05"), frozenset("23")}
        for q in given
    )
    text += "follows from D_1 to D_4" if implied else "does not follow from D_1 to D_4"
    return Finding(implied and list(found.values())[-1] == 2, text, len(found))


def _samples(written: Written) -> Interval:
    rows = [row for row in written.rows("liu-9") if row["n_0"] == "2"]
    if not rows:
        raise Unreadable("no stage of liu-9 has n_0 = 2")
    return exact(min(int(row["samples"]) for row in rows))


def _below(name: str) -> Reader:
    def read(written: Written) -> Finding:
        value, bound = written.column("liu-10", name), written.column("liu-10", f"{name}_bound")
        return rare(int((value > bound + 1e-12).sum()), len(value), 0.1, "stopped flows above the bound")

    return read


def _smallest(written: Written) -> Finding:
    size = written.column("liu-10", "size")[written.column("liu-10", "rqi_bound") == 1]
    smallest = size.min() if len(size) else np.nan
    return Finding(
        bool(smallest <= 22), f"the smallest set with bound 1 has {smallest:.0f} of 55 samples", len(size)
    )


def _hierarchy(written: Written) -> Finding:
    rows = written.rows("liu-11")
    two = [row for row in rows if len(row["equations"].split()) == 2]
    kinds = {row["implied"]: row["degrees_of_freedom"] for row in rows}
    any_two = all(row["implied"] == "A1 A2 A3" for row in two)
    text = f"{len(kinds)} representations with {', '.join(sorted(kinds.values()))} degrees of freedom"
    return Finding(any_two and sorted(kinds.values()) == ["2", "3", "3", "3", "4"], text, len(rows))


def _slow_is_better(written: Written) -> Finding:
    counts = {
        pace: [
            0 if row["equations"] == "none" else len(row["equations"].split())
            for row in written.rows("liu-12", decoder=f"{pace} decoder")
        ]
        for pace in ("slow", "fast")
    }
    slow, fast = mean(counts["slow"]), mean(counts["fast"])
    gap = difference(slow, fast)
    text = f"parallelograms: {slow.format()} slow, {fast.format()} fast, difference {gap.format()}"
    return Finding(gap.low > 0, text, gap.count)


def _chains(written: Written) -> Finding:
    found = {
        name: [row["follows"] for row in written.rows("liu-16-chains", operation=name)]
        for name in ("C_7", "S_3")
    }
    needed = {name: follows == ["True"] + ["False"] * (len(follows) - 1) for name, follows in found.items()}
    text = f"{len(found['C_7']) - 1} needed in C_7, {len(found['S_3']) - 1} in S_3, none can be left out"
    return Finding(
        all(needed.values()), text if all(needed.values()) else "a link can be left out", len(found)
    )


def _hexagon(written: Written) -> Finding:
    """Angles between neighbours around the centre, on the plane of components that is the most regular."""
    points = {k: written.column("liu-17", f"PC{k}") for k in (1, 2, 3)}
    spread = {}
    for plane in ((1, 2), (1, 3), (2, 3)):
        angle = np.sort(np.angle(points[plane[0]] + 1j * points[plane[1]], deg=True))
        spread[plane] = float(abs(np.diff([*angle, angle[0] + 360]) - 60).max())
    best = min(spread, key=lambda plane: spread[plane])
    text = f"on components {best[0]}, {best[1]} the angles differ from 60° by at most {spread[best]:.0f}°"
    return Finding(spread[best] < 30, text, 1)


def _matrix_transition(written: Written) -> Interval:
    """The first size at which a network passes RQI 0.95, and the last one before at which none does."""
    fraction, grokked = (written.column("liu-18-summary", name) for name in ("fraction", "grokked"))
    passed = np.flatnonzero(grokked > 0)
    count = int(written.column("liu-18-summary", "networks").sum())
    if not len(passed):
        return Interval(np.nan, np.nan, np.nan, count)
    first = int(passed[0])
    return Interval(fraction[first], fraction[max(first - 1, 0)], fraction[first], count)


def _lower_bound(written: Written) -> Finding:
    real, predicted = (written.column("liu-18", name) for name in ("accuracy", "predicted_accuracy"))
    return rare(int((real < predicted - 1e-9).sum()), len(real), 0.2, "networks below their prediction")


def _rises(stem: str, column: str) -> Reader:
    def read(written: Written) -> Finding:
        return trend(
            written.column(stem, "fraction"), written.column(stem, column), 1, f"{column} over the fraction"
        )

    return read


def _adiabatic(written: Written) -> Finding:
    ratio, distance = (
        np.log(written.column("liu-L-limit", name)) for name in ("rate_ratio", "largest_distance")
    )
    order = float(np.polyfit(ratio[-4:], distance[-4:], 1)[0])
    return Finding(abs(order - 1) < 0.1, f"distance to the limit falls as (η_A/η_x)^{order:.2f}", len(ratio))


def _falls_with_p(written: Written) -> Finding:
    rows = written.rows("liu-scaling", family="plain addition")
    return trend([float(r["tokens"]) for r in rows], [float(r["r_c"]) for r in rows], -1, "r_c over p")


def _critical_of_s3(written: Written) -> Interval:
    (row,) = written.rows("liu-groups", operation="S_3")
    return interval((float(row[name]) for name in ("r_c", "low", "high")), int(row["orders"]))


RESOLUTION = "the paper's curve has its median between two sizes; ours has other sizes, decoder rate and δ"
DISTINCT = Circumstances("D_7 repeats D_4: the eight samples are seven distinct ones")
ITEMS = (
    Item(
        "Liu",
        "Table 1",
        "Definitions of the four phases of learning.",
        none="a definition: `experiments.liu_phases.phase`, pinned by its tests",
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
    Item(
        "Liu",
        "Figure 9; Appendix C",
        "As samples come in, parallelograms form, until all lie on a line.",
        "liu-9",
        claims=(
            Claim("deduction", "(0,5,2,3) follows; at the end n_0 = 2", _freedom),
            Claim("samples that determine p = 6", Printed("8", "Appendix C"), _samples, DISTINCT, 0),
        ),
    ),
    Item(
        "Liu",
        "Figure 10; Appendix E",
        "Ideal models bound what real ones reach.",
        "liu-10",
        claims=(
            Claim("RQI", "RQI exceeds its bound by rare luck only (under 10 %)", _below("rqi")),
            Claim("accuracy", "so does the predicted accuracy", _below("accuracy")),
            Claim("smallest set", "22 samples (40 %) can suffice", _smallest),
        ),
    ),
    Item(
        "Liu",
        "Figure 11; Appendix E",
        "The representations of p = 4 and their descent.",
        "liu-11",
        claims=(Claim("hierarchy", "subsets of three equations, 2 to 4 degrees of freedom", _hierarchy),),
    ),
    Item(
        "Liu",
        "Figure 12; Appendix E",
        "A slower decoder finds better representations.",
        "liu-12",
        claims=(Claim("decoder", "the slow decoder makes more parallelograms", _slow_is_better),),
    ),
    Item(
        "Liu",
        "Figure 16; Appendix H",
        "Two parallelograms make a third, three a fourth where nothing commutes.",
        "liu-16",
        claims=(Claim("chains", "two are needed for abelian groups, three else", _chains),),
    ),
    Item(
        "Liu",
        "Figure 17; Appendix H",
        "Six matrices learned for S_3, on their principal components.",
        "liu-17",
        claims=(
            Claim(
                "hexagon",
                "on two components they form a hexagon",
                _hexagon,
                Circumstances("the best of a few networks has not closed it; longer training does"),
            ),
        ),
    ),
    Item(
        "Liu",
        "Figure 18; Appendix H",
        "Networks on S_3: quality, steps and accuracies over the training fraction.",
        "liu-18",
        claims=(
            Claim(
                "first fraction with RQI > 0.95, between sizes",
                Printed("0.5", "Figure 18 (b)"),
                _matrix_transition,
                Circumstances("our networks train 5000 steps at one decoder rate; the paper scans them"),
            ),
            Claim("(a)", "RQI rises with the training fraction", _rises("liu-18", "rqi")),
            Claim("(e)", "predicted accuracy is a lower bound of accuracy (under 20 % below)", _lower_bound),
        ),
    ),
    Item(
        "Liu",
        "Appendix L",
        "The effective loss emerges from a linear network whose layers move slowly.",
        "liu-L",
        claims=(Claim("adiabatic limit", "reached as η_A/η_x goes to 0 (first order)", _adiabatic),),
    ),
    Item(
        "beyond the papers",
        "the transition for p = 5 … 60",
        "The critical fraction is no constant: it falls as ln p / p.",
        "liu-scaling",
        claims=(Claim("r_c", "r_c falls with p", _falls_with_p),),
    ),
    Item(
        "beyond the papers",
        "the transition for groups",
        "Critical fractions of fifteen finite groups.",
        "liu-groups",
        claims=(
            Claim(
                "S_3, against networks on S_3",
                Printed("0.5", "Figure 18 (b)"),
                _critical_of_s3,
                Circumstances(
                    "the exact deduction of Appendix H needs a little less than the paper's networks"
                ),
                3,
            ),
        ),
    ),
)
