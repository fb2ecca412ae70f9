"""The models by their command-line names: how each is built, and trained by default."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_type_hints

from nets import models
from nets.settings import PER_MEMBER as PER_MEMBER
from nets.settings import Settings
from physics.checks import short_text
from physics.errors import InputError
from physics.theory import operations


def kebab(name: str) -> str:
    """Return the name of a class as the command line spells it: embedding-mlp for EmbeddingMLP."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


MODELS: Mapping[str, Any] = {
    kebab(kind.__name__): kind
    for kind in (
        models.ConstantAttention,
        models.EmbeddingMLP,
        models.ToyAddition,
        models.GroupDecoder,
        models.TokenTransformer,
        models.ImageMLP,
        models.TwoLayer,
    )
}
"""The classes of models of `nets` by their command-line names."""
FIXED = ("outputs_dim", "side", "embedding_penalty", "classes", "digest")
"""Fields of models that are no options of `train`."""
MODEL_OPTIONS: Mapping[str, Any] = {
    name: kind
    for model in MODELS.values()
    for name, kind in get_type_hints(model).items()
    if name in {field.name for field in dataclasses.fields(model)} - {*FIXED}
} | {"hidden": tuple[int, ...], "group": str, "activation": str}
"""Types of the options of `train` that belong to the model; each model has some of them."""
GROUPS = {
    "Z": operations.cyclic,
    "S": operations.symmetric,
    "A": operations.alternating,
    "D": operations.dihedral,
}


def model_name(word: str) -> str:
    """Return the command-line name of a model.

    Parameters
    ----------
    word : str
        Name of its class, such as EmbeddingMLP, or that name in lowercase with hyphens.

    Returns
    -------
    str
        Name in lowercase with hyphens, such as embedding-mlp.

    Raises
    ------
    InputError
        If there is no such model.
    """
    classes = {kind.__name__: name for name, kind in MODELS.items()}
    found = classes.get(word, word) if isinstance(word, str) else ""
    if found not in MODELS:
        known = ", ".join(map(repr, MODELS))
        raise InputError(
            f"model must be one of {known}, or the name of its class, such as EmbeddingMLP, got {word!r}"
        )
    return found


def stated(name: str) -> dict[str, str]:
    """Return the default of a model's field, or of a setting that its paper decides, by model, as text."""
    shown = {}
    for model, kind in MODELS.items():
        value = kind.settings.get(name)
        for field in dataclasses.fields(kind):
            if field.name == name:
                value = field.default
        if isinstance(value, float):
            shown[model] = f"{value:.6g}"
        elif isinstance(value, tuple):
            shown[model] = " ".join(map(str, value))
        elif value is dataclasses.MISSING:
            shown[model] = "S3"
        elif value is not None:
            shown[model] = str(value)
    return shown


def built(
    model: str, threshold: Sequence[str] = (), stop_at_thresholds: bool = False, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the model and the arguments of `nets.train` that options of the command line describe.

    Parameters
    ----------
    model : str
        Name of the model, as `model_name` accepts it.
    threshold : sequence of str, default ()
        Thresholds, each as NAME=VALUE.
    stop_at_thresholds : bool, default False
        Whether a network stops when it has reached all of them.
    **options
        Fields of the model, of which those that are None are left out, and settings of the training.

    Returns
    -------
    Model
        The model.
    dict of str to object
        Arguments of `nets.train`.

    Raises
    ------
    InputError
        If there is no such model, it has no such option, a threshold is given twice, or a value of the model
        is not allowed.
    """
    stop = "thresholds" if stop_at_thresholds else None
    network, settings = model_and_settings(model, options)
    return network, settings | {"thresholds": named_values("threshold", threshold), "stop": stop}


def model_and_settings(name: str, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the model of a name with those of the options that it has, and the settings of its training.

    Parameters
    ----------
    name : str
        Name of the model, as `model_name` accepts it.
    options : mapping of str to object
        Arguments of `nets.train`, and fields of the model as on the command line, of which those that are
        None are left out: a group is given by its short name, and the widths of hidden layers as a tuple.

    Returns
    -------
    Model
        A model of `nets`, such as `nets.EmbeddingMLP`.
    dict of str to object
        The arguments of `nets.train`.

    Raises
    ------
    InputError
        If there is no such model, it has no such option, or a value is not allowed.
    """
    training = {field.name for field in dataclasses.fields(Settings)}
    settings = {option: value for option, value in options.items() if option in training}
    values = {
        option: value for option, value in options.items() if option not in training and value is not None
    }
    name = model_name(name)
    known = [field.name for field in dataclasses.fields(MODELS[name])]
    for option, value in values.items():
        if option not in known:
            raise InputError(
                f"{option} must be left out for {name}, whose options are {', '.join(known)}, "
                f"got {short_text(value)}"
            )
    if name in ("constant-attention", "two-layer") and "hidden" in values:
        widths = values["hidden"]
        if len(widths) != 1:
            raise InputError(f"hidden must be one width for {name}, got {len(widths)} widths")
        values["hidden"] = widths[0]
    if "group" in values:
        values["group"] = named_group(values["group"])
    return MODELS[name](**values), settings


def named_group(name: str) -> operations.FiniteGroup:
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
        return operations.quaternion()
    found = re.fullmatch(r"([ZSAD])0*([1-9]\d{0,8})", text)
    if not found:
        shown = short_text(name if not text or len(text) < 40 else f"{name[:20]}…")
        raise InputError(
            f"group must be Q8, or Zn, Sn, An or Dn with n from 1 to 999999999, such as S3, got {shown}"
        )
    return GROUPS[found[1]](int(found[2]))


def named_values(option: str, words: Iterable[str]) -> dict[str, Any]:
    """Return the values of an option whose words are NAME=VALUE, by name.

    Parameters
    ----------
    option : str
        Name of the option.
    words : iterable of str
        Words of the command line, such as ``train_accuracy=0.9``.

    Returns
    -------
    dict of str to object
        Numbers, truth values and text, and for `hidden` and `shared` tuples of them.

    Raises
    ------
    InputError
        If a word has another form, or a name occurs twice.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if not name or not text:
            raise InputError(f"{option} must be NAME=VALUE, such as train_accuracy=0.9, got {word!r}")
        if name in values:
            raise InputError(f"{option} must give {name} once, got {values[name]!r} and {text!r}")
        several = name in ("hidden", "shared")
        values[name] = tuple(map(_value, text.split(","))) if several else _value(text)
    return values


def _value(text: str) -> Any:
    """Return a number or a truth value if the text is one, and otherwise the text."""
    for read in (json.loads, float):
        with contextlib.suppress(ValueError):
            return read(text.lower())
    return text
