"""Activations of a `HookedTransformer` of TransformerLens, by the name of their hook, for `nets.Recorder`."""

from collections.abc import Callable
from typing import Any

import torch


def activations(model: Any, hook: str, inputs: Any, *, position: int = -1) -> Callable[[], Any]:
    """Return a function that computes activations, to be recorded.

    Parameters
    ----------
    model : HookedTransformer
        Model in training.
    hook : str
        Name of the hook, such as ``"blocks.0.mlp.hook_post"``.
    inputs : torch.Tensor, shape (examples, tokens)
        Inputs; each example is a point of the trajectory.
    position : int, default -1
        Place of the token in an example.

    Returns
    -------
    callable
        Function without arguments that returns the activations (examples, dim).

    Examples
    --------
    ``nets.Recorder(activations(model, "hook_embed", torch.arange(113)[:, None]), "embeddings.h5")``
    """

    def read() -> Any:
        with torch.no_grad():
            _, cache = model.run_with_cache(inputs, names_filter=hook)
        return cache[hook][:, position]

    return read
