"""`grokphys explore`: the server that a browser looks at."""

import contextlib
import errno
import importlib.util
import ipaddress
import logging
import socket
import webbrowser
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from experiments.files import resolve
from experiments.options import Files, sentence
from physics.checks import whole_number
from physics.errors import InputError, OutputError

LARGEST_UPLOAD = 2**28
UNUSED_SECONDS = 8
"""How long a session outlives its tab; it computes no more as soon as that is gone."""


def explore(
    files: Positional[Files] = (),
    *,
    port: int = 5006,
    host: str = "127.0.0.1",
    browser: bool = True,
) -> int:
    """Look at the toolkit's systems live in a browser.

    Runs until it is interrupted. Nothing is fetched from a network.

    Args:
        files: trajectory files or quoted glob patterns to look at.
        port: port to listen on; 0 for any free one.
        host: address to bind to; only programs of this machine reach the default.
        browser: open the page in the default browser.
    """
    whole_number("port", port, 0)
    if port > 65535:
        raise InputError(f"port must be at most 65535, got {port}")
    if ":" in host:
        raise InputError(f"host must be an IPv4 address or a name, got {host!r}")
    if importlib.util.find_spec("bokeh") is None:
        raise OutputError("explore needs Bokeh: pip install 'grokphys[explore]'")
    paths = resolve(files) if files else []
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    if not _is_loopback(host):
        print(
            f"grokphys: {host} can be reached by other machines: whoever reaches port {port} can run "
            "simulations here and see the given files; there is no password",
            flush=True,
        )
    _hush()
    address = f"http://{host}:{port}/"
    with contextlib.suppress(KeyboardInterrupt):
        print(f"grokphys explore at {address} (end with Ctrl-C)", flush=True)
        if browser:  # it starts, and waits for its answer, while the server is made
            webbrowser.open(address)
        server = make_server(paths, listening, [f"{name}:{port}" for name in _names(host)])
        server.start()
        server.io_loop.start()
    return 0


def make_server(paths: list[Path], listening: socket.socket, origins: list[str]) -> Any:
    """Return the server of a listening socket; neither it nor its `io_loop` has been started."""
    from bokeh.server.server import BaseServer
    from tornado.httpserver import HTTPServer
    from tornado.ioloop import IOLoop

    from experiments.explore.application import Application
    from experiments.explore.page import page
    from experiments.explore.views import VIEWS

    application = Application(
        page(VIEWS, paths),
        extra_websocket_origins=origins,
        check_unused_sessions_milliseconds=1000,
        unused_session_lifetime_milliseconds=1000 * UNUSED_SECONDS,
        websocket_max_message_size_bytes=LARGEST_UPLOAD,
        ico_path="none",
    )
    http = HTTPServer(application)
    http.add_socket(listening)
    return BaseServer(IOLoop.current(), application, http)


def _hush() -> None:
    """Let a tab that closes in the middle of a frame be nothing to report."""
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)

    def matters(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return type(error).__name__ not in ("WebSocketClosedError", "StreamClosedError")

    logging.getLogger("asyncio").addFilter(matters)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `port`, or on a free one for 0, or say why that cannot be."""
    try:
        listening = socket.create_server((host, port), backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OutputError(
                f"port {port} of {host} is in use; choose another with --port, or 0 for any"
            ) from None
        raise OutputError(f"cannot listen on port {port} of {host}: {sentence(error)}") from None
    listening.setblocking(False)
    return listening


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names(host: str) -> list[str]:
    """Names under which a browser may say that it reached this server: the origins of its websockets."""
    if _is_loopback(host):
        return ["127.0.0.1", "localhost"]
    if host != "0.0.0.0":
        return [host]
    name = socket.gethostname()
    found = {name, socket.getfqdn(), "localhost", "127.0.0.1"}
    with contextlib.suppress(OSError):  # a name that resolves to nothing: what was found has to do
        found |= {str(info[4][0]) for info in socket.getaddrinfo(name, None, socket.AF_INET)}
    return sorted(found)
