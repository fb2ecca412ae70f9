"""What `train` does around the engines: members that differ, thresholds, ends, starts, checkpoints."""

import numpy as np
import pytest

import nets
import physics
from nets.engines.ensemble import batches, draw, dropout_seed

SMALL = nets.ConstantAttention(7)


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_members_with_rates_of_their_own_are_those_trained_alone(engine):
    rates = {
        "learning_rate": [0.01, 0.03, 0.001],
        "weight_decay": [0.0, 1.0, 0.5],
        "embedding_learning_rate": [0.001, 0.01, 0.02],
        "embedding_weight_decay": [0.3, 0.0, 0.1],
        "layer_scale": [1.0, 2.0, 0.5],
        "embedding_scale": [0.5, 1.0, 3.0],
    }
    options = {"steps": 20, "record": 20, "engine": engine, "dtype": "float64"}
    together = nets.train(SMALL, runs=3, **options, **rates)
    for run in range(3):
        own = {name: values[run] for name, values in rates.items()}
        alone = nets.train(SMALL, first_run=run, **options, **own)
        np.testing.assert_allclose(alone.final[0], together.final[run], rtol=0, atol=1e-12)
    assert together.parameters["learning_rate"] == [0.01, 0.03, 0.001]


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_frozen_embedding_stays_and_the_layers_learn(engine):
    options = {"steps": 200, "record": 200, "engine": engine, "observables": ("train_loss", "layers")}
    frozen = nets.train(SMALL, runs=2, freeze_embedding=True, **options)
    np.testing.assert_array_equal(frozen.initial, frozen.final)
    layers = frozen.observables["layers.hidden1.weight"]
    assert (layers[:, 0] != layers[:, -1]).all()
    assert (frozen.observables["train_loss"][:, -1] < 0.8 * frozen.observables["train_loss"][:, 0]).all()


@pytest.mark.parametrize("stream", ["embedding", "layers", "split", "targets", "noise"])
def test_a_shared_stream_is_one_for_all_members_and_the_others_are_their_own(stream):
    def parts(ensemble, run):
        return {
            "embedding": ensemble.parameters["embedding"][run],
            "layers": ensemble.parameters["hidden1.weight"][run],
            "split": ensemble.train[run],
            "targets": ensemble.targets[run],
            "noise": batches(ensemble, 5, 0, 2)[run],
        }

    model = nets.ToyAddition(6)
    own = draw(model, runs=3, seed=1)
    shared = draw(model, runs=3, seed=1, shared=(stream,))
    for run in range(3):
        for name, value in parts(shared, run).items():
            expected = parts(own, 0 if name == stream else run)[name]
            np.testing.assert_array_equal(value, expected)
    shard = draw(model, runs=1, seed=1, first_run=2, shared=(stream,))
    np.testing.assert_array_equal(parts(shard, 0)[stream], parts(own, 0)[stream])


def test_given_starts_and_given_examples():
    embedding = np.random.default_rng(0).standard_normal((7, 2))
    train = [0, 3, 4, 10, 27]
    trajectory = nets.train(
        SMALL,
        runs=2,
        steps=1,
        initial={"embedding": embedding},
        train_examples=train,
        validation_examples=[1, 2],
        dtype="float64",
    )
    np.testing.assert_array_equal(trajectory.initial, np.stack([embedding, embedding]))
    assert trajectory.parameters["train_examples"] == train
    digest = trajectory.parameters["initial"]["embedding"]
    other = nets.train(SMALL, steps=1, initial={"embedding": 2 * embedding})
    assert digest.startswith("sha256:")
    assert digest != other.parameters["initial"]["embedding"]


def test_thresholds_are_the_first_tracked_step_at_which_they_hold():
    options = {"runs": 4, "steps": 300, "weight_decay": 0.1, "learning_rate": 0.02}
    every = nets.train(SMALL, record=1, **options)
    tracked = nets.train(
        SMALL, record=300, track=5, thresholds={"train_accuracy": 0.6, "validation_accuracy": 0.99}, **options
    )
    accuracy = every.observables["train_accuracy"][:, ::5]
    reached = tracked.observables["steps_to_train_accuracy"]
    assert np.isnan(reached[:, 0]).all()
    assert np.isfinite(reached[:, -1]).any()
    for run in range(4):
        hit = np.flatnonzero(accuracy[run] >= 0.6)
        expected = 5 * hit[0] if len(hit) else np.nan
        np.testing.assert_equal(reached[run, -1], float(expected))
    assert np.isnan(tracked.observables["steps_to_validation_accuracy"]).all()


