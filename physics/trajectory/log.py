"""The log of a run that is being recorded: the content of ``NAME.partial`` until the run is complete.

A log is a head (a description of the run as JSON, and its initial arrays), followed by one record of fixed
size for each frame, and by an end mark. Head and records have a checksum. A process that is killed, or a disk
that is full, can damage nothing but the last record, which a reader recognizes and leaves out.
"""

import json
import math
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.errors import FileFormatError
from physics.trajectory.header import DAMAGED, Header

HEAD = struct.Struct("<8sQI")
"""Magic bytes, length of the JSON text, CRC-32 of the text and of the initial arrays."""
RECORD = struct.Struct("<4sI")
"""Kind of the record, CRC-32 of its content."""
CLOCK = struct.Struct("<qd")
MAGIC, FRAME, END = b"GrokPhys", b"GPfr", RECORD.pack(b"GPen", 0)


def is_log(path: Path) -> bool:
    """Return whether an existing file begins with the bytes of a log."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def head_of(header: Header, start: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the head of the log of a run with the initial arrays `start`."""
    text = json.dumps(header.to_json(), allow_nan=False).encode()
    content = b"".join([text, *(np.ascontiguousarray(values).tobytes() for values in start.values())])
    return HEAD.pack(MAGIC, len(text), zlib.crc32(content)) + content


def record_of(step: int, time: float, columns: list[NDArray[Any]]) -> list[Any]:
    """Return the record of a frame as buffers to be written one after the other.

    `columns` are the contiguous positions and observables.
    """
    parts: list[Any] = [CLOCK.pack(step, time), *(v.reshape(-1).view(np.uint8).data for v in columns)]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    parts = [RECORD.pack(FRAME, checksum), *parts]
    return [b"".join(parts)] if sum(map(len, parts)) < 2**20 else parts


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
    end : int
        Position in bytes at which the last whole frame ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._head = file.read(HEAD.size)
            if len(self._head) < HEAD.size:
                raise _empty(path)
            magic, length, checksum = HEAD.unpack(self._head)
            if magic != MAGIC or HEAD.size + length > size:
                raise _empty(path) if magic == MAGIC else _damaged(path, "it is no log")
            text = file.read(length)
            try:
                self.header = Header.from_json(path, json.loads(text))
            except FileFormatError:
                raise
            except DAMAGED as error:
                raise _damaged(path, f"its head cannot be read ({error})") from None
            arrays = sum(
                np.dtype(kind).itemsize * math.prod(shape) for kind, shape in self.header.start.values()
            )
            if HEAD.size + length + arrays > size:
                raise _empty(path)
            content = file.read(arrays)
        if zlib.crc32(content, zlib.crc32(text)) != checksum:
            raise _damaged(path, "the checksum of its head fails")
        self._content, self._begin = content, HEAD.size + length + arrays
        self._sizes = [np.dtype(d).itemsize * math.prod(s) for _, d, s in self.header.layout.columns]
        self._record = RECORD.size + sum(self._sizes)
        self.steps, self.times, self.complete = np.empty(0, np.int64), np.empty(0), False
        self.refresh()

    @property
    def end(self) -> int:  # noqa: D102 - described above
        return self._begin + len(self.steps) * self._record

    def refresh(self) -> None:
        """Read what was added since the last call; a resumed run may have gone back to a checkpoint."""
        clocks: list[tuple[int, float]] = []
        with self.path.open("rb", buffering=2**20) as file:
            self._require_same(file)
            size = os.fstat(file.fileno()).st_size
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
                    raise _damaged(self.path, f"the checksum of frame {len(self.steps) + len(clocks)} fails")
                step, time = CLOCK.unpack_from(record, RECORD.size)
                if step <= last or not math.isfinite(time):
                    raise _damaged(self.path, "its steps do not increase, or a time is not finite")
                last = step
                clocks.append((step, time))
        if clocks:
            steps, times = zip(*clocks, strict=True)
            self.steps = np.append(self.steps, np.array(steps, np.int64))
            self.times = np.append(self.times, np.array(times, np.float64))

    def forget(self, frames: int) -> None:
        """Forget all but the first `frames` frames; only this object changes."""
        if frames < len(self.steps):
            self.steps, self.times, self.complete = self.steps[:frames], self.times[:frames], False

    def start(self) -> dict[str, NDArray[Any]]:
        """Return the arrays (runs, ...) with which the run begins, by name."""
        arrays, at = {}, 0
        for name, (kind, shape) in self.header.start.items():
            count = math.prod(shape)
            arrays[name] = np.frombuffer(self._content, kind, count, at).reshape(shape).copy()
            at += arrays[name].nbytes
        return arrays

    def read(self, column: int, frames: range) -> NDArray[Any]:
        """Return some frames of a column of the layout, (len(frames), runs, ...), in their order."""
        _, kind, shape = self.header.layout.columns[column]
        values = np.empty((len(frames), *shape), kind)
        rows = values.reshape(len(frames), math.prod(shape)).view(np.uint8)
        before = self._begin + RECORD.size + sum(self._sizes[:column])
        with self.path.open("rb", buffering=0) as file:
            self._require_same(file)
            for row, frame in zip(rows, frames, strict=True):
                file.seek(before + frame * self._record)
                view = row.data.cast("B")
                while len(view):
                    count = file.readinto(view)
                    if not count:
                        raise _damaged(self.path, "it ends before its last recorded frame")
                    view = view[count:]
        return values

    def _require_same(self, file: Any) -> None:
        file.seek(0)
        if file.read(HEAD.size) != self._head:
            raise FileFormatError(f"{self.path} has changed since it was opened; open it again")


def _damaged(path: Path, why: str) -> FileFormatError:
    return FileFormatError(f"{path} is damaged: {why}")


def _empty(path: Path) -> FileFormatError:
    return FileFormatError(f"{path} holds nothing: its process ended before it wrote anything")
