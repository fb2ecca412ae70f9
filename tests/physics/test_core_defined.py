"""The common files of `physics` where a branch is rarely met: messages, hooks, BLAS, kernels, examples."""

import json
import sys
import threading
from functools import partial

import numba
import numpy as np
import pytest

import physics
from physics import AffineFlow, InputError, PairForces, SimulationError, blas, examples, jit
from physics.checks import distinct, place, point_sets, real_array, regular_array, whole_number
from physics.errors import InUseError
from physics.hooks import goes_on
from physics.seeds import describe_seed
from physics.values import read_only


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        # the logarithms of these two are rounded up to 40
        (lambda: whole_number("x", 10**40 - 1, 0), f"x must be at most {2**53}, got a number of 40 digits"),
        (lambda: place("x", 1 - 10**40, 3), "x must be at least 0, got a negative number of 40 digits"),
        (lambda: whole_number("x", 10**40, 0), f"x must be at most {2**53}, got a number of 41 digits"),
        (lambda: whole_number("x", -(10**30), 0), f"x must be at least 0, got {-(10**30)}"),
        (lambda: whole_number("x", 2**53 + 1, 0), f"x must be at most {2**53}, got {2**53 + 1}"),
        (lambda: place("x", -1, 3), "x must be at least 0, got -1"),
        (
            lambda: regular_array("x", [[1], [1, 2]]),
            "x must have rows of equal lengths, got list [[1], [1, 2]]",
        ),
        (lambda: real_array("x", [1.0], 0), "x must have 0 axes, got the shape (1,)"),
        (lambda: real_array("x", [[1.0]], 1), "x must have 1 axis, got the shape (1, 1)"),
        (lambda: real_array("x", 1j), "x must be an array of real numbers, got complex 1j"),
        (lambda: point_sets("x", np.zeros((2, 9))), "x must hold at least 3 tokens, got 2"),
    ],
)
def test_a_refusal_is_this_sentence(call, sentence):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == sentence


def test_errors_are_those_of_python_that_a_script_may_catch():
    for error, base in (
        (InputError, ValueError),
        (physics.FileFormatError, ValueError),
        (physics.OutputError, OSError),
        (InUseError, physics.OutputError),
        (SimulationError, ArithmeticError),
    ):
        assert error.__bases__ == (base,)


def test_six_digits_are_enough_unless_they_are_those_of_a_bound():
    assert [distinct(1.0000001, 2.0), distinct(1.0, 1.0), distinct(1.0, 3.0, 1.0)] == ["1", "1", "1"]
    assert distinct(1.0000001, 3.0, 1.0) == distinct(1.0000001, 1.0) == "1.0000001"
    assert real_array("x", [[np.nan]], 2).shape == (1, 1)
    assert real_array("x", np.float32(2), 0) == 2


def test_a_read_only_view_leaves_what_was_given_as_it_is():
    given = np.arange(6.0).reshape(2, 3)
    view, copy = read_only(given), read_only(given.T)
    assert np.shares_memory(view, given)
    assert not np.shares_memory(copy, given)
    assert (copy.flags.c_contiguous, copy.tolist()) == (True, given.T.tolist())
    assert [one.flags.writeable for one in (given, view, copy)] == [True, False, False]
    flow = AffineFlow(np.ones((2, 2)), np.ones((2, 3)))
    assert not flow.A.flags.writeable
    assert not flow.b.flags.writeable
    assert flow.solve(np.ones((2, 3)), []).shape == (0, 2, 3)


# -- hooks and runs -----------------------------------------------------------------------------------------


