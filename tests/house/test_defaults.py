"""The defaults that docstrings state are those that the code has, in all four packages."""

import ast
import re

import pytest
from test_house import PACKAGES, ROOT, short, sources

STATED = re.compile(r"^(?P<names>\w+(?:, \w+)*) : .*\bdefault (?P<values>.+)$", re.MULTILINE)
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources(*PACKAGES)}


def constants(tree):
    """Values of the constants at the head of a module."""
    return {
        node.targets[0].id: ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


CONSTANTS = {path: constants(tree) for path, tree in TREES.items()}
EVERYWHERE = {name: value for found in CONSTANTS.values() for name, value in found.items()}


def defaults(node):
    """Default of each parameter of a function or of a class, and of each field, as a syntax tree."""
    found = {}
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.value:
                found[part.target.id] = part.value
            elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
                found |= defaults(part)
        return found
    given = node.args
    placed = [*given.posonlyargs, *given.args]
    found |= zip(
        [one.arg for one in placed[len(placed) - len(given.defaults) :]], given.defaults, strict=True
    )
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return found | {one.arg: value for one, value in named if value is not None}


SPOKEN = {"np.nan": "NaN", "np.inf": "inf", "-np.inf": "-inf"}
"""How docstrings write what NumPy calls otherwise."""


def literal(text, path):
    """The value of a literal or of a constant; the text itself of anything else, such as a name of NumPy."""
    made = re.fullmatch(r"(?:dataclasses\.)?field\(default_factory=lambda: (.+)\)", text)
    text = SPOKEN.get(made[1] if made else text, made[1] if made else text)
    known = CONSTANTS[path].get(text, EVERYWHERE.get(text, text))
    called = re.fullmatch(r"(?:dataclasses\.)?field\(default=(.+?), .*\)", known)
    try:
        return ast.literal_eval(called[1] if called else known)
    except (SyntaxError, ValueError):
        return text


def stated(docstring):
    """Yield names with the default that the docstring states: one for each of them, or one for all."""
    for found in STATED.finditer(docstring):
        names, text = found["names"].split(", "), found["values"]
        values = text.split(" and ") if " and " in text else [text] * len(names)
        yield from zip(names, values, strict=True)


CASES = [
    (path, f"{node.name}({name})", said, has[name])
    for path, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.FunctionDef | ast.ClassDef)
    for has in [defaults(node)]
    for name, said in stated(ast.get_docstring(node) or "")
    if name in has and said != "the whole plane"
]


def test_many_defaults_are_stated():
    assert len(CASES) > 180


@pytest.mark.parametrize("package", PACKAGES)
def test_a_stated_default_is_the_one_that_the_code_has(package):
    wrong = [
        f"{short(path)}: {place} says {said}, has {ast.unparse(value)}"
        for path, place, said, value in CASES
        if short(path).startswith(f"{package}/") and literal(said, path) != literal(ast.unparse(value), path)
    ]
    assert not wrong


WRITTEN = [
    ("analysis/compare/ensembles.py", "PLANAR", 4, "grokphys/report/comparing.py", "at most 4 dimensions"),
    (
        "analysis/stats/effects.py",
        "RESAMPLES",
        4000,
        "analysis/stats/effects.py",
        "at most 4000 permutations",
    ),
    ("analysis/stats/intervals.py", "CONFIDENCE", 0.95, "grokphys/report/wording.py", "95 % interval"),
    (
        "grokphys/cli/reproduce.py",
        "SHIFT",
        10**9,
        "grokphys/cli/reproduce.py",
        "K times a billion",
    ),
    ("grokphys/explorer/uploads.py", "LARGEST_UPLOAD", 2**28, "docs/guide/explore.md", "256 MiB"),
    ("grokphys/papers/judge.py", "ALPHA", 0.05, "grokphys/papers/judge.py", "at most α = 5 %"),
    ("grokphys/report/musat.py", "PAPER_RUNS", 100, "grokphys/report/musat.py", "from 100 runs"),
    ("grokphys/sweeps/pack.py", "PACK_RUNS", 256, "docs/guide/sweeps.md", "256 runs"),
    ("grokphys/sweeps/pack.py", "PACK_BYTES", 2**28, "docs/guide/sweeps.md", "256 MiB"),
    ("nets/checkpoint.py", "SECONDS", 30.0, "nets/recorder.py", "every half minute"),
    ("nets/checkpoint.py", "LARGEST_SHARE", 0.02, "docs/guide/record.md", "fiftieth"),
    ("nets/recording.py", "FRAMES_A_DECADE", 20, "nets/recording.py", "about 20\n        steps per decade"),
    ("physics/trajectory/writer.py", "FLUSH_SECONDS", 2.0, "docs/how/file.md", "two seconds"),
    ("physics/trajectory/writer.py", "WAITING_BYTES", 2**26, "docs/how/file.md", "64 MB"),
    ("physics/trajectory/writer.py", "BLOCK_BYTES", 2**20, "docs/how/file.md", "a megabyte of them"),
]
"""Constants that pages or docstrings state in words: where they stand, their values, and the words."""


@pytest.mark.parametrize(("home", "name", "value", "page", "words"), WRITTEN)
def test_a_constant_has_the_value_that_is_written_of_it(home, name, value, page, words):
    found = {}
    for node in TREES[ROOT / home].body:
        if isinstance(node, ast.Assign):
            target, assigned = node.targets[0], node.value
            several = isinstance(target, ast.Tuple)
            for one, part in zip(
                target.elts if several else [target], assigned.elts if several else [assigned], strict=True
            ):
                found[ast.unparse(one)] = ast.unparse(part)
    assert eval(found[name]) == value
    assert words in (ROOT / page).read_text(encoding="utf-8")
