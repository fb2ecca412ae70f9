"""What every model does with its fields: bounds, types, what it learns, and the order of its draws."""

import numpy as np
import pytest

import nets
from nets.architecture import draw_layer
from nets.engines.ensemble import draw
from physics import cyclic, symmetric

SMALL = {
    "ConstantAttention": nets.ConstantAttention(7, 3, 4, "xavier_normal"),
    "EmbeddingMLP": nets.EmbeddingMLP(7, 3, (4, 5), "kaiming_uniform", "asinh", 0.5),
    "ToyAddition": nets.ToyAddition(7, 2, (4,), 3, "classification", 0.5, "kaiming_normal"),
    "GroupDecoder": nets.GroupDecoder(symmetric(3), 2, (4,), 3, 0.2, 0.01, "xavier_uniform"),
    "TokenTransformer": nets.TokenTransformer(7, 6, 3, 2, 5, 0.1, causal=False),
    "TwoLayer": nets.TwoLayer(7, 4, "abs", "single_frequency", 0.2),
    "ImageMLP": nets.ImageMLP(hidden=(4, 5)),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_model_states_its_shapes_and_what_it_learns(name):
    model = SMALL[name]
    tokens, dim = {"GroupDecoder": (6, 4), "TwoLayer": (7, 4), "ImageMLP": (10, 5)}.get(
        name, (7, getattr(model, "dim", None))
    )
    assert (model.tokens, model.dim) == (tokens, dim)
    drawn = draw(model, runs=1, seed=0)
    assert tuple(drawn.parameters)[: len(model.encoder)] == tuple(model.encoder)
    if name == "ImageMLP":
        assert model.theory is None
        assert model.encoder == ("hidden1.weight", "hidden1.bias", "hidden2.weight", "hidden2.bias")
    else:
        assert model.encoder == ("embedding",)
        assert drawn.parameters["embedding"].shape == (1, tokens, dim)
        assert model.theory.tokens == tokens
        assert model.theory.modulus == (None if name in ("ToyAddition", "GroupDecoder") else 7)
        assert (model.theory.group is None) is (name != "GroupDecoder")
    ordered = name not in ("ConstantAttention", "ToyAddition", "ImageMLP")
    pairs = tokens**2 if ordered else tokens * (tokens + 1) // 2
    assert len(model.task) == (1797 if name == "ImageMLP" else pairs)
    assert model.task.whole is (name == "TwoLayer")
    squared = name in ("GroupDecoder", "ImageMLP")
    assert model.loss == ("mean_squared_error" if squared else "cross_entropy")
    assert (drawn.targets is None) is not squared
    assert model.dropout == (0.1 if name == "TokenTransformer" else 0)
    assert model.embedding_penalty == (0.01 if name == "GroupDecoder" else 0)
    if name == "ImageMLP":
        np.testing.assert_array_equal(drawn.targets[0], np.eye(10))


def test_a_transformer_draws_block_by_block_and_the_output_last():
    model = nets.TokenTransformer(7, 6, 2, 2, 5, initialisation="kaiming_normal")
    plain = nets.TokenTransformer(7, 6, 2, 2, 5)
    for one in (model, plain):
        rule, own = one.initialisation, np.random.default_rng(2)
        expected = {"embedding": np.random.default_rng(1).standard_normal((7, 6))}
        for block in ("block1", "block2"):
            for part in ("attention", "feed_forward"):
                expected[f"{block}.{part}.norm.weight"] = np.ones((1, 6))
                expected[f"{block}.{part}.norm.bias"] = np.zeros((1, 6))
            joint = "xavier_uniform" if rule == "pytorch" else rule
            expected |= draw_layer(f"{block}.attention.in", joint, 6, 18, own)
            expected |= draw_layer(f"{block}.attention.out", rule, 6, 6, own)
            expected[f"{block}.attention.out.bias"] = np.zeros((1, 6))
            expected |= draw_layer(f"{block}.feed_forward.in", rule, 6, 5, own)
            expected |= draw_layer(f"{block}.feed_forward.out", rule, 5, 6, own)
        expected |= draw_layer("output", rule, 12, 7, own)
        found = one.initial(np.random.default_rng(1), np.random.default_rng(2))
        assert list(found) == list(expected)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert plain.initial(*map(np.random.default_rng, (1, 2)))["block2.feed_forward.in.bias"].any()


# -- images -------------------------------------------------------------------------------------------------


def test_a_group_may_be_its_table_and_learns_its_own_products():
    model = nets.GroupDecoder(cyclic(5).table.tolist(), side=2, hidden=(3,))
    assert (model.tokens, model.dim, model.group.order) == (5, 4, 5)
    a, b = model.task.inputs.T
    np.testing.assert_array_equal(model.task.labels, (a + b) % 5)
    assert model.targets(np.random.default_rng(0)).shape == (5, 30)
