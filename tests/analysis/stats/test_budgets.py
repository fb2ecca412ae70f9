"""Counts and budgets: samples without a value, and diagrams of which a part of the runs may be made."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import analysis
from analysis.phases.diagram import EXTRA, Refinement, _Survey
from analysis.stats.effects import cohens_h


def test_samples_without_a_value_differ_by_nothing_that_is_known():
    some = analysis.proportion(3, 4)
    for first, second in ((3 * [True] + [False], []), ([], 3 * [True] + [False])):
        found = analysis.stats.compare_proportions("circles", first, second)
        assert math.isnan(found.p_value)
        assert [len(one) for one in found.samples] == [len(first), len(second)]
        effect = found.effects["Cohen's h"]
        assert math.isnan(effect.estimate)
        assert effect.count == 4
    none = analysis.proportion(0, 0)
    assert [cohens_h(*pair).count for pair in ((some, none), (none, some), (none, none))] == [4, 4, 0]


@pytest.mark.parametrize(
    ("budget", "complete"), [(EXTRA - 1, False), (EXTRA, True), (0, False), (None, True)]
)
def test_a_diagram_is_complete_if_all_runs_that_were_wanted_could_be_made(budget, complete):
    """One cell is unclear and gets runs until it has the most; another one is decided."""
    clear, unclear = (SimpleNamespace(runs=[0] * EXTRA, clear=one) for one in (True, False))
    diagram = SimpleNamespace(cells=[clear, unclear], decided=lambda cell: cell.clear, complete=True, runs=0)
    survey = _Survey(diagram, None, Refinement(most_seeds=2 * EXTRA, most_runs=budget))
    asked = []

    def run(cells):
        asked.append(len(cells))
        for cell in cells:
            cell.runs.append(0)
        diagram.runs += len(cells)

    survey._run = run
    survey.settle()
    assert diagram.complete == complete
    assert sum(asked) == (EXTRA if budget is None else budget)
    assert len(clear.runs) == EXTRA
    assert len(unclear.runs) == EXTRA + sum(asked)


def test_a_cell_gets_no_more_runs_than_it_may_have():
    cell = SimpleNamespace(runs=[0] * EXTRA)
    diagram = SimpleNamespace(cells=[cell], decided=lambda one: False, complete=True, runs=0)
    survey = _Survey(diagram, None, Refinement(most_seeds=EXTRA + 1))
    asked = []
    survey._run = lambda cells: asked.append(len(cells)) or cell.runs.extend(np.zeros(len(cells)))
    survey.settle()
    assert asked == [1]
