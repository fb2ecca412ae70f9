"""What `fit-ode` and `compare` write: every number has its place, and files that do not fit are refused."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from trajectories import circles

import nets
import physics
from analysis import Recipe
from grokphys.report import comparing, laws
from grokphys.report.circles import score_table
from grokphys.report.page import Picture, Section, Table, write_report
from physics import InputError


@pytest.fixture(scope="module")
def fitted():
    """Three runs of three frequencies, a linear law of them, and its scores."""
    rng = np.random.default_rng(0)
    A, b = np.diag([-0.2, -0.1, 0.05]), np.array([0.1, 0.0, 0.02])
    runs = []
    for k in range(3):
        values = [rng.uniform(1, 2, 3)]
        for _ in range(9):
            values.append(values[-1] + A @ values[-1] + b + 0.01 * rng.normal(size=3))
        runs.append(({"file": f"f{k}", "run": k}, circles(np.arange(10, 20), values, np.arange(3) == k)))
    recipe = Recipe(penalty="lasso", alpha=0.001, l1_ratio=0.25)
    return runs, recipe, laws.fit(runs, recipe)


def test_a_row_says_which_steps_and_which_law(fitted):
    runs, recipe, scores = fitted
    for (columns, _), row in zip(runs, laws.rows(runs, scores, recipe), strict=True):
        assert {name: row[name] for name in columns} == columns
        assert (row["first_step"], row["last_step"]) == (10, 19)
        assert (row["law"], row["fit"], row["kind"]) == ("linear", recipe.label, "increment")
        assert row["survivors"] == str(columns["run"] + 1)
        assert {name.partition("in_sample_")[2] for name in row if name.startswith("in_sample_")} == set(
            asdict(scores.in_sample)
        )


def test_the_directory_holds_the_law_its_scores_and_its_intervals(fitted, tmp_path):
    runs, recipe, scores = fitted
    for stale in laws.FILES:
        (tmp_path / stale).write_text("of an earlier fit")
    (tmp_path / "mine.txt").write_text("not ours")
    laws.write(tmp_path, runs, scores, recipe, {"first": 10, "last": 19})
    assert {path.name for path in tmp_path.iterdir()} == {
        "coefficients.csv", "interactions.csv", "scores.json", "coefficients.png", "rollout.png", "mine.txt"
    }  # fmt: skip
    content = json.loads((tmp_path / "scores.json").read_text())
    expected = {
        "law": "linear", "penalty": "lasso", "alpha": 0.001, "l1_ratio": 0.25, "kind": "increment",
        "first": 10, "last": 19, "runs": 3, "r2_in_sample": scores.law.r2_in_sample,
        "r2_rollout": scores.law.r2_rollout,
        "alphas": scores.law.alpha.tolist(), "converged": scores.law.converged.tolist(),
    }  # fmt: skip
    assert {name: content[name] for name in expected} == expected
    assert content["in_sample"]["rollout"] == scores.in_sample.rollout
    assert content["forward"]["rollout"] == scores.forward.rollout
    assert [one["rollout"] for one in content["across_runs"]] == [one.rollout for one in scores.across]
    assert (tmp_path / "coefficients.csv").read_text().count("\n") == len(scores.law.table()) + 1


def test_an_interval_belongs_to_one_coefficient(fitted):
    runs, recipe, scores = fitted
    rows = laws.interval_rows(runs, scores.law, recipe, 4)
    found = recipe.resample([run.signals for _, run in runs], 4)
    assert [(row["frequency"], row["of"]) for row in rows] == [(i, j) for i in (1, 2, 3) for j in (1, 2, 3)]
    for row in rows:
        i, j = row["frequency"] - 1, row["of"] - 1
        assert row["coefficient"] == scores.law.A[i, j]
        assert (row["low"], row["high"]) == (found.A_low[i, j], found.A_high[i, j])
        assert (row["inclusion"], row["drawn"]) == (found.inclusion[i, j], found.unit)


def test_a_summary_remarks_what_the_scores_hide(fitted):
    runs, recipe, scores = fitted
    assert "diverge" not in laws.summary(scores, recipe, "w")
    assert "All coefficients are 0" not in laws.summary(scores, recipe, "w")
    with pytest.warns(UserWarning, match="leaves no coefficient"):
        nothing = laws.fit(runs, Recipe(alpha=1e9))
    assert "All coefficients are 0" in laws.summary(nothing, recipe, "w")
    for reached, said in ((1.0, None), (0.25, "they reach 25 % of the frames")):
        part = SimpleNamespace(
            law=scores.law, forward=None, across=(), median=lambda _: math.nan, mean=lambda _: math.nan,
            in_sample=SimpleNamespace(reached=reached, derivative=0.5, rollout=0.5),
        )  # fmt: skip
        text = laws.summary(part, recipe, "w")
        assert (said in text) if said else ("diverge" not in text)


def test_a_table_counts_the_coefficients_and_the_fits_of_a_linear_law(fitted):
    _, recipe, scores = fitted
    law = replace(
        scores.law, A=np.array([[0.0, 1, 0], [2, 0, 0], [0, 0, 3]]), converged=np.array([True, False, True])
    )
    table = score_table({recipe.label: replace(scores, law=law)}, "w")
    assert table.header[-2:] == ["nonzero coefficients", "converged fits"]
    assert table.rows[0][-2:] == ["3 of 9", "2 of 3"]


def test_signals_of_several_files_agree_in_their_tokens_and_are_finite(tmp_path):
    for tokens in (5, 7):
        E = np.random.default_rng(0).normal(size=(2, 6, tokens, 2))
        physics.Trajectory(E, np.arange(6) * 2, parameters={"program": "x"}).save(tmp_path / f"p{tokens}.h5")
    runs = laws.read_signals([str(tmp_path / "p5.h5")], 2, 8, [])
    assert [columns["run"] for columns, _ in runs] == [0, 1]
    assert runs[0][1].step.values.tolist() == [2, 4, 6, 8]
    with pytest.raises(
        InputError, match=r"files must agree in the number of tokens p, got p = 5 \(.*p5\.h5\), p = 7"
    ):
        laws.read_signals([str(tmp_path / "*.h5")], 0, 10, [])


# -- compare ------------------------------------------------------------------------------------------------


def of(*programs):
    return [SimpleNamespace(parameters={"program": one} if one else {}) for one in programs]


def test_accuracies_are_predicted_only_of_networks_that_add_pairs_in_few_dimensions():
    names = ("train_accuracy", "validation_accuracy")
    small = nets.train(nets.ConstantAttention(5, hidden=4), runs=2, steps=5)
    predicted, measured = comparing.predicted_and_measured([small, small], 0.01)
    assert len(predicted) == len(measured) == 4
    right = nets.networks(nets.train(nets.ConstantAttention(5, hidden=4), runs=2, steps=5,
                                     observables=(*names, "layers")))  # fmt: skip
    answers = right.outputs().argmax(axis=-1) == right.model.task.labels
    np.testing.assert_allclose(measured[:2], answers.mean(axis=1))
    wide = nets.train(nets.ConstantAttention(5, dim=5, hidden=4), steps=2)
    bare = nets.train(nets.ConstantAttention(5, hidden=4), steps=2, observables=names[:1])
    group = nets.train(nets.GroupDecoder(hidden=(4,)), steps=2)
    particles = physics.simulate(physics.ParticleSystem(5), steps=2)
    for other in (wide, bare, group, particles):
        assert comparing.predicted_and_measured([small, other], 0.01) is None


# -- pages --------------------------------------------------------------------------------------------------


def test_a_table_is_aligned_and_its_caption_wrapped():
    table = Table("One. " * 30, ["name", "x"], [["a", "10.5"], ["long name", "1"]])
    lines = table.text().splitlines()
    assert max(map(len, lines[:2])) <= 110
    assert lines[2:] == ["name          x", "---------------", "a          10.5", "long name     1"]


def test_a_page_has_its_sections_in_order_and_explains_terms_of_all_of_them(tmp_path):
    from matplotlib.figure import Figure

    picture = Picture("Shows RQI.", Figure((4.0, 2.0)))
    assert picture.width == 23.6
    section = Section("T", ["R² is good."], [Table("On Lasso.", ["circles"], [["disparity"]])], [picture])
    path = tmp_path / "new" / "page.html"
    write_report(path, "Title", "subtitle", ["Kaplan-Meier says so."], [section, Section("Last", ["End."])])
    page = path.read_text()
    places = [page.index(word) for word in ("Title", "subtitle", "says so", "is good", "End.")]
    assert places == sorted(places)
    for term in ("R²", "Lasso", "circles", "disparity", "RQI", "Kaplan-Meier"):
        assert f"<dt>{term}</dt>" in page, term
    assert "<dt>f_a</dt>" not in page
    assert Path(path).parent.is_dir()
