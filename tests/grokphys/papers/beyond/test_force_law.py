"""The rules of the force law: the worst cell decides, and each is false where its model of data says so."""

import numpy as np
import pytest

from grokphys.papers import evidence
from grokphys.papers.beyond.forces import CELL, _mean, extreme
from grokphys.papers.judge import decide, judge
from grokphys.papers.recipe import Statement
from grokphys.papers.run import recipes


def table(means, networks=20, spread=0.1):
    """Networks of cells with these means, each within `spread` of its cell's."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(-spread, spread, (len(means), networks))
    values = np.array(means)[:, None] + noise - noise.mean(axis=1, keepdims=True)
    return {"t": evidence.table_of({"cell": range(len(means)), "network": range(networks)}, x=values)}


@pytest.mark.parametrize(
    ("means", "verdict"),
    [([0.0, 0.1, 0.2], "agrees"), ([0.0, 0.1, 0.5], "disagrees"), ([0.0, 0.1, 0.3], "undecided")],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_worst_cell_decides(means, verdict, sign):
    measure = extreme(_mean("x"), "t", ("cell",), sign)
    bounds = {"most": 0.3} if sign > 0 else {"least": -0.3}
    rule = Statement("n", "q", "e", measure, chance="none", **bounds)
    found = measure(table(sign * np.array(means)), 0.95)
    assert decide(rule, found).verdict == verdict
    assert found.estimate == pytest.approx(sign * max(means))
    assert found.count == 20


def test_the_rules_hold_of_the_trial_and_fail_where_they_should():
    """On tables with the numbers that were seen before, in every cell, all hold; none does on its model."""
    generator = np.random.default_rng(1)
    index = {"tokens": [17, 31], "dim": [2, 3], "decay": [0.3, 1.0]}

    def near(value, shape):
        return value + 0.05 * generator.standard_normal(shape)

    frames = index | {"window": ["early", "middle", "late"], "network": range(20)}
    r2 = {"actual_musat": 0.2, "actual": 0.3, "converged": 0.5, "one_body": 0.1, "ceiling": 0.8}
    shapes = {"start": 0.4, "particles": 0.6, "another": 0.3}
    tables = {
        "frames": evidence.table_of(frames, **{k: near(v, (2, 2, 2, 3, 20)) for k, v in r2.items()}),
        "laws": evidence.table_of(
            index | {"state": ["converged"], "window": ["all"]}, alignment=0.0, error=0.05, networks=20
        ),
        "fates": evidence.table_of(
            index | {"network": range(20)}, **{k: near(v, (2, 2, 2, 20)) for k, v in shapes.items()}
        ),
    }
    assert set(CELL) <= set(tables["laws"])
    rules = recipes()["force-law"].rules
    assert {claim.verdict for claim in judge(rules, tables)} == {"agrees"}
    for rule in rules:
        assert judge((rule,), rule.chance(tables, generator))[0].verdict != "agrees"
