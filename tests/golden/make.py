# ruff: noqa: E402
"""Make the goldens anew: python tests/golden/make.py [FAMILY ...], "recipes" and "verdicts" among them.

Only where a number must change, and with the reason in the commit.
"""

import json
import lzma
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

import numpy as np
from golden.cases import CASES
from golden.store import RECIPES, VERDICTS, family_file, run_recipes, verdicts


def main(chosen: list[str]) -> None:
    """Write the files of the chosen families, or of all."""
    families = sorted({case.family for case in CASES.values()})
    for family in [name for name in families if not chosen or name in chosen]:
        cases = [case for case in CASES.values() if case.family == family]
        arrays = {f"{case.name}/{key}": value for case in cases for key, value in case.compute().items()}
        np.savez_compressed(family_file(family), **arrays)
    if not chosen or "verdicts" in chosen:
        VERDICTS.write_text(json.dumps(verdicts(), indent=0, ensure_ascii=False) + "\n")
    if not chosen or "recipes" in chosen:
        with tempfile.TemporaryDirectory() as directory:
            tables = run_recipes([], Path(directory))
        RECIPES.write_bytes(lzma.compress(json.dumps(tables, sort_keys=True).encode()))


if __name__ == "__main__":
    main(sys.argv[1:])
