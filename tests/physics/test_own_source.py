"""What measures a system of one's own, and the source code by which a run is resumed."""

import importlib.util
import sys

import numpy as np
import pytest

import physics
from physics import InputError


class Still:
    """It does not move."""

    tokens, dim, default_step_size = 4, 2, 0.1

    def start(self, generator):
        return generator.standard_normal((4, 2))

    def advance(self, positions, step_size, steps):
        return positions


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


def test_ragged_observables_are_refused_in_a_sentence():
    ragged = with_(observables=lambda self, positions: {"near": [[1, 2], [3]]})
    with pytest.raises(InputError, match=r"^observable 'near' of Own must have rows of equal lengths, got "):
        physics.simulate(ragged, runs=2)


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


LAW = """
class Base:
    def advance(self, positions, step_size, steps):
        positions *= {base}


class Pull(Base):
    tokens, dim, default_step_size = 4, 2, 0.1

    def start(self, generator):
        return generator.standard_normal((4, 2))

    def observables(self, positions):
        return {{"size": {own} * positions.max(axis=(1, 2))}}
"""


@pytest.fixture
def law(tmp_path, monkeypatch):
    """Write a file of a user's own, and return the system in it."""

    def written(base="0.5", own="1.0"):
        path = tmp_path / "my_law.py"
        path.write_text(LAW.format(base=base, own=own))
        spec = importlib.util.spec_from_file_location("my_law", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "my_law", module)
        spec.loader.exec_module(module)
        return module.Pull()

    return written


def shrink(r2):
    return -1.0


def interrupt(step, *_):
    if step == 3:
        raise KeyboardInterrupt


@pytest.mark.parametrize("edited", [{"base": "0.25 * 2"}, {"own": "1.5 + 1"}], ids=["base", "class"])
@pytest.mark.parametrize("complete", [False, True])
def test_a_run_is_not_resumed_by_a_class_that_was_edited(law, tmp_path, edited, complete):
    out = tmp_path / "own.h5"
    if complete:
        physics.simulate(law(), steps=6, out=out)
    else:
        with pytest.raises(KeyboardInterrupt):
            physics.simulate(law(), steps=6, out=out, callback=interrupt)
    with pytest.raises(InputError, match=r"another configuration \(source_code: .*'Pull': '[0-9a-f]{16}'"):
        physics.simulate(law(**edited), steps=6, out=out, resume=True)
    found = physics.simulate(law(), steps=6, out=out, resume=True)
    assert found == physics.simulate(law(), steps=6)
    assert list(found.parameters["source_code"]) == ["Pull", "Base"]


def test_only_source_code_of_ones_own_is_stored():
    for system in (physics.ParticleSystem(tokens=3), physics.PairForces(shrink, 3, 2)):
        assert "source_code" not in physics.simulate(system, steps=1).parameters
    nowhere = type("Nowhere", (physics.AffineFlow,), {"__module__": "nowhere"})(np.eye(1), [0.0])
    assert "source_code" not in physics.simulate(nowhere, steps=1, initial=[[1.0]], step_size=1.0).parameters
    assert list(physics.simulate(Still(), steps=1).parameters["source_code"]) == ["Still"]


def test_a_file_from_before_source_code_was_stored_is_still_returned(law, tmp_path):
    made = physics.simulate(law(), steps=6)
    parameters = {name: value for name, value in made.parameters.items() if name != "source_code"}
    physics.Trajectory(made.positions, made.steps, made.times, parameters=parameters).save(tmp_path / "a.h5")
    assert physics.simulate(law(), steps=6, out=tmp_path / "a.h5", resume=True).parameters == parameters
