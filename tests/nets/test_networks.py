import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

import analysis
import nets
import physics
from nets import ConstantAttention, EmbeddingMLP, GroupDecoder, ImageMLP, TokenTransformer, ToyAddition
from physics import InputError

ALL = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "layers")
MODELS = {
    "sum": ConstantAttention(7, 3, 8),
    "concatenation": EmbeddingMLP(5, 4, (6, 7)),
    "tanh and an even part": EmbeddingMLP(5, 4, (6, 7), activation="tanh", even=0.5),
    "regression": ToyAddition(5, hidden=(9, 8), outputs_dim=4),
    "classification": ToyAddition(5, 2, hidden=(9,), kind="classification"),
    "group": GroupDecoder(physics.theory.dihedral(4), side=2, hidden=(9,), outputs_dim=5),
    "transformer": TokenTransformer(5, 8, depth=1, width=8, dropout=0.2),
    "images": ImageMLP(hidden=(6,)),
}


def trained(model, **options):
    return nets.train(model, **{"runs": 3, "steps": 40, "record": 20, "observables": ALL} | options)


# -- Trained networks, revived ------------------------------------------------------------------------------


def test_networks_are_revived_from_what_they_began_with_and_not_drawn_anew(tmp_path):
    """A later NumPy may draw other numbers: another seed stands for it here."""
    made = nets.train(MODELS["regression"], runs=2, steps=3, record=3, observables=ALL, out=tmp_path / "t.h5")
    other = physics.load(tmp_path / "t.h5")
    other.parameters["seed"] = 99
    for part in ("train", "validation"):
        np.testing.assert_array_equal(nets.networks(other).examples(part), nets.networks(made).examples(part))
        np.testing.assert_array_equal(nets.networks(other).loss(part), nets.networks(made).loss(part))
    start = {name.removeprefix("parameter."): v for name, v in made.start.items() if "parameter." in name}
    again = nets.train(
        MODELS["regression"],
        steps=3,
        record=3,
        initial={name: values[1] for name, values in start.items()},
        train_examples=made.start["train_examples"][1].tolist(),
        seed=0,
        run_numbers=[1],
    )
    np.testing.assert_array_equal(again.final[0], made.final[1])
    drawn = nets.train(MODELS["regression"], runs=2, steps=3, record=3, observables=ALL, keep_start=False)
    assert drawn.start == {}
    np.testing.assert_array_equal(nets.networks(drawn).loss("train"), nets.networks(made).loss("train"))
    shared = trained(MODELS["regression"], shared=("split",), keep_start=False)
    recorded = shared.observables["train_loss"][:, -1]  # added in another order
    np.testing.assert_allclose(nets.networks(shared).loss("train"), recorded, rtol=1e-6)


def test_the_pool_of_a_seed_is_kept():
    seed = np.random.SeedSequence(5, pool_size=8)
    made = nets.train(MODELS["sum"], runs=2, steps=1, observables=ALL, seed=seed, keep_start=False)
    for part in ("train", "validation"):
        np.testing.assert_allclose(
            nets.networks(made).loss(part), made.observables[f"{part}_loss"][:, -1], rtol=1e-5
        )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-14)])
def test_revived_networks_repeat_what_was_recorded(name, dtype, tolerance, tmp_path):
    trajectory = trained(MODELS[name], dtype=dtype, out=tmp_path / "t.h5")
    for frame in range(-1, 3):
        revived = nets.networks(trajectory, frame)
        assert revived.runs == 3
        assert revived.outputs().shape[:2] == (3, len(MODELS[name].task))
        for part in ("train", "validation"):
            recorded = trajectory.observables[f"{part}_loss"][:, frame]
            np.testing.assert_allclose(revived.loss(part), recorded, rtol=tolerance, atol=tolerance)
            recorded = trajectory.observables[f"{part}_accuracy"][:, frame]
            np.testing.assert_array_equal(revived.accuracy(part), recorded)


