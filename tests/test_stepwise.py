import numpy as np
import pytest

import nets
from physics.errors import InputError

MODELS = {"fused": nets.ConstantAttention(7), "torch": nets.ToyAddition(tokens=5)}


@pytest.mark.parametrize("engine", MODELS)
def test_steps_split_over_calls_give_the_bits_of_train(engine):
    options = {"runs": 2, "seed": 3, "weight_decay": 0.3, "engine": engine, "embedding_learning_rate": 0.002}
    training = nets.Training(MODELS[engine], **options)
    for steps in (1, 2, 8, 1):
        training.advance(steps)
    trained = nets.train(MODELS[engine], steps=12, record=12, **options)
    assert training.step == 12
    np.testing.assert_array_equal(training.embeddings, trained.final)
    for part in ("train", "validation"):
        loss, accuracy = training.losses(part)
        np.testing.assert_array_equal(loss, trained.observables[f"{part}_loss"][:, -1])
        np.testing.assert_array_equal(accuracy, trained.observables[f"{part}_accuracy"][:, -1])


def test_batches_are_those_of_train():
    options = {"seed": 1, "batch_size": 5}
    training = nets.Training(MODELS["fused"], **options)
    for _ in range(9):
        training.advance(1)
    trained = nets.train(MODELS["fused"], steps=9, record=9, **options)
    np.testing.assert_array_equal(training.embeddings, trained.final)


@pytest.mark.parametrize("engine", MODELS)
def test_rates_change_while_it_trains(engine):
    def trained(*, changed):
        training = nets.Training(MODELS[engine], seed=2, weight_decay=0.0, engine=engine)
        training.advance(5)
        if changed:
            training.set_rates(weight_decay=1.0, learning_rate=0.02)
        training.advance(5)
        return training.embeddings

    assert not np.array_equal(trained(changed=True), trained(changed=False))
    np.testing.assert_array_equal(trained(changed=True), trained(changed=True))


def test_rates_that_were_set_stay_when_others_change():
    one_by_one, at_once = (nets.Training(MODELS["fused"], seed=2, weight_decay=0.0) for _ in range(2))
    one_by_one.set_rates(weight_decay=1.0)
    one_by_one.set_rates(learning_rate=0.02)
    at_once.set_rates(weight_decay=1.0, learning_rate=0.02)
    for training in (one_by_one, at_once):
        training.advance(5)
    np.testing.assert_array_equal(one_by_one.embeddings, at_once.embeddings)


def test_changed_rates_are_those_of_pytorch():
    """The moments stay and the count of steps goes on, as when a PyTorch optimiser's groups are changed."""
    torch = pytest.importorskip("torch")
    model = nets.ConstantAttention(7)
    training = nets.Training(model, seed=4, weight_decay=0.1, dtype="float64", engine="fused")
    networks = training.networks()
    values = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in networks.parameters.items()}
    task, train = model.task, networks.examples("train")[0]
    inputs, labels = torch.as_tensor(task.inputs[train]), torch.as_tensor(task.labels[train])
    adamw = torch.optim.AdamW(values.values(), lr=0.01, weight_decay=0.1)
    for rate in (0.01, 0.03):
        for group in adamw.param_groups:
            group["lr"] = rate
        training.set_rates(learning_rate=rate)
        for _ in range(5):
            adamw.zero_grad()
            outputs = model.outputs(values, inputs[None])
            torch.nn.functional.cross_entropy(outputs[0], labels.long()).backward()
            adamw.step()
        training.advance(5)
    np.testing.assert_allclose(training.embeddings, values["embedding"].detach().numpy(), rtol=1e-9)


def test_the_networks_answer_as_they_are_now():
    training = nets.Training(MODELS["fused"], seed=2)
    training.advance(30)
    networks = training.networks()
    np.testing.assert_array_equal(networks.parameters["embedding"], training.embeddings)
    np.testing.assert_allclose(networks.loss("train"), training.losses("train")[0], rtol=1e-5)
    training.advance(1)
    assert not np.array_equal(networks.parameters["embedding"], training.embeddings)


def test_what_is_refused():
    training = nets.Training(MODELS["fused"])
    with pytest.raises(InputError, match="steps must be at least 1, got 0"):
        training.advance(0)
    with pytest.raises(InputError, match="rates must be of learning_rate, .*, got 'momentum'"):
        training.set_rates(momentum=1.0)
    with pytest.raises(InputError, match="weight_decay must be a finite number of at least 0, got -1"):
        training.set_rates(weight_decay=-1)
    with pytest.raises(InputError, match="model must be a model"):
        nets.Training("attention")
    training.advance(1)
