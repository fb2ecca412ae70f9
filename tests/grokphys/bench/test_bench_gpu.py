import json

import pytest
import torch
from cuda_graphs import recorded_graphs

import grokphys.models
import nets
from grokphys.bench import gpu as bench_gpu
from grokphys.bench import gpu_tables
from grokphys.bench.gpu import Plan
from grokphys.cli.main import main

MODELS = {
    "constant attention": nets.ConstantAttention(7, 2, 8),
    "embedding MLP": nets.EmbeddingMLP(7, 6, (9,)),
    "two layers": nets.TwoLayer(7, 8),
}


def small(**options):
    """A plan of a CPU, with the graphs of `cuda_graphs`."""
    sizes = {"members": (1, 3), "networks": 4, "steps": 12, "rounds": 2, "timing_s": 0.001, "chunks": (1, 4)}
    return Plan(**{"device": "cpu", "checked": MODELS, **sizes, **options})


@pytest.fixture
def report(tmp_path, monkeypatch, capsys):
    """Status, what is printed, and what is written, of a plan."""

    def of(plan):
        recorded_graphs(monkeypatch)
        for place in (bench_gpu, gpu_tables):
            monkeypatch.setattr(place, "MANY", 10)
        status = bench_gpu.run(plan, tmp_path / "gpu.json")
        return status, capsys.readouterr().out, json.loads((tmp_path / "gpu.json").read_text())

    return of


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_there_is_one_sentence(tmp_path, capsys):
    assert main(["bench", "gpu", "--directory", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.err == "grokphys: gpu needs CUDA, which this machine or this PyTorch has not\n"
    assert not printed.out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpu", "--minutes", "0"], "minutes must be a finite number greater than 0"),
        (
            ["nets", "--minutes", "3"],
            "minutes must be left out unless gpu is among the names, got 3 with nets",
        ),
    ],
)
def test_minutes_that_mean_nothing_are_refused(arguments, message, tmp_path, capsys):
    assert main(["bench", *arguments, "--directory", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_every_model_of_the_house_is_checked():
    checked = {type(model) for model in Plan().checked.values()}
    assert checked == set(grokphys.models.MODELS.values())


def test_every_part_is_measured(report):
    status, printed, result = report(small())
    assert status == 0
    agreement = result["agreement"]
    assert len(agreement) == 2 * len(MODELS)
    assert all(row["agrees"] and row["same_bits_again"] for row in agreement)
    assert all(row["captured_after_10"] == row["after_10"] for row in agreement)
    assert [(row["model"], row["members"]) for row in result["steps"]] == [
        (model, members) for members in (1, 3) for model in Plan().timed
    ]
    for row in result["steps"]:
        assert set(row["times_as_long"]) == {"CPU", "loop", "captured"}
    assert [row["step"] for row in result["training"]][-1] == 12
    assert sum(result["training"][-1]["networks_by_survivors"]) == 4
    for word in ("constant attention", "surviving circles", "wrote"):
        assert word in printed


def test_a_device_that_computes_something_else_is_found(report, monkeypatch):
    right = bench_gpu.BatchedEngine._update

    def wrong(self, gradients):
        """Add an error of 1e-9 in every engine but the first that is asked, that of the CPU."""
        made.setdefault(id(self), len(made))
        right(self, gradients)
        if made[id(self)]:
            self._parameters["embedding"] *= 1 + 1e-9

    made = {}
    monkeypatch.setattr(bench_gpu.BatchedEngine, "_update", wrong)
    model = {"constant attention": MODELS["constant attention"]}
    status, printed, result = report(small(checked=model, timed=(), trained="constant attention"))
    assert status == 1
    assert not result["agreement"][0]["agrees"]
    assert "NO" in printed


def test_what_fails_is_named_and_the_rest_goes_on(report, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("CUDA error: no kernel\nand much more")

    monkeypatch.setattr(bench_gpu, "plain_steps", refuse)
    model = {"embedding MLP": MODELS["embedding MLP"]}
    status, printed, result = report(small(checked=model, timed=tuple(model), members=(3,)))
    assert status == 1
    assert "embedding MLP 3 failed: CUDA error: no kernel\n" in printed
    assert result["training"][-1]["step"] == 12


def test_no_part_begins_after_its_time(report):
    status, _, result = report(small(minutes=1e-9))
    assert status == 0
    assert not any(result[part] for part in ("agreement", "steps", "memory", "training"))


def test_memory_is_what_pytorch_counts(monkeypatch):
    allocated = iter([100, 700])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: next(allocated))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 1100)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    model = MODELS["embedding MLP"]
    row = bench_gpu._peak(bench_gpu.draw(model, runs=4, seed=0), "cpu", 2)
    assert (row["stored_bytes"], row["peak_bytes"]) == (600, 1000)
    assert row["activations_expected_bytes"] == 4 * 3 * (12 + 9 + 7) * 39 * 2
