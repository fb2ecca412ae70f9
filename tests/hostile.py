"""A client of the explorer that is nobody's page: it says what it likes over a websocket of its own."""

import asyncio
import contextlib
import gc
import json
import re
import socket
import urllib.error
import urllib.request
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from bokeh.document import Document
from bokeh.protocol import Protocol
from bokeh.protocol.receiver import Receiver
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClosedError, websocket_connect


def alone(coroutine):
    """Run a coroutine in a thread of its own, as Playwright keeps the loop of this one."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, coroutine).result()


def apart(coroutine):
    """Run the coroutine of a client alone, and end its sockets in this test where it was turned away."""
    try:
        return alone(coroutine)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def asked(address, *, data=None, method=None, **headers):
    """Return status, headers and text of the answer to a request."""
    request = urllib.request.Request(address, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def raw(server, text):
    """Send a request as it is written, and return all that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(text.encode())
        with connection.makefile("rb") as answer:
            return answer.read().decode()


def session_token(server):
    """Return the token of a new session, which stands in the page."""
    return re.search(r'"token":"([^"]+)"', asked(server.link)[2])[1]


class Hostile:
    """A websocket that is open: `async with Hostile(server) as client`."""

    def __init__(self, server, session=None, arguments=None, **headers):
        self._session = session_token(server) if session is None else session
        query = f"?token={server.token}" if arguments is None else arguments
        address = server.url.replace("http", "ws") + "ws" + query
        self._request = HTTPRequest(address, headers=headers, connect_timeout=60, request_timeout=60)
        self._count = count()
        self.said = ""

    async def __aenter__(self):
        self._socket = await websocket_connect(self._request, subprotocols=["bokeh", self._session])
        self._receiver = Receiver(Protocol())
        self.greeting = await self._message()
        return self

    async def __aexit__(self, *_):
        self._socket.close()
        with contextlib.suppress(asyncio.TimeoutError):
            while await asyncio.wait_for(self._socket.read_message(), 3) is not None:
                pass

    async def _message(self):
        while (fragment := await asyncio.wait_for(self._socket.read_message(), 60)) is not None:
            message = await self._receiver.consume(fragment)
            if message is not None:
                self._listen(message)
                return message
        return None  # it was closed

    def _listen(self, message):
        """Note the last sentence that the page is told."""
        for event in message.content.get("events", []) if message.msgtype == "PATCH-DOC" else []:
            if event.get("attr") == "message":
                self.said = event["new"][2]

    async def ask(self, kind, content):
        """Send a message, and return the answer to it, or None if the server closes the connection."""
        number = f"hostile-{next(self._count)}"
        try:
            for part in ({"msgid": number, "msgtype": kind}, {}, content):
                await self._socket.write_message(json.dumps(part))
        except WebSocketClosedError:  # before all of the message was sent
            return None
        while (answer := await self._message()) is not None:
            if answer.header.get("reqid") == number:
                return answer
        return None

    async def patch(self, *events):
        """Send events, as a page does."""
        return await self.ask("PATCH-DOC", {"events": list(events)})

    async def change(self, model, name, value):
        """Set a property of a model."""
        model = {"id": model.id}
        return await self.patch({"kind": "ModelChanged", "model": model, "attr": name, "new": value})

    async def document(self):
        """Return the document of the session as the server has it."""
        document = Document()
        (await self.ask("PULL-DOC-REQ", {})).push_to_document(document)
        return document
