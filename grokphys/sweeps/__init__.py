"""`grokphys sweep`: a declared grid of runs as packs, whoever runs them, and one index.

Here belongs how a sweep is declared, cut into files, run and indexed. What a run computes stands in `physics`
and `nets`; scripts read a sweep by `grokphys.open_sweep`.
"""
