"""Every column of Ding's tables from its definition, also those that no rule reads."""

from types import SimpleNamespace

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


def test_a_path_that_overflows_has_the_largest_error_and_is_not_followed(monkeypatch):
    x = walk()
    law = SimpleNamespace(changes=lambda x: np.zeros_like(x))
    monkeypatch.setattr(training, "law_of", lambda name, x: law)
    for factor, error in ((np.inf, 1e3), (np.nan, 1e3), (2000.0, 1e3), (1001.0, 1000.0), (1000.0, 999.0)):
        monkeypatch.setattr(training, "path_of", lambda name, law, x, f=factor: x * f)
        found = figure_09._score(training.QUADRATIC, x)
        assert found["error"] == pytest.approx(error)
        assert found["followed"] == 0
    for off, share in ((0.1, 1.0), (0.101, 0.0)):
        monkeypatch.setattr(training, "path_of", lambda name, law, x, o=off: x + (o - 1e-12) * x[0])
        assert figure_09._score(training.QUADRATIC, x)["followed"] == share
