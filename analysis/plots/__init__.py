"""Every figure of the library. Each function takes `ax=None`, draws on the axes, and returns them.

Here belongs what matplotlib draws for scripts, reports and papers. The live figures of the
explorer are drawn by Bokeh and stand in `grokphys.explorer.plots`.
"""
