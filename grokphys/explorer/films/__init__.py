"""Films and pictures without a browser: the explorer's exports, and `grokphys animate`.

Here belongs what matplotlib draws frame by frame. Single figures of the library stand in `analysis.plots`.
"""
