"""Analyze trajectories: signals, laws of motion, survival, comparison, phases, statistics and figures.

Nothing here trains or simulates; everything reads trajectories, or plain arrays. Arrays of embeddings have
the shape (..., p, d): p tokens, each with a vector of d components. The glossary (docs/glossary.md) defines
the terms of the field, such as frequency, signal and survival.

At the top stand the functions of the guide. Their results, and what else there is, stand in the subpackages:
`analysis.circles`, `analysis.laws`, `analysis.comparison`, `analysis.phases`, `analysis.stats` and
`analysis.plots`. From the top they are found too, but not listed.
"""

import runpy
from importlib import import_module
from typing import Any

import lazy_loader

runpy.run_path(f"{__path__[0]}/../physics/siblings.py")

_listed, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name not in __all__ and not name.startswith("_"):
        for package in ("circles", "laws", "comparison", "phases", "stats"):
            module = import_module(f"analysis.{package}")
            if name in module.__all__:
                return getattr(module, name)
    return _listed(name)
