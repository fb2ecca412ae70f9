"""Comparison of two ensembles: relabeling, motion, onsets, and statistical tests.

This package holds what needs two ensembles. Measurements on one ensemble are in `analysis.circles` and
`analysis.stats`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
