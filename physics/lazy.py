"""Modules, and public names of a package, that are imported when they are first used."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


class LazyModule:
    """A module that is imported when one of its names is first used, such as one with kernels.

    Importing Numba takes a third of a second, and a system can be built, checked and drawn without it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        vars(self)[name] = found = getattr(import_module(self._name), name)
        return found


def lazy_modules(package: str, *names: str) -> Iterator[LazyModule]:
    """Return modules of a package that are imported when they are first used."""
    return (LazyModule(f"{package}.{name}") for name in names)


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package that imports each name of `homes` from its module.

    A name may be that of the folder where it stands, as `analysis.compare` is. Python puts a folder into its
    package when it is first imported, and never again: it is imported here, and makes room for the name.
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
