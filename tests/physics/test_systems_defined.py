"""What checks, seeds and systems take, keep and tell where an option or a size is rarely met."""

import json
import sys

import numpy as np
import pytest

import physics
from physics import AffineFlow, InputError, LinearNetwork, PairForces, SimulationError
from physics.checks import choice, complex_array, finite_array, flag, number, point_sets, whole_number
from physics.hooks import check_hooks, shown
from physics.seeds import describe_seed, generator, parent_seed
from physics.system import careful_step, describe, measures_of


def said(call):
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)


# -- checks, values, seeds --------------------------------------------------------------------------------


def test_what_is_taken_comes_back_in_one_type():
    for found, value, kind in (
        (whole_number("x", np.uint8(3), 0), 3, int),
        (number("x", np.float32(0.5)), 0.5, float),
        (number("x", 2), 2.0, float),
        (flag("x", np.False_), False, bool),
        (choice("x", np.str_("a"), ("a",)), "a", str),
    ):
        assert (found, type(found)) == (value, kind)
    turned = np.asfortranarray(np.arange(6).reshape(2, 3))
    for kind in (np.uint8, np.int16, np.float32, np.float64):
        found = finite_array("x", turned.astype(kind, order="K"))
        assert (found.dtype, found.flags.c_contiguous, found.tolist()) == (float, True, turned.tolist())
    given = np.zeros((3, 2))
    assert np.shares_memory(finite_array("x", given), given)
    assert np.shares_memory(point_sets("x", given), given)
    waves = np.array([1j, 2])
    assert not np.shares_memory(complex_array("x", waves), waves)
    for real in ([1, 2], np.array([1.0, 2.0], np.float32), np.array([1, 2], np.uint8)):
        found = complex_array("x", real)
        assert (found.dtype, found.tolist()) == (complex, [1, 2])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: number("x", np.inf), "x must be a finite number, got inf"),
        (lambda: number("x", -np.inf, 0.0), "x must be a finite number of at least 0, got -inf"),
        (lambda: number("x", np.nan, 0, 1), "x must be a finite number from 0 to 1, got nan"),
        (lambda: number("x", np.inf, 0.5), "x must be a finite number of at least 0.5, got inf"),
        (lambda: number("x", [1.0]), "x must be a finite number, got [1.0]"),
        (
            lambda: number("x", 0, above=0, below=2),
            "x must be a finite number greater than 0 and less than 2, got 0",
        ),
        (lambda: whole_number("x", True, 0), "x must be a whole number of at least 0, got True"),
        (lambda: whole_number("x", np.True_, 0), "x must be a whole number of at least 0, got np.True_"),
        (lambda: whole_number("x", "a" * 78, 0), f"x must be a whole number of at least 0, got {'a' * 78!r}"),
        (
            lambda: whole_number("x", "a" * 79, 0),
            f"x must be a whole number of at least 0, got '{'a' * 78}…",
        ),
        (lambda: complex_array("x", [True]), "x must be an array of complex numbers, got list"),
        (
            lambda: complex_array("x", [[1], [1, 2]]),
            "x must have rows of equal lengths, got list [[1], [1, 2]]",
        ),
        (lambda: complex_array("x", [1, np.inf]), "x must be finite, got NaN or infinite values"),
        (lambda: complex_array("x", [1, np.nan * 1j]), "x must be finite, got NaN or infinite values"),
        (
            lambda: finite_array("x", [[1.0, np.inf], [np.nan, -np.inf]]),
            "x must be finite, got 3 NaN or infinite among 4 values",
        ),
    ],
)
def test_a_refusal_says_what_came(call, sentence):
    assert said(call) == sentence


def test_what_was_given_can_still_be_written_to():
    table, masks = np.array(physics.cyclic(3).table), np.ones((2, 3), bool)
    system = LinearNetwork(labels := np.ones((2, 2)), pairs=(pairs := np.array([[0, 1], [1, 1]])))
    kept = (physics.FiniteGroup(table).table, physics.Operation(2).masks(masks), system.labels, system.pairs)
    assert all(given.flags.writeable for given in (table, masks, labels, pairs))
    assert not any(one.flags.writeable for one in kept)


def test_a_system_of_a_class_of_its_own_is_another_one():
    class Own(AffineFlow):
        pass

    assert Own([[1.0]], [1.0]) == Own([[1.0]], [1.0]) != AffineFlow([[1.0]], [1.0])
    assert hash(Own([[1.0]], [1.0])) != hash(AffineFlow([[1.0]], [1.0]))


