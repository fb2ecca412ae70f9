"""Edges of circles: clocks of their own, infinite frames, limits that are met, plain values, groups."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

import analysis
import physics
from analysis.circles.classes import class_names, structures_by
from analysis.circles.fourier import fourier_signals, frequency_shares, signals_and_final, trajectory_signals
from analysis.circles.prediction import circle_counts, decision_error, fitness, survival_rates
from analysis.circles.survival import StoppingRule, survives
from analysis.stats.intervals import clustered_proportion, mean, proportion
from physics import InputError, Operation, Trajectory

RNG = np.random.default_rng(13)
FIRST_STATE = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def seeded():
    """Let every test draw the same numbers, whichever ran before it."""
    RNG.bit_generator.state = FIRST_STATE


def ring(p, frequency):
    angle = 2 * np.pi * frequency * np.arange(p) / p
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


# -- trajectories -----------------------------------------------------------------------------------------


def watched():
    """Embeddings at three steps, and signals at five others, all with times that are no steps."""
    return Trajectory(
        RNG.normal(size=(2, 3, 7, 2)),
        [0, 50, 100],
        [0.0, 0.5, 1.0],
        observables={"fourier_signals": RNG.uniform(1, 2, (2, 5, 3)).astype(np.float32)},
        clocks={"fourier_signals": ([0, 10, 20, 90, 100], [0.0, 0.1, 0.2, 0.9, 1.0])},
    )


@pytest.mark.parametrize(
    ("first", "last", "kept"),
    [
        (0, None, [0, 1, 2, 3, 4]),
        (10, 90, [1, 2, 3]),
        (11, 99, [2, 3]),
        (20, None, [2, 3, 4]),
        (0, 10, [0, 1]),
    ],
)
def test_signals_that_were_recorded_have_their_own_steps(first, last, kept):
    one = watched()
    found = analysis.circles_of(one, first, last)
    assert found.steps.tolist() == one.clock("fourier_signals")[0][kept].tolist()
    np.testing.assert_array_equal(found.signals, one.observables["fourier_signals"][:, kept])
    assert found.signals.dtype == np.float64
    np.testing.assert_array_equal(found.survived, survives(fourier_signals(one.final)))
    np.testing.assert_array_equal(found.initial, one.observables["fourier_signals"][:, kept[0]])
    np.testing.assert_array_equal(found.final, one.observables["fourier_signals"][:, kept[-1]])
    assert found.counts.tolist() == found.survived.sum(axis=1).tolist()
    for run, signals in enumerate(analysis.signals_of(one, first, last)):
        assert signals.steps.tolist() == found.steps.tolist()
        np.testing.assert_array_equal(signals.values, found.signals[run])
        assert signals.survivors == [k + 1 for k in range(3) if found.survived[run, k]]
        assert all(type(k) is int for k in signals.survivors)


def test_a_window_with_one_frame_is_refused_with_its_ends():
    for first, last, said in (
        (95, None, "got 1 from step 95 to the last, of 5 from 0 to 100"),
        (11, 20, "got 1 from step 11 to 20, of 5 from 0 to 100"),
        (101, 300, "got 0 from step 101 to 300, of 5 from 0 to 100"),
    ):
        with pytest.raises(InputError, match=f"first and last must enclose at least 2 frames, {said}$"):
            analysis.circles_of(watched(), first, last)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_frames_that_are_not_finite_are_counted_and_the_first_run_of_them_is_named(bad):
    E = RNG.normal(size=(3, 4, 5, 2))
    E[2, 0, 0, 0] = E[1, 3, 1, 1] = E[1, 2, 4, 0] = bad
    with np.errstate(invalid="ignore"), pytest.raises(InputError) as refused:
        trajectory_signals(Trajectory(E, [0, 10, 20, 30]))
    assert str(refused.value) == (
        "positions must be finite, got NaN or infinite values in 3 frames, the first of them step 20 of run 1"
    )


def test_the_last_frame_is_a_copy_in_the_type_of_the_trajectory():
    one = Trajectory(RNG.normal(size=(2, 40, 6, 3)).astype(np.float32), np.arange(40))
    signals, final = signals_and_final(one)
    assert (final.dtype, signals.dtype, signals.shape) == (np.float32, np.float64, (2, 40, 3))
    np.testing.assert_array_equal(final, one.final)
    final[:] = 0
    assert one.final.any()


# -- signals and geometry ---------------------------------------------------------------------------------


def test_a_threshold_must_be_exceeded_and_replaces_the_factor():
    assert survives([10.0, 10.1, np.nan], threshold=10).tolist() == [False, True, False]
    assert survives([10.0, 10.1], threshold=10, factor=-1).tolist() == [False, True], "a factor is not used"
    assert not survives([[9.0, np.nan, 0.0]]).any()
    assert survives([[9.0, 0.0, 0.0], [1.0, 0.0, 9.0]]).tolist() == [
        [True, False, False],
        [False, False, True],
    ]
    found = analysis.surviving_frequencies(ring(9, 4))
    assert (found.tolist(), found.dtype) == ([4], np.int64)
    with pytest.raises(InputError, match="threshold must be a finite number greater than 0, got inf"):
        survives([1.0], threshold=math.inf)


def test_agreement_is_a_plain_number():
    assert analysis.circles.agreement([True, False, True], [True, False, False]) == 0.5
    assert analysis.circles.agreement([False, False], [True, True]) == 0.0
    assert type(analysis.circles.agreement([True], [True])) is float
    assert math.isnan(analysis.circles.agreement([False], [False]))


def test_the_agreement_of_lists_of_frequencies_is_refused():
    for first, second, name in (([7, 8, 11], [1, 2, 3], "first"), ([True, False], [1, 0], "second")):
        with pytest.raises(InputError, match=rf"^{name} must be an array of booleans, got list \["):
            analysis.circles.agreement(first, second)


def test_a_rule_by_default_is_that_of_the_paper_and_is_asked_with_its_factor():
    assert (StoppingRule().factor, StoppingRule().margin, StoppingRule().hold) == (2.0, 0.1, 200)
    signals = [[3.0, 1.0, 1.0, 1.0], [3.0, 1.0, 1.0, 1.0]]
    assert not StoppingRule(hold=5).decided([0, 5], signals), "twice the mean is 3"
    assert StoppingRule(hold=5, factor=1.0).decided([0, 5], signals)
    assert not StoppingRule(hold=6, factor=1.0).decided([0, 5], signals)
    assert StoppingRule(hold=5, factor=1.0).first([7, 12], signals) == 12
    assert type(StoppingRule(hold=5, factor=1.0).first(np.array([7, 12]), signals)) is int
    circles = analysis.circles.Circles(np.array([7, 12]), np.array([signals]), np.ones((1, 4), bool))
    assert circles.decided(StoppingRule(hold=5, factor=1.0)).tolist() == [12.0]
    assert np.isnan(circles.decided()).all()


def test_shares_of_several_embeddings_that_partly_vanish():
    E = np.stack([np.ones((6, 2)), ring(6, 1), np.outer(np.cos(np.pi * np.arange(6)), [3.0, 4.0])])
    np.testing.assert_allclose(frequency_shares(E), [[0, 0, 0], [1, 0, 0], [0, 0, 1]], atol=1e-12)
    np.testing.assert_allclose(frequency_shares(E[1].tolist()), [1, 0, 0], atol=1e-12)
    mixed = ring(6, 1) + np.outer(np.cos(np.pi * np.arange(6)), [1.0, 0.0])
    np.testing.assert_allclose(frequency_shares(mixed), [0.5, 0, 0.5], atol=1e-12)


def test_tokens_that_coincide_have_components_without_a_variance():
    found = analysis.circles.principal_components(np.full((5, 3), 2.0))
    assert found.fractions.tolist() == [0, 0, 0]
    assert not found.points.any()
    flat = analysis.circles.principal_components(ring(7, 2)[:, :1])
    assert flat.fractions == pytest.approx([1])
    assert flat.frequency(0) == 2
    assert analysis.effective_dimension(ring(7, 2) + 5) == pytest.approx(2)
    assert analysis.effective_dimension(np.full((2, 2, 5, 3), 2.0)).tolist() == [[1, 1], [1, 1]]


def test_a_plane_is_that_of_the_points_about_their_mean_the_longer_axis_first():
    E = np.concatenate([ring(9, 2) * [1.0, 4.0], np.full((9, 1), 7.0)], axis=1)
    plane = analysis.frequency_plane(E, 2)
    np.testing.assert_allclose(plane.points.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(plane.axes), [[0, 1, 0], [1, 0, 0]], atol=1e-12)
    line = analysis.frequency_plane(ring(9, 2)[:, :1], 2)
    assert (line.points.shape, line.axes.shape) == ((9, 2), (2, 1))
    assert line.axes[1].tolist() == [0]


# -- classes ----------------------------------------------------------------------------------------------


def test_classes_are_named_and_counted_by_the_rule_of_an_operation():
    group = physics.symmetric(3)
    assert class_names(Operation(5)) == "i + j"
    assert class_names(Operation(5, 4)) == "i + j mod 4"
    assert class_names(Operation(group=group)) == f"products in {group.name}"
    E = RNG.normal(size=(4, 6, 2))
    for operation, options in ((Operation(6), {"modulus": 12}), (Operation(6, 4), {"modulus": 4})):
        expected = physics.grid_imperfections(E, **options)
        assert structures_by(operation, E).imperfections.tolist() == expected.tolist()


# -- predictions ------------------------------------------------------------------------------------------


def test_rates_have_eight_bins_and_plain_ends():
    x = np.arange(40.0)
    rows = survival_rates(x, x > 10)
    assert len(rows) == 8
    assert [row.rate.count for row in rows] == [5] * 8
    assert (rows[0].low, rows[-1].high) == (0, 39)
    assert all(type(value) is float for row in rows for value in (row.low, row.high, row.value))
    tied = survival_rates([1.0, 1.0, 1.0, 2.0], np.array([True, False, True, True]), bins=4)
    assert [(row.low, row.high, row.rate) for row in tied] == [
        (1.0, 1.25, proportion(2, 3)), (1.25, 2.0, proportion(1, 1)),
    ]  # fmt: skip


def test_of_many_groups_a_tenth_is_left_out_at_a_time():
    signals, gradients = RNG.normal(size=(2, 13, 4))
    alive = signals + gradients + RNG.normal(size=(13, 4)) > 0
    names = np.repeat(np.arange(13), 4)
    found = fitness(signals, gradients, alive, resamples=1)
    X, y = np.stack([signals.ravel(), gradients.ravel()], axis=1), alive.ravel()
    right = np.empty(52, bool)
    for seen, left in GroupKFold(10).split(X, y, names):
        center, width = X[seen].mean(axis=0), X[seen].std(axis=0)
        model = LogisticRegression(C=np.inf, max_iter=1000).fit((X[seen] - center) / width, y[seen])
        right[left] = model.predict((X[left] - center) / width) == y[left]
    counts = [right[names == name].sum() for name in range(13)]
    assert found.logistic.left_out == clustered_proportion(counts, [4] * 13)
    whole = LogisticRegression(C=np.inf, max_iter=1000).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    np.testing.assert_allclose(found.odds[:, 0], whole.coef_[0])
    inside = whole.predict((X - X.mean(axis=0)) / X.std(axis=0)) == y
    expected = clustered_proportion([inside[names == name].sum() for name in range(13)], [4] * 13)
    assert found.logistic.in_sample == expected


def test_resamples_are_of_the_seed_and_those_of_one_kind_are_left_out():
    """One of three groups has no survivor: a resample may hold nothing else."""
    signals, gradients = RNG.normal(size=(2, 3, 6))
    alive = np.array([[True, False] * 3, [False, True] * 3, [False] * 6])
    many = fitness(signals, gradients, alive, resamples=30)
    assert np.isfinite(many.odds).all()
    found, again, other = (fitness(signals, gradients, alive, resamples=2, seed=k) for k in (0, 0, 1))
    np.testing.assert_array_equal(found.odds, again.odds)
    assert (found.odds[:, 1:] != other.odds[:, 1:]).any()
    np.testing.assert_array_equal(found.odds[:, 0], other.odds[:, 0])
    assert found.groups == 3


def test_counts_are_averaged_by_arrays_of_parameters_too():
    (one, other) = circle_counts(np.array([3, 5, 4]), {"p": np.array([59, 31, 59])})
    assert (one["p"], one["circles"]) == (31, mean([5.0]))
    assert (other["p"], other["circles"]) == (59, mean([3.0, 4.0]))
    with pytest.raises(InputError, match=r"each of the 3 counts, got \{'p': 3, 'q': 2\}"):
        circle_counts([1, 2, 3], {"p": [1, 2, 3], "q": [1, 2]})


def test_what_stopping_saves_is_a_share_of_the_whole_run():
    steps = np.array([100, 300, 500])
    decided, never = [[9.0, 1.0, 1.0]] * 3, np.ones((3, 3))
    found = decision_error(steps, [never, decided])
    assert found.steps == mean([500, 300])
    assert found.saved == pytest.approx(1 - 800 / 1000)
    assert (found.undecided, found.wrong, found.circles) == (
        proportion(1, 2),
        proportion(0, 1),
        proportion(0, 3),
    )
    none = decision_error(steps, [never])
    assert (none.saved, none.wrong.count, none.circles.count) == (0, 0, 0)


def test_a_single_frame_at_the_start_saves_nothing_that_is_known():
    found = decision_error([0], np.ones((2, 1, 3)))
    assert math.isnan(found.saved)
    assert (found.undecided.estimate, found.steps.estimate, found.wrong.count) == (1, 0, 0)


# -- neurons ----------------------------------------------------------------------------------------------


def test_orders_are_plain_numbers_and_those_that_were_asked_for():
    spectrum = analysis.neuron_spectrum(RNG.normal(size=(2, 3, 7, 5)))
    found = analysis.diversification(spectrum, np.array([2, 5]))
    assert found.orders == (2, 5)
    assert [type(order) for order in found.orders] == [int, int]
    assert analysis.diversification(spectrum).orders == (1, 2, 3, 4)
    assert found.asymmetry.shape == (2, 3, 3, 2)
    assert found.counts.sum(axis=-1).tolist() == [[5] * 3] * 2
    for run in np.ndindex(2, 3):
        one = analysis.diversification(analysis.circles.NeuronSpectrum(7, spectrum.theta[run]), [2, 5])
        np.testing.assert_array_equal(found.counts[run], one.counts)
        np.testing.assert_allclose(found.asymmetry[run], one.asymmetry, atol=1e-12)
        np.testing.assert_allclose(found.diversity[run], one.diversity)


def test_neurons_are_removed_network_by_network():
    states, out = RNG.normal(size=(2, 6, 4)), RNG.normal(size=(2, 4, 3))
    bias, labels = RNG.normal(size=(2, 1, 3)), np.array([0, 1, 2, 2, 1, 0], np.uint8)
    groups = RNG.random((2, 5, 4)) < 0.5
    found = analysis.neuron_ablation(states, out, labels, bias=bias, groups=groups)
    for run in range(2):
        for k, group in enumerate(groups[run]):
            logits = (states[run] * ~group) @ out[run] + bias[run]
            log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            assert found[run, k] == pytest.approx(-log_p[np.arange(6), labels].mean())
    alone = analysis.neuron_ablation(states, out, labels)
    every = analysis.neuron_ablation(states, out, labels, groups=np.eye(4, dtype=bool))
    np.testing.assert_allclose(alone, every)
    with pytest.raises(InputError, match="bias must be finite, got 1 NaN or infinite among 1 values"):
        analysis.neuron_ablation(states, out, labels, bias=np.inf)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"activations": np.ones((2, 0, 4)), "labels": []},
         "activations and W_out must not be empty, got the shapes (2, 0, 4) and (2, 4, 3)"),
        ({"W_out": np.ones((2, 4, 0))},
         "activations and W_out must not be empty, got the shapes (2, 6, 4) and (2, 4, 0)"),
        ({"labels": [0, 1, 2, 3, 1, 0]}, "labels must be from 0 to 2, got 0 to 3"),
        ({"labels": [0, 1, 2, -1, 1, 0]}, "labels must be from 0 to 2, got -1 to 2"),
        ({"labels": [0.0] * 6}, "labels must be whole numbers of shape (6,), got float64 of shape (6,)"),
        ({"bias": np.zeros((6, 2))}, "bias must broadcast to the shape (2, 6, 3), got (6, 2)"),
        ({"bias": np.zeros((2, 2, 6, 3))}, "bias must broadcast to the shape (2, 6, 3), got (2, 2, 6, 3)"),
        ({"groups": np.ones((3, 5, 4), bool)}, "groups must broadcast to the shape (2, 5, 4), got (3, 5, 4)"),
        ({"groups": np.ones((0, 4), bool)}, "groups must be bool of shape (..., groups, 4), got bool (0, 4)"),
        ({"groups": np.ones(4, bool)}, "groups must be bool of shape (..., groups, 4), got bool (4,)"),
        ({"groups": np.ones((5, 3), bool)}, "groups must be bool of shape (..., groups, 4), got bool (5, 3)"),
    ],
)  # fmt: skip
def test_arguments_of_an_ablation_must_agree(change, sentence):
    given = {"activations": np.ones((2, 6, 4)), "W_out": np.ones((2, 4, 3)), "labels": [0, 1, 2, 2, 1, 0]}
    with pytest.raises(InputError) as refused:
        analysis.neuron_ablation(**given | change)
    assert str(refused.value) == sentence


def test_phases_are_measured_for_at_least_one_order():
    spectrum = analysis.neuron_spectrum(RNG.normal(size=(7, 5)))
    with pytest.raises(InputError, match="orders must hold at least one multiple of the phase, got none"):
        analysis.diversification(spectrum, ())
    with pytest.raises(InputError, match="orders must be a whole number"):
        analysis.diversification(spectrum, (1, 1.5))
