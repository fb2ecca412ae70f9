import csv

import numpy as np
import pytest
import tyro

from grokphys.cli.reproduce import reproduce
from grokphys.papers.liu import transition as liu_theory
from grokphys.papers.recipe import Run
from grokphys.papers.run import recipes
from physics import (
    EffectiveTheory,
    InputError,
    Operation,
    OutputError,
    closures,
    representation_quality,
)

RECIPES = recipes()


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def command(function, *arguments):
    """Call a command function as the command line does."""
    return tyro.cli(function, args=list(arguments), config=(tyro.conf.OmitArgPrefixes,))


def tables_of(name):
    """Return the tables of a recipe at its smoke test."""
    recipe = RECIPES[name]
    return recipe.make(Run(recipe.settings["quick"], "quick")).columns()


def test_figure_4a_passes_one_half_at_the_published_fraction():
    tables = tables_of("liu-4a")
    found = liu_theory._unique(tables, 0.95)
    assert 0.39 < found.low < found.estimate < found.high < 0.43
    assert tables["sizes"]["unique"][9] == 0
    assert tables["sizes"]["unique"][54] == tables["sizes"]["sets"][54]


def test_figure_4c_takes_as_many_n_h_by_every_convention():
    flows = tables_of("liu-4c")["flows"]
    assert np.isfinite(flows["formed_over_n_h"]).all()
    np.testing.assert_allclose(flows["n_h_code"], 150)
    ratio = flows["n_h_mean"] / flows["n_h_sum"]  # the number of parallelograms of the training set
    np.testing.assert_allclose(ratio, ratio.round())
    assert 30 < ratio.min() < ratio.max() < 70


def test_figure_5_rates_vanish_below_and_rise_above():
    mean = tables_of("liu-5a")["sizes"]["mean"]
    assert not any(mean[:14])
    assert mean[54] == pytest.approx(0.6 / 7)
    assert mean[54] > mean[44] > mean[34] > mean[24] > 0


def test_the_sum_of_embeddings_is_conserved_only_where_it_is_zero():
    flows = tables_of("liu-F")["flows"]
    centred = flows["centred"]
    assert flows["norm_change"].max() < 1e-6
    assert flows["sum_change"][centred].max() < 1e-9
    assert flows["sum_change"][~centred].max() > 0.01


def test_figures_9_and_11_are_those_of_the_paper():
    tables = tables_of("liu-9")
    assert tables["stages"]["n_0"].tolist() == [4, 3, 2]
    assert tables["stages"]["distinct"].tolist() == [4, 6, 7]
    assert (tables["sets"]["unique"] > 0).tolist() == [False, True]  # six samples suffice, no five do
    rows = tables_of("liu-11")["subsets"]
    table = dict(
        zip(rows["equations"], zip(rows["degrees_of_freedom"], rows["implied"], strict=True), strict=True)
    )
    assert len(table) == 8
    assert table["none"] == (4, "none")
    assert {table[name][0] for name in ("A1", "A2", "A3")} == {3}
    for two in ("A1 A2", "A1 A3", "A2 A3", "A1 A2 A3"):
        assert table[two] == (2, "A1 A2 A3")


def test_stopped_flows_seldom_exceed_the_bounds():
    """Liu, Eqs. 15 to 17, on the theory's own flows, stopped at random times."""
    operation, generator = Operation(10), np.random.default_rng(10)
    above = []
    for masks in liu_theory.training_sets(operation, range(5, 55, 2), 6, 101).values():
        for mask, bound in zip(masks, closures(operation, masks).quality, strict=True):
            theory = EffectiveTheory(10, pairs=operation.samples[mask])
            E = theory.solve(theory.start(generator), [10 ** generator.uniform(0.5, 3.5)])[0]
            above.append(representation_quality(E, theory) - bound)
    assert 0 < np.mean(np.array(above) > 0) < 0.1
    assert max(above) < 0.1
    assert any(a < -0.5 for a in above)


def test_figure_16_every_link_of_the_chain_is_needed():
    chains = tables_of("liu-16")["chains"]
    for name, links in (("C_7", 2), ("S_3", 3)):
        assert chains["follows"][chains["operation"] == name].tolist() == [True] + [False] * links


def test_appendix_l_limit_is_of_first_order():
    tables = tables_of("liu-L")
    found = RECIPES["liu-L"].rules[0].measure(tables, 0.95)
    assert abs(found.estimate - 1) < 0.1
    rows = tables["energies"]
    early = (rows["time"] == 0) | (rows["rate_ratio"] < 0.01)
    np.testing.assert_allclose(rows["internal_energy"][early], rows["effective"][early], rtol=0.1)


@pytest.mark.slow
def test_critical_fraction_to_three_digits():
    tables = RECIPES["liu-4a"].make(Run(10_000, "paper")).columns()
    found = liu_theory._unique(tables, 0.95)
    assert found.covers(0.4085)
    assert found.high - found.low < 0.005


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match=r"names must be one of .*'liu-scaling', .*, got 'liu-99'"):
        reproduce(("liu-99",), directory=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write to"):
        reproduce(("liu-scaling",), directory=tmp_path / "file" / "below")
