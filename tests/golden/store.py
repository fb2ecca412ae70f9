"""The stored goldens: one file of arrays for each family, one of the recipes' tables, and one of verdicts."""

import json
import lzma
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
RECIPES, VERDICTS = HERE / "recipes.json.xz", HERE / "verdicts.json"


def family_file(family: str) -> Path:
    """Return the file of a family, whose arrays are named CASE/ARRAY."""
    return HERE / f"{family}.npz"


def stored(family: str, name: str) -> dict[str, np.ndarray]:
    """Return the stored arrays of a case."""
    with np.load(family_file(family)) as file:
        return {key.split("/", 1)[1]: file[key] for key in file.files if key.split("/", 1)[0] == name}


def stored_recipes() -> dict[str, dict[str, dict[str, list[Any]]]]:
    """Return the columns of each table of each recipe."""
    return dict(json.loads(lzma.decompress(RECIPES.read_bytes())))


def run_recipes(names: Iterable[str], directory: Path) -> dict[str, dict[str, dict[str, list[Any]]]]:
    """Run recipes at their quick budget by the command, and return the columns of their tables."""
    names = list(names)
    options = ["--budget", "quick", "--directory", str(directory)]
    subprocess.run(
        [sys.executable, "-m", "grokphys", "reproduce", *(names or ["--all"]), *options],
        check=False,  # a recipe that fails is missing, and the others are compared
        stdout=subprocess.DEVNULL,
        env=os.environ | dict.fromkeys(THREADS, "1"),  # as in the suite, whose processes share the cores
        timeout=900,
    )
    result = {}
    for folder in sorted(directory.iterdir()):
        if (folder / "result.json").exists():
            tables = json.loads((folder / "result.json").read_text())["tables"]
            result[folder.name] = {name: json.loads((folder / f"{name}.json").read_text()) for name in tables}
    return result


def verdicts() -> dict[str, str]:
    """Return the verdict of each claim of the published results, by "RECIPE: CLAIM"."""
    found = {}
    for path in sorted((ROOT / "docs" / "results").glob("*/result.json")):
        about = json.loads(path.read_text())
        for claim in about["claims"]:
            found[f"{about['recipe']}: {claim['name']}"] = claim["verdict"]
    return found


def column(values: list[Any]) -> np.ndarray:
    """Return a column of a table as an array: null is NaN, and "inf" is infinite."""
    try:
        return np.array([np.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError):
        return np.array(values, str)


def other_sample(expected: np.ndarray, got: np.ndarray) -> str:
    """Say how the mean of a column differs by more than four standard errors, or return an empty string."""
    if expected.dtype.kind != "f" or got.dtype.kind != "f":
        return "" if expected.dtype.kind == got.dtype.kind else "another type"
    samples = [values[np.isfinite(values)] for values in (expected, got)]
    if not all(values.size for values in samples):
        return "" if not any(values.size for values in samples) else "no finite number in one of them"
    error = np.hypot(*(values.std() / len(values) ** 0.5 for values in samples))
    difference = abs(samples[0].mean() - samples[1].mean())
    allowed = 4 * error + 1e-3 * np.abs(samples[0]).max()
    return "" if difference <= allowed else f"means {difference:.2g} apart, allowed {allowed:.2g}"


ROUNDING = 1e-13
"""Rounding of a sum of numbers of order 1, whose last digits differ between processors."""


def differences(expected: np.ndarray, got: Any, tolerance: float) -> str:
    """Say how an array differs from the stored one, or return an empty string.

    Numbers may differ by `tolerance`, relative to the largest finite one of the stored array, and by rounding
    where that array is zero up to rounding, such as a sum of centered positions. Everything else is equal:
    shapes, integers, text, and which numbers are not finite.
    """
    got = np.asarray(got)
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    if expected.dtype.kind not in "fc":
        return "" if np.array_equal(got, expected) else f"{got} instead of {expected}"
    if got.dtype.kind not in "fciub":
        return f"type {got.dtype} instead of {expected.dtype}"
    finite = np.isfinite(expected)
    if (
        not np.array_equal(got[~finite], expected[~finite], equal_nan=True)
        or not np.isfinite(got[finite]).all()
    ):
        return "other numbers that are not finite"
    if not finite.any():
        return ""
    scale = np.abs(expected[finite]).max()
    worst = np.abs(got[finite].astype(expected.dtype) - expected[finite]).max()
    return (
        ""
        if worst <= max(tolerance * scale, ROUNDING)
        else f"{worst / scale if scale else worst:.2g} apart, allowed {tolerance:g}"
    )
