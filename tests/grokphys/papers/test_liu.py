import csv
import json

import numpy as np
import pytest
import tyro
from grokphys.papers.registry import FIGURES

from grokphys.bench.command import bench
from grokphys.cli.reproduce import reproduce
from grokphys.papers.liu import examples as liu_examples
from grokphys.papers.liu import theory as liu_theory
from physics import InputError, Operation, OutputError


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def command(function, *arguments):
    """Call a command function as the command line does."""
    return tyro.cli(function, args=list(arguments), config=(tyro.conf.OmitArgPrefixes,))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce")
    theory = (liu_theory.__name__, liu_examples.__name__)
    names = tuple(name for name, recipe in FIGURES.items() if recipe.__module__ in theory)
    assert command(reproduce, *names, "--directory", str(out), "--budget", "quick") == 0
    return out


def test_every_figure_comes_with_its_data(results):
    figures = {path.stem for path in results.glob("*.png")}
    assert figures == {"liu-4a", "liu-4c", "liu-5a", "liu-9", "liu-10", "liu-11", "liu-16", "liu-L"}
    for name in figures:
        assert any(rows_of(path) for path in results.glob(f"{name}*.csv"))
        assert (results / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_figure_4a_passes_one_half_at_the_published_fraction(results):
    (fit,) = rows_of(results / "liu-4a-fit.csv")
    assert 0.39 < float(fit["low"]) < float(fit["r_c"]) < float(fit["high"]) < 0.43
    curve = rows_of(results / "liu-4a.csv")
    assert len(curve) == 55
    assert float(curve[9]["probability"]) == 0
    assert float(curve[54]["probability"]) == 1


def test_figure_4c_ends_on_the_line(results):
    last = rows_of(results / "liu-4c.csv")[-1]
    E = np.array([float(last[f"E_{k}"]) for k in range(10)])
    np.testing.assert_allclose(np.diff(E), np.diff(E).mean(), rtol=0.03)
    assert float(last["rqi_delta_0.1"]) == 1


def test_figure_5_rates_vanish_below_and_rise_above(results):
    mean = [float(row["mean"]) for row in rows_of(results / "liu-5a.csv")]
    assert not any(mean[:14])
    assert mean[54] == pytest.approx(0.6 / 7)
    assert mean[54] > mean[44] > mean[34] > mean[24] > 0


def test_figures_9_and_11_are_those_of_the_paper(results):
    freedom = [
        {row["stage"]: row["n_0"] for row in rows_of(results / "liu-9.csv")}[f"D_1 to D_{k}"]
        for k in (4, 6, 8)
    ]
    assert freedom == ["4", "3", "2"]
    table = {
        row["equations"]: (row["degrees_of_freedom"], row["implied"])
        for row in rows_of(results / "liu-11.csv")
    }
    assert len(table) == 8
    assert table["none"] == ("4", "none")
    assert {table[name][0] for name in ("A1", "A2", "A3")} == {"3"}
    for two in ("A1 A2", "A1 A3", "A2 A3", "A1 A2 A3"):
        assert table[two] == ("2", "A1 A2 A3")


def test_figure_10_bounds_hold_but_for_coincidences(results):
    rows = rows_of(results / "liu-10.csv")
    above = [float(row["rqi"]) - float(row["rqi_bound"]) for row in rows]
    assert np.mean(np.array(above) > 0) < 0.1
    assert max(above) < 0.1
    assert any(a < -0.5 for a in above)


def test_figure_16_every_link_of_the_chain_is_needed(results):
    for name, links in (("C_7", 2), ("S_3", 3)):
        chains = [row for row in rows_of(results / "liu-16-chains.csv") if row["operation"] == name]
        assert [row["follows"] for row in chains] == ["True"] + ["False"] * links


def test_appendix_l_limit_is_of_first_order(results):
    limits = rows_of(results / "liu-L-limit.csv")
    ratio, distance = (np.log([float(row[k]) for row in limits]) for k in ("rate_ratio", "largest_distance"))
    assert abs(np.polyfit(ratio[-4:], distance[-4:], 1)[0] - 1) < 0.1
    for row in rows_of(results / "liu-L-energy.csv"):
        if float(row["time"]) == 0 or float(row["rate_ratio"]) < 0.01:
            assert float(row["internal_energy"]) == pytest.approx(float(row["effective"]), rel=0.03)


def test_drawings_take_axes_and_make_their_own():
    rows, fit = liu_theory.unique_probability(Operation(6), 50)
    ax = liu_theory.show_probability(rows, fit)
    assert ax.get_xlabel() == "training data fraction"
    assert liu_theory.show_probability(rows, fit, ax) is ax


@pytest.mark.slow
def test_critical_fraction_to_three_digits():
    _, fit = liu_theory.unique_probability(Operation(10), 10_000)
    assert fit.critical.covers(0.4085)
    assert fit.critical.high - fit.critical.low < 0.005


def test_bench_compares_results_before_it_states_a_ratio(tmp_path, capsys):
    assert command(bench, "theory", "--directory", str(tmp_path), "--budget", "quick") == 0
    rows = json.loads((tmp_path / "theory.json").read_text())["rows"]
    measured = {row["what"]: row for row in rows}
    assert measured["closure, p = 10, at the transition, 10000 sets"]["reference_s"] > 0
    assert next(row for row in rows if "error" in row)["error"] < 1e-9
    assert "closure, p = 10" in capsys.readouterr().out


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match=r"names must be one of .*'liu-4a', .*, got 'liu-99'"):
        reproduce(("liu-99",), directory=tmp_path)
    with pytest.raises(InputError, match="budget must be one of 'quick', 'default', 'paper', got 'huge'"):
        reproduce(("liu-9",), directory=tmp_path, budget="huge")
    with pytest.raises(InputError, match="names must be one of 'theory', .*'gpu', got 'nothing'"):
        bench(("nothing",), directory=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write to"):
        reproduce(("liu-9",), directory=tmp_path / "file" / "below")
    with pytest.raises(OutputError, match="cannot write"):
        bench(("theory",), directory=tmp_path / "file" / "below", budget="quick")