def test_a_callback_gets_copies_and_ends_the_run_by_stopping_it_alone():
    def spoil(step, time, positions, observables):
        positions[:] = 7
        observables["own"] = observables.pop("kept")
        seen.append((step, time))
        raise error

    positions, observables, seen = np.zeros((1, 2, 1)), {"kept": np.ones(1)}, []
    error = StopIteration()
    assert goes_on(spoil, 3, 0.5, positions, observables) is False
    error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        goes_on(spoil, 4, 1.5, positions, observables)
    assert not positions.any()
    assert list(observables) == ["kept"]
    assert seen == [(3, 0.5), (4, 1.5)]
    assert goes_on(None, 0, 0.0, positions, observables) is True
    assert goes_on(lambda *_: False, 0, 0.0, positions, observables) is True


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"seed": 1.0}, "seed must be a whole number of at least 0 or a numpy SeedSequence, got 1.0"),
        ({"first_run": -1}, "first_run must be at least 0, got -1"),
        ({"runs": 0}, "runs must be at least 1, got 0"),
    ],
)
def test_what_is_not_drawn_from_a_seed_refuses_a_wrong_one_too(option, sentence):
    with pytest.raises(InputError) as error:
        physics.simulate(AffineFlow([[1.0]], [0.0]), initial=[[1.0]], steps=1, **option)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("system", "step_size"),
    [
        (physics.ParticleSystem(3), 0.02),
        (PairForces(lambda r2: -1.0, 2, 1), 0.02),
        (AffineFlow([[1.0]], [0.0]), 0.1),
        (physics.FourierLottery(3), 1.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_step_has_the_size_of_its_system_unless_one_is_given(system, step_size):
    found = physics.simulate(system, steps=2)
    assert (found.parameters["step_size"], found.times[-1]) == (step_size, 2 * step_size)


LEAST = sys.float_info.min


@pytest.mark.parametrize(
    ("largest", "advice"),
    [
        (0.0, "and would for every step_size; make the constants smaller; the frames"),
        (np.nan, "and would for every step_size; make the constants smaller; the frames"),
        (LEAST, "and would for every step_size; make the constants smaller; the frames"),
        (2 * LEAST, "try a step_size below 4.5e-308; the frames"),
        (0.123456, "try a step_size below 0.12; the frames"),
    ],
)
def test_a_step_size_is_advised_where_one_would_help(largest, advice):
    class Growing(AffineFlow):
        def largest_step_size(self, positions):
            seen.append(positions.copy())
            return largest

    seen = []
    with pytest.raises(SimulationError) as error:
        physics.simulate(Growing([[300.0]], [0.0]), initial=[[1.0]], step_size=1.0, steps=6, record_every=5)
    told = str(error.value)
    assert told.startswith(f"the state overflowed in step 3{';' if 'try' in advice else ','} {advice}")
    np.testing.assert_allclose(seen, [[[[np.exp(600.0)]]]], rtol=1e-12)  # before the step that fails


def test_an_example_is_in_the_package_or_beside_it(monkeypatch, tmp_path):
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "physics" / "examples.py"))
    file = examples.EXAMPLES["ding"]
    assert examples.example_path("ding") == tmp_path / "data" / file
    inside = tmp_path / "physics" / "data" / file
    inside.parent.mkdir(parents=True)
    inside.touch()
    assert examples.example_path("ding") == inside


def test_a_seed_of_many_numbers_is_stored_as_numbers_of_python():
    seed = np.random.SeedSequence(np.array([3, 2**40]), spawn_key=(np.int64(2),))
    assert json.loads(json.dumps(describe_seed(seed))) == {"entropy": [3, 2**40], "spawn_key": [2]}


# -- BLAS -------------------------------------------------------------------------------------------------


class Libraries:
    """Stands for the libraries of BLAS, and notes how they are limited."""

    def __init__(self):
        self.limits, self.open = [], 0

    def limit(self, **limits):
        self.limits.append(limits)
        return self

    def __enter__(self):
        self.open += 1

    def __exit__(self, *error):
        self.open -= 1


def test_blas_alone_is_limited_and_once(monkeypatch):
    libraries = Libraries()
    monkeypatch.setattr(blas, "_libraries", lambda: libraries)
    limit = blas._OneThread()
    with limit:
        with limit:
            assert libraries.open == 1
        assert libraries.open == 1
    assert (libraries.open, libraries.limits) == (0, [{"limits": 1, "user_api": "blas"}])
    assert limit(lambda: libraries.open)() == 1


def test_a_limit_that_fails_leaves_the_turn_to_others(monkeypatch):
    def fail():
        raise ZeroDivisionError

    limit, libraries, entered = blas._OneThread(), Libraries(), []
    monkeypatch.setattr(blas, "_libraries", fail)
    with pytest.raises(ZeroDivisionError), limit:
        pass
    monkeypatch.setattr(blas, "_libraries", lambda: libraries)

    def enter():
        with limit:
            entered.append(libraries.open)

    other = threading.Thread(target=enter, daemon=True)
    other.start()
    other.join(10)
    assert entered == [1]


# -- kernels ------------------------------------------------------------------------------------------------


