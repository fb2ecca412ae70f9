import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analysis
from analysis.statistics import Interval
from physics import InputError


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


def test_a_signal_at_the_limit_does_not_survive():
    assert analysis.survives([6.0, 2.0, 2.0, 2.0]).tolist() == [False] * 4, "twice the mean, and not above it"
    assert not analysis.survives(np.zeros((2, 5))).any()


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
