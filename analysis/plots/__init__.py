"""Every figure of the library, by subject: embeddings, signals, distributions, phases, maps, comparison.

Each function of one panel takes `ax=None`, draws on the axes, and returns them; each of several panels makes
its figure and returns the axes (rows, columns). None calls `show`. Here belongs what matplotlib draws for
scripts, reports and papers. The live figures of the explorer are drawn by Bokeh and stand in
`grokphys.explorer.plots`.
"""
