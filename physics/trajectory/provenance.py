"""How a run was made: its configuration, a user's own code, and the versions of libraries, for JSON."""

import contextlib
import dataclasses
import dis
import hashlib
import inspect
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, partial
from importlib import metadata, util
from pathlib import Path
from tokenize import TokenError
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "h5py")
"""Libraries whose versions every trajectory stores."""
DECIDE_BITS = ("source", "numpy", "scipy", "numba", "llvmlite", "torch", "processor")
"""Entries that may change the last bits of a run: an unfinished run is resumed only if they agree."""
OURS = ("physics", "nets", "analysis", "grokphys")
OWN_CODE = "own_code"
"""Parameter that holds what `own_code` returns; files from before it lack it."""
NOT_OWN = {*sys.stdlib_module_names, *LIBRARIES, "torch", *OURS}
"""Modules whose code is nobody's own: their versions are stored."""
VALUES = (bool, int, float, complex, str, bytes, tuple, frozenset, range, np.generic, type(None), partial)
"""Types of the values of global names that are compared, because code can only assign to the names."""
WRAPPERS = ("func", "fget", "__func__", "py_func")
"""Where cached properties, properties, methods and functions compiled by Numba hold their function."""


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


def own_code(*parts: Any) -> dict[str, dict[str, str]]:
    """Return the parameter that tells whether a user's own code has changed; empty if there is none.

    It maps the names of functions among `parts` and their public attributes, and of the classes of other
    objects there, to fingerprints of their code. What belongs to a module in `NOT_OWN` is left out.
    """
    found = {}
    for part in parts:
        attributes = getattr(part, "__dict__", {}).items()
        for held in (part, *(value for name, value in attributes if not name.startswith("_"))):
            one = _unwrapped(held)
            one = one if isinstance(one, FunctionType | type) else type(one)
            if any(map(_is_own if held is part else _is_followed, getattr(one, "__mro__", (one,)))):
                found[one.__qualname__] = fingerprint(one)
    return {OWN_CODE: found} if found else {}


def fingerprint(one: Any) -> str:
    """Return text that identifies the code of a function, or of a class with those that it derives from.

    It is equal in each process, and comments and places do not matter to it. It covers what the code refers
    to by a global name or from an enclosing function: functions and classes of your own, numbers, text and
    tuples. It begins with the version of Python that compiled the code.
    """
    text = _text(one, set())
    return f"{sys.implementation.cache_tag}:{hashlib.sha256(text.encode()).hexdigest()}"


def _is_own(one: Any) -> bool:
    return str(getattr(one, "__module__", None)).partition(".")[0] not in NOT_OWN


def _is_followed(one: Any) -> bool:
    """Return whether code that is referred to is compared: that of installed packages is not."""
    module = one if isinstance(one, ModuleType) else sys.modules.get(one.__module__)
    name = getattr(module, "__name__", "").partition(".")[0]
    return name not in NOT_OWN and "site-packages" not in str(getattr(module, "__file__", None))


def _unwrapped(value: Any) -> Any:
    if isinstance(value, property | cached_property | MethodType | staticmethod | classmethod):
        return _unwrapped(next(getattr(value, name) for name in WRAPPERS if hasattr(value, name)))
    return getattr(value, "py_func", value)


def _text(value: Any, seen: set[int]) -> str:
    """Return text that is equal for equal code and values, and in each process.

    `seen` holds the identities of functions and classes whose text is already part of the whole.
    """
    value = _unwrapped(value)
    if isinstance(value, FunctionType | type):
        if id(value) in seen:
            return value.__qualname__
        seen.add(id(value))
        if not _is_own(value) and not isinstance(value, type):
            return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, partial):
        parts: Any = (value.func, *value.args, *sorted(value.keywords.items()))
    elif isinstance(value, FunctionType):
        parts = (value.__code__, *_referred(value))
    elif isinstance(value, type):
        own = [kind for kind in value.__mro__ if _is_own(kind)]
        members = [item for kind in own for item in vars(kind).items()]
        parts = [item for item in members if callable(item[1]) or not item[0].startswith("__")]
        parts.insert(0, value.__qualname__)
    elif isinstance(value, CodeType):
        parts = (value.co_code.hex(), value.co_names, *value.co_consts)
    elif isinstance(value, frozenset):
        return str(sorted(_text(one, seen) for one in value))
    elif isinstance(value, tuple):
        parts = value
    else:
        text = repr(value)
        return "" if " at 0x" in text else text
    return str([_text(one, seen) for one in parts])


def _referred(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield names and values on which a function depends beside its code, but not what code assigns to.

    They are defaults of arguments, variables of enclosing functions, and what global names stand for. Lists
    and other objects are left out, because a run may change them in place.
    """
    codes = [function.__code__]
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
    steps = [step for code in codes for step in dis.get_instructions(code)]
    assigned = {step.argval for step in steps if step.opname in ("STORE_GLOBAL", "STORE_DEREF")}
    named = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    found = [("", one) for one in function.__defaults__ or ()]
    found += (function.__kwdefaults__ or {}).items()
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    # A cell that is still empty has no contents to ask for.
    found += [(name, cell.cell_contents) for name, cell in cells if cell != CellType()]
    found += [(name, function.__globals__[name]) for name in sorted(named & function.__globals__.keys())]
    used = sorted({name for code in codes for name in code.co_names})
    modules = []
    for name, value in found:
        if isinstance(value, ModuleType) and value not in modules and _is_followed(value):
            modules.append(value)
            found += [(one, vars(value)[one]) for one in used if one in vars(value)]
        value = _unwrapped(value)
        followed = isinstance(value, FunctionType | type) and _is_followed(value)
        if name not in assigned and (followed or isinstance(value, VALUES)):
            yield name, value


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
