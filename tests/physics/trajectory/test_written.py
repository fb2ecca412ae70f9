"""What is written where: whose name a file bears, what it replaces, and in which order its points stand."""

import json
import shutil
import subprocess
import threading
import time
from importlib import metadata

import h5py
import numpy as np
import pytest

from physics import FileFormatError, InputError, OutputError, Trajectory
from physics.trajectory import provenance
from physics.trajectory.header import Header, Layout
from physics.trajectory.locks import claim, claimed
from physics.trajectory.log import FRAMES, Log, LogWriter
from physics.trajectory.provenance import code_version, made_with
from physics.trajectory.recording import MemoryRecorder
from physics.trajectory.stored import damage
from physics.trajectory.target import Target
from physics.trajectory.writer import FileRecorder


def test_a_finished_file_takes_its_name_without_hard_links_too(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", no_links)
    Trajectory(np.ones((1, 1, 3, 2)), [0]).save(tmp_path / "t.h5")
    assert [one.name for one in tmp_path.iterdir()] == ["t.h5"]
    assert Trajectory.open(tmp_path / "t.h5").final[0, 2, 1] == 1.0


def test_what_is_saved_takes_the_place_of_a_file_and_of_an_unfinished_run(tmp_path):
    path = tmp_path / "t.h5"
    for one in (path, tmp_path / "t.h5.partial"):
        one.write_bytes(b"old")
    Trajectory(np.ones((1, 1, 3, 2)), [0]).save(path, overwrite=True)
    assert [one.name for one in tmp_path.iterdir()] == ["t.h5"]
    assert Trajectory.open(path).final[0, 2, 1] == 1.0


def test_who_waits_for_a_name_gets_it_when_it_is_free(tmp_path):
    got = []

    def wait():
        with claim(tmp_path / "t.h5", wait=True) as ours:
            got.append(ours)

    waiting = threading.Thread(target=wait)
    with claim(tmp_path / "t.h5") as ours:
        waiting.start()
        waiting.join(0.2)
        assert (ours, waiting.is_alive()) == (True, True)
    waiting.join(120)
    assert got == [True]
    assert list(tmp_path.iterdir()) == []


def test_who_asks_whether_a_name_is_taken_leaves_nothing_behind(tmp_path):
    path = tmp_path / "t.h5"
    assert not claimed(path)
    assert list(tmp_path.iterdir()) == []
    with claim(path) as ours:
        assert ours
        assert claimed(path)
    assert not claimed(path)
    (tmp_path / "t.h5.lock").touch()  # of a process that was killed
    assert not claimed(path)


def test_a_header_that_claims_too_much_is_not_read(tmp_path, monkeypatch):
    header = Header(Layout(1, 3, 2, "float64"), {}, {})
    log = LogWriter(tmp_path / "t.h5.partial")
    log.begin(header, {})
    log.close()
    length = len(json.dumps(header.to_json()).encode())
    monkeypatch.setattr("physics.trajectory.log.LARGEST_HEADER", length)
    assert Log(tmp_path / "t.h5.partial").header == header
    monkeypatch.setattr("physics.trajectory.log.LARGEST_HEADER", length - 1)
    with pytest.raises(FileFormatError, match="a record of the kind b'GPhd' is out of place"):
        Log(tmp_path / "t.h5.partial")


def test_a_disk_with_a_megabyte_left_is_not_full(tmp_path, monkeypatch):
    left = [2**20]
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, left[0]))
    Target(tmp_path / "t.h5", overwrite=False).close()
    left[0] -= 1
    with pytest.raises(OutputError, match="cannot write .*t.h5: No space left on device"):
        Target(tmp_path / "t.h5", overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_says_so_and_leaves_the_old_file(tmp_path, monkeypatch):
    path, made = tmp_path / "t.h5", Trajectory(np.ones((1, 1, 3, 2)), [0])
    made.save(path)
    before = path.read_bytes()

    def full(merging, *_, **options):
        merging.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("physics.trajectory.saving.write_file", full)
    with pytest.raises(OutputError, match=r"cannot write .*t\.h5: No space left on device$"):
        made.save(path, overwrite=True)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("t.h5", before)]


