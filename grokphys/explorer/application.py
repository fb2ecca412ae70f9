"""The web application of the explorer: Bokeh's application behind access control, without unused parts."""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from bokeh.document.events import DocumentPatchedEvent
from bokeh.resources import Resources
from bokeh.server.connection import ServerConnection
from bokeh.server.tornado import BokehTornado
from bokeh.util.token import check_token_signature
from tornado.httputil import HTTPServerRequest

from grokphys.explorer.door import LIBRARIES, Door, Headers, Refused
from grokphys.explorer.uploads import UploadHandler, Uploads

UPLOAD = "/upload"
ROUTES = ("/", "/ws", UPLOAD)
"""Routes in addition to Bokeh's scripts; all other routes of Bokeh answer 404."""
NOTHING = (
    "There is nothing here. If a proxy shows the page at a path of its own, such as /user/me/proxy/5006, "
    "start the explorer with --prefix and this path."
)
LARGEST_MESSAGE = 2**20
"""Largest message of a page in bytes; files are not messages, but uploads."""


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
    uploads : Uploads
        Store of the files that pages upload.
    public : str, default ""
        Path at which a proxy shows the page, such as "/user/me/proxy/5006"; requests may come with it.
    **settings
        Further arguments of `BokehTornado`.
    """

    def __init__(
        self, page: Callable[[Any], None], door: Door, uploads: Uploads, public: str = "", **settings: Any
    ) -> None:
        self._door, self._secret, self._public = door, secrets.token_bytes(32), public
        super().__init__(
            page,
            extra_patterns=[(UPLOAD, UploadHandler, {"uploads": uploads})],
            extra_websocket_origins=door.origins,
            sign_sessions=True,  # clients can neither choose nor invent the number of a session
            secret_key=self._secret,
            include_headers=[],
            include_cookies=[],
            websocket_max_message_size_bytes=LARGEST_MESSAGE,
            ico_path="none",
            transforms=[Headers],
            log_function=lambda _handler: None,  # addresses contain the token
            **settings,
        )

    def find_handler(self, request: HTTPServerRequest, **named: Any) -> Any:
        """Return the handler of a request: Bokeh's, or `Refused` if the request is not allowed.

        The address of the request loses its query, because an error of a handler is logged with the address.
        """
        if request.path.startswith(self._public + "/"):  # a proxy passes on its own address, or a shorter one
            request.path = request.path.removeprefix(self._public)
        sentence = self._door.refusal(request)
        request.uri = request.path
        if sentence is not None:
            return self._refuse(request, 403, sentence)
        if not self._is_of_ours(request):
            return self._refuse(request, 403, "Sessions are numbered by this server alone.")
        if request.path not in ROUTES and not LIBRARIES.fullmatch(request.path):
            return self._refuse(request, 404, NOTHING)
        return super().find_handler(request, **named)

    def _is_of_ours(self, request: HTTPServerRequest) -> bool:
        """Return whether a request names no session but one that this server has signed, for a websocket.

        Only the header Sec-WebSocket-Protocol may name a session.
        """
        named = {"bokeh-token", "bokeh-session-id"} & set(request.query_arguments)
        if named or "Bokeh-Session-Id" in request.headers:
            return False
        _, _, token = request.headers.get("Sec-WebSocket-Protocol", "").partition(",")
        try:
            return not token.strip() or check_token_signature(token.strip(), self._secret, True)
        except Exception:  # any error that an invalid token causes
            return False

    def _refuse(self, request: HTTPServerRequest, status: int, sentence: str) -> Any:
        return self.get_handler_delegate(request, Refused, {"status": status, "sentence": sentence})

    def new_connection(self, *arguments: Any) -> ServerConnection:
        """Return the `Connection` of a page and its session; the arguments are those of Bokeh."""
        connection = Connection(*arguments)
        self._clients.add(connection)
        return connection

    def resources(self, absolute_url: str | bool | None = None) -> Resources:
        """Return the scripts of Bokeh that a page loads: only the core and the widgets."""
        return super().resources(absolute_url).clone(components=["bokeh", "bokeh-widgets"])
