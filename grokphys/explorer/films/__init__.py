"""Films and pictures without a browser: the explorer's exports, and `grokphys animate`.

This package draws frame by frame with matplotlib; single figures of the library are in `analysis.plots`.
"""
