"""How a run was made: its configuration, a user's own code, and the versions of libraries, for JSON."""

import contextlib
import dataclasses
import dis
import hashlib
import inspect
import json
import marshal
import platform
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Mapping
from enum import Enum
from functools import cache, cached_property, partial, partialmethod
from importlib import metadata, util
from pathlib import Path
from tokenize import TokenError
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
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
OWN_FILES = "own_files"
"""Parameters that `own_code` returns; files from before them lack both."""
NOT_OWN = {*sys.stdlib_module_names, *LIBRARIES, "torch", *OURS}
"""Modules whose code is nobody's own: their versions are stored."""
PLAIN = (bool, int, float, complex, str, bytes, type(None))
WRAPPERS: Mapping[type, str] = {
    MethodType: "__func__",
    staticmethod: "__wrapped__",
    classmethod: "__wrapped__",
    cached_property: "func",
    np.vectorize: "pyfunc",
    type(cache(repr)): "__wrapped__",
}
"""Where methods and cached functions hold their function."""
PYTHON = sysconfig.get_path("stdlib")
"""Folder of Python's own modules, some of which `sys.stdlib_module_names` lacks."""
MOST, DEPTH = 100, 90
"""How many entries of a tuple, and how many functions within each other, are compared."""


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
    name, source = getattr(function, "__qualname__", type(function).__qualname__), None
    # typed at a prompt, not written in Python, or in a file that is not what was executed
    with contextlib.suppress(OSError, TypeError, SyntaxError, IndexError, TokenError):
        source = inspect.getsource(function)
    return {"function": name, "source": source}


def is_ours(kind: type) -> bool:
    """Return whether a class is one of this project's packages, and not a user's own."""
    return _top(kind) in OURS


def own_code(*parts: Any) -> dict[str, dict[str, str]]:
    """Return the parameters that tell whether a user's own code has changed; empty if there is none.

    "own_code" maps the names of functions and classes to their fingerprints: those of `parts`, of their
    public attributes, and of a dictionary `measures` of their class. "own_files" maps the names of all
    modules that are neither Python's nor installed to digits that identify their files.
    """
    code: dict[str, list[str]] = {}  # several functions may have one name, as lambdas do
    for part in parts:
        measures = inspect.getattr_static(part, "measures", None)
        held = [part, *public(part).values(), *(measures.values() if type(measures) is dict else ())]
        for value in held:
            one = _unwrapped(value.func if type(value) is partial else value)
            one = one if _is_code(one) else type(one)
            if any(map(_is_own, getattr(one, "__mro__", (one,)))):
                text = fingerprint(value if type(value) is partial else one)
                code.setdefault(one.__qualname__, []).append(text)
    found = {name: " ".join(texts) for name, texts in code.items()}
    return {OWN_CODE: found, OWN_FILES: _files()} if found else {}


def public(one: Any) -> dict[str, Any]:
    """Return the fields of an instance of a dataclass by name, or the public attributes of another object.

    These are the entries of its `__dict__` whose names do not begin with "_", without those that a
    `functools.cached_property` has computed.
    """
    if _is_code(one):
        return {}
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return {name: getattr(one, name) for name in names if hasattr(one, name)}
    kind, values = type(one), getattr(one, "__dict__", {})
    return {
        name: value
        for name, value in values.items()
        if not name.startswith("_")
        and not isinstance(inspect.getattr_static(kind, name, None), cached_property)
    }


def fingerprint(one: Any) -> str:
    """Return text that identifies the code of a function, or of a class with its bases.

    It is the same in each process, whatever comments the code has and wherever it stands. It includes
    defaults of arguments, what a function keeps of the one that defines it, and members of a class: its
    functions, numbers, texts and tuples of these, except for those to which a method assigns. It does not
    include what global names stand for. It begins with the version of Python that compiled the code.
    """
    optimized = f" -{'O' * sys.flags.optimize}" if sys.flags.optimize else ""
    return f"{sys.implementation.cache_tag}{optimized}:{_text(one, set(), DEPTH)}"


