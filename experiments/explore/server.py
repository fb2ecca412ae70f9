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
    if importlib.util.find_spec("panel") is None:
        raise OutputError("explore needs Panel: pip install 'grokphys[explore]'")
    paths = resolve(files) if files else []
    port = _free(host, port)
    if not _is_loopback(host):
        print(
            f"grokphys: {host} can be reached by other machines: whoever reaches port {port} can run "
            "simulations here and see the given files; there is no password",
            flush=True,
        )
    _hush()
    server = make_server(paths, host, port)
    address = f"http://{host}:{port}/"
    print(f"grokphys explore at {address} (end with Ctrl-C)", flush=True)
    if browser:
        webbrowser.open(address)
    with contextlib.suppress(KeyboardInterrupt):
        server.io_loop.start()
    server.stop()
    return 0


def make_server(paths: list[Path], host: str, port: int) -> Any:
    """Return the server, listening; its `io_loop` is not yet running."""
    import panel

    from experiments.explore.page import page
    from experiments.explore.views import VIEWS

    try:
        return panel.serve(
            {"/": page(VIEWS, paths)},
            address=host,
            port=port,
            websocket_origin=[f"{name}:{port}" for name in _names(host)],
            show=False,
            start=False,
            title="GrokPhys explorer",
            verbose=False,
            check_unused_sessions_milliseconds=1000,
            unused_session_lifetime_milliseconds=1000 * UNUSED_SECONDS,
            websocket_max_message_size=LARGEST_UPLOAD,
        )
    except OSError as error:
        raise _cannot_listen(host, port, error) from None


def _hush() -> None:
    """Let a tab that closes in the middle of a frame be nothing to report."""
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)

    def matters(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return type(error).__name__ not in ("WebSocketClosedError", "StreamClosedError")

    logging.getLogger("asyncio").addFilter(matters)


def _free(host: str, port: int) -> int:
    """Return `port`, or a free one for 0, or say why it cannot be listened on."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[
            0
        ]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            return int(probe.getsockname()[1])
    except OSError as error:
        raise _cannot_listen(host, port, error) from None


def _cannot_listen(host: str, port: int, error: OSError) -> OutputError:
    if error.errno == errno.EADDRINUSE:
        return OutputError(f"port {port} of {host} is in use; choose another with --port, or 0 for any")
    return OutputError(f"cannot listen on port {port} of {host}: {sentence(error)}")


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
