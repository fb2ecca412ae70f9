"""Every column of Ding's tables from its definition, also those that no rule reads."""

import numpy as np
import pytest

from grokphys.papers.ding import figures_09_to_16 as figure_09
from grokphys.papers.ding import training


def walk(count=25, K=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(0, 0.02, (count, K)).cumsum(axis=0)) * np.arange(30, 30 + K)


@pytest.mark.parametrize("name", [training.LINEAR, training.LASSO, training.SOLVED, training.QUADRATIC])
def test_scores_of_a_law_are_of_its_changes_its_path_and_its_coefficients(name):
    x = walk()
    law, found = training.law_of(name, x), figure_09._score(name, x)
    path = training.path_of(name, law, x)
    changes = np.diff(x, axis=0)
    left = changes - law.changes(x[:-1])
    assert found["r2"] == pytest.approx(
        1 - np.mean((left**2).sum(axis=0) / (len(changes) * changes.var(axis=0)))
    )
    assert found["error"] == pytest.approx(min(np.linalg.norm(path - x) / np.linalg.norm(x), 1e3))
    assert found["error_of_rest"] == pytest.approx(np.linalg.norm(x - x[0]) / np.linalg.norm(x))
    miss = np.sqrt(np.mean((path - x) ** 2, axis=0))
    assert found["followed"] == np.mean(miss <= x[0] / 10)
    assert found["coefficients"] == (1 if name == training.QUADRATIC else np.count_nonzero(law.A) / 16)