@pytest.mark.parametrize(
    "options",
    [
        {"train_examples": [0, 3, 5, 8], "validation_examples": [1, 9]},
        {"train_fraction": 0.4, "first_run": 5},
        {"seed": np.random.SeedSequence(8, spawn_key=(2,))},
        {"shared": ("split", "layers"), "embedding_scale": [1.0, 0.5, 2.0]},
        {"initial": {"embedding": np.arange(10.0).reshape(5, 2) / 7}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_splits_and_starts_are_made_again(options):
    trajectory = trained(ToyAddition(5, 2, hidden=(6,)), **options)
    for made, members in ((trajectory, slice(None)), (trajectory.run(2), slice(2, 3))):
        revived = nets.networks(made)
        for part in ("train", "validation"):
            recorded = trajectory.observables[f"{part}_loss"][members, -1]
            np.testing.assert_allclose(revived.loss(part), recorded, rtol=2e-6)
        both = np.concatenate([revived.examples("train"), revived.examples("validation")], axis=1)
        assert all(len(set(row)) == both.shape[1] for row in both.tolist())
    if "train_examples" in options:
        assert revived.examples("train").tolist() == [[0, 3, 5, 8]]
        assert revived.examples("validation").tolist() == [[1, 9]]


@pytest.mark.parametrize("name", ["sum", "regression"])
def test_a_member_is_alone_what_it_is_in_the_ensemble(name):
    together = nets.networks(trained(MODELS[name]))
    for run in range(3):
        alone = together.member(run)
        assert alone.runs == 1
        np.testing.assert_allclose(alone.outputs()[0], together.outputs()[run], rtol=1e-6)
        for part in ("train", "validation"):
            np.testing.assert_array_equal(alone.examples(part), together.examples(part)[[run]])
            np.testing.assert_allclose(alone.loss(part), together.loss(part)[[run]], rtol=1e-6)
            np.testing.assert_array_equal(alone.accuracy(part), together.accuracy(part)[[run]])


def test_outputs_are_those_of_the_plain_network():
    revived = nets.networks(trained(MODELS["sum"]))
    outputs = revived.outputs()
    assert outputs.shape == (3, 28, 7)
    assert outputs.dtype == np.float32
    for run in range(3):
        E, W, b, V, c = (
            revived.parameters[name][run].astype(float)
            for name in ("embedding", "hidden1.weight", "hidden1.bias", "output.weight", "output.bias")
        )
        pairs = revived.model.task.inputs
        expected = np.maximum(E[pairs].sum(1) @ W + b, 0) @ V + c
        np.testing.assert_allclose(outputs[run], expected, atol=1e-5)
    own = revived.outputs(revived.model.task.inputs[revived.examples("validation")])
    index = revived.examples("validation")[:, :, None]
    np.testing.assert_allclose(own, np.take_along_axis(outputs, index, 1), atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "regression", "classification"])
def test_the_plane_of_pair_sums_is_classified_as_the_pairs_are(name):
    revived = nets.networks(trained(MODELS[name]))
    pairs = revived.model.task.inputs
    sums = revived.parameters["embedding"][:, pairs].sum(2)
    outputs, targets = revived.outputs(), revived.ensemble.targets
    if targets is None:
        expected = outputs.argmax(-1)
    else:
        expected = np.linalg.norm(outputs[:, :, None] - targets[:, None], axis=-1).argmin(-1)
    found = revived.classify(sums)
    np.testing.assert_array_equal(found, expected)
    hits = found == revived.model.task.labels
    part = np.take_along_axis(hits, revived.examples("validation"), 1)
    np.testing.assert_allclose(part.mean(1), revived.accuracy("validation"))
    np.testing.assert_array_equal(revived.classify(sums[1])[1], expected[1])


@pytest.mark.parametrize("even", [0.0, 0.7])
@pytest.mark.parametrize("activation", ["relu", "silu", "tanh", "asinh"])
def test_layers_without_pytorch_are_those_of_pytorch(activation, even):
    layers = nets.Architecture("data", (3, 6, 5, 4), activation, "cross_entropy", even=even)
    generator = np.random.default_rng(0)
    parameters = layers.draw("pytorch", generator)
    states = 20 * generator.standard_normal((9, 3))
    tensors = {name: torch.tensor(value)[None] for name, value in parameters.items()}
    expected = layers.outputs(tensors, torch.tensor(states)[None])[0].numpy()
    np.testing.assert_allclose(layers.decoded(parameters, states), expected, rtol=1e-12, atol=1e-12)
    single = {name: value.astype(np.float32) for name, value in parameters.items()}
    assert layers.decoded(single, states.astype(np.float32)).dtype == np.float32


def test_another_embedding_for_the_same_layers():
    revived = nets.networks(trained(MODELS["concatenation"]))
    E = revived.parameters["embedding"]
    same = revived.with_embedding(nets.keep_frequencies(E, range(1, 3), mean=True))
    np.testing.assert_allclose(same.outputs(), revived.outputs(), atol=1e-5)
    np.testing.assert_allclose(same.loss("validation"), revived.loss("validation"), rtol=1e-5)
    blank = revived.with_embedding(np.zeros(E.shape[1:]))
    assert np.ptp(blank.outputs(), axis=1).max() < 1e-6
    assert (blank.loss("train") > revived.loss("train")).all()
    np.testing.assert_array_equal(revived.parameters["embedding"], E)


def test_diverged_networks_have_no_accuracy():
    with pytest.warns(RuntimeWarning, match="1 of 2 runs diverged"):
        trajectory = trained(MODELS["sum"], runs=2, learning_rate=[0.01, 1e30], weight_decay=0.0)
    accuracy = nets.networks(trajectory).accuracy("validation")
    np.testing.assert_array_equal(accuracy, trajectory.observables["validation_accuracy"][:, -1])
    assert np.isfinite(accuracy).tolist() == [True, False]


def test_what_cannot_be_revived_is_said():
    for trajectory, sentence in (
        (trained(MODELS["sum"], observables=("train_loss",)), "trajectory must hold the layers"),
        (physics.simulate(steps=2), "trajectory must be made by nets.train to restore its networks, got"),
    ):
        with pytest.raises(InputError, match=sentence):
            nets.networks(trajectory)
    whole = trained(MODELS["sum"])
    with pytest.raises(InputError, match="frame must be below 3, got 3"):
        nets.networks(whole, 3)
    part = {name: whole.observables[name] for name in whole.observables if name != "layers.output.bias"}
    changed = [
        (part, whole.parameters, r"must hold 'output.bias' of shape \(3, 1, 7\), got none"),
        (
            whole.observables,
            whole.parameters | {"model": {"type": "Perceptron"}},
            "model of the trajectory must be one of Constant.*, or be imported first, got Perceptron",
        ),
    ]
    for observables, parameters, sentence in changed:
        with pytest.raises(InputError, match=sentence):
            nets.networks(
                physics.Trajectory(
                    whole.positions, whole.steps, observables=observables, parameters=parameters
                )
            )


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda n: n.loss("test"), "part must be one of 'train', 'validation', got 'test'"),
        (lambda n: n.member(99), "run must be at most 2, got 99"),
        (lambda n: n.member(3), "run must be at most 2, got 3"),
        (lambda n: n.member(-1), "run must be at least 0, got -1"),
        (lambda n: n.outputs([[0, 5]]), "inputs must be tokens from 0 to 4, got 0 to 5"),
        (lambda n: n.outputs([[0.0, 1.0]]), "inputs must be whole numbers of shape (examples, 2), or"),
        (lambda n: n.outputs([0, 1]), "inputs must be whole numbers of shape (examples, 2), or"),
        (lambda n: n.outputs(np.zeros((2, 4, 2), int)), "inputs must be given once, or for each of 3 runs"),
        (lambda n: n.with_embedding(np.zeros((5, 3))), "E must have the shape (5, 4), or (3, 5, 4) for all"),
        (lambda n: n.with_embedding(np.full((5, 4), np.nan)), "E must be finite"),
        (
            lambda n: n.classify(np.zeros((2, 4))),
            "classify needs a model that adds two embeddings; Embedding",
        ),
    ],
)
def test_bad_questions_are_answered_in_a_sentence(ask, sentence):
    revived = nets.networks(trained(MODELS["concatenation"], steps=1))
    with pytest.raises(InputError) as error:
        ask(revived)
    assert str(error.value).startswith(sentence)


