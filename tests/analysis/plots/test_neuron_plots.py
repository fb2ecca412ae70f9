import matplotlib.pyplot as plt
import numpy as np
import pytest

from analysis import logit_spectrum, neuron_spectrum
from analysis.plots.neurons import show_logit_waves, show_neurons, show_phases
from analysis.plots.trajectory import show_trajectory
from physics import InputError, Trajectory


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.fixture
def spectrum():
    p = 11
    phases = np.array([0.3, 1.9, -2.0, 0.5])
    angle = 2 * np.pi * np.outer(np.arange(p), [4, 2, 4, 1]) / p
    W_in = np.cos(angle + phases) * [1, 1, 1, 1e-6]
    return neuron_spectrum(W_in, np.cos(angle + 2 * phases + [0, 0.2, 0, 0]).T)


def test_rows_are_neurons_by_frequency_and_dead_ones_last(ax, spectrum):
    for output in (False, True):
        assert show_neurons(spectrum, ax, output=output) is ax
    drawn = np.asarray(ax.images[0].get_array())
    wanted = np.zeros((4, 5))
    wanted[0, 1] = wanted[1, 3] = wanted[2, 3] = 1
    np.testing.assert_allclose(drawn, wanted, atol=1e-12)
    dead, all_ = neuron_spectrum(np.zeros((7, 2))), neuron_spectrum(np.eye(7)[:, :2])
    for one in (spectrum, dead, all_):
        show_neurons(one, ax)
        assert ax.images[-1].get_clim() == (0, 1), "a color means the same in all figures"
    show_neurons(spectrum, ax)
    assert list(ax.images[-1].get_extent()) == [0.5, 5.5, 4, 0], "columns stand over their frequencies"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("frequency", "neurons, by frequency")


def test_aligned_phases_lie_on_the_diagonal(ax, spectrum):
    assert show_phases(spectrum, ax) is ax
    points = np.asarray(ax.collections[0].get_offsets())
    assert points.shape == (3, 2)
    np.testing.assert_allclose(points[:, 0] - points[:, 1], [0, -0.2, 0], atol=1e-12)
    assert (np.abs(points) <= np.pi).all()
    colors = ax.collections[0].get_facecolors()
    assert np.array_equal(colors[0], colors[2])
    assert not np.array_equal(colors[0], colors[1])
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xydata(), [[-np.pi, -np.pi], [np.pi, np.pi]])
    for ticks, words in ((ax.get_xticks(), ax.get_xticklabels()), (ax.get_yticks(), ax.get_yticklabels())):
        np.testing.assert_array_equal(ticks, [-np.pi, 0, np.pi])
        assert [word.get_text() for word in words] == ["-π", "0", "π"]


def test_bars_are_the_coefficients(ax):
    a, b, c = np.ogrid[:7, :7, :7]
    waves = logit_spectrum(2 * np.cos(2 * np.pi * 3 * (a + b - c) / 7))
    assert show_logit_waves(waves, ax) is ax
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, [0, 0, 2], atol=1e-12)
    assert ax.get_title(loc="left") == "100% of the logits explained"
    centers = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    np.testing.assert_allclose(centers, [1, 2, 3])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("frequency k", "coefficient of cos(2πk(a + b - c)/p)")


def test_points_in_space_are_drawn_in_the_plane_in_which_they_vary_most(ax):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(7, 3)) * [0.1, 3, 1] + [9, -4, 2]
    moves = Trajectory(np.stack([points + 1, points])[None], [0, 1])
    assert moves.plot(ax=ax) is ax
    shown = np.concatenate([one.get_offsets() for one in ax.collections])
    centered = points - points.mean(axis=0)
    wanted = centered @ np.linalg.svd(centered)[2][:2].T
    np.testing.assert_allclose(shown[: len(wanted)], wanted, atol=1e-9)


@pytest.mark.parametrize(("runs", "alpha"), [(2, 1.0), (3, 1.0), (6, 0.5), (20, 0.15), (60, 0.15)])
def test_lines_of_many_runs_are_pale(ax, runs, alpha):
    values = np.arange(3.0 * runs).reshape(runs, 3)
    moves = Trajectory(np.zeros((runs, 3, 5, 2)), [0, 1, 2], observables={"train_loss": values})
    show_trajectory(moves, "train_loss", ax)
    np.testing.assert_array_equal([line.get_ydata() for line in ax.lines], values)
    assert {line.get_alpha() for line in ax.lines} == {alpha}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "train loss")


def test_bad_input():
    with pytest.raises(InputError, match=r"one layer, .* \(hidden, K\), got the shape \(1, 3, 1\)"):
        show_neurons(neuron_spectrum(np.ones((1, 3, 3))))
    with pytest.raises(InputError, match=r"waves must be of one network"):
        show_logit_waves(logit_spectrum(np.ones((2, 3, 3, 3))))
    plt.close("all")
