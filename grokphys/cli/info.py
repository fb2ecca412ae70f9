"""`grokphys info`: the content of trajectory files, also of a run while it is recorded."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from tyro.conf import Positional

from grokphys.options import Files, Switch
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
    from grokphys.batches import read_each
    from grokphys.files import resolve
    from physics.trajectory import load

    if follow:
        paths = resolve(files)
        if len(paths) != 1:
            raise InputError(f"files must be one file with --follow, got {len(paths)}")
        return _follow(load(paths[0]))
    failed: list[Path] = []
    for path, _, lines in read_each(files, _lines, failed):
        print(*map(printable, [path, *lines]), sep="\n")
    return 1 if failed else 0


def _lines(data: Any) -> list[str]:
    """Return lines of text on the content of a trajectory, each with an indent."""
    span = f"steps {data.steps[0]} to {data.steps[-1]}" if data.frames else "no frame yet"
    size = f"{data.runs} runs × {data.frames} frames × {data.tokens} tokens × {data.dim} dimensions"
    lines = [
        f"  complete     {'yes' if data.complete else 'no: unfinished or cut short'}",
        f"  positions    {size}, {data.dtype}, {span}",
    ]
    for name in data.observables:
        clock = data.clock(name)[0]
        span = f"steps {clock[0]} to {clock[-1]}" if len(clock) else "no step"
        apart = "" if clock is data.steps else f", own clock: {span}"
        lines.append(f"  observable   {name}, {len(clock)} frames{apart}")
    program = data.parameters.get("program", "unknown")
    lines.append(f"  made by      {program}, grokphys {data.made_with.get('grokphys', 'unknown')}")
    width = max([15, *(len(name) + 1 for name in data.parameters)])
    shown = {name: value for name, value in data.parameters.items() if name != "program"}
    return lines + [f"    {name:<{width}}{_shortened(value)}" for name, value in shown.items()]


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
