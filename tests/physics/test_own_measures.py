"""What a system of one's own measures, and what it computes late."""

import numpy as np
import pytest
from trajectories import Still

import physics
from physics import InputError


def with_(**members):
    return type("Own", (Still,), members)()


def centered(positions):
    positions -= positions.mean(axis=1, keepdims=True)
    return positions.max(axis=(1, 2))


@pytest.mark.parametrize(
    ("members", "observables"),
    [
        ({"observables": lambda self, positions: {"size": centered(positions)}}, ()),
        ({"measures": {"size": centered}}, ("size",)),
    ],
    ids=["always", "on request"],
)
def test_to_measure_may_not_move_the_points(members, observables, tmp_path):
    start = np.arange(8.0).reshape(4, 2)
    kept = start.copy()
    with pytest.raises(InputError, match=r"^observables of Own must not change the positions that they mea"):
        physics.simulate(
            with_(**members), steps=2, observables=observables, initial=start, out=tmp_path / "own.h5"
        )
    np.testing.assert_array_equal(start, kept)
    assert not list(tmp_path.iterdir())


def test_what_was_measured_is_a_copy():
    buffer, seen = np.zeros(2), []

    def observables(self, positions):
        buffer[:] += 1
        return {"count": buffer}

    found = physics.simulate(
        with_(observables=observables),
        runs=2,
        steps=3,
        callback=lambda *frame: seen.append(frame[3]["count"]),
    )
    np.testing.assert_array_equal(np.stack(seen, axis=1), found.observables["count"])
    assert found.observables["count"].tolist() == 2 * [[1, 2, 3, 4]]
