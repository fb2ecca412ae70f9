"""The neurons that read two tokens: which models have them, and the weights and logits of such networks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nets.architecture import EMBEDDING
from nets.models import Model
from physics.blas import one_blas_thread
from physics.errors import InputError


def has_neurons(model: Model) -> bool:
    """Return whether the model learns modular addition and its first neurons read two embeddings.

    They may read the sum or the concatenation of these. `neuron_weights` needs such a model, which a
    transformer is not.
    """
    layers = model.architecture
    return adds(model) and layers is not None and layers.combine in ("sum", "concatenate", "neurons")


def adds(model: Model) -> bool:
    """Return whether the model learns addition modulo its number of tokens by cross-entropy.

    Such a model has one logit for each result, which `all_logits` needs.
    """
    theory = model.theory
    modular = theory is not None and theory.modulus == model.tokens == model.task.classes
    return modular and model.loss == "cross_entropy"


@one_blas_thread
def neuron_weights(model: Model, parameters: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the weights that `Networks.neuron_weights` describes, from the parameters (runs, ...) by name.

    An `InputError` refuses a model for which `has_neurons` is false.
    """
    if not has_neurons(model):
        raise InputError(
            f"model must add two embeddings, or concatenate them, and learn addition modulo its tokens to "
            f"have neurons that read them, got {type(model).__name__}"
        )
    layers, E = model.architecture, parameters[EMBEDDING]
    assert layers is not None
    names = list(layers.layers)
    if layers.combine in ("sum", "concatenate"):
        first = parameters[f"{names.pop(0)}.weight"]
        found = {"W_in": np.matmul(E, first[:, : model.dim])}
        if layers.combine == "concatenate":
            found["second"] = np.matmul(E, first[:, model.dim :])
    else:
        found = {"W_in": E}
    return found if len(names) > 1 else {**found, "W_out": parameters[f"{names[0]}.weight"]}


def all_logits(model: Model, parameters: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the logits of all ordered pairs of tokens, from the parameters (runs, ...) by name.

    The axes of the result are the run, the first token, the second token, and the class. An `InputError`
    refuses a model for which `adds` is false.
    """
    import torch

    if not adds(model):
        raise InputError(
            f"model must learn addition modulo its tokens by cross-entropy, got {type(model).__name__}"
        )
    p = model.tokens
    pairs = torch.as_tensor(np.indices((p, p)).reshape(2, -1).T.copy())[None]
    tensors = {name: torch.as_tensor(value) for name, value in parameters.items()}
    runs = len(next(iter(parameters.values())))
    with torch.no_grad():
        members = ({name: value[run : run + 1] for name, value in tensors.items()} for run in range(runs))
        found = [model.outputs(member, pairs) for member in members]
    return torch.cat(found).reshape(runs, p, p, p).numpy()
