"""Train ensembles of small networks, and record how their embeddings move.

An ensemble is a number of networks, its members, that are trained together and differ in their seed. `train`
trains and records an ensemble, `Training` is the same loop step by step, and `Recorder` records a PyTorch
loop of your own. `networks` restores trained networks from a recorded trajectory. The glossary
(docs/glossary.md) defines the terms of the field.
"""

from typing import TYPE_CHECKING

import nets.engines.threads  # noqa: F401 - first, before anything imports PyTorch

# isort: split
from nets.architecture import Architecture, embedded
from nets.interventions import keep_frequencies, scale_frequency, with_signals
from nets.models import (
    ConstantAttention,
    DenseModel,
    EmbeddingMLP,
    GroupDecoder,
    ImageMLP,
    Model,
    TokenTransformer,
    ToyAddition,
    TwoLayer,
)
from nets.networks import Networks, networks
from nets.provenance import training_sets
from nets.recording import recording_steps
from nets.tasks import Task
from nets.training import Training, train
from physics.lazy import lazy

if TYPE_CHECKING:
    from nets.recorder import Recorder

__all__ = [
    "Architecture",
    "ConstantAttention",
    "DenseModel",
    "EmbeddingMLP",
    "GroupDecoder",
    "ImageMLP",
    "Model",
    "Networks",
    "Recorder",
    "Task",
    "TokenTransformer",
    "ToyAddition",
    "Training",
    "TwoLayer",
    "embedded",
    "keep_frequencies",
    "networks",
    "recording_steps",
    "scale_frequency",
    "train",
    "training_sets",
    "with_signals",
]

__getattr__, __dir__ = lazy(__name__, {"Recorder": "nets.recorder"})  # it imports PyTorch
