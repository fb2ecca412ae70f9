"""The public names of analysis: those of the guide at the top, the others in its subpackages."""

import importlib

import numpy as np
import pandas
import pytest

import analysis
import nets
import physics
from physics.values import Shown

PACKAGES = ("circles", "laws", "comparison", "phases", "stats")


def test_names_are_few_and_all_of_them_are_found():
    assert len(dir(analysis)) <= 45
    assert set(dir(analysis)) == set(analysis.__all__)
    for package in PACKAGES:
        for name in getattr(analysis, package).__all__:
            assert getattr(analysis, name) is getattr(getattr(analysis, package), name)
    with pytest.raises(AttributeError):
        _ = analysis.fourier_signal
    importlib.import_module("analysis.comparison.motion")

    assert callable(analysis.compare), "a function and no package"


def results():
    """Results of every kind, each by its class."""
    rng = np.random.default_rng(0)
    compared = analysis.compare(*rng.normal(size=(2, 5, 3, 7, 2)))
    E, x = rng.normal(size=(59, 128)), rng.normal(size=(80, 29)).cumsum(axis=0)
    A = -np.eye(29)
    flags, spectrum = rng.normal(size=(3, 40, 10)), analysis.neuron_spectrum(rng.normal(size=(17, 64)))
    moving = physics.simulate(physics.ParticleSystem(7), runs=6, steps=20)
    law = analysis.forces.fit_forces(moving, "displacement", lag=1, basis="musat", resamples=2)
    networks = nets.train(nets.ConstantAttention(7), steps=2, observables=("layers",))
    axes = (analysis.Axis(name, 0, 1, cells=1) for name in ("weight_decay", "learning_rate"))
    logistic = analysis.fitness(*flags[:2], flags[0] > 0.5, resamples=5)
    theory = physics.EffectiveTheory(10)
    return [
        compared, compared.shapes, compared.motion, compared.distributions, *compared.distributions.values(),
        *compared.onsets.values(), *(each.first for each in compared.onsets.values()),
        analysis.structures(moving.final), analysis.frequency_plane(E, 3), logistic, logistic.svm,
        analysis.circles.principal_components(E), spectrum, analysis.diversification(spectrum),
        *analysis.circles.survival_rates(flags[0], flags[0] > 0.5, bins=2),
        analysis.logit_spectrum(rng.normal(size=(4, 7, 7, 7))), analysis.fit_trajectories(x),
        analysis.fit_law(analysis.MeanFieldRegressor(), x), analysis.honest_scores(analysis.Recipe().fit, x),
        analysis.laws.resample_coefficients(x, resamples=3), law, law.constants(), law.kernels,
        *law.score(moving).values(), *law.kernels["all"].values(), analysis.proportion(3, 7),
        analysis.stats.calibrate(*x[:2]),
        analysis.fit_critical_values(rng.normal(50, 5, 200), 1.0), analysis.comparison.affine_maps(17),
        analysis.phase_diagram(*axes, lambda points, first: [(first + k, 9, 50) for k in range(len(points))]),
        physics.closures(theory, theory.mask[None]), physics.AffineFlow(A, np.ones(29)),
        nets.networks(networks), nets.ConstantAttention().task,
    ]  # fmt: skip


def test_every_result_is_shown_on_one_screen_as_html_and_as_a_table():
    for result in results():
        assert isinstance(result, Shown)
        lines = str(result).splitlines()
        assert len(lines) <= 30
        assert max(map(len, lines)) <= 120
        assert "\n" not in repr(result)
        assert result._repr_html_().startswith("<table>")
        assert isinstance(result.to_dataframe(), pandas.DataFrame)
        assert len(result.to_dataframe()) > 0
    assert "circles" in str(results()[0])


def test_intervals_print_and_format_with_and_without_ends():
    single, none, endless = analysis.mean([1.0]), analysis.mean([]), analysis.mean([np.inf, 1.0, 2.0])
    assert [str(each) for each in (single, none, endless)] == ["1 (no interval)", "-", "∞ (no interval)"]
    assert f"{analysis.proportion(3, 7):>20}" == "      0.4 [0.2, 0.7]"
    assert (f"{single:.2f}", f"{none:.2f}", f"{none:>3}") == ("1.00", "-", "  -")


def test_models_and_systems_are_shown_in_a_notebook():
    for each in (nets.ToyAddition(), physics.EffectiveTheory(5), physics.ParticleSystem(5)):
        assert type(each).__name__ in each._repr_html_()
    assert "train_fraction=0.8182" in repr(nets.ToyAddition())


def test_a_law_is_printed_with_its_score_its_networks_and_its_constants():
    moving = physics.simulate(physics.ParticleSystem(7), runs=6, steps=20)
    law = analysis.forces.fit_forces(moving, "displacement", lag=1, basis="musat", resamples=2)
    own = law.score(moving)["all"].direction
    assert (law.fits["all"].fitted.estimate, law.fits["all"].fitted.count) == pytest.approx((own.estimate, 6))
    for shown in (str(own), str(law.constants()["alignment"]), "networks"):
        assert shown in str(law)


def test_runs_that_diverged_have_no_structures():
    with pytest.warns(RuntimeWarning, match="diverged"):
        runs = nets.train(nets.ConstantAttention(7), runs=2, steps=300, learning_rate=3e9, record=300)
    assert not np.isfinite(runs.final).all()
    with pytest.raises(physics.InputError, match=r"runs? 0.* of 2 diverged; take a smaller learning rate"):
        analysis.structures(runs)
