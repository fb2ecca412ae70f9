from .errors import FileFormatError, InputError, OutputError, SimulationError
from .examples import example
from .flows import AffineFlow
from .neurons.lottery import FourierLottery
from .pair_forces import PairForces
from .particles.structures import circle_ratio, grid_imperfections, is_circle
from .particles.system import ParticleSystem, forces
from .simulate import simulate
from .system import System
from .theory.closure import closures, critical_sizes
from .theory.linear_network import LinearNetwork
from .theory.operations import FiniteGroup, Operation, cyclic, random_training_sets, symmetric
from .theory.system import (
    EffectiveTheory,
    grokking_rates,
    ideal_accuracy,
    predicted_accuracy,
    representation_quality,
)
from .trajectory import Trajectory, load

__all__ = [
    "AffineFlow",
    "EffectiveTheory",
    "FileFormatError",
    "FiniteGroup",
    "FourierLottery",
    "InputError",
    "LinearNetwork",
    "Operation",
    "OutputError",
    "PairForces",
    "ParticleSystem",
    "SimulationError",
    "System",
    "Trajectory",
    "circle_ratio",
    "closures",
    "critical_sizes",
    "cyclic",
    "example",
    "forces",
    "grid_imperfections",
    "grokking_rates",
    "ideal_accuracy",
    "is_circle",
    "load",
    "predicted_accuracy",
    "random_training_sets",
    "representation_quality",
    "simulate",
    "symmetric",
]