def test_seeds_are_numbers_or_sequences():
    lists, child = np.random.SeedSequence([1, 2]), np.random.SeedSequence(9).spawn(3)[2]
    assert parent_seed(lists) is lists
    assert parent_seed(child) is child
    assert (describe_seed(lists)["entropy"], describe_seed(child)["entropy"]) == ([1, 2], 9)
    assert parent_seed(np.int64(4)).entropy == 4
    assert json.dumps(describe_seed(np.int64(3))) == "3"
    assert generator(3).random() == np.random.default_rng(3).random()
    assert describe_seed(child) == {"entropy": 9, "spawn_key": [2]}
    assert said(lambda: parent_seed(3.0)).endswith("or a numpy SeedSequence, got 3.0")


# -- systems of one's own ---------------------------------------------------------------------------------


class Still:
    """Stands still, and is as large as it is told to be."""

    default_step_size = 0.5

    def __init__(self, **members):
        for name, value in ({"tokens": 4, "dim": 2} | members).items():
            setattr(self, name, value)

    def advance(self, positions, step_size, steps):
        pass


def test_what_json_cannot_hold_of_a_system_is_left_out():
    values = {"nested": (1, np.float64(2), {"b": (np.arange(2), None)}, [np.int32(3)]), "name": "x"}
    lost = {"nan": np.nan, "deep": [{"a": (np.inf,)}], "law": len, "_own": 3, "both": {1j}}
    assert describe(Still(**values, **lost)) == {
        "type": "Still", "tokens": 4, "dim": 2, "nested": [1, 2.0, {"b": [[0, 1], None]}, [3]], "name": "x",
    }  # fmt: skip


def test_a_system_needs_a_start_only_if_none_is_given():
    assert physics.simulate(Still(), steps=1, initial=np.ones((4, 2))).frames == 2
    assert (
        said(lambda: physics.simulate(Still(), steps=1))
        == "system must have tokens, dim, advance, start; Still lacks start"
    )
    short = Still()
    del short.dim
    for initial in (None, np.ones((4, 2))):
        sentence = said(lambda initial=initial: physics.simulate(short, initial=initial))
        assert "Still lacks dim" in sentence


def test_a_start_that_is_refused_is_that_of_its_run_in_the_whole_ensemble():
    counts = iter(range(9))
    system = Still(start=lambda generator: np.zeros((4 + (next(counts) == 2), 2)))
    assert said(lambda: physics.simulate(system, runs=4, first_run=5)) == (
        "the return value of Still.start for run 7 must have the shape (4, 2), got (5, 2)"
    )


@pytest.mark.parametrize(
    ("shape", "runs", "got"),
    [((4, 2), 1, 1), ((4, 2), 3, 3), ((3, 4, 2), 3, 3), ((3, 4, 2), 1, 3), ((1, 4, 2), 1, 1)],
)
def test_a_start_is_one_for_all_runs_or_one_for_each(shape, runs, got):
    given = np.arange(np.prod(shape)).reshape(shape)
    found = physics.simulate(Still(), steps=1, initial=given, runs=runs)
    np.testing.assert_array_equal(found.initial, np.broadcast_to(given, (got, 4, 2)))
    assert found.parameters["runs"] == got


@pytest.mark.parametrize(
    ("shape", "runs", "number"),
    [
        ((1, 4, 2), 3, "runs = 3"),
        ((2, 4, 2), 3, "runs = 3"),
        ((1, 1, 4, 2), 1, "at least 1 run"),
        ((4, 3), 1, "at least 1 run"),
        ((2, 3, 2), 1, "at least 1 run"),
    ],
)
def test_other_starts_are_refused(shape, runs, number):
    assert said(lambda: physics.simulate(Still(), initial=np.ones(shape), runs=runs)) == (
        f"initial must have the shape (4, 2) or (runs, 4, 2) with {number}, got {shape}"
    )


def test_what_is_measured_on_request_has_a_row_for_each_run_too():
    system = Still(measures={"mean": lambda x: x.mean(axis=(1, 2)), "one": lambda x: np.ones(5)})
    options = {"steps": 1, "initial": np.ones((3, 4, 2))}
    found = physics.simulate(system, observables=iter(["mean"]), **options)
    assert found.observables["mean"].tolist() == [[1, 1]] * 3
    assert found.parameters["observables"] == ["mean"]
    assert said(lambda: physics.simulate(system, observables="one", **options)) == (
        "observable 'one' of Still must have the shape (3, ...), with a row for each run, got (5,)"
    )
    assert said(lambda: measures_of(system, ["mean", 3])) == (
        "observables must be one of 'mean', 'one', got 3"
    )
    assert said(lambda: measures_of(Still(), ("a", 3))) == "observables must be empty for Still, got a, 3"
    assert measures_of(Still(), ()) == {}