def test_sums_keep_their_order_unless_they_may_be_reordered_and_nan_stays_nan():
    def total(values):
        found = 0.0
        for i in range(len(values)):
            found += values[i]
        return found, found != found, 1.0 / (found - found)

    values = np.random.default_rng(0).standard_normal(1001)
    ordered, reordered = jit.kernel(cache=False)(total), jit.kernel(reorder=True, cache=False)(total)
    in_order = 0.0
    for value in values:
        in_order += value
    assert ordered(values)[0] == in_order
    assert reordered(values)[0] == pytest.approx(in_order, rel=1e-12)
    for kernel in (ordered, reordered):
        assert kernel(values)[2] == np.inf, "no exception, as in NumPy"
        assert kernel(np.array([1.0, np.nan]))[1], "NaN is noticed"
        assert kernel.targetoptions["nogil"] is True, "other threads go on meanwhile"


def test_arguments_of_different_types_never_share_an_address():
    array = np.zeros((2, 3))
    locked, odd = array.view(), np.zeros(25, np.int8)[1:].view(np.float64)
    locked.setflags(write=False)
    apart = [
        array, locked, np.asfortranarray(array), array[:, ::2], array[0], array.astype(np.float32), odd,
        array.astype(np.int64), array.astype(complex), 1, 1.0, True, (1, array), (1, locked), (array, 1),
        (1.0, array), np.int64(1), np.float32(1), None, "a",
    ]  # fmt: skip
    for i, one in enumerate(apart):
        for other in apart[:i]:
            if numba.typeof(one) != numba.typeof(other):
                assert jit._kind(one) != jit._kind(other), (one, other)
    assert jit._kind(array) == jit._kind(np.ones((7, 5)))
    assert jit._kind((1, array)) == jit._kind((2, np.ones((7, 5))))


@pytest.mark.parametrize(
    ("rows", "threads", "least", "parts"),
    [
        (0, 3, 2, 1), (1, 3, 2, 1), (2, 3, 2, 2), (2, 3, 3, 1), (3, 3, 3, 3), (3, 8, 2, 3), (31, 2, 2, 2),
        (32, 2, 2, 8), (47, 3, 2, 3), (48, 3, 2, 12), (9, 1, 2, 1), (500, 2, 2, 8),
    ],
)  # fmt: skip
def test_rows_are_cut_into_more_parts_where_there_are_many(monkeypatch, rows, threads, least, parts):
    monkeypatch.setattr(jit.numba, "get_num_threads", lambda: threads)
    done = []
    jit._in_parts(lambda begin, end: done.append((begin, end)), lambda: rows, least, len)()
    assert sorted(done) == [(rows * k // parts, rows * (k + 1) // parts) for k in range(parts)]


class Timer:
    """Stands for a timer, which fires when it is told to."""

    def __init__(self, seconds, function, arguments, options):
        self.seconds, self.fire, self.alive, self.daemon = (
            seconds,
            partial(function, *arguments, **options),
            0,
            0,
        )

    def start(self):
        assert self.daemon is True, "it must not keep a process that has ended"
        self.alive = True

    def is_alive(self):
        return self.alive

    def cancel(self):
        self.alive = False


def test_a_compilation_is_announced_if_it_lasts_and_only_the_first_that_does(monkeypatch, capsys):
    timers = []
    monkeypatch.setattr(jit.threading, "Timer", lambda *given: timers.append(Timer(*given)) or timers[-1])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    announcement = jit._Announcement()
    announcement.on_start(None)
    announcement.on_start(None)  # a kernel that this one calls
    announcement.on_end(None)
    assert [timer.alive for timer in timers] == [True]
    announcement.on_end(None)
    assert [timer.alive for timer in timers] == [False], "a quick one is not announced"
    announcement.on_start(None)
    assert [(timer.alive, timer.seconds) for timer in timers] == [(False, 1.0), (True, 1.0)]
    timers[1].fire()
    timers[1].alive = False
    assert capsys.readouterr().err == "compiling kernels, once\n"
    announcement.on_end(None)
    announcement.on_start(None)
    assert len(timers) == 2


def test_a_force_is_a_number_of_any_kind_and_no_answer():
    def whole(r2):
        return 2

    def near(r2):
        return r2 < 1.0

    assert PairForces(whole, 2, 1).forces([[0.0], [3.0]]).tolist() == [[-6.0], [6.0]]
    with pytest.raises(InputError, match="^function must return a real number, but near returns bool$"):
        PairForces(near, 2, 1)
