"""Who gets in: the token, the names of the server, the origin, and what a proxy in between may change."""

import gc
import http.client
import json
import re
import signal
import stat
import warnings
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from browser import Server, wait_for
from sessions import alone
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

import physics
from grokphys.cli.main import main

HUB, PREFIX = "hub.example.org", "/user/me/proxy/5006"


def asked(server, path="/", token=None, method="GET", body=None, name="", **headers):
    """Status, headers and text of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        address = f"{path}?token={server.token if token is None else token}&name={name}"
        own = {"Host": f"127.0.0.1:{server.port}"}
        connection.request(method, address, body=body, headers=own | headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")


async def connected(server, token, **headers):
    """Open the websocket of a page, and return its first message."""
    _, _, text = asked(server)
    session = re.search(r'"token":"([^"]+)"', text)[1]
    request = HTTPRequest(f"ws://127.0.0.1:{server.port}/ws?token={token}", headers=headers)
    socket = await websocket_connect(request, subprotocols=["bokeh", session])
    first = message = await socket.read_message()
    socket.close()
    while message is not None:  # until the connection is closed
        message = await socket.read_message()
    return json.loads(first)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("door")
    started = Server(TMPDIR=folder)
    started.folder = folder
    yield started
    said = started.stop()
    assert "Traceback" not in said, said
    assert started.token not in said.replace(started.link, ""), "the token is in the link and nowhere else"
    assert list(folder.iterdir()) == [], "the private folder goes with the server"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/", "/ws", "/metadata", "/autoload.js", "/upload", "/nowhere", "/etc/passwd"]
)
def test_nobody_gets_anything_without_the_link(server, path, method):
    for token in ("", "wrong", server.token[:-1]):
        status, headers, text = asked(server, path, token, method, body=b"x" if method == "POST" else None)
        assert status == 403
        assert server.token not in text + str(headers)
        for header in ("Set-Cookie", "Access-Control-Allow-Origin"):
            assert header not in headers


@pytest.mark.parametrize(
    "path", ["/static/js/../../server.py", "/static/js/%2e%2e/server.py", "//etc/passwd"]
)
def test_no_path_leads_out_of_the_scripts(server, path):
    assert asked(server, path)[0] in (403, 404)
    assert asked(server, path, token="")[0] in (403, 404)


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"Host": "127.0.0.1"}, True),
        ({"Host": "localhost:8888"}, True),  # through a tunnel
        ({"Host": "LOCALHOST:1"}, True),
        ({"Host": "evil.example"}, False),  # the name of a site that resolves here
        ({"Host": "127.0.0.1.evil.example"}, False),
        ({"Host": HUB}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "https://hub.example.org"}, False),
        ({"Origin": "http://127.0.0.1:1"}, False),
        ({"Host": "localhost:8888", "Origin": "http://localhost:8888"}, True),
        ({"Host": "localhost:8888", "Origin": "https://localhost:8888"}, True),
    ],
)
def test_hosts_and_origins(server, headers, allowed):
    status, _, text = asked(server, **headers)
    assert status == (200 if allowed else 403)
    assert allowed or "--allow-origin" in text
    assert asked(server, "/static/js/bokeh.min.js", "", **headers)[0] == (200 if allowed else 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
def test_a_websocket_needs_token_and_origin(server, origin):
    own = f"http://127.0.0.1:{server.port}"
    assert alone(connected(server, server.token, Origin=own))["msgtype"] == "ACK"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of the client, where it is turned away
        for token, sender in ((server.token, origin), ("wrong", own)):
            with pytest.raises(HTTPClientError, match="403"):
                alone(connected(server, token, Origin=sender))
        gc.collect()


def test_uploads_are_checked_and_kept_in_a_private_folder(server, tmp_path):
    path = tmp_path / "run.h5"
    physics.simulate(physics.ParticleSystem(5), steps=2, out=path)
    (private,) = server.folder.iterdir()
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    status, _, text = asked(server, "/upload", method="POST", body=b"nothing", name="mine.h5")
    assert status == 422
    assert text.startswith("mine.h5 is not an HDF5 file")
    assert str(private) not in text
    assert list(private.iterdir()) == []
    status, _, key = asked(server, "/upload", method="POST", body=path.read_bytes(), name="mine.h5")
    assert status == 200
    assert (private / f"{key}.h5").read_bytes() == path.read_bytes()
    (private / f"{key}.h5").unlink()


@pytest.mark.slow
def test_a_proxy_needs_its_name_and_its_path(server):
    status, _, text = asked(server, Host=HUB)
    assert (status, f"--allow-origin {HUB}" in text) == (403, True)
    assert asked(server, f"{PREFIX}/")[0] == 404
    proxied = Server("--allow-origin", HUB, "--prefix", PREFIX + "/")
    try:
        for path in ("/", f"{PREFIX}/"):  # proxies cut their path off, or do not
            origin = {"Origin": f"https://{HUB}"}
            for headers in ({}, {"Host": HUB}, origin, {"Host": HUB, **origin}):
                assert asked(proxied, path, **headers)[0] == 200
            assert asked(proxied, path, token="", Host=HUB)[0] == 403
            assert asked(proxied, path, Origin="https://evil.example")[0] == 403
            assert asked(proxied, path, Host="evil.example")[0] == 403
        assert asked(proxied, f"{PREFIX}/static/js/bokeh.min.js")[0] == 200
        origin = {"Host": HUB, "Origin": f"https://{HUB}"}
        assert alone(connected(proxied, proxied.token, **origin))["msgtype"] == "ACK"
    finally:
        said = proxied.stop()
    assert f"https://{HUB}{PREFIX}/?token={proxied.token}" in said


def test_another_host_is_warned_about_and_a_browser_gets_no_token_on_its_command_line(tmp_path):
    said = tmp_path / "said"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {said}.new && mv {said}.new {said}\n')
    browser.chmod(0o700)
    started = Server("--host", "0.0.0.0", browser=True, BROWSER=browser)
    try:
        assert "nothing is encrypted" in "".join(started.lines)
        assert asked(started, Host="localhost")[0] == 200
        assert asked(started, Host="evil.example")[0] == 403
        wait_for(said.exists)
        address = said.read_text().strip()
        assert address.startswith("file://")
        assert started.token not in address
        page = Path(address.removeprefix("file://"))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert started.link in page.read_text()
    finally:
        quiet = started.ends_quietly(signal.SIGINT)
    assert quiet


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (["--prefix", "user"], 2, "prefix"),
        (["--prefix", "/a b"], 2, "prefix"),
        (["--allow-origin", "a/b"], 2, "allow-origin"),
        (["--port", "70000"], 2, "port"),
        (["--host", "::1"], 2, "host"),
        (["--host", "no.such.host.invalid"], 1, "no.such.host.invalid"),
        (["nowhere.h5"], 1, "nowhere.h5"),
    ],
)
def test_what_cannot_be_served_is_refused(arguments, status, word, capsys):
    assert main(["explore", "--no-browser", *arguments]) == status
    assert word in capsys.readouterr().err


def test_a_port_in_use_is_a_sentence(server, capsys):
    assert main(["explore", "--no-browser", "--port", str(server.port)]) == 1
    assert "in use; choose another with --port" in capsys.readouterr().err
