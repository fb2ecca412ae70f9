"""Musat, *Clustering and Alignment*: its tables and figures, the printed numbers, and where ours stand.

Appendices have the letters of the longer version.
"""

import numpy as np

from analysis.stats.intervals import Interval, mean
from grokphys.papers.claims import Claim, Item, Reader, Written
from grokphys.papers.verdicts import (
    Circumstances,
    Finding,
    Printed,
    between,
    percent,
    plus_minus,
    scaled,
    trend,
)
from grokphys.report.musat import PAPER_RUNS, TABLE_1, TABLE_2
from physics.particles.structures import grid_imperfections

# -- Tables 1 and 2 ----------------------------------------------------------------------------------------

FEW_CIRCLES = Circumstances(
    "12 of 100 in the paper, 4.8 % of 4000 networks here; no start of the layers that we know gives more "
    "without missing other numbers (musat-start), and the table as a whole is not rejected"
)


def _of_table(table: str, scale: float = 1, **where: object) -> Reader:
    def read(written: Written) -> Interval:
        return scaled(written.intervals(f"musat-{table}-numbers", "here", **where)[0], scale)

    return read


def _table_1() -> tuple[Claim, ...]:
    claims = []
    for decay, row in TABLE_1.items():
        source, rest = f"Table 1, weight decay {decay:g}", PAPER_RUNS - row.circles
        low, middle, high = row.imperfections.low, row.imperfections.estimate, row.imperfections.high
        assert isinstance(row.correlation, Interval)
        related, *sides = (
            f"{x:.2f}" for x in (row.correlation.estimate, row.correlation.low, row.correlation.high)
        )
        printed = {
            "circles": percent(row.circles, PAPER_RUNS, source),
            "accuracy of circles": Printed(f"{row.circle_accuracy:.1f}", source, runs=row.circles),
            "accuracy of the rest": Printed(f"{row.rest_accuracy:.1f}", source, runs=rest),
            "grid imperfections": plus_minus(f"{middle:.1f}", f"{(high - low) / 2:.1f}", source, rest),
            "correlation": between(related, (sides[0], sides[1]), source, rest),
        }
        for name, paper in printed.items():
            if not np.isfinite(paper.value):
                continue  # a dash in the table
            read = _of_table("table1", 100 if name == "circles" else 1, weight_decay=decay, quantity=name)
            about = Circumstances()
            if name == "circles" and decay == 0.6:
                about = FEW_CIRCLES
            unit = " (%)" if name == "circles" or name.startswith("accuracy") else ""
            claims.append(
                Claim(f"decay {decay:g}: {name}{unit}", paper, read, about, 2 if name == "correlation" else 1)
            )
    return tuple(claims)


def _table_2() -> tuple[Claim, ...]:
    claims = []
    for alignment, row in TABLE_2.items():
        source, own = f"Table 2, f_a = {alignment:g}", row.imperfections
        half = f"{own.high - own.estimate:.1f}"
        circles = percent(row.circles, PAPER_RUNS, source)
        rest = plus_minus(f"{own.estimate:.1f}", half, source, PAPER_RUNS - row.circles)
        claims += [
            Claim(
                f"f_a = {alignment:g}: circles (%)",
                circles,
                _of_table("table2", 100, f_a=alignment, quantity="circles"),
                digits=1,
            ),
            Claim(
                f"f_a = {alignment:g}: grid imperfections of the rest",
                rest,
                _of_table("table2", f_a=alignment, quantity="grid imperfections"),
                digits=1,
            ),
        ]
    return tuple(claims)


# -- Figures ------------------------------------------------------------------------------------------------


GOOD = 20
"""Imperfections of a grid that looks like one."""


def _structures(stem: str) -> Reader:
    def read(written: Written) -> Finding:
        circle = written.column(stem, "circle").astype(bool)
        rest = written.column(stem, "grid_imperfections")[~circle]
        good = rest <= GOOD
        kinds = f"{circle.sum()} circles, {good.sum()} grids (≤ {GOOD} imperfections), {(~good).sum()} others"
        return Finding(bool(circle.any() and good.any() and (~good).any()), kinds, len(circle))

    return read


def _fewer_imperfections(written: Written) -> Finding:
    decay, found = (written.column("musat-D", name) for name in ("weight_decay", "grid_imperfections"))
    return trend(decay, found, -1, "imperfections over weight decay")


