"""What the figures of Ding's recipes up to Figure 5 show, read back from the axes."""

from types import SimpleNamespace

import numpy as np
import pytest
from pictures import areas, bars, intervals, lines, title

from analysis.circles.fourier import fourier_signals
from analysis.circles.geometry import circularity, frequency_plane, principal_components
from analysis.circles.survival import survives
from analysis.stats.intervals import mean, proportion
from grokphys.papers.ding import (
    figure_02,
    figure_04,
    figure_05,
)
from grokphys.papers.ding.training import Size
from grokphys.papers.evidence import joined
from grokphys.papers.judge import judge
from grokphys.papers.recipe import RECIPES, Run

TINY = Size(11, 12, 30)
ALIVE = np.array([[0, 0, 1, 0, 1], [1, 0, 0, 0, 0]], bool)


def waves(signals, tokens=11, seed=0):
    """Embeddings (…, tokens, 2 K) whose circle k has the signal signals[…, k] in a plane of its own."""
    K = tokens // 2
    angle = 2 * np.pi * np.outer(np.arange(tokens), np.arange(1, K + 1)) / tokens
    wave = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * (2**0.5 / tokens)
    return (np.asarray(signals)[..., None, :, None] * wave).reshape(*np.shape(signals)[:-1], tokens, 2 * K)


def test_made_up_waves_have_their_signals():
    wanted = np.random.default_rng(0).uniform(1, 2, (3, 5))
    np.testing.assert_allclose(fourier_signals(waves(wanted)), wanted)


# -- Figures 2 and 3 ----------------------------------------------------------------------------------------


@pytest.fixture
def course(monkeypatch):
    """Two networks of five circles, of which the third and the fifth, the strongest, survive in the first."""
    steps = np.array([0, 10, 20, 25, 30])
    signals = np.random.default_rng(1).uniform(1, 2, (2, 5, 5))
    signals[0, 0] = [3, 5, 4, 2, 1]
    signals[:, -1] = np.where(ALIVE, [[0, 0, 45, 0, 50], [80, 0, 0, 0, 0]], 0.5)
    E = waves(signals)
    found = {"steps": steps, "signals": signals, "final": E[:, -1], "one": E[0]}
    asked = []

    def train(run, record):
        asked.append(record)
        return found

    monkeypatch.setattr(figure_02, "_train", train)
    return SimpleNamespace(**found, asked=asked)


def test_figure_2_shows_all_signals_of_a_network_and_the_planes_of_a_dead_and_a_surviving_one(course):
    result = figure_02.signals(Run(figure_02.Whole(TINY, (0, 20, 99), 2, 0), "quick"))
    assert course.asked == [[0, 10, 20, 30]]
    rows = result.columns()["circles"]
    assert rows["survived"].tolist() == ALIVE.ravel().tolist()
    np.testing.assert_allclose(rows["circularity"], circularity(course.final).ravel())
    ax, *planes = result.figures["ding-2"].get_axes()
    found = lines(ax)
    assert found == {
        f"k = {k + 1}": (course.steps.tolist(), course.signals[0, :, k].tolist()) for k in (2, 4)
    }
    dead = [line.get_ydata().tolist() for line in ax.lines if line.get_label().startswith("_")]
    assert dead == [course.signals[0, :, k].tolist() for k in (0, 1, 3)]
    assert title(ax) == "2 of 5 frequencies survive"
    # The dead one that began as the strongest, and the survivor that ends as such.
    for row, k in ((planes[:3], 2), (planes[3:], 5)):
        extent = 0.0
        for cell, frame in zip(row, (0, 2, 4), strict=True):
            points = frequency_plane(course.one[frame], k).points
            np.testing.assert_allclose(cell.collections[0].get_offsets(), points)
            extent = max(extent, np.abs(points).max())
        assert {cell.get_xlim() for cell in row} == {cell.get_ylim() for cell in row}
        assert row[0].get_xlim() == pytest.approx((-1.1 * extent, 1.1 * extent))
    assert [title(cell) for cell in planes[:3]] == ["step 0", "step 20", "step 30"]


