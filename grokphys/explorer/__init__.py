"""The live explorer in a browser: `grokphys explore`.

This package holds the server of the page, access control, sessions, uploads, the check of changes that a page
makes, and the common design of all views. The views are in `views`, the state behind them in `runs`, their
live figures in `plots`, and films without a browser in `films`.
"""
