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
    dropout = number(f"dropout of {kind}", model.dropout, 0.0, below=1.0)
    if dropout and model.architecture is not None:
        raise InputError(
            f"dropout of {kind} must be 0 for a model with an architecture, which has none, got {dropout:g}"
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
    """Refuse a model whose targets, outputs or points are unfit for two different members on three examples.

    The examples include the smallest and the largest token. There are not two, so that an array of one number
    for each member does not pass for one of each example.
    """
    import torch

    task, width = model.task, model.task.classes
    if model.loss == "mean_squared_error":
        targets = finite_array(f"targets of {kind}", model.targets(np.random.default_rng(0)))
        if targets.ndim != 2 or len(targets) != width:
            raise InputError(f"targets of {kind} must have the shape ({width}, outputs), got {targets.shape}")
        width = targets.shape[1]
    generator = np.random.default_rng(1)
    # Noise tells members apart whose initial values do not depend on the generators, such as biases of 0.
    second = {
        name: value + 0.01 * generator.standard_normal(value.shape)
        for name, value in model.initial(generator, generator).items()
    }
    parameters = {name: torch.as_tensor(np.stack([drawn[name], second[name]])) for name in drawn}
    numbers = task.inputs.reshape(len(task.inputs), -1)
    rows = np.array([0, numbers.min(axis=1).argmin(), numbers.max(axis=1).argmax()])
    inputs, labels = torch.as_tensor(task.inputs[rows]), torch.as_tensor(task.labels[rows])
    inputs = inputs if task.inputs.dtype.kind == "i" else inputs.double()

    both = torch.stack([inputs] * 2)

    def computed(name: str, shape: tuple[int, ...], *members: int, dropout: Any = None) -> torch.Tensor:
        some = {name: value[list(members)] for name, value in parameters.items()}
        try:
            with torch.no_grad():
                value: Any = (  # a user's may be anything
                    model.outputs(some, both[: len(members)], dropout)
                    if name == "outputs"
                    else model.point_sets(some, (both[: len(members)], labels.expand(len(members), 3)))
                )
        except Exception as error:
            raise InputError(
                f"{name} of {kind} must compute two members on three examples, got {type(error).__name__}: "
                f"{' '.join(str(error).split())}"
            ) from error
        wanted = (len(members), *shape)
        if not isinstance(value, torch.Tensor) or value.shape != wanted:
            got = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise InputError(f"{name} of {kind} must return a tensor of shape {wanted} here, got {got}")
        return value

    for name, shape in (("point_sets", (model.tokens, model.dim)), ("outputs", (3, width))):
        found = computed(name, shape, 0, 1)
        alone = torch.cat([computed(name, shape, 0), computed(name, shape, 1)])
        rounding = 1e-5 * float(alone.nan_to_num().abs().max())
        if not torch.allclose(found, alone, rtol=0, atol=rounding, equal_nan=True):
            raise InputError(
                f"{name} of {kind} must be for each member what they are for it alone, got others for two "
                "members at once"
            )
    rates: list[float] = []

    def drop(states: torch.Tensor, rate: float) -> torch.Tensor:
        rates.append(rate)
        return states

    computed("outputs", shape, 0, 1, dropout=drop)
    if any(rates) != bool(model.dropout):
        allowed, what = ("greater than 0", "states") if any(rates) else ("0", "nothing")
        raise InputError(
            f"dropout of {kind} must be {allowed} for a model whose outputs drop {what}, got "
            f"{model.dropout:g}"
        )
    if model.architecture is None:
        return
    stated = model.architecture.outputs(parameters, both)
    same = torch.allclose(found.double(), stated, rtol=1e-6, atol=1e-9)
    if not same or model.architecture.embedding_penalty != model.embedding_penalty:
        what = "embedding_penalty" if same else "outputs"
        raise InputError(f"{what} of {kind} must agree with its architecture, which both engines compute")
