"""The application: the command line, the papers reproduced, reports, sweeps, the explorer and benchmarks.

This package combines `physics`, `nets` and `analysis`. Code that only moves, trains or measures belongs to
one of these three. Two functions are for scripts:

* `open_sweep` reads the results of ``grokphys sweep`` as one xarray dataset;
* `phase_diagram_of_networks` maps the phases of learning over two hyperparameters of any model.

Examples
--------
>>> import grokphys
>>> sweep = grokphys.open_sweep("results/sweep/networks", unstack=True)  # doctest: +SKIP
>>> sweep["validation_accuracy"].mean("run")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from physics.lazy import lazy

if TYPE_CHECKING:
    from grokphys.phases import phase_diagram_of_networks
    from grokphys.sweeps.index import open_sweep

__all__ = ["open_sweep", "phase_diagram_of_networks"]

HOMES = {
    "open_sweep": "grokphys.sweeps.index",
    "phase_diagram_of_networks": "grokphys.phases",
}
"""Module of each public name, which is imported when the name is first used: PyTorch takes seconds."""

__getattr__, __dir__ = lazy(__name__, HOMES)