def test_a_careful_step_from_nowhere_is_none():
    force = np.ones((1, 2, 1))
    for lost in (0.0, np.inf, np.nan):
        assert careful_step(np.zeros((1, 2, 1)), lost * force) == 0
    assert careful_step(np.ones((1, 2, 1)), 0 * force) == np.inf


def test_hooks_of_numpy_and_of_classes_are_taken():
    for progress in (np.True_, False, print):
        check_hooks(None, progress)
    check_hooks(len, False)


# -- runs -------------------------------------------------------------------------------------------------

DECAY = AffineFlow([[-1.0]], [0.0])


def test_a_run_that_goes_on_tells_only_of_what_is_new(tmp_path, monkeypatch):
    def interrupt(step, *_):
        if step == 4:
            raise KeyboardInterrupt

    def counted(progress, total, done, desc):
        begun.append((total, done, desc))
        return shown(progress, total, done, desc)

    seen, told, begun = [], [], []
    monkeypatch.setattr(sys.modules["physics.simulate"], "shown", counted)
    options = {"initial": [[1.0]], "steps": 7, "record_every": 2, "out": tmp_path / "t.h5"}
    with pytest.raises(KeyboardInterrupt):
        physics.simulate(DECAY, **options, callback=interrupt)
    found = physics.simulate(
        DECAY, **options, resume=True, callback=lambda step, time, *_: seen.append((step, time)),
        progress=lambda *done: told.append(done),
    )  # fmt: skip
    assert found.steps.tolist() == [0, 2, 4, 6, 7]
    assert [step for step, _ in seen] == [6, 7]
    np.testing.assert_allclose([time for _, time in seen], [0.6, 0.7])
    assert told == [(6, 7), (7, 7)]
    assert begun == [(7, 0, "simulate"), (7, 4, "simulate")], "where a bar begins"
    np.testing.assert_allclose(found.positions[0, :, 0, 0], np.exp(-found.times))


@pytest.mark.parametrize(("every", "steps"), [(1, [0, 1, 2, 3]), (2, [0, 2, 3]), (3, [0, 3]), (9, [0, 3])])
def test_the_first_and_the_last_step_are_always_recorded(every, steps):
    found = physics.simulate(DECAY, steps=3, record_every=every, step_size=0.25, initial=[[1.0]])
    assert (found.steps.tolist(), found.times.tolist()) == (steps, [0.25 * step for step in steps])


def test_a_callback_that_fails_leaves_the_frame_that_it_saw():
    def fail(step, *_):
        if step == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as error:
        physics.simulate(DECAY, steps=5, initial=[[1.0]], callback=fail)
    assert (error.value.recorded.steps.tolist(), error.value.recorded.complete) == ([0, 1, 2], False)


def test_a_system_that_gives_up_at_once_leaves_its_start():
    def refuse(positions, step_size, steps):
        positions[:] = 7
        raise SimulationError("it is tired")

    with pytest.raises(SimulationError) as error:
        physics.simulate(Still(advance=refuse), steps=5, record_every=3, initial=np.ones((4, 2)))
    assert str(error.value).startswith("between step 0 and step 3, it is tired; the frames up to step 0 are")
    np.testing.assert_array_equal(error.value.recorded.positions, np.ones((1, 1, 4, 2)))


# -- flows, networks, forces ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("A", "b", "sentence"),
    [
        (np.ones((1, 1, 1)), [1.0], "A must have the shape (K, K) with K of at least 1, got (1, 1, 1)"),
        (1.0, [1.0], "A must have the shape (K, K) with K of at least 1, got ()"),
        ([[1.0]], np.ones((1, 0)), "b must have the shape (1,) or (1, dim), got (1, 0)"),
        ([[1.0]], 1.0, "b must have the shape (1,) or (1, dim), got ()"),
        ([[1.0]], [np.inf], "b must be finite, got 1 NaN or infinite among 1 values"),
    ],
)
def test_flows_of_other_shapes_are_refused(A, b, sentence):
    assert said(lambda: AffineFlow(A, b)) == sentence


