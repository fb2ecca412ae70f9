"""Ways to damage a file that only a checksum tells."""

from pathlib import Path

import h5py


def peak_gib():
    """Return the largest resident memory of this process so far in GiB, not of the one that began it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20


def flip(path):
    """Change three bytes in the middle of the first chunk of the positions."""
    with h5py.File(path) as file:
        where = file["particles/tokens/position/value"].id.get_chunk_info(0)
    with path.open("r+b") as file:
        file.seek(where.byte_offset + where.size // 2)
        file.write(b"\xff\x00\xff")
