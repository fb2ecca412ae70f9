from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy import stats

from analysis.comparison.compared import Structures
from analysis.plots import maps
from analysis.plots.palette import class_colors
from analysis.stats.intervals import Interval, mean, proportion
from grokphys.papers.musat import start as musat_start
from grokphys.papers.musat.start import Numbers, Sample, distances
from grokphys.report import musat
from physics import InputError


def test_a_verdict_needs_both_sides():
    ours, none = Interval(3.0, 2.0, 4.0, 9), Interval(np.nan, np.nan, np.nan, 0)
    assert musat.verdict(ours, 3.5) == "covered"
    assert musat.verdict(ours, Interval(5.0, 3.9, 6.0, 9)) == "intervals meet"
    assert musat.verdict(ours, 5.0) == "not covered"
    assert musat.verdict(ours, np.nan) == "not in the paper"
    assert musat.verdict(none, 5.0) == "none here"


# -- The map itself -----------------------------------------------------------------------------------------


def test_the_plane_is_a_square_around_the_points():
    grid, bounds = maps.plane([[0, 0], [4, 1]], resolution=5, margin=0.0)
    assert bounds == (0, 4, -1.5, 2.5)
    np.testing.assert_allclose(grid[:5], [[0, -1.5], [1, -1.5], [2, -1.5], [3, -1.5], [4, -1.5]])
    np.testing.assert_allclose(grid[-1], [4, 2.5])


def test_classes_and_sums_have_the_colors_of_their_class():
    axes = Figure().subplots()
    points = [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]]
    drawn = maps.show_classifier(
        [[0, 1], [2, 1]],
        (0, 1, 0, 1),
        axes,
        count=3,
        sums=points,
        labels=[2, 1, 0],
        held_out=[False, True, False],
    )
    assert drawn is axes
    (image,) = axes.get_images()
    np.testing.assert_array_equal(image.get_array(), [[0, 1], [2, 1]])
    np.testing.assert_allclose(image.cmap(image.norm([0, 1, 2])), class_colors(3))
    discs, diamonds = axes.collections
    np.testing.assert_allclose(discs.get_offsets(), [points[0], points[2]])
    np.testing.assert_allclose(discs.get_facecolors(), class_colors(3)[[2, 0]])
    np.testing.assert_allclose(diamonds.get_facecolors(), [to_rgba(class_colors(3)[1])])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"classes": [0, 1]}, "classes must be a grid (rows, columns), got the shape (2,)"),
        ({"sums": [[0, 0, 0]]}, "sums must have the shape (n, 2), got (1, 3)"),
        (
            {"sums": [[0, 0]], "labels": [1, 2]},
            "labels must hold one class for each of 1 sums, got",
        ),
    ],
)
def test_a_map_refuses_in_a_sentence(options, sentence):
    with pytest.raises(InputError) as error:
        maps.show_classifier(**{"classes": [[0]], "bounds": (0, 1, 0, 1), "count": 3} | options)
    assert str(error.value).startswith(sentence)


# -- Which start of the layers ------------------------------------------------------------------------------


def found_as(imperfections, circles=12, count=100):
    """Structures and accuracies with these means, that of the rest and of circles as in the paper at 0.6."""
    circle = np.arange(count) < circles
    scatter = np.resize([-5.0, 5.0], count)
    values = np.where(circle, 0, imperfections + scatter).round().astype(np.int64)
    found = Structures(circle, values, proportion(circles, count), mean(values[~circle]))
    return found, np.where(circle, 65.9, 51.6) - scatter + np.resize([3.0, -3.0, -3.0, 3.0], count)


def distances_of(paper, found, accuracy):
    sample = Sample(found.circle, found.imperfections.astype(float), accuracy)
    return distances(Numbers.of_paper(paper), Numbers.of(sample))


def test_the_papers_own_numbers_are_at_no_distance():
    paper = musat.TABLE_1[0.6]
    found, accuracy = found_as(40)
    squares = distances_of(paper, found, accuracy)
    assert squares["circles"] == pytest.approx(0, abs=1e-12)
    assert squares["accuracy of circles"] == pytest.approx(0, abs=1e-12)
    assert squares["accuracy of the rest"] == pytest.approx(0, abs=1e-12)
    assert squares["grid imperfections"] < 0.1
    assert squares["correlation"] < 0.2


