"""What the figures beyond the papers show, and their tables, of trainings that are made up."""

import numpy as np
import pytest
from pictures import bars, intervals, lines

from analysis.stats.intervals import mean, proportion
from grokphys.papers.beyond import law, octaves, predictability, scaling, selection, votes
from grokphys.papers.beyond.selection import Kind, Place
from grokphys.papers.ding.figure_09 import LASSO, LINEAR, Fits
from grokphys.papers.ding.training import Size
from grokphys.papers.recipe import Run


def table(keys, names, seed=0, **columns):
    """A row for each key, and random numbers in the columns that are not given."""
    rng = np.random.default_rng(seed)
    found = {name: np.array(column) for name, column in zip(names, zip(*keys, strict=True), strict=True)}
    return found | {name: draw(rng, len(keys)) for name, draw in columns.items()}


def uniform(rng, count):
    return rng.uniform(0.1, 0.9, count)


def chosen(rows, column, **values):
    here = np.ones(len(rows[column]), bool)
    for name, value in values.items():
        here &= rows[name] == value
    return rows[column][here]


def same(found, places, values):
    np.testing.assert_allclose(found[0], places)
    np.testing.assert_allclose(found[1:], intervals(values))


# -- critical fractions -----------------------------------------------------------------------------------


def orders():
    """Random orders of two families and three moduli, by how many of their samples are needed."""
    rng = np.random.default_rng(1)
    keys = [(family, p, size) for family in scaling.FAMILIES for p in (6, 12, 60) for size in (4, 5, 7)]
    rows = table(keys, ("family", "tokens", "size"))
    count = len(keys)
    return rows | {
        "fraction": rows["size"] / (8 + rows["tokens"]),
        "orders": rng.integers(5, 40, count),
        "last": rng.random(count) < 0.5,
    }


def test_critical_fractions_are_drawn_by_family_over_p():
    rows = orders()
    figure = scaling._draw_scaling(scaling.Sizes((6, 12, 60), 1), {"orders": rows})["liu-scaling"]
    left, middle, right = figure.get_axes()
    for p in (6, 12, 60):
        x, y = lines(left)[str(p)]
        here = (rows["family"] == "plain addition") & (rows["tokens"] == p)
        assert x == rows["fraction"][here].tolist()
        np.testing.assert_allclose(y, np.cumsum(rows["orders"][here]) / rows["orders"][here].sum())
    for family in scaling.FAMILIES:
        values, last = [], []
        for p in (6, 12, 60):
            here = (rows["family"] == family) & (rows["tokens"] == p)
            each = np.repeat(rows["fraction"][here], rows["orders"][here])
            values.append(np.median(each))
            late = np.repeat(rows["last"][here], rows["orders"][here])
            last.append(proportion(int(late.sum()), len(late)))
        np.testing.assert_allclose(bars(middle)[family][:2], [[6, 12, 60], values])
        same(bars(right)[family], [6, 12, 60], last)
    for ax in (middle, right):
        looks = [(one.lines[0].get_marker(), one.lines[0].get_linestyle()) for one in ax.containers]
        assert looks == [("o", "None"), ("s", "None")], "points, which no line joins"
    x, y = lines(middle)[r"$\ln p\,/\,p$"]
    assert (min(x), max(x)) == pytest.approx((6, 60))
    np.testing.assert_allclose(y, np.log(x) / np.array(x))
    late = (rows["family"] == "plain addition") & (rows["tokens"] == 60)
    share = np.repeat(rows["last"][late], rows["orders"][late]).mean()
    assert scaling._last({"orders": rows}, 0.95).estimate == pytest.approx(share)
    law_of = scaling._law(12)({"orders": rows}, 0.95).estimate
    here = (rows["family"] == "plain addition") & (rows["tokens"] == 12)
    median = np.median(np.repeat(rows["fraction"][here], rows["orders"][here]))
    assert law_of == pytest.approx(np.log(median / (np.log(12) / 12)))


def test_groups_are_drawn_from_the_smallest_down_in_two_colors():
    rng = np.random.default_rng(2)
    groups = scaling.some_groups()
    rows = {
        "group": np.repeat([group.name for group in groups], 5),
        "fraction": rng.uniform(0.2, 0.9, 75),
        "orders": rng.integers(1, 9, 75),
    }
    (ax,) = scaling._draw_groups(1, {"orders": rows})["liu-groups"].get_axes()
    commuting = [group for group in groups if (group.table == group.table.T).all()]
    for one, own in zip(ax.containers, (commuting, [g for g in groups if g not in commuting]), strict=True):
        x, y = one.lines[0].get_data()
        places = [len(groups) - 1 - groups.index(group) for group in own]
        assert list(y) == places
        medians = [
            np.median(np.repeat(chosen(rows, "fraction", group=g.name), chosen(rows, "orders", group=g.name)))
            for g in own
        ]
        np.testing.assert_allclose(x, medians)
        for group, median in zip(own, medians, strict=True):
            assert scaling._of_group(group.name)({"orders": rows}, 0.95).estimate == median, group.name
    assert len(ax.get_yticks()) == len(groups)


