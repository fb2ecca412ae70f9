"""`train`: an ensemble of networks as one program."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from nets.models import EMBEDDING, ConstantAttention
from nets.recording import recording_steps
from physics.checks import choice, number, whole_number
from physics.errors import InputError
from physics.recording import Layout, recorder
from physics.seeds import Seed, describe_seed, parent_seed, run_seeds
from physics.trajectory import Trajectory

OBSERVABLES = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")


def train(
    model: ConstantAttention | None = None,
    *,
    runs: int = 1,
    steps: int = 2000,
    seed: Seed = 0,
    first_run: int = 0,
    learning_rate: float = 0.01,
    weight_decay: float = 1.0,
    train_fraction: float = 0.8,
    record: int | str | Sequence[int] = 20,
    dtype: str = "float32",
    device: str = "auto",
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Trajectory:
    """Train an ensemble of networks, full batch with AdamW, and record their embeddings.

    Members differ in their seed: embedding, layers and training set are drawn anew for each.

    Parameters
    ----------
    model : ConstantAttention, optional
        The architecture; that of Musat §3 by default.
    runs : int, default 1
        Number of members R, at least 1.
    steps : int, default 2000
        Number of optimiser steps (epochs), at least 1.
    seed : int or numpy.random.SeedSequence, default 0
        Member k is drawn from the k-th child of the seed, whatever the number of runs.
    first_run : int, default 0
        The ensemble holds the members `first_run … first_run + runs - 1` of the seed.
    learning_rate : float, default 0.01
        AdamW's learning rate, greater than 0.
    weight_decay : float, default 1.0
        Decoupled weight decay of all parameters, at least 0.
    train_fraction : float, default 0.8
        Part of all examples to train on; the rest validates.
    record : int, str or sequence of int, default 20
        When to record; see `recording_steps`.
    dtype : {"float32", "float64"}, default "float32"
        Number type of the training and of the recorded embeddings.
    device : str, default "auto"
        "cpu", "cuda", or "auto": CUDA where there is one.
    out, overwrite, progress
        As in `physics.simulate`.

    Returns
    -------
    Trajectory
        `positions` (runs, frames, tokens, dim) are the embeddings after that many steps; the observables
        `train_loss`, `train_accuracy`, `validation_loss`, `validation_accuracy` (runs, frames) belong to
        the same parameters. Losses are mean cross-entropies in nats, accuracies fractions.

    Raises
    ------
    InputError
        If an argument is not of that kind; nothing is written then.
    OutputError
        If `out` exists or cannot be written.

    Warns
    -----
    RuntimeWarning
        If the loss of a member is not finite at the end; the others are not affected.
    """
    model = ConstantAttention() if model is None else model
    if not isinstance(model, ConstantAttention):
        raise InputError(f"model must be a model such as ConstantAttention(), got {type(model).__name__}")
    runs = whole_number("runs", runs, 1)
    steps = whole_number("steps", steps, 1)
    parent_seed(seed)
    first_run = whole_number("first_run", first_run, 0)
    learning_rate = number("learning_rate", learning_rate, above=0.0)
    weight_decay = number("weight_decay", weight_decay, 0.0)
    schedule = recording_steps(record, steps)
    choice("dtype", dtype, ("float32", "float64"))
    place = _device(device)
    model.task.training_size(train_fraction)

    ensemble = _draw(model, run_seeds(seed, runs, first_run), train_fraction, getattr(torch, dtype), place)
    optimiser = torch.optim.AdamW(
        ensemble.parameters.values(), lr=learning_rate, weight_decay=weight_decay, fused=True
    )
    parameters = {
        "program": "nets.train",
        "model": {"type": type(model).__name__, **asdict(model)},
        "runs": runs,
        "steps": steps,
        "seed": describe_seed(seed),
        "first_run": first_run,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "train_fraction": train_fraction,
        "record": record if isinstance(record, int | str) else [int(step) for step in record],
        "dtype": dtype,
        "device": str(place),
    }
    layout = Layout(runs, model.tokens, model.dim, dtype, len(schedule), dict.fromkeys(OBSERVABLES, ()))
    wanted = set(schedule.tolist())
    losses = np.zeros(runs)
    with (
        recorder(out, layout, parameters, overwrite=overwrite) as frames,
        tqdm(total=steps, unit="step", desc="train", disable=None if progress else True) as bar,
    ):
        for step in range(steps + 1):
            if step in wanted:
                measured = ensemble.measure()
                losses = measured["train_loss"]
                # `append` copies; on a CPU this array is the live memory of the optimiser.
                frames.append(step, float(step), ensemble.embeddings(), **measured)
            if step < steps:
                optimiser.zero_grad()
                ensemble.loss().backward()
                optimiser.step()
                bar.update()
    diverged = np.flatnonzero(~np.isfinite(losses))
    if len(diverged):
        warnings.warn(
            f"{len(diverged)} of {runs} runs diverged: the training loss of run "
            f"{', '.join(map(str, diverged[:10] + first_run))} is not finite; try a smaller learning_rate "
            f"than {learning_rate:g}",
            RuntimeWarning,
            stacklevel=2,
        )
    return frames.result()


@dataclass
class _Ensemble:
    """The members' parameters, stacked on a first axis, and their examples."""

    model: ConstantAttention
    parameters: dict[str, Tensor]
    train: tuple[Tensor, Tensor]  # inputs (runs, examples, 2), labels (runs, examples)
    validation: tuple[Tensor, Tensor]

    def loss(self) -> Tensor:
        """Sum over members of their mean training losses: its gradient is each member's own."""
        inputs, labels = self.train
        return _cross_entropy(self.model.logits(self.parameters, inputs), labels).sum()

    @torch.no_grad()
    def measure(self) -> dict[str, NDArray[np.float64]]:
        """Losses and accuracies (runs,) of the present parameters."""
        result = {}
        for name, (inputs, labels) in (("train", self.train), ("validation", self.validation)):
            logits = self.model.logits(self.parameters, inputs)
            hits = (logits.argmax(-1) == labels).double().mean(-1)
            result[f"{name}_loss"] = _cross_entropy(logits, labels).double().cpu().numpy()
            result[f"{name}_accuracy"] = hits.cpu().numpy()
        return result

    def embeddings(self) -> NDArray[np.floating]:
        """Present embeddings (runs, tokens, dim)."""
        return self.parameters[EMBEDDING].detach().cpu().numpy()


