"""The pictures of recipes: their formats, and how those of stored results are drawn again."""

import json

import numpy as np
import pytest
from matplotlib import pyplot as plt

from analysis.stats.intervals import Interval
from grokphys.cli.main import main
from grokphys.papers import redraw
from grokphys.papers.recipe import Number, Printed, Result, Run, recipe
from grokphys.papers.results import read_result
from physics.seeds import generator

BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def dice(*, seed=0, color="black", columns=("face",), extra=()):
    """A catalogue with one recipe, which throws a die and draws the faces in a color."""
    registry = {}
    mean = Number("mean", Printed("3.5", "folklore"), lambda t, v: Interval(3.5, 3.4, 3.6, 60), 0.5)

    @recipe(
        "dice", paper="beyond", item="a die", shows="It shows six faces.", quick=6, paper_setting=60, cost="",
        rules=(mean,), registry=registry,
    )  # fmt: skip
    def throw(run: Run) -> Result:
        faces = generator(seed).integers(1, 7, run.setting)
        figure, ax = plt.subplots(figsize=(2, 2))
        ax.bar(*np.unique(faces, return_counts=True), color=color)
        plt.close(figure)
        return Result(
            {"faces": dict.fromkeys(columns, faces)}, {"dice": figure, **dict.fromkeys(extra, figure)}
        )

    return registry


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Return a function that replaces the catalogue; the working directory is empty."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    return lambda catalogue: monkeypatch.setattr("grokphys.papers.catalogue.recipes", lambda: catalogue)


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_figures_are_written_in_the_format_that_is_asked_for_and_as_png(at, tmp_path, kind):
    at(dice())
    assert main(["reproduce", "dice", "--directory", "made", "--figures", kind]) == 0
    made = tmp_path / "made" / "dice"
    assert {path.name for path in made.glob("dice.*")} == {f"dice.{one}" for one in {"png", kind}}
    for path in made.glob("dice.*"):
        assert path.read_bytes().startswith(BEGINS[path.suffix[1:]])
    if kind == "svg":
        assert b"</svg>" in (made / "dice.svg").read_bytes()


def published(at):
    at(dice())
    assert main(["reproduce", "dice", "--budget", "paper", "--directory", "made", "--publish", "docs"]) == 0


def everything(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_only_the_pictures_change_if_the_tables_are_the_same(at, tmp_path, capsys):
    published(at)
    before = everything(tmp_path / "docs")
    at(dice(color="orange"))
    assert main(["reproduce", "dice", "--redraw", "docs"]) == 0
    assert "wrote docs/gallery/dice.png" in capsys.readouterr().out
    after = everything(tmp_path / "docs")
    assert [path.name for path in before if before[path] != after.pop(path)] == ["dice.png"]
    assert not after
    assert plt.imread(tmp_path / "docs/gallery/dice.png").shape[1] == 1600


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"seed": 1}, "the column 'face' of the table 'faces'"),
        ({"columns": ("face", "again")}, "the list of columns of the table 'faces'"),
        ({"extra": ("second",)}, "the list of pictures"),
    ],
)
def test_another_result_is_refused_in_one_sentence(at, tmp_path, capsys, other, what):
    published(at)
    before = everything(tmp_path / "docs")
    at(dice(color="orange", **other))
    assert main(["reproduce", "dice", "--redraw", "docs"]) == 1
    assert capsys.readouterr().err == (
        f"grokphys: dice must be as it was stored to be redrawn, but {what} differs; "
        "its pictures stay as they are\n"
    )
    assert everything(tmp_path / "docs") == before


