"""Edges of batches and recipes, of terms, and of the matrices of laws."""

import math

import numpy as np
import pytest

import analysis
from analysis.laws.batch import batch_signals
from analysis.laws.nonlinear import mean_field_terms, term_name
from analysis.laws.ode import fit_trajectories
from analysis.laws.pieces import as_pieces, differences
from analysis.laws.regressors import LinearODERegressor
from analysis.laws.resampling import resample_coefficients
from physics import InputError, Trajectory

RNG = np.random.default_rng(14)
FIRST_STATE = RNG.bit_generator.state
B = np.array([0.3, -0.2])


@pytest.fixture(autouse=True)
def seeded():
    """Let every test draw the same numbers, whichever ran before it."""
    RNG.bit_generator.state = FIRST_STATE


def walk(*shape):
    return RNG.standard_normal(shape).cumsum(axis=-2)


# -- batches ----------------------------------------------------------------------------------------------


def test_a_batch_is_cut_at_step_1000_unless_said():
    steps = np.arange(0, 1501, 50)
    E = RNG.normal(size=(2, 31, 5, 2))
    one = Trajectory(E, steps)
    assert [len(run.steps) for run in batch_signals(one)] == [21, 21]
    assert batch_signals(one)[0].steps[-1] == 1000
    assert [run.steps[[0, -1]].tolist() for run in batch_signals((one,), first=100, last=None)] == [
        [100, 1500]
    ] * 2
    recipe = analysis.Recipe(penalty=None)
    assert analysis.fit_batch(one, recipe).law.transitions == 40
    assert analysis.fit_batch(one, recipe, first=500).law.transitions == 20
    assert analysis.fit_batch(one, recipe, last=None).law.transitions == 60
    found = recipe.resample(one, 5, first=500, last=700)
    signals = analysis.signals_of(one, 500, 700)
    expected = resample_coefficients(
        [run.values for run in signals], [run.steps for run in signals], penalty=None, resamples=5
    )
    np.testing.assert_array_equal(found.A_high, expected.A_high)
    mixed = batch_signals([one, signals[0]])
    assert mixed[2] is signals[0]
    for bad in (np.inf, np.nan):
        broken = analysis.circles.Signals(signals[0].steps, np.full((5, 2), bad), [])
        with pytest.raises(InputError, match="batch must hold finite signals, got NaN or infinite values"):
            batch_signals([signals[0], broken])


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({}, "Lasso, α = 0.01"), ({"penalty": None}, "least squares"),
        ({"penalty": "elastic-net", "alpha": "cv"}, "elastic-net, α = cv"),
        ({"law": "lotka-volterra", "penalty": None}, "Lotka-Volterra, least squares"),
        ({"law": "lotka-volterra", "alpha": 0.1}, "Lotka-Volterra, Lasso, α = 0.1"),
        ({"law": "mean-field"}, "mean field, nine terms"),
    ],
)  # fmt: skip
def test_a_recipe_says_what_it_does(options, label):
    assert analysis.Recipe(**options).label == label


@pytest.mark.parametrize("kind", ["increment", "generator"])
@pytest.mark.parametrize("law", ["linear", "mean-field", "lotka-volterra"])
def test_a_recipe_fits_with_its_own_options(law, kind):
    x, times = np.abs(walk(2, 25, 2)) + 1, 2.0 * np.arange(25)
    recipe = analysis.Recipe(law, "elastic-net", 0.02, 0.3, 99_999, kind)
    found = recipe.fit(x, times)
    assert found.kind == kind
    if law == "linear":
        expected = fit_trajectories(
            x, times, kind=kind, penalty="elastic-net", alpha=0.02, l1_ratio=0.3, max_iter=99_999
        )
        np.testing.assert_array_equal(found.A, expected.A)
        return
    if law == "lotka-volterra":
        own = found.regressor[-1]
        assert (own.penalty, own.alpha, own.l1_ratio, own.max_iter) == ("elastic-net", 0.02, 0.3, 99_999)
        assert found.regressor[0].get_feature_names_out(["a", "b"]).tolist() == [
            "a",
            "b",
            "a^2",
            "a b",
            "b^2",
        ]
    else:
        assert isinstance(found.regressor, analysis.MeanFieldRegressor)
    states, changes = (
        np.concatenate(part) for part in zip(*differences(as_pieces(x, times), kind), strict=True)
    )
    np.testing.assert_allclose(found.changes(states), found.regressor.fit(states, changes).predict(states))
    assert np.isposinf(found.changes(np.array([[np.inf, 1.0]]))).all()


