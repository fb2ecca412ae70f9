"""Systems and models as values: equal by their fields, copied whole, no default taken for what was said."""

import copy
import inspect
import json
import pickle

import numpy as np
import pytest

import nets
import physics
from nets.engines.ensemble import Optimizer
from nets.models.images import load_images
from nets.tasks import modular_addition
from physics import (
    AffineFlow,
    EffectiveTheory,
    FiniteGroup,
    InputError,
    LinearNetwork,
    Operation,
    ParticleSystem,
)
from physics.theory.closure import closures
from physics.theory.groups import cyclic, symmetric
from physics.trajectory.provenance import fields

LABELS = [[1.0, -0.5], [0.2, 0.9], [0.2, 0.9]]
SYSTEMS = {
    "particles": lambda: ParticleSystem(7, alignment=2.0),
    "particles that train": lambda: ParticleSystem(5, pairs=[(0, 1), (3, 3), (1, 2), (4, 2)]),
    "particles of a group": lambda: ParticleSystem(group=cyclic(8)),
    "theory": lambda: EffectiveTheory(6, 2, pairs=[(0, 3), (1, 2), (2, 1 + 1)], modulus=6),
    "theory of a group": lambda: EffectiveTheory(group=cyclic(4)),
    "affine flow": lambda: AffineFlow(-np.eye(3), [[1.0, -0.0]] * 3),
    "linear network": lambda: LinearNetwork(LABELS, pairs=[(0, 1), (1, 1), (2, 0)]),
}
OTHERS = {
    "operation": lambda: Operation(5, 4),
    "group": lambda: FiniteGroup(cyclic(3).table),
    "constant attention": nets.ConstantAttention,
    "embedding MLP": lambda: nets.EmbeddingMLP(5, 3, [4, 4]),
    "toy addition": nets.ToyAddition,
    "group decoder": lambda: nets.GroupDecoder(cyclic(5)),
    "transformer": nets.TokenTransformer,
    "images": nets.ImageMLP,
}
RESULTS = {
    "closures": lambda: closures(Operation(5), Operation(5).masks(np.eye(2, 15, dtype=bool))),
    "no parallelograms": lambda: closures(Operation(2), Operation(2).masks(np.eye(3, dtype=bool))),
    "task": lambda: modular_addition(5),
    "pixels": lambda: load_images("digits", 10),
    "optimizer": lambda: Optimizer(*np.full((4, 2), 0.1), (0.9, 0.999), 1e-8),
}
"""Dataclasses with arrays that are compared but not stored."""
VALUES = SYSTEMS | OTHERS
COPIES = {
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
    "copied": copy.copy,
    "deeply copied": copy.deepcopy,
}


@pytest.mark.parametrize("name", VALUES | RESULTS)
def test_what_is_made_alike_is_equal(name):
    make = (VALUES | RESULTS)[name]
    one, other = make(), make()
    assert one == other
    assert hash(one) == hash(other)
    assert {one: "found"}[other] == "found"
    assert all((one == VALUES[different]()) == (different == name) for different in VALUES)


def test_networks_can_be_compared_though_each_is_only_itself():
    one, other = (nets.Training(nets.ConstantAttention(7)).networks() for _ in range(2))
    assert (one == one, one == other, one.ensemble == other.ensemble) == (True, False, False)
    assert len({one, other, one}) == 2


FEW, MORE = [(0, 1), (4, 4), (1, 2)], [(0, 1), (4, 4), (1, 2), (3, 3)]
KLEIN = physics.direct_product(cyclic(2), cyclic(2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ParticleSystem(7), ParticleSystem(7, alignment=2.0)),
        (ParticleSystem(7), ParticleSystem(7, pairs=FEW)),
        (ParticleSystem(7, pairs=FEW), ParticleSystem(7, pairs=MORE)),
        (ParticleSystem(4, group=cyclic(4)), ParticleSystem(4)),
        (EffectiveTheory(group=cyclic(4)), EffectiveTheory(group=KLEIN)),
        (AffineFlow([[1.0]], [1.0]), AffineFlow([[1.0]], [2.0])),
        (AffineFlow([[1.0]], [1.0]), AffineFlow([[1.0]], [[1.0]])),
        (LinearNetwork(LABELS), LinearNetwork(LABELS, decay=0.1)),
        (LinearNetwork(LABELS), LinearNetwork(np.negative(LABELS))),
        (nets.GroupDecoder(cyclic(5)), nets.GroupDecoder(cyclic(6))),
        (ParticleSystem(7), "a system"),
    ],
)
def test_what_differs_in_a_field_is_not_equal(one, other):
    assert one != other
    assert other != one


