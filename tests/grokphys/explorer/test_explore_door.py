"""The explorer attacked as another user of the machine would: without the link, and with it but no page."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from bokeh.document import Document
from bokeh.models import (
    Button,
    CategoricalSlider,
    Checkbox,
    ColumnDataSource,
    Div,
    Select,
    Slider,
    Spinner,
    TextInput,
    Widget,
)
from browser import PATIENCE, Server, wait_for
from hostile import Hostile, apart, asked, raw, session_token
from tornado.httpclient import HTTPClientError

import physics
from grokphys.explorer.bridge import Bridge
from grokphys.explorer.page import page
from grokphys.explorer.uploads import LARGEST_UPLOAD, Uploads
from grokphys.explorer.views.tabs import VIEWS
from grokphys.explorer.views.view import prepared


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("door")


@pytest.fixture(scope="module")
def given(folder):
    """The one file that the server was given."""
    path = folder / "given.h5"
    physics.simulate(physics.ParticleSystem(7), runs=2, steps=5, seed=5, out=path)
    return path


@pytest.fixture(scope="module")
def secret(folder):
    """A file of the owner's that it was not given."""
    path = folder / "secret.h5"
    physics.simulate(physics.ParticleSystem(8), steps=3, seed=6, out=path)
    return path


@pytest.fixture(scope="module")
def server(folder, given):
    (folder / "tmp").mkdir()
    started = Server(given, TMPDIR=folder / "tmp")
    yield started
    said = started.stop()
    assert "Traceback" not in said, said
    assert started.token not in said.replace(started.link, ""), "the token is in the link and nowhere else"


def private(folder):
    (found,) = (folder / "tmp").glob("grokphys-explore-*")
    return found


# -- without the link ------------------------------------------------------------------------------------

