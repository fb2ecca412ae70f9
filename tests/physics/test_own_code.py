"""What measures a system of one's own, and the code by which a run is resumed."""

import functools
import importlib.util
import os
import re
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

import physics
from physics import InputError
from physics.trajectory.provenance import own_code


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


EDITS = {
    "factor": "my_law.FACTOR: '1.0' there, '2.0' here",
    "kernel": "my_law.kernel: ",
    "closure": "my_law.outer.<locals>.<lambda>.closure: '1.0' there, '2.0' here",
    "base": "my_law.Base.advance: ",
    "default": "my_law.Pull.scaled 0: '1.0' there, '2.0' here",
    "deep": "my_helpers.DEEP: '1.0' there, '2.0' here",
    "direct": "my_helpers.direct: ",
}


@pytest.mark.parametrize("edited", EDITS)
@pytest.mark.parametrize("complete", [False, True])
def test_a_run_is_not_resumed_by_code_that_was_edited(law, tmp_path, edited, complete):
    out = tmp_path / "own.h5"
    if complete:
        physics.simulate(law(), steps=6, out=out)
    else:
        with pytest.raises(KeyboardInterrupt):
            physics.simulate(law(), steps=6, out=out, callback=interrupt)
    other, told = law(**{edited: 2.0}), re.escape(f"another configuration (own_code {EDITS[edited]}")
    with pytest.raises(InputError, match=told + r"[^;]*\)$"):
        physics.simulate(other, steps=6, out=out, resume=True)
    found = physics.simulate(law("edited"), steps=6, out=out, resume=True)
    assert found == physics.simulate(law(), steps=6)


def test_what_a_run_may_change_and_what_code_does_not_name_are_not_compared(law):
    counts = law()  # it counts its calls, and keeps them in a list
    systems = [counts, counts, law(table=2.0), law(unused=2.0)]
    made = [physics.simulate(system, steps=3).parameters["own_code"] for system in systems]
    assert made == 4 * made[:1]
    assert made[0].keys() >= {"my_law.Pull", "my_law.Base.advance", "my_law.Pull.start", "my_helpers.other"}


def test_each_process_finds_the_same_code(law, tmp_path):
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


def test_another_python_is_named_and_nothing_else(tmp_path):
    made = physics.simulate(Still(), steps=6)
    code = dict.fromkeys(made.parameters["own_code"], "other digits") | {"compiled by": "pypy-99"}
    there = made.parameters | {"own_code": code}
    physics.Trajectory(made.positions, made.steps, made.times, parameters=there).save(tmp_path / "a.h5")
    told = rf"\(own_code compiled by: 'pypy-99' there, '{sys.implementation.cache_tag}' here\)$"
    with pytest.raises(InputError, match=told):
        physics.simulate(Still(), steps=6, out=tmp_path / "a.h5", resume=True)


def described(text, **names):
    """Return what is stored of a class that is defined by some lines, as in a cell of a notebook."""
    cell = {"__name__": "notebook", "Still": Still, "functools": functools, "np": np, "numba": numba} | names
    exec(text, cell)
    return own_code(cell["Own"]() if isinstance(cell["Own"], type) else cell["Own"])["own_code"]


