"""What the commands share: files and tables, models by name, the columns of a run, and its summary."""

import csv
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import nets
import physics
from grokphys import models, output
from grokphys.batches import read_each, run_columns
from grokphys.cli.info import _shortened
from grokphys.cli.phases import _named, _settings, _value
from grokphys.cli.train import _one_or_each
from grokphys.files import natural_order, resolve
from grokphys.options import sentence, structure_line, summarise
from grokphys.parsing import Commands, parsed
from grokphys.report import comparing
from physics import FileFormatError, InputError, OutputError

# -- files --------------------------------------------------------------------------------------------------


def test_a_table_has_the_columns_of_all_rows_in_the_order_of_their_first_occurrence(tmp_path):
    rows = [{"b": 1, "a": "x,y"}, {"c": None, "a": 'say "é"\n'}, {}]
    path = output.write_csv(tmp_path / "t.csv", rows)
    assert path == tmp_path / "t.csv"
    with path.open(encoding="utf-8", newline="") as file:
        found = list(csv.reader(file))
    assert found == [["b", "a", "c"], ["1", "x,y", ""], ["", 'say "é"\n', ""], ["", "", ""]]
    assert output.write_table(tmp_path / "u.csv", rows).read_bytes() == path.read_bytes()


def test_a_parquet_table_holds_the_same_with_nulls(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = output.write_table(tmp_path / "t.parquet", [{"b": 1, "a": "x"}, {"c": 2.5, "a": "y"}])
    assert parquet.read_table(path).to_pydict() == {"b": [1, None], "a": ["x", "y"], "c": [None, 2.5]}


def test_a_column_of_several_types_is_text_in_parquet(tmp_path, monkeypatch):
    """A made-up pyarrow, which refuses what the real one refuses."""

    def array(values):
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            raise TypeError("Expected bytes, got a 'int' object")
        if any(kind is int and value >= 2**63 for value in values for kind in [type(value)]):
            raise OverflowError("Python int too large to convert to C long")
        return values

    wrote = []
    parquet = SimpleNamespace(write_table=lambda table, buffer: wrote.append(table))
    pyarrow = SimpleNamespace(array=array, table=dict, parquet=parquet)
    monkeypatch.setitem(sys.modules, "pyarrow", pyarrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    rows = [{"a": 1, "b": "x", "c": 2**70}, {"a": 0.5, "b": 3, "c": None}, {"b": None}]
    output.write_table(tmp_path / "t.parquet", rows)
    assert wrote == [{"a": [1, 0.5, None], "b": ["x", "3", None], "c": [str(2**70), None, None]}]


def test_text_ends_with_one_line_feed_and_json_keeps_its_letters(tmp_path):
    assert output.write_text(tmp_path / "t", "é\n\n\n").read_bytes() == "é\n".encode()
    content = {"b": (1, np.float64(0.5)), "a": {"é": [math.nan, {"x": -math.inf}]}}
    assert output.json_text(content) == (
        '{\n "b": [\n  1,\n  0.5\n ],\n "a": {\n  "é": [\n   null,\n   {\n    "x": null\n   }\n  ]\n }\n}'
    )
    assert output.json_text([1, 2], indent=None) == "[1, 2]"


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_figure_has_the_format_of_its_name_and_the_resolution_asked_for(tmp_path, suffix, begins):
    from matplotlib.figure import Figure
    from matplotlib.image import imread

    path = output.save_figure(Figure((2, 1)), tmp_path / f"f.{suffix}", dpi=50)
    assert path.read_bytes().startswith(begins)
    if suffix == "png":
        assert imread(path).shape[:2] == (50, 100)


def test_a_directory_is_removed_with_its_parents_only_if_the_work_left_it_empty(tmp_path):
    def work(place, *, writes):
        with output.directory_to_fill(place):
            if writes:
                (place / "t").touch()
            raise ZeroDivisionError

    for writes in (False, True):
        with pytest.raises(ZeroDivisionError):
            work(tmp_path / "a" / "b", writes=writes)
        assert (tmp_path / "a" / "b").exists() == (tmp_path / "a").exists() == writes
    (tmp_path / "mine").mkdir()
    with pytest.raises(ZeroDivisionError):
        work(tmp_path / "mine", writes=False)
    assert (tmp_path / "mine").exists(), "it was there before"
    with output.directory_to_fill(tmp_path / "c" / "d"):
        pass
    assert (tmp_path / "c" / "d").is_dir()


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (link := tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(OutputError, match="link is a link that leads nowhere$"):
        output.refuse_unwritable(link / "x")
    link.unlink()
    output.refuse_unwritable(tmp_path / "a" / "b" / "c")
    output.refuse_existing(tmp_path / "a" / "t.csv", overwrite=False, parents=True)
    output.refuse_existing(tmp_path / "file", overwrite=True)
    monkeypatch.chdir(tmp_path)
    output.refuse_unwritable(tmp_path.__class__("x/y"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "nothing is left"
    for refused, said in (
        (lambda: output.refuse_unwritable(tmp_path / "a", parents=False), "a does not exist"),
        (lambda: output.refuse_unwritable(tmp_path / "file"), "file is not a directory"),
        (lambda: output.refuse_unwritable(tmp_path / "file" / "x"), "file is not a directory"),
        (lambda: output.refuse_existing(tmp_path / "file", overwrite=False), "file exists; choose another"),
        (lambda: output.refuse_existing(tmp_path / "a" / "t", overwrite=True), "a does not exist"),
        (lambda: output.refuse_existing(tmp_path, overwrite=True), "is not a regular file"),
        (lambda: output.refuse_table(tmp_path / "t.tsv", overwrite=True), "must end in .csv or .parquet"),
        (lambda: output.refuse_table(tmp_path / "file", overwrite=False), "file exists; choose another"),
    ):
        with pytest.raises(OutputError, match=said):
            refused()

    def denied(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(output.tempfile, "TemporaryFile", denied)
    with pytest.raises(OutputError, match=r"cannot write to .*: Permission denied"):
        output.refuse_unwritable(tmp_path)


def test_names_with_numbers_are_in_the_order_of_the_numbers(tmp_path, monkeypatch):
    names = [f"a{k}/run_{n}.h5" for k in (2, 10) for n in (9, 10, 100)]
    assert sorted(map(tmp_path.__class__, reversed(names)), key=natural_order) == [
        tmp_path.__class__(name) for name in names
    ]
    monkeypatch.chdir(tmp_path)
    for name in ["b [1].h5", "b 1.h5", *names]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path) for path in resolve(["**/*.h5"])] == [*names, "b 1.h5", "b [1].h5"]
    assert [str(path) for path in resolve(["b [1].h5"])] == ["b [1].h5"], "a name before it is a pattern"
    assert [str(path) for path in resolve(["a10/*9.h5", "b 1.h5", "a10/run_9.h5"])] == [
        "a10/run_9.h5",
        "b 1.h5",
    ]
    (tmp_path / "example:ding").touch()
    (tmp_path / "link.h5").symlink_to("b 1.h5")
    several = ["b 1.h5", str(tmp_path / "b 1.h5"), "./b*1.h5", "link.h5", "../" + tmp_path.name + "/b 1.h5"]
    assert [str(path) for path in resolve(several)] == ["b 1.h5"], "one file"
    assert [str(path) for path in resolve(["link.h5", "b 1.h5"])] == ["link.h5"], "by its first name"
    (tmp_path / "link.h5").unlink()
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


def test_a_file_whose_parameters_are_odd_does_not_stop_the_others(tmp_path, capsys):
    bad = {"program": "nets.train", "model": {"type": "ConstantAttention"}}
    for name, parameters in (("bad", bad), ("listed", {"program": ["nets.train"]})):
        made = physics.Trajectory(np.zeros((1, 1, 5, 2)), [0], parameters=parameters)
        made.save(tmp_path / f"{name}.h5")
    failed = []
    found = comparing._read(str(tmp_path / "*.h5"), failed)
    assert [one.path.name for one in found] == ["listed.h5"]
    assert failed == [tmp_path / "bad.h5"]
    assert capsys.readouterr().err.endswith(
        "bad.h5: parameters must describe a training of nets.train, got ones that do not (KeyError: 'seed')\n"
    )
    assert comparing._names([found, found]) == ("A", "B")
    with pytest.raises(FileFormatError, match="must describe a training"):
        nets.training_sets(physics.load(tmp_path / "bad.h5"))


def test_a_bad_file_is_named_once(tmp_path, capsys):
    physics.Trajectory(np.zeros((1, 1, 3, 1)), [0]).save(tmp_path / "a.h5")
    for said in ("no good", f"{tmp_path / 'a.h5'} is bad"):

        def fails(trajectory, said=said):
            raise ValueError(said)

        assert list(read_each([str(tmp_path / "a.h5")], fails, [])) == []
        err = capsys.readouterr().err
        assert err.startswith("grokphys: ")
        assert err.count("a.h5") == 1
        assert said in err


# -- models and options -------------------------------------------------------------------------------------


def test_options_without_a_value_are_those_of_the_model():
    assert (_one_or_each((), 0.5), _one_or_each((0.1,), 0.5), _one_or_each(())) == (0.5, 0.1, None)
    assert _one_or_each((0.1, 0.2), 0.5) == [0.1, 0.2]
    frozen = models.defaults("toy-addition", frozen=True)
    assert frozen == {"learning_rate": 1e-3, "weight_decay": 0.0, "steps": 5000}
    assert set(models.defaults("ToyAddition")) - set(frozen) == {
        "embedding_learning_rate",
        "embedding_weight_decay",
    }


def test_a_model_is_built_with_its_options_and_no_others():
    built = models.build("GroupDecoder", {"group": "d4", "hidden": (7, 5)})
    assert (built.hidden, built.group.order) == ((7, 5), 8)
    assert models.build("constant-attention", {"hidden": (9,)}).hidden == 9
    assert models.build("two-layer", {"hidden": (9,), "tokens": 5}).hidden == 9
    for name, options, said in (
        ("two-layer", {"hidden": (9, 8)}, "hidden must be one width for two-layer, got 2"),
        ("toy-addition", {"depth": 2}, "depth must be left out for toy-addition, whose options are "),
    ):
        with pytest.raises(InputError, match=said):
            models.build(name, options)
    with pytest.raises(InputError, match="got '" + "x" * 20 + "…'"):
        models.named_group("x" * 40)
    with pytest.raises(InputError, match="got '" + "x" * 39 + "'"):
        models.named_group("x" * 39)
    assert models.named_value("train_accuracy=0.9") == ("train_accuracy", 0.9)
    assert [models.kebab(name) for name in ("EmbeddingMLP", "TwoLayer")] == ["embedding-mlp", "two-layer"]


def test_settings_of_a_diagram_are_values_of_the_model_or_of_its_training():
    model, training = _settings(
        "toy-addition", ("kind=classification", "hidden=9,8", "embedding_learning_rate=0.5", "shared=layers")
    )
    assert (model.kind, model.hidden) == ("classification", (9, 8))
    assert training == {"embedding_learning_rate": 0.5, "shared": ("layers",)}
    values = {"True": True, "1e-3": 0.001, "7": 7, "relu": "relu", "NULL": None}
    assert {text: _value(text) for text in values} == values
    assert _named("a=b=c") == ("a", "b=c")
    assert _named("group=Q8")[1].order == 8
    for word in ("x", "=1", "x="):
        with pytest.raises(InputError, match="options must be NAME=VALUE"):
            _named(word)


def test_commands_are_imported_when_they_are_called_and_documented_before():
    commands = Commands({"info": "grokphys.cli.info:info", "no": "grokphys.missing:no"})
    assert commands.documentation("info").startswith("Print what trajectory files hold")
    assert isinstance(commands._known["info"], str), "only read, not imported"
    call = commands["info"]
    assert call.__module__ == "grokphys.cli.info"
    assert commands["info"] is call
    assert commands.documentation("info") == call.__doc__
    commands["more"] = lambda: 3
    assert (list(commands), len(commands)) == (["info", "no", "more"], 3)
    del commands["no"]
    assert parsed(["more"], commands, description="", warn=pytest.fail)() == 3


# -- what is said -------------------------------------------------------------------------------------------


def test_long_values_and_names_are_cut():
    text = "x" * 198
    assert _shortened(text) == f'"{text}"', "200 characters are not too many"
    assert _shortened(text + "x") == f'"{text}x … (199 items)'
    assert _shortened(10**250) == str(10**250)[:200] + " …"
    assert _shortened(list(range(100))).endswith(" … (100 items)")
    assert sentence(OSError(2, "No such file", "n" * 200)) == "No such file: " + "n" * 200
    assert sentence(OSError(2, "No such file", "n" * 201)) == "No such file: " + "n" * 200 + "…"
    assert sentence(OSError(2, "No such file")) == "No such file"
    assert sentence(ValueError("a\nb")) == "a b"


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


def test_a_line_of_structures_leaves_out_the_grids_that_do_not_exist():
    part = SimpleNamespace(format=lambda *given: f"part{given}")
    found = SimpleNamespace(circle=np.array([True, True]), circles=part, grid_imperfections=part)
    assert structure_line(found, "classes") == "2 of 2 runs are circles (part(1, 100) %)"
    found.circle[0] = False
    assert structure_line(found, "classes") == (
        "1 of 2 runs are circles (part(1, 100) %), grid imperfections of the rest part() (classes)"
    )
