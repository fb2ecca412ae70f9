"""What `train` records, asks and ends at which step; what can be observed of which model."""

import numpy as np
import pytest
import torch

import nets
import physics
from nets import checkpoint
from nets.engines.ensemble import draw
from nets.interventions import keep_frequencies, with_signals
from nets.neurons import neuron_weights
from nets.recording import due, recording_steps
from physics import InputError, OutputError

SMALL = nets.ConstantAttention(5, hidden=4)
FAST = {"steps": 6, "record": 2, "runs": 2}


# -- a recorder in a loop of your own ---------------------------------------------------------------------


@pytest.mark.parametrize("record", [np.int64(2), np.array([0, 2]), range(0, 3, 2), "0,2", 2])
def test_when_to_record_is_stored_whatever_its_type(tmp_path, record):
    with nets.Recorder(torch.zeros(3, 2), tmp_path / "r.h5", record=record) as recorder:
        recorder.step()
        recorder.step()
    trained = nets.train(nets.ConstantAttention(7), steps=2, record=record, out=tmp_path / "t.h5")
    stored = record if isinstance(record, str) else np.asarray(record).tolist()
    for found in (recorder.result(), trained):
        assert found.parameters["record"] == stored
        assert found.steps.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"path": 5}, "path must be the name of a file, got 5"),
        ({"parameters": 5}, "parameters must be a mapping, such as a dict, got 5"),
        ({"checkpoint": [1]}, "checkpoint must be a mapping, such as a dict, got [1]"),
        ({"overwrite": "no"}, "overwrite must be True or False, got 'no'"),
        ({"resume": "no"}, "resume must be True or False, got 'no'"),
    ],
)
def test_what_a_recorder_cannot_take_is_refused(tmp_path, changes, sentence):
    with pytest.raises(InputError) as error:
        nets.Recorder(torch.zeros(3, 2), **{"path": tmp_path / "t.h5", **changes})
    assert str(error.value) == sentence


def test_observables_of_any_name_are_recorded_until_the_with_block_ends(tmp_path):
    given = {"self": 1.0, "time": 2.0, "step": 3.0, "positions": 4.0}
    with nets.Recorder(torch.zeros(3, 2), tmp_path / "t.h5") as recorder:
        recorder.step(**given)
    stored = recorder.result().observables
    assert {name: float(values[0, -1]) for name, values in stored.items()} == given
    for more in (recorder.step, recorder.checkpoint):
        with pytest.raises(OutputError, match="cannot record to .*: its recorder is closed"):
            more()


# -- rules and calls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_threshold_that_holds_at_the_start_is_reached_at_step_0(engine):
    options = {"engine": engine, "thresholds": {"train_accuracy": 0, "quality": 1}}
    found = nets.train(SMALL, **FAST, **options)
    assert (found.observables["steps_to_train_accuracy"] == 0).all()
    assert np.isnan(found.observables["steps_to_quality"]).all()
    assert (found.observables["status"] == 0).all(), "one of two thresholds"
    options["thresholds"].pop("quality")
    ended = nets.train(SMALL, **FAST, **options, stop="thresholds")
    assert ended.observables["status"].tolist() == [[0, 1, 1, 1]] * 2, "the frame is taken before the rule"
    assert (ended.positions == ended.initial[:, None]).all()
    assert list(ended.steps) == [0, 2, 4, 6]


def test_a_rule_is_asked_at_frames_only_and_sees_what_is_recorded_and_cannot_be_changed():
    asked, called = [], []

    def rule(step, positions, observables):
        asked.append((step, positions.copy(), {name: value.copy() for name, value in observables.items()}))
        for array in (positions, *observables.values()):
            assert not array.flags.writeable
        return [step >= 4, False]

    found = nets.train(
        SMALL, **FAST, track=1, thresholds={"quality": 1}, stop=rule,
        callback=lambda step, time, positions, observables: called.append((step, time, observables)),
    )  # fmt: skip
    assert [step for step, *_ in asked] == [step for step, *_ in called] == [0, 2, 4, 6]
    for frame, (_, positions, observables) in enumerate(asked):
        np.testing.assert_array_equal(positions, found.frame(frame))
        assert observables.keys() == called[frame][2].keys() == found.observables.keys()
        for name, value in observables.items():
            np.testing.assert_array_equal(value, found.observables[name][:, frame])
            np.testing.assert_array_equal(called[frame][2][name], value)
    assert found.observables["status"].tolist() == [[0, 0, 0, 1], [0, 0, 0, 0]]
    assert (found.frame(3)[0] == found.frame(2)[0]).all()
    assert (found.frame(3)[1] != found.frame(2)[1]).any()


