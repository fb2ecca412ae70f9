"""Fingerprints: what changes them, and what must not."""

import ast
import shutil
import sys
from pathlib import Path

import pytest

from grokphys.papers import fingerprint as module
from grokphys.papers.catalogue import recipes
from grokphys.papers.fingerprint import HOUSE, LIBRARIES, dependencies, fingerprint

ROOT = Path(module.__file__).parents[2]
THEORY = "grokphys.papers.liu.figures_04a_05a"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the program that may be edited."""
    for package in HOUSE:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(module, "__file__", str(tmp_path / "grokphys" / "papers" / "fingerprint.py"))
    return tmp_path


def now(*modules):
    """Fingerprint of what stands on the disk at this moment."""
    for cached in (fingerprint, module._texts):
        cached.cache_clear()
    return fingerprint(*modules)


@pytest.fixture(autouse=True)
def forget():
    yield
    for cached in (fingerprint, module._texts):
        cached.cache_clear()


@pytest.fixture(scope="module")
def trees():
    """The syntax trees of all our modules, by their paths."""
    paths = [path for package in HOUSE for path in (ROOT / package).rglob("*.py")]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


SMALL = {
    "grokphys/one.py": "import physics.a\nfrom physics import b\ndef f():\n    from physics.c import g\n",
    "grokphys/two.py": "import numpy.linalg\nfrom physics import b, g\nimport os\n",
    "physics/__init__.py": "from physics.d import g\n",
    "physics/a.py": "from nets import Model\n",
    "physics/b.py": "x = 1\n",
    "physics/c.py": "import physics.a\nimport grokphys.one\n",
    "physics/d.py": "import numba\n",
    "nets/__init__.py": "import torch\n",
}


def test_dependencies_are_followed_through_every_kind_of_import(tmp_path, monkeypatch):
    for name, text in SMALL.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(module, "__file__", str(tmp_path / "grokphys" / "papers" / "fingerprint.py"))
    now("grokphys.one")
    one = {"grokphys.one", "physics.a", "physics.b", "physics.c", "nets"}
    assert dependencies("grokphys.one") == (one, {"torch"})
    two = {"grokphys.two", "physics.b", "physics", "physics.d"}
    assert dependencies("grokphys.two") == (two, {"numpy", "numba", "llvmlite"})
    assert dependencies("__main__", "test_fingerprint") == (set(), set())


def test_the_house_has_no_import_that_is_not_followed(trees):
    for path, tree in trees.items():
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: a relative import"


def test_no_recipe_depends_on_the_explorer_or_on_how_it_is_judged():
    for name, recipe in recipes().items():
        found, _ = dependencies(recipe.module)
        assert recipe.module in found, name
        judging = tuple(f"grokphys.papers.{one}" for one in ("judge", "publish", "results", "run"))
        assert not [module for module in found if module.startswith(("grokphys.explorer", *judging))], name


def append(path, text):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_what_changes_a_fingerprint(tree, monkeypatch):
    before = now(THEORY)
    networks = now("grokphys.papers.musat.table_1")
    append(tree / "grokphys/explorer/session.py", "\nx = 1\n")
    append(tree / "grokphys/papers/judge.py", "\nx = 1\n")
    append(tree / "grokphys/papers/liu/figures_04a_05a.py", "\n\n# a comment\n")
    assert now(THEORY) == before
    kernel = tree / "physics/theory/closure_kernels.py"
    text = kernel.read_text(encoding="utf-8")
    kernel.write_text(text.replace('"""', '"""Now, ', 1), encoding="utf-8")
    append(kernel, '\n\n"""Words about the last constant."""\n')
    assert now(THEORY) == before, "a docstring, of a module or of a constant"
    append(kernel, "\nx = 1\n")
    assert now(THEORY) != before, "a kernel far below"
    kernel.write_text(text, encoding="utf-8")
    assert now(THEORY) == before
    version = module.metadata.version
    monkeypatch.setattr(module.metadata, "version", lambda name: "9.9" if name == "torch" else version(name))
    assert now(THEORY) == before
    assert now("grokphys.papers.musat.table_1") != networks
    monkeypatch.setattr(module.metadata, "version", lambda name: "9.9" if name == "numpy" else version(name))
    assert now(THEORY) != before


def test_other_example_data_are_another_fingerprint(tmp_path, monkeypatch):
    copy = tmp_path / "example.h5"
    copy.write_bytes(b"these")
    monkeypatch.setattr(module, "example_path", lambda name: copy)
    before = now("physics.examples")
    copy.write_bytes(b"others")
    assert now("physics.examples") != before


def test_every_library_that_is_imported_is_counted_or_left_out_on_purpose(trees):
    left_out = {
        *(
            "bokeh",
            "imageio_ffmpeg",
            "tornado",
            "dask",
            "distributed",
            "h5netcdf",
            "xarray",
            "pyarrow",
            "safetensors",
            "pandas",
        ),  # optional
        *(
            "h5py",
            "filelock",
            "loky",
            "threadpoolctl",
            "matplotlib",
            "PIL",
            "jinja2",
            "markupsafe",
            "tqdm",
            "tyro",
        ),  # they store and show
        *("pydmd", "pysindy", "joblib"),  # what benchmarks measure against
    }
    tops = {name.partition(".")[0] for tree in trees.values() for name in module._imported(tree)}
    assert tops - set(HOUSE) - set(sys.stdlib_module_names) - left_out <= set(LIBRARIES)


def test_a_kept_fingerprint_is_read_until_something_changes(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    computed, compute = [], module._computed
    monkeypatch.setattr(module, "_computed", lambda *names: computed.append(names) or compute(*names))
    first = now(THEORY)
    assert now(THEORY) == first
    assert computed == [((THEORY,), ())]
    append(tree / "physics/theory/closure_kernels.py", "\nx = 1\n")
    second = now(THEORY)
    assert second != first
    assert len(computed) == 2
    (kept,) = (tmp_path / "kept").iterdir()
    kept.write_text("damaged")
    assert now(THEORY) == second
    kept.unlink()
    kept.mkdir()  # as little to be written as where the package is read-only
    assert now(THEORY) == second
    assert len(computed) == 4
