"""What arguments may be at their bounds, how far a bar is moved, and where seeds are heard."""

from functools import partial

import numpy as np
import pytest

from physics import InputError
from physics.checks import choice, finite_array, flag, number, place, point_sets, whole_number
from physics.hooks import shown


def test_bounds_and_shapes_belong_to_what_is_allowed():
    assert whole_number("x", 2**53, 0) == 2**53
    assert finite_array("x", 3.0).shape == ()
    assert finite_array("x", [[True], [False]]).tolist() == [[1.0], [0.0]]
    assert point_sets("x", np.zeros((2, 3, 1))).shape == (2, 3, 1)
    assert point_sets("x", np.zeros((2, 1)), minimum_tokens=2).shape == (2, 1)
    for wrong in (lambda: number("x", -np.inf), lambda: finite_array("x", [1.0, np.nan])):
        with pytest.raises(InputError, match="x must be"):
            wrong()
    assert number("x", 1.0, 1.0) == 1.0
    with pytest.raises(InputError, match=r"of at least 1, got 0\.9999999999999999$"):
        number("x", np.nextafter(1.0, 0.0), 1.0)
    for shape in ((3,), (2, 1), (3, 0)):
        with pytest.raises(InputError, match="x must ha|x must hold"):
            point_sets("x", np.zeros(shape))


def said(call):
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)


def test_what_came_is_told_in_few_characters():
    for number_, got in (
        (10**30, 10**30),
        (10**31, "a number of 32 digits"),
        (9 * 10**39, "a number of 40 "),
    ):
        assert said(partial(whole_number, "x", number_, 0)).startswith(
            f"x must be at most {2**53}, got {got}"
        )
    what = "x must be an array of real numbers, got "
    assert said(lambda: finite_array("x", np.array(["a"]))) == what + "an array of <U1"
    long = ["a" * 100]
    assert said(lambda: finite_array("x", long)) == what + f"list {long!r:.79}…"
    assert said(lambda: finite_array("x", "ab")) == what + "str 'ab'"


@pytest.mark.parametrize(
    ("refuse", "sentence"),
    [
        (lambda: number("x", 1.0000001, 0, 1), "x must be a finite number from 0 to 1, got 1.0000001"),
        (lambda: number("x", 2, 0, 1), "x must be a finite number from 0 to 1, got 2"),
        (
            lambda: number("x", 1, 0, below=1),
            "x must be a finite number of at least 0 and less than 1, got 1",
        ),
        (lambda: number("x", 1.5, maximum=1), "x must be a finite number at most 1, got 1.5"),
        (lambda: number("x", 10**400), "x must be a finite number, got a number of 401 digits"),
        (lambda: number("x", -(10**5000)), "x must be a finite number, got a negative number of 5001 digits"),
        (
            lambda: whole_number("x", -(10**5000), 0),
            "x must be at least 0, got a negative number of 5001 digits",
        ),
        (lambda: whole_number("x", 7, 0, 6), "x must be at most 6, got 7"),
        (lambda: place("x", 3, 3), "x must be at most 2, got 3"),
        (
            lambda: choice("x", np.array(["a", "b"]), ("a",)),
            "x must be one of 'a', got array(['a', 'b'], dtype='<U1')",
        ),
        (lambda: flag("x", "y\n" * 99), "x must be True or False, got " + repr("y\n" * 99)[:79] + "…"),
    ],
)
def test_a_refusal_is_one_short_sentence_that_is_true_at_the_bound(refuse, sentence):
    with pytest.raises(InputError) as said:
        refuse()
    assert str(said.value) == sentence


class Bar:
    """A progress bar that remembers how it was moved."""

    def __init__(self, **given):
        self.given, self.n, self.moved = given, given["initial"], []

    def update(self, by):
        self.n += by
        self.moved.append(by)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.mark.parametrize(("progress", "hidden"), [(True, None), (False, True)])
def test_a_bar_begins_where_the_run_does_and_is_moved_to_where_it_is(monkeypatch, progress, hidden):
    bars = []
    monkeypatch.setattr("tqdm.tqdm", lambda **given: bars.append(Bar(**given)) or bars[0])
    with shown(progress, 9, 3, "x") as show:
        show(5)
        show(9)
    (bar,) = bars
    assert (bar.given["total"], bar.given["initial"], bar.given["desc"]) == (9, 3, "x")
    assert bar.given["disable"] is hidden, "None hides it where stderr is no terminal"
    assert bar.moved == [2, 4]
