"""The papers' numbers at more runs than the demonstration takes (slow).

Ours come from many runs, the papers' from 100: they agree where the two 95 % intervals meet.
"""

import numpy as np
import pytest

import nets
import physics
from analysis import mean, proportion, structures
from analysis.stats.intervals import Interval
from grokphys.report.musat import TABLE_1, TABLE_2

pytestmark = pytest.mark.slow


def meet(first: Interval, second: Interval) -> bool:
    return first.low <= second.high and second.low <= first.high


@pytest.mark.parametrize("alignment", sorted(TABLE_2))
def test_musat_table_2(alignment):
    system = physics.ParticleSystem(alignment=alignment)
    found = structures(physics.simulate(system, runs=1000, seed=1, record=100).final)
    paper = TABLE_2[alignment]
    assert meet(found.circles, proportion(paper.circles, 100))
    assert meet(found.grid_imperfections, paper.imperfections)


@pytest.fixture(scope="module")
def networks():
    return {
        weight_decay: nets.train(runs=400, weight_decay=weight_decay, seed=1, record=2000)
        for weight_decay in TABLE_1
    }


@pytest.mark.parametrize("weight_decay", sorted(TABLE_1))
def test_musat_table_1_imperfections_and_accuracy(networks, weight_decay):
    trained, paper = networks[weight_decay], TABLE_1[weight_decay]
    found = structures(trained.final)
    assert meet(found.grid_imperfections, paper.imperfections)
    accuracy = 100 * trained.observables["validation_accuracy"][~found.circle, -1]
    # The paper gives no interval for its accuracies; that of as many networks as it had is the measure.
    as_many = np.std(accuracy) / (100 - paper.circles) ** 0.5
    assert abs(mean(accuracy).estimate - paper.rest_accuracy) < 1.96 * 2**0.5 * as_many


@pytest.mark.parametrize(
    "weight_decay",
    [
        0.0,
        0.3,
        pytest.param(
            0.6,
            marks=pytest.mark.xfail(
                strict=True,
                reason="about 4 % where the paper has 12 of 100, the one number of the table that is off",
            ),
        ),
        1.0,
    ],
)
def test_musat_table_1_circles(networks, weight_decay):
    found = structures(networks[weight_decay].final)
    assert meet(found.circles, proportion(TABLE_1[weight_decay].circles, 100))
