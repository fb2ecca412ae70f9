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
from physics.checks import choice, finite_array, mapping, number, require_memory, whole_number
from physics.errors import FileFormatError, InputError
from physics.trajectory.provenance import is_ours

ADVICE = "train them in shards, with fewer runs at a time and first_run"


def require_model(model: Any) -> Model:
    """Return `model` if it is one, with settings of a training that `nets.train` has."""
    kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    if not isinstance(model, Model) or not hasattr(model, "__dataclass_fields__"):
        need = "a frozen dataclass and a nets.Model, such as ConstantAttention()"
        raise InputError(f"model must be {need}, got {kind}")
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


def _require(right: bool, what: str, need: str, got: Any) -> None:
    if not right:
        raise InputError(f"{what} must {need}, got {got}")


def _check(model: Any, kind: str, runs: int) -> None:
    tokens, dim = (whole_number(f"{name} of {kind}", getattr(model, name), 1) for name in ("tokens", "dim"))
    choice(f"loss of {kind}", model.loss, get_args(Loss))
    number(f"dropout of {kind}", model.dropout, 0.0, below=1.0)
    drawn = {
        name: finite_array(f"initial[{name!r}] of {kind}", value)
        for name, value in model.initial(np.random.default_rng(0), np.random.default_rng(0)).items()
    }
    shapes = {name: value.shape for name, value in drawn.items()}
    arrays = bool(drawn) and () not in shapes.values()
    _require(arrays, f"initial of {kind}", "return arrays with an axis", f"shapes {shapes}")
    numbers = sum(value.size for value in drawn.values())
    # Drawing takes two copies in float64; training takes values and two moments in its number type.
    require_memory(f"{runs} networks of {numbers} parameters", 40.0 * numbers * runs, ADVICE)
    head, size = list(drawn)[: len(model.encoder)], shapes.get(EMBEDDING, (tokens, dim))
    named = set(head) == set(model.encoder)
    _require(named, f"encoder of {kind}", f"name its first parameters, {head}", model.encoder)
    _require(size == (tokens, dim), f"embedding of {kind}", f"have the shape {(tokens, dim)}", size)
    penalty = number(f"embedding_penalty of {kind}", model.embedding_penalty, 0.0)
    usable = not penalty or EMBEDDING in drawn
    _require(usable, f"embedding_penalty of {kind}", "be 0 without an embedding", penalty)
    _require(isinstance(model.task, Task), f"task of {kind}", "be a nets.Task", type(model.task).__name__)
    inputs, layers = model.task.inputs, model.architecture
    if isinstance(layers, Architecture):
        data, what = layers.combine == "data", f"inputs of the task of {kind}"
        width = {"concatenate": 2 * dim, "data": inputs.shape[1]}.get(layers.combine, dim)
        expected, sizes = layers.shapes(tokens, dim), layers.sizes
        _require(sizes[0] == width, f"architecture of {kind}", f"have sizes that begin with {width}", sizes)
        same = list(shapes.items()) == list(expected.items())
        _require(same, f"initial of {kind}", f"return {expected} in this order", shapes)
        fits = inputs.dtype.kind == "f" if data else inputs.dtype.kind == "i" and inputs.shape[1:] == (2,)
        need = f"be {'data' if data else 'two tokens'} for each example"
        _require(fits, what, need, f"{inputs.dtype} of shape {inputs.shape}")
        low, high = (0, 0) if data or not inputs.size else (inputs.min(), inputs.max())
        _require(0 <= low <= high < tokens, what, f"be tokens from 0 to {tokens - 1}", f"{low} to {high}")
    if not is_ours(type(model)):  # ours are tested, and PyTorch takes seconds to import
        _try_out(model, kind, drawn)


def _try_out(model: Any, kind: str, drawn: Mapping[str, NDArray[np.float64]]) -> None:
    """Refuse a model whose outputs or points are wrong for two members on three examples, or mix members."""
    import torch

    task, width, generator = model.task, model.task.classes, np.random.default_rng(1)
    if model.loss == "mean_squared_error":
        classes, width = finite_array(f"targets of {kind}", model.targets(generator)).shape
        _require(classes == task.classes, f"targets of {kind}", f"have {task.classes} rows", classes)
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
        right, got = together.shape == (2, *shape), tuple(together.shape)
        _require(right, f"{name} of {kind}", f"return a tensor of shape {(2, *shape)} here", got)
        rounding = 1e-5 * float(alone.detach().nan_to_num().abs().max())
        right = torch.allclose(together, alone, rtol=0, atol=rounding, equal_nan=True)
        need = "be for each member what they are for it alone"
        _require(right, f"{name} of {kind}", need, "others for two members at once")
    torch.autograd.grad(together.sum(), list(parameters.values()))  # an error if a parameter is not used
    need = "be the rate with which its outputs drop states"
    _require(any(rates) == bool(model.dropout), f"dropout of {kind}", need, model.dropout)
