"""Who may come in: whoever has the link, under a name of this server, from no page but its own."""

import hmac
import re
from collections.abc import Collection
from typing import Any
from urllib.parse import quote

from tornado.httputil import HTTPServerRequest, split_host_and_port
from tornado.web import OutputTransform, RequestHandler, stream_request_body

LIBRARIES = re.compile(r"/static/js/[\w-]+(\.min)?\.js")
"""Bokeh's scripts, which tell nothing of this server's pages: they are sent without the token."""
NO_LINK = "This server answers to the link that `grokphys explore` has printed, and to nothing else."


class Door:
    """What a request must have before anything looks at it: a known host, its own origin, the token.

    The token stands in the link, and in the address of every request. A cookie would carry it as well, but
    browsers send the cookies of 127.0.0.1 to all its ports, and so to the servers of other users.

    Parameters
    ----------
    token : str
    names : collection of str
        Host names and addresses of this server. Any port goes with them, as tunnels choose their own.
    """

    def __init__(self, token: str, names: Collection[str]) -> None:
        self._token = token.encode()
        self._names = {name.lower() for name in names}

    @property
    def origins(self) -> list[str]:
        """Hosts whose pages may open a websocket, as Bokeh writes them; `refusal` is stricter."""
        return [f"{name}:*" for name in sorted(self._names)]

    def refusal(self, request: HTTPServerRequest) -> str | None:
        """Return the sentence that turns a request away, or None where it may come in."""
        if split_host_and_port(request.host.lower())[0] not in self._names:
            return "This server does not go by that name."  # another site's, that now leads here
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() not in {
            f"{scheme}://{request.host.lower()}" for scheme in ("http", "https")
        }:
            return "Pages of other origins are not answered."
        if LIBRARIES.fullmatch(request.path):
            return None
        given = request.query_arguments.get("token", [b""])[-1]
        return None if hmac.compare_digest(given, self._token) else NO_LINK


@stream_request_body
class Refused(RequestHandler):
    """The answer to a request that may not come in: a sentence, whatever was asked for or is sent."""

    def initialize(self, status: int, sentence: str) -> None:
        """Take what there is to say."""
        self._status, self._sentence = status, sentence

    def prepare(self) -> None:
        """Say it before any method is looked at."""
        self.set_status(self._status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self._sentence + "\n")

    def data_received(self, chunk: bytes) -> None:
        """Let what comes go by."""


class Headers(OutputTransform):
    """Headers of every answer: nothing is kept, framed, guessed at, or told to another site."""

    def __init__(self, request: HTTPServerRequest) -> None:
        self._keep = LIBRARIES.fullmatch(request.path) is not None

    def transform_first_chunk(self, status_code: int, headers: Any, chunk: bytes, finishing: bool) -> Any:
        """Add them."""
        headers["Content-Security-Policy"] = "frame-ancestors 'none'"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        headers["Referrer-Policy"] = "no-referrer"
        headers["X-Content-Type-Options"] = "nosniff"
        if not self._keep:
            headers["Cache-Control"] = "no-store"
        return status_code, headers, chunk


def forwarding(link: str) -> str:
    """Return a page that leads to the link.

    A browser is given the file of this page, as the words of its command line can be read by all users.
    """
    return f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={quote(link, safe=":/?=-_.")}">\n'