def test_a_flow_whose_drift_has_one_column_has_that_axis():
    flow, plain = AffineFlow([[-1.0]], [[2.0]]), AffineFlow([[-1.0]], [2.0])
    assert (flow.dim, plain.dim) == (1, 1)
    assert (flow.solve([[0.0]], [1.0]).shape, plain.solve([0.0], [1.0]).shape) == ((1, 1, 1), (1, 1))
    assert said(lambda: flow.solve([0.0], [1.0])).startswith("initial and times must have the shapes (1, 1)")


def test_the_internal_energy_of_classes_of_any_size_is_its_definition():
    """Half the sum over classes of the squared distances of all pairs, divided by the size of the class."""
    labels = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [3.0, 3.0], [1.0, 0.0], [0.0, 2.0]])
    classes = [[0, 2, 4], [1, 5], [3]]
    for pairs in (None, [(0, 1), (1, 1), (2, 0), (3, 2), (4, 4), (0, 4)]):
        network = LinearNetwork(labels, inputs=3, pairs=pairs)
        rng = np.random.default_rng(0)
        states = np.stack([network.start(rng) for _ in range(2)])
        A, _, x = network.unpack(states)
        for run in range(2):
            r = x[run] if pairs is None else np.array([x[run][i] + x[run][j] for i, j in pairs])
            energy = sum(
                np.sum((A[run] @ (r[a] - r[b])) ** 2) / len(one) / 2
                for one in classes for a in one for b in one if a < b
            )  # fmt: skip
            assert network.internal_energy(states)[run] == pytest.approx(energy)


def test_states_of_networks_are_packed_together_and_refused_apart():
    network = LinearNetwork(np.ones((4, 3)), inputs=2)
    A, b, x = np.ones((5, 1, 3, 2)), np.arange(18.0).reshape(6, 3), np.zeros((4, 2))
    state = network.pack(A, b, x)
    assert (state.shape, network.loss(state).shape) == ((5, 6, 7, 3), (5, 6))
    assert (state[..., 4:, 2] == b).all()
    wanted = "A, b and x must end in the shapes ((3, 2), (3,), (4, 2)), got "
    for wrong in ((A[..., :1], b, x), (A, b[:, :2], x), (A, b, x[:3])):
        shapes = "{}, {} and {}".format(*(one.shape for one in wrong))
        assert said(lambda wrong=wrong: network.pack(*wrong)) == wanted + shapes
    for shape in ((0, 3), (2, 0)):
        sentence = f"labels must have the shape (samples, outputs), got {shape}"
        assert said(lambda shape=shape: LinearNetwork(np.ones(shape))) == sentence
    for pairs, got in (([[0.5, 1]] * 2, "float64 of shape (2, 2)"), ([[0], [1]], "int64 of shape (2, 1)")):
        sentence = said(lambda pairs=pairs: LinearNetwork(np.ones((2, 2)), pairs=pairs))
        assert sentence == f"pairs must be integers of shape (2, 2), got {got}"


def attract(r2):
    return -1.0


def attract_class(r2, same):
    return -1.0 if same else 0.0


def test_forces_of_ones_own_keep_what_was_said_in_pythons_types():
    own = PairForces(
        attract_class, np.int64(4), np.int8(1), on="pair sums", group=physics.cyclic(4).table.tolist()
    )
    assert own.group == physics.cyclic(4)
    assert (own.tokens, own.dim, own.modulus, own.parameters) == (4, 1, None, ())
    other = PairForces(attract_class, 4, 1, on="pair sums", modulus=np.uint8(3))
    assert [type(one) for one in (own.tokens, own.dim, other.modulus)] == [int] * 3
    assert (PairForces(attract, 2, 1).relative_tolerance, PairForces(attract, 2, 1).integrator) == (
        1e-6,
        "euler",
    )
    json.dumps(dict(describe(own)))


def test_forces_take_numbers_of_any_kind_and_layout_and_leave_them():
    force = PairForces(attract, 3, 2)
    x = np.arange(12).reshape(2, 3, 2) ** 2
    expected = np.sum(x[:, None] - x[:, :, None], axis=2)
    for given in (x, x.astype(np.uint8), np.asfortranarray(x.astype(np.float32)), x.tolist()):
        kept = np.array(given)
        np.testing.assert_array_equal(force.forces(given), expected)
        np.testing.assert_array_equal(given, kept)
        np.testing.assert_array_equal(force.forces(given[0]), expected[0])
    assert force.forces(x[:0]).shape == (0, 3, 2)