def test_what_is_empty_is_refused_before_anything_is_written(tmp_path):
    for layout in (
        Layout(1, 3, 1, "float64", 0, {"o": ("<f8", (2, 0))}),
        Layout(1, 0, 1, "float64"),
    ):
        with pytest.raises(InputError, match=r"(o|positions) must not be empty to be stored, got the shape"):
            FileRecorder(tmp_path / "t.h5", layout, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        (
            "run_2",
            np.zeros((2, 3)),
            r"start\['run_2'\] must have .* names such as run_2 and axis_0_3 are reserved",
        ),
        ("axis_0_3", np.zeros((2, 3)), "names such as run_2 and axis_0_3 are reserved"),
        ("split", np.zeros((3, 2)), r"the shape \(runs, ...\) with 2 runs and not be empty, got \(3, 2\)"),
        ("split", np.zeros((2, 0)), r"not be empty, got \(2, 0\)"),
        ("split", np.array(["a", "b"]), "must be numbers of at most 64 bits, or"),
        ("a/b", np.zeros(2), "must be text without '/'"),
    ],
)
def test_arrays_that_no_run_begins_with_are_refused(name, values, said):
    for kept in ("axis_0", "run_", "my_run_2"):
        made = Trajectory(np.zeros((2, 1, 3, 1)), [0], start={kept: np.zeros((2, 3))})
        assert list(made.start) == [kept]
    with pytest.raises(InputError, match=said):
        Trajectory(np.zeros((2, 1, 3, 1)), [0], start={name: values})


def test_every_so_many_frames_are_one_at_least():
    made = Trajectory(np.zeros((2, 3, 3, 1)), [0, 1, 2])
    for every in (0, -1, 1.5):
        with pytest.raises(InputError, match="every must be"):
            made.run(0, every=every)


def test_how_a_trajectory_was_made_may_change_afterwards_elsewhere():
    said = {"parameters": {"seed": 1}, "made_with": {"numpy": "2"}}
    made = Trajectory(np.zeros((1, 1, 3, 1)), [0], **said)
    for given in said.values():
        given["more"] = 3
    assert (made.parameters, made.made_with) == ({"seed": 1}, {"numpy": "2"})


def test_what_nobody_recorded_was_made_by_physics(tmp_path):
    Trajectory(np.ones((1, 1, 3, 2)), [0]).save(tmp_path / "t.h5")
    assert Trajectory.open(tmp_path / "t.h5").made_with == made_with("physics")
    assert {"grokphys", "source", "numpy", "processor"} <= made_with("physics").keys()


def test_a_flush_that_fails_says_so(tmp_path, monkeypatch):
    def full(self, kind, *parts):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="No space left on device"):
        with FileRecorder(tmp_path / "t.h5", Layout(1, 3, 1, "float64"), {}) as recorder:
            monkeypatch.setattr("physics.trajectory.log.LogWriter.append", full)
            recorder.append(0, 0.0, np.ones((1, 3, 1)))
            with pytest.raises(OutputError, match="No space left on device"):
                recorder.flush()


def test_a_frame_is_written_without_another_one_to_push_it(tmp_path, monkeypatch):
    monkeypatch.setattr("physics.trajectory.writer.FLUSH_SECONDS", 0.02)
    path, begun = tmp_path / "t.h5", time.monotonic()
    with FileRecorder(path, Layout(1, 3, 1, "float64"), {}) as recorder:
        recorder.append(0, 0.0, np.ones((1, 3, 1)))
        while not (found := Log(path.with_name("t.h5.partial")).frames) and time.monotonic() - begun < 120:
            time.sleep(0.01)
    assert found == 1


def test_nothing_is_taken_by_a_recorder_whose_thread_has_ended(tmp_path):
    recorder = FileRecorder(tmp_path / "t.h5", Layout(1, 3, 1, "float64"), {})
    opening = threading.Thread(target=recorder.__enter__)  # it ends without leaving the block
    opening.start()
    opening.join()
    recorder._inbox.put("stop")
    recorder._thread.join(120)
    with pytest.raises(OutputError, match="the thread that writes it has ended"):
        recorder.append(0, 0.0, np.ones((1, 3, 1)))


def test_an_unfinished_file_of_the_first_schema_has_the_frames_that_are_whole(tmp_path):
    path = tmp_path / "t.h5"
    whole = Trajectory(
        np.arange(24.0).reshape(2, 4, 3, 1), [0, 2, 4, 7], observables={"o": np.arange(8.0).reshape(2, 4)}
    )
    whole.save(path)
    with h5py.File(path, "r+") as file:
        file["parameters"].attrs["complete"] = 0
        file["particles/tokens/position/time"].resize(3, axis=0)
        file["observables/o/value"].resize(2, axis=0)
    found = Trajectory.open(path)
    assert (found.frames, found.complete) == (2, False)
    assert (found.steps.tolist(), found.times.tolist()) == ([0, 2], [0.0, 2.0])
    np.testing.assert_array_equal(found.positions, whole.positions[:, :2])
    np.testing.assert_array_equal(found.observables["o"], whole.observables["o"][:, :2])


