import json
from types import SimpleNamespace

import numpy as np
import pytest

from grokphys.bench import ode as bench_ode
from grokphys.bench.timing import peak_gib, seconds


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """Take every call once: the errors are tested, not the times."""
    monkeypatch.setattr(bench_ode, "best", lambda call, repeats=1: seconds(call))


@pytest.mark.slow  # tests/analysis/test_ode.py holds the laws against their solutions
def test_what_is_measured_is_right_before_it_is_fast():
    rows = [*bench_ode.solution_rows(), *bench_ode.clean_rows()]
    assert all(row["met"] for row in rows)
    assert len(rows) == 4
    (row,) = bench_ode.least_squares_rows()
    assert row["ours_s"] > 0
    assert row["reference_s"] > 0


def test_variants_of_the_signals_are_as_collinear_as_the_real_ones():
    first, second = bench_ode.signal_problems(2)
    assert first[0].shape == (1000, 29)
    assert not np.allclose(first[0], second[0])
    for X, _ in (first, second):
        assert np.linalg.cond(np.cov(X.T)) > 1e4


def test_peers_that_are_missing_are_named_and_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for slow in ("lasso_rows", "analyze_rows", "clean_rows", "solution_rows", "least_squares_rows"):
        monkeypatch.setattr(bench_ode, slow, lambda _=None: [])
    noisy_rows = bench_ode.noisy_rows
    monkeypatch.setattr(bench_ode, "noisy_rows", lambda _, missing: noisy_rows(1, missing))
    assert bench_ode.bench_ode(out=tmp_path / "ode.json", budget="quick") == 0
    printed = capsys.readouterr().out
    for name in ("PySINDy", "PyDMD"):
        assert f"{name} is not installed, so it is not in the table: pip install 'grokphys[bench]'" in printed
    content = json.loads((tmp_path / "ode.json").read_text())
    assert content["missing"] == ["PySINDy", "PyDMD"]
    (noisy,) = [row for row in content["rows"] if "noise" in row["what"]]
    assert noisy["error"] < 0.02
    assert not {"target", "met"} & set(noisy)  # there is nothing to hold it against


def test_the_memory_of_an_analysis_is_that_of_its_own_process(monkeypatch):
    monkeypatch.setattr(bench_ode, "best", lambda *_: 1.0)
    kept = np.ones(2**27)
    assert peak_gib() > 1
    (row,) = bench_ode.analyze_rows(1)
    assert 0.01 < row["peak_gib"] < 1, kept.size
    assert row["target"].endswith(f"({row['peak_gib']:.2f} GiB)")


def test_memory_is_counted_in_bytes_where_there_is_no_status(monkeypatch):
    def missing(*_):
        raise FileNotFoundError

    monkeypatch.setattr("pathlib.Path.read_text", missing)
    monkeypatch.setattr("resource.getrusage", lambda _: SimpleNamespace(ru_maxrss=3 * 2**30))
    assert peak_gib() == 3
