"""Phases of learning over two hyperparameters: axes, the classification of runs, and adaptive diagrams.

This package does not train networks; `phase_diagram` receives a function that does.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
