import os
import signal

import numpy as np
import pytest

import nets

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


@pytest.mark.parametrize("engine", MODELS)
def test_ctrl_c_leaves_all_members_at_the_same_step(engine, monkeypatch):
    stopped, whole = (nets.Training(MODELS[engine], runs=3, seed=2, engine=engine) for _ in range(2))
    stopped.advance(3)
    advance = stopped.machine.advance

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        advance(*arguments)

    monkeypatch.setattr(stopped.machine, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stopped.advance(50)
    monkeypatch.undo()
    assert 3 < stopped.step <= 53
    whole.advance(stopped.step)
    for _ in range(2):
        np.testing.assert_array_equal(stopped.embeddings, whole.embeddings)
        stopped.advance(5), whole.advance(5)


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


RATES_IN_TURN = {
    "another rate": [(5, {"learning_rate": 0.01}), (5, {"learning_rate": 0.03})],
    "a rate of 0 at first": [(200, {"learning_rate": 0.0}), (5, {"learning_rate": 0.01})],
    "an embedding that is frozen at first": [
        (60, {"embedding_learning_rate": 0.0, "embedding_weight_decay": 0.7}),
        (5, {"embedding_learning_rate": 0.02, "embedding_weight_decay": 0.0}),
        (5, {"embedding_learning_rate": 0.0}),
        (5, {"embedding_learning_rate": 0.01}),
    ],
    "layers that are frozen at first": [
        (60, {"learning_rate": 0.0, "embedding_learning_rate": 0.005, "weight_decay": 0.9}),
        (5, {"learning_rate": 0.01}),
    ],
}


@pytest.mark.parametrize("engine", ["fused", "torch"])
@pytest.mark.parametrize("plan", RATES_IN_TURN)
def test_changed_rates_are_those_of_pytorch(plan, engine):
    """The moments go on, at a rate of 0 too, as when the groups of a PyTorch optimizer are changed."""
    torch = pytest.importorskip("torch")
    model = nets.ConstantAttention(7)
    training = nets.Training(model, seed=4, weight_decay=0.1, dtype="float64", engine=engine, device="cpu")
    networks = training.networks()
    values = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in networks.parameters.items()}
    start = networks.parameters["embedding"]
    task, train = model.task, networks.examples("train")[0]
    inputs, labels = torch.as_tensor(task.inputs[train]), torch.as_tensor(task.labels[train])
    layers = [value for name, value in values.items() if name != "embedding"]
    adamw = torch.optim.AdamW([{"params": [values["embedding"]]}, {"params": layers}], lr=0.01)
    rates = {"learning_rate": 0.01, "weight_decay": 0.1}
    for steps, changes in RATES_IN_TURN[plan]:
        rates |= changes
        for group, of_embedding in zip(adamw.param_groups, ("embedding_", ""), strict=True):
            group["lr"] = rates.get(f"{of_embedding}learning_rate", rates["learning_rate"])
            group["weight_decay"] = rates.get(f"{of_embedding}weight_decay", rates["weight_decay"])
        training.set_rates(**changes)
        for _ in range(steps):
            adamw.zero_grad()
            outputs = model.outputs(values, inputs[None])
            torch.nn.functional.cross_entropy(outputs[0], labels.long()).backward()
            adamw.step()
        training.advance(steps)
    assert np.abs(values["embedding"].detach().numpy() - start).max() > 1e-3
    for name, found in training.networks().parameters.items():
        np.testing.assert_allclose(found, values[name].detach().numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_the_constants_of_adamw_are_those_given(engine):
    torch = pytest.importorskip("torch")
    model, rates = nets.ConstantAttention(7), {"weight_decay": 0.1, "betas": (0.6, 0.8)}
    options = {"seed": 4, "dtype": "float64", "engine": engine, "device": "cpu"}
    training = nets.Training(model, **options, **rates, epsilon=1e-3, learning_rate=0.02)
    networks = training.networks()
    values = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in networks.parameters.items()}
    train = networks.examples("train")[0]
    inputs, labels = torch.as_tensor(model.task.inputs[train]), torch.as_tensor(model.task.labels[train])
    adamw = torch.optim.AdamW(values.values(), lr=0.02, eps=1e-3, **rates)
    for _ in range(6):
        adamw.zero_grad()
        torch.nn.functional.cross_entropy(model.outputs(values, inputs[None])[0], labels).backward()
        adamw.step()
    training.advance(6)
    for name, found in training.networks().parameters.items():
        np.testing.assert_allclose(found, values[name].detach().numpy(), rtol=0, atol=1e-12)
    trained = nets.train(model, steps=6, record=6, **options, **rates, epsilon=1e-3, learning_rate=0.02)
    np.testing.assert_array_equal(trained.final, training.embeddings)


@pytest.mark.parametrize("engine", MODELS)
def test_nothing_moves_at_a_rate_of_0(engine):
    still = {"learning_rate": 0.0, "embedding_learning_rate": 0.0, "engine": engine}
    training = nets.Training(MODELS[engine], weight_decay=1.0, **still)
    before = training.networks().parameters
    training.advance(20)
    for name, value in training.networks().parameters.items():
        np.testing.assert_array_equal(value, before[name])
    trained = nets.train(MODELS[engine], steps=20, record=[0, 20], **still)
    np.testing.assert_array_equal(trained.final, trained.initial)
