"""What every model does with its fields: bounds, types, what it learns, and the order of its draws."""

import numpy as np

import nets
from nets.architecture import draw_layer
from physics import cyclic


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
