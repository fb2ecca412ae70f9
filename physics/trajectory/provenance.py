"""How a run was made: its configuration, a user's own code, and the versions of libraries, for JSON."""

import contextlib
import dataclasses
import dis
import hashlib
import inspect
import platform
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from functools import cache, cached_property, partial, partialmethod
from importlib import metadata, util
from itertools import islice
from pathlib import Path
from tokenize import TokenError
from types import CodeType, FunctionType, MethodType, ModuleType
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
COMPILED = "compiled by"
"""Entry of it that names the version of Python."""
PLAIN = (bool, float, complex, str, bytes, type(None))
STORES = ("STORE_GLOBAL", "STORE_NAME", "STORE_DEREF", "STORE_ATTR")
"""Instructions of Python that assign to a name which other code may read."""
MOST = 1000
"""Largest number of functions, classes and containers that are compared, and of entries of one of these."""
Named = list[tuple[str, Any]]


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
    return _top(kind) in OURS


def own_code(*parts: Any) -> dict[str, dict[str, str]]:
    """Return the parameter that tells whether a user's own code has changed; empty if there is none.

    It describes functions among `parts`, the classes of other objects, and what their public attributes hold,
    as `code_of` does.
    """
    held = []
    for part in parts:
        if dataclasses.is_dataclass(part):
            held += [getattr(part, field.name) for field in dataclasses.fields(part)]
        else:
            names = [name for name in getattr(part, "__dict__", {}) if not name.startswith("_")]
            held += [part.__dict__[name] for name in names if not is_cached(part, name)]
    found = code_of(*parts, held)
    return {OWN_CODE: found} if found else {}


def is_cached(one: Any, name: str) -> bool:
    """Return whether the attribute `name` of an object is a `functools.cached_property` of its class."""
    return isinstance(inspect.getattr_static(type(one), name, None), cached_property)


def fingerprint(kind: type) -> str:
    """Return text that identifies the code of a class, after the version of Python that compiled it."""
    return f"{sys.implementation.cache_tag}:{_digits(repr(code_of(kind)))}"


def code_of(*roots: Any) -> dict[str, str]:
    """Describe code of your own, and all code of your own to which it refers, by name.

    Each function and class has sixteen digits that identify what Python has compiled. A number, a text or a
    short tuple in a variable is described by itself, unless some of this code assigns to its name. The result
    is the same in each process. Objects are told apart by their types alone, since to ask them for an
    attribute could run their code.

    Parameters
    ----------
    *roots : object
        Where to begin: functions, classes, and other objects, which stand for what they hold and their
        classes. Code of modules in `NOT_OWN` is left out, and so is that of packages that are installed,
        unless a root belongs to them. At most `MOST` functions, classes and containers are described.

    Returns
    -------
    dict of str to str
        Digits and values by name, and the version of Python; empty if no code is a user's own.
    """
    tops = {_top(root if _is_code(root) else type(root)) for root in roots}
    queue: list[tuple[str, Any]] = [("", root) for root in roots]
    found: dict[str, dict[str, None]] = {}  # several functions may have one name, as lambdas do
    values: list[tuple[str, str]] = []
    assigned: set[str] = set()
    seen: dict[int, Any] = {}
    for name, value in queue:  # which grows while it is read
        if text := _plain(value):
            values.append((name, text))
        elif id(value) not in seen and len(seen) < MOST:
            seen[id(value)] = value
            if not _is_code(value):
                queue += _held(name, value)
            elif _is_own(value, tops):
                own = f"{value.__module__}.{value.__qualname__}"
                if type(value) is FunctionType:
                    text, more, stored = _function(own, value, tops)
                    assigned |= stored
                else:
                    text, more = _class(value, tops)
                found.setdefault(own, {})[text] = None
                queue += more
    for name, text in values:
        if found and name and name.rpartition(".")[2] not in assigned:
            found.setdefault(name, {})[text] = None
    compiled = {COMPILED: str(sys.implementation.cache_tag)} if found else {}
    return compiled | {name: " ".join(texts) for name, texts in found.items()}


def _is_code(value: Any) -> bool:
    return type(value) is FunctionType or issubclass(type(value), type)


def _top(one: Any) -> str:
    return str(one.__module__).partition(".")[0]


def _is_own(one: Any, tops: Collection[str]) -> bool:
    """Return whether a function, class or module is a user's own; that of a root is, even if installed."""
    name = one.__name__ if type(one) is ModuleType else str(one.__module__)
    top = name.partition(".")[0]
    path = Path(str(getattr(sys.modules.get(name), "__dict__", {}).get("__file__")))
    return top not in NOT_OWN and (top in tops or not {"site-packages", "dist-packages"} & {*path.parts})


