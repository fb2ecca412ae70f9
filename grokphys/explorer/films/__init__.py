"""Films and pictures without a browser: the explorer's exports, and `grokphys animate`."""