@pytest.mark.parametrize(("author", "expected"), [("Ada", b"Ada"), ("", b"root"), ("J\udcf6rg", b"J?rg")])
def test_a_file_names_who_wrote_it(tmp_path, monkeypatch, author, expected):
    monkeypatch.setenv("USER", "root")
    monkeypatch.setenv("GROKPHYS_AUTHOR", author)
    Trajectory(np.zeros((1, 1, 3, 1)), [0], made_with={"grokphys": "9.9"}).save(tmp_path / "t.h5")
    with h5py.File(tmp_path / "t.h5") as file:
        assert file["h5md/author"].attrs["name"] == expected
        assert file["h5md/creator"].attrs["version"] == b"9.9"


def test_points_are_compared_with_their_runs_block_by_block(tmp_path, monkeypatch):
    path = tmp_path / "t.h5"
    Trajectory(np.arange(24.0).reshape(3, 1, 8, 1), [0]).save(path)
    monkeypatch.setattr("physics.trajectory.stored.BLOCK", 7)
    assert Trajectory.open(path)[2].final[0, 7, 0] == 23.0
    with h5py.File(path, "r+") as file:
        file["particles/tokens/run"][14:18] = [1, 2, 1, 2]
    with pytest.raises(FileFormatError, match="its 24 points are not sorted into 3 runs"):
        Trajectory.open(path)


def test_a_frame_that_is_handed_back_is_a_copy():
    recorder = MemoryRecorder(Layout(1, 3, 1, "float64", 2, {}), {})
    recorder.append(0, 0.0, np.ones((1, 3, 1)))
    recorder.frame(0)[:] = 9.0
    assert (recorder.result().initial == 1.0).all()


@pytest.mark.parametrize(("frames", "kept"), [(1, "1 frame is"), (2, "2 frames are")])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ImportError, ValueError])
def test_an_interruption_is_told_what_is_kept_and_an_error_is_as_it_was(tmp_path, error, frames, kept):
    path = tmp_path / "t.h5"
    with pytest.raises(error) as said, FileRecorder(path, Layout(1, 3, 1, "float64"), {}) as recorder:
        for step in range(frames):
            recorder.append(step, 0.0, np.zeros((1, 3, 1)))
        raise error
    notes = [] if error is ValueError else [f"{kept} kept in {path}.partial"]
    assert getattr(said.value, "__notes__", []) == notes


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 4), (np.float64, 8)])
@pytest.mark.parametrize(("frames", "held"), [(0.5, 1), (1, 1), (2, 2), (2.9, 2), (3, 3), (50, 7)])
def test_a_block_is_as_many_frames_as_fit_and_one_at_least(dtype, size, frames, held):
    positions = np.arange(4 * 7 * 5 * 2, dtype=dtype).reshape(4, 7, 5, 2)
    blocks = list(Trajectory(positions, range(7)).blocks(megabytes=frames * 4 * 5 * 2 * size / 2**20))
    assert [(one.start, one.stop) for one, _ in blocks] == [(k, min(k + held, 7)) for k in range(0, 7, held)]
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks], axis=1), positions)


# -- what cannot be read, and why ---------------------------------------------------------------------------

LAYOUT = Layout(1, 3, 1, "float64")


def unfinished(path, start=()):
    """The log of a run of which nothing but the description was written."""
    log = LogWriter(path.with_name(path.name + ".partial"))
    log.begin(Header(LAYOUT, {}, {}, start), {})
    log.append(FRAMES, np.array([0]), np.array([0.0]), np.zeros((1, 1, 3, 1))) if not start else None
    log.close()


def test_an_unfinished_run_is_named_where_its_file_is_asked_for(tmp_path):
    path = tmp_path / "t.h5"
    unfinished(path)
    with pytest.raises(FileNotFoundError, match=r"the run is unfinished; open .*t\.h5\.partial to see its"):
        Trajectory.open(path)
    path.with_name("t.h5.partial").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no file .*t\.h5$"):
        Trajectory.open(path)
    unfinished(path, ("split",))
    with pytest.raises(FileFormatError, match="holds nothing: its process ended before it wrote anything"):
        Trajectory.open(path.with_name("t.h5.partial"))


