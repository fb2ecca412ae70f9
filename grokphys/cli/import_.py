"""`grokphys import`: conversion of a trajectory of another program."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from grokphys.options import Overwrite, given_otherwise
from grokphys.output import printable, refuse_existing
from physics.errors import InputError

Only = Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(help_behavior_hint="(default: ask)")]


def import_(
    path: Positional[Path],
    *,
    out: Annotated[Path | None, given_otherwise("none, only look", "FILE")] = None,
    array: Annotated[str | None, given_otherwise("the embedding by its name", "NAME")] = None,
    kind: Annotated[Literal["embedding", "neurons"], tyro.conf.arg(name="as")] = "embedding",
    modulus: Annotated[int | None, given_otherwise("that of the settings, if any", "P")] = None,
    transpose: Only = False,
    no_transpose: Only = False,
    tokens: Annotated[str | None, given_otherwise("the first P, or all", "FIRST:END")] = None,
    steps: Annotated[str | None, given_otherwise("those of the files", "LIST")] = None,
    step_key: Annotated[str | None, given_otherwise("global_step, step, epoch, ...", "NAME")] = None,
    step_name: Annotated[str | None, given_otherwise("the number in the name", "REGEX")] = None,
    overwrite: Overwrite = False,
) -> int:
    r"""Convert checkpoints or arrays of another program to a trajectory, or look what they hold.

    Without --out it prints what the files hold, where the steps can come from, and what it would make of
    them. Losses and settings in or beside the files are taken along. No code in a file is run.

    Example: grokphys import checkpoints/ --modulus 113 --out mine.h5

    Args:
        path: File or directory to read: PyTorch (.pt, .pth, .ckpt, .bin), pickles (.pkl), .safetensors,
            arrays (.npy, .npz), or H5MD (.h5, .h5md, .hdf5). A file may hold one state of a network, a
            list or mapping of states, or an array (steps, tokens, dim) or (runs, steps, tokens, dim). A
            directory holds checkpoints, such directories as steps (checkpoint-500/), or runs. A quoted
            pattern such as 'run/[0-9]*.pt' leaves files out.
        out: File to write. It is a trajectory, NAME.h5, and not one of the files that are read.
        array: Name of the array or parameter, such as embed.W_E or particles/trajectory/position.
        kind: What the positions are: embedding; or neurons, the weights W_in into a hidden layer, one row
            for each token, and W_out out of it. `grokphys analyze --neurons` reads these.
        modulus: Modulus p of the addition, at least 3. The axis of p or up to nine tokens more is that of the
            tokens, and the first p are kept; the others, such as "=", are left out.
        transpose: Take the last axis as the tokens, as in a matrix (dimensions, tokens).
        no_transpose: Take the last axis as the dimensions.
        tokens: Tokens to keep, such as 0:113. As many as P are the numbers 0 to P - 1.
        steps: Steps of the frames, such as 0,1:3001:30, where ranges have both ends.
        step_key: Name of the number in each file, or of the list beside an array, that is the step; none
            for 0, 1, 2, ...
        step_name: Regular expression with one group, the step in the names of the files, such as
            'model(\d+)_'.
        overwrite: Replace files that exist.
    """
    from grokphys.cli.main import in_options  # which imports this module
    from nets.reading.checkpoints import Wanted, files_of_runs, look, read

    if transpose and no_transpose:
        raise InputError("transpose must not be combined with --no-transpose")
    swap = True if transpose else False if no_transpose else None
    wanted = Wanted(array, kind, steps, step_key, step_name, modulus, swap, _slice(tokens))
    if out is None:
        for line in look(path, wanted, _bar).splitlines():
            print(printable(in_options(line, ["import"])))
        print("nothing is written: --out FILE converts it")
        return 0
    refuse_existing(out, overwrite)
    if out.exists() and any(file.samefile(out) for files in files_of_runs(path) for file in files):
        raise InputError(f"out must be another file than those that are read, got {out}")
    trajectory = read(path, wanted, _bar)
    trajectory.save(out, overwrite=overwrite)
    runs = f"{trajectory.runs} runs of " if trajectory.runs > 1 else ""
    print(
        f"{out}: {runs}{trajectory.frames} frames of {trajectory.tokens} tokens in {trajectory.dim} "
        f"dimensions, steps {trajectory.steps[0]} to {trajectory.steps[-1]}"
    )
    for note in trajectory.parameters["notes"]:
        print(printable(in_options(f"note: {note}", ["import"])))
    return 0


def _bar(paths: Sequence[Path]) -> Iterable[Path]:
    from grokphys.progress import progress

    return progress(paths, "import", "file") if len(paths) > 1 else paths


def _slice(text: str | None) -> Any:
    """Return the slice that a text such as 0:113 means."""
    if text is None:
        return None
    try:
        return slice(*(int(part) if part else None for part in text.split(":")))
    except (TypeError, ValueError):
        raise InputError(f"tokens must be FIRST:END, such as 0:113, got {text!r}") from None
