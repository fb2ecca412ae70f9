"""The toolkit live in a browser: `grokphys explore`.

Here belongs what serves a page and keeps it safe: the server and its door, sessions, uploads, what a page may
change, and the one design of all views. Views stand in `views`, the state behind them in `runs`, their live
figures in `plots`, and films without a browser in `films`.
"""
