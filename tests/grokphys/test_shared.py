"""What the commands share: files and tables, models by name, the columns of a run, and its summary."""

import csv
import math

import numpy as np
import pytest

import physics
from grokphys import models, output
from grokphys.batches import read_each, run_columns
from grokphys.files import resolve
from grokphys.options import summarise
from physics import InputError

# -- files --------------------------------------------------------------------------------------------------


def test_a_table_has_the_columns_of_all_rows_in_the_order_of_their_first_occurrence(tmp_path):
    rows = [{"b": 1, "a": "x,y"}, {"c": None, "a": 'say "é"\n'}, {}]
    path = output.write_csv(tmp_path / "t.csv", rows)
    assert path == tmp_path / "t.csv"
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.reader(file))
    assert found == [["b", "a", "c"], ["1", "x,y", ""], ["", 'say "é"\n', ""], ["", "", ""]]
    assert output.write_table(tmp_path / "u.csv", rows).read_bytes() == path.read_bytes()


def test_names_with_numbers_are_in_the_order_of_the_numbers(tmp_path, monkeypatch):
    names = [f"a{k}/run_{n}.h5" for k in (2, 10) for n in (9, 10, 100)]
    monkeypatch.chdir(tmp_path)
    for name in ["b [1].h5", "b 1.h5", *names]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path) for path in resolve(["**/*.h5"])] == [*names, "b 1.h5", "b [1].h5"]
    assert [str(path) for path in resolve(["b [1].h5"])] == ["b [1].h5"], "a name before it is a pattern"
    (tmp_path / "example:ding").touch()
    (tmp_path / "link.h5").symlink_to("b 1.h5")
    several = ["b 1.h5", str(tmp_path / "b 1.h5"), "./b*1.h5", "link.h5", "../" + tmp_path.name + "/b 1.h5"]
    assert [str(path) for path in resolve(several)] == ["b 1.h5"], "one file"
    assert resolve(["example:ding"]) == [tmp_path.__class__("example:ding")]
    with pytest.raises(FileNotFoundError, match="there is no file no.h5"):
        resolve(["no.h5"])
    with pytest.raises(InputError, match=r"files must match at least one file, got the pattern 'no\*'"):
        resolve(["no*"])
    with pytest.raises(InputError, match="got none"):
        resolve([])


def test_the_columns_of_a_run_say_where_it_is_and_how_it_was_made(tmp_path):
    made = {"program": "p", "seed": 3, "runs": 9, "x": {"y": {"z": 1}, "w": [1, 2]}, "t": None, "b": True}
    path = tmp_path / "t.h5"
    positions = np.zeros((2, 1, 5, 3))
    physics.Trajectory(positions, [4], parameters={**made, "first_run": 7}, complete=False).save(path)
    (tmp_path / "no.h5").write_text("")
    failed = []
    ((found, trajectory, runs),) = read_each([str(tmp_path / "*.h5")], lambda one: one.runs, failed)
    assert (found, runs, failed) == (path, 2, [tmp_path / "no.h5"])
    own = {"run_numbers": [4, 9], "rate": [0.1, 0.9], "per_run": ["rate", "run_numbers"], "widths": [2, 3]}
    two = physics.Trajectory(positions, [4], parameters=own)
    columns = [run_columns(path, two, run) for run in (0, 1)]
    assert [(one["run"], one["parameter.rate"]) for one in columns] == [(4, 0.1), (9, 0.9)]
    assert [name for name in columns[0] if "." in name] == ["parameter.rate", "parameter.widths"]
    assert columns[0]["parameter.widths"] == "[2, 3]", "a list of all runs"
    assert run_columns(path, trajectory, 1) == {
        "file": str(path), "run": 8, "program": "p", "seed": "3", "complete": False, "tokens": 5, "dim": 3,
        "parameter.x.y.z": 1, "parameter.x.w": "[1, 2]", "parameter.t": None, "parameter.b": True,
        "parameter.first_run": 7,
    }  # fmt: skip


# -- models and options -------------------------------------------------------------------------------------


def test_a_model_is_built_with_its_options_and_no_others():
    options = {"group": "d4", "hidden": (7, 5), "dim": None, "runs": 3}
    model, settings = models.model_and_settings("GroupDecoder", options)
    assert (model.hidden, model.group.order, settings) == ((7, 5), 8, {"runs": 3})
    assert models.model_and_settings("constant-attention", {"hidden": (9,)})[0].hidden == 9
    assert models.model_and_settings("two-layer", {"hidden": (9,), "tokens": 5})[0].hidden == 9
    for name, options, said in (
        ("two-layer", {"hidden": (9, 8)}, "hidden must be one width for two-layer, got 2"),
        ("toy-addition", {"depth": 2}, "depth must be left out for toy-addition, whose options are "),
    ):
        with pytest.raises(InputError, match=said):
            models.model_and_settings(name, options)
    with pytest.raises(InputError, match="got '" + "x" * 20 + "…'"):
        models.named_group("x" * 40)
    with pytest.raises(InputError, match="got '" + "x" * 39 + "'"):
        models.named_group("x" * 39)
    words = ["hidden=8,9", "rate=.5", "kind=regression", "even=true", "data=A=b"]
    values = {"hidden": (8, 9), "rate": 0.5, "kind": "regression", "even": True, "data": "A=b"}
    assert models.named_values("options", words) == values
    assert [models.kebab(name) for name in ("EmbeddingMLP", "TwoLayer")] == ["embedding-mlp", "two-layer"]


# -- what is said -------------------------------------------------------------------------------------------


def trajectory(accuracy, reached, **parameters):
    """Two frames of runs, of which those without an accuracy have diverged."""
    positions = np.random.default_rng(0).normal(size=(len(accuracy), 2, 5, 2))
    positions[~np.isfinite(accuracy), -1, 0] = np.nan
    observables = {
        "train_accuracy": np.stack([np.zeros(len(accuracy)), accuracy], axis=1),
        "validation_accuracy": np.full((len(accuracy), 2), np.nan),
        "steps_to_train_accuracy": np.stack([np.full(len(accuracy), np.nan), reached], axis=1),
    }
    return physics.Trajectory(positions, [0, 9], observables=observables, parameters=parameters)


def test_a_summary_averages_the_runs_that_are_sound(capsys, tmp_path):
    nan = math.nan
    whole = trajectory(
        [0.5, 0.75, nan, 1.0], [3, 9, nan, nan], model={"type": "ToyAddition"}, unseen_classes=[0, 2, 1, 0]
    )
    assert summarise(whole, None) == 1
    assert capsys.readouterr().out.splitlines() == [
        "train accuracy 75.0 %, train accuracy reached by 2 of 4, median step 6, 2 of 4 networks have a "
        "class without a training example, 1 of 4 runs diverged",
        "not stored; give --out FILE to keep the trajectory",
    ]
    assert summarise(trajectory([0.5, 0.5], [nan, nan]), tmp_path) == 0
    first, second = capsys.readouterr().out.splitlines()
    found = physics.is_circle(trajectory([0.5, 0.5], [nan, nan]).final)
    assert first.startswith(f"{found.sum()} of 2 runs are circles (")
    assert first.endswith("train accuracy 50.0 %, train accuracy reached by 0 of 2")
    assert second == f"trajectory in {tmp_path}"
    assert summarise(trajectory([nan, nan], [nan, nan]), None) == 1
    assert capsys.readouterr().out.splitlines()[0].endswith("reached by 0 of 2, 2 of 2 runs diverged")
