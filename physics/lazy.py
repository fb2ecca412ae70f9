"""Modules and public names of a package that are imported only when they are first used."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


class LazyModule:
    """A stand-in for a module, which is imported when one of its names is first used.

    It stands for modules with kernels: importing Numba takes a third of a second, and a system can be made,
    checked and described without it.

    Parameters
    ----------
    name : str
        Full name of the module, such as "physics.particles.direct".
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        vars(self)[name] = found = getattr(import_module(self._name), name)
        return found


def lazy_modules(package: str, *names: str) -> Iterator[LazyModule]:
    """Yield a `LazyModule` for each of the modules `names` of a package.

    `package` is the full name of the package, such as "physics.particles", and `names` are the names of
    modules within it. Nothing is imported yet.
    """
    return (LazyModule(f"{package}.{name}") for name in names)


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package whose names are imported on first use.

    Parameters
    ----------
    package : str
        Name of the package, which is being imported.
    homes : mapping of str to str
        The module from which each public name is imported.

    Returns
    -------
    tuple of callables
        The two functions, which the package assigns to `__getattr__` and `__dir__`.

    Notes
    -----
    A function may have the name of a folder of the package, as `analysis.compare` has. Python stores a folder
    in its package once, when it is first imported, and would hide the function. Such folders are therefore
    imported here, and their entries are deleted from the package.
    """
    names = vars(sys.modules[package])
    for name, home in homes.items():
        if home.startswith(f"{package}.{name}."):
            import_module(f"{package}.{name}")
            del names[name]

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        names[name] = getattr(import_module(homes[name]), name)
        return names[name]

    return found, lambda: sorted([*names, *homes])
