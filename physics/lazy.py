"""Modules and public names of a package that are imported only when they are first used."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


class LazyModule:
    """A stand-in for the module `name`, which is imported when one of its names is first used.

    Importing Numba takes a third of a second. A system whose kernels are in lazy modules can be made, checked
    and described without Numba.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        vars(self)[name] = found = getattr(import_module(self._name), name)
        return found


def lazy_modules(package: str, *names: str) -> Iterator[LazyModule]:
    """Yield a `LazyModule` for each of the modules `names` of a package, without importing any.

    `package` is the full name of the package, such as "physics.particles", and `names` are relative to it.
    """
    return (LazyModule(f"{package}.{name}") for name in names)


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package whose names are imported on first use.

    `package` is the name of the package, which is being imported, and `homes` maps each public name to its
    module.

    A function may have the name of a folder of the package, as `analysis.compare` has. When Python first
    imports such a folder, it stores the folder in the package under this name, which would hide the function.
    Such folders are therefore imported here, and their entries are deleted from the package.
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
