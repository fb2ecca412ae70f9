"""Train ensembles of small networks, and record how their embeddings move.

An ensemble is a number of networks, its members, that are trained together and differ in their seed. `train`
trains and records an ensemble, `Training` is the same loop step by step, and `Recorder` records a PyTorch
loop of your own. `networks` restores trained networks from a recorded trajectory. The glossary
(docs/glossary.md) defines the terms of the field.
"""

import runpy

import lazy_loader

runpy.run_path(f"{__path__[0]}/../physics/siblings.py")

import nets.engines.threads  # noqa: E402, F401 - before anything imports PyTorch
from nets.networks import networks  # noqa: E402, F401 - now, because its module has the same name

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
