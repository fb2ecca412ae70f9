"""Pieces of long runs: whose they are, what they say of themselves, and what a result says of them."""

import json
import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from matplotlib.figure import Figure

from grokphys.cli import main
from grokphys.papers import catalogue, pieces, run
from grokphys.papers.recipe import Result, Run, recipe
from grokphys.papers.results import read_result
from physics import FileFormatError
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


@pytest.mark.parametrize("changed", ["the setting", "the recipe's code", "the code that computes"])
def test_pieces_of_another_setting_or_other_code_are_left_alone_and_not_used(tmp_path, changed):
    def keep(setting, value, module="grokphys.papers.judge"):
        return Run(setting, "paper", tmp_path, "one", module).keep("x", value)["a"].tolist()

    before = keep(Setting(), lambda: {"a": [1]})
    if changed == "the setting":
        after = keep(Setting(4), lambda: {"a": [2]})
    elif changed == "the recipe's code":
        after = keep(Setting(), lambda: {"a": [2]}, module="grokphys.papers.musat.start")
    else:

        def make(value):
            return {"a": [value]}

        make.__module__ = "grokphys.papers.musat.start"
        after = keep(Setting(), partial(make, 2))
    assert (before, after) == ([1], [2])
    assert len(list(tmp_path.rglob("x.npz"))) == 2
    assert keep(Setting(), never) == [1], "as before the change"


def test_a_family_does_not_depend_on_the_module_of_one_recipe(tmp_path):
    one = Run(1, "paper", tmp_path, "one", "grokphys.papers.judge")
    two = Run(1, "paper", tmp_path, "two", "grokphys.papers.liu.planes")
    one.keep("x", lambda: {"a": [1]}, family="both")
    assert two.keep("x", never, family="both")["a"].tolist() == [1]


@pytest.mark.parametrize("damage", ["cut", "empty", "pickled", "foreign", "a directory"])
def test_a_damaged_piece_is_named_and_not_replaced(tmp_path, damage):
    given = Run(1, "paper", tmp_path, "one")
    given.keep("x", lambda: {"a": np.arange(1000)})
    (path,) = tmp_path.rglob("x.npz")
    content = path.read_bytes()
    if damage in ("cut", "empty"):
        path.write_bytes(content[: 300 if damage == "cut" else 0])
    elif damage == "pickled":
        np.savez(path, a=np.array([{}], object), **{pieces.SEEDS: [], pieces.ORIGIN: "{}"})
    elif damage == "foreign":
        np.savez(path, a=[1])
    else:
        path.unlink()
        path.mkdir()
    with pytest.raises(
        FileFormatError, match=rf"cannot read the piece {path}; remove it to compute it again"
    ):
        given.keep("x", never)
    assert path.exists()


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
    for path in kept.rglob("*.npz"):  # as if each had taken an hour, the day before
        with np.load(path) as stored:
            found = dict(stored)
        told = json.loads(str(found[pieces.ORIGIN]))
        assert told["seconds"] < 60
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["date"])
        found[pieces.ORIGIN] = json.dumps(told | {"seconds": 3600.0, "date": "2026-01-01T00:00:00Z"})
        np.savez(path, **found)
    versions |= {"grokphys": "2", "processor": "second"}
    assert not run.run_recipes(["long"], long(False), b, "paper", again=False, pieces=kept)
    stored = read_result(b / "long")
    assert stored.tables["t"]["x"].tolist() == [0, 1, 2]
    assert 7200 <= stored.about["seconds"] < 7260
    old, new = stored.about["pieces"]
    assert old == {"version": "1", "processor": "first", "pieces": 2, "seconds": 7200.0}
    assert (new["version"], new["processor"], new["pieces"]) == ("2", "second", 1)
    assert not run.run_recipes(["long"], long(False), c, "paper", again=False)
    about = read_result(c / "long").about
    assert "pieces" not in about, "all were computed by this run, which says how"
    assert len(list((c / ".unfinished" / "long").rglob("*.npz"))) == 3


def test_pieces_may_lie_elsewhere_and_other_seeds_have_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "recipes", lambda: long(False))
    given = ["reproduce", "long", "--budget", "paper", "--directory", str(tmp_path / "made")]
    assert main.main([*given, "--pieces", str(tmp_path / "kept")]) == 0
    assert main.main([*given, "--pieces", str(tmp_path / "kept"), "--other-seeds", "2"]) == 0
    folders = {path.relative_to(tmp_path).parts[:-2] for path in tmp_path.rglob("*.npz")}
    assert folders == {("kept", "long"), ("kept", "seeds-2", "long")}


def test_pieces_are_not_written_into_a_file(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main.main(["reproduce", "liu-4a", "--pieces", str(tmp_path / "file")]) == 1
    assert "is not a directory" in capsys.readouterr().err