PATHS = [
    "",
    "?token=",
    "?token=wrong",
    "?token={short}",
    "?token={token}&token=wrong",
    "?bokeh-session-id=mine",
    "index.html?{token}",
    "ws",
    "metadata",
    "autoload.js?bokeh-autoload-element=x",
    "upload?name=x.h5",
    "favicon.ico",
    "nowhere",
    "static/extensions/panel/panel.js",
    "static/js/../../server.py",
    "static/js/%2e%2e/%2e%2e/server.py",
    "static/js/../js/bokeh.min.js",
    "../../../../etc/passwd",
    "/etc/passwd",
]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize("path", PATHS)
def test_nobody_gets_anything_without_the_link(server, path, method):
    address = server.url + path.format(token=server.token, short=server.token[:-1])
    data = b"x" if method == "POST" else None
    status, headers, text = asked(address, method=method, data=data, Origin=server.url[:-1])
    assert status == 403
    assert method == "HEAD" or "Open the full link that `grokphys explore` printed" in text
    assert server.token not in text + str(headers)
    for header in ("Set-Cookie", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"):
        assert header not in headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": "token={token}"},
        {"Referer": "{link}"},
        {"Bokeh-Session-Id": "mine"},
        {"Authorization": "token wrong"},
        {"X-Forwarded-Host": "localhost"},
    ],
)
def test_no_header_stands_for_the_link(server, headers):
    headers = {name: text.format(token=server.token, link=server.link) for name, text in headers.items()}
    assert asked(server.url, **headers)[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "", "[::1]"]
)
def test_a_name_that_is_not_ours_is_refused_whatever_it_brings(server, host):
    """A site whose name is made to lead to this machine is of one origin with what it reads here."""
    host = host.format(port=server.port)
    origin = {"Origin": f"http://{host}"}
    for address in (server.link, server.url, server.url + "static/js/bokeh.min.js"):
        path = address.removeprefix(server.url)
        answer = raw(server, f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        assert answer.startswith(("HTTP/1.1 403", "HTTP/1.1 400"))
        assert "session" not in answer
    if host:
        with pytest.raises(HTTPClientError, match="403"):
            apart(_greeted(server, Host=host, **origin))


@pytest.mark.parametrize("host", ["localhost:{port}", "LOCALHOST:{port}", "127.0.0.1:8080", "localhost"])
def test_the_link_works_under_the_names_of_this_machine_and_through_tunnels(server, host):
    host = host.format(port=server.port)
    assert asked(server.link, Host=host)[0] == 200
    assert apart(_greeted(server, Host=host, Origin=f"http://{host}")) == "ACK"


async def _greeted(server, session=None, arguments=None, **headers):
    async with Hostile(server, session, arguments, **headers) as client:
        return client.greeting and client.greeting.msgtype


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_pages_of_other_origins_get_no_answer(server, origin):
    for address in (server.link, server.url + f"upload?token={server.token}&name=x.h5"):
        status, headers, text = asked(address, Origin=origin)
        assert status == 403
        assert text.startswith("Requests from pages of other origins are refused.")
        assert "Access-Control-Allow-Origin" not in headers
    with pytest.raises(HTTPClientError, match="403"):
        apart(_greeted(server, Origin=origin))


@pytest.mark.parametrize("arguments", ["", "?token=", "?token=wrong", "?bokeh-token=x"])
def test_a_session_cannot_be_joined_without_the_link(server, arguments):
    session = session_token(server)
    assert apart(_greeted(server, session)) == "ACK"
    with pytest.raises(HTTPClientError, match="403"):
        apart(_greeted(server, session, arguments))


def test_sessions_are_numbered_by_the_server_alone(server):
    for argument in ("bokeh-session-id=mine", "bokeh-token=bWluZQ"):
        status, _, text = asked(f"{server.link}&{argument}")
        assert status == 403
        assert '"token"' not in text
    status, _, text = asked(server.link, **{"Bokeh-Session-Id": "mine"})
    assert status == 403
    payload, _, signature = session_token(server).partition(".")
    for forged in (f"{payload[:-4]}AAAA.{signature}", f"{payload}.{'A' * len(signature)}", "bWluZQ", "."):
        assert turned_away(server, forged)


def turned_away(server, session):
    """Whether a session is refused, with an answer or without one."""
    with contextlib.suppress(HTTPClientError):
        return apart(_greeted(server, session)) is None
    return True


def test_what_is_said_with_every_answer(server):
    for address in (server.url, server.link):
        headers = asked(address)[1]
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    status, headers, _ = asked(server.url + "static/js/bokeh.min.js")
    assert status == 200
    assert "no-store" not in headers.get("Cache-Control", "")


@pytest.mark.parametrize("path", ["metadata", "autoload.js", "static/extensions/x/y.js", "nowhere", "//"])
def test_routes_that_no_page_of_ours_needs_are_closed(server, path):
    status, headers, text = asked(f"{server.url}{path}?token={server.token}&bokeh-autoload-element=x")
    assert status == 404
    assert text.startswith("There is nothing here.")
    assert "Access-Control-Allow-Origin" not in headers


# -- uploads ---------------------------------------------------------------------------------------------


def test_uploads_lie_in_a_private_folder_and_only_trajectories_stay(server, folder, given):
    place = f"{server.url}upload?token={server.token}&name="
    assert stat.S_IMODE(private(folder).stat().st_mode) == 0o700
    assert list(private(folder).iterdir()) == []
    assert asked(f"{server.url}upload?name=x.h5", data=given.read_bytes())[0] == 403
    status, _, text = asked(place + "notes.txt", data=b"not ours")
    assert (status, text) == (422, "notes.txt is not an HDF5 file\n")
    status, _, text = asked(place + "..%2F..%2Fetc%2Fpasswd", data=b"not ours")
    assert (status, text) == (422, "passwd is not an HDF5 file\n")
    status, _, text = asked(place + "empty.h5", data=b"")
    assert (status, text) == (413, f"an upload must have from 1 to {LARGEST_UPLOAD} bytes, got 0\n")
    head = f"POST /upload?token={server.token}&name=chunks.h5 HTTP/1.1\r\nHost: localhost\r\n"
    answer = raw(server, head + "Transfer-Encoding: chunked\r\n\r\n")  # the answer comes before any chunk
    assert answer.startswith("HTTP/1.1 411")
    assert answer.endswith("An upload must state its size in the header Content-Length.\n")
    assert list(private(folder).iterdir()) == []

    status, _, key = asked(place + "mine.h5", data=given.read_bytes())
    assert status == 200
    assert (private(folder) / f"{key}.h5").read_bytes() == given.read_bytes()


def test_a_port_of_thousands_of_digits_ends_the_connection_without_a_traceback(tmp_path):
    server = Server(TMPDIR=tmp_path)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{5000 * '9'}\r\n\r\n".encode())
        assert connection.recv(100) == b""
    assert "Traceback" not in server.stop()


@pytest.mark.parametrize("path", ["upload?token={token}&name=x.h5", "upload?name=x.h5", "?token={token}"])
def test_a_huge_upload_is_refused_before_it_comes(server, folder, path):
    before = set(private(folder).iterdir())
    first = f"POST /{path.format(token=server.token)} HTTP/1.1\r\nHost: localhost"
    answer = raw(server, f"{first}\r\nContent-Length: {LARGEST_UPLOAD + 1}\r\nExpect: 100-continue\r\n\r\n")
    assert answer.startswith(("HTTP/1.1 413", "HTTP/1.1 403", "HTTP/1.1 100 (Continue)\r\n\r\nHTTP/1.1 400"))
    assert set(private(folder).iterdir()) == before


def test_an_upload_that_breaks_off_leaves_nothing(server, folder):
    before = set(private(folder).iterdir())
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = (
            f"POST /upload?token={server.token}&name=x.h5 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999"
        )
        connection.sendall(f"{head}\r\n\r\nhalf".encode())
        wait_for(lambda: set(private(folder).iterdir()) != before)
    wait_for(lambda: set(private(folder).iterdir()) == before)


@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_private_is_taken_away_at_the_end(order, given, tmp_path):
    server = Server(given, TMPDIR=tmp_path)
    status, _, _ = asked(f"{server.url}upload?token={server.token}&name=x.h5", data=given.read_bytes())
    assert status == 200
    assert len(list(tmp_path.glob("grokphys-explore-*/*.h5"))) == 1
    server.process.send_signal(order)
    said, _ = server.process.communicate(timeout=60)
    assert (server.process.returncode, said) == (0, "")
    assert list(tmp_path.iterdir()) == []


# -- with the link, but no page --------------------------------------------------------------------------


def only(document, kind, title=None):
    """The one model of a kind, or of that title."""
    found = [model for model in document.models if isinstance(model, kind)]
    named = [model for model in found if title is None or getattr(model, "title", None) == title]
    assert len(named) == 1, [getattr(model, "title", None) for model in found]
    return named[0]


def state(document):
    """Values of all properties of all models, as they are sent."""
    return {
        model.id: json.dumps(model.properties_with_values(), default=str)
        for model in document.models
        if not isinstance(model, Bridge)
    }


def said(document):
    """What the page is told."""
    return only(document, Bridge).message[2]


async def shown(client, view):
    """Wait until a view is on the stage, and return the document."""
    for _ in range(300):
        document = await client.document()
        if only(document, Bridge).view == view:
            return document
        await asyncio.sleep(1)
    raise AssertionError(f"{view} did not come")


def with_client(server, attack):
    async def attacking():
        async with Hostile(server) as client:
            await client.change(only(await client.document(), Bridge), "command", [1, "ready", None])
            return await attack(client)

    return apart(attacking())


OFFERED = ["given.h5", "ding_p59_d128_seed0.h5"]
"""The file that the command was given, and the example that comes with the package."""


def test_only_given_files_are_opened(server, given, secret):
    async def attack(client):
        files = only(await client.document(), Select, "file")
        assert [word for _, word in files.options] == OFFERED
        for path in (str(secret), "/etc/passwd", f"{given}/../secret.h5", "", None, 0, [str(given)]):
            client.said = ""
            await client.change(files, "options", [[str(secret), "secret.h5"], [path, "given.h5"]])
            await client.change(files, "value", path)
            assert client.said.startswith(f"file must be one of {', '.join(OFFERED)}, got ")
        return await client.document()

    document = with_client(server, attack)
    assert only(document, Select, "file").value == str(given)
    assert [word for _, word in only(document, Select, "file").options] == OFFERED
    assert dict(only(document, Bridge).status)["file"] == "given.h5"


WRONG = [
    (Slider, "frame", 6, "frame must be a whole number from 0 to 5, got 6"),
    (Slider, "frame", -1, "from 0 to 5, got -1"),
    (Slider, "frame", 1.5, "from 0 to 5, got 1.5"),
    (Slider, "frame", float("nan"), "from 0 to 5, got nan"),
    (Slider, "frame", True, "from 0 to 5, got True"),
    (Slider, "frame", "1", "from 0 to 5, got '1'"),
    (Slider, "frame", {"type": "number", "value": "inf"}, "from 0 to 5, got {"),
    (Spinner, "run", 10**400, "run must be a whole number from 0 to 1, got 1000"),
    (Spinner, "run", -1, "from 0 to 1, got -1"),
    (Spinner, "run", None, "from 0 to 1, got nothing"),
    (Spinner, "limit", float("inf"), "limit must be a number from 0.001 to 1000000, got inf"),
    (Select, "plane", "axes 7, 8", "plane must be one of frequency"),
    (Select, "fit", "ridge", "fit must be one of Lasso, α = 0.01, least squares, got 'ridge'"),
]


def test_values_that_a_widget_does_not_have_are_refused_with_a_sentence(server):
    async def attack(client):
        document = await client.document()
        for kind, title, value, sentence in WRONG:
            model = only(document, kind, title)
            client.said = ""
            await client.change(model, "end", 1e9)
            await client.change(model, "high", 1e9)
            await client.change(model, "value", value)
            assert sentence in client.said
        return state(document), state(await client.document())

    before, after = with_client(server, attack)
    assert before == after


def test_other_orders_change_nothing(server, secret):
    async def attack(client):
        document = await client.document()
        bridge, files = only(document, Bridge), only(document, Select, "file")
        box = next(model for model in document.models if isinstance(model, Checkbox))
        source = next(model for model in document.models if isinstance(model, ColumnDataSource))
        button = next(model for model in document.models if isinstance(model, Button))
        new = {
            "type": "object",
            "name": "Slider",
            "id": "mine",
            "attributes": {"start": 0, "end": 1, "value": 0},
        }
        script = {"type": "object", "name": "CustomJS", "id": "js", "attributes": {"code": "alert(1)"}}
        for model, name, value in [
            (bridge, "status", [["step", "9"]]),
            (bridge, "message", [7, "note", "hello"]),
            (bridge, "download", [1, "x", "y", None]),
            (bridge, "shown", 10**9),
            (bridge, "playing", 1),
            (bridge, "command", [2, ["view"], None]),
            (bridge, "command", "play"),
            (bridge, "command", [3, "unknown", None]),
            (bridge, "tags", [str(secret)]),
            (files, "title", "another"),
            (files, "js_property_callbacks", {"type": "map", "entries": [["change:value", [script]]]}),
            (box, "active", "yes"),
            (source, "data", {"type": "map", "entries": [["x", [0]], ["y", [0]]]}),
            (source, "data", {"type": "map", "entries": [["x", {"type": "bytes", "data": "H4sI"}]]}),
            (button, "disabled", True),
            (button, "label", "Delete"),
        ]:
            assert (await client.change(model, name, value)).msgtype == "OK"
        source_id = {"id": source.id}
        for event in [
            {"kind": "RootAdded", "model": new},
            {"kind": "RootRemoved", "model": {"id": document.roots[0].id}},
            {"kind": "TitleChanged", "title": "mine"},
            {"kind": "ColumnsStreamed", "model": source_id, "data": {"x": [1]}, "rollover": None},
            {"kind": "ColumnsPatched", "model": source_id, "patches": {"x": [[0, 1]]}},
            {"kind": "ColumnDataChanged", "model": source_id, "data": {"x": []}, "cols": None},
            {"kind": "MessageSent", "msg_type": "attack", "msg_data": {}},
            {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": None},
            {"kind": "ModelChanged", "model": {"id": "p999999"}, "attr": "value", "new": 1},
            {"kind": "ModelChanged", "model": new, "attr": "value", "new": 1},
            {"kind": "Unknown"},
            {},
            None,
            7,
        ]:
            assert (await client.patch(event)).msgtype == "OK"
        for name, values in [
            ("connection_lost", []),
            ("button_click", [["model", {"id": files.id}]]),
            ("button_click", [["model", {"type": "object", "name": "Button", "id": "mine"}]]),
            ("tap", [["model", {"id": button.id}], ["x", 1], ["y", 1]]),
            ("lod_start", [["model", {"id": button.id}]]),
        ]:
            values = {"type": "map", "entries": values}
            data = {"type": "event", "name": name, "values": values}
            event = {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": data}
            assert (await client.patch(event)).msgtype == "OK"
        await client.ask("PATCH-DOC", {"events": "all"})
        await client.ask("PATCH-DOC", [])
        await client.ask("PUSH-DOC", {"doc": {"version": "3.9.2", "title": "mine", "roots": []}})
        after = await client.document()
        assert after.title == document.title
        assert [root.id for root in after.roots] == [root.id for root in document.roots]
        return state(document), after

    before, document = with_client(server, attack)
    assert state(document) == before
    assert said(document) == "show the rollout must be on or off, got 'yes'"


def test_a_page_cannot_replace_the_whole_document(given, tmp_path):
    document = Document()
    page(VIEWS, [given], Uploads(tmp_path))(document)
    before = [root.id for root in document.roots]
    document.replace_with_json(Document(title="another").to_json())
    assert before
    assert [root.id for root in document.roots] == before
    assert document.title != "another"


def test_every_widget_of_every_view_has_a_check(given, tmp_path):
    """In this process: that orders which come over a websocket reach the same guard, the tests above show."""
    document = Document()
    for kind in VIEWS:
        prepared(kind)
    page(VIEWS, [given], Uploads(tmp_path))(document)
    bridge = only(document, Bridge)
    bridge.command = [1, "ready", None]
    for number, kind in enumerate(VIEWS, 2):
        bridge.command = [number, "view", kind.slug]
        assert bridge.view == kind.slug
    values = {
        Slider: 1e300,
        Spinner: "1",
        Select: "none",
        CategoricalSlider: "9",
        Checkbox: 1,
        TextInput: 5,
    }
    before, found = state(document), []
    for kind, value in values.items():
        for model in [model for model in document.models if type(model) is kind]:
            title = model.label if kind is Checkbox else model.title
            attribute = "active" if kind is Checkbox else "value"
            event = {"kind": "ModelChanged", "model": {"id": model.id}, "attr": attribute, "new": value}
            bridge.message = [bridge.message[0], "", ""]
            document.apply_json_patch({"events": [event]})
            found.append((kind, title, said(document).startswith(f"{title} must be ")))
    assert {kind for kind, _, _ in found} == set(values)
    titles = [title for _, title, _ in found]
    assert {"alignment fₐ", "learning rate", "add or remove a pair", "limit", "neurons summed"} <= set(titles)
    assert [title for _, title, refused in found if not refused] == []
    assert state(document) == before
    widgets = [model for model in document.models if isinstance(model, Widget)]
    others = {type(model) for model in widgets} - {*values, Button, Div}
    assert not others, "a widget of another kind needs a check, and a value above that it refuses"


def test_a_text_that_is_no_pair_is_a_sentence(server):
    async def attack(client):
        bridge = only(await client.document(), Bridge)
        await client.change(bridge, "command", [2, "view", "theory"])
        document = await shown(client, "theory")
        answers = []
        for text in ("²,3", "1," + "9" * 900, "1 2 3", "<script>"):
            await client.change(only(document, TextInput), "value", text)
            answers.append(client.said)
        return answers

    for answer in with_client(server, attack):
        assert answer.startswith(
            ("pair must be two symbols such as 2, 5", "pairs must hold symbols from 0 to 9")
        )


def test_a_message_that_is_too_long_ends_its_own_connection_only(server):
    async def attack(client):
        answer = await client.patch({"kind": "x" * 2**21})
        return answer

    assert with_client(server, attack) is None
    assert apart(_greeted(server)) == "ACK"


# -- the command -----------------------------------------------------------------------------------------


def test_the_browser_is_not_told_the_token_where_others_can_read_it(browser, folder, given, tmp_path):
    """All users see the words of a command line."""
    words = tmp_path / "words"
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$@" > {words}\n')
    program.chmod(0o700)
    server = Server(given, browser=True, BROWSER=f"{program} %s", TMPDIR=tmp_path)
    try:
        wait_for(lambda: words.exists() and words.read_text().endswith("\n"))
        assert server.token not in words.read_text()
        page = Path(words.read_text().strip().removeprefix("file://"))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
        tab = browser.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_selector("body.ready", timeout=PATIENCE)
        assert tab.url.partition("#")[0] == server.link
        tab.close()
    finally:
        server.stop()


def test_the_name_of_a_file_is_a_text_and_no_script(browser, given, tmp_path):
    path = tmp_path / "<img src=x onerror=document.taken=1>.h5"
    path.write_bytes(given.read_bytes())
    server = Server(path, TMPDIR=tmp_path)
    try:
        sent = asked(server.link)[2]
        assert "Opening &lt;img src=x onerror=document.taken=1&gt;.h5" in sent
        assert "<img" not in sent
        tab = browser.new_page()
        tab.goto(server.link)
        tab.wait_for_selector("body.ready", timeout=PATIENCE)
        assert tab.evaluate("document.taken") is None
        assert tab.locator("img").count() == 0
        tab.close()
    finally:
        server.stop()


def test_an_open_host_is_said_to_be_one_and_needs_the_link(given, tmp_path):
    server = Server(given, "--host", "0.0.0.0", TMPDIR=tmp_path)
    try:
        warning = server.lines[0]
        assert warning.startswith(
            f"grokphys: other machines reach port {server.port} of this one, by the link with "
        )
        for words in (
            "Without the link they are turned away",
            "run simulations here",
            "nothing is encrypted",
        ):
            assert words in warning
        assert server.token not in warning
        assert asked(server.link)[0] == 200
        assert asked(server.url)[0] == 403
        assert asked(server.link, Host="evil.example")[0] == 403
        name = socket.gethostname()
        assert asked(server.link, Host=f"{name}:{server.port}")[0] == 200
        assert apart(_greeted(server, Origin=server.url[:-1])) == "ACK"
        with pytest.raises(HTTPClientError, match="403"):
            apart(_greeted(server, session_token(server), ""))
    finally:
        server.stop()


def test_each_start_has_a_token_of_its_own(given, tmp_path):
    one, other = (Server(given, TMPDIR=tmp_path) for _ in range(2))
    try:
        assert one.token != other.token
        assert len(one.token) >= 43  # 256 bits
        assert asked(f"{one.url}?token={other.token}")[0] == 403
    finally:
        one.stop(), other.stop()


def test_a_server_that_ignores_hangups_goes_on(given, tmp_path):
    command = ["nohup", sys.executable, "-m", "grokphys.cli.main", "explore", str(given), "--no-browser"]
    process = subprocess.Popen(
        [*command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    try:
        link = process.stdout.readline().split()[3]
        process.send_signal(signal.SIGHUP)
        assert asked(link)[0] == 200
    finally:
        process.terminate()
        process.communicate(timeout=60)
