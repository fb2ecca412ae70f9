"""Sweeps: what is declared, how it is packed, and that nothing but the declaration decides what comes out."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from damage import flip

import nets
import physics
from grokphys.cli.main import main
from grokphys.files import resolve
from grokphys.models import PER_MEMBER
from grokphys.sweeps import run as sweep_run
from grokphys.sweeps import work as sweep_work
from grokphys.sweeps.config import declaration, read_declaration
from grokphys.sweeps.index import open_sweep
from grokphys.sweeps.pack import chosen_packs, packs
from grokphys.sweeps.run import run_sweep
from nets.provenance import PER_RUN
from physics import FileFormatError, InputError, OutputError
from physics.trajectory.locks import LockedFile
from physics.trajectory.recording import FileRecorder

xarray = pytest.importorskip("xarray")

SIMULATE = {
    "kind": "simulate",
    "pack": 3,
    "fixed": {"tokens": 7, "runs": 5, "steps": 30, "observables": ["potential"]},
    "grid": {"alignment": [0.0, 1.0]},
}
TRAIN = {
    "kind": "train",
    "pack": 4,
    "fixed": {"tokens": 5, "runs": 3, "steps": 30, "hidden": 8, "threshold": ["train_accuracy=0.5"]},
    "grid": {"learning_rate": [0.01, 0.1], "weight_decay": [0.5, 1]},
}
LONG = {
    "kind": "simulate",
    "pack": 2,
    "fixed": {"tokens": 17, "runs": 2, "steps": 8000, "record": 500},
    "grid": {"alignment": [0.0, 0.5, 1.0]},
}


def run(content, directory, **options):
    """Run a sweep in this process; return its report and what it told."""
    told = []
    report = run_sweep(declaration(content), directory, tell=told.append, **options)
    return report, told


def results(directory):
    """What does not depend on how runs are packed."""
    return open_sweep(directory).drop_vars(["file", "member"])


def same(directory, other):
    assert open_sweep(directory).identical(open_sweep(other))
    assert bool(open_sweep(directory)["complete"].all())


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """An undisturbed sweep of three files that take a part of a second each."""
    directory = tmp_path_factory.mktemp("long")
    report, told = run(LONG, directory)
    assert (report.counts, told) == ({"computed": 3}, [])
    return directory


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """An undisturbed sweep of four small files."""
    directory = tmp_path_factory.mktemp("sound")
    assert run(SIMULATE, directory)[0].counts == {"computed": 4}
    return directory


@pytest.fixture
def copy(sound, tmp_path):
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "copy"))


@pytest.fixture
def config(tmp_path):
    """Write a configuration and return its path."""

    def write(content):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(content))
        return path

    return write


# -- what is declared ---------------------------------------------------------------------------------------


def test_toml_and_json_declare_the_same(tmp_path, config):
    toml = tmp_path / "config.toml"
    toml.write_text(
        'kind = "train"\npack = 4\n[fixed]\ntokens = 5\nruns = 3\nsteps = 30\nhidden = 8\n'
        'threshold = ["train_accuracy=0.5"]\n[grid]\nlearning_rate = [0.01, 0.1]\nweight_decay = [0.5, 1]\n'
    )
    assert read_declaration(toml) == read_declaration(config(TRAIN))


def test_lists_and_grids_span_the_cells():
    sizes = declaration({"kind": "simulate", "grid": {"tokens": [None, 5]}}).cells
    assert [cell.parameters["tokens"] for cell in sizes] == [None, 5], "null is the default, 17"
    listed = {"list": [{"tokens": 5}, {"tokens": 7, "dim": 3}], "grid": {"alignment": [0, 1]}}
    declared = declaration({"kind": "simulate", "fixed": {"first_run": 2, "runs": 4}} | listed)
    assert declared.axes == ("entry", "alignment")
    found = [(c.parameters["tokens"], c.parameters["dim"], c.parameters["alignment"]) for c in declared.cells]
    assert found == [(5, 2, 0.0), (5, 2, 1.0), (7, 3, 0.0), (7, 3, 1.0)]
    assert declared.cells[3].coordinates == {"entry": 1, "tokens": 7, "dim": 3, "alignment": 1.0}
    assert all(cell.numbers == range(2, 6) for cell in declared.cells)


def test_names_of_files_hash_what_is_run_and_nothing_else():
    def names(**fixed):
        return [pack.name for pack in packs(declaration(TRAIN | {"fixed": TRAIN["fixed"] | fixed}))]

    assert names() == names(seed=0, layer_scale=1) == names(hidden=[8], embedding_learning_rate=None)
    assert not set(names()) & set(names(seed=1))
    assert not set(names()) & set(names(steps=31))
    assert len(set(names())) == 3


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "kind must be one of 'simulate', 'train', got None"),
        ({"knid": "train"}, "knid is not a section of a sweep; did you mean kind?"),
        ({"kind": "dance"}, "kind must be one of 'simulate', 'train', got 'dance'"),
        ({"kind": "train", "fixed": {"learning_rat": 1}}, "did you mean learning_rate?"),
        ({"kind": "train", "list": [{"zzz": 1}]}, "zzz is not a parameter of train; known are model, tokens"),
        ({"kind": "train", "grid": {"seed": 1}}, "seed of the grid must list at least one value, got 1"),
        ({"kind": "train", "fixed": [1]}, "fixed must be a mapping, such as a dict, got [1]"),
        ({"kind": "train", "list": {"seed": 1}}, "list must hold tables, each under [[list]], got dict"),
        ({"kind": "train", "fixed": {"seed": 1}, "list": [{"seed": 2}]}, "seed must be in only one of fixed"),
        ({"kind": "train", "fixed": {"out": "x"}}, "out is not a parameter of train"),
        ({"kind": "train", "fixed": {"runs": 0}}, "runs must be at least 1, got 0"),
        ({"kind": "train", "fixed": {"steps": 2.5}}, "steps must be a whole number of at least 0, got 2.5"),
        ({"kind": "train", "fixed": {"steps": 0}}, "steps must be at least 1, got 0"),
        ({"kind": "train", "fixed": {"weight_decay": [1]}}, "weight_decay must be a finite number, got [1]"),
        ({"kind": "train", "fixed": {"model": 3}}, "model must be one of 'constant-attention'"),
        ({"kind": "train", "fixed": {"freeze_embedding": 1}}, "freeze_embedding must be True or False, got"),
        (
            {"kind": "train", "grid": {"seed": [0, float("nan")]}},
            "seed must be a whole number of at least 0, got",
        ),
        ({"kind": "train", "pack": 0}, "pack must be at least 1, got 0"),
        ({"kind": "train", "grid": {"weight_decay": [1, 1.0]}}, "list and grid must name each cell once"),
        ({"kind": "simulate", "grid": {"tokens": [5, 2]}}, "tokens must be at least 3, got 2 (in the cell"),
        (
            {"kind": "simulate", "fixed": {"system": "effective-theory", "alignment": 2}},
            "alignment is not a parameter of effective-theory; known are",
        ),
    ],
)
def test_bad_declarations_end_in_a_sentence(content, sentence, config, capsys):
    path = config(content)
    assert main(["sweep", str(path), "--directory", str(path.parent / "out")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (path.parent / "out").exists()


# -- packing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [SIMULATE, TRAIN], ids=["simulate", "train"])
def test_results_do_not_depend_on_the_packing(content, tmp_path):
    for pack in (4, 1000):
        run(content | {"pack": pack}, tmp_path / str(pack))
    xarray.testing.assert_equal(results(tmp_path / "4"), results(tmp_path / "1000"))


def test_models_that_pytorch_trains_do_not_depend_on_the_packing(tmp_path):
    fixed = {"model": "token-transformer", "tokens": 5, "dim": 4, "depth": 1, "heads": 2, "width": 6}
    content = {"kind": "train", "fixed": fixed | {"runs": 2, "steps": 3}}
    content["grid"] = {"learning_rate": [0.01, 0.02]}
    for pack in (1, 3):
        run(content | {"pack": pack}, tmp_path / str(pack))
    xarray.testing.assert_equal(results(tmp_path / "1"), results(tmp_path / "3"))


def test_a_cell_is_what_the_command_gives(tmp_path):
    run(TRAIN, tmp_path)
    data = open_sweep(tmp_path, unstack=True)
    assert dict(data.sizes) == {"learning_rate": 2, "weight_decay": 2, "run": 3}
    cell = data.sel(learning_rate=0.1, weight_decay=1.0)
    alone = nets.train(
        nets.ConstantAttention(5, hidden=8), runs=3, steps=30, learning_rate=0.1, record="20",
        thresholds={"train_accuracy": 0.5},
    )  # fmt: skip
    for name in alone.observables:
        np.testing.assert_array_equal(cell[name], alone.observables[name][:, -1])
    np.testing.assert_array_equal(cell["circle"], physics.is_circle(alone.final))
    np.testing.assert_array_equal(cell["grid_imperfections"], physics.grid_imperfections(alone.final))
    for k in range(3):  # the index says where each run is, and the file how it was made
        stored = physics.load(tmp_path / str(cell["file"][k].item())).run(int(cell["member"][k]))
        np.testing.assert_array_equal(stored.positions[0], alone.positions[k])
        assert stored.parameters["learning_rate"] == [0.1]
        assert stored.run_numbers.tolist() == [k]


def test_a_simulated_cell_is_what_the_command_gives(tmp_path):
    theory = {"kind": "simulate", "fixed": {"system": "effective-theory", "steps": 20, "runs": 2}}
    run(theory | {"grid": {"modulus": [None, 10]}}, tmp_path / "theory")
    run(SIMULATE, tmp_path / "particles")
    data = open_sweep(tmp_path / "particles", unstack=True).sel(alignment=1.0)
    alone = physics.simulate(physics.ParticleSystem(7), runs=5, steps=30, observables=["potential"])
    np.testing.assert_array_equal(data["potential"], alone.observables["potential"][:, -1])
    np.testing.assert_array_equal(data["grid_imperfections"], physics.grid_imperfections(alone.final))
    alone = physics.simulate(physics.EffectiveTheory(10, modulus=10), runs=2, steps=20)
    found = open_sweep(tmp_path / "theory")
    np.testing.assert_array_equal(found["loss"][2:], alone.observables["loss"][:, -1])
    assert "circle" not in found


def test_default_packs_are_bounded_by_runs_and_by_time():
    def sizes(**fixed):
        declared = declaration({"kind": "simulate", "fixed": {"runs": 600} | fixed})
        return [len(pack.numbers) for pack in packs(declared)]

    assert sizes() == [256, 256, 88]
    assert sizes(runs=2, steps=10**8) == [1, 1]


def test_shards_are_disjoint_and_together_whole(sound, tmp_path):
    whole = packs(declaration(TRAIN | {"pack": 1}))
    parts = [chosen_packs(declaration(TRAIN | {"pack": 1}), f"{part}/5") for part in range(1, 6)]
    assert sorted(pack.name for part in parts for pack in part) == sorted(pack.name for pack in whole)
    assert {len(part) for part in parts} == {2, 3}
    for part in ("2/2", "1/2"):
        report, _ = run(SIMULATE, tmp_path / "parts", shard=part)
        assert report.counts == {"computed": 2}
        assert len(open_sweep(report.index)["run"]) == report.runs
    report, _ = run(SIMULATE, tmp_path / "parts", shard="5/5")  # of four packs
    assert report.runs == len(open_sweep(report.index, unstack=True)["run"]) == 0
    report, told = run(SIMULATE, tmp_path / "parts")
    assert (report.counts, told) == ({"found": 4}, []), "the indices of the shards know all"
    same(tmp_path / "parts", sound)


# -- files and index ----------------------------------------------------------------------------------------


def test_what_is_complete_is_not_run_again(tmp_path):
    run(SIMULATE, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("simulate-*")}
    assert run(SIMULATE, tmp_path)[0].counts == {"found": 4}
    assert run(SIMULATE, tmp_path, verify=True)[0].counts == {"found": 4}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("simulate-*")} == before
    assert len(before) == 4


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize(("damage", "verify"), [(truncate, False), (empty, False), (flip, True)])
def test_a_damaged_file_is_put_aside_and_made_again(damage, verify, sound, copy):
    victim = sorted(copy.glob("simulate-*"))[2]
    damage(victim)
    report, told = run(SIMULATE, copy, verify=verify)
    assert report.counts == {"found": 3, "computed": 1}
    assert f"it is now {victim.name}.damaged and is made again" in told[0]
    assert victim.with_name(victim.name + ".damaged").exists()
    same(copy, sound)


def test_a_file_of_another_pack_is_put_aside(sound, copy):
    first, second = sorted(copy.glob("simulate-*.h5"))[:2]
    for old, new in ((first, copy / "other"), (second, first), (copy / "other", second)):
        old.rename(new)
    assert run(SIMULATE, copy, verify=True)[0].counts == {"found": 2, "computed": 2}
    same(sound, copy)


def test_a_file_of_a_newer_version_stays(copy):
    path = next(copy.glob("simulate-*.h5"))
    with h5py.File(path, "r+") as file:
        file["parameters"].attrs["schema_version"] = 99
    before = path.read_bytes()
    report, _ = run(SIMULATE, copy, verify=True)
    assert report.counts.get("computed", 0) == 0
    assert path.read_bytes() == before


def test_a_file_that_is_gone_is_made_again(sound, copy):
    next(copy.glob("simulate-*")).unlink()
    report, _ = run(SIMULATE, copy)
    assert report.counts == {"found": 3, "computed": 1}
    same(sound, copy)


@pytest.mark.parametrize("damage", [truncate, empty])
def test_a_damaged_index_is_made_again_by_the_sweep(damage, sound, copy):
    damage(copy / "index.h5")
    with pytest.raises(FileFormatError, match="damaged or no index of a sweep .*makes it from"):
        open_sweep(copy)
    assert run(SIMULATE, copy)[0].counts == {"found": 4}
    same(sound, copy)


def test_patterns_of_trajectories_leave_out_the_index(copy):
    found = resolve([str(copy / "*.h5")])
    assert found
    assert all(path.name.startswith("simulate-") for path in found)
    assert resolve([str(copy / "index.h5")]) == [copy / "index.h5"]


def test_an_index_of_a_newer_version_is_not_read(copy):
    with h5py.File(copy / "index.h5", "r+") as file:
        file.attrs["schema_version"] = "9"
    with pytest.raises(FileFormatError, match="has schema version 9; this version of GrokPhys reads up to 1"):
        open_sweep(copy)


def test_an_interrupted_sweep_says_how_to_go_on(config, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(physics.ParticleSystem, "advance", interrupted)
    assert main(["sweep", str(config(SIMULATE)), "--directory", str(tmp_path / "out")]) == 130
    said = capsys.readouterr().err
    assert "run the same sweep again to continue it" in said
    assert "--resume" not in said


def interrupted(self, positions, step_size, steps):
    raise KeyboardInterrupt


def test_a_grown_sweep_runs_what_is_new(copy, tmp_path):
    more = SIMULATE | {"grid": {"alignment": [0.0, 1.0, 2.0]}}
    report, told = run(more, copy)
    assert report.counts == {"found": 4, "computed": 2}
    assert told == []
    run(more, tmp_path / "fresh")
    same(copy, tmp_path / "fresh")


def test_runs_of_another_program_are_not_mixed_with_new_ones(copy, monkeypatch):
    monkeypatch.setattr("grokphys.sweeps.pack.code_digest", lambda *packages: "another program")
    old = sorted(path.name for path in copy.glob("simulate-*.h5"))
    report, told = run(SIMULATE, copy)
    assert report.counts == {"computed": 4}
    assert [note for note in told if "is of other code or other libraries" in note] == told
    assert len(told) == 1
    index = open_sweep(copy)
    assert not set(index["file"].values) & set(old)
    assert set(old) < {path.name for path in copy.glob("simulate-*.h5")}, "they stay"
    assert run(SIMULATE, copy) == (replace(report, counts={"found": 4}), [])


def test_a_value_of_null_has_a_coordinate_of_its_own(tmp_path):
    content = {"kind": "simulate", "fixed": {"tokens": 5, "steps": 3, "runs": 2},
               "grid": {"step_size": [0.5, None, 0.25], "integrator": ["euler", "adaptive"]}}  # fmt: skip
    run(content, tmp_path)
    rows, spread = open_sweep(tmp_path), open_sweep(tmp_path, unstack=True)
    np.testing.assert_array_equal(spread["step_size"], [0.25, 0.5, np.nan])
    assert spread["integrator"].values.tolist() == ["adaptive", "euler"]
    for k in range(rows.sizes["row"]):
        row = rows.isel(row=k)
        size = float(row["step_size"])
        place = spread.isel(step_size=2 if np.isnan(size) else [0.25, 0.5].index(size))
        assert int(place["cell"].sel(integrator=row["integrator"], run=row["run"])) == int(row["cell"])


def test_a_single_cell_and_other_readers(tmp_path):
    run({"kind": "simulate", "fixed": {"tokens": 5, "runs": 4, "steps": 3, "first_run": 7}}, tmp_path)
    data = open_sweep(tmp_path, unstack=True)
    assert data["run"].values.tolist() == [7, 8, 9, 10]
    for engine in ("h5netcdf", "netcdf4"):
        with xarray.open_dataset(tmp_path / "index.h5", engine=engine) as plain:
            np.testing.assert_array_equal(plain["grid_imperfections"], data["grid_imperfections"])


# -- failures -----------------------------------------------------------------------------------------------


def test_what_fails_is_listed_and_the_rest_is_done(config, tmp_path, capsys):
    wild = {"repulsion": 1e308, "softening": 1e-200, "step_size": 1e200}
    content = {"kind": "simulate", "fixed": {"tokens": 5, "runs": 2}, "list": [{"repulsion": 1.0}, wild]}
    assert main(["sweep", str(config(content)), "--directory", str(tmp_path / "out")]) == 1
    captured = capsys.readouterr()
    assert "4 runs in 2 files (1 computed, 1 failed)" in captured.out
    assert "h5 failed: the state overflowed in step 1" in captured.err
    assert "tried again" not in captured.err
    data = open_sweep(tmp_path / "out")
    assert data["complete"].values.tolist() == [True, True, False, False]
    assert np.isnan(data["circle"].values).tolist() == [False, False, True, True]


def test_a_failure_is_tried_again(tmp_path, monkeypatch):
    whole = sweep_work.Pack.run
    tried = []

    def sometimes(self, out, **options):
        tried.append(self.name)
        if tried.count(self.name) <= 2:
            raise OutputError(f"cannot write {out}: No space left on device")
        return whole(self, out, **options)

    monkeypatch.setattr(sweep_work.Pack, "run", sometimes)
    report, told = run(SIMULATE, tmp_path / "a", retries=1)
    assert report.counts == {"failed": 4}
    assert {text.rpartition(": ")[2] for text in report.failures.values()} == {"No space left on device"}
    assert len(tried) == 8
    assert sum("it is tried again" in note for note in told) == 4
    tried.clear()
    assert run(SIMULATE, tmp_path / "b")[0].counts == {"computed": 4}
    assert len(tried) == 12


def test_diverged_networks_are_results(tmp_path):
    content = {"kind": "train", "fixed": {"tokens": 5, "hidden": 8, "steps": 20, "weight_decay": 0.0}}
    report, told = run(content | {"grid": {"learning_rate": [0.01, 1e300]}}, tmp_path)
    assert report.failures == {}
    assert "1 of 2 runs diverged: the training loss or a parameter of run 0" in told[0]
    data = open_sweep(tmp_path)
    assert data["status"].values.tolist() == [0, 2]
    assert np.isfinite(data["circle"].values).tolist() == [True, False]


@pytest.mark.parametrize("kept", ["frames", "garbage"])
def test_a_partial_file_is_resumed_or_begun_anew(kept, sound, tmp_path, monkeypatch):
    directory = tmp_path / "broken"
    directory.mkdir()
    pack = packs(declaration(SIMULATE))[1]
    partial = directory / (pack.name + ".partial")
    if kept == "frames":
        with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
            patched.setattr(FileRecorder, "_finish", lambda _: 1 / 0)
            pack.run(directory / pack.name)
        assert partial.exists()
    else:
        partial.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(3000))
    report, told = run(SIMULATE, directory)
    if kept == "frames":
        assert (report.counts, told) == ({"computed": 3, "resumed": 1}, [])
    else:
        assert report.counts == {"computed": 4}
        assert "cannot be resumed" in told[0]
        assert "it starts again" in told[0]
    same(directory, sound)


# -- several processes --------------------------------------------------------------------------------------


def sweep_process(config, out, *options, **more):
    command = [sys.executable, "-m", "grokphys", "sweep", str(config), "--directory", str(out)]
    command += options
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)


def wait_for(condition, seconds=120.0):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.005)


def underway(directory):
    """Whether a file is complete and another one is being written."""
    return any(directory.glob("*.h5")) and any(directory.glob("simulate-*.partial"))


def children_of(pid):
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    except OSError:
        return ""


def local_workers(pid):
    return [child for child in children_of(pid) if "spawn_main" in command_of(child)]


def test_a_killed_driver_loses_nothing(long, config, tmp_path):
    out = tmp_path / "out"
    driver = sweep_process(config(LONG), out, "--workers", "2")
    wait_for(lambda: underway(out))
    workers = local_workers(driver.pid)
    driver.kill()
    driver.communicate()
    assert workers
    wait_for(lambda: not any("spawn_main" in command_of(worker) for worker in workers))
    assert not (out / "index.h5").exists()
    report, told = run(LONG, out)
    assert all("it starts again" in note for note in told), told  # one killed before its first frame
    assert report.counts.get("found", 0) >= 1, report.counts
    same(out, long)


def test_a_killed_worker_is_replaced(long, config, tmp_path):
    out = tmp_path / "out"
    driver = sweep_process(config(LONG), out, "--workers", "2")
    wait_for(lambda: any(out.glob("simulate-*.partial")) and len(local_workers(driver.pid)) == 2)
    os.kill(local_workers(driver.pid)[0], signal.SIGKILL)
    said, told = driver.communicate(timeout=120)
    assert driver.returncode == 0, told
    assert "a worker process died" in told
    assert "leaked" not in told
    assert "6 runs in 3 files" in said
    same(out, long)


@pytest.mark.slow
def test_two_drivers_share_a_directory(long, config, tmp_path):
    out = tmp_path / "out"
    drivers = [sweep_process(config(LONG), out) for _ in range(2)]
    for driver in drivers:
        _, told = driver.communicate(timeout=120)
        assert driver.returncode == 0, told
    same(out, long)
    assert not list(out.glob("*.damaged*"))
    assert not list(out.glob("*.lock"))


def test_a_file_that_another_process_writes_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_run, "LOOK_AGAIN", 0.05)
    name = packs(declaration(SIMULATE))[0].name
    held = LockedFile(tmp_path / f"{name}.partial")
    told = []

    def tell(note):
        told.append(note)
        held.close()

    report = run_sweep(declaration(SIMULATE), tmp_path, tell=tell)
    assert told == [f"{name} is being written by another process; waiting for it"]
    assert sum(report.counts.values()) == 4


FULL = """
import resource, signal, sys
from grokphys.cli.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.exit(main(["sweep", sys.argv[1], "--directory", sys.argv[2], "--retries", "1"]))
"""


def test_a_full_disk(config, tmp_path, python):
    content = {"kind": "simulate", "pack": 20, "fixed": {"runs": 20, "steps": 300}, "grid": {"seed": [1, 2]}}
    done = python(FULL, config(content), tmp_path / "full", check=False)
    assert done.returncode == 1, done.stderr
    assert "File too large" in done.stderr
    assert done.stderr.count("it is tried again") == 2
    assert done.stderr.count("failed: cannot write") == 2
    assert not bool(open_sweep(tmp_path / "full")["complete"].any())
    report, _ = run(content, tmp_path / "full")  # there is room again
    assert sum(report.counts.values()) == 2
    run(content, tmp_path / "roomy")
    same(tmp_path / "full", tmp_path / "roomy")


def test_an_interrupted_pool_leaves_no_process(long, config, tmp_path):
    driver = sweep_process(config(LONG), tmp_path / "out", "--workers", "2")
    wait_for(lambda: any((tmp_path / "out").glob("simulate-*.partial")))
    workers = local_workers(driver.pid)
    driver.send_signal(signal.SIGINT)
    _, told = driver.communicate(timeout=120)
    assert driver.returncode == 130, told
    assert "run the same sweep again to continue it" in told
    assert workers
    assert not any("spawn_main" in command_of(worker) for worker in workers)
    run(LONG, tmp_path / "out")
    same(tmp_path / "out", long)


# -- Dask ---------------------------------------------------------------------------------------------------


def test_a_scheduler_that_does_not_answer(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep_run, "ANSWER_SECONDS", 0.5)
    with pytest.raises(InputError, match="scheduler tcp://127.0.0.1:9 does not answer or has no workers"):
        run(SIMULATE, tmp_path, scheduler="tcp://127.0.0.1:9")


@pytest.fixture
def cluster(tmp_path):
    """Start a scheduler and workers as processes of their own: (address, start a worker)."""
    pytest.importorskip("distributed")
    logs = tmp_path / "cluster"
    logs.mkdir()
    processes = []

    def start(name, *arguments, **environment):
        with (logs / name).open("w") as log:
            command = [sys.executable, "-m", f"distributed.cli.dask_{name.split('-')[0]}", *arguments]
            processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, cwd=logs, env={**os.environ, **environment})
            )
        return processes[-1]

    file = logs / "scheduler.json"
    local = ("--host", "127.0.0.1", "--no-dashboard")
    scheduler = start("scheduler", *local, "--port", "0", "--scheduler-file", str(file))

    def known():
        return file.exists() and file.read_text().rstrip().endswith("}")

    def worker(number, **environment):
        options = ("--nthreads", "1", "--no-nanny", *local)
        return start(f"worker-{number}", address, *options, **environment)

    worker.scheduler = scheduler
    try:
        wait_for(known)
        address = json.loads(file.read_text())["address"]
        yield address, worker
    finally:
        for process in processes:
            process.kill()
            process.wait()


def path_with(*first):
    """PYTHONPATH under which the workers find this package, after what comes first."""
    here = str(Path(sweep_run.__file__).parents[2])
    return os.pathsep.join([*map(str, first), here, os.environ.get("PYTHONPATH", "")])


@pytest.mark.slow
def test_a_killed_worker_of_a_cluster(long, config, tmp_path, cluster):
    address, worker = cluster
    workers = [worker(k, PYTHONPATH=path_with()) for k in range(2)]
    out = tmp_path / "out"
    driver = sweep_process(config(LONG), out, "--scheduler", address)
    wait_for(lambda: underway(out) or driver.poll() is not None)
    assert driver.poll() is None, driver.communicate()
    workers[0].kill()
    said, told = driver.communicate(timeout=120)
    assert driver.returncode == 0, told
    assert "6 runs in 3 files" in said
    same(out, long)


@pytest.mark.slow
def test_a_killed_scheduler_ends_in_a_sentence(long, config, tmp_path, cluster):
    address, worker = cluster
    worker(0, PYTHONPATH=path_with())
    out = tmp_path / "out"
    driver = sweep_process(config(LONG), out, "--scheduler", address)
    wait_for(lambda: underway(out) or driver.poll() is not None)
    assert driver.poll() is None, driver.communicate()
    worker.scheduler.kill()
    _, told = driver.communicate(timeout=120)
    assert driver.returncode == 2, told
    assert "scheduler no longer answers; run the same sweep again to continue it" in told
    run(LONG, out)
    same(out, long)


def test_a_worker_of_another_program_refuses_a_pack(tmp_path):
    pack = replace(packs(declaration(SIMULATE))[0], program="another")
    settled = sweep_work.settle(pack, tmp_path)
    assert settled.error == "a worker has other code or other libraries than the sweep"
    assert not list(tmp_path.iterdir())


def test_networks_of_one_pack_may_differ_in_what_training_takes_a_run():
    assert set(PER_MEMBER) <= set(PER_RUN)


def test_a_model_of_a_sweep_is_trained_as_on_the_command_line():
    """By either of its names, and with the rates of its paper where none are declared."""
    for name in ("EmbeddingMLP", "embedding-mlp"):
        (cell,) = declaration({"kind": "train", "fixed": {"model": name, "runs": 2}}).cells
        assert cell.parameters["model"] == "embedding-mlp"
        assert (cell.parameters["weight_decay"], cell.parameters["steps"]) == (0.5, 30_000)
    (cell,) = declaration({"kind": "train", "fixed": {"runs": 2, "weight_decay": 0.3}}).cells
    assert (cell.parameters["learning_rate"], cell.parameters["weight_decay"]) == (0.01, 0.3)
    assert cell.parameters["steps"] == 2000
    with pytest.raises(InputError, match="steps must be a whole number"):
        declaration({"kind": "train", "fixed": {"steps": None}}).cells  # noqa: B018