def test_a_threshold_is_reached_by_a_value_that_equals_it():
    options = {"runs": 4, "steps": 100, "weight_decay": 0.1}
    every = nets.train(SMALL, record=5, **options)
    accuracy = every.observables["train_accuracy"]
    level = float(accuracy.max(axis=1).min())  # all members reach it, and one of them no more
    tracked = nets.train(SMALL, record=100, track=5, thresholds={"train_accuracy": level}, **options)
    first = every.steps[(accuracy >= level).argmax(axis=1)]
    np.testing.assert_array_equal(tracked.observables["steps_to_train_accuracy"][:, -1], first)


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_member_that_has_ended_stays_and_does_not_disturb_the_others(engine):
    options = {"runs": 4, "steps": 120, "record": 10, "engine": engine, "dtype": "float64"}
    free = nets.train(SMALL, **options)

    def second_from_forty(step, embeddings, observables):
        assert embeddings.shape == (4, 7, 2)
        return np.array([False, step >= 40, False, False])

    stopped = nets.train(SMALL, stop=second_from_forty, **options)
    others = [0, 2, 3]
    np.testing.assert_allclose(stopped.positions[others], free.positions[others], rtol=0, atol=1e-12)
    np.testing.assert_allclose(stopped.positions[1, :5], free.positions[1, :5], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(stopped.positions[1, 4:], np.repeat(stopped.positions[1, 4:5], 9, axis=0))
    np.testing.assert_array_equal(stopped.observables["status"][1], [0] * 5 + [1] * 8)
    assert (stopped.observables["status"][others] == 0).all()
    assert stopped.parameters["stop"] == "second_from_forty"


def test_scales_multiply_what_they_name():
    plain = draw(SMALL, runs=2, seed=3).parameters
    scaled = draw(SMALL, runs=2, seed=3, layer_scale=[2.0, 4.0], embedding_scale=[3.0, 5.0]).parameters
    for name, values in plain.items():
        for run, factor in enumerate((3.0, 5.0) if name == "embedding" else (2.0, 4.0)):
            np.testing.assert_array_equal(scaled[name][run], factor * values[run])
    given = {"embedding": np.arange(14.0).reshape(7, 2), "output.bias": np.ones((1, 7))}
    kept = draw(SMALL, runs=2, seed=3, initial=given, layer_scale=2.0, embedding_scale=3.0).parameters
    for name, value in given.items():
        np.testing.assert_array_equal(kept[name], [value, value])


def test_stopping_at_thresholds():
    trajectory = nets.train(
        SMALL,
        runs=6,
        steps=2000,
        record="log:5",
        weight_decay=0.1,
        thresholds={"train_accuracy": 0.9},
        track=10,
        stop="thresholds",
    )
    reached = trajectory.observables["steps_to_train_accuracy"][:, -1]
    assert np.isfinite(reached).all()
    for run in range(6):
        ended = trajectory.steps >= reached[run]
        np.testing.assert_array_equal(
            trajectory.observables["status"][run, trajectory.steps > reached[run]], 1
        )
        assert (trajectory.positions[run, ended] == trajectory.positions[run, -1]).all()


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_diverging_member_is_marked_and_the_others_go_on(engine):
    rates = [0.01, 1e300, 0.01]
    options = {
        "runs": 3,
        "steps": 60,
        "record": 10,
        "weight_decay": 0.0,
        "engine": engine,
        "dtype": "float64",
    }
    with pytest.warns(RuntimeWarning, match="1 of 3 runs diverged: .* parameter of run 1 is not finite"):
        found = nets.train(SMALL, learning_rate=rates, **options)
    calm = nets.train(SMALL, learning_rate=0.01, **options)
    np.testing.assert_allclose(found.positions[[0, 2]], calm.positions[[0, 2]], rtol=0, atol=1e-12)
    status = found.observables["status"][1]
    assert status[0] == 0
    assert status[-1] == 2
    assert np.isnan(found.positions[1, status == 2]).all()
    assert np.isnan(found.observables["train_accuracy"][1, status == 2]).all()
    assert np.isfinite(found.positions[1, status == 0]).all()


def test_what_can_be_observed():
    names = ("train_loss", "weight_norm", "bias_norm", "quality", "gradient", "layers")
    found = nets.train(nets.ToyAddition(6), runs=2, steps=4, record=2, observables=names, train_fraction=0.7)
    shapes = {name: values.shape[2:] for name, values in found.observables.items()}
    assert shapes.pop("layers.hidden2.weight") == (200, 200)
    assert shapes.pop("gradient") == (6, 1)
    weights = found.observables["layers.hidden1.weight"]
    np.testing.assert_allclose(found.observables["weight_norm"], np.abs(weights).mean((2, 3)), rtol=1e-6)
    expected = physics.representation_quality(found.positions, physics.EffectiveTheory(6))
    np.testing.assert_array_equal(found.observables["quality"], expected)
    assert "validation_loss" not in found.observables


@pytest.mark.parametrize("model", [nets.ToyAddition(6), nets.GroupDecoder(physics.symmetric(3), side=2)])
def test_quality_is_that_of_the_tolerance_given(model):
    loose = nets.train(model, runs=2, steps=4, record=2, observables=("quality",), delta=0.5)
    expected = physics.representation_quality(loose, model.theory, 0.5)
    np.testing.assert_array_equal(loose.observables["quality"], expected)
    assert (expected > physics.representation_quality(loose, model.theory)).any()


def test_batches_and_dropout_have_streams_of_their_own():
    ensemble = draw(nets.ToyAddition(8), runs=2, seed=3)
    in_epoch = ensemble.train.shape[1] // 4
    order = batches(ensemble, 4, 0, 6 * in_epoch).reshape(2, 6, -1)
    assert len({tuple(epoch) for run in order for epoch in run}) == 12, "an order for each epoch and member"
    masks = [dropout_seed(noise, step) for noise in ensemble.noise for step in range(20)]
    assert len(set(masks)) == 40, "masks for each step and member"
    orders = set()
    for noise in ensemble.noise:
        for epoch in range(20):
            key = (*noise.spawn_key, 0, epoch)
            stream = np.random.SeedSequence(noise.entropy, spawn_key=key)
            orders.add(int(stream.generate_state(1, np.uint64)[0]))
    assert not orders & set(masks), "and none in common"
    stream = np.random.SeedSequence(3, spawn_key=(1, 4, 0, 2))
    expected = np.random.default_rng(stream).permutation(ensemble.train.shape[1])
    np.testing.assert_array_equal(order[1, 2], expected[: 4 * in_epoch])


# -- hooks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", [None, "t.h5"])
def test_a_callback_sees_each_frame_and_ends_the_training(tmp_path, out):
    path = None if out is None else tmp_path / out
    options = {"runs": 2, "steps": 100, "record": 20, "seed": 1}
    seen = []

    def until_sixty(step, time, embeddings, observables):
        seen.append((step, time, embeddings.copy(), observables["train_loss"].copy()))
        embeddings[:] = 0  # its own copy
        if step == 60:
            raise StopIteration

    ended = nets.train(SMALL, out=path, callback=until_sixty, **options)
    whole = nets.train(SMALL, **options)
    assert ended.complete
    np.testing.assert_array_equal(ended.steps, [0, 20, 40, 60])
    np.testing.assert_array_equal(ended.times, ended.steps)
    np.testing.assert_array_equal(ended.positions, whole.positions[:, :4])
    assert [(step, time) for step, time, *_ in seen] == [(0, 0.0), (20, 20.0), (40, 40.0), (60, 60.0)]
    for frame, (_, _, embeddings, loss) in enumerate(seen):
        np.testing.assert_array_equal(embeddings, whole.positions[:, frame])
        np.testing.assert_array_equal(loss, whole.observables["train_loss"][:, frame])
    if path is not None:
        assert sorted(item.name for item in tmp_path.iterdir()) == ["t.h5"]
        again = nets.train(SMALL, out=path, resume=True, callback=until_sixty, **options)
        assert again.frames == 4
        assert len(seen) == 4, "a run that is complete is returned as it is"


def test_progress_is_told_how_far_it_is():
    told = []
    nets.train(SMALL, steps=70, record=20, progress=lambda done, total: told.append((done, total)))
    done = [one for one, _ in told]
    assert done == sorted(set(done))
    assert done[-1] == 70
    assert {total for _, total in told} == {70}
    told.clear()  # what is trained does not end where nothing more is recorded
    nets.train(SMALL, steps=70, record=[0, 20], progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (70, 70)
