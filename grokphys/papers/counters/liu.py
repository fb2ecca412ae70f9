"""Counters of Liu et al., Figures 9, 10, 15 and 22 and Table 1: what follows from less, and other data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.phases.classification import PHASES
from grokphys.papers.counters.builders import drawn, instead, replaced
from grokphys.papers.evidence import Chance, columns_of
from physics import EffectiveTheory

OF_RATE = replaced("networks", row="column", column="row")
FINAL = {"components": "final"}
UNTRAINED = instead("accuracy", rows=FINAL | {"step": 0}, of=FINAL | {"step": 20_000})
ENOUGH = 0.4
"""Fraction of the data below which, by Appendix E, a set can determine the representation."""


def one_sample_less(samples: Sequence[tuple[int, int]]) -> Chance:
    """Return a model of data in which the last of the first 4, 6 or 8 `samples` of six tokens is left out.

    The tables "stages" and "parallelograms" of Figure 9 then hold what follows from the others.
    """

    def model(tables: Any, generator: np.random.Generator) -> Any:
        stages, found = [], []
        for given in (4, 6, 8):
            theory = EffectiveTheory(6, pairs=sorted(set(samples[: given - 1])))
            stages.append({"given": given, "n_0": theory.ground_state_dimension})
            implied = theory.implied_parallelograms.tolist()
            found += [{"given": given} | dict(zip("ijmn", own, strict=True)) for own in implied]
        return {**tables, "stages": columns_of(stages), "parallelograms": columns_of(found)}

    return Chance("what follows without the last of the samples", model)


def _without_a_phase(rows: Any, generator: np.random.Generator) -> Any:
    return np.where(rows["printed"] == generator.choice(PHASES), "not named", rows["printed"])


UNNAMED = drawn("one phase without a name, at random", "outcomes", printed=_without_a_phase)
NEVER = drawn(
    f"no set of less than {100 * ENOUGH:g} % of the data that has the bound 1",
    "sets",
    unique=lambda rows, _: np.where(rows["fraction"] < ENOUGH, 0, rows["unique"]),
)
