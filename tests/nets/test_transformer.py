import numpy as np
import pytest
import torch

import nets
from nets import TokenTransformer
from nets.engines.torch import Dropout


def streams(seed, run):
    child = np.random.SeedSequence(seed).spawn(run + 1)[run]
    return [np.random.default_rng(stream) for stream in child.spawn(5)]


class PlainTransformer(torch.nn.Module):
    """The model of PyTorch's own modules, one network at a time."""

    def __init__(self, model):
        super().__init__()
        self.embedding = torch.nn.Embedding(model.tokens, model.dim)
        self.blocks = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(
                model.dim, model.heads, model.width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(model.depth)
        )
        self.output = torch.nn.Linear(2 * model.dim, model.tokens)
        self.mask = torch.nn.Transformer.generate_square_subsequent_mask(2) if model.causal else None

    def forward(self, pairs):
        states = self.embedding(pairs)
        for block in self.blocks:
            states = block(states, src_mask=None if self.mask is None else self.mask.to(states.dtype))
        return self.output(states.flatten(1))


PLACES = {
    "attention.in.weight": "self_attn.in_proj_weight",
    "attention.in.bias": "self_attn.in_proj_bias",
    "attention.out.weight": "self_attn.out_proj.weight",
    "attention.out.bias": "self_attn.out_proj.bias",
    "attention.norm.weight": "norm1.weight",
    "attention.norm.bias": "norm1.bias",
    "feed_forward.in.weight": "linear1.weight",
    "feed_forward.in.bias": "linear1.bias",
    "feed_forward.out.weight": "linear2.weight",
    "feed_forward.out.bias": "linear2.bias",
    "feed_forward.norm.weight": "norm2.weight",
    "feed_forward.norm.bias": "norm2.bias",
}


def in_modules(model, drawn):
    """Put drawn parameters of one member into the plain network."""
    network = PlainTransformer(model).double()
    state = {"embedding.weight": drawn["embedding"]}
    state |= {"output.weight": drawn["output.weight"].T, "output.bias": drawn["output.bias"][0]}
    for number in range(model.depth):
        for ours, theirs in PLACES.items():
            value = drawn[f"block{number + 1}.{ours}"]
            state[f"blocks.{number}.{theirs}"] = value[0] if len(value) == 1 else value.T
    network.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    return network


