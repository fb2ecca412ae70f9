"""The plan of the house: no import circles, no long file, no crowded folder, a word in every package."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("physics", "nets", "analysis", "grokphys")
LINES = 400
FILES = 14

# Exceptions: what breaks a rule today. Delete an entry as soon as it is mended; a test says when it is.
LONG = {
    "tests/grokphys/explorer/test_explore.py",
    "tests/grokphys/explorer/test_explore_door.py",
    "tests/grokphys/test_cli.py",
    "tests/grokphys/test_options.py",
    "tests/grokphys/test_sweep.py",
    "tests/nets/test_training.py",
    "tests/physics/theory/test_parallelograms.py",
    "tests/physics/trajectory/test_hostile_files.py",
    "tests/physics/trajectory/test_recording.py",
    "tests/physics/trajectory/test_storage.py",
}
CROWDED: set[str] = set()
CIRCLES: set[frozenset[str]] = set()


def sources(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def short(path):
    return path.relative_to(ROOT).as_posix()


def module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree):
    """Names that a module imports, at its head or within functions, but for those that only types need."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def graph(trees):
    """Modules, and the other modules that each imports; a name from a package is the package's own."""
    found = {}
    for name, tree in trees.items():
        targets = {one if one in trees else one.rpartition(".")[0] for one in imported(tree)}
        found[name] = (targets & trees.keys()) - {name}
    return found


def circles(edges):
    """Sets of modules that import each other, directly or by way of others."""

    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            new = edges[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reach = {name: reached(name) for name in edges}
    return {
        frozenset(other for other in reach[name] if name in reach[other])
        for name in edges
        if name in reach[name]
    }


def test_a_circle_is_found_wherever_the_import_stands():
    trees = {
        name: ast.parse(text)
        for name, text in {
            "a": "import b",
            "b": "def later():\n    from c import x",
            "c": "if True:\n    from a import y",
            "d": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import e",
            "e": "import d",
        }.items()
    }
    assert circles(graph(trees)) == {frozenset("abc")}


def test_no_modules_import_each_other():
    trees = {module(path): ast.parse(path.read_text("utf-8")) for path in sources(*PACKAGES)}
    assert circles(graph(trees)) == CIRCLES


def test_no_file_is_long():
    counts = {short(path): len(path.read_text("utf-8").splitlines()) for path in sources(*PACKAGES, "tests")}
    assert {name for name, count in counts.items() if count > LINES} == LONG


def test_no_folder_is_crowded():
    folders = {path.parent for path in sources(*PACKAGES, "tests")}
    counts = {short(one): sum(path.suffix == ".py" for path in one.iterdir()) for one in folders}
    assert {name for name, count in counts.items() if count > FILES} == CROWDED


def test_every_package_says_what_belongs_there():
    packages = [path for path in sources(*PACKAGES) if path.name == "__init__.py"]
    assert {path.parent for path in sources(*PACKAGES)} == {path.parent for path in packages}
    assert [short(one) for one in packages if not ast.get_docstring(ast.parse(one.read_text("utf-8")))] == []
