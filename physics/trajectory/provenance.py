"""How a run was made: its configuration, and the versions of code and libraries, for JSON."""

import contextlib
import dataclasses
import hashlib
import inspect
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata, util
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "h5py")
"""Libraries whose versions every trajectory stores."""
DECIDE_BITS = ("source", "numpy", "scipy", "numba", "llvmlite", "torch", "processor")
"""Entries that may change the last bits of a run: an unfinished run is resumed only if they agree."""
SOURCE_CODE = "source_code"
"""Parameter that holds what `own_source` returns; files from before it lack it."""
OURS = ("physics", "nets", "analysis", "grokphys")
NOT_OWN = {*sys.stdlib_module_names, *LIBRARIES, "torch", *OURS}
"""Modules whose code is nobody's own: their versions are stored."""


def fields(made_by: Any) -> Mapping[str, Any]:
    """Return the fields of an instance of a dataclass by name, in a form for JSON.

    Arrays become lists, dataclasses dicts, and functions their names and source code.
    """
    values = {field.name: getattr(made_by, field.name) for field in dataclasses.fields(made_by)}
    return {name: _named(one) if callable(one) else plain(one) for name, one in values.items()}


def plain(value: Any) -> Any:
    """Return `value` in a form for JSON: dataclasses as dicts of their fields.

    Arrays, tuples and ranges become lists. Lists and dicts are converted entry by entry, and NumPy's numbers
    become Python's. All other values are returned unchanged, even if JSON cannot hold them.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields(value)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value


def _named(function: Any) -> dict[str, str | None]:
    """Return the description that a file stores in place of a function: its name and its source code."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return {"function": name, "source": _source(function)}


def _source(definition: Any) -> str | None:
    """Return the source code of a function or class, if it can be had."""
    # typed at a prompt, not written in Python, or in a file that is not what was executed
    with contextlib.suppress(OSError, TypeError, SyntaxError, IndexError, TokenError):
        return inspect.getsource(definition)
    return None


def is_ours(kind: type) -> bool:
    """Return whether a class is one of this project's packages, and not a user's own."""
    return kind.__module__.partition(".")[0] in OURS


def own_source(*parts: Any) -> dict[str, dict[str, str]]:
    """Return the parameter that tells whether a user's own code has changed; empty if there is none.

    It maps the names of functions among `parts`, and of the classes of other objects with their bases, to
    sixteen hexadecimal digits that identify their source code. What belongs to a module in `NOT_OWN`, or has
    no source code that can be read, is left out.
    """
    found = {}
    for part in parts:
        for one in (part,) if inspect.isroutine(part) else type(part).__mro__:
            module = str(getattr(one, "__module__", None)).partition(".")[0]
            source = None if module in NOT_OWN else _source(one)
            if source is not None:
                found[one.__qualname__] = hashlib.sha256(source.encode()).hexdigest()[:16]
    return {SOURCE_CODE: found} if found else {}


@cache
def code_version() -> str:
    """Return the version of the package, such as "0.1.0+g1a2b3c4" with the commit of a checkout.

    A checkout with changes ends in "-dirty". Outside a repository, or without git, it is the version alone.
    """
    version = metadata.version("grokphys")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        version += "+g" + described.stdout.strip()
    return version


@cache
def source_digest(*packages: str) -> str:
    """Return sixteen hexadecimal digits that identify the source code of the named packages."""
    digest = hashlib.sha256()
    for package in packages:
        spec = util.find_spec(package)
        assert spec is not None
        for folder in spec.submodule_search_locations or ():
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def made_with(*packages: str) -> dict[str, str]:
    """Return what the numbers of the named packages depend on: the code, the libraries, and the processor.

    A trajectory stores these versions and names as `made_with`. The version of torch is included if "nets" is
    among the packages.
    """
    from llvmlite import binding

    libraries = (*LIBRARIES, "torch") if "nets" in packages else LIBRARIES
    return {
        "grokphys": code_version(),
        "source": source_digest(*packages),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in libraries},
        "processor": f"{platform.machine()} {binding.get_host_cpu_name()}",
        "system": platform.system(),
    }