def test_a_model_without_embedding_has_none_to_change():
    revived = nets.networks(trained(MODELS["images"], steps=1))
    assert "embedding" not in revived.parameters
    with pytest.raises(InputError, match="with_embedding needs a model with an embedding; ImageMLP has none"):
        revived.with_embedding(np.zeros((10, 6)))
    with pytest.raises(InputError, match=r"inputs must be numbers of shape \(examples, 64\), or \(runs, ex"):
        revived.outputs(np.zeros((2, 63)))
    assert revived.outputs(np.zeros((2, 64), int)).shape == (3, 2, 10)


def test_points_of_another_space_are_refused():
    revived = nets.networks(trained(MODELS["sum"], steps=1))
    with pytest.raises(InputError, match=r"points must have the shape \(points, 3\), or"):
        revived.classify(np.zeros((5, 2)))


# -- Interventions on an embedding --------------------------------------------------------------------------


@st.composite
def embeddings(draw):
    """An embedding of an odd or even number of tokens, perhaps with leading axes, and one frequency of it."""
    tokens = draw(st.integers(3, 14))
    shape = (*draw(array_shapes(min_dims=0, max_dims=2, max_side=3)), tokens, draw(st.integers(1, 4)))
    E = np.random.default_rng(draw(st.integers(0, 2**32))).standard_normal(shape)
    return E, draw(st.integers(1, tokens // 2))


@given(embeddings(), st.floats(0, 3))
def test_scaling_a_circle_leaves_the_others(drawn, factor):
    E, k = drawn
    changed = nets.scale_frequency(E, k, factor)
    assert changed.dtype == np.float64
    before, after = np.fft.fft(E, axis=-2), np.fft.fft(changed, axis=-2)
    before[..., [k, E.shape[-2] - k], :] *= factor
    np.testing.assert_allclose(after, before, atol=1e-12)


@given(embeddings(), st.integers(0, 2**32), st.booleans())
def test_signals_come_out_as_asked(drawn, seed, mean):
    E, _ = drawn
    wanted = np.random.default_rng(seed).uniform(0, 5, (*E.shape[:-2], E.shape[-2] // 2))
    wanted[wanted < 1] = 0
    built = nets.with_signals(E, wanted, mean=mean)
    np.testing.assert_allclose(analysis.fourier_signals(built), wanted, atol=1e-12)
    np.testing.assert_allclose(built.mean(-2), E.mean(-2) if mean else 0, atol=1e-12)
    given_F, F = np.fft.rfft(E, axis=-2)[..., 1:, :], np.fft.rfft(built, axis=-2)[..., 1:, :]
    overlap = np.abs((given_F.conj() * F).sum(-1))
    np.testing.assert_allclose(overlap, wanted * np.linalg.norm(given_F, axis=-1), atol=1e-10)
    np.testing.assert_allclose(nets.with_signals(E, analysis.fourier_signals(E), mean=True), E, atol=1e-12)


@given(embeddings())
def test_keeping_all_is_the_identity_and_keeping_parts_adds_up(drawn):
    E, k = drawn
    every = range(1, E.shape[-2] // 2 + 1)
    np.testing.assert_allclose(nets.keep_frequencies(E, every, mean=True), E, atol=1e-12)
    one, rest = (nets.keep_frequencies(E, chosen) for chosen in ([k], [j for j in every if j != k]))
    mean = nets.keep_frequencies(E, [], mean=True)
    np.testing.assert_allclose(mean, np.broadcast_to(E.mean(-2, keepdims=True), E.shape), atol=1e-12)
    np.testing.assert_allclose(one + rest + mean, E, atol=1e-12)
    signals = analysis.fourier_signals(one)
    assert np.delete(signals, k - 1, axis=-1).max(initial=0) < 1e-12
    np.testing.assert_allclose(signals[..., k - 1], analysis.fourier_signals(E)[..., k - 1])
    np.testing.assert_allclose(nets.scale_frequency(E, k, 0), rest + mean, atol=1e-12)


@given(embeddings(), st.data())
def test_relabelling_by_a_unit_permutes_the_frequencies(drawn, data):
    """F_k of the embedding n → E_{u n} is F_{u⁻¹ k} of E, so interventions follow the relabeling."""
    E, k = drawn
    p = E.shape[-2]
    u = data.draw(st.sampled_from([u for u in range(1, p) if np.gcd(u, p) == 1]))
    order = u * np.arange(p) % p
    other = pow(u, -1, p) * k % p
    other = min(other, p - other)
    np.testing.assert_allclose(
        nets.scale_frequency(E[..., order, :], k, 1.15),
        nets.scale_frequency(E, other, 1.15)[..., order, :],
        atol=1e-12,
    )
    np.testing.assert_allclose(
        nets.keep_frequencies(E[..., order, :], [k]),
        nets.keep_frequencies(E, [other])[..., order, :],
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda E: nets.scale_frequency(E, 0, 1.0), "frequency must be at least 1, got 0"),
        (lambda E: nets.scale_frequency(E, 4, 1.0), "frequency must be at most 3 for 6 tokens, got 4"),
        (lambda E: nets.scale_frequency(E, 1.5, 1.0), "frequency must be a whole number of at least 1"),
        (
            lambda E: nets.scale_frequency(E, 1, -0.1),
            "factor must be a finite number of at least 0, got -",
        ),
        (lambda E: nets.keep_frequencies(E, [1, 7]), "frequencies must be at most 3 for 6 tokens, got 7"),
        (lambda E: nets.keep_frequencies(E, 2), "frequencies must be a sequence of whole numbers, got 2"),
        (lambda E: nets.with_signals(E, [1.0]), "signals must hold one norm for each of the 3 frequencies"),
        (lambda E: nets.with_signals(E, [1.0, -1.0, 0]), "signals must be at least 0, got -1"),
        (lambda E: nets.with_signals([E, E], np.ones((3, 3))), "signals must have a shape that broadcasts"),
        (
            lambda E: nets.with_signals(0 * E, [0, 1, 0]),
            "E must have a signal at frequency 2 that can be scaled, got 0",
        ),
        (lambda E: nets.scale_frequency(E[:2], 1, 1.0), "E must hold at least 3 tokens, got 2"),
    ],
)
def test_interventions_refuse_in_a_sentence(call, sentence):
    with pytest.raises(InputError) as error:
        call(np.random.default_rng(1).standard_normal((6, 2)))
    assert str(error.value).startswith(sentence)


def test_one_embedding_meets_fresh_layers_and_splits():
    """Ding §3.2.1: survival rates fix the embedding and draw everything else anew."""
    model = EmbeddingMLP(7, 4, (6,))
    E = nets.scale_frequency(np.random.default_rng(3).standard_normal((7, 4)), 2, 1.15)
    trajectory = trained(model, initial={"embedding": E}, steps=1)
    first, *others = nets.networks(trajectory, 0).parameters["embedding"]
    np.testing.assert_array_equal(first, E.astype(np.float32))
    assert all(np.array_equal(other, first) for other in others)
    start = nets.networks(trajectory, 0)
    assert distinct(start.parameters["hidden1.weight"]) == distinct(start.examples("train")) == 3
    plain = nets.networks(trained(model, steps=1), 0)
    for name in ("hidden1.weight", "output.bias"):
        np.testing.assert_array_equal(start.parameters[name], plain.parameters[name])
    np.testing.assert_array_equal(start.examples("train"), plain.examples("train"))


def test_the_same_layers_and_split_meet_fresh_embeddings():
    start = nets.networks(trained(EmbeddingMLP(7, 4, (6,)), shared=("layers", "split"), steps=1), 0)
    for name in ("hidden1.weight", "hidden1.bias", "output.weight", "output.bias"):
        assert distinct(start.parameters[name]) == 1
    assert distinct(start.examples("train")) == 1
    assert distinct(start.parameters["embedding"]) == 3


def distinct(members):
    return len({member.tobytes() for member in np.ascontiguousarray(members)})


def test_training_sets_need_no_layers():
    options = {"runs": 2, "steps": 1, "seed": 4, "train_fraction": 0.5}
    model = nets.ToyAddition(5)
    kept = nets.train(model, observables=("layers",), **options)
    bare = nets.train(model, **options)
    found, examples = nets.training_sets(bare)
    assert found == model
    np.testing.assert_array_equal(examples, nets.networks(kept).examples("train"))
    with pytest.raises(InputError, match=r"trajectory must be made by nets.train"):
        nets.training_sets(physics.Trajectory(np.zeros((1, 1, 3, 2)), [0]))
