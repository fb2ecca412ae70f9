"""The views of the explorer, one for each system.

This package holds the widgets of views and their reactions. In `grokphys.explorer`, the state behind them is
in `runs`, their figures are in `plots`, and sessions, access control and uploads in the package itself.
"""
