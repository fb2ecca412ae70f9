"""The small parts of training, each recomputed from its definition: streams, batches, steps, times."""

import numpy as np
import pytest

import nets
from nets import checkpoint
from nets.engines.choice import optimizer_of
from nets.engines.ensemble import STREAMS, batch_size_of, batches, draw, dropout_seed, per_member
from nets.recording import due, recording_steps
from nets.training import Training
from physics import InputError, OutputError

SMALL = nets.ConstantAttention(5, hidden=4)


# -- random streams -----------------------------------------------------------------------------------------


def streams(seed, number):
    """Generators of a member: the children of its child of the seed, in the documented order."""
    child = np.random.SeedSequence(seed, spawn_key=(number,))
    return dict(zip(("embedding", "layers", "split", "targets", "noise"), child.spawn(5), strict=True))


def test_a_member_is_drawn_from_its_own_child_of_the_seed():
    model = nets.ToyAddition(5, hidden=(4,))
    found = draw(
        model, runs=3, seed=7, run_numbers=[4, 0, 4], shared=("layers",), layer_scale=[1.0, 2.0, 0.5],
        embedding_scale=3.0,
    )  # fmt: skip
    assert tuple(STREAMS) == tuple(streams(7, 0))
    for k, number in enumerate([4, 0, 4]):
        own, first = streams(7, number), streams(7, 0)
        rng = np.random.default_rng
        expected = model.initial(rng(own["embedding"]), rng(first["layers"]))
        for name, value in expected.items():
            scale = 3.0 if name == "embedding" else [1.0, 2.0, 0.5][k]
            np.testing.assert_allclose(found.parameters[name][k], scale * value, rtol=1e-15)
        train, validation = model.task.split(0.8, rng(own["split"]))
        np.testing.assert_array_equal(found.train[k], train)
        np.testing.assert_array_equal(found.validation[k], validation)
        np.testing.assert_array_equal(found.targets[k], model.targets(rng(own["targets"])))
        assert found.noise[k].generate_state(4).tolist() == own["noise"].generate_state(4).tolist()


def test_an_epoch_is_a_permutation_cut_into_whole_batches():
    ensemble = draw(SMALL, runs=2, seed=3)
    size = ensemble.train.shape[1]
    assert size == 12
    for batch in (5, 4, 1):
        in_epoch = size // batch
        expected = []
        for run in range(2):
            noise = streams(3, run)["noise"]
            order = [
                np.random.default_rng(
                    np.random.SeedSequence(noise.entropy, spawn_key=(*noise.spawn_key, 0, epoch))
                ).permutation(size)[: in_epoch * batch]
                for epoch in range(4)
            ]
            expected.append(np.concatenate(order).reshape(-1, batch))
        whole = batches(ensemble, batch, 0, 3 * in_epoch + 1)
        np.testing.assert_array_equal(whole, np.array(expected)[:, : 3 * in_epoch + 1])
        for first, count in (
            (0, 1),
            (1, in_epoch),
            (in_epoch - 1, 2),
            (in_epoch, in_epoch),
            (in_epoch + 1, 1),
        ):
            part = batches(ensemble, batch, first, count)
            np.testing.assert_array_equal(part, whole[:, first : first + count])
            assert part.flags.c_contiguous
    assert batches(ensemble, size, 0, 3) is None
    noise = ensemble.noise[0]
    child = np.random.SeedSequence(noise.entropy, spawn_key=(*noise.spawn_key, 1, 9))
    assert dropout_seed(noise, 9) == int(child.generate_state(1, np.uint64)[0])


