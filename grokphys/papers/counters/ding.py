"""Counters of Figures 6, 9 and 16 of Ding et al.: survivors at random, and laws that describe no signal."""

from grokphys.papers.counters.builders import drawn

DRIFT = drawn(
    "laws of constant drift, which have an R² of 0 and follow no circle", "fits", r2=0, missed=1, followed=0
)
COMPETING = drawn("coefficients that are all negative", "fits", collaborate=0)
SURVIVORS_AT_RANDOM = drawn(
    "survivors drawn at random from the 29 circles, as many as survive",
    "runs",
    larger=lambda rows, rng: 29 * rng.random(len(rows["circles"])) < rows["circles"],
)
NONE_REVIVED = drawn(
    "no other frequency that survives", "runs", revived=lambda rows, _: rows["revived"] & False
)
