"""Statistics that all of the analysis shares: intervals, effect sizes, transitions, and calibration.

Here belongs what takes plain numbers. What takes trajectories stands in the other folders of `analysis`.
"""
