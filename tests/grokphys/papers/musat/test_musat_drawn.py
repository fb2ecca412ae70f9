"""What Musat's figures show, read back from the axes, of tables and networks that are made up."""

from types import SimpleNamespace

import numpy as np
import pytest
from pictures import bars, intervals, lines, title
from scipy import stats

import physics
from analysis.stats.intervals import mean, proportion
from grokphys.papers.evidence import joined
from grokphys.papers.musat import classifiers, ensembles, figure_06, galleries, start, table_1, table_2
from grokphys.papers.recipe import Run
from grokphys.report.musat import TABLE_1, TABLE_2


def networks_table(runs=12):
    rng = np.random.default_rng(0)
    parts = []
    for decay in TABLE_1:
        circle = np.arange(runs) < 5
        parts.append(
            {
                "weight_decay": np.full(runs, decay),
                "circle": circle,
                "accuracy": rng.uniform(20, 90, runs),
                "imperfections": np.where(circle, 0, rng.integers(5, 80, runs)),
            }
        )
    return joined(parts)


def horizontal(ax):
    """Estimates and ends (3, rows) of the paper and of us, from the top row to the last; NaN if not drawn."""
    rows = round(ax.get_ylim()[1] + 0.4)
    found = np.full((2, 3, rows), np.nan)
    for one in ax.containers:
        (x,), (y,) = one.lines[0].get_data()
        ends = one.lines[2][0].get_segments()[0][:, 0]
        row = rows - 1 - round(float(y))
        found[int(y < round(float(y))), :, row] = (x, min(ends), max(ends))
    return found


def sides(values):
    return np.array([(one.estimate, one.low, one.high) for one in values], float).T


def test_table_1_is_drawn_decay_by_decay_beside_ours():
    rows = networks_table()
    figure = table_1._draw(SimpleNamespace(), {"networks": rows})["musat-table1"]
    axes = figure.get_axes()
    own = {decay: rows["weight_decay"] == decay for decay in TABLE_1}
    kinds = {decay: (here & rows["circle"], here & ~rows["circle"]) for decay, here in own.items()}
    ours = {
        "circles, %": [proportion(5, 12).map(lambda x: 100 * x) for _ in TABLE_1],
        "accuracy of circles, %": [mean(rows["accuracy"][kinds[d][0]]) for d in TABLE_1],
        "accuracy of non-circles, %": [mean(rows["accuracy"][kinds[d][1]]) for d in TABLE_1],
        "imperfections of non-circles": [mean(rows["imperfections"][kinds[d][1]]) for d in TABLE_1],
    }
    for ax, (name, values) in zip(axes, ours.items(), strict=False):
        assert ax.get_xlabel() == name
        assert [text.get_text() for text in axes[0].get_yticklabels()] == [
            f"weight decay {d:g}" for d in reversed(TABLE_1)
        ]
        found = horizontal(ax)[1]
        expected = sides([one.within(0, 100) if name.endswith("%") else one for one in values])
        np.testing.assert_allclose(found, expected)
    related = [
        np.corrcoef(rows["imperfections"][kinds[d][1]], rows["accuracy"][kinds[d][1]])[0, 1] for d in TABLE_1
    ]
    np.testing.assert_allclose(horizontal(axes[4])[1][0], related)
    theirs = horizontal(axes[3])[0]
    np.testing.assert_allclose(theirs, sides([row.imperfections for row in TABLE_1.values()]))
    assert [text.get_text() for text in axes[5].get_legend().get_texts()] == [
        "paper, with its 95 % interval\nwhere it is known",
        "here, with the 95 % interval\nof our networks alone",
    ]
    assert not any(ax.texts for ax in axes), "each mean is one of several networks"


def test_a_mean_of_one_network_is_said_to_be_one():
    rows = networks_table()
    rows["circle"][:12] = np.arange(12) == 4
    axes = table_1._draw(None, {"networks": rows})["musat-table1"].get_axes()
    (text,) = axes[1].texts
    assert text.get_text() == "one network"
    assert text.xy == pytest.approx((rows["accuracy"][4], 2.87), abs=1e-9), (
        "beside the point of the first row"
    )
    assert not any(ax.texts for n, ax in enumerate(axes) if n != 1)


