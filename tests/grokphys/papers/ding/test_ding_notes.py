"""Numbers of our own in notes on claims of Ding et al. are those of the stored results."""

import numpy as np
import pytest
from recipe_checks import claims, note, table, text_of
from scipy import stats

import analysis
from analysis.circles.fourier import frequency_norms, principal_components
from grokphys.papers.run import recipes

NOTES = text_of("notes")


def embeddings(count=20):
    return np.random.default_rng(0).standard_normal((count, 59, 128))


def test_random_embeddings_in_the_notes_of_figure_3():
    variance, hits, own, paired = [], [], [], []
    for E in embeddings():
        found = principal_components(E)
        singular = np.linalg.svd(E - E.mean(axis=0), compute_uv=False) ** 2
        variance.append(np.sum(singular[:10]) / singular.sum())
        best = np.argsort(-frequency_norms(E))[:4] + 1
        hits.append(np.mean([found.frequency(pair) in best for pair in range(4)]))
        planes = [analysis.frequency_plane(E, k).points for k in best]
        own.append([part_at(plane, k) for plane, k in zip(planes, best, strict=True)])
        pairs = [found.points[:, 2 * k : 2 * k + 2] for k in range(4)]
        paired.append([max(part_at(pair, k) for k in range(1, 30)) for pair in pairs])
    assert np.mean(variance) == pytest.approx(0.37, abs=0.01)
    assert np.mean(hits) == pytest.approx(0.36, abs=0.12)
    assert "36 % of the pairs" in note("ding-3", "correspondence")
    trained = table("ding-3", "planes")
    assert np.mean(own) - np.mean(paired) > 2 * np.mean(trained["in_fourier"] - trained["in_components"])


def part_at(points, k):
    """The part of the variance of points (tokens, 2) that belongs to the frequency k."""
    power = np.abs(np.fft.rfft(points - points.mean(axis=0), axis=0)) ** 2
    return power[k].sum() / power.sum()


def test_signals_that_are_squared_are_clearly_separate():
    rows, gaps = table("ding-2", "circles"), []
    for network in np.unique(rows["network"]):
        own = rows["network"] == network
        last, alive = np.log10(rows["last"][own]), rows["survived"][own].astype(bool)
        gaps.append(last[alive].min() - last[~alive].max())
    assert np.mean(gaps) == pytest.approx(0.76, abs=0.01)  # of norms, and twice as much of squares
    assert "the choice decides" in note("ding-2", "left")


def test_how_often_the_stopping_rule_errs():
    audited = [table(name, "circles") for name in ("ding-6", "ding-11b")]
    died = survived = networks = 0
    for rows in audited:
        own = rows["audited"].astype(bool)
        alive, changed = rows["survived"][own].astype(bool), rows["changed"][own].astype(bool)
        assert not (alive & changed).any(), "none came back"
        died, survived = died + changed.sum(), survived + (alive | changed).sum()
        networks += own.sum() // 29
    assert (networks, died, survived) == (8, 11, 44)
    assert "11 of the 44 circles" in NOTES
    low, high = stats.binomtest(11, 44).proportion_ci()
    assert (round(100 * low), round(100 * high)) == (13, 40)
    assert "from 13 to 40 %" in NOTES
    for rows in audited:
        assert rows["survived"].sum() / (len(rows["survived"]) / 29) == pytest.approx(5.1, abs=0.05)
    ends = [table("ding-2", "circles")["survived"].sum() / 30, len(table("ding-3", "planes")["network"]) / 30]
    rows = table("ding-8", "sets")
    ends.append(np.mean(
        [rows["rank"][(rows["network"] == n) & (rows["kept"] == 1)].max() + 1 for n in range(30)]
    ))  # fmt: skip
    assert (round(min(ends), 1), round(max(ends), 1)) == (3.5, 3.9)


def test_three_circles_suffice_for_networks_that_have_three():
    rows = table("ding-8", "sets")
    three = (rows["kept"] == 3) & (rows["rank"] == 0)
    counts = np.array(
        [rows["rank"][(rows["network"] == n) & (rows["kept"] == 1)].max() + 1 for n in range(30)]
    )
    fine = rows["test_loss"][three] < 0.1
    assert fine.tolist() == (counts[rows["network"][three].astype(int)] == 3).tolist()


def test_starts_from_random_circles_in_the_notes_of_figure_12():
    rows = table("ding-12", "networks")
    starts, names = set(rows["start"].tolist()), ("learnt", "circles")
    learnt, circles = ({x: rows[n][rows["start"] == x].astype(float) for x in starts} for n in names)
    one, two, usual = (learnt[start] for start in ("one random (C)", "two random (D)", "all"))
    for rule in ("C and D: slower", "C and D: three or more"):
        assert note("ding-12", rule).startswith("both starts together: from one circle always")
    assert (one > usual).all()
    assert (two < usual).mean() == pytest.approx(0.95)
    assert (circles["one random (C)"] >= 3).all()
    assert (circles["two random (D)"] == 2).mean() == pytest.approx(0.68, abs=0.01)


