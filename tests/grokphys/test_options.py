"""The options of all commands together: one name means one thing, and the help says units and defaults."""

import errno
import inspect
import json
import os
import re
import shlex
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import nets
import physics
from grokphys import models
from grokphys.batches import read_each
from grokphys.cli.main import COMMANDS, main
from grokphys.options import sentence
from grokphys.output import json_text, make_directory, refuse_existing, write_json
from grokphys.parsing import RENAMED, in_options, parsed
from physics.errors import InputError, OutputError


def told(command, capsys, monkeypatch):
    """Every option of a command with its metavar and help, as a terminal of great width shows them."""
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert not stop.value.code
    options: list[str] = []
    for line in capsys.readouterr().out.splitlines():
        text = line.strip(" │")
        if re.match("--[a-z]", text):
            options.append(text)
        elif options and text.strip("─-╭╮╰╯ "):
            options[-1] += f"  {text}"
        elif not text:
            options.append("")
    found = {}
    for option in options:
        if told := re.match(r"(--[a-z0-9-]+)(?:, --no-[a-z0-9-]+)?(?: (\S.*?))?\s{2,}(.*)$", option):
            found[told[1]] = (told[2], " ".join(told[3].split()))
    return found


@pytest.fixture
def table(capsys, monkeypatch):
    return {command: told(command, capsys, monkeypatch) for command in COMMANDS}


