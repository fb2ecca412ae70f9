"""The web application beneath the explorer: Bokeh's, which sends what the page needs and no more."""

from collections.abc import Awaitable
from typing import Any

from bokeh.document.events import DocumentPatchedEvent
from bokeh.resources import Resources
from bokeh.server.connection import ServerConnection
from bokeh.server.tornado import BokehTornado


class Connection(ServerConnection):
    """A connection that sends all changes of one reaction, or of one frame, in one message.

    The session asks for a message a change, and awaits them when it has done: the first one takes them all.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._changes: list[DocumentPatchedEvent] = []

    def send_patch_document(self, event: DocumentPatchedEvent) -> Awaitable[None]:
        """Return what sends this change, together with all that have come by then."""
        self._changes.append(event)
        return self._send()

    async def _send(self) -> None:
        changes, self._changes = self._changes, []
        if changes:
            await self._socket.send_message(self.protocol.create("PATCH-DOC", changes))


class Application(BokehTornado):
    """Bokeh's application with such connections, and without the libraries that no view uses."""

    def new_connection(self, *arguments: Any) -> ServerConnection:
        """Return a connection of a page with its session."""
        connection = Connection(*arguments)
        self._clients.add(connection)
        return connection

    def resources(self, absolute_url: str | bool | None = None) -> Resources:
        """Return the scripts that a page loads."""
        return super().resources(absolute_url).clone(components=["bokeh", "bokeh-widgets"])
