"""Refuses a file of the user that hides a package of GrokPhys; each package runs this file at its import."""

from importlib.util import find_spec
from pathlib import Path

here = Path(__file__).resolve().parents[1]
for name in ("physics", "nets", "analysis", "grokphys"):
    spec = find_spec(name)
    if spec is not None and spec.origin and Path(spec.origin).resolve().parents[1] != here:
        raise ImportError(f"{spec.origin} hides the package {name} of GrokPhys; rename it or move elsewhere")
