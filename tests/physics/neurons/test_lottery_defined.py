"""The lottery where numbers are extreme or neurons differ: against its symmetries and its definition."""

import numpy as np
import pytest
from edges import taken_and_refused

from physics import FourierLottery, simulate

RACE = FourierLottery(5, coupling=0.5)  # two frequencies; time is that of the three waves themselves


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("real", "times"), [(109.8, (0.0, 0.005, 0.05, 0.09)), (-109.8, (0.0, 0.005, 1.0, 2.8))]
)
def test_a_phase_that_underflows_moves_as_one_that_is_zero(real, times, sign):
    """M and the roots of its cubic underflow, and no phase is NaN, not even beyond the turning point."""
    theta, tiny, none = np.full(2, 0.0062), np.full(2, real + sign * 1.1e-298j), np.full(2, real)
    for found, wanted in zip(RACE.solve(theta, tiny, times), RACE.solve(theta, none, times), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    rate = np.log(np.abs(RACE.solve(theta, tiny, 1e-6)[0] / theta)) / 1e-6
    np.testing.assert_allclose(rate, RACE.velocity(theta, tiny)[0].real / theta, rtol=1e-6)
    last = 0.99 * RACE.blowup_times(theta, tiny)
    assert all(np.isfinite(part).all() for part in RACE.solve(theta, tiny, last))


def test_an_output_wave_that_is_zero_begins_at_twice_the_phase_of_its_input():
    theta = np.array([0.3 + 0.2j, -0.1 + 0.4j])
    moved, grown = RACE.solve(theta, np.zeros(2), 0.01)
    np.testing.assert_allclose(np.angle(grown), np.angle(theta**2), atol=1e-12)
    np.testing.assert_allclose(grown, 0.01 * RACE.velocity(theta, np.zeros(2))[1], rtol=1e-3)
    np.testing.assert_allclose(np.angle(moved), np.angle(theta), atol=1e-12)


def test_a_frequency_that_never_diverges_loses_to_one_that_does():
    theta, xi = [[1, 1], [1, 1], [1, 1], [0, 0]], [[1, -2], [-2, 1], [-2, -2], [1, 1]]
    times = RACE.blowup_times(theta, xi)
    assert np.isinf(times).tolist() == [[False, True], [True, False], [True, True], [True, True]]
    assert RACE.winners(theta, xi).tolist() == [1, 2, 0, 0]


def test_the_mean_over_the_tokens_stays_as_it_is():
    """The flow moves waves alone, and a constant weight is none of them."""
    race = FourierLottery(8, neurons=3)
    start = race.start(np.random.default_rng(6))
    start -= start.mean(axis=0)
    mean = np.array([1.0, 2, -3, 4, 5, -6])
    shifted = simulate(race, steps=6, step_size=3.0, initial=start + mean, record_every=2)
    centered = simulate(race, steps=6, step_size=3.0, initial=start, record_every=2)
    np.testing.assert_allclose(shifted.positions, centered.positions + mean, atol=1e-13)
    assert np.abs(centered.final - start).max() > 1e-3
    for name, values in centered.observables.items():
        np.testing.assert_allclose(shifted.observables[name], values, rtol=1e-9, atol=1e-15)


def test_the_smallest_ratio_is_taken_and_a_smaller_one_refused():
    taken_and_refused(
        lambda size: RACE.blowup_times([1, size * 1e-145], [2, 2]), 2, 1.9,
        "theta must be 0 or at least 1e-145 times xi in size, got 1.9e-145 for xi of 2",
    )  # fmt: skip


@pytest.mark.parametrize("wave", ["theta", "xi"])
def test_the_last_frequency_of_an_even_number_of_tokens_has_no_phase(wave):
    race, real = FourierLottery(4), {"theta": np.array([1, 1]), "xi": np.array([1, 1])}
    taken_and_refused(
        lambda last: race.blowup_times(**(real | {wave: [1j, last]})), -1, 1j,
        "theta and xi must be real at frequency 2 of 4 tokens, which has a sign and no phase, got complex "
        "values",
    )  # fmt: skip


def test_a_state_diverges_at_its_time_and_not_before():
    theta, xi = np.array([2.0, 0.3]), np.array([0.5, 0.1])
    ahead = RACE.blowup_times(theta, xi).min()
    behind = -RACE.blowup_times(theta, -xi).min()  # backward in time, the sign of ξ is that of time
    for end, inside in ((ahead, np.nextafter(ahead, 0)), (behind, np.nextafter(behind, 0))):
        sentence = f"times must be between the divergences of every state, got {end:g}: the neuron diverges"
        named = f"{sentence} at t* = {end:.6g} in frequency 1"
        taken_and_refused(lambda t: RACE.solve(theta, xi, [0, t]), inside, end, named)


def test_at_time_zero_nothing_has_moved():
    race = FourierLottery(7, neurons=2)
    theta, xi = race.unpack(race.start(np.random.default_rng(1)))
    for found, wanted in zip(race.solve(theta, xi, [0.0, 1.0, 0.0]), (theta, xi), strict=True):
        np.testing.assert_array_equal(found[0], wanted)
        np.testing.assert_array_equal(found[2], wanted)
        assert (found[1] != wanted).all()
