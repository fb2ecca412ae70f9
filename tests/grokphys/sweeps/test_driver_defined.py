"""What the driver of a sweep asks of its parts, and what its index says of files that have changed."""

import contextlib
from dataclasses import replace

import h5py
import numpy as np
import pytest

from grokphys.sweeps import driver, index, work
from grokphys.sweeps.config import declaration
from grokphys.sweeps.pack import packs
from grokphys.sweeps.work import Outcome
from physics import FileFormatError

THREE = {"kind": "simulate", "fixed": {"runs": 2, "steps": 3}, "grid": {"tokens": [5, 7, 9]}}


@pytest.fixture
def driven(monkeypatch, tmp_path):
    """A sweep of three packs of which one is known and one fails; calls of the executor by name."""
    calls, whole = {"warm": [], "settled": [], "made": []}, packs(declaration(THREE))
    known = index.Known({whole[0].name: {"loss": np.ones(2)}}, {whole[0].name: (1, 2)})

    class Here(contextlib.nullcontext):
        def warm(self, tried):
            calls["warm"].append([one.common["tokens"] for one in tried])

    def settle_all(left, executor, *, retries, tell, done):
        calls["settled"].append(([one.name for one in left], retries))
        for one in left:
            last = one.name == whole[2].name
            stamp = None if last else (3, 4)
            (calls["made"][-1][0] / one.name).touch()
            done(
                one,
                Outcome("failed" if last else "computed", {"loss": np.zeros(2)}, stamp, error="why" * last),
            )

    def executor(*how):
        calls["made"].append(how)
        here = Here()
        here.enter_result = here
        return here

    monkeypatch.setattr(driver, "_executor", executor)
    monkeypatch.setattr(driver, "settle_all", settle_all)
    monkeypatch.setattr(
        driver, "read_known", lambda *_: (replace(known, finals={**known.finals}), ["a note"])
    )
    return declaration(THREE), whole, calls


def test_a_driver_runs_what_is_left_and_counts_the_rest(driven, tmp_path):
    declared, whole, calls = driven
    told = []
    report = driver.run_sweep(declared, tmp_path / "s", workers=3, retries=5, tell=told.append)
    assert (told, calls["made"]) == (["a note"], [(tmp_path / "s", 2, None)]), "no more than files"
    assert calls["warm"] == [[7, 9]]
    assert calls["settled"] == [([one.name for one in whole[1:]], 5)]
    assert report == driver.Report(
        tmp_path / "s/index.h5", 3, 6, {"known": 1, "computed": 1, "failed": 1}, {whole[2].name: "why"}
    )  # fmt: skip
    assert (tmp_path / "s/sweep.json").read_text().strip() == declared.text
    stored = index._read(tmp_path / "s/index.h5")
    assert stored.columns["complete"].tolist() == [True] * 4 + [False] * 2
    np.testing.assert_array_equal(stored.columns["loss"], [1, 1, 0, 0, np.nan, np.nan])
    assert [stamp for stamp, _ in stored.files.values()] == [(1, 2), (3, 4), None]
    assert stored.columns["cell"].tolist() == [0, 0, 1, 1, 2, 2]
    assert stored.columns["tokens"].tolist() == [5, 5, 7, 7, 9, 9]
    assert stored.columns["run"].tolist() == stored.columns["member"].tolist() == [0, 1] * 3
    report = driver.run_sweep(declared, tmp_path / "s", verify=True, tell=told.append)
    assert len(calls["settled"][-1][0]) == 3
    assert report.counts == {"computed": 2, "failed": 1}, "nothing is known"
    part = driver.run_sweep(declared, tmp_path / "s", shard="1/3", tell=told.append)
    assert (part.index.name, part.packs, part.runs, part.counts) == ("index-1-of-3.h5", 1, 2, {"known": 1})
    assert len(calls["made"]) == 2, "nothing is left"


def test_an_index_that_disagrees_with_its_files_names_the_first(driven, tmp_path):
    declared, whole, _ = driven
    (tmp_path / "s").mkdir()
    known = index.Known()
    for one in whole[:2]:
        (tmp_path / "s" / one.name).write_text(one.name)
        known.add(one.name, {"loss": np.arange(2.0)}, work.stamp_of(tmp_path / "s" / one.name))
    index.write_index(tmp_path / "s/index.h5", declared, whole, known)
    found, notes = index.read_known(tmp_path / "s", declared)
    assert (found.stamps, notes) == (known.stamps, [])
    np.testing.assert_array_equal(found.finals[whole[1].name]["loss"], [0.0, 1.0])
    for one, mark, count in ((whole[1], "", 1), (whole[0], ", …", 2)):
        (tmp_path / "s" / one.name).write_text("longer than its name, which was its content")
        found, (note,) = index.read_known(tmp_path / "s", declared)
        where = tmp_path / "s/index.h5"
        first = whole[2 - count].name
        said = (
            f"{where} disagrees with {count} of its 2 files ({first}{mark}); it is made again from the files"
        )
        assert note == said
        assert len(found.stamps) == 2 - count
    with h5py.File(tmp_path / "s/other.h5", "w") as file:
        file.attrs["schema"] = "grokphys-trajectory"
    with pytest.raises(FileFormatError, match=r"other\.h5 is not the index of a sweep$"):
        index._read(tmp_path / "s/other.h5")
