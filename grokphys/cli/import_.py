"""`grokphys import`: conversion of a trajectory of another program."""

import glob
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional

from grokphys.options import OutFile, Overwrite, given_otherwise
from grokphys.output import printable, refuse_existing
from physics.checks import whole_number
from physics.errors import FileFormatError, InputError

Only = Annotated[tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(help_behavior_hint="(default: ask)")]


def import_(
    source: Positional[Path],
    *,
    out: OutFile,
    array: Annotated[str | None, given_otherwise("the only one there is", "NAME")] = None,
    steps_array: Annotated[str | None, given_otherwise("the array steps, else 0, 1, 2, ...", "NAME")] = None,
    modulus: Annotated[int | None, given_otherwise("that of the file, if it has one", "P")] = None,
    transpose: Only = False,
    no_transpose: Only = False,
    dtype: Annotated[
        Literal["float32", "float64"] | None, given_otherwise("that of the source", "{float32,float64}")
    ] = None,
    overwrite: Overwrite = False,
) -> int:
    """Convert a trajectory of another program: an array, a PyTorch checkpoint, or a directory of checkpoints.

    An array has the shape (steps, tokens, dim) or (runs, steps, tokens, dim), and the embedding in a
    checkpoint the shape (tokens, dim), with at least 3 tokens and 1 dimension. No code in a file is run:
    files with Python objects in addition to numbers and tensors are refused.

    Example: grokphys import checkpoints/ --array embedding.weight --out mine.h5

    Args:
        source: File or directory to read: .npy, .npz, a PyTorch checkpoint (.pt, .pth, .ckpt, .safetensors),
            a directory of checkpoints or a quoted pattern such as 'run/[0-9]*.pt', or an H5MD file of another
            program (.h5, .h5md, .hdf5). The step of a checkpoint is the number in its name, such as
            step_100.pt, or the only one in the file that is called step, global_step, epoch or the like.
        out: File to write. It is a trajectory, NAME.h5, and not one of the files that are read.
        array: Name of the array in an .npz or H5MD file, or of the parameter in the checkpoints. It is needed
            unless one array has such a shape, or the name of one parameter contains "emb".
        steps_array: Name of the array in the file that holds the step of each frame, as whole numbers, or
            none for 0, 1, 2, ...; for a directory, name of the number in each checkpoint that is its step.
        modulus: Modulus of the tokens, at least 3, which is stored. The axis of this length is that of the
            tokens; up to 9 tokens more, such as that of "=", are left out.
        transpose: Take the last axis as the tokens, and the one before it as the dimensions, as in W_E of
            TransformerLens (d_model, tokens). One of the two options is needed where neither the modulus nor
            the name embedding.weight, as PyTorch stores it, says which axis is the tokens.
        no_transpose: Take the last axis as the dimensions, and the one before it as the tokens.
        dtype: Number type of the stored positions: float32, with about 7 significant digits, or float64, with
            about 16. Numbers of other types are stored without loss where one of these can hold them.
        overwrite: Replace files that exist.
    """
    from grokphys.importing import foreign_trajectory

    refuse_existing(out, overwrite)
    if modulus is not None:
        whole_number("modulus", modulus, 3)
    if transpose and no_transpose:
        raise InputError("--transpose and --no-transpose exclude each other, got both")
    read = [source, *source.iterdir()] if source.is_dir() else [source, *map(Path, glob.glob(str(source)))]  # noqa: PTH207
    if out.exists() and any(path.exists() and path.samefile(out) for path in read):
        raise InputError(f"out must be another file than those that are read, got {out}")
    if source.exists() and not (source.is_file() or source.is_dir()):
        raise FileFormatError(f"{source} is neither a file nor a directory, so nothing is imported")
    trajectory = foreign_trajectory(
        source,
        array=array,
        steps=steps_array,
        modulus=modulus,
        transpose=True if transpose else False if no_transpose else None,
        dtype=dtype,
        progress=True,
    )
    trajectory.save(out, overwrite=overwrite)
    runs = f"{trajectory.runs} runs of " if trajectory.runs > 1 else ""
    print(
        f"{out}: {runs}{trajectory.frames} frames of {trajectory.tokens} tokens in {trajectory.dim} "
        f"dimensions, steps {trajectory.steps[0]} to {trajectory.steps[-1]}"
    )
    for note in trajectory.parameters.get("notes", ()):
        print(printable(f"note: {note}"))
    return 0