def test_tokens_of_a_plane_are_colored_by_their_places_on_the_circle(course):
    figure = figure_02.signals(Run(figure_02.Whole(TINY, (0, 99), 2, 0), "quick")).figures["ding-2"]
    colors = figure.get_axes()[-1].collections[0].get_facecolors()
    points = frequency_plane(course.one[-1], 5).points
    around = np.argsort(np.arctan2(points[:, 1], points[:, 0]))
    steps = np.abs(np.diff(colors[np.append(around, around[0])], axis=0)).max(axis=1)
    assert steps.max() < 0.7
    assert steps.max() < np.abs(np.diff(colors, axis=0)).max(), (
        "neighbors on the circle look alike, 0 and 1 not"
    )


def test_figure_3_shows_pairs_of_components_beside_the_planes_of_the_survivors(course):
    made = figure_02.components(Run(figure_02.Whole(TINY, (), 2, 0), "quick"))
    assert course.asked == [[30]]
    rows = made.columns()["planes"]
    assert rows["network"].tolist() == [0, 0, 1]
    assert rows["frequency"].tolist() == [5, 3, 1], "the strongest first"
    assert rows["component"].tolist() == [5, 3, 1]
    power = course.signals[:, -1] ** 2
    shares = power / power.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows["variance"], [shares[0, 4], shares[0, 2], shares[1, 0]])
    axes = made.figures["ding-3"].get_axes()
    assert len(axes) == 4
    points = principal_components(course.final[0]).points
    for pair, k in enumerate((5, 3)):
        np.testing.assert_allclose(
            axes[pair].collections[0].get_offsets(), points[:, 2 * pair : 2 * pair + 2]
        )
        assert (
            title(axes[pair])
            == f"components {2 * pair + 1}, {2 * pair + 2}\nk = {k}, Δ = " + ({5: "2", 3: "4"}[k])
        )
        assert axes[pair].get_xlabel() == f"{shares[0, k - 1]:.0%} of variance"
        plane = frequency_plane(course.final[0], k).points
        np.testing.assert_allclose(axes[2 + pair].collections[0].get_offsets(), plane)
        assert axes[2 + pair].get_xlim()[1] == pytest.approx(1.1 * np.abs(plane).max())
        assert axes[2 + pair].get_xlabel() == f"{rows['in_fourier'][pair]:.1%} at k"


def test_figure_3_of_networks_in_which_nothing_survives_says_so(course, monkeypatch):
    monkeypatch.setattr(figure_02, "survives", lambda signals: np.zeros(np.shape(signals), bool))
    made = figure_02.components(Run(figure_02.Whole(TINY, (), 2, 0), "quick"))
    tables = made.columns()
    assert set(tables["planes"]) == {
        "network",
        "frequency",
        "component",
        "variance",
        "in_fourier",
        "in_components",
    }
    assert all(column.shape == (0,) for column in tables["planes"].values())
    verdicts = {claim.verdict for claim in judge(RECIPES["ding-3"].rules, tables)}
    assert verdicts == {"inconclusive", "withdrawn"}
    assert "no circle survives" in title(made.figures["ding-3"].get_axes()[0])


@pytest.mark.parametrize("all_survive", [False, True])
def test_figure_2_of_networks_in_which_nothing_or_everything_survives(course, monkeypatch, all_survive):
    monkeypatch.setattr(figure_02, "survives", lambda signals: np.full(np.shape(signals), all_survive))
    made = figure_02.signals(Run(figure_02.Whole(TINY, (0, 99), 2, 0), "quick"))
    assert made.columns()["circles"]["survived"].tolist() == [all_survive] * 10
    ax = made.figures["ding-2"].get_axes()[0]
    assert len(lines(ax)) == 5 * all_survive
    assert len(ax.lines) == 5


# -- Figures 4 and 5 ----------------------------------------------------------------------------------------