def _draw(
    model: ConstantAttention,
    seeds: list[np.random.SeedSequence],
    train_fraction: float,
    dtype: torch.dtype,
    device: torch.device,
) -> _Ensemble:
    """Draw embedding, layers and split of each member from streams of their own."""
    task = model.task
    members, train_sets, validation_sets = [], [], []
    for seed in seeds:
        embedding, layers, split = (np.random.default_rng(stream) for stream in seed.spawn(3))
        members.append(model.initial(embedding, layers))
        training, validation = task.split(train_fraction, split)
        train_sets.append(training)
        validation_sets.append(validation)
    parameters = {
        name: torch.tensor(np.stack([member[name] for member in members]), dtype=dtype, device=device)
        for name in members[0]
    }
    for tensor in parameters.values():
        tensor.requires_grad_()

    def examples(sets: list[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
        index = np.stack(sets)
        return (
            torch.as_tensor(task.inputs[index], device=device),
            torch.as_tensor(task.labels[index], device=device),
        )

    return _Ensemble(model, parameters, examples(train_sets), examples(validation_sets))


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of each member, (runs,)."""
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return losses.reshape(labels.shape).mean(-1)


def _device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError:
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', got {device!r}") from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {device!r} was asked for, but this machine or this PyTorch has no CUDA")
    return place
