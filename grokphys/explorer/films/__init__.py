"""Films and pictures without a browser: the explorer's exports, and `grokphys animate`.

This package draws with matplotlib frame by frame; single figures of the library are in `analysis.plots`.
"""