def test_figure_4_shows_geometric_means_of_both_losses_at_each_step(monkeypatch):
    made, rng = {}, np.random.default_rng(2)

    def train(model, **options):
        assert model.dim == options["initial"]["embedding"].shape[2] == 16
        (dim,) = {*options["initial"]["embedding"].any(axis=1).sum(axis=1).tolist()}
        made[dim] = options, rng.uniform(0.1, 9, (2, 3, 2))
        losses = made[dim][1]
        return SimpleNamespace(observables={"train_loss": losses[0], "validation_loss": losses[1]})

    monkeypatch.setattr(figure_04, "train", train)
    monkeypatch.setattr(figure_04, "PIECE", (3, 3))
    setting = figure_04.Frozen(11, (4, 8, 16), (10, 30), 3, 5)
    result = figure_04.frozen(Run(setting, "quick"))
    rows = result.columns()["networks"]
    for n, d in enumerate(setting.dims):
        options, losses = made[d]
        assert (options["seed"], options["first_run"]) == (5, 3 * n)
        assert (options["runs"], options["steps"], options["weight_decay"]) == (3, 30, 0.5)
        assert options["record"] == [10, 30]
        assert options["freeze_embedding"] is True
        own = rows["d"] == d
        assert rows["network"][own].tolist() == [0, 0, 1, 1, 2, 2]
        assert rows["step"][own].tolist() == [10, 30] * 3
        assert rows["p"][own].tolist() == [11] * 6
        assert rows["train_loss"][own].tolist() == losses[0].ravel().tolist()
        assert rows["test_loss"][own].tolist() == losses[1].ravel().tolist()
    for place, ax in enumerate(result.figures["ding-4"].get_axes()):
        kind = 1 - place  # the test loss stands first
        drawn, bands = lines(ax), areas(ax)
        for n, step in enumerate(setting.snapshots):
            logs = np.log([made[d][1][kind, :, n] for d in setting.dims])
            x, y = drawn[str(step)]
            assert x == [4, 8, 16]
            np.testing.assert_allclose(y, np.exp(logs.mean(axis=1)))
            found = [mean(one, 0.95) for one in logs]
            np.testing.assert_allclose(bands[n], np.exp([[f.low for f in found], [f.high for f in found]]))
        assert ax.lines[-1].get_xdata()[0] == 11


def test_rules_of_figure_4_take_the_last_step_and_windows_about_p():
    d = np.array([4, 20, 24, 43, 44, 56, 59, 60, 75, 76])
    loss = 10.0 ** np.arange(10)
    rows = {"d": np.tile(d, 2), "p": np.full(20, 59), "step": np.repeat([9, 10], 10),
            "test_loss": np.concatenate([np.ones(10), loss])}  # fmt: skip
    tables = {"networks": rows}
    assert figure_04._transition(tables, 0.95).estimate == pytest.approx(np.mean([3, 4, 5]) - np.mean([7, 8]))
    assert figure_04._descent(tables, 0.95).estimate == pytest.approx(
        np.mean([2, 3, 4, 5, 6]) - np.mean([0, 1])
    )


def counted(p, d, circles):
    n = len(circles)
    return {"p": np.full(n, p), "d": np.full(n, d), "network": np.arange(n), "circles": np.array(circles),
            "prime": np.full(n, p in (7, 11, 13))}  # fmt: skip


def test_figure_5_shows_moduli_at_the_usual_dimension_and_dimensions_at_the_usual_modulus(monkeypatch):
    parts = [counted(7, 12, [1, 2, 2]), counted(11, 12, [3, 3, 5]), counted(13, 12, [4, 4, 6]),
             counted(11, 4, [1, 1, 2]), counted(11, 8, [2, 3, 3])]  # fmt: skip
    table = joined(parts)
    monkeypatch.setattr(figure_05, "count_circles", lambda run: table)
    setting = figure_05.Counts(TINY, (7, 11, 13), (4, 8, 12), 3, 0)
    result = figure_05.by_size(Run(setting, "quick"))
    left, right = result.figures["ding-5"].get_axes()
    for ax, x, own in (
        (left, [7, 11, 13], parts[:3]),
        (right, [4, 8, 12], [parts[3], parts[4], parts[1]]),
    ):
        (found,) = bars(ax).values()
        np.testing.assert_allclose(found[0], x)
        np.testing.assert_allclose(found[1:], intervals([mean(part["circles"], 0.95) for part in own]))
    tables = {"networks": table}
    assert figure_05._at_default(tables).tolist() == [3, 3, 5]
    assert figure_05._three_or_more(tables, 0.95) == proportion(3, 3)
    assert figure_05._expected(tables, 0.95) == mean([3, 3, 5], 0.95)


