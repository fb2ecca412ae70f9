"""Who gets in: the token, the names of the server, the origin, and what a proxy in between may change."""

import http.client
from contextlib import closing

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from browser import Server

import physics
from grokphys.cli.main import main
from grokphys.explorer.runs.circles import open_run

HUB, PREFIX = "hub.example.org", "/user/me/proxy/5006"


def asked(server, path="/", token=None, **headers):
    """Status and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    address = f"{path}?token={server.token if token is None else token}"
    headers = {"Host": f"127.0.0.1:{server.port}"} | headers
    connection.request("GET", address, headers=headers)
    with closing(connection):
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")


@pytest.fixture(scope="module")
def proxied():
    server = Server("--allow-origin", HUB, "--prefix", PREFIX + "/")
    yield server
    assert f"https://{HUB}{PREFIX}/?token={server.token}" in server.stop()


def test_a_proxy_needs_its_name_and_its_path(explorer, proxied):
    status, text = asked(explorer, Host=HUB)
    assert (status, f"--allow-origin {HUB}" in text) == (403, True)
    status, text = asked(explorer, Origin=f"https://{HUB}")
    assert (status, "--allow-origin" in text) == (403, True)
    status, text = asked(explorer, f"{PREFIX}/")
    assert (status, "--prefix" in text) == (404, True)
    for path in ("/", f"{PREFIX}/"):  # proxies cut their path off, or do not
        for headers in (
            {},
            {"Host": HUB},
            {"Origin": f"https://{HUB}"},
            {"Host": HUB, "Origin": f"https://{HUB}"},
        ):
            assert asked(proxied, path, **headers)[0] == 200
        assert asked(proxied, path, token="", Host=HUB)[0] == 403
        assert asked(proxied, path, Origin="https://evil.example")[0] == 403
        assert asked(proxied, path, Host="evil.example")[0] == 403
    assert asked(proxied, f"{PREFIX}/static/js/bokeh.min.js")[0] == 200


@pytest.mark.parametrize("arguments", [("--prefix", "user"), ("--prefix", "/a b"), ("--allow-origin", "a/b")])
def test_what_is_no_name_and_no_path_is_refused(arguments, capsys):
    assert main(["explore", "--no-browser", *arguments]) == 2
    assert arguments[0].removeprefix("--") in capsys.readouterr().err


def test_circles_need_as_many_tokens_as_the_modulus_of_the_file(tmp_path):
    positions = np.random.default_rng(0).normal(size=(1, 3, 15, 4))
    path = tmp_path / "run.h5"
    physics.Trajectory(positions, range(3), parameters={"modulus": 13}).save(path)
    with pytest.raises(physics.InputError, match=r"modulus 13, got 15 tokens"):
        open_run(path)
    physics.Trajectory(positions[:, :, :13], range(3), parameters={"modulus": 13}).save(path, overwrite=True)
    assert open_run(path).frequencies == 6
