"""Counters of He et al.: neurons that share frequencies, phases and magnitudes as chance has it."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grokphys.papers.counters.builders import drawn
from grokphys.papers.evidence import Chance
from grokphys.papers.recipe import Tables


def _broken_stick(rows: Any, generator: np.random.Generator) -> NDArray[Any]:
    """Draw the number of neurons of each row, as if frequencies shared them like a randomly broken stick."""
    counts = np.asarray(rows["neurons"]).reshape(len(np.unique(rows["network"])), -1)
    shares = generator.dirichlet(np.ones(counts.shape[1]), len(counts))
    return generator.multinomial(counts.sum(axis=1), shares).ravel()


BROKEN_STICK = drawn("neurons divided like a stick broken at random", "frequencies", neurons=_broken_stick)
RANDOM_MAGNITUDES = drawn(
    "the magnitudes of random weights, α and β from a Rayleigh distribution",
    "neurons",
    input_magnitude=lambda rows, rng: rng.rayleigh(size=len(rows["share"])),
    output_magnitude=lambda rows, rng: rng.rayleigh(size=len(rows["share"])),
)


@partial(Chance, "input phases drawn evenly from half of the circle")
def half_a_circle(tables: Tables, generator: np.random.Generator) -> Tables:
    """Return tables in which the phases of all neurons are within half a turn."""
    rows = tables["frequencies"]
    phases = [generator.uniform(0, np.pi, count) for count in rows["neurons"]]
    new = {f"asymmetry_{k}": np.array([abs(np.exp(1j * k * own).mean()) for own in phases]) for k in (2, 4)}
    return {**tables, "frequencies": {**rows, **new}}