def _top(one: Any) -> str:
    return str(one.__module__).partition(".")[0]


def _is_own(one: Any) -> bool:
    return _top(one) not in NOT_OWN


def _is_code(value: Any) -> bool:
    return type(value) is FunctionType or issubclass(type(value), type)


def _unwrapped(value: Any) -> Any:
    """Return the function within a method, a cached or compiled function; and any other value as it is.

    Values are told apart by their types, since to ask an object for an attribute may run its code.
    """
    kind = type(value)
    if kind in WRAPPERS:
        return _unwrapped(getattr(value, WRAPPERS[kind]))
    compiled = _top(kind) == "numba" and not issubclass(kind, type)
    return getattr(value, "py_func", value) if compiled else value


def _text(value: Any, seen: set[int], depth: int) -> str:
    """Return digits, or a short text, that are equal for equal code and values, in each process.

    Lists, dictionaries and other objects have no text. `seen` holds the identities of functions and classes
    whose text is already part of the whole, and `depth` is how much deeper the text may go.
    """
    value = _unwrapped(value)
    kind = type(value)
    if kind in PLAIN:
        return _digits(marshal.dumps(value, 2))
    if issubclass(kind, np.generic):
        return f"{value.dtype} {value}"
    if issubclass(kind, Enum):
        return f"{value._name_} {_text(value._value_, seen, depth)}"
    if _is_code(value):
        if not _is_own(value) or id(value) in seen or depth < 0:
            return str(value.__qualname__)
        seen.add(id(value))
        parts = _of_function(value) if kind is FunctionType else _of_class(value)
    elif issubclass(kind, partial | partialmethod):
        parts = [value.func, *value.args, *(x for item in value.keywords.items() for x in item)]
    elif issubclass(kind, property):
        parts = [value.fget, value.fset, value.fdel]
    elif kind is tuple:
        parts = [*value[:MOST]] if depth > 0 else []
        depth -= DEPTH // 3  # at most three in each other, as these may be many
    else:
        return str(value.__name__) if kind in (BuiltinFunctionType, np.ufunc) else ""
    return _digits("\n".join(_text(part, seen, depth - 1) for part in parts).encode())


def _of_function(function: FunctionType) -> list[Any]:
    """Return what tells a function from others: its code, its defaults, and what it keeps of its definer."""
    parts = [_compiled(function.__code__, function.__doc__), *(function.__defaults__ or ())]
    parts += [x for item in (function.__kwdefaults__ or {}).items() for x in item]
    assigned = _assigned("STORE_DEREF", function.__code__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it may still be empty
            parts += [name, cell.cell_contents] if name not in assigned else [name]
    return parts


def _of_class(kind: type) -> list[Any]:
    """Return what tells a class from others: names and values of its members and of those of its bases."""
    own = [vars(one) for one in kind.__mro__ if _is_own(one)]
    members = [(name, names[name]) for names in own for name in sorted(names)]
    assigned = {name for _, value in members for name in _assigned_by(value)}
    told = [
        (name, value)
        for name, value in members
        if type(value) is FunctionType or not (name.startswith("__") or name in assigned)
    ]
    return [x for item in told for x in item]


def _assigned_by(member: Any) -> set[str]:
    """Return the attributes to which a member of a class assigns, or a function that it wraps."""
    several = (member.fget, member.fset, member.fdel) if type(member) is property else (member,)
    functions = [one for one in map(_unwrapped, several) if type(one) is FunctionType]
    functions += [inner for one in functions if type(inner := vars(one).get("__wrapped__")) is FunctionType]
    return {name for one in functions for name in _assigned("STORE_ATTR", one.__code__)}


def _assigned(instruction: str, code: CodeType) -> set[str]:
    """Return the names to which code, or a function in it, assigns by an `instruction` of Python."""
    inner = (_assigned(instruction, one) for one in code.co_consts if type(one) is CodeType)
    bare = code.replace(co_consts=(None,) * len(code.co_consts))  # of which dis could not show all
    return {step.argval for step in dis.get_instructions(bare) if step.opname == instruction}.union(*inner)


def _compiled(code: CodeType, doc: str | None = None) -> str:
    """Return digits of compiled code, without its place and comments and its docstring `doc`."""
    sizes = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & 12)
    texts = [code.co_code.hex(), code.co_exceptiontable.hex(), *map(str, sizes)]
    texts += [*code.co_varnames[: code.co_nlocals], "", *code.co_names, "", *code.co_freevars]
    for one in code.co_consts:
        if type(one) is CodeType:
            texts.append(_compiled(one))
        elif type(one) is frozenset:
            texts.append(str(sorted(map(repr, one))))
        elif one is not doc:
            texts.append(repr(one) if one is ... else marshal.dumps(one, 2).hex())
    return _digits("\n".join(texts).encode())


