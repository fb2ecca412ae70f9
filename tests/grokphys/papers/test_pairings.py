import csv
import json

import numpy as np
import pytest
from grokphys.papers.registry import FIGURES

from grokphys.papers.beyond import pairings
from nets.models import EmbeddingMLP


@pytest.fixture
def small(monkeypatch):
    """The pairings in seconds: few runs, short trainings."""
    for name, value in (
        ("PARTICLE_RUNS", 6),
        ("TOY_SIZES", (30, 45)),
        ("TOY_SEEDS", 2),
        ("TOY_STEPS", 240),
        ("MLP", (EmbeddingMLP(tokens=11, dim=8, hidden=(16,)), 3)),
    ):
        monkeypatch.setattr(pairings, name, {"quick": value})
    monkeypatch.setattr(pairings, "EPOCHS", 100)
    monkeypatch.setattr(pairings, "ODE_STEPS", 240)


@pytest.mark.parametrize("name", ["compare-theory", "compare-particles", "compare-ode"])
def test_a_pairing_writes_its_page_numbers_and_table(small, tmp_path, name, capsys):
    page, numbers, table = FIGURES[name](tmp_path, "quick")
    text = page.read_text()
    assert text.count("data:image/png;base64,") == text.count("<figcaption>") >= 3
    assert "The pairing" in text
    kept = json.loads(numbers.read_text())
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    scale = next(row for row in rows if row["statistic"] == "scale")
    assert float(scale["estimate"]) == kept["motion"]["scale"]["estimate"]
    assert kept["motion"]["paired"] == (name != "compare-particles")
    assert (kept["shapes"] is None) == (name == "compare-ode")
    assert (kept["accuracy"] is None) == (name != "compare-theory")
    assert "apart" in capsys.readouterr().out


def test_the_theory_starts_where_its_network_does():
    networks = pairings._toys(45, 2, 60, 0)
    flow = pairings._theory_of(networks)
    E = networks.initial.astype(float)
    expected = (E - E.mean(axis=1, keepdims=True)) / E.std(axis=1, keepdims=True)
    np.testing.assert_allclose(flow.initial, expected)
    assert (np.diff(flow.times) > 0).all()
    assert flow.times[-1] == pairings.THEORY_SPAN * 60