def test_a_group_is_its_table_whatever_it_is_called():
    assert cyclic(8) == FiniteGroup(cyclic(8).table, "the clock's")
    assert ParticleSystem(group=cyclic(8)) == ParticleSystem(group=cyclic(8).table.tolist())
    assert hash(EffectiveTheory(group=cyclic(3))) == hash(EffectiveTheory(group=cyclic(3).table))
    assert hash(AffineFlow([[0.0]], [-0.0])) == hash(AffineFlow([[-0.0]], [0.0]))


def test_arrays_of_other_shapes_are_no_collision():
    assert hash(LinearNetwork(np.ones((2, 3)))) != hash(LinearNetwork(np.ones((3, 2))))


def test_the_order_of_pairs_makes_no_difference():
    assert EffectiveTheory(5, pairs=[(0, 1), (2, 1)]) == EffectiveTheory(5, pairs=np.array([[1, 2], [0, 1]]))


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", VALUES)
def test_copies_are_equal_and_as_closed_to_writing(name, how):
    original = VALUES[name]()
    again = COPIES[how](original)
    assert again == original
    assert hash(again) == hash(original)
    assert type(again) is type(original)
    for attribute, value in vars(original).items():
        if isinstance(value, np.ndarray):
            assert getattr(again, attribute).flags.writeable == value.flags.writeable, attribute


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_copy_moves_to_the_same_bits(name, how):
    original = SYSTEMS[name]()
    before = physics.simulate(
        original, runs=2, steps=4
    )  # derived arrays are made, and must not be in the way
    after = physics.simulate(COPIES[how](original), runs=2, steps=4)
    np.testing.assert_array_equal(after.positions, before.positions)
    assert after.parameters == before.parameters


# -- no default is taken for what was said -------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "default"), [(ParticleSystem, 17), (EffectiveTheory, 10), (Operation, 10)])
def test_tokens_that_are_not_given_are_the_default_or_the_groups_order(kind, default):
    assert type(kind().tokens) is int
    assert kind().tokens == kind(tokens=None).tokens == default
    for group in (cyclic(8), cyclic(default), cyclic(8).table):
        order = len(getattr(group, "table", group))
        assert kind(group=group).tokens == kind(tokens=order, group=group).tokens == order
        for wrong in {10, 17, 5} - {order}:
            with pytest.raises(
                InputError, match=f"^tokens must be {order}, the order of the group, got {wrong}$"
            ):
                kind(tokens=wrong, group=group)


def test_tokens_of_groups_that_do_not_commute():
    assert EffectiveTheory(group=symmetric(3)).tokens == 6
    with pytest.raises(InputError, match="^tokens must be 6, the order of the group, got 10$"):
        EffectiveTheory(tokens=10, group=symmetric(3))


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name.startswith(("particles", "theory"))])
def test_what_a_file_says_of_a_system_makes_it_again(name):
    system = SYSTEMS[name]()
    said = json.loads(json.dumps(fields(system)))
    assert type(said["tokens"]) is int
    if said["group"] is not None:
        said["group"] = FiniteGroup(np.array(said["group"]["table"]), said["group"]["name"])
    assert type(system)(**said) == system


@pytest.mark.parametrize("kind", [ParticleSystem, EffectiveTheory])
def test_the_signature_says_that_tokens_may_be_left_out(kind):
    tokens = inspect.signature(kind).parameters["tokens"]
    assert tokens.default is None
    assert tokens.annotation == int | None
    assert "tokens=17" in repr(ParticleSystem())