def test_a_single_stored_digit_decides(at, tmp_path, capsys):
    published(at)
    path = tmp_path / "docs" / "results" / "dice" / "faces.json"
    table = json.loads(path.read_text())
    table["face"][17] += 1
    path.write_text(json.dumps(table))
    at(dice())
    assert main(["reproduce", "dice", "--redraw", "docs"]) == 1
    assert "but the column 'face' of the table 'faces' differs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("again", "same"),
    [
        (np.array([1.0, -2.0, np.nan, np.inf]), True),
        (np.array([1.0 + 1e-7, -2.0 - 1e-7, np.nan, np.inf]), True),
        (np.array([1.0 + 1e-5, -2.0, np.nan, np.inf]), False),
        (np.array([1.0, -2.0, 0.0, np.inf]), False),
        (np.array([1.0, -2.0, np.nan, 3.0]), False),
        (np.array([1.0, -2.0, np.nan]), False),
        (np.array([1, -2, 0, 3]), False),
    ],
)
def test_numbers_of_a_redrawn_table_may_differ_by_rounding_alone(again, same):
    assert redraw._agree(np.array([1.0, -2.0, np.nan, np.inf]), again) is same


def test_results_with_other_seeds_are_drawn_again_from_those(at, tmp_path):
    at(dice())
    whole = ["reproduce", "dice", "--budget", "paper", "--directory", "made", "--other-seeds", "2"]
    assert main([*whole, "--publish", "docs"]) == 0
    results = tmp_path / "docs" / "results"
    (results / "seeds-2" / "dice").rename(results / "dice")
    assert read_result(results / "dice").about["seeds"] == [2 * 10**9]
    assert main(["reproduce", "dice", "--redraw", "docs"]) == 0


def drawn(at, *, throws=60, color="black", ran=None):
    """A catalogue whose recipe draws its figure from setting and tables alone, and notes when it runs."""
    registry = {}

    def draw(setting, tables):
        figure, ax = plt.subplots(figsize=(2, 2))
        ax.bar(*np.unique(tables["faces"]["face"], return_counts=True), color=color)
        ax.set_title(f"{setting} throws")
        plt.close(figure)
        return {"dice": figure}

    @recipe(
        "dice", paper="beyond", item="a die", shows="It shows six faces.", quick=6, paper_setting=throws,
        cost="", draw=draw, registry=registry,
    )  # fmt: skip
    def throw(run: Run) -> Result:
        if ran is not None:
            ran.append(run.setting)
        return Result({"faces": {"face": generator(0).integers(1, 7, run.setting)}})

    at(registry)


def test_pictures_of_tables_alone_are_drawn_again_without_another_run(at, tmp_path):
    ran = []
    drawn(at, ran=ran)
    assert main(["reproduce", "dice", "--budget", "paper", "--directory", "made", "--publish", "docs"]) == 0
    assert ran == [60]
    before = everything(tmp_path / "docs")
    assert main(["reproduce", "dice", "--redraw", "docs"]) == 0
    assert everything(tmp_path / "docs") == before  # the picture, too, is that of the run
    drawn(at, color="orange", ran=ran)
    assert main(["reproduce", "dice", "--redraw", "docs"]) == 0
    after = everything(tmp_path / "docs")
    assert [path.name for path in before if before[path] != after[path]] == ["dice.png"]
    assert ran == [60]


def test_tables_of_another_setting_are_not_drawn(at, tmp_path, capsys):
    drawn(at)
    assert main(["reproduce", "dice", "--budget", "paper", "--directory", "made", "--publish", "docs"]) == 0
    before = everything(tmp_path / "docs")
    drawn(at, throws=61)
    capsys.readouterr()
    assert main(["reproduce", "dice", "--redraw", "docs"]) == 1
    assert "but the setting differs; its pictures stay as they are" in capsys.readouterr().err
    assert everything(tmp_path / "docs") == before


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["--redraw", "docs"], 2, "names must say which recipes to draw again with --redraw, got none"),
        (["dice", "--redraw", "docs"], 1, "names must name results at the paper's setting in docs/results, "
         "got dice"),
        (["dice", "--redraw", "none"], 1, "cannot write to none/gallery: the directory none/gallery does not "
         "exist"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_again_is_refused(at, tmp_path, capsys, words, status, sentence):
    at(dice())
    (tmp_path / "docs" / "gallery").mkdir()
    assert main(["reproduce", *words]) == status
    assert capsys.readouterr().err.removeprefix("grokphys: ").removeprefix("error: ") == f"{sentence}\n"
