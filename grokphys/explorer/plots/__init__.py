"""The live figures of the explorer, drawn by Bokeh.

This package holds the content of figures and their updates; the computations are in `explorer.runs`.
"""