def test_figure_14_tells_primes_and_shows_the_mean_of_all(monkeypatch):
    parts = [counted(p, 12, [p % 4, p % 5, 3]) for p in (7, 8, 9, 11, 12, 13)]
    table = joined(parts)
    monkeypatch.setattr(figure_05, "count_circles", lambda run: table)
    result = figure_05.all_moduli(Run(figure_05.Counts(TINY, (7,), (), 3, 0), "quick"))
    (ax,) = result.figures["ding-14"].get_axes()
    whole = ax.lines[0].get_data()
    assert whole[0].tolist() == [7, 8, 9, 11, 12, 13]
    np.testing.assert_allclose(whole[1], [part["circles"].mean() for part in parts])
    found = bars(ax)
    assert found["prime p"][0].tolist() == [7, 11, 13]
    assert found["composite p"][0].tolist() == [8, 9, 12]
    np.testing.assert_allclose(found["composite p"][1], [parts[n]["circles"].mean() for n in (1, 2, 4)])
    mean_of = {p: part["circles"].mean() for p, part in zip((7, 8, 9, 11, 12, 13), parts, strict=True)}
    line = {
        8: mean_of[7] + (mean_of[11] - mean_of[7]) / 4,
        9: mean_of[7] + (mean_of[11] - mean_of[7]) / 2,
        12: (mean_of[11] + mean_of[13]) / 2,
        11: mean_of[7] + (mean_of[13] - mean_of[7]) * 4 / 6,
    }
    off = {p: (mean_of[p] - line[p]) ** 2 for p in line}
    ratio = figure_05._more_variation({"networks": table}, 0.95).estimate
    assert ratio == pytest.approx(np.sqrt((off[8] + off[9] + off[12]) / 3 / off[11]))


def test_a_curved_trend_of_the_primes_is_no_variation_of_the_others():
    moduli = np.arange(17, 98)
    prime = np.array([figure_05._primes(p, p) != () for p in moduli])
    rng = np.random.default_rng(0)
    circles = np.minimum(4, moduli / 10)[:, None] + rng.normal(0, 0.2, (len(moduli), 20))
    rows = {"p": np.repeat(moduli, 20), "prime": np.repeat(prime, 20), "circles": circles.ravel(),
            "network": np.tile(np.arange(20), len(moduli))}  # fmt: skip
    assert figure_05._more_variation({"networks": rows}, 0.95).estimate == pytest.approx(1, abs=0.4)
    rows["circles"] = np.where(rows["prime"] | (rows["p"] % 2 == 1), rows["circles"], rows["circles"] + 1)
    assert figure_05._more_variation({"networks": rows}, 0.95).low > 2


def test_circles_are_counted_as_in_the_published_code():
    p, n = 17, np.arange(17)
    four = np.concatenate([[f(2 * np.pi * k * n / p) for f in (np.cos, np.sin)] for k in (1, 2, 5, 8)])
    even = np.stack([(-1.0) ** np.arange(16), *np.zeros((7, 16))])
    assert figure_05.published_count(four.T[None]).tolist() == [4]
    assert survives(fourier_signals(four.T)).sum() == 0, "twice the mean of the eight frequencies"
    assert figure_05.published_count(even.T[None]).tolist() == [0], "half of a pair is no circle"
    diverged = np.stack([four.T, np.where(n[:, None] == 3, np.nan, four.T)])
    assert figure_05.published_count(diverged).shape == (2,)


def test_counts_are_of_each_modulus_and_dimension_once_with_seeds_of_their_own(monkeypatch):
    asked = []

    def train(model, *, runs, first_run, steps, seed, weight_decay, record, observables):
        asked.append((model.tokens, model.dim, first_run, runs, steps, seed))
        assert (weight_decay, record, observables) == (0.5, [steps], ())
        E = np.zeros((runs, model.tokens, model.dim))
        angle = 2 * np.pi * np.arange(model.tokens) / model.tokens
        if first_run == 0:
            E[1, :, :2] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return SimpleNamespace(final=E)

    monkeypatch.setattr(figure_05, "train", train)
    monkeypatch.setattr(figure_05, "PIECE", (2, 2))
    rows = figure_05.count_circles(Run(figure_05.Counts(TINY, (7, 11), (4, 12), 3, 5), "quick"))
    pairs = [(7, 12), (11, 12), (11, 4)]
    parts = [(0, 2), (2, 1)]
    assert asked == [(p, d, *part, 30, 5 + 1000 * p + d) for p, d in pairs for part in parts]
    assert rows["network"].tolist() == [0, 1, 2] * 3
    assert rows["circles"].tolist() == [0, 1, 0] * 3
    assert rows["p"].tolist() == np.repeat([7, 11, 11], 3).tolist()
    assert rows["d"].tolist() == np.repeat([12, 12, 4], 3).tolist()
    asked.clear()
    figure_05.count_circles(Run(figure_05.Counts(TINY, (7,), (12,), 3, 5), "quick"))
    assert [one[:2] for one in asked[::2]] == [(7, 12), (11, 12)], (
        "the modulus of the dimensions is needed too"
    )