# -- predictions ------------------------------------------------------------------------------------------

PLACES = (Place(11, 12, 30), Place(23, 8, 40))


def test_agreements_are_drawn_by_change_and_by_predictor():
    changes = table(
        [(p.tokens, base, name) for p in PLACES for base in range(3) for name in ("a", "b", "b")],
        ("tokens", "base", "change"),
        agreement=uniform,
    )
    predictions = table(
        [
            (p.tokens, start, name, k)
            for p in PLACES
            for start in (0, 40)
            for name in ("signal", "SVM")
            for k in range(4)
        ],
        ("tokens", "start", "predictor", "network"),
        seed=1,
        agreement=uniform,
    )
    setting = predictability.Setting(PLACES, 3, (), 4, (0, 40), 40)
    tables = {"changes": changes, "predictions": predictions}
    first, *others = predictability._draw(setting, tables)["predictability"].get_axes()
    for n, place in enumerate(PLACES):
        each = [
            [
                np.mean(chosen(changes, "agreement", tokens=place.tokens, change=name, base=base))
                for base in range(3)
            ]
            for name in ("a", "b")
        ]
        same(bars(first)[f"p = {place.tokens}"], np.arange(2) + 0.2 * n, [mean(values) for values in each])
        for k, name in enumerate(("signal", "SVM")):
            own = [
                chosen(predictions, "agreement", tokens=place.tokens, predictor=name, start=start)
                for start in (0, 40)
            ]
            same(bars(others[n])[name], np.arange(2) + 0.14 * (k - 2), [mean(values) for values in own])
        assert [text.get_text() for text in others[n].get_xticklabels()] == ["0", "40"]
    assert [text.get_text() for text in first.get_yticklabels()] == ["a", "b"]


def test_agreement_with_another_change_is_subtracted():
    rows = table(
        [
            (11, base, name)
            for base in range(3)
            for name in ("x", predictability.UNRELATED, "start × (1 ± 0.0001)")
        ],
        ("tokens", "base", "change"),
        agreement=uniform,
    )
    at = {name: np.mean(chosen(rows, "agreement", change=name)) for name in set(rows["change"].tolist())}
    tables = {"changes": rows}
    assert predictability._more(11, "x")(tables, 0.95).estimate == pytest.approx(
        at["x"] - at[predictability.UNRELATED]
    )
    less = predictability._less(11, predictability._changed(11, "x"))(tables, 0.95).estimate
    assert less == pytest.approx(at["start × (1 ± 0.0001)"] - at["x"])
    pairs = chosen(rows, "agreement", change="x") - chosen(rows, "agreement", change=predictability.UNRELATED)
    found, paired = predictability._more(11, "x")(tables, 0.95), mean(pairs)
    assert (found.low, found.high, found.count) == pytest.approx((paired.low, paired.high, 3))


KINDS = (*selection.FOUR, Kind("tanh", 0.5))


def networks_of_kinds():
    keys = [(p.tokens, kind.activation, kind.even, k) for p in PLACES for kind in KINDS for k in range(4)]
    rows = table(keys, ("tokens", "activation", "even", "network"), effective=uniform, accuracy=uniform)
    rng = np.random.default_rng(3)
    return rows | {"pairs": rng.integers(3, 12, len(keys)), "octaves": rng.integers(0, 3, len(keys))}


