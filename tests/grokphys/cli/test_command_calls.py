"""What is typed arrives: each option of a command reaches the function that does the work, unchanged."""

import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nets
import physics
from analysis.phases.diagram import Refinement
from grokphys.cli.main import main


class CalledError(Exception):
    """Ends a command at the call that is looked at."""


@pytest.fixture
def called(monkeypatch):
    """Run a command up to its call of a function, and return the arguments of the call by their names."""

    def run(place, words):
        module, _, name = place.rpartition(".")
        __import__(module)
        whole, found = getattr(sys.modules[module], name), []

        def look(*given, **named):
            bound = inspect.signature(whole).bind(*given, **named)
            bound.apply_defaults()
            found.append(bound.arguments)
            raise CalledError

        with monkeypatch.context() as patched:
            patched.setattr(sys.modules[module], name, look)
            with pytest.raises(CalledError):
                main(words.split())
        return found[0]

    return run


def subset(found, **expected):
    assert {name: found[name] for name in expected} == expected


def test_simulate(called, tmp_path):
    words = "simulate --tokens 7 --dim 3 --modulus 5 --alignment 0.5 --attraction 0.6 --repulsion 0.7"
    words += " --softening 0.3 --steps 11 --step-size 0.01 --runs 3 --record-every 4 --seed 8"
    words += " --observables potential mean_force"
    found = called(
        "grokphys.cli.simulate.simulate_system",
        f"{words} --first-run 9 --out {tmp_path / 't.h5'} --overwrite --resume",
    )
    system = physics.ParticleSystem(
        7, 3, modulus=5, alignment=0.5, attraction=0.6, repulsion=0.7, softening=0.3
    )
    subset(
        found, system=system, steps=11, step_size=0.01, runs=3, record_every=4, seed=8, first_run=9,
        observables=("potential", "mean_force"), out=tmp_path / "t.h5", overwrite=True, resume=True,
        progress=True,
    )  # fmt: skip


def test_train(called, tmp_path):
    words = "train --model toy-addition"
    words += " --tokens 7 --dim 2 --hidden 9 8 --kind classification --scale 0.5 --runs 2 --steps 11 --seed 8"
    words += " --first-run 9 --learning-rate 0.1 0.2 --weight-decay 0.3 --embedding-learning-rate 0.4"
    words += " --embedding-weight-decay 0.5 0.6 --optimizer sgd --batch-size 4 --train-fraction 0.7"
    words += (
        " --shared layers --layer-scale 0.8 --embedding-scale 0.9 1.1 --record 1:4,2 --observables train_loss"
    )
    words += (
        " --track 3 --threshold quality=0.5 --stop-at-thresholds --dtype float64 --engine torch --device cpu"
        " --stable-gradient"
    )
    found = called("nets.training.train", f"{words} --out {tmp_path / 't.h5'} --overwrite --resume")
    model = nets.ToyAddition(7, 2, hidden=(9, 8), kind="classification", scale=0.5)
    subset(
        found, model=model, runs=2, steps=11, seed=8, first_run=9, learning_rate=[0.1, 0.2],
        weight_decay=0.3, embedding_learning_rate=0.4, embedding_weight_decay=[0.5, 0.6],
        freeze_embedding=False, optimizer="sgd", batch_size=4, train_fraction=0.7, shared=("layers",),
        layer_scale=0.8, embedding_scale=[0.9, 1.1], record="1:4,2", observables=("train_loss",), track=3,
        thresholds={"quality": 0.5}, stop="thresholds", dtype="float64", engine="torch", device="cpu",
        stable_gradient=True,
        out=tmp_path / "t.h5", overwrite=True, resume=True, progress=True,
    )  # fmt: skip
    frozen = called("nets.training.train", "train --model toy-addition --freeze-embedding")
    subset(
        frozen, freeze_embedding=True, embedding_learning_rate=None, steps=5000, learning_rate=1e-3, stop=None
    )
    every = called("nets.training.train", "train --model two-layer")
    subset(every, train_fraction=1.0, learning_rate=1e-4, weight_decay=0.0)


