"""One arena for every theory: networks remade from seeds, theories that predict some of them, and scores.

An ensemble of networks is trained from its seed and split by networks. A theory is fitted to one half and
sees a part of the other: the track says which. Its prediction is scored network by network, beside the two
ends of the scale, *nothing moves* and *another network from the same start*.

Examples
--------
>>> from grokphys import arena
>>> rows = arena.run(arena.TRACKS["fate"], [MyTheory()])  # doctest: +SKIP
>>> arena.summary(rows)  # doctest: +SKIP
"""

from collections.abc import Mapping

from analysis.forces.frames import training_pairs
from grokphys.arena.shapes import Attention, Fate, Force
from grokphys.arena.signals import Signals, Survivors
from grokphys.arena.track import ANOTHER, STILL, Theory, Track, run, seen, summary

TRACKS: Mapping[str, Track] = {track.name: track for track in (Fate(), Force(), Signals(), Survivors())}

__all__ = ["ANOTHER", "STILL", "TRACKS", "Attention", "Theory", "Track", "run", "seen", "summary"]
__all__ += ["training_pairs"]
