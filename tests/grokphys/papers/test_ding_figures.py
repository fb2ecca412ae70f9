import csv

import numpy as np
import pytest

from grokphys.papers.ding import figures as ding_figures


def table(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_fourier_planes_hold_circles_and_principal_components_mix_them(tmp_path):
    found, picture = ding_figures.components(tmp_path, "quick")
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = table(found)
    fourier = [row for row in rows if row["basis"] == "Fourier"]
    assert {int(row["frequency"]) for row in fourier} == {7, 8, 11, 13, 25}
    assert all(float(row["share_at_frequency"]) > 0.99 for row in fourier)
    assert all(int(row["frequency"]) * int(row["delta"]) % 59 in (1, 58) for row in rows)
    mixed = [float(row["share_at_frequency"]) for row in rows if row["basis"] != "Fourier"]
    assert min(mixed) < 0.6


def test_circularity_of_random_embeddings_grows_with_their_dimension(tmp_path):
    found, _ = ding_figures.initial_circularity(tmp_path, "quick")
    for row in table(found):
        d = int(row["d"])
        if row["over frequencies"] == "mean":
            assert float(row["circularity"]) == pytest.approx(d / (d + 57), abs=0.02)
        else:
            assert float(row["circularity"]) > d / (d + 57)


def test_signals_and_all_trajectories(tmp_path):
    found, _ = ding_figures.signals(tmp_path, "quick")
    rows = table(found)
    assert (int(rows[0]["step"]), int(rows[-1]["step"])) == (0, 4000)
    final = np.array([float(rows[-1][f"signal_{k}"]) for k in range(1, 30)])
    assert (1 + np.flatnonzero(final > 2 * final.mean())).tolist() == [7, 8, 11, 13, 25]
    found, _ = ding_figures.all_trajectories(tmp_path, "quick")
    errors = {
        name: [float(r["rms_error"]) for r in table(found) if r["fit"] == name] for name in ding_figures.FITS
    }
    assert max(errors["least squares"]) < 0.1 < max(errors["Lasso, α = 0.01"]) < 5


def test_the_linear_ode_flatters_in_sample(tmp_path):
    found, _ = ding_figures.equations(tmp_path, "quick")
    for row in table(found):
        assert float(row["changes"]) > 0.7 if row["scored"] == "in sample" else float(row["changes"]) < -100
