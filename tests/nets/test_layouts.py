"""Layouts that other people's scripts save: each is read rightly, or asks an honest question."""

import argparse
import json
import pickle
from collections import OrderedDict

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import nets
from nets.reading import look
from physics.errors import FileFormatError, InputError

P, DIM = 13, 32
STEPS = [0, 100, 200, 400]


def matrix(step, tokens=P, dim=DIM):
    """The embedding at a step, with a circle that grows."""
    n = np.arange(tokens)
    E = 0.1 * np.random.default_rng(step).standard_normal((tokens, dim))
    E[:, 0] += (1 + step) * np.cos(6 * np.pi * n / P)
    E[:, 1] += (1 + step) * np.sin(6 * np.pi * n / P)
    return E.astype(np.float32)


def tensor(step, turned=False, tokens=P):
    E = torch.tensor(matrix(step, tokens))
    return E.T.contiguous() if turned else E


def transformer(step, turned=True, tokens=P + 1):
    """State dict of a transformer with "=", as Nanda's or TransformerLens's."""
    return OrderedDict(
        {
            "embed.W_E": tensor(step, turned, tokens),
            "pos_embed.W_pos": torch.zeros(3, DIM),
            "unembed.W_U": torch.zeros(DIM, tokens),
            "blocks.0.mlp.W_in": torch.zeros(64, DIM),
            "blocks.0.mlp.b_in": torch.zeros(64),
        }
    )


def simple(step):
    return {"embedding.weight": tensor(step), "out.weight": torch.zeros(P, DIM), "out.bias": torch.zeros(P)}


def optimizer(step):
    return {
        "state": {0: {"step": torch.tensor(float(step)), "exp_avg": torch.zeros(P, DIM)}},
        "param_groups": [{"lr": 1e-3, "params": [0]}],
    }


