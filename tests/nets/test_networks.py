import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

import nets
import physics
from analysis.circles.fourier import frequency_norms
from nets import ConstantAttention, EmbeddingMLP, GroupDecoder, ImageMLP, TokenTransformer, ToyAddition
from nets.interventions import with_signals
from nets.provenance import training_sets
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
    spread = {"embedding_scale": 3.0, "layer_scale": 3.0}  # outputs, so that the nearest targets differ
    revived = nets.networks(trained(MODELS[name], **spread))
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
    changed = nets.interventions.scale_frequency(E, k, factor)
    assert changed.dtype == np.float64
    before, after = np.fft.fft(E, axis=-2), np.fft.fft(changed, axis=-2)
    before[..., [k, E.shape[-2] - k], :] *= factor
    np.testing.assert_allclose(after, before, atol=1e-12)


@given(embeddings(), st.integers(0, 2**32), st.booleans())
def test_signals_come_out_as_asked(drawn, seed, mean):
    E, _ = drawn
    wanted = np.random.default_rng(seed).uniform(0, 5, (*E.shape[:-2], E.shape[-2] // 2))
    wanted[wanted < 1] = 0
    built = with_signals(E, wanted, **({"mean": True} if mean else {}))
    np.testing.assert_allclose(frequency_norms(built), wanted, atol=1e-12)
    np.testing.assert_allclose(built.mean(-2), E.mean(-2) if mean else 0, atol=1e-12)
    given_F, F = np.fft.rfft(E, axis=-2)[..., 1:, :], np.fft.rfft(built, axis=-2)[..., 1:, :]
    overlap = np.abs((given_F.conj() * F).sum(-1))
    np.testing.assert_allclose(overlap, wanted * np.linalg.norm(given_F, axis=-1), atol=1e-10)
    np.testing.assert_allclose(with_signals(E, frequency_norms(E), mean=True), E, atol=1e-12)


@given(embeddings())
def test_keeping_all_is_the_identity_and_keeping_parts_adds_up(drawn):
    E, k = drawn
    every = range(1, E.shape[-2] // 2 + 1)
    np.testing.assert_allclose(nets.keep_frequencies(E, every, mean=True), E, atol=1e-12)
    one, rest = (nets.keep_frequencies(E, chosen) for chosen in ([k], [j for j in every if j != k]))
    mean = nets.keep_frequencies(E, [], mean=True)
    np.testing.assert_allclose(mean, np.broadcast_to(E.mean(-2, keepdims=True), E.shape), atol=1e-12)
    np.testing.assert_allclose(one + rest + mean, E, atol=1e-12)
    signals = frequency_norms(one)
    assert np.delete(signals, k - 1, axis=-1).max(initial=0) < 1e-12
    np.testing.assert_allclose(signals[..., k - 1], frequency_norms(E)[..., k - 1])
    np.testing.assert_allclose(nets.interventions.scale_frequency(E, k, 0), rest + mean, atol=1e-12)


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
        nets.interventions.scale_frequency(E[..., order, :], k, 1.15),
        nets.interventions.scale_frequency(E, other, 1.15)[..., order, :],
        atol=1e-12,
    )
    np.testing.assert_allclose(
        nets.keep_frequencies(E[..., order, :], [k]),
        nets.keep_frequencies(E, [other])[..., order, :],
        atol=1e-12,
    )


def test_training_sets_need_no_layers():
    options = {"runs": 2, "steps": 1, "seed": 4, "train_fraction": 0.5}
    model = nets.ToyAddition(5)
    kept = nets.train(model, observables=("layers",), **options)
    bare = nets.train(model, **options)
    found, examples = training_sets(bare)
    assert found == model
    np.testing.assert_array_equal(examples, nets.networks(kept).examples("train"))
    with pytest.raises(InputError, match=r"trajectory must be made by nets.train"):
        training_sets(physics.Trajectory(np.zeros((1, 1, 3, 2)), [0]))
