"""Clocks in a file that do not fit what they time, and the smallest numbers of points."""

import h5py
import numpy as np
import pytest

import physics
from physics import Trajectory

STEPS, OWN = np.array([0, 3, 4, 9, 12]), np.arange(0, 14, 2)
PLACES = {"particles/tokens/position": STEPS, "observables/signals": OWN}


def stored(path):
    """A file of five frames, with an observable of seven frames of its own."""
    rng = np.random.default_rng(0)
    Trajectory(
        rng.standard_normal((2, 5, 3, 1)),
        STEPS,
        0.5 * STEPS,
        observables={"signals": rng.random((2, 7))},
        clocks={"signals": (OWN, 0.5 * OWN)},
    ).save(path)
    return path


def put(path, place, values):
    """Put other values in the place of a dataset, and of the links that observables have to it."""
    with h5py.File(path, "r+") as file:
        del file[place]
        file[place] = values


@pytest.mark.parametrize("kind", ["u1", "i2", "u8"])
@pytest.mark.parametrize("precision", ["f4", "f8"])
def test_clocks_of_other_programs_may_have_other_sizes(kind, precision, tmp_path):
    path = stored(tmp_path / "t.h5")
    for place, steps in PLACES.items():
        put(path, f"{place}/step", steps.astype(kind))
        put(path, f"{place}/time", (0.25 * steps).astype(precision))
    found = physics.load(path)
    for clock, steps in ((found.clock("signals"), OWN), ((found.steps, found.times), STEPS)):
        assert [one.dtype for one in clock] == [np.int64, np.float64]
        np.testing.assert_array_equal(clock[0], steps)
        np.testing.assert_array_equal(clock[1], 0.25 * steps)


@pytest.mark.parametrize("runs", [1, 4])
def test_a_run_may_have_a_single_token(runs, tmp_path):
    points = np.arange(2.0 * runs).reshape(runs, 2, 1, 1)
    Trajectory(points, [0, 1]).save(tmp_path / "t.h5")
    found = physics.load(tmp_path / "t.h5")
    assert (found.runs, found.tokens) == (runs, 1)
    np.testing.assert_array_equal(found.positions, points)
