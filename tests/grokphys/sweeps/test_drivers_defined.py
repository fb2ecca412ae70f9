"""What a sweep counts, says, writes into its index and asks of a training, with runs that are made up."""

import json
import warnings
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch

import nets
import physics
from grokphys.sweeps import driver, index, work
from grokphys.sweeps.config import declaration
from grokphys.sweeps.pack import packs
from grokphys.sweeps.work import Outcome
from physics import FileFormatError, InputError
from physics.errors import InUseError

xarray = pytest.importorskip("xarray")

TWO = {"kind": "simulate", "pack": 2, "fixed": {"tokens": 7, "steps": 9, "runs": 3}, "grid": {"seed": [4, 5]}}


def declared(**content):
    return declaration(TWO | content)


# -- the driver -------------------------------------------------------------------------------------------


class Bar:
    """Stands for a progress bar, and keeps what it is told."""

    made: list

    def __init__(self, **options):
        self.options, self.updates = options, []
        Bar.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def update(self, count):
        self.updates.append(count)


class Settled:
    """Stands for an executor: every pack ends as `ends` says for its name, and leaves a file."""

    def __init__(self, directory, ends):
        self.directory, self.ends, self.warmed, self.taken = directory, ends, [], []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def warm(self, packs):
        self.warmed.append(packs)

    def free(self):
        return not self.taken

    def submit(self, pack):
        self.taken.append(pack)

    def finished(self, seconds):
        (pack,) = self.taken
        self.taken = []
        status = self.ends.get(pack.name, "computed")
        if status == "failed":
            return [(pack, Outcome("failed", error="no", again=False))]
        path = self.directory / pack.name
        path.write_text(pack.name)
        finals = {"loss": np.array(pack.numbers, float) + pack.common["seed"] / 10}
        return [(pack, Outcome(status, finals, work.stamp_of(path), ["noted"]))]


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Run a sweep whose packs end as told; return its report, its executor, its bar and its notes."""
    monkeypatch.setattr(driver, "tqdm", Bar)

    def run(content, ends=None, **options):
        Bar.made, told, made = [], [], []
        monkeypatch.setattr(
            driver, "_executor", lambda *how: made.append((Settled(tmp_path, ends or {}), how)) or made[0][0]
        )
        report = driver.run_sweep(content, tmp_path, tell=told.append, **options)
        return report, made, Bar.made[0], told

    return run


def test_a_report_counts_packs_by_status_and_runs_whether_they_are_known_or_not(sweep, tmp_path):
    names = [pack.name for pack in packs(declared())]
    assert [len(pack.numbers) for pack in packs(declared())] == [2, 1, 2, 1]
    report, ((executor, how),), bar, told = sweep(declared(), {names[1]: "failed", names[2]: "found"})
    assert report == driver.Report(
        tmp_path / "index.h5", 4, 6, {"computed": 2, "failed": 1, "found": 1}, {names[1]: "no"}
    )
    assert how == (tmp_path, 1, None)
    assert told == ["noted"] * 3
    assert [len(packs) for packs in executor.warmed] == [1]
    assert (bar.options["total"], bar.options["initial"], bar.updates) == (6, 0, [2, 1, 2, 1])
    assert bar.options["disable"] is True
    assert json.loads((tmp_path / "sweep.json").read_text()) == json.loads(declared().text)
    report, ((_, how),), bar, _ = sweep(declared(), progress=True, workers=3)
    assert how == (tmp_path, 1, None), "one file is left"
    assert report.counts == {"known": 3, "computed": 1}
    assert report.failures == {}
    assert (bar.options["total"], bar.options["initial"], bar.updates) == (6, 5, [1])
    assert bar.options["disable"] is None, "where stderr is no terminal it decides itself"
    report, made, bar, told = sweep(declared())
    assert (report.counts, made, bar.updates, told) == ({"known": 4}, [], [], []), "nobody is started"
    report, _, bar, _ = sweep(declared(), verify=True)
    assert report.counts == {"computed": 4}
    assert bar.options["initial"] == 0
    part, _, _, _ = sweep(declared(), shard="2/2")
    assert (part.packs, part.runs, part.counts) == (2, 2, {"known": 2})
    assert part.index == tmp_path / "index-2-of-2.h5"
    assert index.open_sweep(part.index)["loss"].values.tolist() == pytest.approx([2.4, 2.5])


def test_a_pack_without_a_file_has_failed_whatever_was_reported(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "stamp_of", lambda path: path.unlink() or (1, 2))
    report, *_ = sweep(declared())
    assert report.counts == {"failed": 4}
    for name, why in report.failures.items():
        assert why == f"{tmp_path / name} is not there, although it was reported complete"
    assert not index.open_sweep(tmp_path)["complete"].any()


def test_an_index_has_a_row_for_each_run_with_its_file_and_kind_of_number(sweep, tmp_path):
    content = declared(
        fixed={"tokens": 7, "steps": 9, "runs": 2, "first_run": 3}, grid={"seed": [4, 5]}, pack=3,
        list=[{"alignment": 0.5, "observables": ["potential"]}, {"modulus": 7, "integrator": "euler"}],
    )  # fmt: skip
    whole = packs(content)
    sweep(content, {whole[1].name: "failed"})
    data = index.open_sweep(tmp_path)
    assert set(data.coords) == {
        "cell", "run", "entry", "seed", "alignment", "observables", "modulus", "integrator"
    }  # fmt: skip
    assert set(data.data_vars) == {"file", "member", "complete", "loss"}
    assert data["cell"].values.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert data["run"].values.tolist() == [3, 4] * 4
    assert data["entry"].values.tolist() == [0] * 4 + [1] * 4
    assert data["seed"].values.tolist() == [4, 4, 5, 5] * 2
    assert data["complete"].dtype == bool
    assert data["complete"].values.tolist() == [True, True, False, False] + [True] * 4
    names = np.repeat([pack.name for pack in whole], 2)
    assert data["file"].values.tolist() == names.tolist()
    assert data["member"].values.tolist() == [0, 1] * 4
    np.testing.assert_allclose(data["loss"], [3.4, 4.4, np.nan, np.nan, 3.4, 4.4, 3.5, 4.5])
    usual = content.cells[2].parameters
    assert data["alignment"].values.tolist() == [0.5] * 4 + [usual["alignment"]] * 4
    np.testing.assert_array_equal(data["modulus"], [np.nan] * 4 + [7] * 4)
    assert data["observables"].values.tolist()[:1] == ['["potential"]']
    assert (
        data["integrator"].values.tolist() == [content.cells[0].parameters["integrator"]] * 4 + ["euler"] * 4
    )
    spread = index.open_sweep(tmp_path, unstack=True)
    assert dict(spread.sizes) == {"entry": 2, "seed": 2, "run": 2}
    assert float(spread["loss"].sel(entry=1, seed=5, run=4)) == pytest.approx(4.5)
    sweep(declared(grid={"seed": [4]}))
    assert dict(index.open_sweep(tmp_path, unstack=True).sizes) == {"seed": 1, "run": 3}
    assert index.open_sweep(tmp_path)["seed"].dtype == np.int64
    sweep(declaration({"kind": "simulate", "fixed": {"tokens": 7, "steps": 9, "runs": 3, "first_run": 2}}))
    alone = index.open_sweep(tmp_path, unstack=True)
    assert dict(alone.sizes) == {"run": 3}
    assert alone["run"].values.tolist() == [2, 3, 4]


def test_an_index_says_what_it_is_not(sweep, tmp_path, monkeypatch):
    report, *_ = sweep(declared())
    sweep(declared(), shard="1/2")
    parts = {path.name: path.read_bytes() for path in tmp_path.glob("index*.h5")}
    other = declared(pack=3)
    _, notes = index.read_known(tmp_path, other)
    assert notes == [f"{report.index} is of another configuration; it is made again for this one"], (
        "the index of a shard stays, whatever is swept next"
    )
    with h5py.File(report.index, "r+") as file:
        file.attrs["schema"] = "else"
    with pytest.raises(FileFormatError, match=r"index\.h5 is not the index of a sweep$"):
        index.open_sweep(tmp_path)
    report.index.write_bytes(parts["index.h5"])
    with h5py.File(report.index, "r+") as file:
        del file["files/stamp"]
    with pytest.raises(FileFormatError, match=r"is damaged \(.*\); grokphys sweep writes it again$"):
        index.open_sweep(tmp_path)
    report.index.write_bytes(parts["index.h5"])
    (tmp_path / "index-1-of-2.h5").unlink()
    names = [pack.name for pack in packs(declared())]
    for gone, said in (
        (names[:1], f"1 of its 4 files ({names[0]})"),
        (names[:2], f"2 of its 4 files ({names[0]}, …)"),
    ):
        for name in gone:
            (tmp_path / name).unlink(missing_ok=True)
        known, notes = index.read_known(tmp_path, declared())
        assert notes == [f"{report.index} disagrees with {said}; it is made again from the files"]
        assert set(known.finals) == set(known.stamps) == set(names) - set(gone)
    monkeypatch.setattr(index, "program", lambda kind: "newer")
    _, notes = index.read_known(tmp_path, declared())
    assert notes[0].startswith(f"{report.index} and its 4 files are of other code or other libraries; the")


def test_remarks_of_a_sweep_are_printed_above_the_bar(monkeypatch):
    printed = []
    monkeypatch.setattr(driver.tqdm, "write", lambda *what, **how: printed.append((what, how)))
    driver._tell("said")
    assert printed == [(("grokphys: said",), {"file": driver.sys.stderr})]


# -- a pack -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said", "again"),
    [
        (MemoryError(), "MemoryError", True), (ValueError("odd"), "ValueError: odd", True),
        (FileFormatError("bad file"), "bad file", True), (InputError("no"), "no", False),
        (OSError(28, "No space left", "a.h5"), "No space left: a.h5", True),
    ],
)  # fmt: skip
def test_errors_of_a_pack_are_its_outcome(error, said, again, tmp_path, monkeypatch):
    def fails(pack, path, notes):
        notes.append("before")
        warnings.warn("unlikely", UserWarning, stacklevel=1)
        raise error

    monkeypatch.setattr(work, "_settled", fails)
    found = work.settle(SimpleNamespace(name="a.h5"), tmp_path)
    assert (found.status, found.error, found.again) == ("failed", said, again)
    assert found.notes[0] == "before"
    assert found.stamp is None


def test_a_pack_of_another_process_is_busy_and_warnings_are_notes(tmp_path, monkeypatch):
    def taken(pack, path, notes):
        raise InUseError("taken")

    monkeypatch.setattr(work, "_settled", taken)
    assert work.settle(SimpleNamespace(name="a.h5"), tmp_path) == Outcome("busy")

    def warns(pack, path, notes):
        assert path == tmp_path / "a.h5"
        for text in ("once", "twice"):
            warnings.warn(text, UserWarning, stacklevel=1)
        return Outcome("computed", notes=notes)

    monkeypatch.setattr(work, "_settled", warns)
    assert work.settle(SimpleNamespace(name="a.h5"), tmp_path).notes == ["a.h5: once", "a.h5: twice"]
    assert work.stamp_of(tmp_path / "none.h5") is None
    assert list(tmp_path.iterdir()) == [], "the claim is given back"


def test_final_values_are_the_scalars_of_the_last_frame_and_shapes_where_they_mean_something():
    rng = np.random.default_rng(0)
    E = rng.normal(size=(3, 2, 7, 2))
    E[1, -1, 2, 0] = np.nan
    observables = {
        "loss": rng.normal(size=(3, 2)), "signals": rng.normal(size=(3, 2, 3)),
        "gradient_norm": rng.normal(size=(3, 2)), "layers.x": rng.normal(size=(3, 2)),
        "status": np.array([[0, 0], [0, 2], [0, 1]]),
    }  # fmt: skip
    parameters = {"model": {"type": "ConstantAttention"}}

    def found(content, parameters, tokens=7):
        whole = physics.Trajectory(E[:, :, :tokens], [0, 9], observables=observables, parameters=parameters)
        return whole, work.finals(whole, packs(declaration(content))[0])

    _, finals = found(TWO | {"fixed": TWO["fixed"] | {"modulus": 5}}, {})
    assert set(finals) == {"loss", "status", "circle", "grid_imperfections"}
    np.testing.assert_array_equal(finals["loss"], observables["loss"][:, -1])
    assert finals["status"].dtype == np.float64
    for name, measure in (
        ("circle", physics.is_circle),
        ("grid_imperfections", lambda E: physics.grid_imperfections(E, modulus=5)),
    ):
        assert np.isnan(finals[name][1])
        np.testing.assert_array_equal(finals[name][[0, 2]], measure(E[[0, 2], -1]))
    train = {"kind": "train", "fixed": {"tokens": 7, "hidden": 4}}
    _, finals = found(train, parameters)
    np.testing.assert_array_equal(
        finals["grid_imperfections"][[0, 2]], physics.grid_imperfections(E[[0, 2], -1])
    )
    assert found(train, parameters, 3)[1]["grid_imperfections"].shape == (3,)
    for given, tokens in ((parameters, 2), ({"model": {"type": "ToyAddition"}}, 7)):
        assert "circle" not in found(train, given, tokens)[1], "pair sums have no classes there"
    theory = {"kind": "simulate", "fixed": {"system": "effective-theory", "tokens": 7}}
    assert "circle" not in found(theory, {})[1]


@pytest.mark.parametrize(
    ("fixed", "asked"),
    [
        ({}, {"stop": None, "thresholds": {}, "chunk": 1, "keep_start": False, "batch_size": None}),
        ({"threshold": ["train_accuracy=0.5", "quality=0.9"], "stop_at_thresholds": True},
         {"stop": "thresholds", "thresholds": {"train_accuracy": 0.5, "quality": 0.9}}),
        ({"device": "cuda"}, {"chunk": None, "learning_rate": 0.01}),
        ({"batch_size": 3, "dtype": "float64"}, {"batch_size": 3, "dtype": "float64"}),
    ],
)  # fmt: skip
def test_a_pack_is_trained_network_by_network_on_one_thread(fixed, asked, monkeypatch, tmp_path):
    seen, before = {}, torch.get_num_threads()

    def train(model, **options):
        seen.update(options, model=model, threads=torch.get_num_threads())
        raise KeyError("ended")

    monkeypatch.setattr(nets, "train", train)
    content = {
        "kind": "train",
        "fixed": {"tokens": 5, "hidden": 8, "runs": 2, "first_run": 4, "steps": 30} | fixed,
    }
    (pack,) = packs(declaration(content))
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyError, match="ended"):
            pack.run(tmp_path / "t.h5")
        assert torch.get_num_threads() == 2, "given back after an error"
    finally:
        torch.set_num_threads(before)
    assert seen["threads"] == 1
    assert seen["model"] == nets.ConstantAttention(5, hidden=8)
    assert (seen["runs"], seen["run_numbers"], seen["steps"]) == (2, [4, 5], 30)
    assert (seen["out"], seen["resume"], seen["progress"]) == (tmp_path / "t.h5", True, False)
    assert {name: seen[name] for name in asked} == asked
    assert "embedding_learning_rate" in seen
    assert not {"threshold", "stop_at_thresholds", "first_run"} & set(seen)


def test_a_frozen_embedding_is_trained_without_rates_of_its_own(monkeypatch):
    seen = {}

    def train(model, **options):
        seen.update(options)

    monkeypatch.setattr(nets, "train", train)
    content = {"kind": "train", "fixed": {"tokens": 5, "hidden": 8, "runs": 2, "freeze_embedding": True}}
    (pack,) = packs(declaration(content))
    pack.run(None)
    assert not {name for name in seen if name.startswith("embedding_") and name.endswith(("rate", "decay"))}
    assert (seen["learning_rate"], seen["resume"], seen["freeze_embedding"]) == ([0.01, 0.01], False, True)
