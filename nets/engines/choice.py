"""The choice of an engine and of its optimizer."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nets.engines.ensemble import Ensemble, Optimizer, per_member
from nets.engines.fused import FusedEngine
from nets.engines.threads import cuda_is_available
from nets.models import DenseModel
from physics.checks import choice, flag, number, real_array, short_text, whole_number
from physics.errors import InputError

if TYPE_CHECKING:
    from nets.engines.torch import BatchedEngine


Engine: TypeAlias = "FusedEngine | BatchedEngine"
"""What trains an ensemble: fused kernels on a CPU, or PyTorch on any device. Both have the same methods."""


def optimizer_of(
    runs: int,
    learning_rate: Any,
    weight_decay: Any,
    embedding_learning_rate: Any,
    embedding_weight_decay: Any,
    betas: tuple[float, float],
    epsilon: float,
    kind: str = "adamw",
) -> Optimizer:
    """Return the optimizer of `runs` members, with a value of each rate for each, after checking them.

    The settings are those of `nets.train`; a rate of the embedding that is None is that of the layers.

    Raises
    ------
    InputError
        If a value is out of its range.
    """
    pair = real_array("betas", betas)
    if pair.shape != (2,) or not ((pair >= 0) & (pair < 1)).all():
        raise InputError(f"betas must be two numbers of at least 0 and less than 1, got {betas!r}")
    of_layers = {"learning_rate": learning_rate, "weight_decay": weight_decay}
    of_embedding = {"learning_rate": embedding_learning_rate, "weight_decay": embedding_weight_decay}
    layers = {name: per_member(name, rate, runs, 0.0) for name, rate in of_layers.items()}
    embedding = [
        layers[name] if rate is None else per_member(f"embedding_{name}", rate, runs, 0.0)
        for name, rate in of_embedding.items()
    ]
    return Optimizer(
        np.stack([*embedding, *layers.values()], axis=1),
        (float(pair[0]), float(pair[1])),
        number("epsilon", epsilon, above=0.0),
        choice("optimizer", kind, ("adamw", "sgd")),
    )


def choose_engine(
    name: str,
    ensemble: Ensemble,
    optimizer: Optimizer,
    dtype: str,
    device: str,
    chunk: int | None,
    *,
    stable_gradient: bool = False,
) -> Engine:
    """Return the engine that trains an ensemble, before its first step.

    Parameters
    ----------
    name, dtype, device, chunk, stable_gradient
        The settings of `nets.train`, with `engine` as the name.
    ensemble : Ensemble
        Networks to train.
    optimizer : Optimizer
        Rates.

    Raises
    ------
    InputError
        If a value is not allowed, or the engine cannot train this model on this device.
    """
    choice("dtype", dtype, ("float32", "float64"))
    choice("engine", name, ("auto", "fused", "torch"))
    stable = flag("stable_gradient", stable_gradient)
    place, kind = _device(device), type(ensemble.model)
    if chunk is not None:
        chunk = whole_number("chunk", chunk, 1)
    dense = issubclass(kind, DenseModel) and kind.outputs is DenseModel.outputs
    if name != "torch" and dense and place == "cpu":
        return FusedEngine(ensemble, optimizer, dtype, stable_gradient=stable)
    if name == "fused":
        raise InputError(
            f"engine must be 'auto' or 'torch' for {kind.__name__} on {place}, got 'fused', which trains "
            "models of dense layers on a CPU"
        )
    import torch

    from nets.engines.torch import BatchedEngine

    # A captured step may not wait for the device. That of dense layers does not, and that of a model with
    # outputs of its own may.
    graphs = place != "cpu" and dense
    device_ = torch.device(place)
    return BatchedEngine(ensemble, optimizer, dtype, device_, chunk, graphs=graphs, stable_gradient=stable)


def _device(device: Any) -> str:
    """Return the checked name of a device, without an import of PyTorch for "cpu"."""
    if str(device) == "auto":
        return "cuda" if cuda_is_available() else "cpu"
    if str(device) == "cpu":
        return "cpu"
    import torch

    try:
        place = torch.device(device)
        if place.type != "cuda":
            raise RuntimeError("no CUDA device")
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, AssertionError) as error:  # PyTorch says what this machine lacks
        reason = str(error).splitlines()[0]
        raise InputError(
            f"device must be 'auto', 'cpu' or a CUDA device of this machine, such as 'cuda' or 'cuda:1', got "
            f"{short_text(device)} ({reason})"
        ) from None
    return str(place)
