"""Pieces of long runs: whose they are, what they say of themselves, and what a result says of them."""

import json
import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from grokphys.cli import main
from grokphys.papers import catalogue, fingerprint, pages, pieces, run
from grokphys.papers import recipe as recipe_module
from grokphys.papers.fingerprint import dependencies
from grokphys.papers.recipe import Result, Run, recipe
from grokphys.papers.results import read_result
from nets.engines import threads
from physics import FileFormatError, OutputError
from physics.seeds import generator, hear_seeds


@dataclass(frozen=True)
class Setting:
    runs: int = 3


def never():
    pytest.fail("computed again")


def test_pieces_belong_to_a_recipe_or_a_family(tmp_path):
    first, second = (Run(1, "paper", tmp_path, name) for name in ("one", "two"))
    assert first.keep("x", lambda: {"a": [1, 2]})["a"].tolist() == [1, 2]
    assert second.keep("x", lambda: {"a": [3]})["a"].tolist() == [3]
    assert first.keep("y", lambda: {"a": [4]})["a"].tolist() == [4]
    assert first.keep("x", lambda: {"a": [5]}, family="both")["a"].tolist() == [5]
    assert second.keep("x", never, family="both")["a"].tolist() == [5]
    assert first.keep("x", never)["a"].tolist() == [1, 2]
    assert {path.parent.parent.name for path in tmp_path.rglob("*.npz")} == {"one", "two", "both"}
    assert not list(tmp_path.rglob("*.partial"))


def test_pieces_name_their_seeds_whether_computed_or_read(tmp_path):
    big, given = 2**80, Run(1, "paper", tmp_path, "one")
    for _ in range(2):
        with hear_seeds() as heard:
            again = given.keep("drawn", lambda: {"a": [generator(big).random(), generator(7).random()]})
        assert heard == {big, 7}
        assert again["a"].tolist() == [generator(big).random(), generator(7).random()]
        assert list(again) == ["a"]


def made_in(module, value):
    """A function that computes a piece, as if the module had defined it."""

    def make(value):
        return {"a": [value]}

    make.__module__ = module
    return partial(partial(make), value)


@pytest.mark.parametrize("changed", ["the setting", "the code", "the seeds"])
def test_pieces_of_another_setting_code_or_seed_are_left_alone_and_not_used(tmp_path, changed):
    def keep(make, setting=Setting(), shift=0):
        return Run(setting, "paper", tmp_path, "one", shift).keep("x", make)["a"].tolist()

    here = "grokphys.papers.judge"
    assert keep(made_in(here, 1)) == [1]
    if changed == "the setting":
        assert keep(made_in(here, 2), Setting(4)) == [2]
    elif changed == "the code":
        assert keep(made_in("grokphys.papers.musat.start", 2)) == [2]
    else:
        assert keep(made_in(here, 2), shift=10**9) == [2]
    assert len(list(tmp_path.rglob("x.npz"))) == 2
    assert keep(made_in(here, 3)) == [1], "as before the change"


def test_figures_and_the_runner_do_not_count_as_code_of_a_piece():
    for name in ("grokphys.papers.liu.planes", "grokphys.papers.ding.figure_06"):
        every, _ = dependencies(name)
        counted, _ = dependencies(name, without=pieces.COMPUTES_NOTHING)
        left_out = {one for one in every if one.startswith(("analysis.plots", "grokphys.papers.recipe"))}
        assert left_out
        assert not left_out & counted
        assert {name, "nets.training", "nets.engines.step"} <= counted


@pytest.mark.parametrize(
    ("names", "family"),
    [
        (("liu-6a", "liu-seeds"), "liu-6a"), (("liu-3", "liu-4b", "liu-5b", "liu-10"), "liu-3"),
        (("liu-1", "liu-21", "liu-22"), "liu-1"), (("ding-6", "ding-7"), "ding-trials"),
    ],
)  # fmt: skip
def test_recipes_that_share_networks_ask_for_the_same_pieces(tmp_path, monkeypatch, names, family):
    asked = set()

    def first(path, make):
        asked.add(path)
        raise InterruptedError

    monkeypatch.setattr(recipe_module, "kept", first)
    for name in names:
        one = catalogue.recipes()[name]
        with pytest.raises(InterruptedError):
            one.make(Run(one.settings["paper"], "paper", tmp_path, name))
    (path,) = asked
    assert path.parts[-3] == family


def test_damage_of_any_kind_is_named_and_the_file_stays(tmp_path):
    given = Run(1, "paper", tmp_path, "one")
    given.keep("x", lambda: {"a": np.arange(1000)})
    (path,) = tmp_path.rglob("x.npz")
    content, rng = path.read_bytes(), np.random.default_rng(0)
    damaged = [content[:300], b""]
    for place in rng.integers(0, len(content), 1000):
        damaged += [content[:place] + bytes([content[place] ^ 1 << rng.integers(8)]) + content[place + 1 :]]
    refused = 0
    for changed in damaged:
        path.write_bytes(changed)
        try:
            found = given.keep("x", never)["a"].tolist()
        except FileFormatError as error:
            refused += 1
            found = str(error)
        # A bit may mean nothing, such as one of a date within the archive.
        said = f"the piece {path} is damaged or of another origin; remove it to compute it again"
        assert found in (said, list(range(1000)))
        assert path.read_bytes() == changed
    assert refused > 500