# -- terms and matrices -----------------------------------------------------------------------------------


def test_terms_are_tuples_each_once_in_their_order():
    assert mean_field_terms([[1, 0], (2,), [1, 0], (2,)]) == [(1, 0), (2,)]
    assert mean_field_terms(((0, 1),)) == [(0, 1)]
    assert mean_field_terms(1) == [(0, 0), (0, 1), (1, 0)]
    assert (0, 0, 1) in mean_field_terms(2)
    assert all(sum(t[:1]) + sum(p * c for p, c in enumerate(t[1:], 1)) <= 2 for t in mean_field_terms(2))
    assert term_name((0, 0)) == "1"
    assert term_name((12, 1, 3)) == "x¹² m₁ m₂³"
    for bad in ([(-1,)], [(1,), ()], [(True, 0.5)], [(1,), 2], [()], "x"):
        with pytest.raises(InputError, match="terms must be a degree or tuples"):
            mean_field_terms(bad)


def test_a_vector_of_changes_is_predicted_as_a_vector():
    x = RNG.uniform(1, 2, (20, 3))
    vector = analysis.MeanFieldRegressor([(1,)]).fit(x, 2 * x[:, 0])
    np.testing.assert_allclose(vector.predict(x), 2 * x[:, 0])
    table = analysis.MeanFieldRegressor([(1,)]).fit(x, 2 * x[:, :1])
    np.testing.assert_allclose(table.predict(x), 2 * x[:, :1])
    line = LinearODERegressor(penalty=None).fit(x, x[:, 1] + 1)
    assert type(line.intercept_) is float
    np.testing.assert_allclose(line.predict(x), x[:, 1] + 1)
    with pytest.raises(ValueError, match="features"):
        vector.predict(x[:, :2])


def test_a_map_that_turns_beyond_a_right_angle_has_a_generator():
    c, s = math.cos(2.5), math.sin(2.5)
    turn = 0.9 * np.array([[c, -s], [s, c]]) - np.eye(2)
    found, shift = analysis.to_generator(turn, B, 0.5)
    np.testing.assert_allclose(found, [[2 * math.log(0.9), -5], [5, 2 * math.log(0.9)]], atol=1e-9)
    back = analysis.to_increment(found, shift, 0.5)
    np.testing.assert_allclose(back[0], turn, atol=1e-9)
    np.testing.assert_allclose(back[1], B, atol=1e-9)
    huge = np.diag([1e6, -1 + 1e-8])
    with pytest.raises(InputError, match="1e-08"):
        analysis.to_generator(huge, [0, 0])
    assert analysis.to_generator(np.diag([0.0, -1 + 1e-8]), [0, 0])[0][1, 1] == pytest.approx(math.log(1e-8))


def test_growth_is_sorted_from_the_fastest_down_with_its_eigenvalue():
    A = np.array([[-0.1, 0, 0], [0, 0.3, 0], [0, 0, -1.9]])
    found = analysis.laws.stability(A)
    np.testing.assert_allclose(found.growth, np.log([1.3, 0.9, 0.9]))
    assert found.eigenvalues[0] == pytest.approx(0.3)
    assert found.eigenvalues.dtype == np.complex128
    assert analysis.laws.stability(A, kind="generator").growth.tolist() == pytest.approx([0.3, -0.1, -1.9])
    assert type(found.stable) is bool
    rows = analysis.laws.interactions([[5.0, 0, 0], [0, 5.0, 1.0], [0, 0, 5.0]])
    assert [(row["first"], row["second"]) for row in rows] == [(2, 3)], "those that do not act are left out"
    assert [type(rows[0][name]) for name in ("first", "on_first")] == [int, float]


def test_a_law_is_at_rest_only_where_every_rate_vanishes():
    for b in ([-1.0, -2.0], [1.0, -2.0], [0.0, -1.0]):
        assert analysis.laws.fixed_points(np.zeros((2, 2)), b).point is None
    assert analysis.laws.fixed_points(np.diag([-1.0, 0.0]), [1.0, -1.0]).point is None
    found = analysis.laws.fixed_points(np.diag([-1.0, 2.0]), [-3.0, -4.0])
    np.testing.assert_allclose(found.point, [-3, 2])