def test_an_accuracy_is_compared_with_as_many_networks_as_the_paper_has():
    rows = networks_table()
    here = (rows["weight_decay"] == 1.0) & ~rows["circle"]
    values = rows["accuracy"][here]
    found = table_1._sampled(1.0, False, 82)({"networks": rows}, 0.9)
    half = stats.t.ppf(0.95, 6) * values.std(ddof=1) * (1 / 7 + 1 / 82) ** 0.5
    assert (found.estimate, found.high - found.estimate) == pytest.approx((values.mean(), half))
    assert found.low == pytest.approx(values.mean() - half)
    gap = table_1._more_accurate(1.0).measure({"networks": rows}, 0.95).estimate
    circles = rows["accuracy"][(rows["weight_decay"] == 1.0) & rows["circle"]]
    assert gap == pytest.approx(circles.mean() - values.mean())


def particles(constants, counts):
    """Rows of `counted`: so many circles, and imperfect grids of 10 and 30 imperfections."""
    rows = {name: np.full(3, value) for name, value in constants.items()}
    return rows | {
        "circle": np.array([True, False, False]),
        "imperfections": np.array([0, 10, 30]),
        "runs": np.array(counts),
    }


def test_table_2_is_drawn_constant_by_constant_beside_ours():
    counts = {f_a: (3 + k, 4, 2 + 3 * k) for k, f_a in enumerate(TABLE_2)}
    rows = joined(particles({"f_a": f_a}, own) for f_a, own in counts.items())
    figure = table_2._draw_table(SimpleNamespace(runs=20), {"particles": rows})["musat-table2"]
    left, right = figure.get_axes()
    shares = [proportion(c, c + a + b).map(lambda x: 100 * x) for c, a, b in counts.values()]
    rest = [mean([10.0] * a + [30.0] * b) for _, a, b in counts.values()]
    for ax, ours, paper in (
        (left, shares, [float(row.circles) for row in TABLE_2.values()]),
        (right, rest, [row.imperfections.estimate for row in TABLE_2.values()]),
    ):
        theirs, own = horizontal(ax)
        np.testing.assert_allclose(own, sides(ours))
        np.testing.assert_allclose(theirs[0], paper)
    wilson = [100 * proportion(row.circles, 100).low for row in TABLE_2.values()]
    np.testing.assert_allclose(horizontal(left)[0][1], wilson)


def test_the_map_shows_alignment_across_and_step_size_upward():
    setting = table_2.Map((0.5, 1.0, 2.0), (0.005, 0.02), 6)
    counts = iter([(1, 2, 3), (2, 2, 2), (5, 0, 1), (0, 6, 0), (3, 1, 2), (4, 1, 1)])
    keys = [(step, f_a) for step in setting.step_sizes for f_a in setting.alignments]
    own = {key: next(counts) for key in keys}
    rows = joined(particles({"f_a": f_a, "step_size": step}, own[step, f_a]) for step, f_a in keys)
    axes = table_2._draw_map(setting, {"particles": rows})["musat-map"].get_axes()
    share = np.reshape([100 * c / 6 for c, _, _ in own.values()], (2, 3))
    rest = np.reshape([(10 * a + 30 * b) / (a + b) for _, a, b in own.values()], (2, 3))
    for ax, values, words in zip(
        axes, (share, rest), ("circles, % of runs", "grid imperfections of the rest"), strict=False
    ):
        (image,) = ax.images
        np.testing.assert_allclose(np.asarray(image.get_array()), values)
        assert image.origin == "lower"
        assert title(ax) == words
        assert [text.get_text() for text in ax.get_xticklabels()] == ["0.5", "1", "2"]
        assert [text.get_text() for text in ax.get_yticklabels()] == ["0.005", "0.02"]
    found = table_2._of_step(lambda **c: ensembles.circles("particles", **c))({"particles": rows}, 0.95)
    assert found.estimate == pytest.approx((own[0.005, 1.0][0] - own[0.02, 1.0][0]) / 6)


def test_each_alignment_and_step_size_has_a_seed_of_its_own(monkeypatch):
    asked = []

    def moved(f_a, *, runs, seed, step_size, steps):
        asked.append((f_a, runs, seed, step_size, steps))
        return SimpleNamespace(final=np.random.default_rng(seed).normal(size=(runs, 17, 2)))

    monkeypatch.setattr(table_2, "particles", moved)
    table_2.phase_map(Run(table_2.Map((0.5, 2.0), (0.005, 0.02), 3), "quick"))
    steps = {step: round(table_2.STEPS * 0.02 / step) for step in (0.005, 0.02)}
    assert asked == [
        (f_a, 3, 5000 + int(1000 * f_a) + int(200 * step), step, steps[step])
        for step in (0.005, 0.02)
        for f_a in (0.5, 2.0)
    ]
    assert steps[0.005] == 4 * steps[0.02]


