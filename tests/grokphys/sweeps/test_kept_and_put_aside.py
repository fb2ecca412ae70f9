"""What a sweep does with files that it finds: which it keeps, and which it puts aside under another name."""

import time
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import h5py
import numpy as np
import pytest

from grokphys import output
from grokphys.sweeps import index, run, work
from grokphys.sweeps.work import Outcome
from physics import FileFormatError, OutputError, SimulationError
from physics.errors import NewerFormatError

ENDINGS = ("", ".partial", ".checkpoint")


class Pack:
    """Stands for a pack: its run fails as often as there are errors, and then writes its file."""

    name = "one.h5"

    def __init__(self, *errors):
        self.errors, self.found = list(errors), []

    def run(self, path):
        self.found.append({one.name: one.read_text() for one in path.parent.iterdir()})
        if self.errors:
            raise self.errors.pop(0)
        path.with_name(path.name + ".partial").unlink(missing_ok=True)
        path.write_text("new")
        return SimpleNamespace(path=path)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A directory with an unfinished run; a file is sound if it is new."""

    def read_through(path, pack):
        if path.read_text() != "new":
            raise FileFormatError(f"{path} is damaged")
        return SimpleNamespace(path=path)

    monkeypatch.setattr(work, "_read_through", read_through)
    monkeypatch.setattr(work, "finals", lambda trajectory, pack: {"loss": np.zeros(1)})
    for ending in ENDINGS[1:]:
        (tmp_path / f"one.h5{ending}").write_text(f"old{ending}")
    return tmp_path


def test_what_cannot_be_resumed_is_put_aside_with_its_checkpoint_before_it_starts_again(files):
    pack = Pack(ValueError("bad bytes"))
    outcome = work.settle(pack, files)
    assert outcome.status == "computed"
    assert outcome.notes == ["one.h5 cannot be resumed (bad bytes); it starts again"]
    began, again = pack.found
    assert {"one.h5.partial", "one.h5.checkpoint"} <= began.keys()
    assert {name: text for name, text in again.items() if text} == {
        "one.h5.partial.damaged": "old.partial", "one.h5.checkpoint.damaged": "old.checkpoint",
    }, "nothing is left that could be resumed, and nothing is lost"  # fmt: skip
    assert (files / "one.h5").read_text() == "new"


def test_a_resumed_file_that_is_damaged_is_put_aside_too(files):
    class Spoiled(Pack):
        def run(self, path):
            made = super().run(path)
            if len(self.found) == 1:
                path.write_text("spoiled")
            return made

    pack = Spoiled()
    outcome = work.settle(pack, files)
    assert outcome.status == "computed"
    assert "one.h5" not in pack.found[1]
    assert pack.found[1]["one.h5.damaged"] == "spoiled"
    assert (files / "one.h5").read_text() == "new"


def test_the_file_of_a_newer_version_stays(files, monkeypatch):
    newer = NewerFormatError("one.h5 has schema version 99")
    monkeypatch.setattr(work, "_read_through", Mock(side_effect=newer))
    (files / "one.h5").write_text("newer")
    outcome = work.settle(Pack(), files)
    assert (outcome.status, outcome.error) == ("failed", str(newer))
    assert (files / "one.h5").read_text() == "newer"


def test_damaged_files_of_one_name_are_all_kept(files):
    for k in range(4):
        (files / "one.h5").write_text(f"bad {k}")
        assert output.put_aside(files / "one.h5").read_text() == f"bad {k}"
    assert sorted(one.name for one in files.glob("one.h5.damaged*")) == [
        "one.h5.damaged", "one.h5.damaged-2", "one.h5.damaged-3", "one.h5.damaged-4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (OutputError("No space left on device"), True), (MemoryError("too large"), True),
        (SimulationError("overflowed"), False),
    ],
)  # fmt: skip
def test_an_unfinished_run_stays_where_its_files_are_not_to_blame(error, again, files):
    pack = Pack(error)
    outcome = work.settle(pack, files)
    assert (outcome.status, outcome.error, outcome.again) == ("failed", str(error), again)
    for ending in ENDINGS[1:]:
        assert (files / f"one.h5{ending}").read_text() == f"old{ending}"
    assert len(pack.found) == 1
    assert not list(files.glob("*damaged*"))


@pytest.mark.parametrize("bad", range(4))
def test_every_chunk_is_read_also_the_last_part_of_one(bad, tmp_path):
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("group/x", data=np.arange(10), chunks=(3,), fletcher32=True)
        file["plain"] = np.arange(5)
    with h5py.File(path) as file:
        file.visititems(work._read_chunks)
        assert file["group/x"].id.get_num_chunks() == 4
        at = file["group/x"].id.get_chunk_info(bad).byte_offset
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with h5py.File(path) as file, pytest.raises((OSError, RuntimeError)):
        file.visititems(work._read_chunks)


def test_packs_of_another_process_are_looked_at_only_every_second(monkeypatch):
    now, told, done, submitted = [0.0], [], [], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    names = ("one", "two")

    class Busy:
        """Both packs are another process's until 3.5 s, and every look takes 0.3 s."""

        waiting = ()

        def free(self):
            return len(self.waiting) < 2

        def submit(self, one):
            submitted.append((one.name, now[0]))
            self.waiting = (*self.waiting, one)

        def finished(self, seconds):
            assert seconds == run.LOOK_AGAIN == 1.0
            now[0] = round(now[0] + 0.3, 6)
            ended, self.waiting = self.waiting, ()
            status = "busy" if now[0] < 3.5 else "found"
            return [(one, Outcome(status)) for one in ended]

    packs = [SimpleNamespace(name=name) for name in names]
    run.settle_all(
        packs, Busy(), retries=0, tell=told.append, done=lambda one, end: done.append((one.name, end.status))
    )
    assert done == [("one", "found"), ("two", "found")]
    for name in names:
        looks = [at for who, at in submitted if who == name]
        assert looks == [0.0, 1.2, 2.4, 3.6], "more than a second lies between two looks"
    # Once for all that wait at a time, and not once for each of them.
    assert told == 3 * ["one is being written by another process; waiting for it"]


def test_values_of_an_index_are_those_of_the_members_in_their_order():
    columns = {"file": [1, 0, 1, 0, 2], "member": [1, 1, 0, 0, 0], "loss": [3.0, 1.0, 2.0, 0.0, 4.0]}
    stored = index.Stored(
        {},
        {name: np.array(values) for name, values in columns.items()},
        {"a": ((1, 2), ["loss"]), "b": ((3, 4), ["loss"]), "c": (None, [])},
    )
    for changed, wanted in (([], {"a": [0.0, 1.0], "b": [2.0, 3.0]}), (["a"], {"b": [2.0, 3.0]})):
        known = index.Known()
        index._collect(known, replace(stored), changed)
        assert {name: finals["loss"].tolist() for name, finals in known.finals.items()} == wanted
        assert known.stamps == {name: stored.files[name][0] for name in wanted}
