"""Laws of motion fitted to trajectories: regressors, scores, the flows of fitted laws, and resampling.

This package holds estimators of ``dx/dt = Ax + b`` and of mean-field laws, and the analysis of fitted laws.
"""