def test_figure_6_shows_geometric_means_with_intervals_and_the_course_of_arithmetic_ones():
    rng = np.random.default_rng(1)
    rows = {"weight_decay": np.repeat([0.0, 1.0], 4)} | {
        name: rng.uniform(1, 2, 8) for name in ("weight_norm", "bias_norm")
    }
    course = {"weight_decay": np.repeat([0.0, 1.0], 3), "step": np.tile([0, 5, 10], 2)}
    course |= {name: rng.uniform(1, 2, 6) for name in ("weight_norm", "bias_norm")}
    setting = figure_06.Setting((0.0, 1.0), 4, 10)
    left, right = figure_06._draw(setting, {"networks": rows, "course": course})["musat-6"].get_axes()
    for (label, found), name in zip(bars(left).items(), ("weight_norm", "bias_norm"), strict=True):
        assert found[0].tolist() == [0, 1], label
        halves = [mean(np.log(rows[name][half])).map(np.exp) for half in (slice(4), slice(4, 8))]
        np.testing.assert_allclose(found[1:], intervals(halves))
    assert [ax.get_ylabel().split()[1] for ax in (left, right)] == ["geometric", "arithmetic"]
    drawn = [line.get_xydata().T.tolist() for line in right.lines if len(line.get_xdata()) == 3]
    for name in ("weight_norm", "bias_norm"):
        for half in (slice(3), slice(3, 6)):
            assert [[0, 5, 10], course[name][half].tolist()] in drawn


def embedded(runs=6, dim=2):
    angle = 2 * np.pi * 3 * np.arange(17) / 17
    E = np.random.default_rng(2).normal(size=(runs, 17, dim))
    E[1, :, :2] = np.stack([np.cos(angle), 1.1 * np.sin(angle)], axis=1)
    return E


def test_a_gallery_draws_runs_row_by_row_and_says_what_they_are():
    E = embedded()
    accuracy = np.array([10.0, 20.4, 30, 40, 50, 60])
    axes = ensembles.gallery(E, "six", accuracy).get_axes()
    assert len(axes) == 8
    for k, ax in enumerate(axes):
        assert ax.axison == (k < 6)
        if k < 6:
            np.testing.assert_allclose(np.asarray(ax.collections[-1].get_offsets())[:17], E[k])
    assert title(axes[1]).startswith("1: circle, ratio 1.") or axes[1].get_title().startswith(
        "1: circle, ratio 1."
    )
    bad = int(physics.grid_imperfections(E[:1])[0])
    assert ensembles.what(E[0], 10.0) == f"{bad} imperf.,\naccuracy 10 %"
    assert ensembles.what(1.2 * E[1]).startswith("circle, ratio 1.10")


def test_kinds_of_structures_are_told_by_their_imperfections():
    rows = {
        "circle": np.array([1, 0, 0, 0, 0, 0], bool),
        "f_a": np.full(6, 1.0),
        "imperfections": np.array(
            [0, galleries.GRID, galleries.GRID + 1, galleries.ORDERED, galleries.ORDERED + 1, 153]
        ),
    }
    found = {
        kind: galleries._kind(kind, f_a=1.0)({"runs": rows}, 0.95)
        for kind in ("circles", "grids", "imperfect grids")
    }
    assert found == {
        "circles": proportion(1, 6),
        "grids": proportion(1, 6),
        "imperfect grids": proportion(2, 6),
    }
    rows |= {
        "weight_decay": np.array([0.0, 0, 0, 1, 1, 1]),
        "imperfections": np.array([50, 60, 70, 20, 30, 10.0]),
    }
    assert galleries._fewer({"runs": rows}, 0.95).estimate == 40
    tables = {"D3": {"imperfections": np.array([51.0, 102])}}
    assert galleries._disordered(3)(tables, 0.95).estimate == pytest.approx(0.5)


