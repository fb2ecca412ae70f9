"""The log of a run that is being recorded: the content of ``NAME.partial`` until the run is complete.

A log is a head (a description of the run as a line of JSON, and its initial arrays), followed by one record
of fixed size for each frame, and by an end mark. Head and records have a checksum. A process that is killed,
or a disk that is full, can damage nothing but the last record, which a reader recognizes and leaves out.
"""

import math
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError
from physics.trajectory.header import DAMAGED, Clock, Header

HEAD = struct.Struct("<8sQI")
"""Magic bytes, and length and CRC-32 of the content of the head."""
RECORD = struct.Struct("<4sI")
"""Kind of the record, CRC-32 of its content, which begins with a clock."""
CLOCK = struct.Struct("<qd")
MAGIC, FRAME, END = b"GrokPhys", b"GPfr", RECORD.pack(b"GPen", 0)


def is_log(path: Path) -> bool:
    """Return whether an existing file begins with the bytes of a log."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def head_of(header: Header) -> bytes:
    """Return the head of the log of a run."""
    content = header.to_bytes()
    return HEAD.pack(MAGIC, len(content), zlib.crc32(content)) + content


def record_of(step: int, time: float, columns: list[NDArray[Any]]) -> bytes:
    """Return the record of a frame, of its contiguous positions and observables."""
    content = b"".join([CLOCK.pack(step, time), *(values.data for values in columns)])
    return RECORD.pack(FRAME, zlib.crc32(content)) + content


class EmptyLogError(FileFormatError):
    """A log has no whole head: its process was killed before it recorded anything."""


class Log:
    """The frames of a log, which another process may be writing; each is checked when it is first read.

    A damaged log is a `FileFormatError`, and so is one whose head is not complete.

    Attributes
    ----------
    header : Header
        Description of the run.
    steps, times : ndarray of int64 and of float64, shape (frames,)
        Step and time of each frame.
    complete : bool
        Whether the run is complete.
    """

    clocks: Mapping[str, Clock] = {}
    chunk = 1

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._head = file.read(HEAD.size)
            magic, length, checksum = HEAD.unpack(self._head.ljust(HEAD.size))
            self._begin = HEAD.size + length
            if self._begin > os.fstat(file.fileno()).st_size:
                raise EmptyLogError(f"{path} holds nothing: its process ended before it wrote anything")
            content = file.read(length)
        if zlib.crc32(content) != checksum or magic != MAGIC:
            raise self._damaged("the checksum of its head fails")
        try:
            self.header = Header.from_bytes(path, content)
        except FileFormatError:
            raise
        except DAMAGED as error:
            raise self._damaged(f"its head cannot be read ({error})") from None
        sizes = [np.dtype(kind).itemsize * math.prod(shape) for _, kind, shape in self.header.layout.columns]
        *self._offsets, self._record = np.cumsum([RECORD.size + CLOCK.size, *sizes]).tolist()
        self.steps, self.times, self.complete = np.empty(0, np.int64), np.empty(0), False
        self.refresh()

    @property
    def end(self) -> int:
        """Position in bytes at which the last whole frame ends."""
        return self._begin + len(self.steps) * self._record

    def refresh(self) -> None:
        """Read what was added since the last call; a resumed run may have gone back to a checkpoint."""
        clocks: list[tuple[int, float]] = []
        with self.path.open("rb", buffering=2**20) as file:
            size = self._checked_size(file)
            self.forget(max((size - self._begin) // self._record, 0))
            file.seek(self.end)
            last = int(self.steps[-1]) if len(self.steps) else -(2**63) - 1
            while not self.complete:
                record = file.read(self._record)
                self.complete = record.startswith(END)
                if self.complete or len(record) < self._record or not any(record[: RECORD.size]):
                    break  # a record that is not whole; after a power failure there may be zeros
                kind, checksum = RECORD.unpack_from(record)
                if kind != FRAME or zlib.crc32(memoryview(record)[RECORD.size :]) != checksum:
                    if file.tell() >= size:  # the last one may still be being written
                        break
                    raise self._damaged(f"the checksum of frame {len(self.steps) + len(clocks)} fails")
                step, time = CLOCK.unpack_from(record, RECORD.size)
                if step <= last or not math.isfinite(time):
                    raise self._damaged("its steps do not increase, or a time is not finite")
                last = step
                clocks.append((step, time))
        self.steps = np.append(self.steps, np.array([step for step, _ in clocks], np.int64))
        self.times = np.append(self.times, [time for _, time in clocks])

    def forget(self, frames: int) -> None:
        """Forget all but the first `frames` frames; only this object changes."""
        if frames < len(self.steps):
            self.steps, self.times, self.complete = self.steps[:frames], self.times[:frames], False

    def read(self, name: str | None, frames: range) -> NDArray[Any]:
        """Return some frames of the positions (None) or of an observable, (len(frames), runs, ...)."""
        layout = self.header.layout
        column = 0 if name is None else 1 + list(layout.observables).index(name)
        _, kind, shape = layout.columns[column]
        values = np.empty((len(frames), *shape), kind)
        with self.path.open("rb") as file:
            self._checked_size(file)
            for row, frame in zip(values.reshape(len(frames), math.prod(shape)), frames, strict=True):
                file.seek(self._begin + frame * self._record + self._offsets[column])
                if file.readinto(row.view(np.uint8).data) < row.nbytes:
                    raise self._damaged("it ends before its last recorded frame")
        return values

    def _checked_size(self, file: BinaryIO) -> int:
        """Return the size in bytes of the open log, which must be the one that was opened first."""
        if file.read(HEAD.size) != self._head:
            raise FileFormatError(f"{self.path} has changed since it was opened; open it again")
        return os.fstat(file.fileno()).st_size

    def _damaged(self, why: str) -> FileFormatError:
        return FileFormatError(f"{self.path} is damaged: {why}")
