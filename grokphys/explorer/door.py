"""The door: a request needs the token of the link, a host name of this server, and its own origin."""

import hmac
import ipaddress
import re
import secrets
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from bokeh.document.events import DocumentPatchedEvent
from bokeh.resources import Resources
from bokeh.server.connection import ServerConnection
from bokeh.server.tornado import BokehTornado
from tornado.httputil import HTTPServerRequest, split_host_and_port
from tornado.ioloop import IOLoop
from tornado.web import RequestHandler, stream_request_body

import physics
from grokphys.options import sentence

LIBRARIES = re.compile(r"/static/js/[\w-]+(\.min)?\.js")
"""Addresses of Bokeh's scripts, which reveal nothing about the pages and are sent without the token."""
UNUSED_SECONDS = 8
"""Seconds for which a session is kept after its connection has closed."""
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

    def refusal(self, request: HTTPServerRequest) -> str | None:
        """Return the sentence with which a request is refused, or None if it is allowed."""
        host = request.host.lower()
        name = split_host_and_port(host)[0]
        if name not in self._names and not is_address(name):  # such as the name of a site that resolves here
            shown = name if re.fullmatch(r"[\w.-]{1,253}", name) else "NAME"
            return f"This server does not go by the name {shown}. {ALLOW.format(name=shown)}"
        origin = request.headers.get("Origin")
        if origin is not None:
            scheme, _, place = origin.lower().partition("://")
            sender = split_host_and_port(place)[0]
            if scheme not in ("http", "https") or (place != host and sender not in self._public):
                return f"Requests from pages of other origins are refused. {ALLOW.format(name='NAME')}"
        if LIBRARIES.fullmatch(request.path):
            return None
        token = request.query_arguments.get("token", [b""])[-1]
        return None if hmac.compare_digest(token, self._token) else NO_LINK


def is_address(name: str) -> bool:
    """Return whether a host is given by its address, which no site of another name can stand for."""
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


class Connection(ServerConnection):
    """A connection that sends all changes of one reaction, or of one frame, in one message.

    Bokeh's session asks for one message for each change, and awaits all messages at the end. The first
    message can therefore carry all changes.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._changes: list[DocumentPatchedEvent] = []

    def send_patch_document(self, event: DocumentPatchedEvent) -> Awaitable[None]:
        """Return a coroutine that sends this change with all that are made before the coroutine runs."""
        self._changes.append(event)
        return self._send()

    def detach_session(self) -> None:
        """Leave the session, and only once, although both a ping and the socket may find the tab closed."""
        super().detach_session()
        self._socket.connection = None

    async def _send(self) -> None:
        changes, self._changes = self._changes, []
        if changes:
            await self._socket.send_message(self.protocol.create("PATCH-DOC", changes))


class Application(BokehTornado):
    """Bokeh's application behind a `Door`, whose pages use `Connection` and load only scripts that they need.

    Parameters
    ----------
    page : callable
        Function that fills the document of a new tab.
    door : Door
        Conditions that every request must meet.
    folder : Path
        Private folder of the files that pages upload.
    public : str, default ""
        Path at which a proxy shows the page, such as "/user/me/proxy/5006"; requests may come with it.
    """

    def __init__(self, page: Callable[[Any], None], door: Door, folder: Path, public: str = "") -> None:
        self._door, self._public = door, public
        super().__init__(
            page,
            extra_patterns=[("/upload", UploadHandler, {"folder": folder})],
            extra_websocket_origins=["*"],  # the door is stricter
            include_headers=[],
            include_cookies=[],
            ico_path="none",
            log_function=lambda _handler: None,  # addresses contain the token
            check_unused_sessions_milliseconds=1000,
            unused_session_lifetime_milliseconds=1000 * UNUSED_SECONDS,
        )

    def find_handler(self, request: HTTPServerRequest, **named: Any) -> Any:
        """Return the handler of a request: Bokeh's, or `Refused` if the request is not allowed.

        The address of the request loses its query, because an error of a handler is logged with the address.
        """
        if request.path.startswith(self._public + "/"):  # a proxy passes on its own address, or a shorter one
            request.path = request.path.removeprefix(self._public)
        words = self._door.refusal(request)
        request.uri = request.path
        if words is not None:
            return self.get_handler_delegate(request, Refused, {"words": words})
        return super().find_handler(request, **named)

    def new_connection(self, *arguments: Any) -> ServerConnection:
        """Return the `Connection` of a page and its session; the arguments are those of Bokeh."""
        connection = Connection(*arguments)
        self._clients.add(connection)
        return connection

    def resources(self, absolute_url: str | bool | None = None) -> Resources:
        """Return the scripts of Bokeh that a page loads: only the core and the widgets."""
        return super().resources(absolute_url).clone(components=["bokeh", "bokeh-widgets"])


@stream_request_body
class Refused(RequestHandler):
    """The handler that answers a refused request with one sentence, regardless of its method and body."""

    def initialize(self, words: str) -> None:
        """Keep the `words` of the answer."""
        self._words = words

    def prepare(self) -> None:
        """Answer the request before any method of HTTP is called."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self._words + "\n")

    def data_received(self, chunk: bytes) -> None:
        """Ignore the body of the request."""


class UploadHandler(RequestHandler):
    """The handler of uploads: a file is the body of a POST request, and its key or an error is the answer.

    The argument "name" of the request is the name of the file on the user's machine.
    """

    def initialize(self, folder: Path) -> None:
        """Choose the path of the file in the private folder."""
        self._path = folder / f"{secrets.token_hex(16)}.h5"

    async def post(self) -> None:
        """Keep the file if it is a trajectory, and answer with its key or the reason why it is refused."""
        name = self.get_query_argument("name", "") or "upload.h5"
        try:
            self._path.write_bytes(self.request.body)
            await IOLoop.current().run_in_executor(None, physics.load, self._path)
        except (physics.FileFormatError, physics.InputError, OSError) as error:
            self._path.unlink(missing_ok=True)
            self.set_status(422)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(sentence(error).replace(str(self._path), name) + "\n")
        else:
            self.finish(self._path.stem)
