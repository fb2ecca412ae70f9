"""A file that changes all at once or not at all, whenever its process is killed.

HDF5 flushes in place, block after block, and its superblock last: a process killed in the middle leaves an
index that points behind the end of the file. So HDF5 writes here through a `TransactionalFile`. What is new
goes behind the end that was last committed, where nothing on disk refers to it; what changes the committed
part waits in memory. A commit appends a journal of the waiting writes with a checksum, makes them, and cuts
the journal off. A kill before the journal is whole leaves the file as it was; a kill after it leaves a
journal that the next reader looks through, and the next writer carries out.
"""

import contextlib
import io
import os
import struct
import zlib
from pathlib import Path

from physics.locks import lock

FOOTER = struct.Struct("<QQI8s")  # end of the file once committed, bytes of the journal, their checksum, mark
WRITE = struct.Struct("<QQ")  # address and length of one waiting write
MARK = b"GROKJRNL"
SUPERBLOCK_BYTES = 48


class TransactionalFile(io.RawIOBase):
    """What h5py takes for a file; locked against other writers while it is open for writing.

    Nothing that h5py calls raises: HDF5 cannot leave a failed write in order. The first failure is kept,
    what follows is let go, and `commit` raises it.

    Parameters
    ----------
    path : Path
        The file.
    mode : {"x", "r+", "r"}
        Create it, change it, or look at it, through its journal if it has one.

    Raises
    ------
    BlockingIOError
        If another process has it open for writing.
    OSError
        If it cannot be opened.
    """

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__()
        self._raw = io.FileIO(path, {"x": "x+", "r+": "r+", "r": "r"}[mode])
        try:
            lock(self._raw, shared=mode == "r")
            self._waiting, size = _journal(self._raw)
        except BaseException:
            self._raw.close()
            raise
        self._position = 0
        self._failure: OSError | None = None
        self._journalled = size is not None
        self._committed = self._raw.seek(0, os.SEEK_END) if size is None else size
        self._size = self._committed
        if self._journalled and mode == "r+":
            self._carry_out()

    def check(self) -> None:
        """Raise the failure of an earlier write or commit, if there was one."""
        if self._failure is not None:
            raise self._failure

    def commit(self) -> None:
        """Make everything written since the last commit part of the file.

        Raises
        ------
        OSError
            If a write failed, now or earlier. The file is then as the last commit left it.
        """
        if self._failure is None:
            try:
                self._write_journal()
                self._carry_out()
            except OSError as error:
                self._failure = error
        self.check()

    def sync(self) -> None:
        """Return when the operating system has it on disk."""
        os.fsync(self._raw.fileno())

    def close(self) -> None:
        """Close the file; what was not committed is gone."""
        if self.closed:
            return
        if self._raw.writable() and not self._journalled:
            with contextlib.suppress(OSError):
                self._raw.truncate(self._committed)
        self._raw.close()
        super().close()

    # -- what h5py calls -----------------------------------------------------------------------------------

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to an address."""
        self._position = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[
            whence
        ] + offset
        return self._position

    def tell(self) -> int:
        """Return the address."""
        return self._position

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill a buffer with what is committed and waiting; zeros where nothing was ever written."""
        start, view = self._position, memoryview(buffer).cast("B")
        self._raw.seek(start)
        filled = 0
        while filled < len(view) and (count := self._raw.readinto(view[filled:])):
            filled += count
        view[filled:] = bytes(len(view) - filled)
        for address, data in self._waiting:
            first, last = max(address, start), min(address + len(data), start + len(view))
            if first < last:
                view[first - start : last - start] = data[first - address : last - address]
        self._position += len(view)
        return len(view)

    def write(self, data: memoryview, /) -> int:  # type: ignore[override]
        """Write behind the committed part at once, and keep what changes it."""
        view, start = memoryview(data).cast("B"), self._position
        kept = min(max(self._committed - start, 0), len(view))
        if kept:
            self._waiting.append((start, bytes(view[:kept])))
        if kept < len(view) and self._failure is None:
            try:
                self._put(start + kept, view[kept:])
            except OSError as error:
                self._failure = error
        self._position += len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def truncate(self, size: int | None = None, /) -> int:
        """Set the size that the next commit gives the file."""
        self._size = self._position if size is None else size
        return self._size

    def flush(self) -> None:
        """Do nothing: what is written is part of the file when it is committed."""

    # -- the journal ---------------------------------------------------------------------------------------

    def _put(self, address: int, data: bytes | memoryview) -> None:
        self._raw.seek(address)
        done = 0
        while done < len(data):
            done += self._raw.write(data[done:])

    def _write_journal(self) -> None:
        body = b"".join(WRITE.pack(address, len(data)) + data for address, data in self._waiting)
        footer = FOOTER.pack(self._size, len(body), zlib.crc32(body), MARK)
        end = max(self._size, self._committed, self._raw.seek(0, os.SEEK_END))
        self._put(end, body + footer)
        self._journalled = True

    def _carry_out(self) -> None:
        # the superblock first: with the new end of the file in it, a plain reader finds whatever is there
        for address, data in sorted(self._waiting, key=lambda write: write[0] >= SUPERBLOCK_BYTES):
            self._put(address, data)
        self._raw.truncate(self._size)
        self._waiting.clear()
        self._committed, self._journalled = self._size, False


def has_journal(path: Path) -> bool:
    """Whether a process was killed while it committed to a file."""
    with io.FileIO(path) as file:
        return _journal(file)[1] is not None


def _journal(file: io.FileIO) -> tuple[list[tuple[int, bytes]], int | None]:
    """Return the writes of the journal at the end of a file and the size they give it, if there is one."""
    end = file.seek(0, os.SEEK_END)
    if end < FOOTER.size:
        return [], None
    file.seek(end - FOOTER.size)
    size, length, checksum, mark = FOOTER.unpack(file.read(FOOTER.size))
    if mark != MARK or length > end - FOOTER.size:
        return [], None
    file.seek(end - FOOTER.size - length)
    body = file.read(length)
    if zlib.crc32(body) != checksum:
        return [], None
    writes, at = [], 0
    while at < length:
        address, count = WRITE.unpack_from(body, at)
        at += WRITE.size + count
        writes.append((address, body[at - count : at]))
    return writes, size
