"""`grokphys bench`: ratios against references that give the same results, in one run."""

import json

import pytest
import torch

import nets
from grokphys.bench import gpu, timing
from grokphys.cli.main import main


def test_calls_are_timed_in_turn_and_compared_by_round(monkeypatch):
    took = {"ours": iter([9.0, 1.0, 2.0, 4.0]), "theirs": iter([9.0, 4.0, 4.0, 4.0])}
    turns = []
    monkeypatch.setattr(timing, "seconds", lambda call: next(took[call()]))
    (row,) = timing.compare(
        "work",
        lambda: "ours",
        {"theirs": (lambda: "theirs", 4)},
        rounds=3,
        units=2,
        before=turns.append,
        error=0.5,
    )
    assert turns == ["ours", "theirs"] * 4
    assert (row["ours_s"], row["reference_s"]) == (1.0, 1.0), "medians of seconds per unit, without the first"
    assert row["ratio"] == {"median": 1.0, "least": 0.5, "most": 2.0}
    assert row["error"] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["particles", "nets"],
)
def test_benchmarks_compare_results_before_they_state_a_ratio(name, tmp_path, capsys):
    assert main(["bench", name, "--directory", str(tmp_path), "--budget", "quick"]) == 0
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["machine"]["threads"] >= 1
    assert written["budget"] == "quick"
    checked = [row for row in written["rows"] if "error" in row]
    assert all(row["error"] < 1e-6 for row in checked)
    assert checked or name == "nets"
    assert any(row["ratio"]["median"] > 0 for row in written["rows"] if "ratio" in row)
    printed = capsys.readouterr().out
    assert all(row["what"] in printed for row in written["rows"])
    before = (tmp_path / f"{name}.json").read_bytes()
    assert main(["bench", name, "--directory", str(tmp_path), "--budget", "quick"]) == 1
    assert "pass --overwrite" in capsys.readouterr().err
    assert (tmp_path / f"{name}.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["nothing"], 2, "Invalid choice"),
        (["nets", "--budget", "huge"], 2, "budget"),
        (["gpu"], 1, "gpu needs CUDA"),
    ],
)
def test_what_cannot_be_measured_is_said(arguments, status, sentence, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["bench", *arguments, "--directory", str(tmp_path / "new")]) == status
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


SMALL = {
    "constant-attention": nets.ConstantAttention(7, 2, 8),
    "embedding-mlp": nets.EmbeddingMLP(7, 6, (9,)),
    "two-layer": nets.TwoLayer(7, 8),
}


@pytest.fixture
def cpu(monkeypatch):
    """Let the CPU stand for the device, and small models for all."""
    monkeypatch.setattr(gpu, "DEVICE", "cpu")
    monkeypatch.setattr(gpu, "NETWORKS", SMALL)


def test_devices_agree_and_steps_are_timed(cpu):
    rows = gpu.agreement(timing.Effort(1, 20))
    assert [row["met"] and row["same_bits_again"] for row in rows] == [True] * 2 * len(SMALL)
    rows = gpu.steps(timing.Effort(1, 20))
    assert [row["reference"] for row in rows] == ["the CPU", "a PyTorch loop"] * 6
