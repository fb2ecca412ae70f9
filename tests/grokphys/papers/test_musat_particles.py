import csv

import numpy as np
import pytest
from pictures import shows_something

import physics
from grokphys.bench import particles as bench_particles
from grokphys.bench.timing import spread
from grokphys.papers.musat import particles as musat_particles


def test_a_spread_is_median_least_and_most():
    assert spread([3.0, 9.0, 1.0, 4.0]) == {"median": 3.5, "least": 1.0, "most": 9.0}


def test_the_bench_compares():
    parts = bench_particles.parts((5, 9), runs=3, steps=2, rounds=2, sizes=(30, 60))
    result = {name: part() for name, part in parts.items()}
    assert {(row["tokens"], row["reference"]) for row in result["comparisons"]} == {
        (tokens, reference) for tokens in (5, 9) for reference in ("numba", "numpy", "torch")
    }
    for row in result["comparisons"]:
        assert row["ratio"]["least"] > 0
    assert all(value > 0 for value in result["limits"].values())
    assert [row["tokens"] for row in result["cost"]["rows"]] == [30, 60]
    assert all(row["relative_error"] <= 1e-6 for row in result["cost"]["rows"])
    assert np.isfinite(list(result["cost"]["exponents"].values())).all()
    assert all(table.text() for table in bench_particles._tables(result))
    assert result["fresh_process"][0]["peak_memory_mib"] > 0


def test_the_particle_reproductions_write_data_and_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(musat_particles, "RUNS", {"quick": 20})
    monkeypatch.setattr(musat_particles, "ALIGNMENTS", (0.5, 2.0))
    monkeypatch.setattr(musat_particles, "STEP_SIZES", (0.02, 0.04))
    for recipe, rows in ((musat_particles.table_2, 3), (musat_particles.phase_map, 4)):
        data, figure, *numbers = recipe(tmp_path, "quick")
        with data.open(encoding="utf-8") as file:
            found = list(csv.DictReader(file))
        assert len(found) == rows
        assert "circles %" in found[0] or "circles %, here" in found[0]
        assert shows_something(figure)
        if recipe is musat_particles.table_2:
            with numbers[0].open(encoding="utf-8") as file:
                table = {(float(row["f_a"]), row["quantity"]): row for row in csv.DictReader(file)}
            for alignment in (0.5, 1.0, 2.0):
                final = physics.simulate(physics.ParticleSystem(alignment=alignment), runs=20).final
                circle = physics.is_circle(final)
                rest = physics.grid_imperfections(final)[~circle]
                for name, value, count in (
                    ("circles", circle.mean(), 20),
                    ("grid imperfections", rest.mean(), len(rest)),
                ):
                    assert float(table[alignment, name]["here"]) == pytest.approx(value)
                    assert int(table[alignment, name]["count"]) == count
        else:
            for row in found:
                step_size = float(row["step size"])
                system = physics.ParticleSystem(alignment=float(row["f_a"]))
                steps = round(100 * 0.02 / step_size)
                final = physics.simulate(system, runs=4, steps=steps, step_size=step_size).final
                circle = physics.is_circle(final)
                assert row["circles %"].startswith(f"{100 * circle.mean():.1f} [")
                if not circle.all():
                    rest = physics.grid_imperfections(final)[~circle]
                    assert row["imperfections"].startswith(f"{rest.mean():.1f}")
    assert "20 runs each here" in capsys.readouterr().out