def _clusters(written: Written) -> Finding:
    """How often the nearest other pair sum is of the same class, against any other assignment of classes."""
    rows = written.rows("musat-3")
    sums = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    labels = np.array([int(row["class"]) for row in rows])
    gaps = np.linalg.norm(sums[:, None] - sums[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    same = float((labels[gaps.argmin(axis=1)] == labels).mean())
    text = f"nearest other pair sum of the same class for {same:.0%} of {len(rows)} ({1 / 17:.0%} by chance)"
    return Finding(same > 0.5, text, len(rows))


def _pizza(written: Written) -> Finding:
    """How well the pair sums of a class lie on a line through the origin: 1 on it, 2/π for any angle."""
    if "musat-4.csv" not in written.files:
        return Finding(None, "no circle among the networks of this budget", 0)
    rows = written.rows("musat-4")
    sums = np.array([complex(float(row["x"]), float(row["y"])) for row in rows])
    labels = np.array([int(row["class"]) for row in rows])
    own = np.array([row["a"] == row["b"] for row in rows])
    ratio = abs(sums[own]).max() / abs(sums[own]).min()
    aligned = []
    for label in np.unique(labels):
        z = sums[labels == label]
        axis = np.sqrt((z**2).sum())
        aligned.append(float(abs((z * axis.conjugate()).real).sum() / abs(axis) / abs(z).sum()))
    text = f"norm ratio {ratio:.2f}; part of a pair sum along its class's line {np.mean(aligned):.2f} "
    text += f"(random {2 / np.pi:.2f})"
    return Finding(bool(ratio < 1.2 and np.mean(aligned) > 0.9), text, len(rows))


def _bounded(name: str) -> Reader:
    def read(written: Written) -> Finding:
        last = max(written.column("musat-6", "step"))
        rows = {float(row["weight_decay"]): row for row in written.rows("musat-6", step=int(last))}
        return trend(
            list(rows), [float(row[name]) for row in rows.values()], -1, f"mean |{name[0]}| over weight decay"
        )

    return read


def _biases_more(written: Written) -> Finding:
    last = int(max(written.column("musat-6", "step")))
    rows = {float(row["weight_decay"]): row for row in written.rows("musat-6", step=last)}
    left = {name: float(rows[1.0][name]) / float(rows[0.0][name]) for name in ("weight_norm", "bias_norm")}
    text = (
        f"at decay 1, {left['weight_norm']:.0%} of mean |w| and {left['bias_norm']:.0%} of mean |b| are left"
    )
    return Finding(left["bias_norm"] < left["weight_norm"], text, int(rows[0.0]["networks"]))


def _more_structure(dim: int) -> Reader:
    """Imperfections of trained embeddings against those of random ones."""

    def read(written: Written) -> Finding:
        found = mean(written.column("musat-G", "grid_imperfections", dim=dim))
        random = mean(grid_imperfections(np.random.default_rng(0).standard_normal((200, 17, dim))))
        text = f"imperfections {found.format()}, of random embeddings {random.format()}"
        return Finding(found.high < random.low, text, found.count)

    return read


def _settled(written: Written) -> Finding:
    circles = {
        float(row["f_a"]): row["circles %"] for row in written.rows("musat-map", **{"step size": "0.02"})
    }
    shares = [float(text.split()[0]) for text in circles.values()]
    return trend(list(circles), shares, 1, "circles over f_a at step size 0.02")


def _starts(written: Written) -> Finding:
    rows = {row["start"]: row for row in written.rows("musat-start-totals")}
    text = "; ".join(
        f"{name}: χ² = {float(row['chi_square']):.0f}, p = {float(row['p_value']):.1g}"
        for name, row in rows.items()
    )
    runs = int(written.rows("musat-start")[0]["networks"])
    return Finding(float(rows["pytorch"]["p_value"]) > 0.01, text, runs)


FIGURES = "a grid, a circle and an imperfect grid are all found"
ITEMS = (
    Item(
        "Musat",
        "Table 1",
        "Weight decay makes circles and takes imperfections away; accuracy follows.",
        "musat-table1",
        claims=_table_1(),
    ),
    Item(
        "Musat",
        "Table 2",
        "The more the particles align, the more circles; the number of grids is the rest.",
        "musat-table2",
        claims=_table_2(),
    ),
    Item(
        "Musat",
        "Figures 1, 2; Appendix D",
        "Trained embeddings: circles, grids and imperfect grids.",
        "musat-D",
        claims=(
            Claim("structures", FIGURES, _structures("musat-D")),
            Claim("weight decay", "weight decay reduces grid imperfections", _fewer_imperfections),
        ),
        picture="musat-D-wd1.png",
    ),
    Item(
        "Musat",
        "Figure 3",
        "A grid makes the pair sums of a class cluster, so that they can be told apart.",
        "musat-3",
        claims=(Claim("clusters", "pair sums cluster by their modular sum", _clusters),),
    ),
    Item(
        "Musat",
        "Figure 4",
        "A circle aligns the pair sums of a class on a line: the pizza.",
        "musat-4",
        claims=(Claim("pizza", "pair sums lie on lines through the origin", _pizza),),
    ),
    Item(
        "Musat",
        "Figure 5; Appendix E",
        "Particles end as circles, grids and imperfect grids too.",
        "musat-5",
        claims=(Claim("structures", FIGURES, _structures("musat-5")),),
        picture="musat-5-fa2.png",
    ),
    Item(
        "Musat",
        "Figure 6; Appendix B",
        "Weight decay limits the weights of the hidden layer, its biases more.",
        "musat-6",
        claims=(
            Claim("weights", "weight decay limits the weights", _bounded("weight_norm")),
            Claim("biases", "weight decay limits the biases", _bounded("bias_norm")),
            Claim("both", "biases are limited more than weights", _biases_more),
        ),
    ),
    Item(
        "Musat",
        "Appendix F",
        "Classifiers of fourteen more networks.",
        none="no recipe: Figures 3 and 4 show two of them, `networks(trained).classify` makes any",
    ),
    Item(
        "Musat",
        "Appendix G",
        "Embeddings in three and four dimensions are structured as well.",
        "musat-G",
        claims=tuple(
            Claim(f"D = {dim}", "similar structures emerge", _more_structure(dim)) for dim in (3, 4)
        ),
        picture="musat-G-D3.png",
    ),
    Item(
        "beyond the papers",
        "particles over f_a and step size",
        "Circles depend on alignment; a smaller step changes little.",
        "musat-map",
        claims=(Claim("alignment", "f_a makes circles at any step", _settled),),
    ),
    Item(
        "beyond the papers",
        "starts of the layers",
        "Which start of the layers Musat's Table 1 speaks for.",
        "musat-start",
        claims=(Claim("PyTorch's start", "the table is not rejected (p > 0.01)", _starts),),
    ),
)
