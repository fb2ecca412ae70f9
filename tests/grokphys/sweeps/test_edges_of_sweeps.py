"""What a configuration of a sweep may hold: both sides of each bound, and the sentences on the wrong one."""

from typing import Literal

import numpy as np
import pytest
from edges import taken_and_refused

from grokphys.sweeps import config
from grokphys.sweeps.config import coerced, declaration, read_declaration
from grokphys.sweeps.driver import run_sweep
from grokphys.sweeps.index import _array
from physics import FileFormatError, InputError


def cells(**content):
    return declaration({"kind": "simulate", **content}).cells


def networks(**grid):
    return declaration({"kind": "train", "grid": grid}).cells


SECTIONS = "kind, pack, fixed, grid, list"
BOUNDS = [
    # what is taken, what is not, and why
    (lambda x: declaration({"kind": "simulate", **x}), {}, {"grids": {}},
     "grids is not a section of a sweep; did you mean grid?"),
    (lambda x: declaration({"kind": "simulate", **x}), {}, {"xyz": {}},
     f"xyz is not a section of a sweep; known are {SECTIONS}"),
    (lambda x: declaration({"kind": x}), "train", "fit",
     "kind must be one of 'simulate', 'train', got 'fit'"),
    (lambda x: cells(fixed=x), {}, [], "fixed must be a table of parameters, got list"),
    (lambda x: cells(grid=x), {"seed": [1]}, {},
     "grid must name at least one parameter with its values, got none"),
    (lambda x: cells(list=x), [{"seed": 1}], [],
     "list must name at least one parameter with its values, got none"),
    (lambda x: cells(list=x), [{"seed": 1}], [{"seed": 1}, {}],
     "list must name at least one parameter with its values, got none"),
    (lambda x: cells(list=x), [{"seed": 1}], {"seed": 1},
     "list must hold tables, each under [[list]], got dict"),
    (lambda x: cells(grid={"seed": x}), [1, 2], [1, 2, 1],
     "seed of the grid must list each value once, got 1 more than once"),
    (lambda x: cells(grid={"seed": x}), [1], [], "seed of the grid must list at least one value, got []"),
    (lambda x: cells(grid={"seed": x}), [1], 1, "seed of the grid must list at least one value, got 1"),
    (lambda x: cells(fixed={x: 1}, grid={"seed": [1]}), "runs", "seed",
     "seed must be in only one of fixed, grid and list, got it in grid and elsewhere"),
    (lambda x: cells(list=[{x: 1}], grid={"seed": [1]}), "runs", "seed",
     "seed must be in only one of fixed, grid and list, got it in grid and elsewhere"),
    (lambda x: cells(fixed={x: 1}, list=[{"seed": 1}]), "runs", "seed",
     "seed must be in only one of fixed, grid and list, got it in fixed and list"),
    (lambda x: cells(list=[{"seed": 1}, {"seed": x}]), 2, 1,
     "list and grid must name each cell once, got {'seed': 1} again"),
    (lambda x: cells(fixed={x: 1}), "steps", "step",
     "step is not a parameter of simulate; did you mean steps?"),
    (lambda n: cells(pack=n), 1, 0, "pack must be at least 1, got 0"),
    (lambda n: cells(fixed={"runs": n}), 1, 0, "runs must be at least 1, got 0"),
    (lambda n: cells(fixed={"seed": n}), 0, -1, "seed must be at least 0, got -1"),
    (lambda x: coerced("x", x, bool), True, 1, "x must be True or False, got 1"),
    (lambda x: coerced("x", x, str), 7, True, "x must be text, got True"),
    (lambda x: coerced("x", x, str), "a", 1.5, "x must be text, got 1.5"),
    (lambda x: coerced("x", x, int | None), None, "a", "x must be a whole number, got 'a'"),
    (lambda x: coerced("x", x, int), -1, True, "x must be a whole number, got True"),
    (lambda n: cells(fixed={"steps": n}), 1, 0, "steps must be at least 1, got 0"),
    (lambda x: networks(learning_rate=[0.1, x]), 0.0, -1.0,
     "learning_rate must be a finite number of at least 0, got -1"),
    (lambda x: networks(embedding_weight_decay=[0.1, x]), None, -1.0,
     "embedding_weight_decay must be a finite number of at least 0, got -1"),
    (lambda x: networks(layer_scale=[1.0, x]), 1e-9, 0.0,
     "layer_scale must be a finite number greater than 0, got 0"),
    (lambda x: coerced("x", x, Literal["a", "b"]), "b", "c", "x must be one of 'a', 'b', got 'c'"),
    (lambda x: coerced("seed", x, tuple[int, ...]), [0, 1], [0, -1], "seed must be at least 0, got -1"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "taken", "refused", "sentence"), BOUNDS, ids=range(len(BOUNDS)))
def test_the_last_value_is_taken_and_the_next_one_refused(call, taken, refused, sentence):
    taken_and_refused(call, taken, refused, sentence)