def test_numbers_of_members_are_checked_one_by_one():
    assert per_member("x", 2, 3).tolist() == [2.0, 2.0, 2.0]
    assert per_member("x", (1, 2), 2, 1.0).tolist() == [1.0, 2.0]
    for value, bounds in (([1.0], {}), ([1.0, 0.5], {"minimum": 0.6}), (0.0, {"above": 0.0}), ([[1, 2]], {})):
        with pytest.raises(InputError, match="x must be"):
            per_member("x", value, 2, **bounds)
    assert (batch_size_of(None, 5), batch_size_of(5, 5), batch_size_of(1, 5)) == (None, 5, 1)
    for wrong in (0, 6):
        with pytest.raises(InputError, match="batch_size must be at"):
            batch_size_of(wrong, 5)


def test_rates_of_the_embedding_are_those_of_the_layers_unless_they_are_given():
    both = optimizer_of(2, [0.1, 0.2], 0.3, None, None, (0.0, 0.5), 1e-8)
    assert both.embedding_learning_rate.tolist() == both.learning_rate.tolist() == [0.1, 0.2]
    assert both.embedding_weight_decay.tolist() == both.weight_decay.tolist() == [0.3, 0.3]
    own = optimizer_of(1, 0.1, 0.2, 0.3, 0.4, (0.9, 0.99), 1e-8, "sgd")
    assert [float(one[0]) for one in (own.learning_rate, own.weight_decay)] == [0.1, 0.2]
    assert [float(one[0]) for one in (own.embedding_learning_rate, own.embedding_weight_decay)] == [0.3, 0.4]
    assert (own.betas, own.epsilon, own.kind) == ((0.9, 0.99), 1e-8, "sgd")
    for wrong in ({"betas": (1.0, 0.5)}, {"betas": (0.5, -0.1)}, {"betas": (0.5,)}, {"epsilon": 0.0},
                  {"kind": "adam"}, {"learning_rate": -0.1}, {"weight_decay": -0.1},
                  {"embedding_learning_rate": -0.1}, {"embedding_weight_decay": -0.1}):  # fmt: skip
        given = {"learning_rate": 0.1, "weight_decay": 0.1, "embedding_learning_rate": None,
                 "embedding_weight_decay": None, "betas": (0.9, 0.9), "epsilon": 1e-8}  # fmt: skip
        with pytest.raises(InputError, match="must be"):
            optimizer_of(1, **(given | wrong))


# -- steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "rule"),
    [
        (1, lambda n: True),
        (7, lambda n: n % 7 == 0),
        ("7", lambda n: n % 7 == 0),
        ("2:10,5", lambda n: n % 2 == 0 if n < 10 else (n - 10) % 5 == 0),
        ("1:3,4:11,6", lambda n: n <= 3 or (n - 3) % 4 == 0 if n < 11 else (n - 11) % 6 == 0),
        ("log:3", lambda n: n in {0, 1, 2, 5, 10, 22, 46}),
        ("log:1", lambda n: n in {0, 1, 10, 100}),
        ("0,4,9", lambda n: n in {0, 4, 9}),
        ([9, 4], lambda n: n in {4, 9}),
    ],
)
def test_a_rule_of_recording_names_the_same_steps_before_and_while_a_run_goes_on(record, rule):
    while_it_goes_on = due(record)
    assert [n for n in range(60) if while_it_goes_on(n)] == [n for n in range(60) if rule(n)]
    for steps in (10, 11, 22, 35):
        listed = isinstance(record, list) or (
            isinstance(record, str) and record.count(",") and ":" not in record
        )
        if str(record).startswith("log") and steps not in (10, 100):
            continue  # a logarithmic grid ends at the last step
        expected = {n for n in range(steps + 1) if rule(n)} | (set() if listed else {steps})
        assert set(recording_steps(record, steps).tolist()) == expected
        assert (np.diff(recording_steps(record, steps)) > 0).all()


@pytest.mark.parametrize(
    "record", ["x", "log:0", "0:5,3", "5:10,0", "1:9,2:5,3", 0, -1, [], [12], [-1], "1:5", "12"]
)
def test_a_rule_of_recording_that_is_none_is_refused(record):
    if record == "12":
        assert recording_steps(record, 11).tolist() == [0, 11]
        return
    with pytest.raises(InputError, match="record"):
        recording_steps(record, 11)


