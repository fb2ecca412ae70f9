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
    """Return whether the model adds modulo its number of tokens and has neurons that read both tokens.

    `neuron_weights` needs this. A model without an `architecture` has no such neurons.
    """
    layers = model.architecture
    return adds(model) and layers is not None and layers.combine in ("sum", "concatenate", "neurons")


def adds(model: Model) -> bool:
    """Return whether the model has a logit for each result of an addition modulo the number of its tokens.

    Its loss must be the cross-entropy. `all_logits` needs this.
    """
    theory = model.theory
    modular = theory is not None and theory.modulus == model.tokens == model.task.classes
    return modular and model.loss == "cross_entropy"


@one_blas_thread
def neuron_weights(model: Model, parameters: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the effective weights of the first hidden layer, as arguments of `analysis.neuron_spectrum`.

    Parameters
    ----------
    model : Model
        Model of the networks.
    parameters : mapping of str to ndarray, shape (runs, ...) each
        Parameters of all members by name.

    Returns
    -------
    dict of ndarray
        "W_in" (runs, tokens, hidden), the embedding times the first layer, without biases. There is also
        "second", of the same shape, if the second token has separate weights, and "W_out" (runs, hidden,
        tokens), if there is only one hidden layer.

    Raises
    ------
    InputError
        If the model has no such neurons.
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
    """Return the logits of all ordered pairs of tokens.

    Parameters
    ----------
    model : Model
        Model that adds modulo its number of tokens.
    parameters : mapping of str to ndarray, shape (runs, ...) each
        Parameters of all members by name.

    Returns
    -------
    ndarray, shape (runs, tokens, tokens, tokens)
        Logit of each class c for the pair (a, b), with the axes run, a, b, c.

    Raises
    ------
    InputError
        If the model does not learn such an addition by cross-entropy.
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