def test_a_sweep_has_at_most_so_many_cells_and_runs(monkeypatch):
    monkeypatch.setattr(config, "MOST_RUNS", 6)
    found = cells(grid={"seed": [1, 2, 3], "steps": [4, 5]})
    assert len(found) == 6
    assert found[1].coordinates == {"seed": 1, "steps": 5}, "the last parameter changes first"
    with pytest.raises(InputError, match=r"^grid must span at most 6 cells, got 8$"):
        cells(grid={"seed": [1, 2, 3, 4], "steps": [4, 5]})
    whole = cells(grid={"runs": [2, 4]}, fixed={"first_run": 3})
    assert [cell.numbers for cell in whole] == [range(3, 5), range(3, 7)]
    with pytest.raises(InputError, match=r"^runs must be at most 6 in all cells together, got 7$"):
        cells(grid={"runs": [2, 5]})


def test_entries_of_a_list_are_numbered_and_combined_with_the_grid():
    declared = declaration(
        {"kind": "simulate", "list": [{"tokens": 5}, {"tokens": 7, "dim": 1}], "grid": {"seed": [0, 1]}}
    )
    assert declared.axes == ("entry", "seed")
    assert [cell.coordinates for cell in declared.cells] == [
        {"entry": 0, "tokens": 5, "seed": 0}, {"entry": 0, "tokens": 5, "seed": 1},
        {"entry": 1, "tokens": 7, "dim": 1, "seed": 0}, {"entry": 1, "tokens": 7, "dim": 1, "seed": 1},
    ]  # fmt: skip
    assert [cell.parameters["dim"] for cell in declared.cells] == [2, 2, 1, 1]


def test_a_value_alone_is_a_list_of_one_where_lists_are_taken():
    assert coerced("x", 3, tuple[int, ...]) == (3,)
    assert coerced("x", [3, 4], tuple[int, ...]) == (3, 4)
    assert coerced("x", 3, float) == 3.0
    assert coerced("x", 3, str) == "3"
    assert coerced("x", None, float | None) is None


def test_columns_are_numbers_where_all_values_are():
    for values, kind in (([1, 2], "i"), ([1.5, 2.0], "f"), ([True, False], "b")):
        found = _array(values)
        assert (found.dtype.kind, found.tolist()) == (kind, values)
    mixed = _array([1, None, 2.5])
    assert mixed.dtype == np.float64
    np.testing.assert_array_equal(mixed, [1.0, np.nan, 2.5])
    assert _array(["a", None, [1, 2]]).tolist() == ["a", "null", "[1,2]"]
    assert _array([True, 1]).tolist() == ["true", "1"], "a truth value is no number"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.toml", "kind = ", "a.toml is not TOML: "), ("a.json", "{", "a.json is not JSON: "),
        ("a.json", "[1]", "a.json must hold a table, got list"),
        ("a.json", '{"kind": "simulate", "fixed": {"seed": 1, "steps": 2, "seed": 3}}',
         "a.json is not JSON: 'seed' is declared twice in one table"),
        ("a.json", '{"kind": "simulate", "kind": "train"}', "'kind' is declared twice in one table"),
    ],
)  # fmt: skip
def test_a_configuration_that_is_none_is_named(name, text, sentence, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError) as said:
        read_declaration(tmp_path / name)
    assert sentence in str(said.value)
    with pytest.raises(FileNotFoundError, match=r"^there is no file .*b\.toml$"):
        read_declaration(tmp_path / "b.toml")
    (tmp_path / "c.json").write_text('{"kind": "simulate", "fixed": {"seed": 3}}', encoding="utf-8")
    assert read_declaration(tmp_path / "c.json").fixed == {"seed": 3}


@pytest.mark.parametrize("size", [{}, {"pack": 1}])
@pytest.mark.parametrize(
    ("thresholds", "sentence"),
    [
        (["quality=0.5", "quality=0.9"], "threshold must give quality once, got 0.5 and 0.9"),
        (["quality"], "threshold must be NAME=VALUE, such as train_accuracy=0.9, got 'quality'"),
    ],
)
def test_thresholds_of_a_cell_are_refused_before_anything_is_written(thresholds, sentence, size, tmp_path):
    declared = declaration(
        {"kind": "train", "fixed": {"threshold": thresholds}, "grid": {"tokens": [5]}} | size
    )
    with pytest.raises(InputError) as said:
        run_sweep(declared, tmp_path / "new")
    assert str(said.value) == f"{sentence} (in the cell tokens = 5)"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"retries": -1}, "retries must be at least 0, got -1"),
        (
            {"workers": 2, "scheduler": "tcp://localhost:1"},
            "workers must be 1 if scheduler (--scheduler) is given, because the scheduler has its own "
            "workers, got 2",
        ),
    ],
)
def test_options_of_a_sweep_are_refused_before_anything_is_written(options, sentence, tmp_path):
    with pytest.raises(InputError) as said:
        run_sweep(declaration({"kind": "simulate"}), tmp_path / "new", **options)
    assert str(said.value) == sentence
    assert not (tmp_path / "new").exists()
