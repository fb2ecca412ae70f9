"""The code of one's own by which a run is resumed."""

import dataclasses
import functools
import importlib
import os
import subprocess
import sys
import sysconfig
import time

import numba
import numpy as np
import pytest
from trajectories import Still, interrupt

import physics
from physics import InputError
from physics.trajectory.provenance import own_code

FILES = {
    "my_law": """
import numpy as np
from numba import njit
import my_helpers

# {comment}
FACTOR = {factor}
seen, calls = [], 0


@njit
def kernel(x):
    return {kernel} * x


def outer(closure):
    return lambda self, x: closure * x


class Base:
    def advance(self, positions, step_size, steps):
        positions *= {base}


class Pull(Base):
    tokens, dim, default_step_size = 4, 2, 0.1
    inner = outer({closure})
    calls = 0

    def start(self, generator):
        return generator.standard_normal((4, 2))

    def observables(self, positions):
        type(self).calls += 1
        seen.append(positions)
        sizes = self.scaled(my_helpers.helped(positions)).max((1, 2))
        return {{"size": {own} * self.inner(FACTOR * kernel(sizes))}}

    def scaled(self, size, by={default}):
        return by * size
""",
    "my_helpers": """
from my_package.deep import deep


def helped(x):
    return {helped} * deep(x)
""",
    "my_package": "",
    "my_package.deep": """
import my_package


def deep(x):
    return {deep} * x
""",
}
AS_IT_WAS = dict.fromkeys(
    ("factor", "kernel", "closure", "base", "own", "default", "helped", "deep"), 0.5
) | {"comment": "as it was"}