def test_embeddings_in_three_dimensions_are_shown_on_planes_of_two():
    E, planes = embedded(8, 3), galleries.PLANES[3]
    axes = np.reshape(galleries._show_planes(E, planes, np.arange(8.0), 3).get_axes(), (len(planes), -1))
    for n in range(axes.shape[1]):
        for ax, (a, b) in zip(axes[:, n], planes, strict=True):
            np.testing.assert_allclose(np.asarray(ax.collections[-1].get_offsets())[:17], E[n][:, [a, b]])
    assert [ax.get_ylabel() for ax in axes[:, 0]] == [f"axes {a + 1}, {b + 1}" for a, b in planes]


def test_galleries_have_seeds_of_their_own_and_show_the_first(monkeypatch):
    asked = []

    def moved(f_a, *, runs, seed, steps):
        asked.append((f_a, seed, steps))
        return SimpleNamespace(final=embedded(runs) * f_a)

    monkeypatch.setattr(galleries, "particles", moved)
    made = galleries.arrangements(Run(galleries.Setting(6, 4, 30), "quick"))
    assert asked == [(1.0, 5110, 30), (2.0, 5120, 30), (0.5, 5105, 30)]
    assert list(made.figures) == ["musat-5", "musat-5-fa2", "musat-5-fa0.5"]
    rows = made.columns()["runs"]
    assert rows["f_a"].tolist() == [1] * 6 + [2] * 6 + [0.5] * 6
    assert rows["imperfections"].tolist() == physics.grid_imperfections(embedded()).tolist() * 3
    assert sum(ax.axison for ax in made.figures["musat-5"].get_axes()) == 4


def test_tokens_of_embeddings_are_read_in_any_order():
    E = embedded(2)
    rows = {
        "network": np.repeat([0, 1], 17),
        "token": np.tile(np.arange(17), 2),
        "x": E[..., 0].ravel(),
        "y": E[..., 1].ravel(),
        "circle": np.repeat([False, True], 17),
    }
    order = np.random.default_rng(3).permutation(34)
    tables = {"tokens": {name: values[order] for name, values in rows.items()}}
    np.testing.assert_array_equal(classifiers._embeddings(tables), E)
    assert classifiers._circles(tables).tolist() == [False, True]
    clustered = 1 - physics.grid_imperfections(E) / 153
    np.testing.assert_allclose(classifiers._clustered(tables), clustered)
    gap = classifiers._less_clustered(tables, 0.95).estimate
    assert gap == pytest.approx(clustered[1] - clustered[0])


def test_a_start_is_drawn_with_its_circles_and_its_distance():
    rows = networks_table() | {"start": np.repeat("pytorch", 48)}
    from matplotlib.figure import Figure

    left, right = Figure().subplots(1, 2)
    start.show_circles(rows, ("pytorch",), left)
    found = bars(left)
    assert list(found) == ["paper", "pytorch"]
    np.testing.assert_allclose(found["pytorch"][1:], 100 * intervals([proportion(5, 12)] * 4))
    np.testing.assert_allclose(
        found["paper"][1:], 100 * intervals([proportion(row.circles, 100) for row in TABLE_1.values()])
    )
    np.testing.assert_allclose(found["paper"][0], np.array(list(TABLE_1)) - 0.014)
    np.testing.assert_allclose(found["pytorch"][0], list(TABLE_1))
    start.show_totals(
        {
            "start": np.array(["a", "b"]),
            "chi_square": np.array([7.0, 30.0]),
            "chance_95": np.array([9.0, 8.0]),
            "p_value": np.array([0.2, 0.001]),
        },
        right,
    )
    assert [bar.get_width() for bar in right.patches] == [7, 30]
    assert lines(right)["95 % quantile by chance"] == ([9, 8], [0, 1])
    assert [text.get_text().strip() for text in right.texts] == ["P = 0.2", "P = 0.001"]


def test_distances_of_accuracies_have_the_scatter_of_both():
    """Of 100 and 50 networks: the variance of each mean is that of our networks over its count."""

    def numbers(networks, circles, accuracy, variance):
        return start.Numbers(
            networks, np.array(circles, float), np.nan, np.nan, np.array(accuracy), np.array(variance), np.nan
        )

    paper = numbers(100, 20, [70.0, 50.0], [np.nan, np.nan])
    ours = numbers(50, 30, [64.0, 53.0], [25.0, 36.0])
    found = start.distances(paper, ours)
    assert found["accuracy of circles"] == pytest.approx(36 / (25 * (1 / 20 + 1 / 30)))
    assert found["accuracy of the rest"] == pytest.approx(9 / (36 * (1 / 80 + 1 / 20)))
