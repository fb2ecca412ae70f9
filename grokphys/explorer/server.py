"""The command `grokphys explore`: the server of the explorer."""

import contextlib
import importlib.util
import ipaddress
import logging
import re
import secrets
import socket
import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import tyro
from tyro.conf import Positional

from grokphys.files import resolve
from grokphys.options import sentence
from physics.checks import whole_number
from physics.errors import InputError, OutputError

LARGEST_UPLOAD = 2**28
"""Largest size in bytes of an uploaded file, which is held in memory while it arrives."""
PREFIX = "grokphys-explore-"
"""Beginning of the name of the private folder of uploads."""
HERE = ("127.0.0.1", "localhost")
"""Names by which only this machine reaches itself."""
OptionalFiles = Annotated[
    tuple[str, ...], tyro.conf.arg(metavar="[FILE|'PATTERN' ...]", help_behavior_hint="(default: none)")
]
WARNING = (
    "other machines reach port {port} of this one, by the link with its name or address in it. Whoever has "
    "it can see the given files, upload others and run simulations here, and nothing is encrypted"
)


def explore(
    files: Positional[OptionalFiles] = (),
    *,
    port: int = 5006,
    host: str = "127.0.0.1",
    allow_origin: tuple[str, ...] = (),
    prefix: str = "",
    browser: Annotated[bool, tyro.conf.arg(help_behavior_hint="(default: on)")] = True,
) -> int:
    """Explore the systems of the toolkit live in a browser.

    The command serves a page until it is interrupted with Ctrl-C. Nothing is fetched from a network.

    Example: grokphys explore example:ding

    Args:
        files: Trajectory files to open; quoted patterns such as 'runs/*.h5'; or examples such as
            example:ding.
        port: Port to listen on, from 1 to 65535; 0 chooses a free one.
        host: IPv4 address or name to listen on. Only programs on this machine can reach the default address.
        allow_origin: Names by which a proxy shows the page, such as hub.example.org.
        prefix: Path at which a proxy shows the page, such as /user/me/proxy/5006.
        browser: Open the page in the default browser.
    """
    whole_number("port", port, 0, 65535)
    public = [_public_name(name) for name in allow_origin]
    if prefix and not re.fullmatch(r"(/[\w.~@%+-]+)+/?", prefix):
        raise InputError(f"prefix must be a path such as /user/me/proxy/5006, got {prefix!r}")
    prefix = prefix.rstrip("/")
    if not host or ":" in host:
        raise InputError(f"host must be an IPv4 address or a name, got {host!r}")
    if importlib.util.find_spec("bokeh") is None:
        raise OutputError("explore needs Bokeh: pip install 'grokphys[explore]'")
    paths = [path.absolute() for path in resolve([_unfinished(name) for name in files])] if files else []
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    names, token = _names(host, listening), secrets.token_urlsafe(32)
    if not _is_loopback(listening):
        print(f"grokphys: {WARNING.format(port=port)}", flush=True)
    _hush()
    link = f"http://{names[0]}:{port}/?token={token}"
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix=PREFIX) as own:
        if public or prefix:
            shown = f"https://{public[0]}" if public else "the address of the proxy and then "
            print(f"behind the proxy: {shown}{prefix}/?token={token}", flush=True)
        print(f"grokphys explore at {link} (end with Ctrl-C)", flush=True)
        if browser:  # the browser starts while the server is created, and waits for its answer
            _open(Path(own), link)
        from bokeh.server.server import BaseServer
        from tornado.httpserver import HTTPServer
        from tornado.ioloop import IOLoop

        from grokphys.explorer.door import Application, Door
        from grokphys.explorer.session import ENDED, page
        from grokphys.explorer.views import VIEWS

        door = Door(token, names, [name.partition(":")[0] for name in public])
        application = Application(page(VIEWS, paths, Path(own)), door, Path(own), prefix)
        largest: Any = {"max_body_size": LARGEST_UPLOAD, "max_buffer_size": LARGEST_UPLOAD}
        http = HTTPServer(application, idle_connection_timeout=60, **largest)
        http.add_socket(listening)
        server = BaseServer(IOLoop.current(), application, http)
        server.start()
        try:
            server.io_loop.start()
        finally:
            ENDED.set()
    return 0


def _unfinished(name: str) -> str:
    """Return the name with ".partial" if only that file exists, because it is still being recorded."""
    partial = f"{name}.partial"
    return partial if not Path(name).exists() and Path(partial).exists() else name


def _public_name(name: str) -> str:
    """Return the name, with a port if it has one, by which a proxy shows the page; refuse anything else."""
    host = re.sub(r"^https?://", "", name).rstrip("/")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(:\d{1,5})?", host):
        raise InputError(f"allow-origin must be a name such as hub.example.org, got {name!r}")
    return host


def _open(folder: Path, link: str) -> None:
    """Open the page in a browser through a private file that redirects to `link`.

    The link holds the secret token, and all users of the machine can read command lines.
    """
    page, address = folder / "open.html", quote(link, safe=":/?=-_.")
    page.write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={address}">\n')
    page.chmod(0o600)
    webbrowser.open(page.as_uri())


def _hush() -> None:
    """Suppress log messages about tabs that are closed while a frame is sent."""
    closed = {"WebSocketClosedError", "StreamClosedError"}
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
    logging.getLogger("asyncio").addFilter(
        lambda record: type((record.exc_info or (None, None))[1]).__name__ not in closed
    )


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port of a host, or on a free port if `port` is 0.

    Raises
    ------
    OutputError
        If the socket cannot listen, such as on a port that is in use.
    """
    try:
        listening = socket.create_server((host, port), backlog=128)
    except OSError as error:
        reason = sentence(error).partition(" (while")[0]
        raise OutputError(
            f"cannot listen on port {port} of {host}: {reason}; choose another with --port or --host"
        ) from None
    listening.setblocking(False)
    return listening


def _is_loopback(listening: socket.socket) -> bool:
    """Return whether only programs on this machine can reach a socket."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def _names(host: str, listening: socket.socket) -> list[str]:
    """Return the names of this server besides all addresses, that of the link first."""
    address = listening.getsockname()[0]
    if ipaddress.ip_address(address).is_unspecified:
        return [*HERE, socket.gethostname(), socket.getfqdn()]
    return [host, address, *(HERE if _is_loopback(listening) else ())]