def plain(kind):
    """A type without metadata and None; of a choice of words, text."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        kind = plain(next(one for one in get_args(kind) if one is not type(None)))
    if get_origin(kind) is Literal:
        return str
    if get_origin(kind) is tuple:
        return tuple(one if one is Ellipsis else plain(one) for one in get_args(kind))
    return kind


def types_of(command):
    """The type of each option of a command."""
    hints = get_type_hints(COMMANDS[command], include_extras=True)
    found = {}
    for name in inspect.signature(COMMANDS[command]).parameters:
        if name == "system":
            found |= get_type_hints(physics.ParticleSystem)
        elif "Positional" not in str(hints[name]):
            found[name] = hints[name]
    return {
        f"--{name.rstrip('_').replace('_', '-')}": plain(kind)
        for name, kind in found.items()
        if kind is not Any
    }


def head(words):
    """What an option is, before what is said of it in detail."""
    return re.split(r"[.,;:(]", words)[0].strip()


def test_one_name_means_one_thing(table):
    seen = {}
    for command, options in table.items():
        kinds = types_of(command)
        for name, (_, words) in options.items():
            if name == "--budget":  # that of reproduce has two settings, that of bench three sizes
                continue
            one = (kinds[name], head(words))
            first, known = seen.setdefault(name, (command, one))
            assert one == known, f"{name} of {command} and of {first}"
    assert {"--out", "--table", "--directory", "--overwrite", "--steps", "--threshold", "--kind"} <= {*seen}
    assert len(seen) > 90


def test_every_help_says_what_the_default_is(table):
    for command, options in table.items():
        assert options or command in ("info", "warm")
        for name, (_, words) in options.items():
            where = f"{command} {name}: {words}"
            assert re.search(r"\((default: .+|required)\)$", words), where
            assert "(default: None)" not in words, where
            assert "(default: )" not in words, where


UNITS = re.compile(
    r"\b(number|steps?|from 0 to 1|at most 1|probability|factor|width|rate|length|seed|constant|pixels|per|"
    r"second|bins|part|signal|address|port|accuracy|dimensions?|decay|modulus|times|error|rank|weight|pull|push|tolerance|norm|"
    r"that varies)\b",
    re.IGNORECASE,
)


def test_every_help_of_a_number_says_what_it_counts_or_measures(table):
    for command, options in table.items():
        kinds = types_of(command)
        for name, (_, words) in options.items():
            if kinds[name] in (int, float) or (isinstance(kinds[name], tuple) and float in kinds[name]):
                assert UNITS.search(words), f"{command} {name}: {words}"


def test_the_help_names_the_defaults_that_the_models_have(table):
    for name in models.MODELS:
        fields = inspect.signature(getattr(nets, name)).parameters
        for field, value in models.FIELDS[models.kebab(name)].items():
            default = fields[field].default
            if field == "group":
                assert (
                    fields[field].default is inspect.Parameter.empty or models.named_group(value).order == 6
                )
                continue
            shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
            assert str(shown) == str(value), (name, field)
        known = set(models.MODEL_OPTIONS) & set(fields) - {"initialisation"}
        assert known == set(models.FIELDS[models.kebab(name)]), name
    words = table["train"]["--weight-decay"][1]
    assert "1.0 for constant-attention" in words
    assert "0.5 for embedding-mlp" in words
    assert "30000 for embedding-mlp" in table["train"]["--steps"][1]


@pytest.mark.parametrize("name", models.MODELS)
def test_a_model_has_the_name_of_its_class_and_that_in_small_letters(name):
    small = models.kebab(name)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", small)
    assert models.model_name(name) == models.model_name(small) == small
    assert {"learning_rate", "weight_decay", "steps"} <= set(models.defaults(name))


def test_old_names_of_models_and_wrong_ones():
    assert models.model_name("transformer") == "token-transformer"
    assert models.model_name("images") == "image-mlp"
    with pytest.raises(InputError, match="model must be one of 'constant-attention', .*, got 'mlp'"):
        models.model_name("mlp")
    with pytest.raises(InputError, match="model must be one of .*, got 3"):
        models.model_name(3)


def test_a_model_is_trained_as_in_its_paper(tmp_path):
    """And not with the weight decay of another one."""
    words = ["--tokens", "7", "--dim", "4", "--hidden", "5", "--steps", "2", "--record", "1"]
    for name, weight_decay in (("EmbeddingMLP", 0.5), ("embedding-mlp", 0.5), ("ToyAddition", 0.0)):
        out = tmp_path / f"{name}.h5"
        assert main(["train", "--model", name, *words, "--out", str(out)]) == 0
        assert physics.load(out).parameters["weight_decay"] == weight_decay


def test_phases_train_as_in_the_paper(tmp_path, capsys):
    words = [
        "--x",
        "learning_rate",
        "0.001",
        "0.01",
        "--y",
        "embedding_scale",
        "0.5",
        "1",
        "--cells",
        "1",
        "1",
    ]
    words += ["--seeds", "1", "--most-seeds", "1", "--levels", "0", "--steps", "2", "--delay", "1"]
    command = ["phases", "--model", "EmbeddingMLP", *words, "--options", "tokens=7", "dim=4", "hidden=5"]
    assert main([*command, "--directory", str(tmp_path)]) == 0
    (stored,) = (tmp_path / "networks").glob("*.h5")
    assert physics.load(stored).parameters["weight_decay"] == 0.5
    capsys.readouterr()
    before = (tmp_path / "phases.csv").stat().st_mtime_ns
    assert main([*command, "--directory", str(tmp_path)]) == 1
    assert "phases.csv exists; choose another name or pass --overwrite" in capsys.readouterr().err
    assert (tmp_path / "phases.csv").stat().st_mtime_ns == before
    assert main([*command, "--directory", str(tmp_path), "--overwrite"]) == 0


def test_bench_does_not_replace_what_is_there_unasked(tmp_path, capsys, monkeypatch):
    from grokphys.bench import registry as bench

    monkeypatch.setitem(
        bench.BENCHES, "theory", lambda out, budget: write_json(out, {"budget": budget}) and 0
    )
    kept = tmp_path / "theory.json"
    kept.write_text("precious")
    command = ["bench", "theory", "--directory", str(tmp_path), "--budget", "quick"]
    assert main(command) == 1
    assert "theory.json exists; choose another name or pass --overwrite" in capsys.readouterr().err
    assert kept.read_text() == "precious"
    assert main([*command, "--overwrite"]) == 0
    assert json.loads(kept.read_text()) == {"budget": "quick"}


def test_make_demo_can_be_run_twice():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert re.search(r"^\t\S*grokphys demo --overwrite$", makefile, re.MULTILINE)


def test_old_names_of_options_are_understood_with_a_warning(tmp_path, capsys):
    path = tmp_path / "t.h5"
    physics.simulate(physics.ParticleSystem(5), steps=3, out=path)
    assert main(["analyze", str(path), "--out", str(tmp_path / "t.csv")]) == 0
    assert capsys.readouterr().err == "grokphys: warning: --out of analyze is now --table\n"
    assert (tmp_path / "t.csv").exists()
    assert main(["analyze", str(path), f"--out={tmp_path / 'u.csv'}"]) == 0
    assert (tmp_path / "u.csv").exists()


def test_what_is_renamed_exists(table):
    for command, names in RENAMED.items():
        assert set(names.values()) <= set(table[command])
        for old in set(names) & set(table[command]):
            raise AssertionError(f"{command} has {old} still")


def test_the_version_and_the_list_of_figures(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"grokphys \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)
    assert main(["reproduce", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    from grokphys.papers.catalogue import recipes

    assert [line.split()[0] for line in listed] == list(recipes())
    assert all(len(line.split()) > 3 for line in listed)


# -- what is written -----------------------------------------------------------------------------------------


def test_json_holds_null_for_what_json_does_not_have(tmp_path):
    content = {
        "a": np.nan,
        "b": [np.inf, -np.inf, 1.5],
        "c": np.array([1.0, np.nan]),
        "d": {"e": np.float32(2)},
    }
    path = write_json(tmp_path / "t.json", content)

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    found = json.loads(path.read_text(), parse_constant=refuse)
    assert found == {"a": None, "b": [None, None, 1.5], "c": [1.0, None], "d": {"e": 2.0}}
    assert json_text(float("nan"), indent=None) == "null"


def test_the_scores_of_a_fit_that_blows_up_are_json(tmp_path):
    path = tmp_path / "t.h5"
    physics.simulate(physics.ParticleSystem(7), steps=30, out=path)
    words = ["fit-ode", str(path), "--law", "lotka-volterra", "--penalty", "least-squares", "--last", "30"]
    assert main([*words, "--directory", str(tmp_path / "fit")]) == 0
    text = (tmp_path / "fit" / "scores.json").read_text()
    assert not re.search(r"\bNaN\b|\bInfinity\b", text)
    json.loads(text)


@pytest.fixture
def signals(tmp_path):
    path = tmp_path / "signals.h5"
    physics.simulate(physics.ParticleSystem(7), runs=3, steps=30, out=path)
    return path


def test_intervals_of_an_earlier_fit_do_not_stay(signals, tmp_path):
    words = ["fit-ode", str(signals), "--penalty", "least-squares", "--last", "30", "--directory"]
    words.append(str(tmp_path / "fit"))
    assert main([*words, "--resamples", "5"]) == 0
    names = {path.name for path in (tmp_path / "fit").iterdir()}
    assert "intervals.csv" in names
    assert main([*words, "--overwrite"]) == 0
    assert {path.name for path in (tmp_path / "fit").iterdir()} == names - {"intervals.csv"}
    assert main([*words, "--law", "mean-field", "--overwrite"]) == 0
    assert "interactions.csv" not in {path.name for path in (tmp_path / "fit").iterdir()}


def test_a_fit_says_which_steps_it_has_fitted(signals, tmp_path, capsys):
    one = tmp_path / "one.h5"
    physics.load(signals)[:1].save(one)
    words = ["--penalty", "least-squares", "--table", str(tmp_path / "t.csv"), "--directory"]
    for file, count in ((signals, "3 runs"), (one, "1 run")):
        assert main(["fit-ode", str(file), *words, str(tmp_path / "fit"), "--overwrite"]) == 0
        said = capsys.readouterr().out
        assert f"steps 0 to 30, {count}, increment" in said
        assert f"{count} in {tmp_path / 't.csv'}" in said
        scores = json.loads((tmp_path / "fit" / "scores.json").read_text())
        assert (scores["first"], scores["last"]) == (0, 30)


def test_a_fit_of_figures_in_another_format_leaves_no_stale_ones(signals, tmp_path, capsys):
    words = ["fit-ode", str(signals), "--penalty", "least-squares", "--directory", str(tmp_path / "fit")]
    assert main([*words, "--figures", "svg"]) == 0
    (tmp_path / "fit" / "coefficients.csv").rename(tmp_path / "kept.csv")
    for name in ("interactions.csv", "scores.json", "rollout.svg"):
        (tmp_path / "fit" / name).unlink()
    assert main(words) == 1
    assert "coefficients.svg exists; choose another name or pass --overwrite" in capsys.readouterr().err
    assert main([*words, "--overwrite"]) == 0
    assert not list((tmp_path / "fit").glob("*.svg"))


@pytest.mark.parametrize("table", ["fit/coefficients.csv", "here/../fit/intervals.csv"])
def test_a_table_in_the_place_of_a_file_of_the_directory_is_refused(
    signals, table, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("here").mkdir()
    assert main(["fit-ode", str(signals), "--table", table, "--directory", "fit", "--overwrite"]) == 2
    said = f"grokphys: error: --table must be another file than those of --directory, got {table}\n"
    assert capsys.readouterr().err == said
    assert not Path("fit").exists()


def test_a_table_behind_links_in_a_circle_ends_in_a_sentence(signals, tmp_path, capsys):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert main(["fit-ode", str(signals), "--table", str(tmp_path / "circle" / "t.csv")]) == 1
    assert "circle is a link that leads nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--resamples 20", "--resamples needs --directory, to which"),
        ("--resamples 1 --directory fit", "resamples must be 0 or at least 2, got 1"),
        ("--resamples -1", "resamples must be at least 0, got -1"),
        ("--resamples 20 --law mean-field --directory fit", "resamples must be 0 unless the law is linear"),
        ("--resamples 20 --alpha bic --directory fit --table t.csv", "resamples must be 0 unless the law is"),
        ("--first -1", "first must be at least 0, got -1"),
        ("--first 9 --last 9", "--last must be greater than 9, the value of --first, got 9"),
        (
            "--l1-ratio 2 --penalty elastic-net",
            "--l1-ratio must be a finite number greater than 0 and at most 1, got 2",
        ),
    ],
)
def test_options_of_a_fit_are_refused_before_anything_is_written(
    signals, words, message, tmp_path, capsys, monkeypatch
):
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    assert main(["fit-ode", str(signals), *words.split()]) == 2
    assert message in capsys.readouterr().err
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--at -1", "at must be at least 1, got -1"),
        ("--bins 0", "bins must be at least 1, got 0"),
        ("--bins 10000000000", "bins must be at most 1000000, got 10000000000"),
        ("--factor nan", "factor must be a finite number greater than 0, got nan"),
        ("--signal-threshold -1", "--signal-threshold must be a finite number greater than 0, got -1"),
    ],
)
def test_survival_refuses_what_is_out_of_range(signals, words, message, capsys):
    assert main(["survival", str(signals), *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_survival_names_a_step_beyond_the_end(signals, capsys):
    assert main(["survival", str(signals), "--at", "31"]) == 1
    assert "at must be at most the last step, 30, got 31" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--directory=/dev/null/t", "--publish=/dev/null/t"])
def test_reproduce_refuses_a_page_that_cannot_be_written_before_the_work(
    option, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "ding-2", "--budget", "quick", option]) == 1
    assert capsys.readouterr().err.startswith("grokphys: error: cannot write")
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_greets_the_scheduler_before_it_writes(tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('kind = "simulate"\n[fixed]\nsteps = 2\n')
    assert main(["sweep", "s.toml", "--scheduler", "nowhere"]) == 2
    assert "scheduler must be an address such as tcp://host:8786, got 'nowhere'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


@pytest.mark.parametrize(
    ("error", "seen", "sentence"),
    [
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            OutputError,
            r"cannot write .*t\.json: No space left",
        ),
        (KeyboardInterrupt("here"), KeyboardInterrupt, "here"),
    ],
    ids=["a full disk", "Ctrl-C"],
)
def test_what_stops_a_write_leaves_the_old_file_and_no_part_of_the_new_one(
    error, seen, sentence, tmp_path, monkeypatch
):
    """The content reaches the disk (`fsync`) before the new file takes the name of the old one."""
    path = write_json(tmp_path / "t.json", {"x": 1})
    before = path.read_bytes()

    def stopped(descriptor):
        assert os.fstat(descriptor).st_size > 0
        assert path.read_bytes() == before
        raise error

    monkeypatch.setattr(os, "fsync", stopped)
    with pytest.raises(seen, match=sentence):
        write_json(path, {"x": 2})
    assert [one.name for one in tmp_path.iterdir()] == ["t.json"]
    assert path.read_bytes() == before


def test_directories_are_made_all_or_none(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write to"):
        make_directory(tmp_path / "a" / "b", tmp_path / "file" / "c")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    make_directory(tmp_path / "a" / "b", tmp_path / "a" / "c")
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"b", "c"}


def test_what_is_no_file_is_never_replaced(tmp_path, capsys):
    import os

    pipe = tmp_path / "pipe.h5"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="it exists and is not a regular file"):
        refuse_existing(pipe, overwrite=True)
    for command in (["simulate", "--steps", "2"], ["train", "--steps", "2"]):
        assert main([*command, "--out", str(pipe), "--overwrite"]) == 1
        assert "is not a regular file" in capsys.readouterr().err
    assert pipe.is_fifo()


# -- how it is said ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (
            MemoryError("Unable to allocate 72.8 TiB"),
            1,
            "there is not enough memory for an array of 72.8 TiB; use fewer or smaller runs",
        ),
        (MemoryError(), 1, "there is not enough memory; use fewer or smaller runs"),
        (
            OverflowError("Python int too large to convert to C long"),
            2,
            "a number is too large; Python int too",
        ),
        (RecursionError("maximum recursion depth exceeded"), 1, "the input is nested too deeply"),
        (OSError(36, "File name too long", "n" * 300), 1, "File name too long: nnn"),
        (PermissionError(13, "Permission denied", "t.h5"), 1, "Permission denied: t.h5"),
    ],
)
def test_what_the_machine_refuses_ends_in_a_sentence(raised, status, said, capsys, monkeypatch):
    def fails() -> int:
        raise raised

    monkeypatch.setitem(COMMANDS, "info", fails)
    assert main(["info"]) == status
    err = capsys.readouterr().err
    assert err.startswith(f"grokphys: error: {said}")
    assert len(err.splitlines()) == 1
    assert len(err) < 300


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["train", "--threshold", "train_accuracy=0.5", "quality=0.9", "train_accuracy=0.99"],
            "--threshold must give train_accuracy once, got 0.5 and 0.99",
        ),
        (
            ["phases", "--options", "hidden=4", "hidden=8"],
            "--options must give hidden once, got (4,) and (8,)",
        ),
        (["phases", "--options", "dim=" + 5000 * "1"], "dim must be a whole number of at least 1, got '111"),
    ],
)
def test_settings_are_given_once_and_can_be_read(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"grokphys: error: {said}")
    assert not list(tmp_path.iterdir())


def test_a_command_needs_no_output_to_write_to(tmp_path, monkeypatch):
    physics.simulate(physics.ParticleSystem(5), steps=2, out=tmp_path / "t.h5")
    monkeypatch.setattr("sys.stdout", None)
    assert main(["info", str(tmp_path / "t.h5")]) == 0
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])


def test_helps_are_read_in_any_locale(python):
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    code = "import sys; from grokphys.cli.main import command; sys.exit(command())"
    done = python(code, "--help", env={**os.environ, **plain})
    assert "grokphys" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulate", "--runs", "x"], "--runs must be a whole number, got 'x'; see grokphys simulate --help"),
        (["train", "--tokens", "x"], "--tokens must be a whole number, got 'x'; see grokphys train --help"),
        (["animate", "a.h5", "--fps", "x", "--out", "a.gif"], "--fps must be a number, got 'x'"),
        (["simulate", "--out", ""], "--out must not be blank or hold a zero byte, got ''"),
        (["train", "--hidden", "x"], "--hidden must be whole numbers, got 'x'; see"),
        (["train", "--learning-rate", "1", "x"], "--learning-rate must be numbers, got '1', 'x'; see"),
        (["train", "--causal", "maybe"], "--causal must be one of 'False', 'True', got 'maybe'; see"),
        (
            ["train", "--activation", "wrong"],
            "--activation must be one of 'abs', 'asinh', 'quadratic', 'relu', 'silu', 'tanh', got 'wrong'",
        ),
        (["train", "--hidden", "9" * 5000], f"--hidden must be whole numbers, got '{'9' * 20}"),
        (
            ["simulate", "--dim", "9" * 5000],
            "--dim must be a whole number of at most 4300 digits, got one of 5000",
        ),
        (["simulate", "--seed", "-1"], "--seed must be at least 0, got -1"),
        (["phases", "--cells", "a", "b"], "--cells must be 2 values, each a whole number, got 'a', 'b'"),
        (
            ["phases", "--scales", "a", "log"],
            "--scales must be 2 values, each one of 'auto', 'linear', 'log', got 'a', 'log'",
        ),
        (["survival", "x", "--groups", "AUTO"], "--groups must be one of 'run', 'file', got 'AUTO'"),
        (
            ["train", "--kind", "regression"],
            "--kind must be left out for constant-attention, whose options are ",
        ),
        (
            ["fit-ode", "example:ding", "--first", "9", "--last", "9"],
            "--last must be greater than 9, the value of --",
        ),
        (["info", "a\0b"], "an argument must not be blank or hold a zero byte, got 'a\\x00b'"),
        (["simulate", "--steps", str(10**22)], f"--steps must be at most {2**53}, got {10**22}"),
        (["train", "--steps", "2", "--record", "1" + "0" * 5000], "--record must be at most"),
        (["phases", "--cells", "1001", "1"], "--cells of learning_rate must be at most 1000, got 1001"),
        (
            ["phases", "--train-accuracy", "7"],
            "--train-accuracy must be a finite number greater than 0 and at most 1, got 7",
        ),
    ],
)
def test_wrong_words_end_in_one_sentence(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"grokphys: error: {said}")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "text", "spoken"),
    [
        ("fit-ode", 'choose other steps or kind="generator"', "choose other steps or --form generator"),
        ("fit-ode", "max_iter must be at least 1, got 0", "--max-iter must be at least 1, got 0"),
        ("simulate", "tokens must be at least 3, got 2", "--tokens must be at least 3, got 2"),
        ("simulate", "a.h5 exists; pass overwrite (--overwrite)", "a.h5 exists; pass --overwrite"),
        ("simulate", "cannot write /tmp/step_size/a.h5", "cannot write /tmp/step_size/a.h5"),
        ("phases", "x names 'batch_size', got batch_size=3", "x names 'batch_size', got batch_size=3"),
        ("train", "use batches (batch_size) or the CPU", "use batches (--batch-size) or the CPU"),
        ("train", "stop 'thresholds' (--stop-at-thresholds) needs thresholds (--threshold), got none",
         "--stop-at-thresholds needs --threshold, got none"),
        ("info", "files must name at least one file", "files must name at least one file"),
    ],
)  # fmt: skip
def test_messages_name_what_can_be_typed(command, text, spoken):
    assert in_options(text, command, COMMANDS[command]) == spoken


def test_the_sentence_of_an_error_names_its_file():
    assert sentence(OSError(36, "File name too long", "t.h5")) == "File name too long: t.h5"
    assert sentence(FileNotFoundError("there is no file t.h5")) == "there is no file t.h5"


# -- bars ----------------------------------------------------------------------------------------------------


class Terminal:
    """A stream that says that it is a terminal, and keeps what is written."""

    encoding = "utf-8"

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return True


def test_bars_are_shown_on_a_terminal_and_lines_stay_whole(monkeypatch, capsys):
    from grokphys.progress import progress, stages

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    for number in progress((1, 2), "count", "thing"):
        print(f"line {number}")
    with stages("work", "first", "second") as begin:
        begin()
        begin()
    assert "count:" in terminal.text
    assert "second" in terminal.text
    assert capsys.readouterr().out.splitlines() == ["line 1", "line 2"]


def test_files_are_read_under_a_bar(signals, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert len(list(read_each([str(signals)], lambda one: one.runs, []))) == 1
    assert "read:" in terminal.text


def test_no_bar_where_stderr_is_no_terminal(capsys):
    from grokphys.progress import progress

    assert list(progress((1, 2), "count", "thing")) == [1, 2]
    assert capsys.readouterr().err == ""


def test_a_diagram_that_is_refused_leaves_no_directory(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["phases", "--steps", "2", "--seed", "-1"]) == 2
    assert "--seed must be at least 0, got -1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_arguments_the_command_shows_what_to_try_first(capsys):
    assert main([]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  grokphys")]
    assert [words[1] for words in shown] == ["demo", "explore", "simulate", "reproduce"]
    for words in shown:
        parsed(words[1:], COMMANDS, description="", warn=pytest.fail)


def test_the_help_is_whole_sentences_with_an_example_that_works(table):
    for command in COMMANDS.keys() - {"explore"}:
        doc = inspect.getdoc(COMMANDS[command]).partition("Args:")[0]
        (example,) = [line for line in doc.splitlines() if line.startswith("Example: ")]
        words = shlex.split(example.removeprefix("Example: "))
        assert words[:2] == ["grokphys", command]
        parsed(words[1:], COMMANDS, description="", warn=pytest.fail)
        for name, (_, words) in table[command].items():
            text = words.partition("(default")[0].partition("(required")[0].strip()
            assert text[0].isupper(), f"{command} {name}: {text}"
            assert text.endswith((".", "?")), f"{command} {name}: {text}"
