import os
import subprocess
import sys

import pytest

import nets  # noqa: F401 - before torch, as it decides how PyTorch's threads wait

os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture
def python():
    """Run Python code in a fresh interpreter and return the finished process."""

    def run(code, *arguments, check=True, **options):
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=check,
            timeout=120,
            **options,
        )

    return run