ORIGIN = {"version": "1", "processor": "p", "seconds": 1.5, "date": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "origin",
    [
        "", "[]", "{}", "[" * 20_000, *(
            json.dumps(ORIGIN | other)
            for other in (
                {"seconds": "a"}, {"seconds": -1.0}, {"seconds": float("nan")}, {"seconds": None},
                {"date": 3}, {"date": "yesterday"}, {"version": []}, {"processor": None}, {"more": 1},
            )
        ),
    ],
)  # fmt: skip
def test_an_origin_that_is_none_is_refused(tmp_path, origin):
    path = tmp_path / "x.npz"
    np.savez(path, **{"a": [1], pieces.SEEDS: ["7"], pieces.ORIGIN: json.dumps(ORIGIN)})
    found, piece = pieces.kept(path, never)
    assert found["a"].tolist() == [1]
    assert piece == pieces.Piece(**ORIGIN, new=False)
    np.savez(path, **{"a": [1], pieces.SEEDS: ["7"], pieces.ORIGIN: origin})
    with hear_seeds() as heard, pytest.raises(FileFormatError, match="is damaged or of another origin"):
        pieces.kept(path, never)
    assert not heard


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    for content in ({"a": [1]}, {"a": np.array([{}], object), pieces.SEEDS: [], pieces.ORIGIN: "{}"}):
        np.savez(path, **content)
        with pytest.raises(FileFormatError, match="is damaged or of another origin"):
            pieces.kept(path, never)
    np.save(tmp_path / "y.npy", [1])
    (tmp_path / "y.npy").rename(path)
    with pytest.raises(FileFormatError, match="is damaged or of another origin"):
        pieces.kept(path, never)
    path.unlink()
    path.mkdir()
    with pytest.raises(FileFormatError, match=rf"cannot read the piece {path}: Is a directory"):
        pieces.kept(path, never)


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path):
    (tmp_path / "one").touch()
    with pytest.raises(OutputError, match=r"one\S* is not a directory|cannot .*one"):
        Run(1, "paper", tmp_path, "one").keep("x", never)


def test_a_piece_names_the_code_that_began_it(tmp_path, monkeypatch):
    versions = {"grokphys": "before", "processor": "p"}
    monkeypatch.setattr(pieces, "made_with", lambda *_: dict(versions))

    def make():
        versions["grokphys"] = "after a commit"
        return {"a": [1]}

    assert pieces.kept(tmp_path / "x.npz", make)[1].version == "before"


def test_a_piece_and_a_result_name_the_gpu_if_there_is_one(tmp_path, monkeypatch):
    processor = pieces.made_with("physics", "nets")["processor"]
    for gpu, named in ((False, processor), (True, f"{processor}, Some GPU")):
        monkeypatch.setattr(threads, "cuda_is_available", lambda gpu=gpu: gpu)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
        assert pieces.kept(tmp_path / f"{gpu}.npz", lambda: {"a": [1]})[1].processor == named
        assert not run.run_recipes(["long"], long(False), tmp_path, "paper", again=True)
        assert read_result(tmp_path / "long").about["made_with"]["processor"] == named
    assert pieces.made_with("physics", "nets")["processor"] == processor, "other files name it elsewhere"


@pytest.mark.parametrize("budget", ["paper", "quick"])
def test_settings_are_told_apart_by_their_text(budget):
    """Digits of pieces hold no address in memory, and no array of which the text shows a part."""
    for one in catalogue.recipes().values():
        text = repr(one.settings[budget])
        assert not re.search(r" at 0x|\.\.\.", text), one.name
        assert "array(" not in text, one.name


def long(fails):
    registry = {}

    @recipe(
        "long", paper="beyond", item="i", shows="s.", quick=1, paper_setting=3, cost="", registry=registry
    )
    def make(given):
        parts = []
        for k in range(given.setting):
            if fails and k == 2:
                raise ValueError("interrupted")
            parts.append(given.keep(f"part-{k}", lambda k=k: {"x": [k]})["x"])
        return Result({"t": {"x": np.concatenate(parts)}}, {"f": Figure()})

    return registry


