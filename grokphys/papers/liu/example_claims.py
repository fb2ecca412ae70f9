"""Liu et al., worked examples, bounds, small cases and groups (Appendices C, E, H, L), and beyond."""

import numpy as np
from numpy.typing import NDArray

from analysis.stats.intervals import Interval, difference, mean
from grokphys.papers.claims import Claim, Item, Reader, Unreadable, Written
from grokphys.papers.verdicts import Circumstances, Finding, Printed, exact, interval, rare, trend

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
    """Two regular triangles, of even and odd permutations, that alternate around the centre of a plane."""
    even = np.array([row["element"] in ("e", "(123)", "(132)") for row in written.rows("liu-17")])
    points = {k: written.column("liu-17", f"PC{k}") for k in (1, 2, 3)}
    found = {}
    for i, j in ((1, 2), (1, 3), (2, 3)):
        angle = np.angle(points[i] + 1j * points[j], deg=True) % 360
        gaps = [_gaps(angle[chosen]) for chosen in (even, ~even)]
        alternate = bool((np.diff(even[np.argsort(angle)].astype(int)) != 0).all())
        found[i, j] = alternate, float(abs(np.concatenate(gaps) - 120).max()), float(_gaps(angle).min())
    best = min(found, key=lambda plane: (not found[plane][0], found[plane][1]))
    alternate, error, turned = found[best]
    text = f"components {best[0]}, {best[1]}: two triangles, regular to {error:.0f}°, turned by {turned:.0f}°"
    return Finding(alternate and error < 30, text, 1)


def _gaps(angle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Angles, in degrees, between neighbours around a circle."""
    ordered = np.sort(angle)
    return np.diff(np.append(ordered, ordered[0] + 360))


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


DISTINCT = Circumstances("D_7 repeats D_4: the eight samples are seven distinct ones")
ITEMS = (
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
                "on two components they form a hexagon (triangles of both parities, alternating)",
                _hexagon,
                Circumstances(
                    "the triangles of even and odd permutations have not become regular in so few steps"
                ),
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
