"""Systems and models as values: equal by their fields, copied whole, no default taken for what was said."""

import copy
import json
import pickle

import numpy as np
import pytest

import nets
import physics
from physics import AffineFlow, EffectiveTheory, FiniteGroup, LinearNetwork, Operation, ParticleSystem
from physics.theory.operations import cyclic
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
    "group decoder": lambda: nets.GroupDecoder(cyclic(5)),
    "transformer": nets.TokenTransformer,
}
VALUES = SYSTEMS | OTHERS
COPIES = {
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
    "copied": copy.copy,
    "deeply copied": copy.deepcopy,
}


@pytest.mark.parametrize("name", VALUES)
def test_what_is_made_alike_is_equal(name):
    make = VALUES[name]
    one, other = make(), make()
    assert one == other
    assert hash(one) == hash(other)
    assert {one: "found"}[other] == "found"
    assert all((one == VALUES[different]()) == (different == name) for different in VALUES)


FEW, MORE = [(0, 1), (4, 4), (1, 2)], [(0, 1), (4, 4), (1, 2), (3, 3)]
KLEIN = physics.theory.direct_product(cyclic(2), cyclic(2))


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


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name.startswith(("particles", "theory"))])
def test_what_a_file_says_of_a_system_makes_it_again(name):
    system = SYSTEMS[name]()
    said = json.loads(json.dumps(fields(system)))
    assert type(said["tokens"]) is int
    if said["group"] is not None:
        said["group"] = FiniteGroup(np.array(said["group"]["table"]), said["group"]["name"])
    assert type(system)(**said) == system
