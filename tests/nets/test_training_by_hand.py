import hashlib
import os
import signal

import numpy as np
import pytest

import nets
from physics import EffectiveTheory, closures, representation_quality
from physics.errors import InputError
from physics.trajectory.provenance import own_code

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


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: nets.Training(MODELS["fused"], freeze_embedding="False"), "freeze_embedding"),
        (lambda: nets.train(MODELS["fused"], steps=1, keep_start=0), "keep_start"),
        (lambda: nets.keep_frequencies(np.eye(5), [1], mean=2), "mean"),
        (lambda: nets.with_signals(np.eye(5), [1, 1], mean=None), "mean"),
        (lambda: closures(EffectiveTheory(4), np.ones((1, 10), bool), groups="no"), "groups"),
        (lambda: closures(EffectiveTheory(4), np.ones((1, 10), bool), transitive=1), "transitive"),
        (lambda: nets.Task([[0, 1], [1, 1]], [1, 0], 2, whole="no"), "whole"),
    ],
)
def test_only_true_and_false_are_truth_values(call, name):
    with pytest.raises(InputError, match=f"^{name} must be True or False, got "):
        call()


@pytest.mark.parametrize("engine", MODELS)
@pytest.mark.parametrize("part", ["test", "", None])
def test_sets_that_there_are_not_have_no_losses(engine, part):
    with pytest.raises(InputError, match=f"part must be one of 'train', 'validation', got {part!r}"):
        nets.Training(MODELS[engine]).losses(part)


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


def test_the_tolerance_of_the_quality_and_the_chunk_are_those_given():
    model = nets.ToyAddition(6)
    options = {"steps": 1, "record": 1, "runs": 3, "observables": ("quality",), "engine": "torch"}
    found = nets.train(model, **options, delta=1.0, chunk=2, device="cpu")
    expected = representation_quality(found.positions, model.theory, 1.0)
    np.testing.assert_array_equal(found.observables["quality"], expected)
    assert (expected != representation_quality(found.positions, model.theory)).any()
    assert (found.parameters["delta"], found.parameters["chunk"]) == (1.0, 2)


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


def test_the_networks_answer_as_they_are_now():
    training = nets.Training(MODELS["fused"], seed=2)
    training.advance(30)
    networks = training.networks()
    np.testing.assert_array_equal(networks.parameters["embedding"], training.embeddings)
    np.testing.assert_allclose(networks.loss("train"), training.losses("train")[0], rtol=1e-5)
    training.advance(1)
    assert not np.array_equal(networks.parameters["embedding"], training.embeddings)


def test_nothing_given_is_the_papers_model():
    training = nets.Training()
    assert training.model == nets.ConstantAttention() == nets.ConstantAttention(17, 2, 32)
    assert training.ensemble.runs == 1


def test_a_run_of_an_ensemble_says_what_is_its_own():
    own = {"run_numbers": [4, 0, 2], "learning_rate": [0.1, 0.2, 0.3], "layer_scale": [1.0, 2.0, 3.0]}
    model = MODELS["fused"]
    trained = nets.train(model, runs=3, steps=1, weight_decay=0.5, train_fraction=0.3, **own)
    assert "first_run" not in trained.parameters["per_run"]
    unseen = trained.parameters["unseen_classes"]
    labels = [set(model.task.labels[train]) for train in trained.start["train_examples"]]
    assert unseen == [7 - len(seen) for seen in labels]
    assert len(set(unseen)) > 1
    for run in range(3):
        part = trained[run].parameters
        assert part["unseen_classes"] == [unseen[run]]
        assert part["weight_decay"] == 0.5
        for name, values in own.items():
            assert part[name] == [values[run]]


