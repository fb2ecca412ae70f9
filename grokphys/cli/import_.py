"""`grokphys import`: conversion of a trajectory of another program."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from grokphys.options import OutFile, Overwrite, given_otherwise
from grokphys.output import refuse_existing
from physics.errors import FileFormatError, InputError


def import_(
    source: Positional[Path],
    *,
    out: OutFile,
    array: Annotated[str | None, given_otherwise("the only one there is", "NAME")] = None,
    steps_array: Annotated[str | None, given_otherwise("the array steps, else 0, 1, 2, ...", "NAME")] = None,
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
            or a directory of checkpoints. The step of a checkpoint is the last number in its name.
        out: File to write. It is a trajectory, NAME.h5, and not one of the files that are read.
        array: Name of the array in an .npz file, or of the parameter in the checkpoints. It is needed unless
            one array has such a shape, or the name of one parameter contains "emb".
        steps_array: Name of the array in an .npz file that holds the step of each frame, as whole numbers.
        dtype: Number type of the stored positions: float32, with about 7 significant digits, or float64, with
            about 16. Numbers of other types are stored without loss where one of these can hold them.
        overwrite: Replace files that exist.
    """
    from grokphys.importing import foreign_trajectory

    refuse_existing(out, overwrite)
    read = [source, *source.iterdir()] if source.is_dir() else [source]
    if out.exists() and any(path.exists() and path.samefile(out) for path in read):
        raise InputError(f"out must be another file than those that are read, got {out}")
    if source.exists() and not (source.is_file() or source.is_dir()):
        raise FileFormatError(f"{source} is neither a file nor a directory, so nothing is imported")
    trajectory = foreign_trajectory(source, array=array, steps=steps_array, dtype=dtype, progress=True)
    trajectory.save(out, overwrite=overwrite)
    runs = f"{trajectory.runs} runs of " if trajectory.runs > 1 else ""
    print(
        f"{out}: {runs}{trajectory.frames} frames of {trajectory.tokens} tokens in {trajectory.dim} "
        f"dimensions, steps {trajectory.steps[0]} to {trajectory.steps[-1]}"
    )
    return 0
