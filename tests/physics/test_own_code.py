"""What measures a system of one's own, and the code by which a run is resumed."""

import importlib.util
import os
import subprocess
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
import numpy as np
from numba import njit
import my_helpers
from my_helpers import helped

FACTOR = {factor}
TABLE = np.full(3, {table})
seen, calls = [], 0


@njit
def kernel(x):
    return {kernel} * x


def outer(closure):
    return lambda x: closure * x


inner = outer({closure})


class Base:
    def advance(self, positions, step_size, steps):
        # {comment}
        positions *= {base}


class Pull(Base):
    tokens, dim, default_step_size = 4, 2, 0.1

    def start(self, generator):
        return generator.standard_normal((4, 2))

    def observables(self, positions):
        global calls
        calls += 1
        seen.append(calls)
        size = inner(FACTOR * kernel(helped(my_helpers.direct(positions.max(axis=(1, 2))))))
        return {{"size": self.scaled(size), "table": TABLE[:1].repeat(len(positions))}}

    def scaled(self, size, by={default}):
        return by * size
"""
HELPERS = """
UNUSED = {unused}
DEEP = {deep}


def deep(x):
    return DEEP * x if x.size else other(x)


def other(x):
    return deep(x)


def helped(x):
    return deep(x)


def direct(x):
    return {direct} * x
"""
AS_IT_WAS = dict.fromkeys(
    ("factor", "table", "kernel", "closure", "base", "default", "unused", "deep", "direct"), 1.0
)


@pytest.fixture
def law(tmp_path, monkeypatch):
    """Write two files of a user's own, and return the system in one of them."""

    def written(comment="as it was", **edited):
        for name, text in (("my_helpers", HELPERS), ("my_law", LAW)):
            path = tmp_path / f"{name}.py"
            path.write_text(text.format(comment=comment, **AS_IT_WAS | edited))
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, module)
            exec(compile(path.read_text(), path, "exec"), vars(module))  # never from a cache
        return module.Pull()

    return written


def shrink(r2):
    return -1.0


def interrupt(step, *_):
    if step == 3:
        raise KeyboardInterrupt


@pytest.mark.parametrize("edited", ["factor", "kernel", "closure", "base", "default", "deep", "direct"])
@pytest.mark.parametrize("complete", [False, True])
def test_a_run_is_not_resumed_by_code_that_was_edited(law, tmp_path, edited, complete):
    out = tmp_path / "own.h5"
    if complete:
        physics.simulate(law(), steps=6, out=out)
    else:
        with pytest.raises(KeyboardInterrupt):
            physics.simulate(law(), steps=6, out=out, callback=interrupt)
    with pytest.raises(
        InputError, match=r"another configuration \(own_code: .*'Pull': '[a-z]+-\d+:[0-9a-f]{64}'"
    ):
        physics.simulate(law(**{edited: 2.0}), steps=6, out=out, resume=True)
    found = physics.simulate(law("edited"), steps=6, out=out, resume=True)
    assert found == physics.simulate(law(), steps=6)
    assert list(found.parameters["own_code"]) == ["Pull"]


def test_what_a_run_may_change_and_what_code_does_not_name_are_not_compared(law):
    counts = law()  # it counts its calls, and keeps them in a list
    systems = [counts, counts, law(table=2.0), law(unused=2.0)]
    made = [physics.simulate(system, steps=3).parameters["own_code"] for system in systems]
    assert made == 4 * made[:1]


def test_each_process_finds_the_same_fingerprint(law, tmp_path):
    ours = physics.simulate(law(), steps=1).parameters["own_code"]
    code = "import my_law, physics; print(physics.simulate(my_law.Pull(), steps=1).parameters['own_code'])"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    for seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == str(ours)


class Held:
    """A system that keeps its law in an attribute, and what is its own affair in another."""

    def __init__(self, law):
        self.law, self._other = law, interrupt


def test_only_code_of_ones_own_is_stored():
    for system in (physics.ParticleSystem(tokens=3), physics.PairForces(shrink, 3, 2)):
        found = physics.simulate(system, steps=1).parameters.get("own_code", {})
        assert list(found) == ["shrink"] * isinstance(system, physics.PairForces)
    nowhere = type("Nowhere", (physics.AffineFlow,), {"__module__": "physics.nowhere"})(np.eye(1), [0.0])
    assert "own_code" not in physics.simulate(nowhere, steps=1, initial=[[1.0]], step_size=1.0).parameters
    assert list(physics.simulate(Still(), steps=1).parameters["own_code"]) == ["Still"]
    kept = type("Kept", (Still, Held), {})
    for law in (shrink, Still()):
        named = getattr(law, "__name__", "Still")
        assert list(physics.simulate(kept(law), steps=1).parameters["own_code"]) == ["Kept", named]


def test_a_file_from_before_own_code_was_stored_is_still_returned(law, tmp_path):
    made = physics.simulate(law(), steps=6)
    parameters = {name: value for name, value in made.parameters.items() if name != "own_code"}
    physics.Trajectory(made.positions, made.steps, made.times, parameters=parameters).save(tmp_path / "a.h5")
    assert physics.simulate(law(), steps=6, out=tmp_path / "a.h5", resume=True).parameters == parameters