def test_a_result_says_how_its_pieces_were_made(tmp_path, monkeypatch):
    versions = {"grokphys": "1", "processor": "first"}
    monkeypatch.setattr(pieces, "made_with", lambda *_: versions)
    kept, a, b, c = (tmp_path / name for name in ("kept", "a", "b", "c"))
    for path in (a, b, c):
        path.mkdir()
    assert run.run_recipes(["long"], long(True), a, "paper", again=False, pieces=kept) == ["long"]
    for path in kept.rglob("*.npz"):  # as if each had taken an hour, by a clock that is ahead
        with np.load(path) as stored:
            found = dict(stored)
        told = json.loads(str(found[pieces.ORIGIN]))
        assert told["seconds"] < 60
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["date"])
        found[pieces.ORIGIN] = json.dumps(told | {"seconds": 3600.0, "date": "2900-01-01T00:00:00Z"})
        np.savez(path, **found)
    versions |= {"grokphys": "2", "processor": "second"}
    assert not run.run_recipes(["long"], long(False), b, "paper", again=False, pieces=kept)
    stored = read_result(b / "long")
    assert stored.tables["t"]["x"].tolist() == [0, 1, 2]
    assert 7200 <= stored.about["seconds"] < 7260
    new, old = stored.about["pieces"]
    assert old == {"version": "1", "processor": "first", "pieces": 2, "seconds": 7200.0}
    assert (new["version"], new["processor"], new["pieces"]) == ("2", "second", 1)
    made = {"grokphys": "3", "processor": "second"}
    row = pages._run_row(stored.about | {"made_with": made})
    assert row[4:] == ("2, 1, 3", "second, first"), "also what has put the pieces together"
    short, full = stored.about["pieces"][0] | {"version": "0.1.0+g12ab"}, {"grokphys": "0.1.0+g12abc"}
    row = pages._run_row(stored.about | {"pieces": [short], "made_with": made | full})
    assert row[4] == "0.1.0+g12abc", "one commit, whose name is shorter in one clone"
    assert not run.run_recipes(["long"], long(False), c, "paper", again=False)
    about = read_result(c / "long").about
    assert about["seconds"] < 60
    assert "pieces" not in about, "all were computed by this run, which says how"
    assert len(list((c / ".unfinished" / "long").rglob("*.npz"))) == 3


def test_pieces_may_lie_elsewhere_and_other_seeds_have_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "recipes", lambda: long(False))
    given = ["reproduce", "long", "--budget", "paper", "--directory", str(tmp_path / "made")]
    assert main.main([*given, "--pieces", str(tmp_path / "kept")]) == 0
    assert main.main([*given, "--pieces", str(tmp_path / "kept"), "--other-seeds", "2"]) == 0
    folders = {path.relative_to(tmp_path).parts[:-2] for path in tmp_path.rglob("*.npz")}
    assert folders == {("kept", "long"), ("kept", "seeds-2", "long")}


def test_where_pieces_cannot_be_kept_nothing_runs(tmp_path, capsys):
    (tmp_path / "file").touch()
    given = ["reproduce", "liu-4a", "--directory", str(tmp_path / "made"), "--pieces", str(tmp_path / "file")]
    assert main.main([*given, "--budget", "paper"]) == 1
    assert "file is not a directory" in capsys.readouterr().err
    assert main.main(given) == 2
    said = "pieces must be left out with --budget quick, which keeps none, got "
    assert said in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_code_that_is_edited_during_a_run_does_not_count(tmp_path, monkeypatch):
    """What a process has imported is what stood there when it first asked for a fingerprint."""
    for name in ("grokphys/papers/__init__.py", "physics/a.py", "physics/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(fingerprint, "__file__", str(tmp_path / "grokphys" / "papers" / "fingerprint.py"))
    cached = (fingerprint.fingerprint, fingerprint._texts)

    def asked_after(edit):
        for one in cached:
            one.cache_clear()
        (tmp_path / "physics" / "b.py").write_text("x = 1\n")
        fingerprint.fingerprint("physics.a")
        if edit:
            (tmp_path / "physics" / "b.py").write_text("x = 2\n")
        return fingerprint.fingerprint("physics.b")

    try:
        assert asked_after(edit=True) == asked_after(edit=False)
    finally:
        for one in cached:
            one.cache_clear()


def test_parts_are_of_the_device_unless_they_are_stored_already(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
    made = []

    def make(part):
        made.append((part.start, part.stop))
        return {"k": np.array(part)}

    for gpu, count, expected in (
        (False, 4, [(0, 2), (2, 4)]),  # on a CPU two at a time
        (True, 9, [(4, 9)]),  # goes on on a GPU, with five
        (False, 11, [(9, 11)]),
        (True, 11, []),
    ):
        monkeypatch.setattr(threads, "cuda_is_available", lambda gpu=gpu: gpu)
        for store in (tmp_path, None):
            given = Run("setting", "paper", store, "parts")
            found = [one["k"].tolist() for one in pieces.in_parts(given, count, (2, 5), make, "n")]
            assert np.concatenate(found).tolist() == list(range(count))
            if store:
                assert made == expected, gpu
            else:
                assert {len(one) for one in found[:-1]} <= {5 if gpu else 2}
            made.clear()
