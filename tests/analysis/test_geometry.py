"""The geometry of circles, and the ablation of neurons."""

import math
from functools import partialmethod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis
from analysis.circles.fourier import signals_and_final
from analysis.circles.survival import survives
from physics import InputError, Trajectory, load


def embedding(p=11, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((p, d))


def ring(p, frequency, radius=1.0):
    angle = 2 * np.pi * frequency * np.arange(p) / p
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


# -- circularity --------------------------------------------------------------------------------------------


def test_the_circularity_of_a_random_embedding_goes_with_its_signal():
    """Why Ding's Figure 11 (right) can be decided: survival depends on the signal."""
    E = np.random.default_rng(0).standard_normal((400, 59, 128))
    signals, circularities = analysis.fourier_signals(E), np.array([analysis.circularity(e) for e in E])
    assert np.corrcoef(signals.values.ravel(), circularities.ravel())[0, 1] == pytest.approx(0.56, abs=0.03)


@pytest.mark.parametrize("p", [7, 11, 12, 15])
def test_circularity_equals_its_definition(p):
    E = embedding(p, 5)
    expected = []
    for k in range(1, p // 2 + 1):
        F = sum(np.exp(-2j * np.pi * k * n / p) * E[n] for n in range(p))
        axes = np.linalg.qr(np.stack([F.real, F.imag], axis=1))[0]
        if np.linalg.norm(F.imag) < 1e-9:
            axes = F.real[:, None] / np.linalg.norm(F.real)
        X = E @ axes
        turned = (X * np.exp(2j * np.pi * k * np.arange(p) / p)[:, None]).sum(axis=0)
        factor = 1 if 2 * k == p else 2
        expected.append(factor * np.sum(np.abs(turned) ** 2) / (p * np.sum(X**2)))
    np.testing.assert_allclose(analysis.circularity(E), expected, rtol=1e-10)
    np.testing.assert_allclose(analysis.circularity(np.stack([E, 2 * E]))[1], expected, rtol=1e-10)


@given(st.integers(3, 20), st.integers(1, 6), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_circularity_lies_between_0_and_1_and_does_not_see_rotations(p, d, seed):
    E = embedding(p, d, seed)
    found = analysis.circularity(E)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()
    turn = np.linalg.qr(embedding(d, d, seed + 1))[0]
    np.testing.assert_allclose(analysis.circularity(3 * E @ turn), found, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(analysis.circularity(np.roll(E, 1, axis=0)), found, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("p", [11, 12])
def test_a_circle_is_circular_and_the_absent_frequencies_are_not(p):
    found = analysis.circularity(np.concatenate([ring(p, 2), np.zeros((p, 3))], axis=1))
    np.testing.assert_allclose(found, [0, 1, *[0] * (p // 2 - 2)], atol=1e-12)
    line = np.cos(np.pi * np.arange(12))[:, None] * np.ones((1, 2))
    np.testing.assert_allclose(analysis.circularity(line), [0, 0, 0, 0, 0, 1], atol=1e-12)


# -- planes, deltas, components -----------------------------------------------------------------------------


def test_the_plane_of_a_frequency_holds_its_circle():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    E = np.concatenate([ring(11, 2, 3.0), ring(11, 4)], axis=1) @ turn[:4] + 5
    plane = analysis.frequency_plane(E, 2)
    np.testing.assert_allclose(np.linalg.norm(plane.points, axis=1), 3)
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-12)
    signals = analysis.fourier_signals(plane.points)
    np.testing.assert_allclose(signals, [0, 11 * 3 / np.sqrt(2), 0, 0, 0], atol=1e-9)
    flat = analysis.frequency_plane(np.cos(np.pi * np.arange(6))[:, None] * [[3.0, 4.0]], 3)
    np.testing.assert_allclose(np.abs(flat.points), [[5, 0]] * 6, atol=1e-12)
    np.testing.assert_allclose(flat.axes[1], 0)


@pytest.mark.parametrize("p", [5, 7, 12, 59])
def test_neighbours_on_a_circle_are_a_delta_apart(p):
    for k in range(1, p // 2 + 1):
        if np.gcd(k, p) > 1:
            with pytest.raises(InputError, match=f"no factor in common with {p}, got {k}, divisible"):
                analysis.circles.circle_delta(k, p)
            continue
        points = ring(p, k)
        order = np.argsort(np.arctan2(points[:, 1], points[:, 0]))
        step = (order[1] - order[0]) % p
        assert analysis.circles.circle_delta(k, p) == min(step, p - step)


def test_principal_components_of_circles_are_their_planes():
    E = np.concatenate([ring(11, 4, 2.0), ring(11, 2)], axis=1) @ np.linalg.qr(embedding(4, 4))[0] + 1
    found = analysis.circles.principal_components(E)
    np.testing.assert_allclose(found.fractions, [0.4, 0.4, 0.1, 0.1])
    assert [found.frequency(0), found.frequency(1)] == [4, 2]
    np.testing.assert_allclose(found.points @ found.axes, E - E.mean(axis=0), atol=1e-12)


def test_effective_dimension():
    assert analysis.effective_dimension(ring(7, 1)) == pytest.approx(2)
    two = np.concatenate([ring(7, 1), ring(7, 2)], axis=1)
    assert analysis.effective_dimension(two) == pytest.approx(4)
    uneven = np.concatenate([ring(7, 1), ring(7, 2, 0.5)], axis=1)
    shares = np.array([0.4, 0.4, 0.1, 0.1])
    assert analysis.effective_dimension(uneven) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    batch = analysis.effective_dimension(np.stack([two, uneven, np.ones((7, 4))]))
    np.testing.assert_allclose(batch[[0, 2]], [4, 1])


# -- trajectories in memory and in files --------------------------------------------------------------------


@pytest.mark.parametrize(("p", "dtype", "error"), [(11, np.float32, 1e-6), (12, np.float64, 1e-13)])
def test_signals_of_a_trajectory_are_those_of_its_frames(tmp_path, p, dtype, error, monkeypatch):
    E = np.random.default_rng(0).standard_normal((2, 70, p, 9)).astype(dtype) + dtype(3)
    Trajectory(E, np.arange(70)).save(tmp_path / "t.h5")
    stored = load(tmp_path / "t.h5")
    expected = analysis.fourier_signals(E)
    for trajectory in (Trajectory(E, np.arange(70)), stored):
        found = analysis.fourier_signals(trajectory)
        assert (found.dims, found.dtype) == (("run", "step", "frequency"), np.float64)
        np.testing.assert_allclose(found, expected, atol=error * float(expected.max()))
    assert stored._cache is None, "the file was not read as a whole"
    monkeypatch.setattr(Trajectory, "blocks", partialmethod(Trajectory.blocks, megabytes=0.01))
    small, final = signals_and_final(stored)
    np.testing.assert_allclose(small, found, rtol=1e-5)
    np.testing.assert_array_equal(final, stored.final)


def test_a_frame_that_is_not_finite_is_named():
    E = np.ones((2, 4, 5, 3))
    E[1, 2, 0, 0] = np.nan
    with pytest.raises(InputError, match="in 1 frames, the first of them step 20 of run 1"):
        analysis.fourier_signals(Trajectory(E, [0, 10, 20, 30]))


# -- signals and geometry ---------------------------------------------------------------------------------


def test_a_threshold_must_be_exceeded_and_replaces_the_factor():
    assert survives([10.0, 10.1, np.nan], threshold=10).tolist() == [False, True, False]
    assert survives([10.0, 10.1], threshold=10, factor=-1).tolist() == [False, True], "a factor is not used"
    assert not survives([[9.0, np.nan, 0.0]]).any()
    assert survives([[9.0, 0.0, 0.0], [1.0, 0.0, 9.0]]).tolist() == [
        [True, False, False],
        [False, False, True],
    ]
    found = analysis.surviving_frequencies(ring(9, 4))
    assert (found.tolist(), found.dtype) == ([4], np.int64)
    with pytest.raises(InputError, match="threshold must be a finite number greater than 0, got inf"):
        survives([1.0], threshold=math.inf)


def test_a_plane_is_that_of_the_points_about_their_mean_the_longer_axis_first():
    E = np.concatenate([ring(9, 2) * [1.0, 4.0], np.full((9, 1), 7.0)], axis=1)
    plane = analysis.frequency_plane(E, 2)
    np.testing.assert_allclose(plane.points.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(plane.axes), [[0, 1, 0], [1, 0, 0]], atol=1e-12)
    line = analysis.frequency_plane(ring(9, 2)[:, :1], 2)
    assert (line.points.shape, line.axes.shape) == ((9, 2), (2, 1))
    assert line.axes[1].tolist() == [0]


# -- neurons ----------------------------------------------------------------------------------------------


def test_neurons_are_removed_network_by_network():
    rng = np.random.default_rng(13)
    states, out = rng.normal(size=(2, 6, 4)), rng.normal(size=(2, 4, 3))
    bias, labels = rng.normal(size=(2, 1, 3)), np.array([0, 1, 2, 2, 1, 0], np.uint8)
    groups = rng.random((2, 5, 4)) < 0.5
    found = analysis.neuron_ablation(states, out, labels, bias=bias, groups=groups)
    for run in range(2):
        for k, group in enumerate(groups[run]):
            logits = (states[run] * ~group) @ out[run] + bias[run]
            log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            assert found[run, k] == pytest.approx(-log_p[np.arange(6), labels].mean())
    alone = analysis.neuron_ablation(states, out, labels)
    every = analysis.neuron_ablation(states, out, labels, groups=np.eye(4, dtype=bool))
    np.testing.assert_allclose(alone, every)
    with pytest.raises(InputError, match="bias must be finite, got 1 NaN or infinite among 1 values"):
        analysis.neuron_ablation(states, out, labels, bias=np.inf)