def test_a_distance_is_in_standard_errors_of_both():
    paper = musat.TABLE_1[0.6]
    found, accuracy = found_as(48)
    squares = distances_of(paper, found, accuracy + 3)
    own = found.grid_imperfections
    error = np.hypot((own.high - own.low) / 3.92, 4.0 / 1.96)
    assert squares["grid imperfections"] == pytest.approx(((own.estimate - 39.6) / error) ** 2)
    rest = accuracy[~found.circle]
    assert squares["accuracy of the rest"] == pytest.approx(9 / (2 * rest.var(ddof=1) / 88))
    few, _ = found_as(40, circles=4)
    ratio = distances_of(paper, few, accuracy)["circles"]
    k = np.array([12, 4, 88, 96])
    assert ratio == pytest.approx(2 * (k @ np.log(k / [8, 8, 92, 92])))
    none, accuracy = found_as(40, circles=0)
    assert np.isnan(distances_of(paper, none, accuracy)["accuracy of circles"])
    assert np.isnan(distances_of(musat.TABLE_1[0.0], none, accuracy)["circles"]), "0 of 0 says nothing"


def networks_of(decays, count, seed=0):
    """Made-up networks of one law: accuracy goes down with imperfections, so that their means depend."""
    rng = np.random.default_rng(seed)
    circle = rng.uniform(size=(decays, count)) < 0.12
    imperfections = rng.integers(10, 70, (decays, count)).astype(float)
    return [
        Sample(one, values, 90 - values + rng.normal(0, 1, count))
        for one, values in zip(circle, imperfections, strict=True)
    ]


def test_numbers_of_a_sample_are_what_other_functions_give():
    (sample,) = networks_of(1, 60)
    found, rest = Numbers.of(sample), ~sample.circle
    several = Numbers.of(
        Sample(
            *(
                np.stack([values, values[::-1]])
                for values in (sample.circle, sample.imperfections, sample.accuracy)
            )
        )
    )
    own = mean(sample.imperfections[rest])
    assert (found.imperfections, found.error) == (
        pytest.approx(own.estimate), pytest.approx((own.high - own.low) / 3.92)
    )  # fmt: skip
    for k, kind in enumerate((sample.circle, rest)):
        assert found.accuracy[k] == pytest.approx(sample.accuracy[kind].mean())
        assert found.variance[k] == pytest.approx(sample.accuracy[kind].var(ddof=1))
    expected = stats.pearsonr(sample.imperfections[rest], sample.accuracy[rest]).statistic
    assert found.correlation == pytest.approx(expected)
    for name in ("circles", "imperfections", "error", "correlation"):
        np.testing.assert_allclose(getattr(several, name), getattr(found, name), err_msg=name)
    ratio = distances(Numbers.of(networks_of(1, 80, 1)[0]), found)["circles"]
    table = [[networks_of(1, 80, 1)[0].circle.sum(), 0], [sample.circle.sum(), 0]]
    for row, count in zip(table, (80, 60), strict=True):
        row[1] = count - row[0]
    chi = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
    assert ratio == pytest.approx(chi.statistic)


def test_numbers_of_the_same_networks_are_not_taken_for_independent(monkeypatch):
    """Tables of one law: p is even on 0 to 1, and the sum scatters more than χ² of so many numbers."""
    monkeypatch.setattr(musat_start, "DRAWS", 250)
    found, wider = [], []
    for seed in range(40):
        paper, ours = networks_of(4, 100, seed), networks_of(4, 100, 1000 + seed)
        squares = [distances(Numbers.of(a), Numbers.of(b)) for a, b in zip(paper, ours, strict=True)]
        seen = sum(float(np.nansum(list(one.values()))) for one in squares)
        count = sum(int(np.isfinite(list(one.values())).sum()) for one in squares)
        table = {
            decay: replace(row, circles=int(one.circle.sum()))
            for (decay, row), one in zip(musat.TABLE_1.items(), paper, strict=True)
        }
        monkeypatch.setattr(musat_start, "TABLE_1", table)
        monkeypatch.setattr(musat_start, "distance", lambda samples, found=(seen, count): found)
        total = musat_start.total(dict(zip(table, ours, strict=True)), seed=seed)
        found.append(total["p_value"])
        wider.append(total["chance_95"] - stats.chi2.ppf(0.95, total["numbers"]))
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert np.mean(wider) > 1


def test_a_distance_of_correlations_is_fishers():
    """By the rest of 100 and of 50, 4 or 3 networks: the variance of z is 1 / (n - 3), without limit at 3."""

    def numbers(rest, correlation):
        absent = np.full(len(rest), np.nan)
        several = np.full((2, len(rest)), np.nan)
        circles = 112.0 - np.array(rest)
        return Numbers(112, circles, absent, absent, several, several, np.full(len(rest), correlation))

    found = musat_start.distances(numbers([100] * 3, -0.64), numbers([50, 4, 3], -0.5))["correlation"]
    square = (np.arctanh(-0.5) - np.arctanh(-0.64)) ** 2
    np.testing.assert_allclose(found, [square / (1 / 47 + 1 / 97), square / (1 / 1 + 1 / 97), np.nan])
    swapped = musat_start.distances(numbers([3, 50], -0.64), numbers([100] * 2, -0.5))["correlation"]
    np.testing.assert_allclose(swapped, [np.nan, square / (1 / 47 + 1 / 97)])