@pytest.fixture
def law(tmp_path, monkeypatch):
    """Write files of a user's own, and return the system in one of them."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the files change within a second

    def written(**edited):
        for name, text in FILES.items():
            path = tmp_path.joinpath(*name.split("."))
            path = path / "__init__.py" if name == "my_package" else path.with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.format(**AS_IT_WAS | edited))
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("my_law").Pull()

    yield written
    for name in FILES:
        sys.modules.pop(name, None)


def shrink(r2):
    return -1.0


@pytest.mark.parametrize("edited", ["own", "base", "default", "closure"])
@pytest.mark.parametrize("complete", [False, True])
def test_a_run_is_not_resumed_by_code_that_was_edited(law, tmp_path, edited, complete):
    out = begun(law(), tmp_path, complete)
    other = law(**{edited: 2.0})
    with pytest.raises(InputError, match=r"another configuration \(own_code Pull: '[^;]*' here\)$"):
        physics.simulate(other, steps=6, out=out, resume=True)
    found = physics.simulate(law(), steps=6, out=out, resume=True)
    assert found == physics.simulate(law(), steps=6)
    assert list(found.parameters["own_code"]) == ["Pull"]
    assert found.parameters["own_files"].keys() >= FILES.keys()


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        ({"comment": "edited"}, "my_law"),
        ({"factor": 2.0}, "my_law"),
        ({"kernel": 2.0}, "my_law"),
        ({"helped": 2.0}, "my_helpers"),
        ({"deep": 2.0}, "my_package.deep"),
        ({"factor": 2.0, "deep": 2.0}, "my_law, my_package.deep"),
    ],
)
@pytest.mark.parametrize("complete", [False, True])
def test_whoever_resumes_is_told_what_else_was_edited(law, tmp_path, edited, told, complete):
    out = begun(law(), tmp_path, complete)
    other = law(**edited)
    with pytest.warns(
        RuntimeWarning, match=f"was begun with another version of {told}; the code of Pull is the same"
    ):
        physics.simulate(other, steps=6, out=out, resume=True)


def begun(system, tmp_path, complete):
    out = tmp_path / "own.h5"
    if complete:
        physics.simulate(system, steps=6, out=out)
    else:
        with pytest.raises(KeyboardInterrupt):
            physics.simulate(system, steps=6, out=out, callback=interrupt)
    return out


def test_each_process_finds_the_same_code(law, tmp_path):
    made = physics.simulate(law(), steps=1).parameters
    code = "import my_law; from physics.trajectory.provenance import own_code as own\n"
    code += "made = own(my_law.Pull()); print(made['own_code'], made['own_files']['my_law'])"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    for seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == f"{made['own_code']} {made['own_files']['my_law']}"


def described(text, **names):
    """Return what is stored of a class that is defined by some lines, as in a cell of a notebook."""
    cell = {"__name__": "notebook", "Still": Still, "functools": functools, "np": np, "numba": numba} | names
    exec(text, cell)
    return own_code(cell["Own"]() if type(cell["Own"]) is type else cell["Own"])["own_code"]


METHOD = "class Own(Still):\n    "
USED = {
    "method": METHOD + "def f(self):\n        return {}",
    "default": METHOD + "def f(self, a={}):\n        pass",
    "keyword": METHOD + "def f(self, *, a={}):\n        pass",
    "nested": METHOD + "def f(self):\n        return [lambda: {} for x in 'ab']",
    "lru_cache": METHOD + "@functools.lru_cache\n    def f(self):\n        return {}",
    "njit": METHOD + "@staticmethod\n    @numba.njit\n    def f():\n        return {}",
    "np.vectorize": METHOD + "f = np.vectorize(lambda x: {})",
    "partial method": METHOD + "f = functools.partialmethod(lambda self, a: a, {})",
    "partial": METHOD + "f = functools.partial(lambda a: a, a={})",
    "wrapped": "def same(f):\n    @functools.wraps(f)\n    def g(x):\n        return f(x)\n    return g\n"
    + METHOD
    + "@same\n    def f(self):\n        return {}",
    "measures": METHOD + "measures = {{'size': lambda p: p * {}}}",
    "number": METHOD + "rate = {}",
    "NumPy": METHOD + "rate = np.float32({})",
    "tuple": METHOD + "rates = ({}, 'a', None, np.zeros(2))",
    "tuples": METHOD + "rates = (((), ({}, 1)), (2, 3))",
    "time": METHOD + "dt = np.timedelta64({}, 'ms')",
    "big": METHOD + f"rate = {{}} * {10**99}",
    "static": METHOD + "@staticmethod\n    def f():\n        return {}",
    "class method": METHOD + "@classmethod\n    def f(cls):\n        return {}",
    "getter": METHOD + "@property\n    def f(self):\n        return {}",
    "setter": METHOD + "def set(self, x):\n        self.x = {}\n    f = property(None, set)\n    del set",
    "cached": METHOD + "@functools.cached_property\n    def f(self):\n        return {}",
    "base": "class Base(Still):\n    rate = {}\nclass Own(Base):\n    pass",
    "inner class": METHOD + "class Inner:\n        rate = {}",
    "enum": "import enum\nclass Rate(enum.Enum):\n    LOW = {}\n" + METHOD + "rate = Rate.LOW",
    "attribute": METHOD + "pass\nOwn = Own()\nOwn.f, Own.g = lambda: {}, lambda: 7",
    "partial attribute": METHOD + "pass\nOwn = Own()\nOwn.f = functools.partial(lambda a: a, {})",
    "function": "def Own(x):\n    return x * {}",
    "partial function": "Own = functools.partial(lambda a: a, {})",
    "frozen set": "def Own(x):\n    return x in {{1, {}}}",
}


@pytest.mark.parametrize("text", USED.values(), ids=USED)
def test_what_code_refers_to_is_part_of_it(text):
    one, again, other = (described(text.format(x)) for x in (3, 3, 4))
    assert one == again
    assert one.keys() == other.keys()
    assert one != other


def test_names_and_kinds_of_arguments_are_code():
    heads = ("a, b", "b, a", "a, *, b", "a, /, b", "a, *b", "a, **b", "*a, b", "a, b, /")
    found = [described(f"def Own({head}):\n    return a - b")["Own"] for head in heads]
    assert len({*found}) == len(heads)
    swapped = described("def Own(b, a):\n    return b - a")["Own"]  # Own(a=1, b=2) is another number
    assert swapped not in found
    plain, told = (described(f"def Own(a):\n    {doc!r}\n    return 'text'") for doc in ("", "It says so."))
    assert plain == told


def test_where_an_error_is_caught_is_code():
    head, tail = "def Own(a, b, c):\n    try:\n        ", "    except ValueError:\n        return c()\n"
    found = [
        described(f"{head}a()\n        b()\n{tail}"),
        described(f"{head}a()\n{tail}    else:\n        b()\n"),
    ]
    assert found[0] != found[1]


class Loud:
    """Whoever asks it for anything fails."""

    def __getattribute__(self, name):
        raise ReferenceError(name)

    __repr__ = __hash__ = __eq__ = None


class Rates(dict):
    __getattr__ = dict.__getitem__


SPARED = {
    "what fails": (METHOD + "f = f", Loud),
    "a dictionary of attributes": (METHOD + "f = f", lambda: Rates(rate=0.5)),
    "arrays in a tuple": (METHOD + "f = (np.full(1, f),)", time.time_ns),
    "a dictionary": (METHOD + "held = dict(a=f)", time.time_ns),
    "a set": (METHOD + "held = {'a', f}", time.time_ns),
    "a counter": (
        METHOD + "calls = f\n    def advance(self, p, h, n):\n        Own.calls += 1",
        time.time_ns,
    ),
    "a counter of the class": (
        METHOD + "n = f\n    @classmethod\n    def tick(cls):\n        cls.n += 1",
        time.time_ns,
    ),
    "late": (METHOD + "k = f\n    @property\n    def kernel(self):\n        Own.k = 1", time.time_ns),
    "a counter that is kept": (
        "def made(n):\n    def advance(self, *_):\n        nonlocal n\n        n += 1\n    return advance\n"
        + METHOD
        + "advance = made(f)",
        time.time_ns,
    ),
    "a cell that is empty": (
        "def made():\n    def advance(self, p, h, s):\n        late()\n    return advance\n    late = 1\n"
        + METHOD
        + "advance = made()",
        int,
    ),
    "a tuple of a million": (METHOD + "f = f", lambda: tuple(range(10**6))),
    "a number of a million digits": (METHOD + "f = f", lambda: 1 << 10**6),
    "tuples in each other": (
        METHOD + "f = f",
        lambda: functools.reduce(lambda t, _: (t, 1), range(10**4), ()),
    ),
    "a cached attribute": (
        METHOD + "@functools.cached_property\n    def late(self):\n        return Still()\n"
        "    def __init__(self):\n        self.late if f.pop() else 0",
        iter([[0], [1]]).__next__,
    ),
    "what is private": (METHOD + "def __init__(self):\n        self._f = lambda: f\n", time.time_ns),
}


@pytest.mark.parametrize(("text", "made"), SPARED.values(), ids=SPARED)
def test_what_is_no_code_neither_counts_nor_fails(text, made):
    assert described(text, f=made()) == described(text, f=made())


def test_a_line_that_resumes_is_another_line(tmp_path):
    out = tmp_path / "own.h5"
    first = physics.simulate(physics.PairForces(lambda r2: -r2, 3, 2), steps=6, out=out)
    assert physics.simulate(physics.PairForces(lambda r2: -r2, 3, 2), steps=6, out=out, resume=True) == first
    with pytest.raises(InputError, match=r"another configuration \(own_code "):
        physics.simulate(physics.PairForces(lambda r2: -2 * r2, 3, 2), steps=6, out=out, resume=True)


def test_functions_within_functions_have_an_end():
    text = "Own = lambda x: {}\nfor _ in range(1000):\n    Own = (lambda g: lambda x: g(x))(Own)"
    assert described(text.format(1)) == described(text.format(1))


@pytest.mark.parametrize("digits", [4000, 5000])
def test_a_constant_of_many_digits(digits):
    found = [described(f"def Own(x):\n    return x & 0x{k * digits}") for k in "ef"]
    assert found[0] != found[1]


@dataclasses.dataclass(frozen=True)
class Kind:
    """It keeps a class, and not an instance of it."""

    kind: type = Still
    part: object = dataclasses.field(default_factory=Still)
    late: float = dataclasses.field(init=False)


def test_a_class_in_a_field_is_a_class():
    assert list(own_code(Kind())["own_code"]) == ["Kind", "Still"]
    assert own_code(3, "text", None, np.zeros(3), [Still()]) == {}


class Held:
    """A system that keeps its law in an attribute, and what is its own affair in another."""

    def __init__(self, law, other):
        self.law, self._other = law, other


def test_only_code_of_ones_own_is_stored():
    assert "own_code" not in physics.simulate(physics.ParticleSystem(tokens=3), steps=1).parameters
    free = physics.simulate(physics.PairForces(shrink, 3, 2), steps=1).parameters
    assert list(free["own_code"]) == ["shrink"]
    assert __name__ in free["own_files"]
    nowhere = type("Nowhere", (physics.AffineFlow,), {"__module__": "physics.nowhere"})(np.eye(1), [0.0])
    assert "own_code" not in physics.simulate(nowhere, steps=1, initial=[[1.0]], step_size=1.0).parameters
    kept = type("Kept", (Still, Held), {"__module__": __name__})
    assert list(own_code(kept(shrink, interrupt))["own_code"]) == ["Kept", "shrink"]


def test_files_of_installed_packages_are_left_out(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "my_tools.py").write_text("class Tool:\n    rate = 0.5\n")
    monkeypatch.syspath_prepend(folder)
    found = own_code(importlib.import_module("my_tools").Tool())
    assert list(found["own_code"]) == ["Tool"]
    assert "my_tools" not in found["own_files"]
    importlib.import_module(sysconfig._get_sysconfigdata_name())  # its name is no stdlib module's
    assert not [name for name in own_code(Still())["own_files"] if name.startswith("_")]
    del sys.modules["my_tools"]


@pytest.mark.parametrize("command", [["-m", "my_law"], ["my_law.py"]])
def test_a_script_is_the_module_that_it_would_be(law, tmp_path, command):
    law()
    with (tmp_path / "my_law.py").open("a") as file:
        file.write("from physics.trajectory.provenance import own_code\n")
        file.write("print(own_code(Pull())['own_files']['my_law'])\n")
    run = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True)
    del sys.modules["my_law"]
    assert run.stdout.strip() == own_code(importlib.import_module("my_law").Pull())["own_files"]["my_law"]


def test_a_file_from_before_own_code_was_stored_is_still_returned(law, tmp_path):
    made = physics.simulate(law(), steps=6)
    parameters = {name: value for name, value in made.parameters.items() if not name.startswith("own_")}
    physics.Trajectory(made.positions, made.steps, made.times, parameters=parameters).save(tmp_path / "a.h5")
    assert physics.simulate(law(), steps=6, out=tmp_path / "a.h5", resume=True).parameters == parameters