def test_a_callback_may_end_a_training_with_its_first_frame():
    def at_once(*_):
        raise StopIteration

    found = nets.train(SMALL, **FAST, callback=at_once)
    assert (found.steps.tolist(), found.complete) == ([0], True)


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_resumed_run_asks_a_rule_only_for_steps_since_its_checkpoint(tmp_path, monkeypatch, engine):
    options = FAST | {"out": tmp_path / "t.h5", "engine": engine}
    replace, asked = checkpoint.replace_as_a_whole, []

    def rule(step, positions, observables):
        asked.append(step)
        return step >= np.array([4, 100])

    def interrupted(path, write, **options):
        replace(path, write, **options)
        with np.load(path) as values:
            if values["step"] == 4:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint.Checkpoint, "due", True)
        patched.setattr(checkpoint, "replace_as_a_whole", interrupted)
        with pytest.raises(KeyboardInterrupt):
            nets.train(SMALL, stop=rule, **options)
    assert asked == [0, 2, 4]
    asked.clear()
    told = []
    resumed = nets.train(
        SMALL, stop=rule, resume=True, progress=lambda done, _: told.append(done), **options
    )  # fmt: skip
    assert asked == [6]
    assert (told[0], told[-1]) == (5, 6)
    whole = nets.train(SMALL, stop=rule, **(options | {"out": None}))
    np.testing.assert_array_equal(resumed.positions, whole.positions)
    assert resumed.observables["status"].tolist() == [[0, 0, 0, 1], [0, 0, 0, 0]]
    asked.clear()
    again = nets.train(SMALL, stop=rule, resume=True, **options)
    assert (asked, again.frames) == ([], 4), "a complete run is returned as it is"


def test_a_rate_that_is_set_does_not_thaw_an_embedding():
    training = nets.Training(SMALL, runs=2, freeze_embedding=True)
    start, layers = training.embeddings, training.networks().parameters["output.weight"]
    training.set_rates(learning_rate=[0.1, 0.2], weight_decay=0.5)
    training.advance(3)
    np.testing.assert_array_equal(training.embeddings, start)
    assert (training.networks().parameters["output.weight"] != layers).any(axis=(1, 2)).all()
    training.set_rates(embedding_learning_rate=None, embedding_weight_decay=None)
    training.advance(1)
    assert (training.embeddings != start).any(axis=(1, 2)).all()


# -- observables --------------------------------------------------------------------------------------------

