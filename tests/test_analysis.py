import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis
from analysis.comparison import aligned
from analysis.statistics import Interval
from physics import InputError, Trajectory


def embedding(p=11, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((p, d))


def ring(p, frequency, radius=1.0):
    angle = 2 * np.pi * frequency * np.arange(p) / p
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


# -- Fourier signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [3, 4, 11, 12])
def test_signals_equal_the_definition(p):
    E = embedding(p)
    expected = [
        np.linalg.norm(sum(np.exp(-2j * np.pi * k * n / p) * E[n] for n in range(p)))
        for k in range(1, p // 2 + 1)
    ]
    np.testing.assert_allclose(analysis.fourier_signals(E), expected, rtol=1e-12)
    np.testing.assert_allclose(analysis.fourier_signals(E, kind="square"), np.square(expected), rtol=1e-12)


@given(st.integers(3, 20), st.integers(1, 5), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_signals_obey_parseval(p, d, seed):
    E = embedding(p, d, seed)
    squares = analysis.fourier_signals(E, kind="square")
    weight = np.full(p // 2, 2.0)
    if p % 2 == 0:
        weight[-1] = 1.0  # the last frequency of an even p is its own conjugate
    total = (E.sum(axis=0) ** 2).sum() + (weight * squares).sum()
    assert total == pytest.approx(p * (E**2).sum())


@given(st.integers(0, 12), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_signals_do_not_see_translations_rotations_or_shifts_of_the_tokens(shift, seed):
    E = embedding(13, 4, seed)
    turn = np.linalg.qr(embedding(4, 4, seed + 1))[0]
    moved = np.roll(E, shift, axis=0) @ turn + 5.0
    np.testing.assert_allclose(analysis.fourier_signals(moved), analysis.fourier_signals(E), rtol=1e-9)


def test_a_unit_permutes_the_frequencies():
    E = embedding(11)
    signals = analysis.fourier_signals(E)
    relabelled = analysis.fourier_signals(E[3 * np.arange(11) % 11])
    for k in range(1, 6):
        to = 3 * k % 11
        assert relabelled[min(to, 11 - to) - 1] == pytest.approx(signals[k - 1])


def test_survivors_by_both_rules():
    E = np.concatenate([ring(11, 2), ring(11, 5, 0.7), 0.01 * embedding(11)], axis=1)
    assert analysis.surviving_frequencies(E).tolist() == [2, 5]
    signals = analysis.fourier_signals(E)
    np.testing.assert_array_equal(analysis.survives(signals), [False, True, False, False, True])
    assert analysis.surviving_frequencies(E, threshold=6.0).tolist() == [2]
    assert analysis.surviving_frequencies(E, factor=4).tolist() == []
    batch = np.stack([E, E[::-1]])
    assert analysis.survives(analysis.fourier_signals(batch)).shape == (2, 5)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: analysis.fourier_signals(np.zeros(3)), "E must have the shape (..., tokens, dim), got (3,)"),
        (
            lambda: analysis.fourier_signals(embedding(), kind="x"),
            "kind must be one of 'norm', 'square', got 'x'",
        ),
        (
            lambda: analysis.surviving_frequencies(np.zeros((2, 5, 3))),
            "E must be one embedding (p, d), got the shape (2, 5, 3); see survives",
        ),
        (lambda: analysis.survives([1.0], factor=0), "factor must be a finite number greater than 0, got 0"),
        (
            lambda: analysis.fourier_signals(np.full((5, 2), np.nan)),
            "E must be finite, got 10 NaN or infinite of 10 values",
        ),
    ],
)
def test_signals_refuse_bad_input(call, sentence):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == sentence


# -- statistics ---------------------------------------------------------------------------------------------


def test_intervals_have_their_coverage():
    """Of 2000 experiments with a known truth, about 95 % of the intervals hold it."""
    rng = np.random.default_rng(0)
    held = {"proportion": 0, "mean": 0, "correlation": 0}
    for _ in range(2000):
        held["proportion"] += analysis.proportion(rng.binomial(100, 0.17), 100).covers(0.17)
        held["mean"] += analysis.mean(rng.normal(3, 2, 12)).covers(3)
        x = rng.standard_normal(40)
        held["correlation"] += analysis.correlation(x, 0.6 * x + 0.8 * rng.standard_normal(40)).covers(0.6)
    for name, count in held.items():
        assert 0.93 < count / 2000 < 0.97, name


def test_wilsons_interval_where_nothing_or_everything_succeeds():
    none, all_ = analysis.proportion(0, 100), analysis.proportion(100, 100)
    assert (none.estimate, none.low) == (0, 0)
    assert none.high == pytest.approx(0.0370, abs=1e-4)
    assert all_.low == pytest.approx(1 - none.high)


def test_what_cannot_be_estimated_is_not_a_number():
    for empty in (analysis.proportion(0, 0), analysis.mean([]), analysis.correlation([1, 2, 3], [1, 2, 3])):
        assert np.isnan(empty.estimate)
        assert empty.format() == "-"
    assert np.isnan(analysis.correlation([1, 1, 1, 1], [1, 2, 3, 4]).estimate)
    assert analysis.mean([2.0]).format() == "2.0"
    assert Interval(0.5, 0.25, 0.75, 9).format(0, 100) == "50 [25, 75]"


# -- comparison ---------------------------------------------------------------------------------------------


def ensemble(final, initial=None):
    final = np.asarray(final, float)
    start = np.random.default_rng(5).standard_normal(final.shape) if initial is None else initial
    return Trajectory(np.stack([start, final], axis=1), [0, 1])


def test_disparity_equals_scipys_over_all_relabellings():
    rng = np.random.default_rng(0)
    for tokens in (5, 6):
        first, second = rng.standard_normal((2, tokens, 2)), rng.standard_normal((3, tokens, 2))
        disparity, _ = analysis.procrustes_disparity(first, second)
        expected = [[naive.procrustes_disparity(a, b) for b in second] for a in first]
        np.testing.assert_allclose(disparity, expected, atol=1e-12)


def test_the_same_shape_in_another_guise_is_found_and_aligned():
    shape = embedding(7, 2)
    turn = np.linalg.qr(embedding(2, 2, 3))[0]
    guise = 3.0 * shape[(2 * np.arange(7) + 5) % 7] @ turn + 1.5
    disparity, relabelling = analysis.procrustes_disparity([shape], [guise])
    assert disparity[0, 0] < 1e-12
    assert relabelling[0, 0].tolist() == [2, 5]
    np.testing.assert_allclose(aligned(shape, guise, relabelling[0, 0]), guise, atol=1e-12)


def test_shapes_of_different_dimension_are_comparable():
    flat = embedding(5, 2)
    raised = np.pad(flat, ((0, 0), (0, 1)))
    assert analysis.procrustes_disparity([flat], [raised])[0][0, 0] < 1e-12


def test_compare():
    rng = np.random.default_rng(0)
    circles = [ring(7, k) for k in (1, 2, 3)]
    noise = list(rng.standard_normal((5, 7, 2)))
    comparison = analysis.compare(ensemble(circles + noise), [ensemble(circles[:1]), ensemble(noise[:2])])
    assert comparison.simulated.circles.estimate == pytest.approx(3 / 8)
    assert comparison.trained.circles.estimate == pytest.approx(1 / 3)
    assert comparison.circle_difference.covers(3 / 8 - 1 / 3)
    assert comparison.simulated.imperfections[4] == naive.grid_imperfections(noise[1])
    assert comparison.shapes.disparity.shape == (8, 3)
    np.testing.assert_allclose(comparison.shapes.nearest, 0, atol=1e-12)
    assert (comparison.shapes.nearest_start > 0.05).all()
    assert (comparison.shapes.nearest_trained > 0.01).all()
    test = comparison.imperfections_test
    ours, theirs = comparison.simulated.imperfections[3:], comparison.trained.imperfections[1:]
    wins = np.mean([(a > b) + 0.5 * (a == b) for a in ours for b in theirs])
    assert test.superiority == pytest.approx(wins)
    assert 0 < test.p_value <= 1


def test_compare_where_all_are_circles_or_alone():
    comparison = analysis.compare(ensemble([ring(7, 1)]), ensemble([ring(7, 2)]))
    assert np.isnan(comparison.imperfections_test.p_value)
    assert np.isnan(comparison.simulated.grid_imperfections.estimate)
    assert np.isnan(comparison.shapes.nearest_trained).all()


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (
            np.zeros((1, 5, 2)),
            np.zeros((1, 7, 2)),
            "simulated and trained must have the same number of tokens, got 5 and 7",
        ),
        (np.full((1, 5, 2), np.nan), np.ones((1, 5, 2)), "the final state of simulated must be finite"),
        (np.ones((1, 5, 2)), embedding(5, 2)[None], "first must not hold a shape whose tokens all coincide"),
    ],
)
def test_compare_refuses_bad_input(first, second, sentence):
    with pytest.raises(InputError) as error:
        analysis.compare(ensemble(first), ensemble(second))
    assert str(error.value).startswith(sentence)


def test_ensembles_of_files_must_agree():
    with pytest.raises(
        InputError, match=r"trained must agree in tokens and dimensions, got \[\(5, 2\), \(7, 2\)\]"
    ):
        analysis.compare(ensemble([ring(5, 1)]), [ensemble([ring(5, 1)]), ensemble([ring(7, 1)])])
    with pytest.raises(InputError, match="simulated must be a Trajectory or a sequence of them"):
        analysis.compare([], ensemble([ring(5, 1)]))
