"""Files that pages upload, which are written into a private folder of limited size as they arrive."""

import contextlib
import secrets
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from tornado.ioloop import IOLoop
from tornado.web import RequestHandler, stream_request_body

from grokphys.options import sentence
from physics.checks import short_text
from physics.errors import FileFormatError, InputError
from physics.trajectory import Trajectory

LARGEST_UPLOAD = 2**28
"""Largest size of one file in bytes."""
UNCLAIMED_SECONDS = 60
"""Seconds for which an uploaded file is kept if no page claims it."""
LARGEST_FOLDER = 2**30
"""Largest size of all uploaded files together in bytes."""


class Uploads:
    """The uploaded files of a server, each with a key that cannot be guessed.

    Parameters
    ----------
    folder : Path
        Private folder, which only its owner can read; whoever has created it removes it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[Path, int] = {}
        self._names: dict[str, tuple[Path, str]] = {}

    def begin(self, size: int) -> Path:
        """Return the path at which an upload of some size is written, and count this size from now on.

        Parameters
        ----------
        size : int
            Size of the file in bytes.

        Returns
        -------
        Path
            Path of a file in the private folder, which does not exist yet.

        Raises
        ------
        InputError
            If the file is empty or larger than `LARGEST_UPLOAD`, or if all uploads together would be larger
            than `LARGEST_FOLDER`.
        """
        if not 0 < size <= LARGEST_UPLOAD:
            raise InputError(f"an upload must have from 1 to {LARGEST_UPLOAD} bytes, got {size}")
        if (whole := sum(self._sizes.values()) + size) > LARGEST_FOLDER:
            raise InputError(
                f"all uploads together must have at most {LARGEST_FOLDER} bytes, got {whole}; close a page "
                "that holds some, or start the explorer with the file"
            )
        path = self._folder / f"{secrets.token_hex(16)}.h5"
        self._sizes[path] = size
        return path

    def keep(self, path: Path, name: str) -> str:
        """Keep an uploaded file, and return its key.

        Parameters
        ----------
        path : Path
            Path of the complete file, which `begin` has returned.
        name : str
            Name of the file on the user's machine, by which errors call it.

        Returns
        -------
        str
            Key that cannot be guessed, by which a page claims the file.

        Raises
        ------
        FileFormatError
            If the file cannot be read as a trajectory.
        """
        with named(path, name):
            Trajectory.open(path)
        key = path.stem
        self._names[key] = path, name
        return key

    def claim(self, key: str) -> tuple[Path, str]:
        """Return an uploaded file to the page that has its key; this works once for each key.

        Parameters
        ----------
        key : str
            Key that `keep` has returned.

        Returns
        -------
        Path
            Path of the file.
        str
            Name of the file on the user's machine.

        Raises
        ------
        InputError
            If there is no such key, or it has been used before.
        """
        if key not in self._names:
            raise InputError(
                f"upload must be the key of a file that has not been opened yet, got {short_text(key)}; "
                "upload the file again"
            )
        return self._names.pop(key)

    def expire(self, key: str) -> None:
        """Remove the uploaded file with a key, unless a page has claimed it."""
        if key in self._names:
            self.drop(self._names.pop(key)[0])

    def drop(self, path: Path) -> None:
        """Remove an uploaded file, so that its size no longer counts; it may be gone already."""
        path.unlink(missing_ok=True)
        self._sizes.pop(path, None)


@contextlib.contextmanager
def named(path: Path, name: str) -> Iterator[None]:
    """Let errors within a ``with`` block call a file by its name for the user instead of its path.

    An `OSError` within the block becomes a `FileFormatError`, unless `name` is the path itself. Errors other
    than `InputError`, `FileFormatError` and `OSError` stay as they are.
    """
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(path), name)) from None
    except (FileFormatError, OSError) as error:
        if str(path) == name:
            raise
        raise FileFormatError(sentence(error).replace(str(path), name)) from None


@stream_request_body
class UploadHandler(RequestHandler):
    """The handler of uploads: a file is the body of a POST request, and its key or an error is the answer.

    The argument "name" of the request is the name of the file on the user's machine.
    """

    def initialize(self, uploads: Uploads) -> None:
        """Keep the store of uploads."""
        self._uploads = uploads
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._failed: OSError | None = None

    def prepare(self) -> None:
        """Open a file for the body before it arrives, or refuse it if its size is missing or not allowed."""
        if self.request.method != "POST":
            return
        size = self.request.headers.get("Content-Length", "")
        if not size.isdecimal():
            self._refuse(411, "An upload must state its size in the header Content-Length.")
            return
        try:
            self._path = self._uploads.begin(int(size))
            self._file = self._path.open("xb")
        except (InputError, OSError) as error:
            self._refuse(413 if isinstance(error, InputError) else 507, sentence(error))
            return
        self.request.connection.set_max_body_size(LARGEST_UPLOAD)

    def data_received(self, chunk: bytes) -> None:
        """Write the next part of the body to the file, until an error occurs; `post` reports the error."""
        try:
            if self._file is not None and self._failed is None:
                self._file.write(chunk)
        except OSError as error:
            self._failed = error

    async def post(self) -> None:
        """Check the complete file, and answer with its key or the reason why it is refused.

        A file that no page claims within `UNCLAIMED_SECONDS` is removed.
        """
        assert self._path is not None
        try:
            self._close()
            if self._failed is not None:
                raise self._failed
            name = short_name(self.get_query_argument("name", ""))
            look = partial(self._uploads.keep, self._path, name)
            key = await IOLoop.current().run_in_executor(None, look)
        except (FileFormatError, InputError, OSError) as error:
            self._refuse(507 if isinstance(error, OSError) else 422, sentence(error))
        else:
            self._path = None
            IOLoop.current().call_later(UNCLAIMED_SECONDS, self._uploads.expire, key)
            self.finish(key)

    def on_finish(self) -> None:
        """Remove an upload that was refused, and keep any other."""
        self._forget()

    def on_connection_close(self) -> None:
        """Remove an upload that was interrupted."""
        self._forget()

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _forget(self) -> None:
        with contextlib.suppress(OSError):
            self._close()
        if self._path is not None:
            self._uploads.drop(self._path)
            self._path = None

    def _refuse(self, status: int, text: str) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(text + "\n")

    def write_error(self, status_code: int, **_named: Any) -> None:
        """Answer an error of HTTP as plain text."""
        self._refuse(status_code, f"The upload failed: {self._reason}.")


def short_name(name: str) -> str:
    """Return the last 100 printable characters of a file's name without its folders, or else "upload.h5"."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(letter for letter in last if letter.isprintable())[-100:].strip() or "upload.h5"


def unused(name: str, taken: Collection[str]) -> str:
    """Return the name, or if it is among those `taken`, the name with a number such as "run (2).h5"."""
    whole = Path(name)
    others = (f"{whole.stem} ({n}){whole.suffix}" for n in range(2, len(taken) + 3))
    return next(found for found in (name, *others) if found not in taken)
