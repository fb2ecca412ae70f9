"""Tasks: their pairs and labels, their training sets, and what they refuse."""

import numpy as np
import pytest

import physics
from nets.tasks import Task, addition, group_products, modular_addition
from physics import InputError


def test_tasks_are_all_pairs_with_the_class_of_their_sum_or_product():
    for p in (3, 6):
        ordered = [(a, b) for a in range(p) for b in range(p)]
        unordered = [(a, b) for a, b in ordered if a <= b]
        for task, pairs, label, classes in (
            (modular_addition(p), unordered, lambda a, b, p=p: (a + b) % p, p),
            (modular_addition(p, ordered=True), ordered, lambda a, b, p=p: (a + b) % p, p),
            (addition(p), unordered, lambda a, b: a + b, 2 * p - 1),
            (group_products(physics.cyclic(p)), ordered, lambda a, b, p=p: (a + b) % p, p),
        ):
            assert [tuple(pair) for pair in task.inputs.tolist()] == pairs
            assert task.labels.tolist() == [label(a, b) for a, b in pairs]
            assert task.classes == classes
            assert not task.whole
    table = physics.symmetric(3).table
    product = group_products(physics.symmetric(3))
    assert all(table[a, b] == label for (a, b), label in zip(product.inputs, product.labels, strict=True))


def task(size, held_out=(), *, whole=False):
    return Task(np.arange(size)[:, None], np.zeros(size, np.int64), 1, np.array(held_out, np.int64), whole)


def test_a_training_set_is_a_part_of_what_is_not_held_out():
    assert task(10).training_size(0.75) == 7
    assert task(10).training_size(0.9) == 9
    assert task(10).training_size(0.1) == 1
    assert task(10, [8, 9]).training_size(1.0) == 8
    assert task(10, whole=True).training_size(1.0) == 10
    assert task(10, [8, 9]).training_size(0.5) == 4
    for size in (55, 100, 1797):  # the product of 0.29 and 100 is less than 29
        assert [task(size).training_size(k / size) for k in range(1, size)] == list(range(1, size))
    for one, fraction in ((task(10), 1.0), (task(10), 0.05), (task(10), 0.0), (task(10, whole=True), 1.1),
                          (task(10, [8, 9]), 1.2), (task(10), -0.5)):  # fmt: skip
        with pytest.raises(InputError, match="train_fraction must"):
            one.training_size(fraction)
    for held in ((), (0, 4)):
        train, validation = task(10, held).split(0.5, np.random.default_rng(1))
        order = np.random.default_rng(1).permutation([k for k in range(10) if k not in held])
        size = len(order) // 2
        assert train.tolist() == sorted(order[:size])
        assert validation.tolist() == (list(held) if held else sorted(order[size:]))


def test_given_examples_are_named_once_and_apart():
    assert [part.tolist() for part in task(6).given_split([4, 1])] == [[1, 4], [0, 2, 3, 5]]
    assert [part.tolist() for part in task(6).given_split([4, 1], [5])] == [[1, 4], [5]]
    assert [part.tolist() for part in task(6, [4, 5]).given_split([4, 1])] == [[1, 4], [5]]
    assert task(3, whole=True).given_split([0, 1, 2])[1].tolist() == []
    for train, validation, said in (
        ([0, 0], None, "each example once"), ([6], None, "from 0 to 5"), ([-1], None, "from 0 to 5"),
        ([], None, "must name an example"), ([[1]], None, "one axis"), ([0.5], None, "whole numbers"),
        ([0, 1], [1], "share no example"), ([0], [2, 2], "validation_examples must name each"),
        (range(6), None, "leave one of 6 to validate on"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            task(6).given_split(list(train), validation)
    with pytest.raises(InputError, match="labels must be whole numbers from 0 to 1, got 0 to 2"):
        Task(np.zeros((3, 1)), np.array([0, 1, 2]), 2)
    with pytest.raises(InputError, match="labels must be whole numbers from 0 to 1, got -1 to 0"):
        Task(np.zeros((2, 1)), np.array([0, -1]), 2)


@pytest.mark.parametrize("kind", [np.int32, np.uint8, list])
def test_whole_numbers_of_a_task_become_indices(kind):
    pairs, labels = [[0, 1], [1, 1]], [1, 0]
    given = (pairs, labels) if kind is list else (np.array(pairs, kind), np.array(labels, kind))
    made = Task(*given, 2, held_out=[1])
    for array, wanted in ((made.inputs, pairs), (made.labels, labels), (made.held_out, [1])):
        assert array.dtype == np.int64
        assert array.tolist() == wanted
    assert Task(np.zeros((2, 3), np.float32), labels, 2).inputs.dtype == np.float32
