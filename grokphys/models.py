"""The models by their command-line names: how each is built, and trained by default."""

import re
from inspect import signature
from typing import Any

from physics.checks import short_text
from physics.errors import InputError
from physics.theory import groups

MODELS = (
    "ConstantAttention",
    "EmbeddingMLP",
    "ToyAddition",
    "GroupDecoder",
    "TokenTransformer",
    "ImageMLP",
    "TwoLayer",
)
"""Names of the models of `nets`, so that the help does not import PyTorch."""
OLD_NAMES = {"transformer": "token-transformer", "images": "image-mlp"}
"""Former names of models on the command line."""
LIU = {
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "embedding_learning_rate": 1e-3,
    "embedding_weight_decay": 0.0,
    "steps": 5000,
}
TRAINING: dict[str, dict[str, Any]] = {
    "constant-attention": {"learning_rate": 0.01, "weight_decay": 1.0, "steps": 2000},
    "embedding-mlp": {"learning_rate": 0.01, "weight_decay": 0.5, "steps": 30_000},
    "toy-addition": LIU,
    "group-decoder": LIU,
    "token-transformer": {**LIU, "weight_decay": 1.0, "steps": 2000},
    "image-mlp": {"learning_rate": 1e-3, "weight_decay": 0.01, "steps": 6000},
    "two-layer": {"learning_rate": 1e-4, "weight_decay": 0.0, "steps": 5000, "train_fraction": 1.0},
}
"""Default training of each model by its command-line name, after its paper (Musat §3; Ding §2, App. E;
Liu §4; He et al.).

Liu et al. vary the learning rate of the decoder (1e-5 to 1e-2) and its weight decay (from 0), and do not
state the number of steps; the values here lie in these ranges. The learning rate of their embeddings, 1e-3
without weight decay, is that of the paper.
"""
FIELDS: dict[str, dict[str, Any]] = {
    "constant-attention": {"tokens": 17, "dim": 2, "hidden": "32"},
    "embedding-mlp": {"tokens": 59, "dim": 128, "hidden": "100 100", "activation": "silu", "even": 0.0},
    "toy-addition": {"tokens": 10, "dim": 1, "hidden": "200 200", "kind": "regression", "scale": 1.0},
    "group-decoder": {"hidden": "200 200", "scale": 0.1, "group": "S3"},
    "token-transformer": {
        "tokens": 53,
        "dim": 256,
        "depth": 2,
        "heads": 1,
        "width": 256,
        "causal": True,
        "dropout": 0.0,
    },
    "image-mlp": {"hidden": "200 200", "data": "digits"},
    "two-layer": {"tokens": 23, "hidden": "512", "activation": "relu", "start": "random", "scale": 0.1},
}
"""Defaults of the models that the help states; a test compares them with the models."""
MODEL_OPTIONS = (
    "tokens",
    "dim",
    "hidden",
    "kind",
    "group",
    "scale",
    "initialisation",
    "depth",
    "heads",
    "width",
    "causal",
    "dropout",
    "data",
    "activation",
    "even",
    "start",
)
"""Options of `train` that belong to the model; each model has some of them."""
PER_MEMBER = (
    "learning_rate",
    "weight_decay",
    "embedding_learning_rate",
    "embedding_weight_decay",
    "layer_scale",
    "embedding_scale",
)
"""Rates and scales that may differ within an ensemble; each other setting needs a separate ensemble."""
GROUPS = {
    "Z": groups.cyclic,
    "S": groups.symmetric,
    "A": groups.alternating,
    "D": groups.dihedral,
}


