"""Reports as people read them: numbers without exponents and infinities, terms explained, nothing cut."""

import math
import re

import numpy as np
import pytest
from trajectories import circles

import analysis
import physics
from analysis import Recipe
from analysis import fit_batch as fit
from analysis.comparison.timing import Onsets
from analysis.stats.intervals import Interval
from grokphys.report import laws
from grokphys.report.page import Section, Table, write_report
from grokphys.report.wording import TERMS, explained, median_time, p_value, rounded, significant


def test_an_open_interval_is_said_in_words():
    assert significant(Interval(1.12, 0.11, math.inf, 5)) == "1.12 (at least 0.11)"
    assert significant(Interval(1.12, 0.0, 3.0, 5)) == "1.12 (at most 3)"
    assert significant(Interval(1.12, 0.0, math.inf, 5)) == "1.12"
    assert significant(Interval(1.12, math.nan, math.nan, 1)) == "1.12"
    assert significant(Interval(math.nan, math.nan, math.nan, 0)) == "-"
    few = Onsets(np.array([20.0, 20.0, 20.0, 50.0, 90.0, 90.0, 90.0]), np.arange(7) < 3)
    assert median_time(few) == "reached by fewer than half, after 20 at the earliest; those that do, at 20"
    assert median_time(Onsets(few.times, few.reached & False)) == "reached by fewer than half"
    assert (p_value(1e-5), p_value(0.034), p_value(1.0)) == ("< 0.001", "0.034", "> 0.99")


def test_terms_are_explained_where_they_stand_and_text_stays_text():
    html = str(explained("R² of <Lasso> & grid imperfections"))
    assert html.count("<abbr ") == 3
    assert "&lt;" in html
    assert "<Lasso>" not in html
    assert str(explained("encircled")) == "encircled"
    assert all(words.endswith(".") for words in TERMS.values())


def test_symbols_have_subscripts_in_texts_headers_labels_and_terms(tmp_path):
    assert str(explained("constant f_a. ")).endswith("f<sub>a</sub></abbr>. ")
    assert str(explained("n_0 < 2 [1, 3]")) == "n<sub>0</sub> &lt; 2\u00a0[1,\u00a03]"
    table = Table("By f_a.", ["f_a", "n_0"], [["1", "R² 0.5 [0.1, 0.9]"]])
    path = tmp_path / "page.html"
    write_report(path, "Title", "subtitle", ["f_a is 1."], [Section("One", ["f_a"], [table])])
    page = path.read_text("utf-8")
    assert "&lt;" not in page
    assert "f_a" not in page
    assert page.count("f<sub>a</sub>") == 6, "conclusion, text, caption, header, label and list of terms"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Interval(0.58, 0.482, 0.678, 9), "0.58 [0.48, 0.68]"),
        (Interval(3.0, 2.5, 3.5, 9), "3.0 [2.5, 3.5]"),
        (Interval(0.0217, 0.0182, 0.0251, 9), "0.022 [0.018, 0.025]"),
        (Interval(2.0, 1.996, 2.004, 9), "2.00 [2.00, 2.00]"),
        (Interval(1020.4, 900.2, 1100.7, 9), "1020 [900, 1101]"),
        (Interval(0.001, -0.0001, 0.002, 9), "0.0010 [-0.0001, 0.0020]"),
        (Interval(0.001, math.nan, math.nan, 1), "0.001 (no interval)"),
        (Interval(5.0, 5.0, 5.0, 9), "5.00 [5.00, 5.00]"),
        (Interval(4.56e8, 1e8, 9e8, 9), "4.56 × 10⁸ [1 × 10⁸, 9 × 10⁸]"),
        (Interval(math.inf, 1.0, math.inf, 9), "-"),
    ],
)
def test_digits_follow_the_width_of_the_interval(value, text):
    assert rounded(value) == text


def test_a_page_opens_with_its_conclusion_and_names_every_cell(tmp_path):
    table = Table("Scores of one fit.", ["fit", "R²"], [["Lasso", "0.76"]])
    path = tmp_path / "page.html"
    write_report(path, "Title", "subtitle", ["What was found."], [Section("One", ["Text."], [table])])
    page = path.read_text("utf-8")
    assert page.index("What was found.") < page.index("Text.") < page.index("<table")
    assert page.count("<td") == page.count('<span class="label"') == 2, (
        "narrow pages show the header beside each cell"
    )
    assert re.search(r"<dt>R²</dt>", page)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert "http" not in page


def test_what_files_are_called_is_text_on_a_page(tmp_path):
    words = [f"<script>{n}</script> & <b>" for n in range(6)]
    table = Table(words[0], [words[1]], [[words[2]]])
    path = tmp_path / "page.html"
    write_report(path, words[3], words[4], [words[5]], [Section(words[0], [words[1]], [table])])
    page = path.read_text("utf-8")
    assert "<script>" not in page
    assert "<b>" not in page
    assert all(page.count(f"&lt;script&gt;{n}&lt;/script&gt; &amp; &lt;b&gt;") >= 1 for n in range(6))


def test_a_comparison_writes_its_report(tmp_path):
    compared = analysis.compare(*np.random.default_rng(0).normal(size=(2, 5, 3, 7, 2)))
    compared.to_html(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text("utf-8")
    assert str(compared.distributions["effective_dimension"].first) in page.replace("\u00a0", " ")
    with pytest.raises(physics.OutputError):
        compared.to_html(tmp_path / "c.html")


def test_a_row_of_a_fit_has_the_scores_of_its_run():
    rng = np.random.default_rng(0)
    runs = [
        ({"run": k}, circles(np.arange(8), rng.uniform(1, 2, (8, 2)), np.arange(2) == k)) for k in range(3)
    ]
    recipe = Recipe(alpha=0.001)
    scores = fit([run.signals for _, run in runs], recipe)
    rows = laws.rows(runs, scores, recipe)
    for k, ((_, run), row) in enumerate(zip(runs, rows, strict=True)):
        own = scores.law.score(run.signals)
        assert (row["run"], row["survivors"], row["last_step"]) == (k, str(k + 1) * (k < 2), 7)
        assert (row["in_sample_rollout"], row["in_sample_derivative"]) == (own.rollout, own.derivative)
        assert row["across_runs_relative_error"] == scores.across[k].relative_error
    assert len({row["across_runs_relative_error"] for row in rows}) == 3
