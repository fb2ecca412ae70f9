"""Access control: a request needs the token of the link, a host name of this server, and its own origin."""

import hmac
import re
from collections.abc import Collection
from typing import Any
from urllib.parse import quote

from tornado.httputil import HTTPServerRequest, split_host_and_port
from tornado.web import OutputTransform, RequestHandler, stream_request_body

LIBRARIES = re.compile(r"/static/js/[\w-]+(\.min)?\.js")
"""Addresses of Bokeh's scripts, which reveal nothing about the pages and are sent without the token."""
ALLOW = "If it stands behind a proxy of that name, start it with --allow-origin {name}."
NO_LINK = "Open the full link that `grokphys explore` printed: it contains the access token."


class Door:
    """The conditions that a request must meet: a known host, its own origin if it names one, and the token.

    The token is part of the link and of the address of every request but those for Bokeh's scripts. A cookie
    would not do, because browsers send the cookies of 127.0.0.1 to all of its ports, and thus to the servers
    of other users.

    Parameters
    ----------
    token : str
        Secret text in the link, which cannot be guessed.
    names : collection of str
        Host names and addresses of this server. They are valid with any port, because tunnels choose their
        own.
    public : collection of str, default ()
        Names by which a proxy answers for this server. Their pages may come with another host than their own,
        because proxies write their own name, or that of this machine, into the header Host.
    """

    def __init__(self, token: str, names: Collection[str], public: Collection[str] = ()) -> None:
        self._token = token.encode()
        self._public = {name.lower() for name in public}
        self._names = {name.lower() for name in names} | self._public

    @property
    def origins(self) -> list[str]:
        """Hosts whose pages may open a websocket, as "name:*" for Bokeh; `refusal` is stricter."""
        return [f"{name}:*" for name in sorted(self._names)]

    def refusal(self, request: HTTPServerRequest) -> str | None:
        """Return the sentence with which a request is refused, or None if it is allowed."""
        host = request.host.lower()
        name = split_host_and_port(host)[0]
        if name not in self._names:  # such as the name of a site that resolves here
            return f"This server does not go by the name {_shown(name)}. {ALLOW.format(name=_shown(name))}"
        origin = request.headers.get("Origin")
        if origin is not None:
            scheme, _, place = origin.lower().partition("://")
            sender = split_host_and_port(place)[0]
            if scheme not in ("http", "https") or (place != host and sender not in self._public):
                return f"Requests from pages of other origins are refused. {ALLOW.format(name='NAME')}"
        if LIBRARIES.fullmatch(request.path):
            return None
        given = request.query_arguments.get("token", [b""])[-1]
        return None if hmac.compare_digest(given, self._token) else NO_LINK


@stream_request_body
class Refused(RequestHandler):
    """The handler that answers a refused request with one sentence, regardless of its method and body."""

    def initialize(self, status: int, sentence: str) -> None:
        """Keep the HTTP `status` and the `sentence` of the answer."""
        self._status, self._sentence = status, sentence

    def prepare(self) -> None:
        """Answer the request with the status and the sentence, before any method of HTTP is called."""
        self.set_status(self._status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self._sentence + "\n")

    def data_received(self, chunk: bytes) -> None:
        """Ignore the body of the request."""


class Headers(OutputTransform):
    """Headers of every answer: no framing, content sniffing or referrer, and no caching but of scripts."""

    def __init__(self, request: HTTPServerRequest) -> None:
        self._keep = LIBRARIES.fullmatch(request.path) is not None

    def transform_first_chunk(self, status_code: int, headers: Any, chunk: bytes, finishing: bool) -> Any:
        """Return status, headers and body as Tornado gives them, with headers added."""
        headers["Content-Security-Policy"] = "frame-ancestors 'none'"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        headers["Referrer-Policy"] = "no-referrer"
        headers["X-Content-Type-Options"] = "nosniff"
        if not self._keep:
            headers["Cache-Control"] = "no-store"
        return status_code, headers, chunk


def forwarding(link: str) -> str:
    """Return HTML that opens a link, which holds the token, at once.

    A browser is started with a private file of this HTML instead of the link, because all users of a machine
    can read command lines.
    """
    return f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={quote(link, safe=":/?=-_.")}">\n'


def _shown(name: str) -> str:
    """Return a host name that a request brings as a sentence may repeat it."""
    return name if re.fullmatch(r"[\w.-]{1,253}", name) else "in its address"
