"""Systems of one's own: what `simulate` takes, and what it refuses before anything is written."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import physics
from physics import InputError, SimulationError

RATE = -0.3


@dataclass(frozen=True)
class InPlace:
    """Decays, in place."""

    tokens: int = 4
    dim: int = 2
    default_step_size = 0.1

    def start(self, generator):
        return generator.standard_normal((self.tokens, self.dim))

    def advance(self, positions, step_size, steps):
        for _ in range(steps):
            positions += step_size * RATE * positions


class Returning(InPlace):
    def advance(self, positions, step_size, steps):
        for _ in range(steps):
            positions = positions + step_size * RATE * positions
        return positions


class Both(InPlace):
    def advance(self, positions, step_size, steps):
        super().advance(positions, step_size, steps)
        return positions[:]


class OneBuffer(Returning):
    """Returns its own array each time, and spoils what it has returned before."""

    kept = np.zeros((3, 4, 2))

    def advance(self, positions, step_size, steps):
        moved = super().advance(positions, step_size, steps)
        buffer = self.kept[: len(moved)]
        buffer[:] = moved
        return buffer


class Plain:
    """No dataclass, and not frozen."""

    tokens, dim = 4, 2

    def __init__(self):
        self.rate, self.weights, self.law = RATE, np.array([1.0, 2.0]), lambda x: x
        self._scratch = np.zeros(3)

    def start(self, generator):
        return generator.standard_normal((4, 2))

    def advance(self, positions, step_size, steps):
        for _ in range(steps):
            positions += step_size * self.rate * positions


@pytest.mark.parametrize(
    "system", [InPlace(), Returning(), Both(), OneBuffer(), Plain()], ids=lambda system: type(system).__name__
)
@pytest.mark.parametrize("record", [1, 3])
def test_in_place_or_returned_the_run_is_the_same(system, record, tmp_path):
    options = {"steps": 7, "runs": 3, "step_size": 0.1, "record": record, "seed": 2}
    found = physics.simulate(system, **options, out=tmp_path / "own.h5")
    for run, child in enumerate(np.random.SeedSequence(2).spawn(3)):
        expected = np.random.default_rng(child).standard_normal((4, 2))
        np.testing.assert_array_equal(found.initial[run], expected)
        for step in range(1, 8):
            expected = expected + 0.1 * RATE * expected
            if step in found.steps:
                frame = found.steps.tolist().index(step)
                np.testing.assert_allclose(found.positions[run, frame], expected, rtol=1e-14)
    assert found.parameters["system"]["type"] == type(system).__name__


def test_a_system_that_returns_goes_on_after_a_kill_too(tmp_path):
    out = tmp_path / "own.h5"

    class Killed(Returning):
        left = 3

        def advance(self, positions, step_size, steps):
            if not Killed.left:
                raise KeyboardInterrupt
            Killed.left -= 1
            return super().advance(positions, step_size, steps)

    options = {"steps": 6, "runs": 2, "out": out}
    with pytest.raises(KeyboardInterrupt):
        physics.simulate(Killed(), **options)
    Killed.left = 100
    resumed = physics.simulate(Killed(), **options, resume=True)
    np.testing.assert_array_equal(resumed.positions, physics.simulate(Returning(), steps=6, runs=2).positions)


def test_what_is_stored_of_an_object_that_is_no_dataclass():
    stored = physics.simulate(Plain(), steps=1, step_size=0.1).parameters["system"]
    assert stored == {"type": "Plain", "rate": RATE, "weights": [1.0, 2.0]}
    json.dumps(stored)


def test_an_overflow_of_returned_positions_is_named():
    class Growing(Returning):
        def advance(self, positions, step_size, steps):
            with np.errstate(over="ignore"):
                return positions * 1e100**steps

    with pytest.raises(SimulationError, match=r"the state overflowed in step 4; .* up to step 2 are kept"):
        physics.simulate(Growing(), steps=8, record=2, initial=np.ones((4, 2)))


def test_a_run_that_a_callback_ended_is_complete_and_is_not_continued(tmp_path):
    def callback(step, *_):
        if step == 5:
            raise StopIteration

    options = {"system": InPlace(), "steps": 10, "out": tmp_path / "own.h5"}
    ended = physics.simulate(**options, callback=callback)
    again = physics.simulate(**options, resume=True)
    assert ended.steps.tolist() == again.steps.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(again.positions, ended.positions)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("at", [0, 3, 6, 7])
def test_a_callback_sees_every_frame_and_may_end_the_run(at, stored, tmp_path):
    seen = []

    def callback(step, time, positions, observables):
        seen.append((step, time, positions, observables))
        positions = positions + 0
        if step == at:
            raise StopIteration

    class Measured(InPlace):
        def observables(self, positions):
            return {"first": positions[:, 0]}  # a view, which the next step changes

    options = {"steps": 7, "runs": 2, "step_size": 0.5, "record": 3}
    whole = physics.simulate(Measured(), **options)
    out = tmp_path / "own.h5" if stored else None
    found = physics.simulate(Measured(), **options, out=out, callback=callback)
    kept = [step for step in (0, 3, 6, 7) if step <= at]
    assert found.complete
    assert found.steps.tolist() == [step for step, *_ in seen] == kept
    for frame, (step, time, positions, observables) in enumerate(seen):
        assert time == 0.5 * step
        np.testing.assert_array_equal(positions, whole.positions[:, frame])
        np.testing.assert_array_equal(observables["first"], whole.positions[:, frame, 0])
    np.testing.assert_array_equal(found.positions, whole.positions[:, : len(kept)])
    np.testing.assert_array_equal(found.observables["first"], whole.observables["first"][:, : len(kept)])
    if stored:
        assert [path.name for path in tmp_path.iterdir()] == ["own.h5"]


def test_what_a_callback_does_to_its_copies_does_not_reach_the_run():
    def spoil(step, time, positions, observables):
        positions[:] = np.nan

    found = physics.simulate(InPlace(), steps=3, callback=spoil)
    np.testing.assert_array_equal(found.positions, physics.simulate(InPlace(), steps=3).positions)


def test_a_wrong_shape_in_the_middle_keeps_what_was_right(tmp_path):
    class Late(Returning):
        def advance(self, positions, step_size, steps):
            return positions[:, :-1] if positions.max() > 4 else 2 * positions

    with pytest.raises(InputError, match=r"Late.advance must be None or .* \(1, 4, 2\), got .* \(1, 3, 2\)$"):
        physics.simulate(Late(), steps=5, initial=np.ones((4, 2)), out=tmp_path / "own.h5")
    kept = physics.load(tmp_path / "own.h5.partial")
    np.testing.assert_array_equal(kept.positions[0, :, 0, 0], [1, 2, 4, 8])
