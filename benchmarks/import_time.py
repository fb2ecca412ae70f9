"""How much longer `import physics` takes than `import numba`: medians over new interpreters, in turn.

Usage: python benchmarks/import_time.py [rounds]
"""

import statistics
import subprocess
import sys

CODE = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


def seconds(module: str) -> float:
    """Time one import in a new interpreter."""
    command = [sys.executable, "-c", CODE.format(module)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(rounds: int) -> None:
    """Print the medians, and the median and range of the differences of pairs."""
    seconds("physics")  # warm the disk cache
    pairs = [(seconds("numba"), seconds("physics")) for _ in range(rounds)]
    differences = sorted(physics - numba for numba, physics in pairs)
    print(f"import numba    {statistics.median(numba for numba, _ in pairs):.3f} s")
    print(f"import physics  {statistics.median(physics for _, physics in pairs):.3f} s")
    print(
        f"difference      {statistics.median(differences):.3f} s "
        f"({differences[0]:.3f} to {differences[-1]:.3f}, {rounds} pairs)"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