def _plain(value: Any) -> str:
    """Return text for a number, a text, None or a short tuple of these, and no text for any other value."""
    if type(value) is tuple:
        texts = [_plain(one) for one in value[:MOST]]
        text = f"({', '.join(texts)})" if all(texts) and len(value) < MOST else ""
    elif type(value) is int:
        text = hex(value) if value.bit_length() > 64 else str(value)  # str refuses what is very long
    else:
        text = repr(value) if type(value) in PLAIN or issubclass(type(value), np.generic) else ""
    return text if len(text) < 60 else _digits(text)


def _function(own: str, function: FunctionType, tops: Collection[str]) -> tuple[str, Named, set[str]]:
    """Return digits of the function called `own`, the values to which it refers, and what it assigns to.

    The values are its defaults, variables of enclosing functions, and what global names stand for; and, of a
    module of your own, what the code may take from it. The last is a set of names.
    """
    codes = [function.__code__]
    for code in codes:
        codes += [one for one in code.co_consts if type(one) is CodeType]
    steps = [step for code in codes for step in dis.get_instructions(code)]
    stored = {step.argval for step in steps if step.opname in STORES}
    loaded = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    taken = sorted({name for code in codes for name in code.co_names})
    names, module = function.__globals__, function.__module__
    found = [(f"{own} {k}", one) for k, one in enumerate(function.__defaults__ or ())]
    found += [(f"{own} {name}", one) for name, one in (function.__kwdefaults__ or {}).items()]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it may still be empty
            found.append((f"{own}.{name}", cell.cell_contents))
    found += [(f"{module}.{name}", names[name]) for name in sorted(loaded & names.keys())]
    modules: list[ModuleType] = []
    for _, one in found:
        if type(one) is ModuleType and one not in modules and _is_own(one, tops):
            modules.append(one)
            found += [(f"{one.__name__}.{name}", vars(one)[name]) for name in taken if name in vars(one)]
    return _compiled(function.__code__, function.__doc__), found, stored


def _compiled(code: CodeType, doc: str | None = None) -> str:
    """Return digits of compiled code, whatever its comments and its place; `doc` is its docstring."""
    count = code.co_argcount + code.co_kwonlyargcount + ((code.co_flags & 4) > 0) + ((code.co_flags & 8) > 0)
    sizes = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & 12)
    texts = [code.co_code.hex(), str(sizes), *code.co_varnames[:count], *code.co_names, *code.co_freevars]
    for one in code.co_consts:
        if type(one) is CodeType:
            texts.append(_compiled(one))
        elif type(one) is frozenset:
            texts.append(str(sorted(map(repr, one))))
        elif one is not doc:
            texts.append(repr(one))
    return _digits("\n".join(texts))


def _class(kind: type, tops: Collection[str]) -> tuple[str, Named]:
    """Return digits of the names of a class's members, with those of its bases, and the members by name."""
    members = [
        (f"{one.__module__}.{one.__qualname__}.{name}", value)
        for one in kind.__mro__
        if _is_own(one, tops)
        for name, value in sorted(vars(one).items())
        if type(value) is FunctionType or not name.startswith("__")
    ]
    return _digits("\n".join(name for name, _ in members)), members


def _held(name: str, value: Any) -> Named:
    """Return what an object of the given `name` holds, or its class; what has no name is no value to tell."""
    kind = type(value)
    found: Iterable[Any]
    if issubclass(kind, Enum):
        return [("", kind), (f"{name} {value._name_}", value._value_)]
    if issubclass(kind, partial | partialmethod):
        given = (*value.args, *value.keywords.items())
        return [("", value.func), *((f"{name} {k}", one) for k, one in enumerate(given))]
    if kind in (list, tuple, dict):
        found = islice(value.values() if kind is dict else value, MOST)
    elif issubclass(kind, property):
        found = (value.fget, value.fset, value.fdel)
    elif issubclass(kind, cached_property):
        found = (value.func,)
    elif kind in (staticmethod, classmethod, type(cache(repr))):
        found = (value.__wrapped__,)
    elif kind is MethodType:
        found = (value.__func__, type(value.__self__))
    elif kind is np.vectorize:
        found = (value.pyfunc,)
    else:
        found = (getattr(value, "py_func", None) if _top(kind) == "numba" else kind,)
    return [("", one) for one in found]


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
