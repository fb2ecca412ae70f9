"""Laws of motion fitted to trajectories: regressors, their scores, the flows they generate, and resampling.

This package holds estimators of ``dx/dt = Ax + b`` and of mean-field laws, and the analysis of fitted laws.
"""
