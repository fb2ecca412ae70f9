"""Whether a model can be trained: what one of your own states is checked once, before anything is drawn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.models.model import Model
from nets.tasks import Task
from physics.checks import choice, finite_array, number, short_text, whole_number
from physics.errors import InputError
from physics.trajectory.recording import require_memory

ADVICE = "train them in shards, with fewer runs (--runs) at a time and first_run (--first-run)"


def require_sound(model: Any, runs: int) -> None:
    """Refuse an invalid model before anything is drawn, and an ensemble that does not fit into memory."""
    kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    if not isinstance(model, Model) or not hasattr(model, "__dataclass_fields__"):
        also = "" if not isinstance(model, Model) else ", a frozen dataclass whose fields say what it is"
        raise InputError(f"model must be a model such as ConstantAttention(){also}, got {kind}")
    tokens, dim = (whole_number(f"{name} of {kind}", getattr(model, name), 1) for name in ("tokens", "dim"))
    choice(f"loss of {kind}", model.loss, ("cross_entropy", "mean_squared_error"))
    drawn: Any = model.initial(np.random.default_rng(0), np.random.default_rng(0))  # a user's may be anything
    if not isinstance(drawn, Mapping) or not drawn:
        raise InputError(
            f"initial of {kind} must return a dict of arrays that is not empty, got {short_text(drawn)}"
        )
    one = {name: finite_array(f"initial[{name!r}] of {kind}", value) for name, value in drawn.items()}
    numbers = sum(value.size for value in one.values())
    # Drawing takes two copies in float64; training takes values and two moments in its number type.
    require_memory(f"{runs} networks of {numbers} parameters", 40.0 * numbers * runs, ADVICE)
    if EMBEDDING in one and one[EMBEDDING].shape != (tokens, dim):
        raise InputError(
            f"the embedding of {kind} must have the shape {(tokens, dim)}, got {one[EMBEDDING].shape}"
        )
    head = list(one)[: len(model.encoder)]
    if set(head) != set(model.encoder):
        raise InputError(
            f"encoder of {kind} must name the first of its parameters, {', '.join(head)}, got "
            f"{', '.join(model.encoder)}"
        )
    penalty = number(f"embedding_penalty of {kind}", model.embedding_penalty, 0.0)
    if penalty and EMBEDDING not in one:
        raise InputError(
            f"embedding_penalty of {kind} must be 0 without a parameter named {EMBEDDING!r}, got {penalty:g}"
        )
    if not isinstance(model.task, Task):
        raise InputError(f"task of {kind} must be a nets.Task, got {type(model.task).__name__}")
    if model.architecture is not None:
        shape = {name: value.shape for name, value in one.items()}
        model.architecture.check(kind, shape, (tokens, dim), model.task.inputs.shape[1], model.loss)
        _require_inputs(model, kind)
    if not type(model).__module__.startswith("nets."):  # ours are tested, and PyTorch takes seconds to import
        _require_outputs(model, kind, one)


def _require_inputs(model: Any, kind: str) -> None:
    """Refuse examples that the kernels cannot read: they take tokens as indices without a check."""
    inputs = model.task.inputs
    if model.architecture.combine == "data":
        if inputs.dtype.kind != "f":
            raise InputError(
                f"inputs of the task of {kind} must be data in floating point, got {inputs.dtype}"
            )
    elif inputs.dtype.kind != "i" or inputs.shape[1:] != (2,):
        raise InputError(
            f"inputs of the task of {kind} must be two tokens for each example, got {inputs.dtype} of the "
            f"shape {inputs.shape}"
        )
    elif inputs.size and not 0 <= inputs.min() <= inputs.max() < model.tokens:
        raise InputError(
            f"inputs of the task of {kind} must be tokens from 0 to {model.tokens - 1}, got {inputs.min()} "
            f"to {inputs.max()}"
        )


def _require_outputs(model: Model, kind: str, drawn: Mapping[str, NDArray[np.float64]]) -> None:
    """Refuse a model whose outputs, targets or point sets have wrong shapes for two examples."""
    import torch

    parameters = {name: torch.as_tensor(value)[None] for name, value in drawn.items()}
    task, width = model.task, model.task.classes
    if model.loss == "mean_squared_error":
        targets = finite_array(f"targets of {kind}", model.targets(np.random.default_rng(0)))
        if targets.ndim != 2 or len(targets) != width:
            raise InputError(f"targets of {kind} must have the shape ({width}, outputs), got {targets.shape}")
        width = targets.shape[1]
    inputs, labels = torch.as_tensor(task.inputs[:2])[None], torch.as_tensor(task.labels[:2])[None]
    inputs = inputs if task.inputs.dtype.kind == "i" else inputs.double()
    with torch.no_grad():
        outputs = model.outputs(parameters, inputs)
        points = model.point_sets(parameters, (inputs, labels))
        found = [("outputs", outputs, (1, inputs.shape[1], width))]
        found.append(("point_sets", points, (1, model.tokens, model.dim)))
        for name, value, wanted in found:
            if not isinstance(value, torch.Tensor) or value.shape != wanted:
                got = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
                raise InputError(f"{name} of {kind} must return a tensor of shape {wanted} here, got {got}")
        same = model.architecture is None or torch.allclose(
            outputs.double(), model.architecture.outputs(parameters, inputs), rtol=1e-6, atol=1e-9
        )
    if not same or (model.architecture and model.architecture.embedding_penalty != model.embedding_penalty):
        what = "embedding_penalty" if same else "outputs"
        raise InputError(f"{what} of {kind} must agree with its architecture, which both engines compute")
