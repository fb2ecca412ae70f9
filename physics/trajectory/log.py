"""The log of a run that is being recorded: the content of ``NAME.partial`` until the run is complete.

A log only grows, by whole records: the description of the run, its initial arrays, blocks of frames, and the
end. Each record has its length and a CRC-32 checksum, as in the write-ahead logs of databases. A process that
is killed, or a disk that is full, can therefore damage nothing but the last record, which a reader recognizes
and leaves out.
"""

import io
import json
import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError
from physics.trajectory.header import Header, Layout

HEAD, ARRAY, FRAMES, END = b"GPhd", b"GPar", b"GPfr", b"GPen"
HEADER = struct.Struct("<4sIQ")  # kind, CRC-32 of the payload, length of the payload
RECORD = struct.Struct("<4sIQI")  # HEADER, and its own CRC-32
LARGEST_HEADER = 2**26
PIECE = 2**20
LARGEST_COPY = 2**24


def is_log(path: Path) -> bool:
    """Return whether an existing file begins with the bytes of a log, of which it must have at least four."""
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD


def _head(kind: bytes, parts: Sequence[Any]) -> bytes:
    """Return the bytes in front of a payload: its kind, checksum and length, and a checksum of these.

    `parts` are the buffers of the payload, one after the other. The second checksum distinguishes a damaged
    length from a truncated record.
    """
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    head = HEADER.pack(kind, checksum, sum(len(part) for part in parts))
    return head + zlib.crc32(head).to_bytes(4, "little")


class LogWriter:
    """Appends records to a log; a record that cannot be written completely is removed again.

    Without `end` a new log is created at `path`, which must not exist. A log is continued at `end`, the
    position in bytes at which its last whole record ends; what follows is cut off.
    """

    def __init__(self, path: Path, end: int | None = None) -> None:
        self._file = io.FileIO(path, "x" if end is None else "r+")
        self._end = end or 0
        self._file.truncate(self._end)
        self._file.seek(self._end)

    def append(self, kind: bytes, *parts: NDArray[Any] | bytes) -> None:
        """Append a record with the `parts` of its payload, or raise an `OSError` and append nothing.

        `kind` is one of `HEAD`, `ARRAY`, `FRAMES` and `END`.
        """
        views = [part if isinstance(part, bytes) else part.reshape(-1).view(np.uint8).data for part in parts]
        length = sum(len(view) for view in views)
        head = _head(kind, views)
        pieces: list[Any] = [b"".join([head, *views])] if length <= LARGEST_COPY else [head, *views]
        try:
            for piece in pieces:
                view = memoryview(piece)
                while len(view):
                    view = view[self._file.write(view) :]
        except BaseException:
            self._file.truncate(self._end)
            self._file.seek(self._end)
            raise
        self._end += RECORD.size + length

    def begin(self, header: Header, start: Mapping[str, NDArray[Any]]) -> None:
        """Write the records that precede the first frame: `header`, and each array of `start`, (runs, ...).

        The arrays must be in the order of ``header.start``.
        """
        self.append(HEAD, json.dumps(header.to_json(), allow_nan=False).encode())
        for values in start.values():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(values), allow_pickle=False)
            self.append(ARRAY, buffer.getvalue())

    def sync(self) -> None:
        """Return as soon as the operating system has the log on disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file, after which nothing can be appended."""
        self._file.close()


