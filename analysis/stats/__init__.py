"""Statistics that all of the analysis shares: intervals, effect sizes, transitions, and calibration.

This package works on plain numbers; code that works on trajectories is in the other folders of `analysis`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
