"""Each command from end to end: what it prints, and the numbers in the files that it writes."""

import csv
import json
import os
import re

import numpy as np
import pytest

import analysis
import physics
from grokphys.cli.main import main
from physics.examples import example_path

REAL = str(example_path("ding"))
PRODUCT = physics.theory.direct_product(physics.cyclic(2), physics.cyclic(3))


@pytest.fixture
def grokphys(capsys):
    """Run the command line in this process; return (status, stdout, stderr)."""

    def run(*arguments):
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as stop:  # the parser's own way to end
            status = stop.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def rows_of(path):
    """Rows of a table."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def particle_files(tmp_path):
    """Two particle files."""
    for k in range(2):
        out = tmp_path / f"particles_{k}.h5"
        physics.simulate(physics.ParticleSystem(7), runs=3, steps=30, seed=k, out=out)
    return tmp_path


@pytest.fixture
def files(particle_files):
    """Two particle files and one of networks."""
    tmp_path = particle_files
    import nets

    nets.train(nets.ConstantAttention(7), runs=4, steps=60, record=20, out=tmp_path / "networks.h5")
    return tmp_path


@pytest.fixture
def undrawn(monkeypatch):
    """Let reports have empty pictures, where a test is about something else."""
    return lambda: monkeypatch.setattr("grokphys.report.page.Picture.png", "")


# -- the commands -------------------------------------------------------------------------------------------


def test_simulate_writes_what_python_would(grokphys, tmp_path):
    words = "simulate --tokens 5 --alignment 2 --runs 3 --steps 4 --seed 8 --first-run 2 --out"
    status, out, err = grokphys(*words.split(), tmp_path / "t.h5")
    assert status == 0, err
    assert re.search(r"\d of 3 runs are circles .*grid imperfections of the rest", out)
    assert f"trajectory in {tmp_path / 't.h5'}" in out
    expected = physics.simulate(
        physics.ParticleSystem(5, alignment=2.0), runs=3, steps=4, seed=8, first_run=2
    )
    found = physics.load(tmp_path / "t.h5")
    np.testing.assert_array_equal(found.positions, expected.positions)
    assert found.parameters == expected.parameters


def test_simulate_takes_the_options_of_the_system_and_observables(grokphys, tmp_path):
    status, _, err = grokphys(
        "simulate", "--tokens", 5, "--modulus", 3, "--no-normalise", "--integrator", "adaptive", "--steps", 2,
        "--observables", "potential", "circle_ratio", "--out", tmp_path / "t.h5",
    )  # fmt: skip
    assert status == 0, err
    system = physics.ParticleSystem(5, modulus=3, normalise=False, integrator="adaptive")
    expected = physics.simulate(system, steps=2, observables=("potential", "circle_ratio"))
    found = physics.load(tmp_path / "t.h5")
    assert found.parameters == expected.parameters
    np.testing.assert_array_equal(found.observables["potential"], expected.observables["potential"])
    assert grokphys("simulate", "--group", "None")[0] == 2  # nothing on a command line spells a group


def test_train_writes_what_python_would(grokphys, tmp_path):
    import nets

    status, out, err = grokphys(
        "train", "--tokens", 5, "--runs", 2, "--steps", 6, "--record", "0,3", "--weight-decay", 0.5, "--out",
        tmp_path / "t.h5",
    )  # fmt: skip
    assert status == 0, err
    assert "validation accuracy" in out
    expected = nets.train(nets.ConstantAttention(5), runs=2, steps=6, record="0,3", weight_decay=0.5)
    np.testing.assert_array_equal(physics.load(tmp_path / "t.h5").positions, expected.positions)


@pytest.mark.parametrize(
    ("system", "rule", "classes"),
    [
        (physics.ParticleSystem(7), {"modulus": 7}, "i + j mod 7"),
        (physics.ParticleSystem(7, modulus=3), {"modulus": 3}, "i + j mod 3"),
        (physics.ParticleSystem(6, group=PRODUCT), {"group": PRODUCT}, f"products in {PRODUCT.name}"),
        (physics.EffectiveTheory(9, 2), {"modulus": 17}, "i + j"),
        (physics.EffectiveTheory(6, 2, modulus=4), {"modulus": 4}, "i + j mod 4"),
    ],
)
def test_structures_are_counted_by_the_classes_that_the_file_records(
    grokphys, tmp_path, system, rule, classes
):
    made = physics.simulate(system, runs=6, steps=5, out=tmp_path / "t.h5")
    expected = physics.grid_imperfections(made.final, **rule)
    assert (expected != physics.grid_imperfections(made.final)).any() == (classes != "i + j mod 7")
    _, out, _ = grokphys("analyze", tmp_path / "t.h5", "--table", tmp_path / "table.csv")
    assert f"(classes {classes})" in out
    rows = rows_of(tmp_path / "table.csv")
    assert [int(row["grid_imperfections"]) for row in rows] == expected.tolist()
    rest = analysis.mean(expected[~physics.is_circle(made.final)]).format()
    assert f"grid imperfections of the rest {rest}" in out


def test_where_no_operation_is_recorded_the_classes_are_said(grokphys, tmp_path):
    E = np.random.default_rng(0).standard_normal((3, 1, 7, 2))
    physics.Trajectory(E, [0]).save(tmp_path / "t.h5")
    assert "(classes i + j mod 7; the file names no operation)" in grokphys("analyze", tmp_path / "t.h5")[1]
    physics.simulate(physics.AffineFlow(-np.eye(3), np.ones(3)), steps=2, out=tmp_path / "flow.h5")
    assert "frequencies survive" in grokphys("analyze", tmp_path / "flow.h5")[1], "nothing learns pair sums"


def test_without_out_nothing_is_stored(grokphys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "not stored; give --out FILE" in grokphys("simulate", "--tokens", 5, "--steps", 2)[1]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def hostile(tmp_path):
    """A file whose name is not UTF-8, and whose texts would color a terminal and forge a line."""
    path = tmp_path / os.fsdecode(b"\xff.h5")
    text = "\x1b[31mred\nforged: yes\x9b2J"
    trajectory = physics.Trajectory(
        np.random.default_rng(0).normal(size=(2, 2, 4, 2)),
        [0, 1],
        observables={text: np.zeros((2, 2))},
        parameters={
            "program": text,
            text: text,
            "group": {"table": np.bitwise_xor.outer(range(4), range(4)).tolist(), "name": text},
        },
    )
    trajectory.save(path)
    return path


def test_texts_of_files_do_not_act_on_the_terminal(grokphys, hostile, tmp_path):
    status, out, err = grokphys("info", hostile)
    assert (status, err) == (0, "")
    assert out.startswith(f"{tmp_path}/\\udcff.h5\n")
    assert r"\x1b[31mred\nforged: yes\x9b2J, 2 frames" in out
    assert "\nforged" not in out
    assert out.replace("\n", "").isprintable()
    status, out, err = grokphys("analyze", hostile)
    assert (status, err) == (0, "")
    assert r"(classes products in \x1b[31mred\nforged: yes\x9b2J)" in out
    assert out.replace("\n", "").isprintable()
    status, _, err = grokphys("analyze", hostile.with_name("none\x1b.h5"))
    assert status == 1
    assert r"none\x1b.h5" in err


def test_a_table_names_a_file_whose_name_is_not_text(grokphys, tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.h5")
    physics.Trajectory(np.random.default_rng(0).normal(size=(2, 2, 5, 2)), [0, 1]).save(path)
    status, out, err = grokphys("analyze", path, "--table", tmp_path / "a.csv")
    assert (status, err) == (0, "")
    assert out.startswith(f"{tmp_path}/\\udcff.h5: 0 of 2 runs are circles")
    assert (tmp_path / "a.csv").read_text().splitlines()[1].startswith(f"{tmp_path}/\\udcff.h5,0,")


def test_info_says_what_a_file_holds_and_how_it_was_made(grokphys, files):
    status, out, _ = grokphys("info", files / "networks.h5", files / "particles_0.h5")
    assert status == 0
    for line in (
        "complete     yes",
        "4 runs × 4 frames × 7 tokens × 2 dimensions, float32, steps 0 to 60",
        "observable   validation_accuracy, 4 frames",
        "made by      nets.train, grokphys 0.1.0",
        "made by      physics.simulate",
        '"type": "ParticleSystem", "tokens": 7',
    ):
        assert line in out
    assert re.search(r"weight_decay\s+1\.0", out)


def test_analyze_takes_patterns_and_writes_a_tidy_table(grokphys, files, tmp_path):
    status, out, err = grokphys("analyze", files / "*.h5", "--table", tmp_path / "table.csv")
    assert status == 0, err
    assert out.count(" runs are circles") == 3
    rows = rows_of(tmp_path / "table.csv")
    assert len(rows) == 10
    networks = [row for row in rows if row["program"] == "nets.train"]
    trajectory = physics.load(files / "networks.h5")
    for run, row in enumerate(networks):
        assert int(row["run"]) == run
        assert int(row["grid_imperfections"]) == physics.grid_imperfections(trajectory.final[run])
        assert float(row["circle_ratio"]) == pytest.approx(float(physics.circle_ratio(trajectory.final[run])))
        assert float(row["final_train_loss"]) == trajectory.observables["train_loss"][run, -1]
    assert rows[0]["final_train_loss"] != "" or rows[-1]["final_train_loss"] == ""


def test_analyze_counts_who_survives_at_the_end(grokphys, circle_files):
    table = circle_files / "table.csv"
    status, out, err = grokphys("analyze", circle_files / "c*.h5", "--table", table)
    assert status == 0, err
    assert "2.0 of 5 frequencies survive" in out
    rows = rows_of(table)
    assert [(row["survivors"], row["surviving_frequencies"]) for row in rows] == [("2", "2 4")] * 6
    assert {row["step"] for row in rows} == {"580"}
    trajectory = physics.load(circle_files / "c1.h5")
    decided = [analysis.circles.StoppingRule().first(x.step, x) for x in analysis.fourier_signals(trajectory)]
    assert [float(row["survivors_decided_at"]) for row in rows[2:4]] == decided
    dimensions = [float(row["effective_dimension"]) for row in rows[2:4]]
    assert dimensions == pytest.approx(analysis.effective_dimension(trajectory.final).tolist())


def test_tokens_in_the_order_of_a_group_have_structures_but_no_frequencies(grokphys, tmp_path):
    E = np.random.default_rng(0).normal(size=(2, 3, 6, 9))
    group = {"name": "S_3", "table": physics.symmetric(3).table.tolist()}
    physics.Trajectory(E, [0, 1, 2], parameters={"model": {"group": group}}).save(tmp_path / "g.h5")
    status, out, err = grokphys("analyze", tmp_path / "g.h5")
    assert (status, err) == (0, "")
    assert "0 of 2 runs are circles; no frequencies, because tokens are not the numbers added modulo 6" in out
    for command in ("survival", "fit-ode"):
        status, out, err = grokphys(command, tmp_path / "g.h5")
        assert status == 1
        assert "to have frequencies, got" in err


def test_tables_name_runs_by_their_numbers(grokphys, tmp_path):
    shard = tmp_path / "shard.h5"
    physics.simulate(physics.ParticleSystem(7), runs=3, first_run=5, steps=30, out=shard)
    for command in (("analyze",), ("fit-ode", "--penalty", "least-squares"), ("survival",)):
        table = tmp_path / f"{command[0]}.csv"
        status, out, err = grokphys(*command, shard, "--table", table)
        assert status == 0, err
        assert sorted({int(row["run"]) for row in rows_of(table)}) == [5, 6, 7]
    assert "Predictions are not judged" in out, "one run has all survivors"


def test_a_bad_file_is_named_and_does_not_sink_the_batch(grokphys, files, tmp_path):
    (files / "broken.h5").write_text("nothing")
    sound = physics.load(files / "particles_0.h5")
    positions = np.array(sound.positions)
    positions[0, -1] = np.nan
    physics.Trajectory(positions, sound.steps, parameters=sound.parameters).save(files / "nan.h5")
    status, out, err = grokphys("analyze", files / "*.h5", "--table", tmp_path / "table.csv")
    assert status == 1
    assert f"{files / 'broken.h5'} is not an HDF5 file" in err
    assert re.search(r"nan\.h5: .* runs are circles.*; run 0 is not finite and does not count", out)
    assert out.count(" runs are circles") == 4
    every, names = [*rows_of(tmp_path / "table.csv")], ("nan.h5", "particles_0.h5")
    rows, whole = ([row for row in every if row["file"].endswith(name)] for name in names)
    assert [row["circle"] == "" for row in rows] == [run == 0 for run in range(len(rows))]
    for name in ("run", "circle_ratio", "effective_dimension", "surviving_frequencies"):
        assert [row[name] for row in rows[1:]] == [row[name] for row in whole[1:]], "the others stay theirs"
    assert len({row["circle_ratio"] for row in whole}) == len(whole) > 2
    physics.Trajectory(positions[:1], sound.steps).save(files / "none.h5")
    status, _, err = grokphys("analyze", files / "none.h5")
    assert status == 1
    assert re.search(r"none\.h5: positions must be finite, .* 1 frames, .* step 30 of run 0", err)
    status, out, err = grokphys("info", files / "broken.h5", files / "networks.h5")
    assert status == 1
    assert "is not an HDF5 file" in err
    assert "nets.train" in out


def test_a_run_that_overflows_ends_in_a_sentence(grokphys, tmp_path):
    out = tmp_path / "t.h5"
    status, _, err = grokphys("simulate", "--step-size", "1e250", "--steps", "50", "--out", out)
    assert status == 1
    assert "the state overflowed in step 1; try a step_size below " in err
    assert err.endswith(f"; the frames up to step 0 are kept in {out}.partial\n")


def test_fit_ode_on_the_real_trajectory(grokphys, tmp_path):
    status, out, err = grokphys("fit-ode", REAL, "--directory", tmp_path / "fit", "--resamples", 20)
    assert status == 0, err
    assert "Lasso, α = 0.01" in out
    assert "29 of 29" in out
    scores = json.loads((tmp_path / "fit/scores.json").read_text())
    assert scores["r2_in_sample"] == pytest.approx(0.764, abs=0.01)
    assert all(scores["converged"])
    rows = rows_of(tmp_path / "fit/coefficients.csv")
    assert len(rows) == 29
    assert sum(float(row[f"a_{k}"]) != 0 for row in rows for k in range(1, 30)) < 250
    relations = {row["relation"] for row in rows_of(tmp_path / "fit/interactions.csv")}
    assert relations >= {"competition", "collaboration"}
    rows = rows_of(tmp_path / "fit/intervals.csv")
    assert len(rows) == 841
    assert {row["drawn"] for row in rows} == {"blocks of 32 changes"}
    assert all(float(row["low"]) <= float(row["high"]) for row in rows)
    for name in ("coefficients.png", "rollout.png"):
        assert (tmp_path / "fit" / name).read_bytes().startswith(b"\x89PNG")
    status, _, err = grokphys("fit-ode", REAL, "--directory", tmp_path / "fit")
    assert status == 1
    assert "coefficients.csv exists; choose another name or pass --overwrite" in err


def test_fit_ode_makes_one_table_of_many_files(grokphys, particle_files, tmp_path):
    (particle_files / "broken.h5").write_text("nothing")
    table = tmp_path / "fits.csv"
    status, out, err = grokphys(
        "fit-ode", particle_files / "*.h5", "--law", "mean-field", "--kind", "generator", "--last", 15,
        "--table", table,
    )  # fmt: skip
    assert status == 1
    assert f"{particle_files / 'broken.h5'} is not an HDF5 file" in err
    assert "mean field, nine terms" in out
    rows = rows_of(table)
    assert len(rows) == 6
    assert {row["file"] for row in rows} == {str(path) for path in particle_files.glob("p*.h5")}
    assert {row["parameter.system.type"] for row in rows} == {"ParticleSystem"}
    for row in rows:
        float(row["in_sample_derivative"])
        float(row["across_runs_rollout"])


@pytest.fixture
def circle_files(tmp_path):
    """Three files of two runs of p = 11, in which frequencies 2 and 4 survive."""
    rng = np.random.default_rng(0)
    steps = np.arange(0, 600, 20)
    angle = 2 * np.pi * np.arange(11)[:, None] * np.arange(1, 6) / 11
    rings = np.stack([np.cos(angle), np.sin(angle)], axis=2)  # (11, 5, 2)
    for k in range(3):
        size = np.ones((2, 30, 5)) * rng.uniform(0.5, 1.5, (2, 1, 5))
        size[..., [0, 2, 4]] *= np.exp(-steps / 50)[:, None]
        size[..., [1, 3]] = 2
        E = (size[:, :, None, :, None] * rings).reshape(2, 30, 11, 10)
        physics.Trajectory(E, steps, parameters={"weight_decay": 0.5}).save(tmp_path / f"c{k}.h5")
    return tmp_path


def test_survival_counts_circles_and_judges_what_told_so(grokphys, circle_files):
    (circle_files / "broken.h5").write_text("nothing")
    status, out, err = grokphys(
        "survival", circle_files / "*.h5", "--at", 20, "--bins", 2, "--table", circle_files / "circles.csv"
    )
    assert status == 1
    assert "broken.h5 is not an HDF5 file" in err
    assert re.search(r"11 +10 +0\.5 +6 +2\.00 \[2\.00, 2\.00\]", out)
    assert "the survivors were decided in 6 of 6 runs" in out
    assert "always predicting the more frequent outcome gives 60.0" in out
    rows = rows_of(circle_files / "circles.csv")
    assert len(rows) == 30
    assert {row["frequency"] for row in rows if row["survived"] == "True"} == {"2", "4"}
    assert {row["parameter.weight_decay"] for row in rows} == {"0.5"}
    assert all(float(row["initial_gradient"]) <= 1e-12 for row in rows)


@pytest.mark.filterwarnings("default")
def test_circles_of_runs_that_blow_up_do_not_count(grokphys, tmp_path):
    rng, angle = np.random.default_rng(0), 6 * np.pi * np.arange(11) / 11
    E = 0.1 * rng.normal(size=(4, 6, 11, 4))
    E[..., :2] += np.linspace(0.5, 3, 6)[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    E[1, 3:] = 1e57 * rng.normal(size=(3, 11, 4))
    path = tmp_path / "c.h5"
    physics.Trajectory(E, np.arange(6) * 100, parameters={"modulus": 11}).save(path)
    for command in ("survival", "fit-ode"):
        table = tmp_path / f"{command}.csv"
        status, out, err = grokphys(command, path, "--table", table)
        assert status == 0
        assert f"{path}: run 1 blew up and does not count\n" in err
        assert sorted({int(row["run"]) for row in rows_of(table)}) == [0, 2, 3]
    assert "run 1 blew up and does not count" in grokphys("analyze", path)[1]
    out = grokphys("analyze", path, "--structures", "no")[1]
    assert "3 runs, 1.0 of 5 frequencies survive; run 1 blew up and does not count" in out


def test_survival_says_what_cannot_be_told(grokphys, circle_files):
    status, out, _ = grokphys("survival", circle_files / "*.h5", "--signal-threshold", 1e6)
    assert status == 0
    assert "No circle survives, because no final signal exceeds 1e+06. Try a lower limit." in out
    physics.simulate(physics.ParticleSystem(9), steps=30, out=circle_files / "other.h5")
    status, out, _ = grokphys("survival", circle_files / "*.h5")
    assert "Runs of different sizes cannot be pooled (p = 9, d = 2, p = 11, d = 10)" in out
    status, out, _ = grokphys("survival", REAL)
    assert "Predictions are not judged, because that needs at least 2 groups of runs" in out
    physics.Trajectory(np.ones((1, 1, 5, 2)), [0]).save(circle_files / "single.h5")
    status, _, err = grokphys("survival", circle_files / "single.h5")
    assert status == 1
    assert re.search(r"single\.h5: first and last must enclose at least 2 frames, got 1", err)


def test_compare_prints_and_reports(grokphys, files, tmp_path, undrawn):
    report = tmp_path / "out" / "report.html"
    command = ("compare", files / "particles_*.h5", files / "networks.h5", "--out", report)
    status, out, err = grokphys(*command)
    assert status == 0, err
    for words in (
        "circles, %",
        "Procrustes disparity",
        "simulated, start",
        "time factor τ, time of simulated",
    ):
        assert words in out
    page = report.read_text()
    assert page.count("data:image/png;base64,") == page.count("<figcaption>") >= 5
    assert "http" not in re.sub(r"base64,[^\"]*", "", page), "a self-contained page fetches nothing"
    numbers = json.loads(report.with_suffix(".json").read_text())
    assert numbers["names"] == ["simulated", "trained"]
    assert numbers["motion"]["alignment"] == "ends"
    assert len(numbers["accuracy"]["predicted"]) == numbers["runs"][1]
    status, _, err = grokphys(*command)
    assert (status, "exists; choose another name or pass" in err) == (1, True)
    undrawn()
    assert grokphys(*command, "--overwrite", "--align", "none")[0] == 0
    assert json.loads(report.with_suffix(".json").read_text())["motion"]["alignment"] == "none"


def test_compare_holds_predictions_against_the_accuracy_on_all_pairs(grokphys, files, tmp_path, undrawn):
    import nets

    undrawn()
    trained = nets.train(
        nets.ConstantAttention(7), runs=4, steps=60, record=20, train_fraction=0.6,
        observables=("train_accuracy", "validation_accuracy", "layers"), out=tmp_path / "part.h5",
    )  # fmt: skip
    answers = nets.networks(trained).outputs().argmax(axis=-1)
    task = nets.ConstantAttention(7).task
    expected = []
    for E, chosen in zip(trained.final, nets.networks(trained).examples("train"), strict=True):
        theory = physics.EffectiveTheory(7, modulus=7, pairs=task.inputs[chosen])
        expected.append(float(physics.predicted_accuracy(E, theory, 0.3)))
    out = tmp_path / "page.html"
    status, _, err = grokphys(
        "compare", files / "particles_*.h5", tmp_path / "part.h5", "--out", out, "--delta", 0.3
    )
    assert status == 0, err
    found = json.loads(out.with_suffix(".json").read_text())["accuracy"]
    np.testing.assert_allclose(found["measured"], (answers == task.labels).mean(axis=1), rtol=1e-9)
    np.testing.assert_allclose(found["predicted"], expected, rtol=1e-9)
    assert len(set(expected)) > 1


def test_demo_does_the_whole_job(grokphys, tmp_path, undrawn):
    status, out, err = grokphys("demo", "--directory", tmp_path / "demo", "--runs", 6, "--steps", 40)
    assert status == 0, err
    report = tmp_path / "demo" / "report.html"
    assert out.splitlines()[-1] == str(report)
    page = report.read_text()
    for words in (
        "Table 2",
        "Table 1",
        "Side by side",
        "Motion",
        "A linear law for circles",
        "Table 1 of Musat: ",
        "agree with ours",
        "6 runs of each ensemble",
    ):
        assert words in page
    files = (tmp_path / "demo" / f"{name}.h5" for name in ("particles_from_networks", "networks_wd1"))
    paired, networks = map(physics.load, files)
    assert np.array_equal(paired.initial, networks.initial)
    both = physics.is_circle, lambda E: analysis.effective_dimension(E) < 1.05
    circles, lines = ([int(found(one.final).sum()) for one in (paired, networks)] for found in both)
    assert f"{circles[0]} of 6 particle runs and {circles[1]} of 6 networks end in a circle" in page
    assert f"{lines[0]} particle runs and {lines[1]} networks collapse onto a line" in page
    assert page.count("<img ") == page.count('alt="') == 10
    assert page.index('class="conclusion"') < page.index("<img ") < page.index("<table")
    for name in ("particles_fa0.5", "particles_fa1", "particles_fa2", "networks_wd1"):
        assert physics.load(tmp_path / "demo" / f"{name}.h5").runs == 6
    undrawn()
    again = ("demo", "--directory", tmp_path / "demo", "--runs", 3, "--steps", 10)
    status, _, err = grokphys(*again)
    assert (status, "report.html exists; choose another name or pass --overwrite" in err) == (1, True)
    assert physics.load(tmp_path / "demo" / "particles_fa1.h5").runs == 6
    assert grokphys(*again, "--overwrite")[0] == 0, "it can be run again"
    assert physics.load(tmp_path / "demo" / "particles_fa1.h5").runs == 3


# -- what goes wrong ----------------------------------------------------------------------------------------


def test_an_existing_output_is_replaced_on_request(grokphys, tmp_path):
    path = tmp_path / "kept.h5"
    path.write_text("precious")
    words = ("simulate", "--tokens", 5, "--out", path)
    assert grokphys(*words)[0] == 1
    assert path.read_text() == "precious"
    assert grokphys(*words, "--overwrite")[0] == 0
    assert physics.load(path).tokens == 5


def test_token_counts_that_differ(grokphys, files):
    out = files / "other_sizes.html"
    status, printed, err = grokphys("compare", files / "particles_0.h5", REAL, "--out", out)
    assert (status, err) == (0, "")
    said = "Note: 7 and 59 tokens: shapes and motion are not compared, and times are left as they are."
    assert said in printed
    page = out.read_text()
    assert "Side by side" in page
    assert "Final shapes" not in page
    assert json.loads(out.with_suffix(".json").read_text())["motion"] is None
    words = ("compare", files / "particles_0.h5", REAL, "--out", out, "--align", "ends", "--overwrite")
    status, _, err = grokphys(*words)
    assert (status, "--align must be left out for ensembles of 7 and 59 tokens" in err) == (2, True)


@pytest.mark.filterwarnings("default")
def test_warnings_are_sentences(grokphys):
    status, out, err = grokphys("train", "--tokens", 5, "--steps", 30, "--learning-rate", 1e30)
    assert status == 1
    assert "1 of 1 runs diverged" in out
    assert "grokphys: warning: 1 of 1 runs diverged" in err