def test_a_trajectory_says_how_it_was_trained_with_all_that_was_left_out():
    def never(step, embeddings, observables):
        return np.zeros(len(embeddings), bool)

    class Never:
        def __call__(self, *given):
            return never(*given)

    start = np.arange(14, dtype=np.float32).reshape(7, 2)
    model = MODELS["fused"]
    found = nets.train(
        model, runs=2, steps=3, run_numbers=(np.int64(4), 1), learning_rate=np.array([0.1, 0.2]),
        batch_size=22, initial={"embedding": start}, record=(0, np.int64(3)), observables="quality",
        stop=never, thresholds={"train_accuracy": np.float64(0.5)}, dtype="float64",
        seed=np.random.SeedSequence(3), shared=("split",), device="cpu",
    )  # fmt: skip
    train = [set(model.task.labels[part]) for part in found.start["train_examples"]]
    assert found.parameters == {
        "program": "nets.train",
        "model": {
            "type": "ConstantAttention", "tokens": 7, "dim": 2, "hidden": 32, "initialisation": "pytorch",
        },
        "runs": 2, "steps": 3, "seed": {"entropy": 3, "spawn_key": []}, "first_run": 0, "run_numbers": [4, 1],
        "learning_rate": [0.1, 0.2], "weight_decay": 1.0,
        "embedding_learning_rate": None, "embedding_weight_decay": None, "freeze_embedding": False,
        "betas": [0.9, 0.999], "epsilon": 1e-8, "optimizer": "adamw", "batch_size": 22,
        "train_fraction": 0.8, "train_examples": None, "validation_examples": None, "shared": ["split"],
        "initial": {"embedding": f"sha256:{hashlib.sha256(start.astype(float).tobytes()).hexdigest()}"},
        "layer_scale": 1.0, "embedding_scale": 1.0, "record": [0, 3], "observables": ["quality"],
        "thresholds": {"train_accuracy": 0.5}, "track": None, "delta": 0.01, "stop": "never",
        "not_stored": ["stop"], "dtype": "float64", "stable_gradient": False,
        "engine": "fused", "device": "cpu", "chunk": None,
        "unseen_classes": [7 - len(seen) for seen in train],
        "per_run": ["run_numbers", "learning_rate", "unseen_classes"],
        **own_code(never),
    }  # fmt: skip
    options = {"steps": 1, "record": "0,1", "engine": "torch", "chunk": 3, "thresholds": {"quality": 1.0}}
    found = nets.train(model, **options, stop=Never()).parameters
    assert (found["stop"], found["not_stored"]) == ("callable", ["stop"])
    assert (found["engine"], found["device"], found["chunk"]) == ("torch", "cpu", 3)
    assert (found["record"], found["run_numbers"], found["batch_size"]) == ("0,1", None, None)
    found = nets.train(model, **options, stop="thresholds").parameters
    assert (found["stop"], found["not_stored"], found["seed"]) == ("thresholds", [], 0)


def test_how_a_run_is_stored_and_shown_is_no_part_of_what_it_is(tmp_path):
    options = {"steps": 2, "record": 1}
    plain = nets.train(MODELS["fused"], **options)
    shown = nets.train(
        MODELS["fused"], **options, out=tmp_path / "t.h5", progress=lambda *_: None, keep_start=False,
        callback=lambda *_: None, overwrite=True,
    )  # fmt: skip
    assert shown.parameters == plain.parameters
    assert (plain.start["parameter.embedding"].dtype, dict(shown.start)) == (np.float32, {})


def test_a_network_taken_out_keeps_its_own_stream():
    together = nets.Training(MODELS["fused"], runs=3).networks()
    streams = [noise.generate_state(2).tolist() for noise in together.ensemble.noise]
    assert [n.generate_state(2).tolist() for n in together.member(1).ensemble.noise] == streams[1:2]


def test_what_is_refused():
    training = nets.Training(MODELS["fused"])
    with pytest.raises(InputError, match="steps must be at least 1, got 0"):
        training.advance(0)
    with pytest.raises(InputError, match="rates must be among learning_rate, .*, got 'momentum'"):
        training.set_rates(momentum=1.0)
    with pytest.raises(InputError, match="weight_decay must be a finite number of at least 0, got -1"):
        training.set_rates(weight_decay=-1)
    with pytest.raises(InputError, match="model must be a model"):
        nets.Training("attention")
    with pytest.raises(InputError, match="engine must be 'auto' or 'torch' for .* on cpu, got 'fused'"):
        nets.Training(nets.TokenTransformer(5, 4, width=4), engine="fused", device="cpu")
    with pytest.raises(InputError, match="first_run must be 0 if run_numbers are given, got 1"):
        nets.Training(MODELS["fused"], first_run=1, run_numbers=[3])
    with pytest.raises(InputError, match="run_numbers must hold one number for each of 2 runs, got 1"):
        nets.Training(MODELS["fused"], runs=2, run_numbers=[3])
    with pytest.raises(InputError, match="chunk must be at least 1, got 0"):
        nets.Training(MODELS["torch"], chunk=0)
    with pytest.raises(InputError, match="dim of Mine must be a square where embeddings are matrices, got 5"):
        nets.Architecture("product", (5, 9, 7), "tanh", "cross_entropy").check(
            "Mine", (7, 5), 2, "cross_entropy"
        )
    training.advance(1)
