"""All figures of the library, by subject: embeddings, signals, distributions, phases, maps, comparison.

A function for one panel takes `ax=None`, draws on these axes or on new ones, and returns them. A function for
several panels creates the figure and returns the axes (rows, columns). None of them calls `show`. This
package holds what matplotlib draws for scripts, reports and papers; the live figures of the explorer are
drawn by Bokeh, in `grokphys.explorer.plots`.
"""
