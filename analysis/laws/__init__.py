"""Laws of motion fitted to trajectories: regressors, their scores, the flows they generate, and resampling.

Here belong estimators of ``dx/dt = Ax + b`` and of mean-field laws, and what one asks of a fitted law.
"""
