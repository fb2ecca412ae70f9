"""Whether a model can be trained: what one of your own states is checked once, before anything is drawn."""

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING, Architecture, Loss
from nets.models.model import Model
from nets.settings import Settings
from nets.tasks import Task
from physics.checks import choice, finite_array, mapping, number, whole_number
from physics.errors import FileFormatError, InputError
from physics.memory import require_memory
from physics.trajectory.provenance import is_ours

ADVICE = "train them in shards, with fewer runs at a time and first_run"


def require_model(model: Any) -> Model:
    """Return `model` if it is one, with settings of a training that `nets.train` has."""
    kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    if not isinstance(model, Model) or not hasattr(model, "__dataclass_fields__"):
        raise InputError(
            f"model must be a frozen dataclass and a nets.Model, such as ConstantAttention(), got {kind}"
        )
    known = {field.name for field in dataclasses.fields(Settings)} - {"runs", "seed"}
    for name in mapping(f"settings of {kind}", model.settings):
        if name not in known:
            raise InputError(f"settings of {kind} must name settings of nets.train, got {name!r}")
    return model


def require_sound(model: Model, runs: int) -> None:
    """Refuse a model that cannot be trained, and an ensemble that does not fit into memory.

    The kernels trust what is checked here: shapes of parameters, and tokens, which they take as indices.
    """
    kind = type(model).__name__
    try:
        _check(model, kind, runs)
    except (InputError, FileFormatError, MemoryError):
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise InputError(f"{kind} cannot be trained, got {type(error).__name__}: {text}") from error


def _check(model: Any, kind: str, runs: int) -> None:
    tokens, dim = (whole_number(f"{name} of {kind}", getattr(model, name), 1) for name in ("tokens", "dim"))
    choice(f"loss of {kind}", model.loss, get_args(Loss))
    number(f"dropout of {kind}", model.dropout, 0.0, below=1.0)
    drawn = {
        name: finite_array(f"initial[{name!r}] of {kind}", value)
        for name, value in model.initial(np.random.default_rng(0), np.random.default_rng(0)).items()
    }
    shapes = {name: value.shape for name, value in drawn.items()}
    if not drawn or () in shapes.values():
        raise InputError(f"initial of {kind} must return arrays with an axis, got shapes {shapes}")
    numbers = sum(value.size for value in drawn.values())
    # Drawing takes two copies in float64; training takes values and two moments in its number type.
    require_memory(f"{runs} networks of {numbers} parameters", 40.0 * numbers * runs, ADVICE)
    head = list(drawn)[: len(model.encoder)]
    if set(head) != set(model.encoder):
        names = ", ".join(model.encoder)
        raise InputError(f"encoder of {kind} must name its first parameters, {', '.join(head)}, got {names}")
    if (got := shapes.get(EMBEDDING, (tokens, dim))) != (tokens, dim):
        raise InputError(f"the embedding of {kind} must have the shape {(tokens, dim)}, got {got}")
    if number(f"embedding_penalty of {kind}", model.embedding_penalty, 0.0) and EMBEDDING not in drawn:
        raise InputError(f"embedding_penalty of {kind} must be 0 without a parameter named {EMBEDDING!r}")
    if not isinstance(model.task, Task):
        raise InputError(f"task of {kind} must be a nets.Task, got {type(model.task).__name__}")
    inputs, layers = model.task.inputs, model.architecture
    if isinstance(layers, Architecture):
        data = layers.combine == "data"
        width = {"concatenate": 2 * dim, "data": inputs.shape[1]}.get(layers.combine, dim)
        expected = layers.shapes(tokens, dim)
        if layers.sizes[0] != width or list(shapes.items()) != list(expected.items()):
            raise InputError(
                f"architecture of {kind} must have sizes that begin with {width}, and initial must return "
                f"{expected} in this order, got {layers.sizes} and {shapes}"
            )
        if inputs.dtype.kind != ("f" if data else "i") or (not data and inputs.shape[1:] != (2,)):
            raise InputError(
                f"inputs of the task of {kind} must be {'data' if data else 'two tokens'} for each example, "
                f"got {inputs.dtype} of shape {inputs.shape}"
            )
        if not data and not 0 <= inputs.min(initial=0) <= inputs.max(initial=0) < tokens:
            raise InputError(
                f"inputs of the task of {kind} must be tokens from 0 to {tokens - 1}, got {inputs.min()} to "
                f"{inputs.max()}"
            )
    if not is_ours(type(model)):  # ours are tested, and PyTorch takes seconds to import
        _try_out(model, kind, drawn)


def _try_out(model: Any, kind: str, drawn: Mapping[str, NDArray[np.float64]]) -> None:
    """Refuse a model whose outputs or points are wrong for two members on three examples, or mix members."""
    import torch

    task, width, generator = model.task, model.task.classes, np.random.default_rng(1)
    if model.loss == "mean_squared_error":
        classes, width = finite_array(f"targets of {kind}", model.targets(generator)).shape
        if classes != task.classes:
            raise InputError(f"targets of {kind} must have {task.classes} rows, got {classes}")
    second = model.initial(generator, generator)
    parameters = {}
    for name, value in drawn.items():
        pair = np.stack([value, second[name]]).astype(float)
        # Noise tells members apart whose initial values do not depend on the generators, such as biases of 0.
        noise = 0.01 * generator.standard_normal(pair.shape)
        parameters[name] = torch.as_tensor(pair + noise).requires_grad_()
    tokens = task.inputs.reshape(len(task), -1)
    examples = [0, tokens.min(axis=1).argmin(), tokens.max(axis=1).argmax()]
    inputs = torch.as_tensor(task.inputs[examples])
    inputs = (inputs.double() if inputs.is_floating_point() else inputs).expand(2, *inputs.shape)
    labels = torch.as_tensor(task.labels[examples]).expand(2, -1)
    rates = []

    def dropout(states: torch.Tensor, rate: float) -> torch.Tensor:
        rates.append(rate)
        return states

    def computed(name: str, members: slice) -> torch.Tensor:
        of_members = {key: value[members] for key, value in parameters.items()}
        if name == "outputs":
            return model.outputs(of_members, inputs[members], dropout)
        return model.point_sets(of_members, (inputs[members], labels[members]))

    for name, shape in (("point_sets", (model.tokens, model.dim)), ("outputs", (3, width))):
        together = computed(name, slice(2))
        alone = torch.cat([computed(name, slice(1)), computed(name, slice(1, 2))])
        if together.shape != (2, *shape):
            got = tuple(together.shape)
            raise InputError(f"{name} of {kind} must return a tensor of shape {(2, *shape)} here, got {got}")
        rounding = 1e-5 * float(alone.detach().nan_to_num().abs().max())
        if not torch.allclose(together, alone, rtol=0, atol=rounding, equal_nan=True):
            raise InputError(
                f"{name} of {kind} must be for each member what they are for it alone, got others for two "
                "members at once"
            )
    torch.autograd.grad(together.sum(), list(parameters.values()))  # an error if a parameter is not used
    if any(rates) != bool(model.dropout):
        raise InputError(
            f"dropout of {kind} must be the rate with which its outputs drop states, got {model.dropout:g}"
        )
