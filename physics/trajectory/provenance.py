"""How a run was made: its configuration, a user's own code, and the versions of libraries, for JSON."""

import contextlib
import dataclasses
import hashlib
import inspect
import json
import linecache
import platform
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, partial
from importlib import metadata, util
from pathlib import Path
from tokenize import TokenError
from types import CellType
from typing import TYPE_CHECKING, Any

import numpy as np

from physics.errors import InputError

if TYPE_CHECKING:
    from physics.trajectory.header import Header

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "h5py")
"""Libraries whose versions every trajectory stores."""
DECIDE_BITS = ("source", "numpy", "scipy", "numba", "llvmlite", "torch", "processor")
"""Entries that may change the last bits of a run: an unfinished run is resumed only if they agree."""
OURS = ("physics", "nets", "analysis", "grokphys")
OWN_CODE = "own_code"
"""Parameter that `own_code` returns."""
NOT_OWN = {*sys.stdlib_module_names, *LIBRARIES, "torch", *OURS}
"""Modules whose code is nobody's own: their versions are stored."""
PLAIN = (bool, int, float, complex, str, bytes, tuple, type(None))
UNKNOWN = "unknown"
"""Digest of code whose source text cannot be had, such as that of a class typed at a prompt."""


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
    """Return what a file stores in place of a function: its name, and its source code if it can be had."""
    definition = _definition(function)
    return {
        "function": getattr(function, "__qualname__", type(function).__qualname__),
        "source": (_source(definition) if inspect.isfunction(definition) else "") or None,
    }


def is_ours(kind: type) -> bool:
    """Return whether a class is one of this project's packages, and not a user's own."""
    return _top(kind) in OURS


def own_code(*parts: Any) -> dict[str, dict[str, str]]:
    """Return the parameter that tells whether a user's own code has changed; empty if there is none.

    "own_code" maps the names of functions and classes to their digests: those of `parts`, of their public
    attributes, and of a dictionary `measures` of their class.
    """
    digests: dict[str, str] = {}  # several functions may have one name, as lambdas do
    values: list[Any] = []
    for part in parts:
        measures = inspect.getattr_static(part, "measures", None)
        values += [part, *public(part).values(), *(measures.values() if isinstance(measures, dict) else ())]
    for definition in map(_definition, values):
        if _own(definition):
            name, digest = definition.__qualname__, code_digest(definition)
            digests[name] = f"{digests[name]} {digest}" if name in digests else digest
    return {OWN_CODE: digests} if digests else {}


def public(value: Any) -> dict[str, Any]:
    """Return the public attributes of an object by name.

    They are the entries of its `__dict__` whose names do not begin with "_", without those that a
    `functools.cached_property` has computed.
    """
    held = {} if inspect.isclass(value) or inspect.isfunction(value) else getattr(value, "__dict__", {})
    computed = {
        name for name in held if isinstance(inspect.getattr_static(type(value), name, None), cached_property)
    }
    return {name: held[name] for name in held if not name.startswith("_") and name not in computed}


def code_digest(definition: Any) -> str:
    """Return digits that identify the source text of a function, or of a class and its own base classes.

    Plain values and functions in the closures and defaults of the function, or of the methods and properties
    of the class, are included. The result is "unknown" if a source text cannot be had.
    """
    own = _own(definition)
    members = [member for part in own if inspect.isclass(part) for _, member in sorted(vars(part).items())]
    members = [getattr(member, "fget", None) or getattr(member, "func", None) or member for member in members]
    texts = [_source(part) for part in own]
    for function in (part for part in map(_definition, [definition, *members]) if inspect.isfunction(part)):
        closure = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        for value in (*closure, *defaults):
            texts += [_source(value)] if inspect.isfunction(value) else []
            texts += [repr(value)] if isinstance(value, PLAIN) else []
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16] if all(texts) else UNKNOWN


def _own(definition: Any) -> list[Any]:
    """Return a function, or a class and its bases, without those that come from libraries."""
    return [part for part in getattr(definition, "__mro__", (definition,)) if _top(part) not in NOT_OWN]


def _definition(value: Any) -> Any:
    """Return the function within a method, a partial, cached or compiled function; else a class."""
    value = value.func if isinstance(value, partial) else value
    value = getattr(getattr(value, "py_func", value), "__func__", value)
    if callable(value) and not inspect.isclass(value):
        value = inspect.unwrap(value)
    return value if inspect.isfunction(value) or inspect.isclass(value) else type(value)


def _source(definition: Any) -> str:
    """Return the source text of a function or class, or "" if it cannot be had.

    Python finds none for a class in a cell of a notebook, so that the whole cell is taken.
    """
    # typed at a prompt, not written in Python, or in a file that is not what was executed
    with contextlib.suppress(OSError, TypeError, SyntaxError, IndexError, TokenError):
        return textwrap.dedent(inspect.getsource(definition))
    members = vars(definition).values() if inspect.isclass(definition) else ()
    files = {member.__code__.co_filename for member in members if inspect.isfunction(member)}
    return "".join(line for file in sorted(files) for line in linecache.getlines(file))


def _top(definition: Any) -> str:
    return str(getattr(definition, "__module__", "")).partition(".")[0]


@cache
def code_version() -> str:
    """Return the version of the package, such as "0.1.0+g1a2b3c4" with the commit of a checkout.

    A checkout with changes ends in "-dirty". Outside a repository, or without git, it is the version alone.
    """
    version = metadata.version("grokphys")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        # unlike `git describe --dirty`, this leaves no lock in the index if the process is killed
        git = ["git", "-C", str(Path(__file__).parent), "--no-optional-locks", "status"]
        command = [*git, "--porcelain=v2", "--branch", "--untracked-files=no"]
        told = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL, timeout=10)
        status = told.splitlines()
        commit = next(line.split()[-1] for line in status if line.startswith("# branch.oid"))
        changed = any(not line.startswith("#") for line in status)
        version += f"+g{commit[:8]}" + "-dirty" * changed
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


def require_same(
    path: Path, parameters: Mapping[str, Any], versions: Mapping[str, Any], header: "Header"
) -> None:
    """Refuse, by an `InputError`, to resume a run of another configuration, or whose further bits may differ.

    `parameters` and `versions` are those of the unfinished run at `path`, and `header` is that of the program
    that resumes it.
    """
    here = json.loads(json.dumps(dict(header.parameters)))
    if different := _differences(parameters, here, sorted({*parameters, *here}), ": "):
        raise InputError(f"{path} cannot be resumed, because it has another configuration ({different})")
    if different := _differences(versions, header.made_with, DECIDE_BITS, " "):
        why = f"its further steps could differ in their last bits ({different})"
        advice = "take the versions that began it, or pass overwrite=True to start again"
        raise InputError(f"{path} cannot be resumed, because {why}; {advice}")
    unknown = [name for name, digest in header.parameters.get(OWN_CODE, {}).items() if UNKNOWN in digest]
    if unknown:
        code = f"the code of {', '.join(unknown)}, whose source text is unknown"
        warnings.warn(f"{path} is resumed without comparing {code}", RuntimeWarning, stacklevel=2)


def _differences(there: Mapping[str, Any], here: Mapping[str, Any], names: Sequence[str], sign: str) -> str:
    """Return what differs between two mappings, in words."""
    return "; ".join(
        f"{name}{sign}{there.get(name)} there, {here.get(name)} here"
        for name in names
        if there.get(name) != here.get(name)
    )