def _files() -> dict[str, str]:
    """Return digits of the files of a user's own modules that Python has loaded, by name.

    A module that runs as a script has the name that it would have if it were imported.
    """
    found = {}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if name.partition(".")[0] in NOT_OWN or type(file) is not str or not file.endswith(".py"):
            continue
        if not {"site-packages", "dist-packages"} & {*Path(file).parts} and not file.startswith(PYTHON):
            called = Path(file).stem if name in ("__main__", "__mp_main__") else name
            with contextlib.suppress(OSError, ValueError):  # as it may have been deleted since
                found[called] = _digits(Path(file).read_bytes())
    return found


def _digits(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


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


def require_same(
    path: Path, parameters: Mapping[str, Any], versions: Mapping[str, Any], header: "Header"
) -> None:
    """Refuse, by an `InputError`, to resume a run of another configuration, or whose further bits may differ.

    `parameters` and `versions` are those of the unfinished run at `path`, and `header` is that of the program
    that resumes it.
    """
    there, here = dict(parameters), json.loads(json.dumps(dict(header.parameters)))
    files = [one.pop(OWN_FILES, {}) for one in (there, here)]
    code = [one.pop(OWN_CODE, {}) for one in (there, here)]
    if OWN_CODE in parameters:
        there, here = (_without_source(one) for one in (there, here))
        for one, own in zip((there, here), code, strict=True):
            one |= {f"{OWN_CODE} {name}": text for name, text in own.items()}
    different = [
        f"{key}: {there.get(key)!r} there, {here.get(key)!r} here"
        for key in sorted({*there, *here})
        if there.get(key) != here.get(key)
    ]
    if different:
        differences = "; ".join(different)
        raise InputError(f"{path} cannot be resumed, because it has another configuration ({differences})")
    other = [
        f"{name} {versions.get(name)} there, {header.made_with.get(name)} here"
        for name in DECIDE_BITS
        if versions.get(name) != header.made_with.get(name)
    ]
    if other:
        raise InputError(
            f"{path} cannot be resumed, because its further steps could differ in their last bits "
            f"({'; '.join(other)}); "
            "continue it with the versions that began it, or pass overwrite (--overwrite) to start again"
        )
    edited = sorted(name for name in files[0].keys() & files[1].keys() if files[0][name] != files[1][name])
    if edited:
        warnings.warn(
            f"{path} was begun with another version of {', '.join(edited)}; the code of {', '.join(code[1])} "
            "is the same, but check that what it calls is, too",
            RuntimeWarning,
            stacklevel=2,
        )


def _without_source(value: Any) -> Any:
    """Return parameters without the source code of functions, of which `OWN_CODE` has fingerprints."""
    if isinstance(value, dict):
        names = value.keys() - {"source"} if value.keys() == {"function", "source"} else value
        return {name: _without_source(value[name]) for name in names}
    return [_without_source(one) for one in value] if isinstance(value, list) else value
