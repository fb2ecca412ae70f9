"""Laws of motion fitted to trajectories: regressors, scores, the flows of fitted laws, and resampling.

This package holds estimators of ``dx/dt = Ax + b`` and of mean-field laws, and the analysis of fitted laws.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
