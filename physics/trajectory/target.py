"""The file that a run produces: permission to write it, its temporary names, and its publication."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator

from physics.checks import file_path, flag
from physics.errors import InUseError, OutputError
from physics.trajectory.header import Path
from physics.trajectory.locks import claim


class Target:
    """A file to be written: it is locked, written under a temporary name, and renamed when it is complete.

    Parameters
    ----------
    path : path
        Name of the finished file.
    overwrite : bool
        Whether an existing file, and an unfinished run, may be replaced.
    resume : bool, optional
        Whether an unfinished run may be continued; None if the caller cannot resume one.

    Attributes
    ----------
    path : Path
        Name of the finished file.
    partial : Path
        Name of the unfinished run, which a later process can resume: ``path.partial``.
    merging : Path
        Name of the complete file until it replaces `path`: ``path.merging``.

    Raises
    ------
    InputError
        If `path` is not the name of a file, or `overwrite` or `resume` is no truth value, such as the word
        "no".
    OutputError
        If the file may not be written, or another process writes it. Neither `path` nor `partial` has been
        changed then.
    """

    def __init__(self, path: Path, *, overwrite: bool, resume: bool | None = None) -> None:
        self.path, self._overwrite = file_path("path", path), flag("overwrite", overwrite)
        if resume is not None:
            flag("resume", resume)
        if not self.path.name or self.path.is_dir():
            raise OutputError(f"cannot write {self.path}: it is a directory")
        self.partial = self.path.with_name(self.path.name + ".partial")
        self.merging = self.path.with_name(self.path.name + ".merging")
        self._held = contextlib.ExitStack()
        directory = self.path.absolute().parent
        with self.sentences(), contextlib.ExitStack() as undo:
            if directory.exists() and not directory.is_dir():
                raise OutputError(f"cannot write {self.path}: {directory} is not a directory")
            if not directory.is_dir():
                raise OutputError(f"cannot write {self.path}: the directory {directory} does not exist")
            if not os.access(directory, os.W_OK):
                raise OutputError(f"cannot write {self.path}: no permission to write in {directory}")
            if self.path.exists() and not overwrite and not resume:
                raise OutputError(f"{self.path} exists; choose another name or pass overwrite (--overwrite)")
            if shutil.disk_usage(directory).free < 2**20:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            undo.callback(self._held.close)
            if not self._held.enter_context(claim(self.path)):
                raise InUseError(
                    f"{self.partial} is being written by another process; wait for it or stop it"
                )
            if self.partial.exists() and not overwrite and not resume:
                go_on = "" if resume is None else "resume (--resume) to continue it, or "
                raise OutputError(
                    f"{self.partial} holds an unfinished run; pass {go_on}overwrite (--overwrite) "
                    "to start again"
                )
            self.merging.unlink(missing_ok=True)  # left by a killed process
            undo.pop_all()

    def publish(self) -> None:
        """Give the complete file its name; without `overwrite`, a file that was created there stays.

        An `OutputError` says so. If the file system has no hard links, such a file is replaced nevertheless.
        """
        if self._overwrite:
            self.merging.replace(self.path)
            return
        try:
            os.link(self.merging, self.path)
        except FileExistsError:
            raise OutputError(
                f"{self.path} was created in the meantime; the finished run is in {self.partial}"
            ) from None
        except OSError:  # the file system has no hard links
            self.merging.rename(self.path)

    def close(self) -> None:
        """Remove the file `merging` if it is left, and release the lock."""
        self.merging.unlink(missing_ok=True)
        self._held.close()

    @contextlib.contextmanager
    def sentences(self, kept: str = "") -> Iterator[None]:
        """Turn errors of the operating system or of HDF5 into an `OutputError` that names this file.

        `kept` is the end of the message, which says which frames are kept.
        """
        try:
            yield
        except OutputError:
            raise
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise OutputError(f"cannot write {self.path}: {reason}{kept}") from error