class Log:
    """The whole records of a log, each of which is checked when it is first read.

    Parameters
    ----------
    path : Path
        Name of the log, which another process may be writing.

    Attributes
    ----------
    complete : bool
        Whether the log has the record that marks the end of the run.
    end : int
        Position in bytes at which the last whole record ends.
    steps, times : ndarray of int64 and of float64, shape (frames,)
        Step and time of each frame.

    Raises
    ------
    FileFormatError
        If a record other than the last one is damaged, or the first record has an unknown schema.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: Header | None = None
        """Description of the run; None if the process was killed before it was written."""
        self.complete = False
        self.end = 0
        self.steps = np.empty(0, np.int64)
        self.times = np.empty(0)
        self._arrays: list[tuple[int, int]] = []
        self._blocks: list[tuple[int, int, int]] = []  # first frame, number of frames, address
        self._firsts = np.empty(0, np.int64)
        self.refresh()

    @property
    def layout(self) -> Layout:
        """Sizes and types of the frames and of the observables; the log must have a `header`."""
        assert self.header is not None
        return self.header.layout

    @property
    def frames(self) -> int:
        """Number of frames in whole records."""
        return len(self.steps)

    def refresh(self) -> int:
        """Read the records that were added since the last call, and return the number of new frames.

        A record that is damaged or out of place is a `FileFormatError`, unless it is the last one and may
        still be being written.
        """
        new: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            while not self.complete and self._next(file, size, new):
                pass
        self.steps = np.concatenate([self.steps, *(steps for steps, _ in new)])
        self.times = np.concatenate([self.times, *(times for _, times in new)])
        if new:
            self._firsts = np.array([first for first, _, _ in self._blocks])
        return sum(len(steps) for steps, _ in new)

    @property
    def begun(self) -> bool:
        """Whether all records that precede the first frame are present."""
        return self.header is not None and len(self._arrays) == len(self.header.start)

    def start(self) -> dict[str, NDArray[Any]]:
        """Return the arrays (runs, ...) with which the run begins, by name; `begun` must be true."""
        assert self.header is not None
        found = {}
        with self.path.open("rb") as file:
            for name, (address, length) in zip(self.header.start, self._arrays, strict=True):
                file.seek(address)
                found[name] = np.lib.format.read_array(io.BytesIO(file.read(length)), allow_pickle=False)
        return found

    def read(self, column: int, frames: range) -> NDArray[Any]:
        """Return some frames of one column of the layout, (len(frames), ...), in the order of `frames`.

        `column` is the index in ``layout.columns``: 0 for steps, 1 for times, 2 for positions, then the
        observables.
        """
        _, dtype, shape = self.layout.columns[column]
        found = np.empty((len(frames), *shape), dtype)
        if not found.size:
            return found
        before, size = self._offset(column), found[0].nbytes
        numbers = np.asarray(frames)
        owners = np.searchsorted(self._firsts, numbers, side="right") - 1
        with self.path.open("rb") as file:
            for inside in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(owners)) + 1):
                first, count, address = self._blocks[owners[inside[0]]]
                whole = [inside] if frames.step == 1 else [inside[k : k + 1] for k in range(len(inside))]
                for part in whole:
                    file.seek(address + count * before + (numbers[part[0]] - first) * size)
                    self._fill(file, found[part[0] : part[-1] + 1])
        return found

    def forget_after(self, step: int) -> None:
        """Forget every block that holds a frame after `step`, and the record that marks the end of the run.

        The log is then as if the run had stopped after the last block that is left. Only this object changes;
        the caller cuts the file at `end`.
        """
        kept = [block for block in self._blocks if self.steps[block[0] + block[1] - 1] <= step]
        if len(kept) < len(self._blocks):
            self.end = self._blocks[len(kept)][2] - RECORD.size
        elif self.complete:
            self.end -= RECORD.size
        frames = sum(count for _, count, _ in kept)
        self._blocks, self._firsts, self.complete = kept, self._firsts[: len(kept)], False
        self.steps, self.times = self.steps[:frames], self.times[:frames]

    def blocks(self) -> Iterator[list[NDArray[Any]]]:
        """Yield the columns of each block, (n, ...) for n frames: steps, times, positions, observables."""
        with self.path.open("rb") as file:
            for _, count, address in self._blocks:
                file.seek(address)
                payload = file.read(count * self._offset(len(self.layout.columns)))
                yield [
                    np.frombuffer(payload, dtype, count * math.prod(shape), count * self._offset(k)).reshape(
                        count, *shape
                    )
                    for k, (_, dtype, shape) in enumerate(self.layout.columns)
                ]

    def _fill(self, file: io.BufferedReader, values: NDArray[Any]) -> None:
        if values.nbytes and file.readinto(values.data.cast("B")) != values.nbytes:
            raise FileFormatError(f"{self.path} is damaged: it ends before its last recorded frame")

    def _offset(self, column: int) -> int:
        """Return the number of bytes that the columns before this one have in a frame."""
        return sum(np.dtype(d).itemsize * math.prod(s) for _, d, s in self.layout.columns[:column])

    def _next(self, file: io.BufferedReader, size: int, new: list[Any]) -> bool:
        """Read the next record, which begins at ``self.end``, and return whether it was whole.

        `size` is the length of the `file` in bytes. The steps and times of a block of frames are appended to
        `new`. A damaged record is a `FileFormatError`; the last one may still be being written.
        """
        file.seek(self.end)
        head = file.read(RECORD.size)
        if len(head) < RECORD.size:
            return False
        kind, checksum, length, own = RECORD.unpack(head)
        if own != zlib.crc32(head[: HEADER.size]):
            if not any(head):  # after a power failure there may be zeros in place of a record
                return False
            raise FileFormatError(f"{self.path} is damaged: its checksum fails at byte {self.end}")
        address, after = self.end + RECORD.size, self.end + RECORD.size + length
        if after > size:
            return False
        found, left = 0, length
        while left:
            piece = file.read(min(PIECE, left))
            if not piece:
                return False
            found, left = zlib.crc32(piece, found), left - len(piece)
        if found != checksum:
            if after == size:  # after a power failure, the length may be right and the content wrong
                return False
            raise FileFormatError(f"{self.path} is damaged: its checksum fails at byte {self.end}")
        self._take(kind, file, address, length, new)
        self.end = after
        return True

    def _take(self, kind: bytes, file: io.BufferedReader, address: int, length: int, new: list[Any]) -> None:
        file.seek(address)
        if kind == HEAD and self.header is None and length <= LARGEST_HEADER:
            self.header = Header.from_json(self.path, json.loads(file.read(length)))
        elif kind == ARRAY and self.header is not None:
            self._arrays.append((address, length))
        elif kind == FRAMES and self.header is not None:
            count, rest = divmod(length, self._offset(len(self.layout.columns)))
            if rest:
                raise FileFormatError(
                    f"{self.path} is damaged: a block does not hold a whole number of frames"
                )
            steps, times = np.empty(count, "<i8"), np.empty(count, "<f8")
            for values in (steps, times):
                self._fill(file, values)
            last = new[-1][0] if new else self.steps
            if not np.isfinite(times).all():
                raise FileFormatError(f"{self.path} is damaged: its times are not finite")
            if not count:
                raise FileFormatError(f"{self.path} is damaged: a block holds no frames")
            if np.any(np.diff(np.append(last[-1:], steps)) <= 0):
                raise FileFormatError(f"{self.path} is damaged: its steps do not increase")
            first = sum(self._blocks[-1][:2]) if self._blocks else 0
            self._blocks.append((first, count, address))
            new.append((steps, times))
        elif kind == END and self.header is not None:
            self.complete = True
        else:
            raise FileFormatError(f"{self.path} is damaged: a record of the kind {kind!r} is out of place")
