"""Networks over a plane of hyperparameters: real training, its files, the command, Liu's figures."""

import csv
import time

import numpy as np
import pytest
from PIL import Image

import nets
from analysis import Refinement, classify_phases, proportion
from analysis.phases import PHASES
from grokphys.cli.main import main
from grokphys.phases import axis, is_whole, phase_diagram_of_networks
from grokphys.report.phases import NEVER
from nets import ConstantAttention, TokenTransformer, ToyAddition
from physics.errors import InputError

MODEL = ToyAddition(5, hidden=(8,))
SMALL = {"train_fraction": 0.7, "weight_decay": 0.0, "embedding_learning_rate": 0.02}


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def width(path):
    with Image.open(path) as picture:
        return picture.size[0]


def diagram_of(refinement, x="learning_rate", y="embedding_learning_rate", **others):
    limits = {"learning_rate": (1e-3, 1e-1), "embedding_learning_rate": (1e-4, 1e-1)}
    limits |= {"batch_size": (2, 9), "hidden": (2, 8), "dim": (1, 3), "train_fraction": (0.3, 0.9)}
    sides = ((name, *limits[name]) for name in (x, y))
    options = {name: value for name, value in SMALL.items() if name not in (x, y)}
    options |= {"cells": (2, 2), "steps": 200, "delay": 40, "seed": 3, "refinement": refinement, **others}
    return phase_diagram_of_networks(MODEL, *sides, **options)


# -- networks ----------------------------------------------------------------------------------------------


def test_a_run_is_the_network_of_its_number_alone():
    diagram = diagram_of(Refinement(2, 4, 1))
    rows = diagram.run_rows()
    assert 16 <= len(rows) == diagram.runs
    assert len({row["phase"] for row in rows}) > 1
    for row in rows[::7]:
        alone = nets.train(
            MODEL,
            runs=1,
            first_run=row["number"],
            seed=3,
            steps=200,
            record=[200],
            observables=("train_accuracy", "validation_accuracy"),
            thresholds={"train_accuracy": 0.9, "validation_accuracy": 0.9},
            track=2,
            **SMALL | {name: row[name] for name in ("learning_rate", "embedding_learning_rate")},
        )
        found = [alone.observables[f"steps_to_{part}_accuracy"][0, -1] for part in ("train", "validation")]
        np.testing.assert_array_equal(found, [row["train_steps"], row["validation_steps"]])
        assert row["phase"] == classify_phases(*found, delay=40)


@pytest.mark.parametrize(("x", "y"), [("batch_size", "learning_rate"), ("hidden", "train_fraction")])
def test_what_members_cannot_differ_in_takes_ensembles_of_its_own(x, y, monkeypatch):
    calls, train = [], nets.train
    monkeypatch.setattr(
        nets, "train", lambda model, **given: calls.append((model, given)) or train(model, **given)
    )
    diagram = diagram_of(Refinement(2, 2, 0), x, y, steps=20)
    assert diagram.runs == sum(given["runs"] for _, given in calls) == 8
    assert [given["first_run"] for _, given in calls] == list(
        np.cumsum([0, *(given["runs"] for _, given in calls)])[:-1]
    )
    points = {cell.point for cell in diagram.cells}
    if x == "batch_size":
        assert [given["batch_size"] for _, given in calls] == sorted({point[0] for point in points})
        assert sorted(set(calls[0][1]["learning_rate"])) == sorted({point[1] for point in points})
    else:
        assert {(model.hidden[0], given["train_fraction"]) for model, given in calls} == points
    for cell in diagram.cells:
        for run in cell.runs:
            model, given = next(
                call for call in calls if 0 <= run.number - call[1]["first_run"] < call[1]["runs"]
            )
            own = {**given, "hidden": model.hidden[0]}
            for name, value in zip((x, y), cell.point, strict=True):
                member = np.broadcast_to(own[name], given["runs"])[run.number - given["first_run"]]
                assert member == value


def test_large_ensembles_are_cut_and_numbers_go_on(monkeypatch):
    whole = diagram_of(Refinement(2, 2, 0)).table()
    monkeypatch.setattr("grokphys.phases.PACK", 3)
    assert diagram_of(Refinement(2, 2, 0)).table() == whole


def test_stored_networks_are_not_trained_again_and_damaged_ones_are(tmp_path, monkeypatch):
    refinement = Refinement(2, 4, 1)
    expected = diagram_of(refinement).table()
    assert diagram_of(refinement, store=tmp_path / "networks").table() == expected
    files = sorted((tmp_path / "networks").iterdir())
    assert files
    assert {path.suffix for path in files} == {".h5"}
    half = files[0].read_bytes()[:700]
    files[0].write_bytes(half)
    trained, train = [], nets.train
    monkeypatch.setattr(nets, "train", lambda *a, **k: trained.append(k["out"]) or train(*a, **k))
    assert diagram_of(refinement, store=tmp_path / "networks").table() == expected
    assert trained == [files[0]]
    assert files[0].with_name(f"{files[0].name}.damaged").read_bytes() == half
    assert diagram_of(refinement, store=tmp_path / "networks", progress=True).table() == expected
    assert len(trained) == 1, "whether a bar is shown decides nothing"
    other = diagram_of(Refinement(2, 2, 0), store=tmp_path / "networks", seed=4)
    assert len(trained) == 2
    assert other.runs == 8
    monkeypatch.setattr("grokphys.phases.code_digest", lambda *modules: "another program")
    assert diagram_of(refinement, store=tmp_path / "networks").table() == expected
    assert len(trained) > 2, "what other code has made is not taken for its own"
    assert not set(trained[2:]) & set(files)