def test_frozen_embeddings_improve_by_no_step_at_p():
    rows = table("ding-4", "networks")
    last = rows["step"] == rows["step"].max()
    d, loss = rows["d"][last], np.log10(rows["test_loss"][last])
    assert note("ding-4", "transition").endswith("a slope, and no step at p")
    falls = {
        c: loss[(c - 16 <= d) & (d < c)].mean() - loss[(c < d) & (d <= c + 16)].mean() for c in range(46, 71)
    }
    assert min(falls.values()) > 0.9
    assert sorted(falls.values()).index(falls[59]) < 8, "two thirds of the others show more"


def test_the_circles_of_figure_10_fall_within_one_decade():
    rows = table("ding-10", "networks")
    decays = np.unique(rows["weight_decay"])
    counts = {decay: rows["circles"][rows["weight_decay"] == decay] for decay in decays}
    number = {decay: each.mean() for decay, each in counts.items()}
    late = [each for decay, each in number.items() if decay >= 0.03]
    assert (number[0], max(number), min(late), max(late)) == pytest.approx((29, 1.5, 2.95, 4.4))
    assert (number[0.005] - number[0.03]) / (number[0] - number[0.03]) == pytest.approx(0.93, abs=0.01)
    assert number[0.004] > 28.8
    assert "from 0.03 to 1.5 their mean number lies between 2.95 and 4.4" in NOTES
    assert 20 * 29 - counts[0.003].sum() == 2
    accuracy = rows["accuracy"][rows["weight_decay"] == 0.003]
    assert (len(accuracy), accuracy.mean()) == (20, pytest.approx(0.956, abs=5e-4))
    assert "a mean test accuracy of 96 %, and only two of their 580 circles are gone" in NOTES
    assert (min(number, key=number.get), number[1.5]) == (0.1, max(late))
    assert "the number is smallest at 0.1, and rises again up to 1.5" in note("ding-10", "drops")
    high = rows["weight_decay"] >= 0.1
    for count in ("circles", "above_twice_mean"):
        tau = stats.kendalltau(rows["weight_decay"][high], rows[count][high])
        assert (tau.statistic > 0.2, tau.pvalue < 1e-6) == (True, True)
    one = rows["weight_decay"] == 0.05
    assert np.sort(rows["accuracy"][one])[:2] == pytest.approx((0.25, 0.99), abs=0.01)
    assert "At 0.05 one of 20 networks is far from accurate" in recipes()["ding-10"].shows
    assert "nearly the same numbers from 0.1 on" in NOTES
    for decay in decays[decays >= 0.1]:
        own = rows["weight_decay"] == decay
        assert abs(rows["circles"][own].mean() - rows["above_twice_mean"][own].mean()) < 0.06
    published = [rows["above_twice_mean"][rows["weight_decay"] == decay].mean() for decay in decays]
    assert published[0] == 0
    assert stats.spearmanr(decays, published).statistic > 0.8


def test_networks_without_weight_decay_in_the_notes_of_figure_10():
    rows = table("ding-10", "networks")
    without = rows["weight_decay"] == 0
    accuracy = np.sort(rows["accuracy"][without])
    assert accuracy[15] <= 0.0101
    assert accuracy[16:] == pytest.approx((0.113, 0.387, 0.638, 0.647), abs=5e-4)
    assert note("ding-10", "no generalization") == "16 of the 20 are at 1 % or below, and four at 11 to 65 %"
    assert note("ding-10", "no decay").startswith("580 of 580")
    assert rows["circles"][without].sum() == rows["frequencies"][without].sum() == 580
    assert note("ding-10", "gradually").startswith("26 networks, one of each decay,")
    assert claims("ding-10")["gradually"]["count"] == 20 == len(rows["circles"]) / 26


def test_the_gradient_of_figure_13_in_words():
    rows = table("ding-13", "gradients")
    first, late, most, again = [], [], [], []
    for network in range(20):
        step, size = (rows[name][rows["network"] == network] for name in ("step", "largest"))
        first.append(step[np.argmax(np.where(step < 5000, size, 0))])
        early = size[(step >= 50) & (step <= 200)].mean()
        late.append(size[(step > 1000) & (step <= 15_000)].mean() / early)
        most.append(step[np.argmax(size)])
        after = step > 15_000
        again.append((step[after][np.argmax(size[after])], size[after].max()))
    assert (min(first), max(first)) == (15, 25)
    assert np.mean(late) == pytest.approx(0.04, abs=0.005)
    assert sorted(most)[-2:] == [25, 18_000]
    steps, sizes = np.transpose(again)
    assert 17_000 <= steps.min() <= steps.max() <= 18_800
    assert sorted(sizes)[0] > 0.005
    assert sorted(sizes)[-2] < 0.0135
    assert sizes.max() == pytest.approx(2.4, abs=0.05)