EVERY = {"train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "layers"}
DENSE, ADDS, READ = (
    {"weight_norm", "bias_norm"},
    {"restricted_loss", "excluded_loss"},
    {"neuron_frequency", "neuron_purity"},
)
LEARNS = {"gradient", "quality"}
HAVE = {
    "ConstantAttention": (SMALL, EVERY | DENSE | ADDS | READ | LEARNS),
    "EmbeddingMLP": (nets.EmbeddingMLP(5, 3, (4,)), EVERY | DENSE | ADDS | READ | LEARNS),
    "ToyAddition": (nets.ToyAddition(5, hidden=(4,)), EVERY | DENSE | LEARNS),
    "Toy with logits": (nets.ToyAddition(5, hidden=(4,), kind="classification"), EVERY | DENSE | LEARNS),
    "GroupDecoder": (nets.GroupDecoder(side=2, hidden=(4,)), EVERY | DENSE | LEARNS),
    "TokenTransformer": (nets.TokenTransformer(5, 4, depth=1, width=3), EVERY | ADDS | LEARNS),
    "TwoLayer": (nets.TwoLayer(5, 4), EVERY | ADDS | READ | LEARNS),
    "ImageMLP": (nets.ImageMLP(hidden=(4,)), EVERY | DENSE),
}


def test_weights_of_neurons_in_every_kind_of_first_layer():
    for model, names in (
        (SMALL, {"W_in", "W_out"}),
        (nets.EmbeddingMLP(5, 3, (4,)), {"W_in", "second", "W_out"}),
        (nets.EmbeddingMLP(5, 3, (4, 6)), {"W_in", "second"}),
        (nets.TwoLayer(5, 4), {"W_in", "W_out"}),
    ):
        parameters = draw(model, runs=2, seed=0).parameters
        found = neuron_weights(model, parameters)
        assert found.keys() == names
        E, layer = (
            parameters["embedding"],
            parameters.get("hidden1.weight", np.broadcast_to(np.eye(4), (2, 4, 4))),
        )
        np.testing.assert_allclose(found["W_in"], E @ layer[:, : E.shape[2]], rtol=1e-14)
        if "second" in names:
            np.testing.assert_allclose(found["second"], E @ layer[:, E.shape[2] :], rtol=1e-14)
        if "W_out" in names:
            np.testing.assert_array_equal(found["W_out"], parameters["output.weight"])


# -- networks -----------------------------------------------------------------------------------------------


def test_revived_networks_are_copies_of_their_own_shapes_and_number_type():
    trained = nets.train(
        nets.TwoLayer(5, 4), runs=2, steps=2, record=1, observables="layers", train_fraction=1.0
    )
    before = trained.positions.copy()
    found = nets.networks(trained, 1)
    for value in found.parameters.values():
        assert value.dtype == np.float32
    np.testing.assert_array_equal(found.parameters["embedding"], before[:, 1])
    states, out = found.activations(), found.parameters["output.weight"]
    # Terms of either sign cancel, so that the error of a sum is bounded by the sum of their sizes.
    bound = np.finfo(np.float32).eps * states.shape[-1] * (np.abs(states) @ np.abs(out))
    assert (np.abs(states @ out - found.outputs()) <= bound).all()
    other = found.with_embedding(np.ones((5, 4)))
    assert other.parameters["embedding"].dtype == found.outputs().dtype == np.float32
    assert np.isnan(found.loss("validation")).all()
    for value in found.parameters.values():
        value[:] = 0
    np.testing.assert_array_equal(trained.positions, before)
    np.testing.assert_array_equal(other.parameters["embedding"], np.ones((2, 5, 4)))
    observables = {
        **trained.observables,
        "layers.output.weight": trained.observables["layers.output.weight"][..., :3],
    }
    cut = physics.Trajectory(
        trained.positions,
        trained.steps,
        observables=observables,
        parameters=trained.parameters,
        start=dict(trained.start),
    )
    with pytest.raises(InputError) as said:
        nets.networks(cut)
    assert (
        str(said.value) == "trajectory must hold 'output.weight' of shape (2, 4, 5), got the shape (2, 4, 3)"
    )


# -- small parts --------------------------------------------------------------------------------------------


def test_signals_and_embeddings_broadcast():
    rng = np.random.default_rng(0)
    E, signals = rng.normal(size=(4, 7, 2)), rng.uniform(1, 2, size=(5, 1, 3))
    built = with_signals(E, signals)
    assert built.shape == (5, 4, 7, 2)
    np.testing.assert_array_equal(built[3, 2], with_signals(E[2], signals[3, 0]))
    single = with_signals(E[0], signals[:, 0])
    np.testing.assert_array_equal(single, built[:, 0])
    np.testing.assert_array_equal(with_signals(E, signals[0, 0]), built[0])
    kept = keep_frequencies(E, (k for k in (2, 2, 1)))
    np.testing.assert_allclose(kept, keep_frequencies(E, [1, 2]), atol=1e-15)
    for call in (lambda: keep_frequencies(E, [3.0]), lambda: keep_frequencies(E, "12")):
        with pytest.raises(InputError, match="frequencies must be a whole number of at least 1"):
            call()


def test_rules_of_recording_with_one_step_or_with_thousands_of_digits():
    assert [step for step in range(4) if due([0])(step)] == [0]
    assert [step for step in range(4) if due(np.array([3]))(step)] == [3]
    assert [step for step in range(4) if due((np.int64(2),))(step)] == [2]
    with pytest.raises(InputError, match="record must be at least 1, got 0"):
        recording_steps("0", 3)
    many = "9" * 5000
    for record in (many, f"0,{many}", f"1:2,{many}", f"1:{many},2", f"log:{many}"):
        with pytest.raises(InputError, match="^record must"):
            recording_steps(record, 3)
    assert recording_steps("log", 10).tolist() == sorted({0, *(round(10 ** (k / 20)) for k in range(21))})
    assert recording_steps("log:2", 30).tolist() == [0, 1, 3, 10, 30]
    for wrong in (True, 1.0, None, [1.5], "log:", "log:-1", "1:2:3", "1:2,", " 5"):
        with pytest.raises(InputError, match="^record must"):
            recording_steps(wrong, 3)


def test_examples_are_named_by_numbers_and_not_by_a_mask():
    task = nets.Task(np.zeros((4, 2), int), np.zeros(4, int), 1)
    for wrong in (np.ones(4, bool), [0.0, 1.0], 2, [[0, 1]]):
        with pytest.raises(
            InputError, match="train_examples must be a non-empty list of numbers of examples, got"
        ):
            task.given_split(wrong)
    train, validation = task.given_split(np.array([3, 1], np.uint8), (0,))
    assert (train.tolist(), validation.tolist(), train.dtype) == ([1, 3], [0], np.int64)
    held = nets.Task(np.zeros((4, 2), int), np.zeros(4, int), 1, held_out=np.array([3]))
    with pytest.raises(InputError, match="got all 1 that could be used for it$"):
        held.given_split([3])
    assert held.given_split([0, 3], [1])[1].tolist() == [1]
