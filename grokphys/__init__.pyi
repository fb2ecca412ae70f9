"""The public names, each of which is imported when it is first used: PyTorch takes seconds."""

from .phases import phase_diagram_of_networks as phase_diagram_of_networks
from .sweeps.index import open_sweep as open_sweep
