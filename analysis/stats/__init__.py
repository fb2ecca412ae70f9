"""Statistics that all of the analysis shares: intervals, effect sizes, transitions, and calibration.

This package works on plain numbers; code that works on trajectories is in the other folders of `analysis`.
"""
