"""Whether a model can be trained: what one of your own states is checked once, before anything is drawn."""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING, Architecture
from nets.models.model import DenseModel, Model
from nets.settings import Settings
from nets.tasks import Task
from physics.checks import choice, finite_array, mapping, number, short_text, whole_number
from physics.errors import InputError
from physics.memory import require_memory
from physics.trajectory.provenance import is_ours

ADVICE = "train them in shards, with fewer runs (--runs) at a time and first_run (--first-run)"


def require_model(model: Any) -> Model:
    """Return `model` if it is one, with settings of a training that `nets.train` has."""
    kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    if not isinstance(model, Model) or not hasattr(model, "__dataclass_fields__"):
        also = "" if not isinstance(model, Model) else ", a frozen dataclass whose fields say what it is"
        raise InputError(f"model must be a model such as ConstantAttention(){also}, got {kind}")
    known = {field.name for field in dataclasses.fields(Settings)} - {"runs", "seed"}
    for name in mapping(f"settings of {kind}", model.settings):
        if name not in known:
            raise InputError(f"settings of {kind} must name settings of nets.train, got {name!r}")
    return model


def require_sound(model: Any, runs: int) -> None:
    """Refuse an invalid model before anything is drawn, and an ensemble that does not fit into memory."""
    kind = type(require_model(model)).__name__
    tokens, dim = (whole_number(f"{name} of {kind}", getattr(model, name), 1) for name in ("tokens", "dim"))
    layers: Any = model.architecture
    if not isinstance(layers, Architecture) and (layers is not None or isinstance(model, DenseModel)):
        raise InputError(f"architecture of {kind} must be a nets.Architecture, got {type(layers).__name__}")
    choice(f"loss of {kind}", model.loss, ("cross_entropy", "mean_squared_error"))
    number(f"dropout of {kind}", model.dropout, 0.0, below=1.0)
    penalty = number(f"embedding_penalty of {kind}", model.embedding_penalty, 0.0)
    if layers is not None:  # tasks of tokens can be large, and are made after the check of the memory
        features = _task(model, kind).inputs.shape[1] if layers.combine == "data" else 0
        wanted = layers.check(kind, (tokens, dim), features, model.loss)
    with _in_a_sentence(f"initial of {kind} must return arrays by name"):
        drawn = model.initial(np.random.default_rng(0), np.random.default_rng(0))
        first = {name: finite_array(f"initial[{name!r}] of {kind}", value) for name, value in drawn.items()}
    if not first or not all(value.ndim for value in first.values()):
        raise InputError(f"initial of {kind} must return arrays with an axis, got {short_text(drawn)}")
    numbers = sum(value.size for value in first.values())
    # Drawing takes two copies in float64; training takes values and two moments in its number type.
    require_memory(f"{runs} networks of {numbers} parameters", 40.0 * numbers * runs, ADVICE)
    shapes = {name: value.shape for name, value in first.items()}
    if shapes.get(EMBEDDING, (tokens, dim)) != (tokens, dim):
        raise InputError(
            f"the embedding of {kind} must have the shape {(tokens, dim)}, got {shapes[EMBEDDING]}"
        )
    if penalty and EMBEDDING not in first:
        raise InputError(
            f"embedding_penalty of {kind} must be 0 without a parameter named {EMBEDDING!r}, got {penalty:g}"
        )
    head = list(first)[: len(model.encoder)]
    if set(head) != set(model.encoder):
        names = ", ".join(model.encoder)
        raise InputError(f"encoder of {kind} must name its first parameters, {', '.join(head)}, got {names}")
    if layers is not None and list(shapes.items()) != list(wanted.items()):
        raise InputError(
            f"initial of {kind} must return, for its architecture, {wanted} in this order, got {shapes}"
        )
    task = _task(model, kind)
    if layers is not None:
        _require_inputs(model, task, kind)
    if not is_ours(type(model)):  # ours are tested, and PyTorch takes seconds to import
        _require_outputs(model, kind, first)


