"""`grokphys train`: any model of the toolkit, as one ensemble, from the command line."""

import re
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from experiments.options import summarise
from physics import groups
from physics.errors import InputError

ModelName = Literal[
    "constant-attention", "embedding-mlp", "toy-addition", "group-decoder", "transformer", "images"
]
Numbers = Annotated[tuple[float, ...], tyro.conf.arg(metavar="X [X ...]")]
Widths = Annotated[tuple[int, ...] | None, tyro.conf.arg(metavar="WIDTH ...")]
Words = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")]
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
)
"""Options of `train` that are the model's; each model has some of them."""
PER_MEMBER = (
    "learning_rate",
    "weight_decay",
    "embedding_learning_rate",
    "embedding_weight_decay",
    "layer_scale",
    "embedding_scale",
)
"""Rates and scales of which each network of an ensemble may have its own; others take an ensemble each."""
GROUPS = {
    "Z": groups.cyclic,
    "S": groups.symmetric,
    "A": groups.alternating,
    "D": groups.dihedral,
}


def train(
    model: ModelName = "constant-attention",
    tokens: int | None = None,
    dim: int | None = None,
    hidden: Widths = None,
    kind: Literal["regression", "classification"] | None = None,
    group: str | None = None,
    scale: float | None = None,
    initialisation: str | None = None,
    depth: int | None = None,
    heads: int | None = None,
    width: int | None = None,
    causal: bool | None = None,
    dropout: float | None = None,
    data: str | None = None,
    *,
    runs: int = 1,
    steps: int = 2000,
    seed: int = 0,
    first_run: int = 0,
    learning_rate: Numbers = (0.01,),
    weight_decay: Numbers = (1.0,),
    embedding_learning_rate: Numbers = (),
    embedding_weight_decay: Numbers = (),
    freeze_embedding: bool = False,
    batch_size: int | None = None,
    train_fraction: float = 0.8,
    shared: Words = (),
    layer_scale: Numbers = (1.0,),
    embedding_scale: Numbers = (1.0,),
    record: str = "20",
    observables: Words = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy"),
    threshold: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = (),
    track: int | None = None,
    stop_at_thresholds: bool = False,
    dtype: Literal["float32", "float64"] = "float32",
    engine: Literal["auto", "fused", "torch"] = "auto",
    device: str = "auto",
    out: Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> int:
    """Train networks as one ensemble, and record how their embeddings move.

    Rates and scales take one number for all networks, or one for each.

    Args:
        model: constant-attention (Musat §3), embedding-mlp (Ding §2), toy-addition (Liu §2), group-decoder
            (Liu, Appendix H), transformer (Liu §4.2) or images (Liu, Appendix J).
        tokens: number of tokens, or modulus.
        dim: dimension of the embedding.
        hidden: widths of the hidden layers.
        kind: regression or classification, of toy-addition.
        group: group of the group-decoder: Z5, S3, A4, D4 or Q8.
        scale: width of the interval that toy-addition and group-decoder draw embeddings from.
        initialisation: pytorch, kaiming_uniform, kaiming_normal, xavier_uniform or xavier_normal.
        depth: blocks of the transformer.
        heads: attention heads of a block.
        width: hidden units of its feed-forward layer.
        causal: whether the first token is kept from attending to the second.
        dropout: rate of dropout in the transformer's blocks.
        data: digits, or the path of MNIST's IDX files or of an npz archive, for images.
        runs: number of networks; network k is drawn from the k-th child of the seed.
        steps: number of optimiser steps; epochs, where the batch is full.
        seed: seed of the ensemble.
        first_run: number of the first network, for shards of a larger ensemble.
        learning_rate: AdamW's learning rate.
        weight_decay: decoupled weight decay.
        embedding_learning_rate: that of the embedding, if it differs.
        embedding_weight_decay: that of the embedding, if it differs.
        freeze_embedding: keep the embedding as it begins.
        batch_size: examples of a step; all of them if not given.
        train_fraction: part of all examples to train on.
        shared: what all networks share: embedding, layers, split, targets, noise.
        layer_scale: factor of the drawn layers.
        embedding_scale: factor of the drawn embedding.
        record: when to record: every K steps, 'log', 'log:N' (N a decade), '1:1000,100' (every step to 1000,
            then every hundredth), or a list such as 0,10,100.
        observables: what to record beside the embeddings; also weight_norm, bias_norm, quality, gradient,
            layers.
        threshold: record the first step at which train_accuracy, validation_accuracy or quality reaches a
            value, as train_accuracy=0.9.
        track: look at the thresholds every so many steps.
        stop_at_thresholds: end a network once it has reached all thresholds.
        dtype: number type of training and recording.
        engine: fused kernels on a CPU, PyTorch, or what is faster.
        device: 'auto', 'cpu' or 'cuda'.
        out: file to stream the trajectory to; without it only the summary is printed.
        overwrite: replace the file if it exists.
        resume: go on with the unfinished run in OUT.partial, from its last checkpoint.
    """
    from nets.train import train as train_model  # torch takes seconds to import; other commands do without

    chosen = {
        "tokens": tokens,
        "dim": dim,
        "hidden": hidden,
        "kind": kind,
        "group": group,
        "scale": scale,
        "initialisation": initialisation,
        "depth": depth,
        "heads": heads,
        "width": width,
        "causal": causal,
        "dropout": dropout,
        "data": data,
    }
    trajectory = train_model(
        build(model, {name: value for name, value in chosen.items() if value is not None}),
        runs=runs,
        steps=steps,
        seed=seed,
        first_run=first_run,
        learning_rate=_one_or_each(learning_rate),
        weight_decay=_one_or_each(weight_decay),
        embedding_learning_rate=_one_or_each(embedding_learning_rate),
        embedding_weight_decay=_one_or_each(embedding_weight_decay),
        freeze_embedding=freeze_embedding,
        batch_size=batch_size,
        train_fraction=train_fraction,
        shared=shared,
        layer_scale=_one_or_each(layer_scale),
        embedding_scale=_one_or_each(embedding_scale),
        record=record,
        observables=observables,
        thresholds=dict(map(named_value, threshold)),
        track=track,
        stop="thresholds" if stop_at_thresholds else None,
        dtype=dtype,
        engine=engine,
        device=device,
        out=out,
        overwrite=overwrite,
        resume=resume,
        progress=True,
    )
    return summarise(trajectory, out)


def build(name: str, options: dict[str, Any]) -> Any:
    """Return the model of that name, with the options that it has; a group by its short name."""
    import nets

    kinds = {
        "constant-attention": nets.ConstantAttention,
        "embedding-mlp": nets.EmbeddingMLP,
        "toy-addition": nets.ToyAddition,
        "group-decoder": nets.GroupDecoder,
        "transformer": nets.TokenTransformer,
        "images": nets.ImageMLP,
    }
    known = list(signature(kinds[name]).parameters)
    for option in options:
        if option not in known:
            raise InputError(f"{name} has no option {option}; it has {', '.join(known)}")
    if name == "constant-attention" and "hidden" in options:
        widths = options["hidden"]
        if len(widths) != 1:
            raise InputError(f"hidden must be one width for constant-attention, got {len(widths)}")
        options = {**options, "hidden": widths[0]}
    if "group" in options:
        options = {**options, "group": named_group(options["group"])}
    return kinds[name](**options)


def named_group(name: str) -> groups.FiniteGroup:
    """Return the group that a short name means: Z5, S3, A4, D4, Q8."""
    if name.upper() == "Q8":
        return groups.quaternion()
    found = re.fullmatch(r"([ZSAD])(\d+)", name.upper())
    if not found:
        raise InputError(f"group must be Zn, Sn, An, Dn or Q8, such as S3, got {name!r}")
    return GROUPS[found[1]](int(found[2]))


def _one_or_each(values: tuple[float, ...]) -> Any:
    return None if not values else values[0] if len(values) == 1 else list(values)


def named_value(text: str) -> tuple[str, float]:
    """Return the name and the number of NAME=VALUE."""
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise InputError(f"threshold must be NAME=VALUE, such as train_accuracy=0.9, got {text!r}") from None