METHOD = "class Own(Still):\n    def advance(self, p, h, n):\n        p *= "
USED = {
    "lru_cache": "@functools.lru_cache\ndef f():\n    return {}\n" + METHOD + "f()",
    "njit": "@numba.njit\ndef f():\n    return {}\n" + METHOD + "f()",
    "np.vectorize": "@np.vectorize\ndef f(x):\n    return {}\n" + METHOD + "f(1)",
    "partial": "f = functools.partial(lambda a, b: a, {}, b=2)\n" + METHOD + "f()",
    "keyword": "f = functools.partial(lambda a: a, a={})\n" + METHOD + "f()",
    "partial method": "class Own(Still):\n    f = functools.partialmethod(lambda self, a: a, {})",
    "measures": "class Own(Still):\n    measures = {{'size': lambda p: p * {}}}",
    "list": "f = [lambda: {}]\n" + METHOD + "f[0]()",
    "tuple": "f = (lambda: {}, np.zeros(2))\n" + METHOD + "f[0]()",
    "class": "class F:\n    rate = {}\n" + METHOD + "F.rate",
    "instance": "class F:\n    def __call__(self):\n        return {}\nf = F()\n" + METHOD + "f()",
    "method": "class F:\n    def f(self):\n        return {}\nf = F().f\n" + METHOD + "f()",
    "static": "class Own(Still):\n    @staticmethod\n    def f():\n        return {}",
    "getter": "class Own(Still):\n    @property\n    def f(self):\n        return {}",
    "setter": "class Own(Still):\n    def f(self, x):\n        self.x = {}\n    f = property(None, f)",
    "cached": "class Own(Still):\n    @functools.cached_property\n    def f(self):\n        return {}",
    "NumPy": "rate = np.float32({})\n" + METHOD + "rate",
    "enum": "import enum\nclass Rate(enum.Enum):\n    LOW = {}\n" + METHOD + "Rate.LOW.value",
    "attribute": "class K(Still):\n    pass\nOwn = K()\nOwn.f, Own.g = lambda: {}, lambda: 7",
    "keywords": "def f(*, a={}):\n    return a\n" + METHOD + "f()",
    "nested": "def f():\n    return [x * {} for x in (1, 2)]\n" + METHOD + "f()[0]",
    "function": "def Own(x):\n    return x * {}",
    "long": f"rates = ({{}}, {', '.join(map(str, range(99)))})\n" + METHOD + "rates[0]",
    "big": f"rate = {{}} * {10**99}\n" + METHOD + "rate",
}


@pytest.mark.parametrize("text", USED.values(), ids=USED)
def test_what_code_refers_to_is_part_of_it(text):
    one, again, other = (described(text.format(x)) for x in (3, 3, 4))
    assert one == again
    assert one.keys() == other.keys()
    assert sum(one[name] != other[name] for name in one) == 1


def test_names_and_kinds_of_arguments_are_code():
    heads = ("a, b", "b, a", "a, *, b", "a, /, b", "a, *b", "a, **b", "*a, b", "a, b, /")
    found = [described(f"def Own({head}):\n    return a - b")["notebook.Own"] for head in heads]
    assert len({*found}) == len(heads)
    swapped = described("def Own(b, a):\n    return b - a")["notebook.Own"]  # Own(a=1, b=2) is another number
    assert swapped not in found
    plain, told = (described(f"def Own(a):\n    {doc!r}\n    return 'text'") for doc in ("", "It says so."))
    assert plain == told


class Rates(dict):
    __getattr__ = dict.__getitem__


class Loud:
    """Whoever asks it for anything, or prints it, fails."""

    def __getattribute__(self, name):
        raise ReferenceError(name)

    __repr__ = __hash__ = __eq__ = None


SPARED = {
    "dictionary of attributes": (METHOD + "f.rate", lambda: Rates(rate=0.5)),
    "what fails": (METHOD + "f", Loud),
    "a list that grows": (METHOD + "len(f)", lambda: [time.time_ns()]),
    "arrays in a tuple": (METHOD + "f[0]", lambda: (np.full(1, time.time_ns()),)),
    "one that holds itself": (METHOD + "f", lambda: (one := []).append(one) or one),
    "a dictionary of the class": ("class Own(Still):\n    held = dict(a=f)", time.time_ns),
    "a set of the class": ("class Own(Still):\n    held = {'a', f}", time.time_ns),
    "a counter of the class": (METHOD + "1\n        Own.calls += 1\n    calls = f", time.time_ns),
    "a counter elsewhere": (
        "def tick():\n    global f\n    f += 1\n" + METHOD + "f\n        tick()",
        time.time_ns,
    ),
    "a tuple of a million": (METHOD + "f[0]", lambda: tuple(range(10**6))),
    "a number of a million digits": (METHOD + "f", lambda: 1 << 10**6),
    "a cached attribute": (
        "class Own(Still):\n    @functools.cached_property\n    def late(self):\n        return Still()\n"
        "    def __init__(self):\n        self.late if f.pop() else 0",
        iter([[0], [1]]).__next__,
    ),
}