def test_selection_is_drawn_over_the_even_part_and_by_activation(monkeypatch):
    rows, asked = networks_of_kinds(), []
    monkeypatch.setattr(selection, "networks", lambda run, seed: asked.append(seed) or rows)
    made = selection.selection(Run(selection.Setting(places=PLACES, kinds=KINDS, runs=4), "quick"))
    left, right = made.figures["selection"].get_axes()
    (legend,) = made.figures["selection"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["p = 11", "p = 23"]
    for n, place in enumerate(PLACES):
        own = [
            chosen(rows, "effective", tokens=place.tokens, activation="tanh", even=even)
            for even in (0.0, 0.5)
        ]
        same(bars(left)[f"p = {place.tokens}"], [0, 0.5], [mean(values) for values in own])
        four = [
            chosen(rows, "effective", tokens=place.tokens, activation=kind.activation, even=0.0)
            for kind in selection.FOUR
        ]
        same(list(bars(right).values())[n], np.arange(4) + 0.1 * n, [mean(values) for values in four])
    assert [text.get_text() for text in right.get_xticklabels()] == ["SiLU", "ReLU", "tanh", "asinh"]
    gap = selection.gap(11, Kind("tanh"), Kind("silu"), np.mean, "accuracy")({"networks": rows}, 0.95)
    tanh, silu = (chosen(rows, "accuracy", tokens=11, activation=name, even=0.0) for name in ("tanh", "silu"))
    pairs = mean(tanh - silu)
    assert (gap.estimate, gap.low, gap.high) == pytest.approx((pairs.estimate, pairs.low, pairs.high))
    assert gap.count == 4


def test_octaves_are_drawn_by_kind_over_p(monkeypatch):
    rows = networks_of_kinds()
    monkeypatch.setattr(octaves, "networks", lambda run, seed: rows)
    made = octaves.pairs_of_survivors(
        Run(selection.Setting(places=PLACES, kinds=KINDS[-2:], runs=4), "quick")
    )
    (ax,) = made.figures["octaves"].get_axes()
    assert list(bars(ax)) == [selection.SPELLED.get(str(kind), str(kind)) for kind in KINDS[-2:]]
    for n, (kind, found) in enumerate(zip(KINDS[-2:], bars(ax).values(), strict=True)):
        np.testing.assert_allclose(found[0], np.array([11, 23]) + 0.6 * (n - 1))
        for k, p in enumerate((11, 23)):
            own = {"tokens": p, "activation": kind.activation, "even": kind.even}
            share = chosen(rows, "octaves", **own).sum() / chosen(rows, "pairs", **own).sum()
            assert found[1][k] == pytest.approx(share / (4 / (p - 3)))


def test_kinds_are_named_by_their_activation_and_even_part():
    assert [str(kind) for kind in (Kind("tanh"), Kind("tanh", 0.5))] == ["tanh", "tanh, λ = 0.5"]


def vote_tables():
    rng = np.random.default_rng(4)
    keys = [(p.tokens, 1000 * p.tokens + k) for p in PLACES for k in range(3) for _ in range(10)]
    neurons = table(keys, ("tokens", "network")) | {name: rng.integers(1, 4, 60) for name in votes.READERS}
    neurons |= {"chosen": rng.integers(0, 4, 60), "single": rng.random(60) < 0.5}
    keys = [(p.tokens, 1000 * p.tokens + k) for p in PLACES for k in range(3) for _ in range(p.tokens // 2)]
    circles = table(keys, ("tokens", "network"), **dict.fromkeys(votes.SCORES, uniform))
    return {"neurons": neurons, "circles": circles | {"survived": rng.random(len(keys)) < 0.5}}


def test_votes_are_drawn_by_predictor_of_neurons_and_of_circles():
    tables = vote_tables()
    left, right = votes._draw(votes.Setting(PLACES, (3, 3)), tables)["votes"].get_axes()
    neurons, circles = tables["neurons"], tables["circles"]
    for n, place in enumerate(PLACES):
        p = place.tokens
        own, known = [], []
        for reader in votes.READERS:
            shares = []
            for k in range(3):
                here = (neurons["network"] == 1000 * p + k) & (neurons["chosen"] > 0)
                shares.append(np.mean(neurons["chosen"][here] == neurons[reader][here]))
            own.append(mean(shares))
        final = circles["survived"][circles["tokens"] == p].reshape(3, -1)
        for score in votes.SCORES:
            values, agreed = circles[score][circles["tokens"] == p].reshape(3, -1), []
            for k in range(3):
                count = round(np.delete(final.sum(axis=1), k).mean())
                best = np.zeros(p // 2, bool)
                best[np.argsort(-values[k])[:count]] = True
                agreed.append((best & final[k]).sum() / max((best | final[k]).sum(), 1))
            known.append(mean(agreed))
        same(bars(left)[f"p = {p}"], np.arange(3) + 0.1 * n, own)
        same(bars(right)[f"p = {p}"], np.arange(3) + 0.1 * n, known)
    levels = [line.get_ydata()[0] for line in left.lines if line.get_linestyle() == ":"]
    assert levels == [2 / 10, 2 / 22]
    assert {text.get_text(): text.xy[1] for text in left.texts} == {
        f"chance, p = {place.tokens}": level for place, level in zip(PLACES, levels, strict=True)
    }


def test_rules_of_votes_hold_neurons_against_an_exchange_and_the_better_predictor():
    tables = vote_tables()
    rows = {name: values[tables["neurons"]["tokens"] == 11] for name, values in tables["neurons"].items()}
    rows = {name: values[rows["chosen"] > 0] for name, values in rows.items()}
    gains = []
    for k in range(3):
        own = {name: values[rows["network"] == 11_000 + k] for name, values in rows.items()}
        mixed = np.mean(own["chosen"][:, None] == own["time"][None])
        gains.append(np.mean(own["chosen"] == own["time"]) - mixed)
    assert votes._beyond_survival(11)(tables, 0.95).estimate == pytest.approx(np.mean(gains))
    hits = {name: np.sum(rows[name] == rows["chosen"]) for name in votes.READERS}
    better = max(("magnitude", "phase"), key=hits.get)
    gain = 1.0 * (rows["time"] == rows["chosen"]) - (rows[better] == rows["chosen"])
    each = [np.mean(gain[rows["network"] == 11_000 + k]) for k in range(3)]
    assert votes._lead(11)(tables, 0.95).estimate == pytest.approx(np.mean(each))


def test_networks_of_votes_are_numbered_and_their_tables_cut(monkeypatch):
    rng, asked = np.random.default_rng(5), []
    monkeypatch.setattr(votes, "PIECE", (2, 2))

    def trained(place, seed, chosen):
        asked.append((place.tokens, list(chosen)))
        count, K = len(chosen), place.tokens // 2
        part = {
            name: rng.integers(0, 4, (count, 60))
            for name in ("chosen", "single", "single_at_start", *votes.READERS)
        }
        return part | {name: rng.uniform(size=(count, K)) for name in (*votes.SCORES, "survived")}

    monkeypatch.setattr(votes, "_trained", trained)
    tables = votes._tables(Run(votes.Setting(PLACES, (3, 2)), "quick"), 0)
    assert asked == [(11, [0, 1]), (11, [2]), (23, [0, 1])]
    assert (
        tables["neurons"]["network"].tolist()
        == np.repeat([11_000, 11_001, 11_002, 23_000, 23_001], 40).tolist()
    )
    counts = [5, 5, 5, 11, 11]
    assert (
        tables["circles"]["network"].tolist()
        == np.repeat([11_000, 11_001, 11_002, 23_000, 23_001], counts).tolist()
    )
    assert tables["circles"]["tokens"].tolist() == [11] * 15 + [23] * 22


def test_one_law_for_all_networks_is_drawn_by_step(monkeypatch):
    rng = np.random.default_rng(6)
    monkeypatch.setattr(law, "train", lambda model, **options: None)
    monkeypatch.setattr(law, "trajectory_signals", lambda trained: rng.uniform(1, 2, (4, 6, 5)))
    parts = iter([rng.uniform(size=(2, 4)) for _ in range(2 * len(law.LAWS))])
    monkeypatch.setattr(law, "_judge", lambda fit, pieces, final: tuple(next(parts)))
    made = law.across_networks(Run(law.Across(Size(11, 12, 30), (0, 20), 10, 40, 4, 0), "quick"))
    rows = made.columns()["networks"]
    left, right = made.figures["ding-law"].get_axes()
    for n, (name, column) in enumerate(law.COLUMNS.items()):
        for ax, shown in ((left, column), (right, f"{column}_error")):
            if ax is left or name in law.LAWS:
                own = [mean(rows[shown][rows["start"] == start]) for start in (0, 20)]
                same(bars(ax)[name], np.array([0, 20]) + 4 * (n - 1), own)
    assert len(bars(right)) == len(law.LAWS)
    assert [ax.get_xlabel() for ax in (left, right)] == ["step of the prediction"] * 2
    assert [ax.get_ylabel() for ax in (left, right)] == ["agreement on the survivors", "log₁₀ relative error"]
    assert left.get_ylim() == (0, 1.03)
    assert left.get_legend() is not None


def test_halves_of_the_steps_are_drawn_by_law():
    rows = table(
        [(k, name) for k in range(3) for name in (LINEAR, LASSO)],
        ("network", "law"),
        early=uniform,
        later=uniform,
    )
    rows["later"][::2] *= -1
    rows["later"][0] = -500
    (ax,) = law._draw_forward(Fits(11, (12,), 3, 0, steps=40), {"forward": rows})["ding-forward"].get_axes()
    drawn = [line.get_xydata().T for line in ax.lines[:4]]
    expected = [
        (k + 0.1 * n, chosen(rows, part, law=name))
        for n, name in enumerate((LINEAR, LASSO))
        for k, part in enumerate(("early", "later"))
    ]
    for (x, y), (place, values) in zip(drawn, expected, strict=True):
        assert set(x.tolist()) == {place}
        assert y.tolist() == values.tolist()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["first 20 steps, fitted", "next 20 steps"]
    assert ax.get_yticks().tolist() == [1, 0.5, 0, -1, -10, -100]
    assert [text.get_text() for text in ax.get_yticklabels()][:4] == ["1", "0.5", "0", "−1"]
    assert law._fails(LINEAR)({"forward": rows}, 0.95).estimate == 1
    assert law._fails(LASSO)({"forward": rows}, 0.95).estimate == 0