@contextmanager
def _in_a_sentence(what: str) -> Iterator[None]:
    """Let an error in the code of a model end in a sentence that begins with `what`, and follow from it."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{what}, got {type(error).__name__}: {' '.join(str(error).split())}") from error


def _task(model: Any, kind: str) -> Task:
    """Return the task of a model, or refuse what is none."""
    task = model.task
    if not isinstance(task, Task):
        raise InputError(f"task of {kind} must be a nets.Task, got {type(task).__name__}")
    return task


def _require_inputs(model: Any, task: Task, kind: str) -> None:
    """Refuse examples that the kernels cannot read: they take tokens as indices without a check."""
    inputs, data = task.inputs, model.architecture.combine == "data"
    if inputs.dtype.kind != ("f" if data else "i") or (not data and inputs.shape[1:] != (2,)):
        wanted = "data in floating point" if data else "two tokens for each example"
        raise InputError(
            f"inputs of the task of {kind} must be {wanted}, got {inputs.dtype} of the shape {inputs.shape}"
        )
    if not data and inputs.size and not 0 <= inputs.min() <= inputs.max() < model.tokens:
        raise InputError(
            f"inputs of the task of {kind} must be tokens from 0 to {model.tokens - 1}, got {inputs.min()} "
            f"to {inputs.max()}"
        )
    if model.dropout:
        raise InputError(f"dropout of {kind} must be 0 for a model with an architecture, got {model.dropout}")


def _require_outputs(model: Model, kind: str, drawn: Mapping[str, NDArray[np.float64]]) -> None:
    """Refuse a model whose outputs or points are wrong for two different members on three examples.

    The examples include the smallest and the largest token. There are not two, so that an array of one number
    for each member does not pass for one of each example.
    """
    import torch

    task, width, generator = model.task, model.task.classes, np.random.default_rng(1)
    if model.loss == "mean_squared_error":
        with _in_a_sentence(f"targets of {kind} must have the shape ({width}, outputs)"):
            classes, width = finite_array(f"targets of {kind}", model.targets(generator)).shape
        if classes != task.classes:
            raise InputError(f"targets of {kind} must have {task.classes} rows, got {classes}")
    with _in_a_sentence(f"initial of {kind} must return arrays of the same names and shapes for each member"):
        second = model.initial(generator, generator)
        pairs = {name: np.stack([value, second[name]]).astype(float) for name, value in drawn.items()}
    # Noise tells members apart whose initial values do not depend on the generators, such as biases of 0.
    parameters = {
        name: torch.as_tensor(pair + 0.01 * generator.standard_normal(pair.shape)).requires_grad_()
        for name, pair in pairs.items()
    }
    numbers = task.inputs.reshape(len(task.inputs), -1)
    rows = np.array([0, numbers.min(axis=1).argmin(), numbers.max(axis=1).argmax()])
    inputs, labels = torch.as_tensor(task.inputs[rows]), torch.as_tensor(task.labels[rows])
    inputs = inputs if task.inputs.dtype.kind == "i" else inputs.double()
    rates: list[float] = []

    def drop(states: torch.Tensor, rate: float) -> torch.Tensor:
        rates.append(rate)
        return states

    def computed(name: str, *members: int) -> torch.Tensor:
        some = {key: value[list(members)] for key, value in parameters.items()}
        given = inputs.expand(len(members), *inputs.shape)
        if name == "outputs":
            return model.outputs(some, given, drop)
        return model.point_sets(some, (given, labels.expand(len(members), 3)))

    for name, shape in (("point_sets", (model.tokens, model.dim)), ("outputs", (3, width))):
        with _in_a_sentence(f"{name} of {kind} must compute two members on three examples"):
            both = computed(name, 0, 1)
            alone = torch.cat([computed(name, 0), computed(name, 1)])
            if both.shape != (2, *shape):
                raise InputError(
                    f"{name} of {kind} must return a tensor of shape {(2, *shape)} here, got "
                    f"{tuple(both.shape)}"
                )
            if name == "outputs":
                found = torch.autograd.grad(both.sum(), list(parameters.values()), allow_unused=True)
                unused = [key for key, slope in zip(parameters, found, strict=True) if slope is None]
                if unused:
                    raise InputError(f"outputs of {kind} must use its parameters {', '.join(unused)}")
        rounding = 1e-5 * float(alone.detach().nan_to_num().abs().max())
        if not torch.allclose(both, alone, rtol=0, atol=rounding, equal_nan=True):
            raise InputError(
                f"{name} of {kind} must be for each member what they are for it alone, got others for two "
                "members at once"
            )
    if any(rates) != bool(model.dropout):
        raise InputError(
            f"dropout of {kind} must be the rate with which its outputs drop states, got {model.dropout:g}"
        )
    layers = model.architecture
    if layers is not None:
        stated = layers.outputs(parameters, inputs.expand(2, *inputs.shape))
        same = torch.allclose(both.double(), stated, rtol=1e-6, atol=1e-9)
        if not same or layers.embedding_penalty != model.embedding_penalty:
            what = "embedding_penalty" if same else "outputs"
            raise InputError(f"{what} of {kind} must agree with its architecture, which both engines compute")
