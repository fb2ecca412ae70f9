"""The choice of an engine and of its optimizer."""

from typing import TYPE_CHECKING, Any, TypeAlias

from nets.engines.ensemble import Ensemble, Optimizer, per_member
from nets.engines.fused import FusedEngine
from nets.engines.threads import cuda_is_available
from nets.models import DenseModel
from physics.checks import choice, flag, number, real_array, whole_number
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
    """Check the settings of the optimizer, and return it with one value of each rate for each member.

    Parameters
    ----------
    runs : int
        Number of members.
    learning_rate, weight_decay : float or array_like, shape (runs,)
        Rates of the layers.
    embedding_learning_rate, embedding_weight_decay : float or array_like, shape (runs,), or None
        Rates of the embedding; None for those of the layers.
    betas : pair of float
        Decay rates of the moments, at least 0 and less than 1.
    epsilon : float
        Number greater than 0 that is added to the root of the second moment.
    kind : {"adamw", "sgd"}, default "adamw"
        Optimizer.

    Returns
    -------
    Optimizer
        Rates as arrays (runs,) of float64, and the other settings.

    Raises
    ------
    InputError
        If a value is out of its range.
    """
    pair = real_array("betas", betas)
    if pair.shape != (2,) or not ((pair >= 0) & (pair < 1)).all():
        raise InputError(f"betas must be two numbers of at least 0 and less than 1, got {betas!r}")
    if embedding_learning_rate is None:
        embedding_learning_rate = learning_rate
    if embedding_weight_decay is None:
        embedding_weight_decay = weight_decay
    return Optimizer(
        per_member("learning_rate", learning_rate, runs, 0.0),
        per_member("weight_decay", weight_decay, runs, 0.0),
        per_member("embedding_learning_rate", embedding_learning_rate, runs, 0.0),
        per_member("embedding_weight_decay", embedding_weight_decay, runs, 0.0),
        (float(pair[0]), float(pair[1])),
        number("epsilon", epsilon, above=0.0),
        choice("optimizer", kind, ("adamw", "sgd")),
    )


def choose_engine(
    name: str,
    ensemble: Ensemble,
    settings: Optimizer,
    dtype: str,
    device: str,
    chunk: int | None,
    *,
    stable_gradient: bool = False,
) -> Engine:
    """Return the engine that trains an ensemble.

    Parameters
    ----------
    name : {"auto", "fused", "torch"}
        Which engine; "auto" is "fused" if the model has an architecture and the device is a CPU.
    ensemble : Ensemble
        Networks to train.
    settings : Optimizer
        Rates.
    dtype : {"float32", "float64"}
        Number type.
    device : str
        "cpu", a CUDA device such as "cuda" or "cuda:1", or "auto", which is CUDA if it is available.
    chunk : int or None
        Largest number of members whose activations PyTorch holds at once; None lets it choose.
    stable_gradient : bool, default False
        Whether to compute the gradient of the cross-entropy without cancellation.

    Returns
    -------
    Engine
        A `FusedEngine` or a `BatchedEngine`, before its first step.

    Raises
    ------
    InputError
        If a value is not allowed, or the engine cannot train this model on this device.
    """
    choice("dtype", dtype, ("float32", "float64"))
    choice("engine", name, ("auto", "fused", "torch"))
    stable = flag("stable_gradient", stable_gradient)
    place = _device(device)
    if chunk is not None:
        chunk = whole_number("chunk", chunk, 1)
    can = ensemble.model.architecture is not None and place == "cpu"
    if name == "fused" and not can:
        raise InputError(
            f"engine must be 'auto' or 'torch' for {type(ensemble.model).__name__} on {place}, got 'fused', "
            "which trains models of dense layers on a CPU"
        )
    if name == "torch" or not can:
        import torch

        from nets.engines.torch import BatchedEngine

        # A captured step may not wait for the device. That of dense layers does not, and that of a model
        # with outputs of its own may.
        dense = type(ensemble.model).outputs is DenseModel.outputs
        graphs = place.startswith("cuda") and dense
        where = torch.device(place)
        return BatchedEngine(ensemble, settings, dtype, where, chunk, graphs=graphs, stable_gradient=stable)
    return FusedEngine(ensemble, settings, dtype, stable_gradient=stable)


def _device(device: str) -> str:
    """Return the checked name of a device, without an import of PyTorch for "cpu"."""
    if device == "auto":
        return "cuda" if cuda_is_available() else "cpu"
    if device == "cpu":
        return device
    import torch

    try:
        place = torch.device(device)
        torch.empty(0, device=place)
        missing = "" if place.type == "cuda" else "no CUDA device"
    except (RuntimeError, TypeError, AssertionError) as error:  # PyTorch says what this machine lacks
        missing = str(error).splitlines()[0]
    if missing:
        raise InputError(
            f"device must be 'auto', 'cpu' or a CUDA device of this machine, such as 'cuda' or 'cuda:1', got "
            f"{device!r} ({missing})"
        )
    return str(place)
