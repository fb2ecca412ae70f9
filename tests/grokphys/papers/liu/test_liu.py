import itertools

import numpy as np
import pytest

import physics
from grokphys.cli.reproduce import reproduce
from grokphys.papers.liu import transition as liu_theory
from grokphys.papers.recipe import Run
from grokphys.papers.run import recipes
from physics import EffectiveTheory, InputError, Operation, OutputError, closures, representation_quality

RECIPES = recipes()


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
    masks = liu_theory.training_sets(Operation(10), (18, 23, 30), 200, 7)
    for one in masks.values():
        unique = closures(Operation(10), one).complete
        assert ((physics.grokking_rates(Operation(10), one) > 0) == unique).all(), "λ_3 counts the same"
        assert unique.any()


def test_an_equation_more_leaves_no_more_freedom():
    """Liu, Figure 11: what four tokens may satisfy, and the degrees of freedom that remain."""
    pairs = {"A1": ((0, 2), (1, 1)), "A2": ((0, 3), (1, 2)), "A3": ((1, 3), (2, 2))}
    for size, freedom, implied in ((1, 3, 1), (2, 2, 3), (3, 2, 3)):
        for chosen in itertools.combinations(pairs.values(), size):
            theory = EffectiveTheory(4, pairs=sum(chosen, ()))
            assert (theory.ground_state_dimension, len(theory.implied_parallelograms)) == (freedom, implied)


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
