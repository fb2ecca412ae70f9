"""Trajectories out of files of other programs: checkpoints, arrays, H5MD. No code in them is run.

What a file does not say is asked for, never guessed: which axis is the tokens, and which number is the step.
"""

from nets.reading.checkpoints import from_frames, look, read_checkpoints

__all__ = ["from_frames", "look", "read_checkpoints"]