KILLED = """
import os, sys
from nets.checkpoint import Checkpoint

def write_and_die(self, *arguments, write=Checkpoint.save):
    write(self, *arguments)
    os.kill(os.getpid(), 9)

Checkpoint.save = write_and_die
Checkpoint.due = property(lambda self: True)
from grokphys.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_command_goes_on_to_the_same_cells(tmp_path, python):
    words = ["phases", *TINY.split(), "--seed", "5"]
    killed = python(KILLED, *words, "--directory", tmp_path / "killed", check=False)
    assert killed.returncode == -9, killed.stderr
    assert [path for path in (tmp_path / "killed/networks").iterdir() if path.name.endswith(".h5.partial")]
    for name in ("killed", "whole"):
        assert main([*words, "--directory", str(tmp_path / name)]) == 0
    for name in ("phases.csv", "phases-runs.csv", "phases-shares.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("model", "name", "whole"),
    [
        (MODEL, "learning_rate", False),
        (MODEL, "hidden", True),
        (MODEL, "scale", False),
        (ConstantAttention(), "hidden", True),
        (TokenTransformer(), "depth", True),
    ],
)
def test_hyper_parameters_know_whether_they_are_whole(model, name, whole):
    assert is_whole(model, name) is whole


def test_scales_are_logarithmic_over_a_decade():
    assert axis(MODEL, "weight_decay", 0.1, 1.0).scale == "log"
    assert axis(MODEL, "weight_decay", 0.2, 1.0).scale == "linear"
    assert axis(MODEL, "weight_decay", 0.0, 1.0).scale == "linear"
    assert axis(MODEL, "dim", 1, 3, 3).whole


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"first_run": 100}, "options must not set first_run, which the diagram sets itself"),
        ({"weight_decay": 3.0}, "options must not set weight_decay, which the diagram sets itself"),
        ({"thresholds": {"train_accuracy": 0}}, "train_accuracy must be a finite number greater than 0"),
        ({"thresholds": [0.9, 0.9]}, "thresholds must be a mapping, such as a dict, got"),
        ({"cells": 3}, "cells must be a pair of whole numbers, got 3"),
        ({"x": ("learning_rate", "a", 1)}, "the lower end of learning_rate must be a finite number, got 'a'"),
    ],
)
def test_arguments_that_a_diagram_cannot_have_are_refused(given, sentence, monkeypatch):
    monkeypatch.setattr(nets, "train", lambda *args, **options: pytest.fail("trained before it was refused"))
    sides = {"x": ("learning_rate", 1e-3, 1e-1), "y": ("weight_decay", 0.0, 1.0)}
    with pytest.raises(InputError, match=f"^{sentence}"):
        phase_diagram_of_networks(MODEL, **sides | {"cells": (1, 1), "steps": 10} | given)


# -- the command -------------------------------------------------------------------------------------------

TINY = (
    "--model toy-addition --options tokens=5 hidden=8,8 train_fraction=0.7 embedding_learning_rate=0.02 "
    "--steps 40 --delay 10 --cells 2 3 --seeds 2 --most-seeds 2 --levels 1 --seed 3"
)


def test_the_command_writes_what_it_computed(tmp_path, capsys):
    words = ["phases", *TINY.split(), "--y", "layer_scale", "0.5", "2", "--directory", str(tmp_path)]
    assert main(words) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    cells, runs = rows_of(tmp_path / "phases.csv"), rows_of(tmp_path / "phases-runs.csv")
    leaves = [row for row in cells if row["cut"] == "False"]
    assert f"{len(leaves)} cells" in out
    assert len(runs) == sum(int(row["runs"]) for row in cells) >= 12
    for row in cells:
        own = [run["phase"] for run in runs if run["learning_rate"] == row["learning_rate"]]
        assert all(int(row[phase]) <= own.count(phase) for phase in PHASES)
        assert float(row["layer_scale_from"]) < float(row["layer_scale"]) < float(row["layer_scale_to"])
        expected = proportion(int(row[row["phase"]]), int(row["runs"]))
        assert [float(row[name]) for name in ("share", "share_low", "share_high")] == pytest.approx(
            [expected.estimate, expected.low, expected.high]
        )
    steps = [run[name] for run in runs for name in ("train_steps", "validation_steps")]
    assert all(step == NEVER or 0 <= int(step) <= 40 for step in steps)
    shares = rows_of(tmp_path / "phases-shares.csv")
    assert [row["phase"] for row in shares] == list(PHASES)
    assert sum(float(row["share"]) for row in shares) == pytest.approx(1)
    assert width(tmp_path / "phases.png") > 500
    before = (tmp_path / "phases.csv").read_bytes()
    began = time.time_ns()
    assert main([*words, "--overwrite"]) == 0  # all from the store
    assert (tmp_path / "phases.csv").read_bytes() == before
    assert all(path.stat().st_mtime_ns < began for path in (tmp_path / "networks").iterdir())
