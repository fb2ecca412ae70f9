"""The batched engine where there is no CUDA: what a step would do on a device, and as a captured graph."""

import numpy as np
import pytest
import torch
from cuda_graphs import recorded_graphs

import nets
from nets.engines.choice import optimizer_of
from nets.engines.ensemble import batches, draw
from nets.engines.graphs import WARM_UPS
from nets.engines.torch import BatchedEngine, _free_bytes

MODELS = {
    "constant attention": nets.ConstantAttention(11, 3, 16),
    "embedding MLP": nets.EmbeddingMLP(13, 8, (20, 18)),
    "toy addition": nets.ToyAddition(8, 2, (30, 20), 12),
    "group": nets.GroupDecoder(hidden=(20, 30), outputs_dim=7),
    "transformer": nets.TokenTransformer(5, 6, depth=1, heads=2, width=7),
    "images": nets.ImageMLP(hidden=(9,)),
}


RUNS = 5


def rates(learning_rate=0.01):
    return optimizer_of(RUNS, learning_rate, 0.5, 0.003, 0.1, (0.9, 0.999), 1e-8)


def engine(model, device="cpu", **options):
    ensemble = draw(model, runs=RUNS, seed=1)
    return BatchedEngine(ensemble, rates(), "float64", torch.device(device), **{"chunk": None, **options})


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("name", MODELS)
def test_a_step_on_a_device_asks_nothing_of_the_host(name, chunk):
    """The meta device refuses tensors of the CPU beside its own, and has no number to wait for."""
    model = MODELS[name]
    machine = engine(model, "meta", chunk=chunk)
    machine.advance(0, 2, None)
    machine.advance(2, 2, batches(draw(model, runs=RUNS, seed=1), 4, 2, 2))
    machine.stop(np.arange(RUNS) < 2)
    machine.advance(4, 1, None)


@pytest.fixture
def captures(monkeypatch):
    return recorded_graphs(monkeypatch)


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("name", MODELS)
def test_a_captured_step_is_the_step(name, chunk, captures):
    eager, replayed = (engine(MODELS[name], chunk=chunk, graphs=graphs) for graphs in (False, True))
    at = 0

    def advance(steps):
        nonlocal at
        for machine in (eager, replayed):
            machine.advance(at, steps, None)
        at += steps
        for name, value in eager.state().items():
            np.testing.assert_array_equal(replayed.state()[name], value)

    advance(WARM_UPS)
    assert not captures
    early = eager.state()
    advance(4)
    advance(2)
    assert len(captures) == 1
    for machine in (eager, replayed):  # a state that is put back is what a captured step goes on from
        machine.restore(early)
    at = WARM_UPS
    advance(2)
    assert len(captures) == 1
    for machine in (eager, replayed):
        machine.set_rates(rates(0.02))
    advance(WARM_UPS + 2)
    assert len(captures) == 2
    for machine in (eager, replayed):
        machine.stop(np.arange(RUNS) == 3)
    advance(WARM_UPS + 2)
    assert len(captures) == 3


def test_a_step_with_batches_or_dropout_is_not_captured(captures):
    model, steps = MODELS["embedding MLP"], WARM_UPS + 2
    engine(model, graphs=True).advance(0, steps, batches(draw(model, runs=RUNS, seed=1), 9, 0, steps))
    engine(nets.TokenTransformer(7, 12, width=10, dropout=0.3), graphs=True).advance(0, steps, None)
    assert not captures


def test_no_seeds_are_drawn_where_nothing_is_dropped(monkeypatch):
    monkeypatch.setattr("nets.engines.torch.dropout_seed", lambda *_: pytest.fail("a seed was drawn"))
    engine(MODELS["transformer"]).advance(0, 2, None)


def test_memory_that_pytorch_keeps_for_later_counts_as_free(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10, 100))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 50)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 20)
    assert _free_bytes(torch.device("cuda")) == 40


@pytest.mark.parametrize(("members", "chunk"), [(0.4, 1), (1, 1), (2, 2), (3.5, 3), (100, RUNS)])
def test_as_many_members_at_a_time_as_have_room_in_half_of_the_memory(monkeypatch, members, chunk):
    model = MODELS["toy addition"]
    examples = draw(model, runs=RUNS, seed=1).train.shape[1]
    each = 3 * (2 + 30 + 20 + 12) * examples * 8  # three of every number of a layer, in float64
    monkeypatch.setattr("nets.engines.torch.CPU_BYTES", 2 * members * each)
    assert engine(model).chunk == chunk
    assert engine(model, chunk=4).chunk == 4


def test_a_state_is_copied_when_it_is_put_back():
    machine = engine(MODELS["toy addition"])
    machine.advance(0, 2, None)
    state = machine.state()
    kept = {name: value.copy() for name, value in state.items()}
    machine.restore(state)
    machine.advance(2, 2, None)
    for name, value in kept.items():
        np.testing.assert_array_equal(state[name], value)


def test_measuring_the_gradient_revives_no_member_that_was_stopped():
    def final(*observables):
        return nets.train(
            nets.ConstantAttention(tokens=5, hidden=8),
            runs=4,
            steps=60,
            seed=2,
            record=5,
            engine="torch",
            thresholds={"train_accuracy": 0.6},
            stop="thresholds",
            observables=("train_accuracy", *observables),
        )

    plain, measured = final(), final("gradient")
    stopped = plain.observables["steps_to_train_accuracy"][:, -1]
    assert np.nanmin(stopped) < 40, "a member has stopped while others train"
    assert len(set(stopped.tolist())) > 1
    np.testing.assert_array_equal(measured.positions, plain.positions)
