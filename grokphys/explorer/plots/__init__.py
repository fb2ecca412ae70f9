"""The live figures of the explorer, as Bokeh draws them.

Here belongs what a figure shows and how it is moved; what is computed for it stands in `explorer.runs`.
"""