@pytest.mark.parametrize(("text", "made"), SPARED.values(), ids=SPARED)
def test_what_is_no_code_neither_counts_nor_fails(text, made):
    assert described(text, f=made()) == described(text, f=made())


def test_long_chains_of_calls_are_read_once_each():
    lines = [f"def f{k}(x):\n    '''It's \"{k}\".'''\n    return f{k + 1}(f{k + 1}(x))" for k in range(400)]
    found = described("\n".join([*lines, "def f400(x):\n    return 2 * x", METHOD + "f0(1)"]))
    assert {len(found[f"notebook.f{k}"]) for k in range(401)} == {16}
    assert len(found) < 420


class Held:
    """A system that keeps its law in an attribute, and what is its own affair in another."""

    def __init__(self, law, other):
        self.law, self._other = law, other


def test_only_code_of_ones_own_is_stored():
    assert "own_code" not in physics.simulate(physics.ParticleSystem(tokens=3), steps=1).parameters
    free = physics.simulate(physics.PairForces(shrink, 3, 2), steps=1).parameters["own_code"]
    assert list(free) == ["compiled by", f"{__name__}.shrink"]
    nowhere = type("Nowhere", (physics.AffineFlow,), {"__module__": "physics.nowhere"})(np.eye(1), [0.0])
    assert "own_code" not in physics.simulate(nowhere, steps=1, initial=[[1.0]], step_size=1.0).parameters
    kept = type("Kept", (Still, Held), {"__module__": __name__})
    found = physics.simulate(kept(shrink, interrupt), steps=1).parameters["own_code"]
    assert {*found} >= {f"{__name__}.{name}" for name in ("Kept", "Still.start", "Held.__init__", "shrink")}
    assert f"{__name__}.interrupt" not in found


def test_code_of_installed_packages_is_left_out_unless_it_is_what_runs(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "my_package.py").write_text("RATE = 0.5\n\n\nclass Tool:\n    rate = RATE\n")
    monkeypatch.syspath_prepend(folder)
    import my_package

    assert not [name for name in described(METHOD + "f.rate", f=my_package.Tool) if "my_package" in name]
    assert list(own_code(my_package.Tool())["own_code"])[1:] == ["my_package.Tool", "my_package.Tool.rate"]
    monkeypatch.delitem(sys.modules, "my_package")


class Lazy(Still):
    """It computes a table when it is first asked for it."""

    @functools.cached_property
    def table(self):
        return [0.5]

    def advance(self, positions, step_size, steps):
        positions *= self.table[0]


def test_what_a_system_computes_late_is_no_parameter(tmp_path):
    system, out = Lazy(), tmp_path / "late.h5"
    with pytest.raises(KeyboardInterrupt):
        physics.simulate(system, steps=6, out=out, callback=interrupt)
    assert "table" in vars(system)
    assert physics.simulate(system, steps=6, out=out, resume=True).parameters["system"] == {"type": "Lazy"}


def test_a_file_from_before_own_code_was_stored_is_still_returned(law, tmp_path):
    made = physics.simulate(law(), steps=6)
    parameters = {name: value for name, value in made.parameters.items() if name != "own_code"}
    physics.Trajectory(made.positions, made.steps, made.times, parameters=parameters).save(tmp_path / "a.h5")
    assert physics.simulate(law(), steps=6, out=tmp_path / "a.h5", resume=True).parameters == parameters
