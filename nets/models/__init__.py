"""The models: the parameters, their initial values, and the outputs for a whole ensemble at once."""

from nets.models.dense import ConstantAttention, EmbeddingMLP, GroupDecoder, ImageMLP, ToyAddition, TwoLayer
from nets.models.model import DenseModel, Model, Parameters
from nets.models.transformer import TokenTransformer

__all__ = [
    "ConstantAttention",
    "DenseModel",
    "EmbeddingMLP",
    "GroupDecoder",
    "ImageMLP",
    "Model",
    "Parameters",
    "TokenTransformer",
    "ToyAddition",
    "TwoLayer",
]