def test_phases(called, tmp_path):
    words = "phases --model toy-addition --x weight_decay 0 5 --y learning_rate 0.001 0.02 --cells 3 4"
    words += " --scales linear auto --options hidden=9,8 embedding_learning_rate=0.5 --seeds 2 --most-seeds 5"
    words += " --levels 1 --most-runs 99 --certain 0.8 --steps 11 --delay 7 --train-accuracy 0.6"
    words += f" --validation-accuracy 0.7 --seed 8 --directory {tmp_path / 'd'}"
    found = called("grokphys.phases.phase_diagram_of_networks", words)
    subset(
        found, model=nets.ToyAddition(hidden=(9, 8)), steps=11, delay=7.0, seed=8, progress=True,
        refinement=Refinement(2, 5, 1, 99, 0.8), store=tmp_path / "d" / "networks",
        thresholds={"train_accuracy": 0.6, "validation_accuracy": 0.7},
        options={"embedding_learning_rate": 0.5, "embedding_weight_decay": 0.0},
    )  # fmt: skip
    x, y = found["x"], found["y"]
    assert (x.name, x.low, x.high, x.cells, x.scale) == ("weight_decay", 0.0, 5.0, 3, "linear")
    assert (y.name, y.low, y.high, y.cells, y.scale) == ("learning_rate", 0.001, 0.02, 4, "log")


