import json

import numpy as np
import pytest

from experiments.bench_particles import bench_particles
from experiments.musat_particles import map_musat_particles, reproduce_musat_table2
from physics import InputError


def test_the_bench_compares_and_stores(tmp_path, capsys):
    path = tmp_path / "bench.json"
    assert bench_particles((5, 9), runs=3, steps=2, rounds=2, largest=120, out=path) == 0
    result = json.loads(path.read_text())
    assert {(row["tokens"], row["reference"]) for row in result["comparisons"]} == {
        (tokens, reference) for tokens in (5, 9) for reference in ("numba", "numpy", "torch")
    }
    for row in result["comparisons"]:
        assert 0 < row["ratio"]["least"] <= row["ratio"]["median"] <= row["ratio"]["most"]
    assert all(value > 0 for value in result["limits"].values())
    assert np.isfinite(result["cost"]["direct"]["exponent"])
    assert result["fresh_process"][0]["peak_memory_mib"] > 0
    assert "of all cores' dividers" in capsys.readouterr().out
    with pytest.raises(InputError, match="largest must be at least 114, got 20"):
        bench_particles(largest=20)


def test_the_particle_reproductions_print_and_report(tmp_path, capsys):
    assert reproduce_musat_table2(20, out=tmp_path / "table") == 0
    assert map_musat_particles(5, alignments=(0.5, 2.0), step_sizes=(0.02, 0.04), out=tmp_path / "map") == 0
    printed = capsys.readouterr().out
    assert "circles %, here" in printed
    assert "0.04" in printed
    for name in ("table", "map"):
        assert (tmp_path / name / "report.html").stat().st_size > 10_000
    with pytest.raises(InputError, match="runs must be at least 2, got 1"):
        reproduce_musat_table2(1, out=tmp_path / "table")