def test_a_followed_run_does_not_become_another_ones_file(tmp_path):
    path = tmp_path / "t.h5"
    unfinished(path)
    following = Trajectory.open(path.with_name("t.h5.partial"))
    assert (following.refresh(), following.frames) == (0, 1)
    path.with_name("t.h5.partial").unlink()
    Trajectory(np.zeros((1, 2, 3, 1)), [0, 1]).save(path)
    with pytest.raises(FileFormatError, match=r"partial no longer exists, and .*t\.h5 is another run"):
        following.refresh()


def test_what_was_stored_unfinished_is_not_resumed(tmp_path):
    made = made_with("physics")
    for complete in (True, False):
        path = tmp_path / f"{complete}.h5"
        Trajectory(np.zeros((1, 1, 3, 1)), [0], complete=complete, made_with=made).save(path)
    with FileRecorder(tmp_path / "True.h5", LAYOUT, {}, resume=True) as recorder:
        assert recorder.complete
    with pytest.raises(OutputError, match=r"False\.h5 was stored unfinished and cannot be resumed"):
        FileRecorder(tmp_path / "False.h5", LAYOUT, {}, resume=True)


def test_a_file_says_by_which_version_it_was_written_and_in_which_schema(tmp_path):
    path = tmp_path / "t.h5"
    Trajectory(np.zeros((1, 1, 3, 1)), [0], made_with={"grokphys": "9.9", "numpy": "2"}).save(path)
    assert Trajectory.open(path).code_version == "9.9"
    with h5py.File(path, "r+") as file:  # as before libraries were listed
        del file["parameters"].attrs["libraries"]
    found = Trajectory.open(path)
    assert (found.code_version, found.made_with) == ("9.9", {"grokphys": "9.9"})
    with h5py.File(path, "r+") as file:
        file["parameters"].attrs["schema"] = np.bytes_("another")
    with pytest.raises(FileFormatError, match=r"\(schema 'grokphys-trajectory', found 'another'\)"):
        Trajectory.open(path)
    assert code_version().startswith(metadata.version("grokphys"))


def test_a_version_names_the_commit_of_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "module.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    version, read = metadata.version("grokphys"), code_version.__wrapped__
    assert read() == version, "outside a repository"

    def git(*arguments):
        name = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        return subprocess.run(
            ["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True
        ).stdout

    git("init")
    (tmp_path / "module.py").write_text("1")
    git("add", "module.py")
    git("commit", "-m", "first")
    git("tag", "-a", "-m", "a tag", "v9")
    commit = git("rev-parse", "--short", "HEAD").decode().strip()
    assert read() == f"{version}+g{commit}", "whatever its tags are called"
    (tmp_path / "module.py").write_text("2")
    assert read() == f"{version}+g{commit}-dirty"
    monkeypatch.setenv("PATH", "")
    assert read() == version, "without git"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied"), "cannot be read: no permission"),
        (MemoryError(), "holds more than this machine's memory"),
        (ValueError("first\nsecond"), "is damaged: first"),
        (KeyError(), "is damaged: KeyError"),
    ],
)
def test_errors_of_reading_are_sentences_about_the_file(tmp_path, error, said):
    with pytest.raises(FileFormatError, match=f"t.h5 {said}$"), damage(tmp_path / "t.h5"):
        raise error


def test_positions_that_are_no_real_numbers_are_refused(tmp_path):
    path = tmp_path / "t.h5"
    Trajectory(np.zeros((1, 1, 3, 1)), [0]).save(path)
    with h5py.File(path, "r+") as file:
        del file["particles/tokens/position/value"]
        file["particles/tokens/position/value"] = np.zeros((1, 3, 1), int)
    with pytest.raises(FileFormatError, match=r"is damaged: positions are int64 \(1, 3, 1\)"):
        Trajectory.open(path)
    with pytest.raises(FileFormatError, match="cannot be read: Not a directory"):
        Trajectory.open(path / "inside.h5")


def test_axes_of_observables_and_of_what_a_run_began_with_are_numbered_from_0(tmp_path):
    made = Trajectory(
        np.ones((2, 1, 3, 2)),
        [0],
        observables={"own": np.ones((2, 1, 4, 5))},
        start={"drawn": np.ones((2, 6, 7))},
    )
    made.save(tmp_path / "t.h5")
    with h5py.File(tmp_path / "t.h5") as file:
        own = {name: file[f"observables/own/{name}"][:].tolist() for name in ("run", "axis_0", "axis_1")}
        assert own == {"run": [0, 1], "axis_0": list(range(4)), "axis_1": list(range(5))}
        value = file["observables/own/value"]
        assert [value.dims[axis][0].name.split("/")[-1] for axis in (1, 2, 3)] == ["run", "axis_0", "axis_1"]
