"""The views of the explorer, one a system, and the runs behind them.

Here belongs what a view shows and does. Sessions, doors and uploads stand in `grokphys.explorer`.
"""