class Config:
    """A configuration class, such as HookedTransformerConfig."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class Net(torch.nn.Module):
    def __init__(self, step):
        super().__init__()
        self.embed = torch.nn.Embedding(P, DIM)
        self.embed.weight.data = tensor(step)
        self.head = torch.nn.Sequential(torch.nn.Linear(DIM, 7), torch.nn.ReLU(), torch.nn.Linear(7, P))


def stack(steps=STEPS):
    return np.stack([matrix(step) for step in steps])


def save(folder, name, content):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, folder / name)


def lightning(step, epoch):
    return {
        "epoch": epoch, "global_step": step, "pytorch-lightning_version": "2.6.6",
        "state_dict": OrderedDict({f"model.{name}": value for name, value in simple(step).items()}),
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 5}}}},
        "callbacks": {"ModelCheckpoint{}": {"best_model_score": torch.tensor(0.5), "dirpath": "x"}},
        "optimizer_states": [optimizer(step)], "lr_schedulers": [],
        "hparams_name": "kwargs", "hyper_parameters": {"p": P, "lr": 1e-3},
    }  # fmt: skip


def guo_stack(d):
    np.save(d / "embeddings.npy", stack())
    return d / "embeddings.npy"


def guo_folder(d):
    np.save(d / "embeddings.npy", stack())
    np.save(d / "gradients.npy", stack() * 0)
    np.save(d / "losses.npy", np.arange(4.0))
    save(d, "model.pt", {"fc.weight": torch.zeros(5, 6)})
    return d


def he(d):
    def model(step):
        return OrderedDict({"mlp.W_in": torch.zeros(64, P) + step, "mlp.W_out": torch.ones(P, 64)})

    for step in STEPS[:-1]:
        losses = {"train_loss": 1.0 / (1 + step), "test_loss": 2.0}
        save(d, f"{step}.pth", {"model": model(step), **losses, "epoch": step})
    after = {"scheduler": {"last_epoch": 400, "lr_lambdas": [None]}, "optimizer": optimizer(1)}
    history = {"train_loss": 0.0, "epoch": 400, "train_losses": [0.5] * 400}
    save(d, "final.pth", {"model": model(400), **history, **after})
    save(d, "train_data.pth", [(i, j) for i in range(P) for j in range(P)])
    return d


def pizza(name, state):
    def write(d):
        save(d, "model_2k4ohj6bhd.pt", state)
        (d / "config_2k4ohj6bhd.json").write_text(
            json.dumps({"C": P, "d_model": DIM, "funcs": "lambda x: x"})
        )
        (d / "config_amw6ox6bzn.json").write_text(json.dumps({"C": 99}))
        return d / "model_2k4ohj6bhd.pt"

    return write


def pizza_folder(d):
    for seed, name in enumerate(("2k4ohj6bhd", "amw6ox6bzn")):
        save(d, f"model_{name}.pt", transformer(seed, tokens=P))
        (d / f"config_{name}.json").write_text(json.dumps({"C": P}))
    return d


def nanda_run(d):
    lists = {"train_losses": [0.1] * 500, "test_losses": [0.2] * 500}
    save(d, "low_precision.pth", {"model": transformer(400), "optimizer": optimizer(1), **lists})
    return d / "low_precision.pth"


def nanda_folder(d):
    for step in STEPS[:-1]:
        losses = {"train_loss": torch.tensor(1.0), "test_loss": 2.0}
        save(d, f"{step}.pth", {"model": transformer(step), **losses, "epoch": step})
    save(d, "init.pth", {"model": transformer(0), "train_data": [(0, 1, P)], "test_data": [(1, 1, P)]})
    lists = {"train_losses": [1.0] * 400, "test_losses": [2.0] * 400}
    save(d, "final.pth", {"model": transformer(400), "epoch": 400, **lists})
    return d


def full_run(d):
    beside = {"train_losses": np.ones(500).tolist(), "config": {"p": P, "d_model": DIM}}
    states = [transformer(step) for step in STEPS]
    optimizers = [optimizer(step) for step in STEPS]
    content = {"epochs": STEPS, "state_dicts": states, "optimizer_dicts": optimizers, **beside}
    save(d, "full_run_data.pth", content)
    return d / "full_run_data.pth"


def lens_demo(d):
    save(d, "grokking_demo.pth", {
        "model": transformer(400, turned=False), "config": Config(d_model=DIM),
        "checkpoints": [transformer(step, turned=False) for step in STEPS], "checkpoint_epochs": STEPS,
        "test_losses": [2.0] * 500, "train_losses": [1.0] * 500,
        "train_indices": torch.arange(50), "test_indices": torch.arange(50)})  # fmt: skip
    return d / "grokking_demo.pth"


def lens_series(d):
    for step in STEPS:
        save(d, f"ckpt_{step}.pt", transformer(step, turned=False))
    return d


def prieto(d):
    save(d, "checkpoints.pt", {step: simple(step) for step in STEPS})
    return d / "checkpoints.pt"


def group_agf(d):
    save(d, "param_history.pt", [{"U": tensor(step), "W": torch.zeros(5, DIM)} for step in STEPS])
    return d / "param_history.pt"


def tian(d):
    for step, loss in zip(STEPS, ("5.0734", "0.0087", "1.7", "0.3"), strict=True):
        save(d, f"model{step:05}_train0.97_loss0.5957_test0.01_loss{loss}.pt",
             {"epoch": step, "model": {"W.weight": tensor(step, True)}, "train_acc": 0.97})  # fmt: skip
    torch.save({"stats": Config(a=1), "losses": [1.0]}, d / "stats_tracker.pt")
    return d


def whole_model(d):
    save(d, "model_3.pt", Net(400))
    return d / "model_3.pt"


def openai(d):
    for epoch, step in zip((0, 1, 2, 4), STEPS, strict=True):
        content = lightning(step, epoch)
        content["state_dict"] = {"transformer.embedding.weight": tensor(step, tokens=P + 2)}
        content["hyper_parameters"] = argparse.Namespace(math_operator="+", train_data_pct=5)
        save(d, f"epoch_{epoch}.ckpt", content)
    save(d, "init.pt", {"transformer.embedding.weight": tensor(0, tokens=P + 2)})
    return d


def lightning_names(naming, last=False):
    def write(d):
        for epoch, step in enumerate(STEPS):
            name = naming.format(epoch=epoch, step=step, loss=3 - 0.9 * epoch, version="-v1" * (epoch == 1))
            save(d, f"{name}.ckpt", lightning(step, epoch))
        if last:
            save(d, "last.ckpt", lightning(400, 3))
        return d

    return write


def hugging_face(d):
    for step in STEPS[1:]:
        folder = d / f"checkpoint-{step}"
        folder.mkdir()
        save_file({"transformer.wte.weight": tensor(step, tokens=P + 1)}, folder / "model.safetensors")
        save(folder, "optimizer.pt", optimizer(step))
        save(folder, "training_args.bin", Config(p=1))
        save(folder, "rng_state.pth", {"python": (3, (1, 2), None)})
        log = [{"step": s, "epoch": s / 100, "loss": 1.0 / s} for s in range(50, step + 1, 50)]
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": log}))
        (folder / "config.json").write_text(json.dumps({"vocab_size": P + 1}))
    return d


def flat_safetensors(d):
    for step in STEPS:
        save_file(
            {"transformer.wte.weight": tensor(step), "h.0.attn.weight": torch.zeros(4, 4)},
            d / f"step_{step:05}.safetensors",
        )
    return d


def npz(**arrays):
    def write(d):
        np.savez(d / "x.npz", **arrays)
        return d / "x.npz"

    return write


def pt_with_steps(d):
    torch.save({"embedding_history": torch.tensor(stack()), "steps": torch.tensor(STEPS)}, d / "a.pt")
    return d / "a.pt"


def pickled_npy(d):
    np.save(d / "x.npy", {"embeddings": stack(), "steps": STEPS}, allow_pickle=True)
    return d / "x.npy"


def pickled(d):
    (d / "x.pkl").write_bytes(
        pickle.dumps({"embeddings": list(stack()), "epochs": STEPS, "loss": [4.0, 3, 2, 1]})
    )
    return d / "x.pkl"


def h5md(d):
    with h5py.File(d / "x.h5md", "w") as file:
        file.create_group("h5md").attrs["version"] = [1, 1]
        for name, values in (("position", stack()), ("velocity", 0 * stack())):
            group = file.create_group(f"particles/trajectory/{name}")
            group["value"], group["step"], group["time"] = values, STEPS, np.array(STEPS, float)
    return d / "x.h5md"


def history(d):
    (d / "metrics.csv").write_text("step,loss\n0,1\n100,0.5\n")
    return d / "metrics.csv"


def numpy_scalar(d):
    for step in STEPS:
        save(d, f"ckpt_{step}.pt", {"epoch": step, "loss": np.float64(1.5), "model_state_dict": simple(step)})
    return d


def orbits(d):
    np.save(d / "orbits.npy", np.stack([matrix(step, 141, 2) for step in STEPS]))
    return d / "orbits.npy"


def history_of_lists(d):
    history = {"embed": [tensor(step) for step in STEPS], "epoch": STEPS}
    save(d, "h.pt", {"history": history, "loss": [4.0, 3.0, 2.0, 1.0]})
    return d / "h.pt"


def archives(d):
    for step in STEPS:
        save(d, f"checkpoint_{step}.pth.tar", {"epoch": step, "state_dict": simple(step), "arch": "mlp"})
    return d


def flax(d):
    for step in STEPS:
        tree = {"params": {"Embed_0": {"embedding": matrix(step)}, "Dense_0": {"kernel": matrix(1)}}}
        (d / f"params_{step}.pkl").write_bytes(pickle.dumps(tree))
    return d


def groups_of_h5(d):
    with h5py.File(d / "run.h5", "w") as file:
        for step in STEPS:
            file.create_group(f"step_{step}")["W_E"] = matrix(step)
    return d / "run.h5"


def files_of_arrays(d):
    np.save(d / "W_E_history.npy", stack().swapaxes(1, 2))
    np.save(d / "epochs.npy", STEPS)
    return d


LOSSES = ("train_loss", "test_loss", "train_losses", "test_losses")
LAYOUTS = {
    1: (guo_stack, [{"modulus": P, "steps": "0,100:200:100,400"}], {}),
    2: (guo_folder, [{"modulus": P, "steps": "0,100,200,400"}], {"observables": {"losses"}}),
    3: (he, [{"kind": "neurons"}], {"values": None, "observables": {*LOSSES[:2], "train_losses"}}),
    4: (pizza("4", transformer(0, tokens=P)), [{}], {"steps": [0]}),
    5: (pizza("5", {"embed.weight": tensor(0), "unembed.weight": torch.zeros(P, 64)}), [{}], {"steps": [0]}),
    6: (pizza_folder, [{}, {"array": "embed.W_E"}], InputError),
    7: (nanda_run, [{}, {"modulus": P}], {"steps": [0], "values": [400]}),
    8: (nanda_folder, [{}, {"modulus": P}], {"observables": {*LOSSES}}),
    9: (full_run, [{}], {"observables": {"train_losses"}}),
    10: (lens_demo, [{}, {"modulus": P}], {"observables": {"train_losses", "test_losses"}}),
    11: (lens_series, [{}, {"modulus": P}], {}),
    12: (prieto, [{}], {}),
    13: (group_agf, [{}, {"array": "U", "modulus": P, "steps": "0,100,200,400"}], {}),
    14: (tian, [{"array": "W.weight", "modulus": P}], {"observables": {"train_acc"}}),
    15: (whole_model, [{}], {"steps": [3], "values": [400]}),
    16: (openai, [{"modulus": P}], {}),
    17: (lightning_names("epoch={epoch}-step={step}", last=True), [{}], {}),
    18: (lightning_names("epoch={epoch:02d}-val_loss={loss:.2f}"), [{}], {}),
    19: (lightning_names("epoch={epoch}-step={step}{version}"), [{}], {}),
    20: (hugging_face, [{"modulus": P}], {"steps": STEPS[1:], "observables": {"loss"}}),
    21: (flat_safetensors, [{}], {}),
    22: (npz(W_E=stack(), steps=np.array(STEPS)), [{}, {"modulus": P}], {}),
    23: (pt_with_steps, [{"modulus": P}], {}),
    24: (npz(E=stack().swapaxes(1, 2), steps=np.array(STEPS, float)), [{}, {"modulus": P}], {}),
    "24b": (npz(E=stack().transpose(1, 2, 0), steps=np.array(STEPS)), [{}, {"modulus": P}], InputError),
    25: (pickled_npy, [{"modulus": P}], {}),
    "25b": (pickled, [{"modulus": P}], {"observables": {"loss"}}),
    26: (h5md, [{}, {"array": "particles/trajectory/position"}], {}),
    27: (history, [{}], InputError),
    28: (numpy_scalar, [{}], {"observables": {"loss"}}),
    "f": (history_of_lists, [{"modulus": P}], {"observables": {"loss"}}),
    "m": (archives, [{}], {}),
    "c": (flax, [{"modulus": P}], {}),
    "e": (groups_of_h5, [{"modulus": P}], {}),
    "n": (files_of_arrays, [{"modulus": P}], {}),
    "a": (npz(**{f"step_{step}": matrix(step) for step in STEPS}), [{"modulus": P}], {}),
    29: (orbits, [{}], {"values": None, "steps": [0, 1, 2, 3]}),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_read_rightly_in_two_tries_or_asks(tmp_path, layout):
    write, tries, expected = LAYOUTS[layout]
    path = write(tmp_path)
    if layout != 27:
        assert look(path)
    for options in tries[:-1]:
        with pytest.raises(InputError) as asked:
            nets.read_checkpoints(path, **options)
        assert any(word in str(asked.value) for word in ("modulus", "array", "transpose", "step"))
    if expected is InputError:
        with pytest.raises((InputError, FileFormatError)):
            nets.read_checkpoints(path, **tries[-1])
        return
    trajectory = nets.read_checkpoints(path, **tries[-1])
    assert trajectory.steps.tolist() == expected.get("steps", STEPS)
    assert set(trajectory.observables) == expected.get("observables", set())
    values = expected.get("values", STEPS if len(trajectory.steps) == 4 else expected.get("steps"))
    for frame, step in zip(trajectory.positions[0], values or [], strict=bool(values)):
        np.testing.assert_array_equal(
            frame, matrix(step)[:P] if len(frame) == P else matrix(step, len(frame))
        )
    assert trajectory.modulus in (P, None)
    assert trajectory.modulus is not None or layout in (12, 15, 21, 26, 28, 29, "m")
