from .closure import Closures, closures, critical_sizes
from .linear_network import LinearNetwork
from .operations import (
    FiniteGroup,
    Operation,
    alternating,
    cyclic,
    dihedral,
    direct_product,
    quaternion,
    random_training_sets,
    symmetric,
)
from .system import (
    EffectiveTheory,
    augmented_training_set,
    grokking_rates,
    ideal_accuracy,
    ideal_quality,
    predicted_accuracy,
    representation_quality,
)

__all__ = [
    "Closures",
    "EffectiveTheory",
    "FiniteGroup",
    "LinearNetwork",
    "Operation",
    "alternating",
    "augmented_training_set",
    "closures",
    "critical_sizes",
    "cyclic",
    "dihedral",
    "direct_product",
    "grokking_rates",
    "ideal_accuracy",
    "ideal_quality",
    "predicted_accuracy",
    "quaternion",
    "random_training_sets",
    "representation_quality",
    "symmetric",
]
