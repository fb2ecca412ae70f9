"""The views of the explorer, one a system.

Here belongs what a view shows and what the hand does to it. The state behind it stands in `explorer.runs`,
its figures in `explorer.plots`; sessions, doors and uploads in `grokphys.explorer`.
"""
