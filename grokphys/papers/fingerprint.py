"""Dependencies of a result: modules of GrokPhys that its recipe imports, and the versions of libraries."""

import ast
import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from grokphys.output import write_text
from physics.errors import OutputError
from physics.examples import EXAMPLES, example_path

HOUSE = ("physics", "nets", "analysis", "grokphys")
LIBRARIES = {
    "llvmlite": "llvmlite",
    "numba": "numba",
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "sympy": "sympy",
    "torch": "torch",
}
"""Libraries whose version may change a number, by the names under which they are imported."""


@cache
def fingerprint(*modules: str) -> str:
    """Return sixteen hexadecimal digits that change with the code, libraries and data that modules depend on.

    A stored result keeps the digits of its recipe, so that `grokphys reproduce` knows whether it is up to
    date.

    Parameters
    ----------
    *modules : str
        Names of modules such as "grokphys.papers.liu.figures_04a_05a". The digits depend on the code, without
        comments and docstrings (also of constants), of these modules and of all modules of GrokPhys that they
        import, directly or not. They also depend on the versions of the `LIBRARIES` that any of these modules
        imports, and on the example data if `physics.examples` is among the modules.

    Returns
    -------
    str
        The digits.

    Notes
    -----
    Parsing the code takes half a second. The digits are therefore cached in a file, with a digest of
    everything that they can depend on. The file is in `NUMBA_CACHE_DIR`, or next to the compiled modules.
    """
    state = _state()
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).with_name("__pycache__"))
    kept = folder / f"fingerprint-{_short(*modules)}.txt"
    with contextlib.suppress(OSError, ValueError):
        before, digits = kept.read_text(encoding="ascii").split()
        if before == state and len(digits) == len(state):
            return digits
    digits = _computed(*modules)
    with contextlib.suppress(OSError, OutputError):  # the package may be read-only
        folder.mkdir(exist_ok=True)
        write_text(kept, f"{state} {digits}")
    return digits


def _state() -> str:
    """Return a digest of all our code, the versions of Python and the libraries, and the example data."""
    root = Path(__file__).parents[2]
    files = [path for package in HOUSE for path in sorted((root / package).rglob("*.py"))]
    versions = [f"{name} {_version(name)}".encode() for name in LIBRARIES.values()]
    content = [*(f"{path.relative_to(root)}\n".encode() + path.read_bytes() for path in files), *versions]
    data = [example_path(name).read_bytes() for name in EXAMPLES]
    return _short(sys.version, *content, *data)


def _short(*parts: str | bytes) -> str:
    """Return the first sixteen hexadecimal digits of a SHA-256 digest of some texts or bytes."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part.encode() if isinstance(part, str) else part).digest())
    return whole.hexdigest()[:16]


def _computed(*modules: str) -> str:
    found, libraries = dependencies(*modules)
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(f"{name} {_read(name)[0]}\n".encode())
    for name in sorted(libraries):
        digest.update(f"{name} {_version(LIBRARIES[name])}\n".encode())
    if "physics.examples" in found:
        for name in EXAMPLES:
            digest.update(example_path(name).read_bytes())
    return digest.hexdigest()[:16]


def dependencies(*modules: str) -> tuple[set[str], set[str]]:
    """Return what some modules of GrokPhys depend on.

    Parameters
    ----------
    *modules : str
        Names of modules.

    Returns
    -------
    set of str
        Names of the given modules and of all modules of GrokPhys that they import, directly or not.
    set of str
        Keys of `LIBRARIES` that any of these modules imports.
    """
    found: set[str] = set()
    libraries: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        if top in LIBRARIES:
            libraries.add(top)
        if name not in found and _source(name) is not None:
            found.add(name)
            waiting += _read(name)[1]
    return found, libraries | ({"llvmlite"} if "numba" in libraries else set())  # generates Numba's code


def _read(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the code of one of our modules without comments, docstrings and layout, and what it imports."""
    path = _source(name)
    assert path is not None
    return _parsed(path.read_text(encoding="utf-8"))


@cache
def _parsed(text: str) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(text)
    imported = tuple(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_text(one)]
    return ast.dump(tree), imported


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is only a text: a docstring, or words about the constant before it."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the names that parsed code imports.

    For ``from a import b``, where b may be a module or a name in the package a, they are ``a.b`` and, unless
    b is one of our modules, ``a``.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            if not all(map(_source, inside)):
                yield node.module
            yield from inside


@cache
def _source(name: str) -> Path | None:
    """Return the file of one of our modules, or None if there is no such module."""
    if name.partition(".")[0] not in HOUSE:
        return None
    place = Path(__file__).parents[2].joinpath(*name.split("."))
    files = (place.with_name(f"{place.name}.py"), place / "__init__.py")
    return next((path for path in files if path.is_file()), None)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"
