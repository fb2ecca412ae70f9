"""The state behind views: runs that are simulated, trained, read or solved, and that can be reproduced.

This package depends neither on Bokeh nor on matplotlib.
"""