def test_compare_demo_and_reproduce(called, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subset(
        called(
            "grokphys.report.comparing.write_file_comparison",
            "compare a b --align ends --delta 0.2 --out r.html --overwrite",
        ),
        first="a", second="b", align="ends", delta=0.2, out=Path("r.html"), overwrite=True,
    )  # fmt: skip
    subset(
        called(
            "grokphys.report.demo.demonstrate",
            "demo --directory d --runs 3 --epochs 4 --seed 8 --overwrite",
        ),
        out=Path("d"), runs=3, epochs=4, seed=8, overwrite=True, progress=True,
    )  # fmt: skip
    subset(
        called(
            "grokphys.papers.run.run_recipes",
            "reproduce ding-5 --directory d --budget quick --other-seeds 2 --figures svg",
        ),
        names=("ding-5",), directory=Path("d/seeds-2"), budget="quick", again=True, shift=2 * 10**9,
        figures="svg",
    )  # fmt: skip
    every = called("grokphys.papers.run.run_recipes", "reproduce --all --directory d")
    subset(every, directory=Path("d"), again=False, shift=0)
    assert list(every["names"]) == list(every["recipes"])
    subset(called("grokphys.papers.run.run_recipes", "reproduce --all --again --directory d"), again=True)


def test_fit_ode_and_survival(called, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "fit-ode a --law mean-field --penalty elastic-net --alpha 0.5 --l1-ratio 0.25 --max-iter 9"
    words += " --form generator --first 3 --last 30 --table t.csv"
    subset(
        called("grokphys.report.laws.recipe_of", words),
        law="mean-field", penalty="elastic-net", alpha="0.5", l1_ratio=0.25, max_iter=9, form="generator",
        resamples=0,
    )  # fmt: skip
    subset(called("grokphys.report.laws.read_signals", words), files=("a",), first=3, last=30)
    words = "survival a b --at 7 --factor 3 --signal-threshold 0.5 --groups file --bins 4"
    found = called("grokphys.report.survival.read_circles", words)
    subset(found, files=("a", "b"), at=7, factor=3.0, threshold=0.5)
    monkeypatch.setattr("grokphys.report.survival.read_circles", lambda *_: ["read"])
    subset(
        called("grokphys.report.survival.report", words),
        files=["read"], groups="file", bins=4, threshold=0.5, factor=3.0,
    )  # fmt: skip


def test_sweep_and_import(called, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text('kind = "simulate"\n[fixed]\nsteps = 2\n')
    words = "sweep s.toml --directory d --workers 3 --shard 2/5 --retries 7 --verify"
    subset(
        called("grokphys.sweeps.driver.run_sweep", words),
        directory=Path("d"), workers=3, shard="2/5", scheduler=None, retries=7, verify=True, progress=True,
    )  # fmt: skip
    subset(called("grokphys.sweeps.driver.run_sweep", "sweep s.toml"), directory=Path("results/sweep/s"))
    words = "import x.npz --out o.h5 --array E --steps-array n --dtype float64"
    subset(
        called("grokphys.importing.foreign_trajectory", words),
        source=Path("x.npz"), array="E", steps="n", dtype="float64", progress=True,
    )  # fmt: skip


def test_a_sweep_says_what_it_would_run_and_why_files_failed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text('kind = "simulate"\npack = 2\n[fixed]\nruns = 5\n[grid]\nseed = [1, 2]\n')
    assert main(["sweep", "s.toml", "--dry-run"]) == 0
    assert capsys.readouterr().out == "2 cells, 10 runs in 6 files: would be in results/sweep/s\n"
    assert main(["sweep", "s.toml", "--dry-run", "--shard", "1/3", "--directory", "d"]) == 0
    assert capsys.readouterr().out == "2 cells, 4 runs in 2 files: would be in d\n"
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]
    report = SimpleNamespace(
        runs=9, packs=3, index="i", counts={"known": 1, "failed": 2}, failures={"a": "x", "b": "y", "c": "x"}
    )
    monkeypatch.setattr("grokphys.sweeps.driver.run_sweep", lambda *_, **__: report)
    assert main(["sweep", "s.toml"]) == 1
    out, err = capsys.readouterr()
    assert out == "9 runs in 3 files (1 known, 2 failed), index in i\n"
    assert err.splitlines() == [
        "grokphys: error: a and 1 more failed: x",
        "grokphys: error: b failed: y",
    ]
    report.failures = {}
    assert main(["sweep", "s.toml"]) == 0


def test_the_list_of_recipes_is_aligned_and_may_be_of_some(capsys):
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len({len(line) - len(line.partition("  ")[2].lstrip()) for line in lines}) == 1
    assert main(["reproduce", "--list", "ding-5", "liu-4a"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["ding-5", "liu-4a"]
    assert main(["reproduce", "--list", "musat-G"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(" of 100 networks. (five minutes)"), "only the first sentence of its caption"


@pytest.mark.parametrize(("structures", "dim", "counted"), [
    ("auto", 4, True), ("auto", 5, False), ("yes", 5, True), ("no", 2, False)
])  # fmt: skip
def test_analyze_counts_structures_where_they_are_wanted(structures, dim, counted, tmp_path, capsys):
    E = np.random.default_rng(0).normal(size=(2, 1, 5, dim))
    physics.Trajectory(E, [7]).save(tmp_path / "t.h5")
    table = tmp_path / "t.csv"
    words = ["analyze", str(tmp_path / "t.h5"), "--structures", structures, "--table", str(table)]
    assert main(words) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert (" runs are circles" in first) is counted
    assert last == f"2 runs in {table}"
    values = [line.split(",") for line in table.read_text().splitlines()]
    place = values[0].index("grid_imperfections")
    assert all((row[place] != "") is counted for row in values[1:])


def test_a_circle_is_not_looked_for_among_particles(tmp_path, capsys):
    physics.simulate(physics.ParticleSystem(5), steps=2, out=tmp_path / "t.h5")
    words = ["animate", str(tmp_path / "t.h5"), "--out", str(tmp_path / "t.gif"), "--frequency", "1"]
    assert main([*words, "--view", "particles"]) == 2
    assert (
        "frequency must be left out for the view particles, got 1; take --view circles"
        in capsys.readouterr().err
    )
    for size, said in (
        (199, "size must be at least 200"),
        (4001, "size must be at most 4000, got 4001"),
    ):
        assert main(["animate", str(tmp_path / "t.h5"), "--out", "t.png", "--size", str(size)]) == 2
        assert said in capsys.readouterr().err


def test_statuses_of_signals_are_those_of_a_shell(monkeypatch, capsys):
    from grokphys.cli.main import COMMANDS
    from grokphys.interrupts import Terminated

    for raised, status, said in ((KeyboardInterrupt, 130, "interrupted"), (Terminated, 143, "terminated")):

        def fails(raised=raised) -> int:
            error = raised()
            error.add_note("3 frames are kept")
            raise error

        monkeypatch.setitem(COMMANDS, "info", fails)
        assert main(["info"]) == status
        assert capsys.readouterr().err == f"grokphys: {said}; 3 frames are kept\n"
