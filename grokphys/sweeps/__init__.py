"""`grokphys sweep`: a declared grid of runs as packs, whoever runs them, and one index."""