def kebab(name: str) -> str:
    """Return the name of a class as the command line spells it.

    Parameters
    ----------
    name : str
        Name of a class, such as EmbeddingMLP.

    Returns
    -------
    str
        Name in lowercase with hyphens, such as embedding-mlp.
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def model_name(word: str) -> str:
    """Return the command-line name of a model.

    Parameters
    ----------
    word : str
        Name of its class, such as EmbeddingMLP; that name in lowercase with hyphens; or one of the
        `OLD_NAMES`.

    Returns
    -------
    str
        Name in lowercase with hyphens, such as embedding-mlp.

    Raises
    ------
    InputError
        If there is no such model.
    """
    names = {**{name: kebab(name) for name in MODELS}, **OLD_NAMES}
    found = names.get(word, word) if isinstance(word, str) else ""
    if found not in TRAINING:
        known = ", ".join(map(repr, TRAINING))
        raise InputError(
            f"model must be one of {known}, or the name of its class, such as EmbeddingMLP, got {word!r}"
        )
    return found


def defaults(model: str, *, frozen: bool = False) -> dict[str, Any]:
    """Return the default training of a model, as arguments of `nets.train`.

    Parameters
    ----------
    model : str
        Name of the model, as `model_name` accepts it.
    frozen : bool, default False
        Whether the embedding is frozen. It then has no learning rate and no weight decay.

    Returns
    -------
    dict of str to float or int
        Learning rates, weight decays, and number of steps; and for some models the fraction of examples to
        train on.

    Raises
    ------
    InputError
        If there is no such model.
    """
    own = TRAINING[model_name(model)]
    return {name: value for name, value in own.items() if not (frozen and name.startswith("embedding_"))}


def build(name: str, options: dict[str, Any]) -> Any:
    """Return the model of a name, with some options.

    Parameters
    ----------
    name : str
        Name of the model, as `model_name` accepts it.
    options : dict of str to object
        Fields of the model as on the command line: a group is given by its short name, and the widths of
        hidden layers as a tuple.

    Returns
    -------
    Model
        A model of `nets`, such as `nets.EmbeddingMLP`.

    Raises
    ------
    InputError
        If there is no such model, it has no such option, or a value is not allowed.
    """
    import nets

    name = model_name(name)
    kinds = {kebab(kind): getattr(nets, kind) for kind in MODELS}
    known = list(signature(kinds[name]).parameters)
    for option in options:
        if option not in known:
            got = short_text(options[option])
            raise InputError(
                f"{option} must be left out for {name}, whose options are {', '.join(known)}, got {got}"
            )
    if name in ("constant-attention", "two-layer") and "hidden" in options:
        widths = options["hidden"]
        if len(widths) != 1:
            raise InputError(f"hidden must be one width for {name}, got {len(widths)} widths")
        options = {**options, "hidden": widths[0]}
    if "group" in options:
        options = {**options, "group": named_group(options["group"])}
    return kinds[name](**options)


def named_group(name: str) -> groups.FiniteGroup:
    """Return the finite group with a short name.

    Parameters
    ----------
    name : str
        Z, S, A or D with a number n of at least 1, or Q8, in capital or small letters: Z5 is the cyclic
        group of order 5, S3 all and A4 the even permutations of so many symbols, D4 the symmetries of a
        square, and Q8 the quaternions.

    Returns
    -------
    physics.FiniteGroup
        The group.

    Raises
    ------
    InputError
        If the name has another form, the number is 0, or the group would be too large.
    """
    text = name.upper() if isinstance(name, str) else ""
    if text == "Q8":
        return groups.quaternion()
    found = re.fullmatch(r"([ZSAD])0*([1-9]\d{0,8})", text)
    if not found:
        shown = short_text(name if not text or len(text) < 40 else f"{name[:20]}…")
        raise InputError(
            f"group must be Q8, or Zn, Sn, An or Dn with n from 1 to 999999999, such as S3, got {shown}"
        )
    return GROUPS[found[1]](int(found[2]))


def named_value(text: str) -> tuple[str, float]:
    """Return the name and the number of an option of the form NAME=VALUE.

    Parameters
    ----------
    text : str
        Word of the command line, such as ``train_accuracy=0.9``.

    Returns
    -------
    str
        The name.
    float
        The number.

    Raises
    ------
    InputError
        If the text has another form.
    """
    name, _, value = text.partition("=")
    try:
        if name:
            return name, float(value)
    except ValueError:
        pass
    raise InputError(f"threshold must be NAME=VALUE, such as train_accuracy=0.9, got {text!r}")
