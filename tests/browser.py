"""A real browser against a real server: what the explorer's tests share."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import physics

OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A switch given twice counts once, so Playwright's own list is repeated as far as it matters here. The
    # last two are pages in which each new window prepares its address bar: half the work of opening one.
    "--disable-features=AimEnabled,DestroyProfileOnBrowserClose,HttpsUpgrades,LensOverlay,MediaRouter,"
    "NetworkTimeServiceQuerying,OptimizationHints,PaintHolding,PreconnectToSearch,"
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup",
)
OWN = {"PYTHONUNBUFFERED": "1", "NUMBA_NUM_THREADS": "1"}
"""Settings of a server: what it says comes at once, and its small ensembles have one thread."""
PATIENCE = 60_000
"""Milliseconds to wait for something that comes at once on an idle machine."""


def chromium():
    """Path of Chromium, or skip."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("bokeh", reason="bokeh is not installed")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("there is no Chromium (Debian: apt-get install chromium)")
    return found


class Server:
    """`grokphys explore` in a process of its own."""

    def __init__(self, *arguments, port=0, browser=False, **variables):
        command = [sys.executable, "-m", "grokphys", "explore", *map(str, arguments)]
        command += ["--browser" if browser else "--no-browser", "--port", str(port)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | OWN | {name: str(v) for name, v in variables.items()},
        )
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.search(r"at ((http://[\w.]+:(\d+)/)\?token=(\S+))", line)
            if found:
                self.link, self.url, self.port, self.token = found[1], found[2], int(found[3]), found[4]
                return
        raise AssertionError(f"the server did not start: {''.join(self.lines)}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def stop(self, order=signal.SIGTERM):
        """End it, and return what it said."""
        self.process.send_signal(order)
        rest, _ = self.process.communicate(timeout=120)
        return "".join(self.lines) + rest

    def ends_quietly(self, order):
        """Whether a signal ends it without an error and without a word."""
        return self.stop(order) == "".join(self.lines) and self.process.returncode == 0


class Tab:
    """A page that watches itself: errors on the console and requests to others are failures."""

    def __init__(
        self, browser, server, *, width=1280, height=800, still=True, fragment="", script="", **options
    ):
        motion = "reduce" if still else "no-preference"  # who wants less motion gets a page that waits
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            accept_downloads=True,
            reduced_motion=motion,
            **options,
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.add_init_script(script)
        self.errors, self.foreign = [], []
        own = (server.url, server.url.replace("http", "ws"), "data:", "blob:")
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "request", lambda request: request.url.startswith(own) or self.foreign.append(request.url)
        )
        self.page.on(
            "websocket", lambda socket: socket.url.startswith(own) or self.foreign.append(socket.url)
        )
        self.page.goto(server.link + fragment)
        self.page.wait_for_selector("body.ready")
        self.page.wait_for_selector("#status-step")

    def _console(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def status(self, name):
        """Text of a readout, such as "step"."""
        return self.page.inner_text(f"#status-{name.replace(' ', '-')}")

    def wait_status(self, name, condition):
        """Wait until the text of a readout satisfies a condition in JavaScript of `value`."""
        self.page.wait_for_function(
            f"id => {{ const value = document.getElementById(id)?.textContent; return {condition} }}",
            arg=f"status-{name.replace(' ', '-')}",
        )

    def choose(self, view):
        """Bring a view to the stage."""
        self.page.click(f"#tab-{view}")
        self.page.wait_for_selector(f"#tab-{view}[aria-selected=true]")

    def command(self, name):
        """Press a button of the transport."""
        self.page.click(f"#{name}")

    def wait_message(self, text):
        """Wait for a sentence on the page."""
        self.page.wait_for_function(
            "text => document.getElementById('message').textContent.includes(text)", arg=text
        )

    def python(self):
        """Text of "Copy as Python"."""
        self.page.evaluate("document.getElementById('script-text').textContent = ''")
        self.page.click("#python")
        self.page.wait_for_function("document.getElementById('script-text').textContent !== ''")
        text = self.page.inner_text("#script-text")
        self.page.click("#script button")
        return text

    def upload(self, name, content):
        """Press the button of the view on the stage, and choose a file of that name."""
        with self.page.expect_file_chooser() as found:
            self.page.locator("button:has-text('upload a file')").filter(visible=True).click()
        found.value.set_files({"name": name, "mimeType": "", "buffer": content})

    def download(self, name):
        """Press Save, PNG or GIF, and return the bytes that the browser was given."""
        with self.page.expect_download() as found:
            self.page.click(f"#{name}")
        return Path(found.value.path()).read_bytes()

    def close(self):
        """Close it; what it complained of fails the test."""
        self.context.close()
        assert self.errors == []
        assert self.foreign == []


@contextmanager
def opened(browser, server, **options):
    """Open a tab, and close it without a complaint."""
    tab = Tab(browser, server, **options)
    try:
        yield tab
    except BaseException:
        tab.context.close()
        raise
    tab.close()


def loaded(content):
    """Read the bytes of a trajectory file into memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        path.write_bytes(content)
        kept = physics.load(path)
        measured = {name: np.array(values) for name, values in kept.observables.items()}
        return physics.Trajectory(np.array(kept.positions), kept.steps, kept.times, observables=measured)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, seconds=60):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def executed(program):
    names = {}
    exec(program, names)
    return names


FIRST = """() => {
    for (const view of Bokeh.index.roots) {
        for (const found of view.owner.query(v => v.model.type === "Figure")) {
            const source = found.model.renderers.find(r => r.data_source?.data?.name)?.data_source
            if (source === undefined) continue
            const {x, y} = source.data, {left, top} = found.el.getBoundingClientRect()
            const {x_scale, y_scale} = found.frame
            return [left + x_scale.compute(x[0]), top + y_scale.compute(y[0])]
        }
    }
}"""
"""Where the first particle is on the page."""
