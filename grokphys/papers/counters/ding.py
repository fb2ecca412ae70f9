"""Counters of Figures 9 and 16 of Ding et al.: laws that describe no signal."""

from grokphys.papers.counters.builders import drawn

DRIFT = drawn(
    "laws of constant drift, which have an R² of 0 and follow no circle", "fits", r2=0, missed=1, followed=0
)
COMPETING = drawn("coefficients that are all negative", "fits", collaborate=0)