def plain_training(model, *, seed, run, steps, rates, decays):
    embedding, layers, split, *_ = streams(seed, run)
    network = in_modules(model, model.initial(embedding, layers))
    train, validation = model.task.split(0.8, split)
    decoder = [value for name, value in network.named_parameters() if name != "embedding.weight"]
    groups = [
        {"params": [network.embedding.weight], "lr": rates[0], "weight_decay": decays[0]},
        {"params": decoder, "lr": rates[1], "weight_decay": decays[1]},
    ]
    optimizer = torch.optim.AdamW(groups)
    pairs, labels = torch.tensor(model.task.inputs), torch.tensor(model.task.labels)
    frames, losses = [], []
    for _ in range(steps + 1):
        loss, held = (
            torch.nn.functional.cross_entropy(network(pairs[index]), labels[index])
            for index in (train, validation)
        )
        frames.append(network.embedding.weight.detach().clone().numpy())
        losses.append((loss.item(), held.item()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return np.stack(frames), np.array(losses)


@pytest.mark.parametrize(
    "model",
    [
        TokenTransformer(7, 12, depth=2, heads=3, width=10),
        TokenTransformer(7, 8, depth=1, width=16, causal=False),
    ],
    ids=["causal", "without a mask"],
)
def test_every_member_is_trained_as_pytorchs_own_modules_would(model):
    rates, decays = (1e-3, 3e-3), (0.0, 0.7)
    ensemble = nets.train(
        model,
        runs=3,
        steps=50,
        seed=5,
        record=1,
        dtype="float64",
        learning_rate=rates[1],
        weight_decay=decays[1],
        embedding_learning_rate=rates[0],
        embedding_weight_decay=decays[0],
    )
    for run in range(3):
        frames, losses = plain_training(model, seed=5, run=run, steps=50, rates=rates, decays=decays)
        assert np.abs(ensemble.positions[run] - frames).max() <= 1e-12
        for column, part in enumerate(("train", "validation")):
            assert np.abs(ensemble.observables[f"{part}_loss"][run] - losses[:, column]).max() <= 1e-12


def test_with_dropout_a_member_does_not_depend_on_the_others():
    model = TokenTransformer(5, 8, depth=1, width=8, dropout=0.3)
    options = {"steps": 12, "record": 12, "seed": 3, "dtype": "float64"}
    ensemble = nets.train(model, runs=3, **options)
    for run in range(3):
        alone = nets.train(model, first_run=run, **options)
        np.testing.assert_allclose(alone.final[0], ensemble.final[run], rtol=0, atol=1e-12)
    chunked = nets.train(model, runs=3, chunk=2, **options)
    np.testing.assert_allclose(chunked.final, ensemble.final, rtol=0, atol=1e-12)


def test_dropout_acts_while_training_and_not_at_evaluation():
    options = {"steps": 3, "record": 1, "dtype": "float64"}
    without = nets.train(TokenTransformer(5, 8, depth=1, width=8), **options)
    dropped = nets.train(TokenTransformer(5, 8, depth=1, width=8, dropout=0.5), **options)
    assert dropped.observables["train_loss"][0, 0] == without.observables["train_loss"][0, 0]
    assert np.abs(dropped.final - without.final).max() > 1e-4


def test_dropout_zeroes_its_part_and_scales_the_rest():
    ones = torch.ones(2, 100, 200, dtype=torch.float64)
    dropped, alike, other = (
        Dropout(seeds, torch.device("cpu"))(ones, 0.3) for seeds in ([1, 2], [1, 2], [2, 1])
    )
    assert set(dropped.unique().tolist()) == {0.0, 1 / 0.7}
    assert ((dropped == 0).double().mean((1, 2)) - 0.3).abs().max() < 0.02  # six standard deviations
    assert torch.equal(dropped, alike)
    assert torch.equal(dropped.flip(0), other)


def test_dropout_stands_where_pytorchs_encoder_layer_has_it():
    calls = []

    def dropout(states, rate):
        calls.append((states.shape, rate))
        return states

    model = TokenTransformer(5, 8, depth=2, heads=2, width=6, dropout=0.25)
    drawn = model.initial(*streams(0, 0)[:2])
    parameters = {name: torch.tensor(value)[None] for name, value in drawn.items()}
    inputs = torch.tensor(model.task.inputs)[None]
    given = model.outputs(parameters, inputs, dropout)
    torch.testing.assert_close(given, model.outputs(parameters, inputs), rtol=0, atol=1e-12)
    block = [((1, 25, 2, 2, 2), 0.25), ((1, 50, 8), 0.25), ((1, 50, 6), 0.25), ((1, 50, 8), 0.25)]
    assert calls == 2 * block


def test_the_mask_keeps_the_second_token_from_the_first():
    """With the mask, what the last layer gets of the first token does not depend on the second."""
    for causal in (True, False):
        model = TokenTransformer(5, 8, depth=2, width=8, causal=causal)
        drawn = model.initial(*streams(1, 0)[:2])
        parameters = {name: torch.tensor(value)[None] for name, value in drawn.items()}
        parameters["output.weight"][:, 8:] = 0
        logits = model.outputs(parameters, torch.tensor([[[2, 0], [2, 4]]]))
        assert torch.equal(logits[0, 0], logits[0, 1]) is causal


@pytest.mark.parametrize("depth", [1, 3])
def test_few_examples_have_the_outputs_and_gradients_that_they_have_among_many(depth):
    """Among many examples, a first token is computed once for all of them; among few, with each of them."""
    model = TokenTransformer(7, 12, depth=depth, heads=3, width=10)
    drawn = [model.initial(*streams(4, run)[:2]) for run in range(2)]
    parameters = {
        name: torch.tensor(np.stack([one[name] for one in drawn])).requires_grad_() for name in drawn[0]
    }
    pairs = torch.tensor(np.random.default_rng(0).integers(0, 7, (2, 28, 2)))
    weights = torch.linspace(-1, 1, 2 * 28 * 7, dtype=torch.float64).reshape(2, 28, 7)
    many = model.outputs(parameters, pairs)
    few = torch.cat([model.outputs(parameters, part) for part in pairs.split(7, 1)], 1)
    torch.testing.assert_close(few, many, rtol=0, atol=1e-12)
    gradients = [torch.autograd.grad((weights * of).sum(), list(parameters.values())) for of in (few, many)]
    for name, ours, theirs in zip(parameters, *gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11, msg=name)


def test_the_initialisation_is_that_of_pytorchs_modules():
    model = TokenTransformer(53, 64, depth=1, heads=2, width=32)
    torch.manual_seed(0)
    plain = PlainTransformer(model).double()
    ours = in_modules(model, model.initial(*streams(0, 0)[:2])).state_dict()
    for name, theirs in plain.state_dict().items():
        assert ours[name].shape == theirs.shape
        assert ours[name].std().item() == pytest.approx(theirs.std().item(), rel=0.2), name
        if "embedding" not in name:
            assert ours[name].abs().max().item() == pytest.approx(theirs.abs().max().item(), rel=0.15), name
    named = TokenTransformer(53, 64, initialisation="kaiming_normal").initial(*streams(0, 0)[:2])
    assert named["block1.attention.in.weight"].std() == pytest.approx((2 / 64) ** 0.5, rel=0.05)
    assert not named["output.bias"].any()
