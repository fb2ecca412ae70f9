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

import runpy

import lazy_loader

runpy.run_path(f"{__path__[0]}/../physics/siblings.py")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
