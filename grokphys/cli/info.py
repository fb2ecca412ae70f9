"""`grokphys info`: the content of trajectory files, also of a run while it is recorded."""

import sys
import time
from typing import Any

import numpy as np
from tyro.conf import Positional

from grokphys.options import Files, Switch, sentence
from grokphys.output import json_text, printable
from physics.errors import InputError

LONGEST_VALUE = 200
FOLLOW_SECONDS = 0.5


def info(files: Positional[Files], *, follow: Switch = False) -> int:
    """Print what trajectory files hold, whether they are complete, and how they were made.

    Example: grokphys info example:ding

    Args:
        files: Trajectory files, at least one; quoted patterns such as 'runs/*.h5'; or examples such as
            example:ding. Unfinished files (.partial) can be read too.
        follow: Print each new frame of one unfinished file until its run is complete. Press Ctrl-C to stop
            earlier.
    """
    from grokphys.files import resolve
    from physics.trajectory.stored import StoredTrajectory

    if follow:
        paths = resolve(files)
        if len(paths) != 1:
            raise InputError(f"files must be one file with --follow, got {len(paths)}")
        return _follow(StoredTrajectory(paths[0]))
    failures = 0
    for path in resolve(files):
        try:
            data = StoredTrajectory(path)
        except (ValueError, OSError) as error:
            failures += 1
            text = sentence(error)
            advice = "; grokphys import converts it" * ("H5MD file of another program" in text)
            print(f"grokphys: {printable(text + advice)}", file=sys.stderr)
            continue
        span = f"steps {data.steps[0]} to {data.steps[-1]}" if data.frames else "no frame yet"
        print(printable(path))
        print(f"  complete     {'yes' if data.complete else 'no: unfinished or cut short'}")
        size = f"{data.runs} runs × {data.frames} frames × {data.tokens} tokens × {data.dim} dimensions"
        print(f"  positions    {size}, {data.dtype}, {span}")
        for name in data.observables:
            clock = data.clock(name)[0]
            span = f"steps {clock[0]} to {clock[-1]}" if len(clock) else "no step"
            own = "" if clock is data.steps else f", own clock: {span}"
            print(printable(f"  observable   {name}, {len(clock)} frames{own}"))
        program = data.parameters.get("program", "unknown")
        print(printable(f"  made by      {program}, grokphys {data.code_version}"))
        width = max([15, *(len(name) + 1 for name in data.parameters)])
        for name, value in data.parameters.items():
            if name != "program":
                print(printable(f"    {name:<{width}}{_shortened(value)}"))
    return 1 if failures else 0


def _follow(data: Any) -> int:
    """Print the step and the mean observables of each frame that another process records."""
    seen = 0
    while True:
        try:
            shared = (name for name in data.observables if data.clock(name)[0] is data.steps)
            numbers = {name: values for name in shared if (values := data.observables[name]).ndim == 2}
        except FileNotFoundError:  # since the last look, the run was completed and its file renamed
            data.refresh()
            continue
        for frame in range(seen, data.frames):
            means = (f"{name} {np.mean(values[:, frame]):.6g}" for name, values in numbers.items())
            print(printable("  ".join([f"step {data.steps[frame]}", *means])), flush=True)
        seen = data.frames
        if data.complete:
            print(printable(f"{data.path}: complete, {data.frames} frames"))
            return 0
        while not data.refresh() and not data.complete:
            time.sleep(FOLLOW_SECONDS)


def _shortened(value: Any) -> str:
    """Return a stored value as JSON; a long one is cut, and its length is stated."""
    text = json_text(value, indent=None)
    if len(text) <= LONGEST_VALUE:
        return text
    items = f" ({len(value)} items)" if isinstance(value, dict | list | str) else ""
    return f"{text[:LONGEST_VALUE]} …{items}"
