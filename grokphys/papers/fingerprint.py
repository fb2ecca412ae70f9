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
def fingerprint(*modules: str, without: tuple[str, ...] = ()) -> str:
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
    without : tuple of str, default ()
        Modules and packages that do not count, nor what is imported by them alone.

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
    kept = folder / f"fingerprint-{_short(*modules, *(f'not {name}' for name in without))}.txt"
    with contextlib.suppress(OSError, ValueError):
        before, digits = kept.read_text(encoding="ascii").split()
        if before == state and len(digits) == len(state):
            return digits
    digits = _computed(modules, without)
    with contextlib.suppress(OSError, OutputError):  # the package may be read-only
        folder.mkdir(exist_ok=True)
        write_text(kept, f"{state} {digits}")
    return digits


def _state() -> str:
    """Return a digest of all our code, the versions of Python and the libraries, and the example data."""
    versions = [f"{name} {_version(name)}" for name in LIBRARIES.values()]
    content = [f"{name}\n{text}" for name, text in _texts().items()]
    data = [example_path(name).read_bytes() for name in EXAMPLES]
    return _short(sys.version, *content, *versions, *data)


@cache
def _texts() -> dict[str, str]:
    """Return the text of all our modules by name, as it is when the process first asks for it.

    What is edited later is not the code that this process has imported.
    """
    root = Path(__file__).parents[2]
    paths = [path for package in HOUSE for path in sorted((root / package).rglob("*.py"))]
    parts = [(path.relative_to(root).with_suffix("").parts, path) for path in paths]
    return {
        ".".join(names[:-1] if names[-1] == "__init__" else names): path.read_text(encoding="utf-8")
        for names, path in parts
    }


def _short(*parts: str | bytes) -> str:
    """Return the first sixteen hexadecimal digits of a SHA-256 digest of some texts or bytes."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part.encode() if isinstance(part, str) else part).digest())
    return whole.hexdigest()[:16]


def _computed(modules: tuple[str, ...], without: tuple[str, ...]) -> str:
    found, libraries = dependencies(*modules, without=without)
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(f"{name} {_read(name)[0]}\n".encode())
    for name in sorted(libraries):
        digest.update(f"{name} {_version(LIBRARIES[name])}\n".encode())
    if "physics.examples" in found:
        for name in EXAMPLES:
            digest.update(example_path(name).read_bytes())
    return digest.hexdigest()[:16]


def dependencies(*modules: str, without: tuple[str, ...] = ()) -> tuple[set[str], set[str]]:
    """Return what some modules of GrokPhys depend on.

    Parameters
    ----------
    *modules : str
        Names of modules.
    without : tuple of str, default ()
        Modules and packages that are not followed.

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
        if any(f"{name}.".startswith(f"{one}.") for one in without):
            continue
        top = name.partition(".")[0]
        if top in LIBRARIES:
            libraries.add(top)
        if name not in found and name in _texts():
            found.add(name)
            waiting += _read(name)[1]
    return found, libraries | ({"llvmlite"} if "numba" in libraries else set())  # generates Numba's code


def _read(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the code of one of our modules without comments, docstrings and layout, and what it imports."""
    return _parsed(_texts()[name])


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
            if not all(name in _texts() for name in inside):
                yield node.module
            yield from inside


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"
