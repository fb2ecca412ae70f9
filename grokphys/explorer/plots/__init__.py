"""The live figures of the explorer, drawn by Bokeh.

This package draws and updates figures; what they show is computed in `grokphys.explorer.runs`.
"""
