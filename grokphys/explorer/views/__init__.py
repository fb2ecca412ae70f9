"""The views of the explorer, one for each system.

This package holds the content of views and their interaction. The state behind them is in `explorer.runs`,
their figures in `explorer.plots`, and sessions, access control and uploads in `grokphys.explorer`.
"""
