"""Access control: requests need the token of the link, a host name of this server, and its own origin."""

import hmac
import re
from collections.abc import Collection
from typing import Any
from urllib.parse import quote

from tornado.httputil import HTTPServerRequest, split_host_and_port
from tornado.web import OutputTransform, RequestHandler, stream_request_body

LIBRARIES = re.compile(r"/static/js/[\w-]+(\.min)?\.js")
"""Routes of Bokeh's scripts, which reveal nothing about the pages and are sent without the token."""
NO_LINK = "Open the full link that `grokphys explore` printed: it contains the access token."


class Door:
    """The conditions that a request must meet: a known host, its own origin, and the token.

    The token is part of the link, and of the address of every request. A cookie is not used, because browsers
    send the cookies of 127.0.0.1 to all of its ports, and thus to the servers of other users.

    Parameters
    ----------
    token : str
        Secret text in the link, which cannot be guessed.
    names : collection of str
        Host names and addresses of this server. They are valid with any port, because tunnels choose their
        own.
    """

    def __init__(self, token: str, names: Collection[str]) -> None:
        self._token = token.encode()
        self._names = {name.lower() for name in names}

    @property
    def origins(self) -> list[str]:
        """Hosts whose pages may open a websocket, as a list in Bokeh's notation; `refusal` is stricter."""
        return [f"{name}:*" for name in sorted(self._names)]

    def refusal(self, request: HTTPServerRequest) -> str | None:
        """Return the sentence with which a request is refused, or None if it is allowed."""
        if split_host_and_port(request.host.lower())[0] not in self._names:
            return "This server does not go by that name."  # another site's name that resolves to this server
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() not in {
            f"{scheme}://{request.host.lower()}" for scheme in ("http", "https")
        }:
            return "Requests from pages of other origins are refused."
        if LIBRARIES.fullmatch(request.path):
            return None
        given = request.query_arguments.get("token", [b""])[-1]
        return None if hmac.compare_digest(given, self._token) else NO_LINK


@stream_request_body
class Refused(RequestHandler):
    """The answer to a refused request: one sentence, regardless of the method and the body."""

    def initialize(self, status: int, sentence: str) -> None:
        """Keep the HTTP `status` and the `sentence` of the answer."""
        self._status, self._sentence = status, sentence

    def prepare(self) -> None:
        """Answer the request with the status and the sentence, before any method of HTTP is called."""
        self.set_status(self._status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self._sentence + "\n")

    def data_received(self, chunk: bytes) -> None:
        """Ignore a part of the body of the request."""


class Headers(OutputTransform):
    """Headers of every answer: no caching, framing, content sniffing, or referrer to other sites."""

    def __init__(self, request: HTTPServerRequest) -> None:
        self._keep = LIBRARIES.fullmatch(request.path) is not None

    def transform_first_chunk(self, status_code: int, headers: Any, chunk: bytes, finishing: bool) -> Any:
        """Return the arguments of Tornado with these headers added; the body is sent unchanged."""
        headers["Content-Security-Policy"] = "frame-ancestors 'none'"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        headers["Referrer-Policy"] = "no-referrer"
        headers["X-Content-Type-Options"] = "nosniff"
        if not self._keep:
            headers["Cache-Control"] = "no-store"
        return status_code, headers, chunk


def forwarding(link: str) -> str:
    """Return a page that leads to the explorer.

    The browser is started with the file of this page, because all users of a machine can read command lines.

    Parameters
    ----------
    link : str
        Address of the explorer, with its token.

    Returns
    -------
    str
        HTML that opens the link at once.
    """
    return f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={quote(link, safe=":/?=-_.")}">\n'