# -- observing ----------------------------------------------------------------------------------------------


class Still:
    """An engine in a fixed state."""

    def __init__(self, ensemble, loss, accuracy):
        self.ensemble, self.loss, self.accuracy = ensemble, np.array(loss), np.array(accuracy)

    def losses(self, part):
        return self.loss.copy(), self.accuracy + (part == "validation")

    def parameters(self):
        return {name: value.copy() for name, value in self.ensemble.parameters.items()}

    def point_sets(self):
        return self.ensemble.parameters["embedding"].copy()


# -- time ---------------------------------------------------------------------------------------------------


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Frames:
    """What a checkpoint asks of a recorder."""

    frames, last_step, identity = 3, 20, "this run"

    def flush(self):
        pass


class Part:
    def __init__(self, clock, cost):
        self.clock, self.cost, self.value = clock, cost, np.arange(3)

    def state(self):
        self.clock.now += self.cost
        return {"x/y": self.value}

    def restore(self, state):
        (self.value,) = state.values()
        assert list(state) == ["x/y"]


@pytest.mark.parametrize(("cost", "pause"), [(0.1, 30.0), (6.0, 300.0)])
def test_checkpoints_come_every_half_minute_or_take_a_fiftieth(tmp_path, monkeypatch, cost, pause):
    clock = Clock()
    monkeypatch.setattr(checkpoint, "monotonic", clock)
    part = Part(clock, cost)
    kept = checkpoint.Checkpoint(tmp_path / "t.h5", Frames(), {"part": part})
    assert kept.path == tmp_path / "t.h5.checkpoint"
    clock.now = 30.0
    assert not kept.due
    clock.now = 30.5
    assert kept.due
    kept.save(25)
    clock.now += pause
    assert not kept.due
    clock.now += 0.5
    assert kept.due
    part.value = part.value + 1
    assert kept.restore() == 25
    assert part.value.tolist() == [0, 1, 2]
    for other in ({"identity": "another"}, {"last_step": 19}):
        found = checkpoint.Checkpoint(tmp_path / "t.h5", type("Other", (Frames,), other)(), {"part": part})
        assert found.restore() is None
    assert kept.path.exists()
    empty = checkpoint.Checkpoint(
        tmp_path / "t.h5", type("Other", (Frames,), {"frames": 0})(), {"part": part}
    )
    assert empty.restore() is None
    assert list(tmp_path.iterdir()) == [], "it was of an earlier run"


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "t"
    checkpoint.replace_as_a_whole(path, lambda file: file.write(b"old"))

    def fails(file):
        file.write(b"ne")
        raise RuntimeError("disk full")

    with pytest.raises(OutputError, match=r"cannot write .*t: disk full"):
        checkpoint.replace_as_a_whole(path, fails)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("t", b"old")]
    (tmp_path / "t.partial").touch()
    checkpoint.remove(path)
    assert list(tmp_path.iterdir()) == []


def test_rates_that_are_refused_do_not_change_those_that_are_kept():
    training, plain = (Training(SMALL, seed=2, device="cpu", learning_rate=0.05) for _ in range(2))
    for wrong in ({"learning_rate": -1.0}, {"weight_decay": 0.1, "rate": 1.0}):
        with pytest.raises(InputError, match="rate"):
            training.set_rates(**wrong)
    for one in (training, plain):
        one.advance(5)
    np.testing.assert_array_equal(training.embeddings, plain.embeddings)
    training.set_rates(weight_decay=0.2)
    training.set_rates(learning_rate=0.02)
    plain.set_rates(weight_decay=0.2, learning_rate=0.02)
    for one in (training, plain):
        one.advance(5)
    np.testing.assert_array_equal(training.embeddings, plain.embeddings)
    training.set_rates(learning_rate=0.0)
    training.advance(3)
    np.testing.assert_array_equal(training.embeddings, plain.embeddings)
    assert training.step == 13
