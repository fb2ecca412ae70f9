"""The live explorer in a browser: `grokphys explore`.

This package serves a page and keeps it safe: the server, access control, sessions, uploads, the changes that
a page may make, and the common design of all views. The views are in `views`, the state behind them in
`runs`, their live figures in `plots`, and films without a browser in `films`.
"""
