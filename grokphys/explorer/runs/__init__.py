"""What views show: runs that are moved, trained, read or solved, and that know how they are made again.

Here belongs the state behind a view, which knows neither Bokeh nor matplotlib.
"""
