"""The explorer in a real browser: measurements, each on a line with its target.

Usage: python benchmarks/explore.py [--minutes N]

Measured are the first page after the command (with warm caches on disk), without a file and with one; the
frames per second of 17 particles at several steps per frame, and of 64 particles in eight dimensions; whether
that rate is steady over a minute; the time until a slider takes effect on the screen; the time from the
upload of a trained run (p = 59, d = 128, 200 steps) to the first frame that the slider chooses; a film of
each view; and the memory of the server after all this. With --minutes, the memory of server and page is
measured while the page plays for so many minutes (the target is ten).

Each time is followed by the processor time: seconds of the server and of the main thread of the page, which
run at the same time, or milliseconds per frame while a view plays. On a machine that does other work, as the
first line of the output says, only processor times are meaningful.
"""

import argparse
import atexit
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

import nets

OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
with socket.socket() as probe:  # one port for all servers: the browser's cache goes by it
    probe.bind(("127.0.0.1", 0))
    PORT = str(probe.getsockname()[1])
PATIENCE = 300_000
"""Longest time to wait, in milliseconds, on a machine that does other work."""
BYTECODE = tempfile.TemporaryDirectory()
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPYCACHEPREFIX"] = BYTECODE.name
"""The compiled modules are kept, as they are where the package is installed; the first start writes them."""
COMMAND = [sys.executable, "-m", "grokphys.cli.main", "explore", "--no-browser", "--port", PORT]


def start(*files: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server, and return it and its address."""
    command = [*COMMAND, *map(str, files)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    atexit.register(server.terminate)
    assert server.stdout is not None
    for line in server.stdout:
        found = re.search(r"http://\S+", line)
        if found:
            return server, found[0]
    raise SystemExit("the server did not start")


class Busy:
    """Processor time in seconds that a server and a page have taken since this object was created."""

    def __init__(self, page: Page, pid: int) -> None:
        self._page, self._pid = page, pid
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})  # not the clock
        self._before = self._now()

    def _now(self) -> tuple[float, float]:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()
        server = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return server, metrics(self._devtools)["TaskDuration"]

    def since(self) -> tuple[float, float]:
        """Return the seconds of the server, and of the main thread of the page."""
        return tuple(now - before for now, before in zip(self._now(), self._before, strict=True))


def metrics(devtools: Any) -> dict[str, float]:
    """Return what the browser measures of its page."""
    found = devtools.send("Performance.getMetrics")["metrics"]
    return {item["name"]: item["value"] for item in found}


def first_page(page: Page, *files: Path) -> tuple[float, float]:
    """Return the seconds from the command to the first drawn page, and the processor time of the server."""
    began = time.perf_counter()
    server, address = start(*files)
    page.goto(address)
    page.wait_for_selector("body.ready")
    page.wait_for_function(DRAWN, arg=2 if files else 4)
    took = time.perf_counter() - began
    computed = Busy(page, server.pid)._now()[0]
    page.goto("about:blank")
    server.terminate()
    server.wait()
    return took, computed


DRAWN = """count => {
    const figures = (window.Bokeh?.index?.roots ?? []).flatMap(
        view => [...view.owner.query(found => found.model.type === "Figure")])
    return figures.filter(figure => figure.frame.bbox.width > 0).length >= count
}"""


FILMS: dict[str, dict[str, Any]] = {
    "particles": {"step": 0},
    "networks": {"kind": "toy addition", "tokens": 10, "dim": 1, "hidden": 64, "rate": "0.001"},
    "theory": {},
    "circles": {},
    "neurons": {},
}
"""Views of which a film is made, and their states."""


def at(page: Page, address: str, state: dict[str, Any]) -> None:
    """Open the page at a state."""
    page.goto("about:blank")
    page.goto(address + "#" + quote(json.dumps(state)))
    page.wait_for_selector(f"#tab-{state['view']}[aria-selected=true]")
    page.wait_for_function("document.getElementById('message').hidden")


def film(page: Page, pid: int) -> tuple[float, float]:
    """Seconds until a film of some 80 frames, or of a whole run, is downloaded, and those computed for it."""
    page.click("#play")
    page.wait_for_function(PLAYED)
    if page.inner_text("#play") == "Pause":
        page.click("#play")
    page.wait_for_selector("#play[aria-pressed=false]")
    began, busy = time.perf_counter(), Busy(page, pid)
    with page.expect_download():
        page.click("#gif")
    return time.perf_counter() - began, busy.since()[0]


PLAYED = """() => {
    const ended = document.getElementById("play").textContent === "Play"
    const live = !/theory|circles/.test(document.querySelector("[aria-selected=true]").id)
    return ended || live && Number(document.getElementById("status-step").textContent) >= 80
}"""


def frames_a_second(
    page: Page, pid: int, speed: int, seconds: float = 8.0, *, reset: bool = True
) -> tuple[float, str]:
    """Return the frames per second of the page at a number of steps per frame, and their processor time."""
    speeds = page.get_attribute("#speed", "data-speeds").split()
    page.evaluate(f"document.getElementById('speed').value = {speeds.index(str(speed))}")
    page.dispatch_event("#speed", "input")
    if reset:
        page.click("#reset")
    page.click("#play")
    page.wait_for_timeout(2000)
    before, began, busy = _step(page), time.perf_counter(), Busy(page, pid)
    page.wait_for_timeout(1000 * seconds)
    frames = (_step(page) - before) / speed
    rate = frames / (time.perf_counter() - began)
    server, drawn = (1000 * spent / max(frames, 1) for spent in busy.since())
    page.click("#play")
    page.wait_for_selector("#play[aria-pressed=false]")
    return rate, f"server {server:.0f} ms, page {drawn:.0f} ms a frame"


def latency(page: Page, times: int = 20) -> list[float]:
    """Return the milliseconds from a step of a slider until the particles have moved on the screen."""
    page.click("#reset")
    slider = page.get_by_role("slider").filter(visible=True).nth(5)  # tokens: another start on each step
    slider.focus()
    found = []
    for _ in range(times):
        page.evaluate(WATCH)
        page.keyboard.press("ArrowRight")
        page.wait_for_function("window.arrived !== null")
        found.append(page.evaluate("window.arrived - window.pressed"))
    return found


WATCH = """() => {
    window.arrived = null
    addEventListener("keydown", () => { window.pressed = performance.now() }, {once: true, capture: true})
    for (const view of Bokeh.index.roots) {
        for (const figure of view.owner.query(found => found.model.type === "Figure")) {
            const source = figure.model.renderers.map(r => r.data_source).find(s => s?.data?.name)
            if (source === undefined) continue
            const done = () => {
                source.properties.data.change.disconnect(done)
                requestAnimationFrame(() => setTimeout(() => { window.arrived = performance.now() }, 0))
            }
            source.properties.data.change.connect(done)
            return 0
        }
    }
}"""


def opening(page: Page, file: Path) -> float:
    """Return the seconds from the choice of a file until its tokens are on the screen at another step."""
    page.click("#tab-circles")
    page.wait_for_selector("#status-survivors")
    with page.expect_file_chooser() as found:
        page.locator("button:has-text('upload a file')").filter(visible=True).click()
    began = time.perf_counter()
    found.value.set_files(file)
    slider = page.locator('.noUi-handle[aria-valuemax="200.0"]')
    slider.press("ArrowRight")
    page.wait_for_function("document.getElementById('status-step').textContent === '1'")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
    return time.perf_counter() - began


def memory(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def play(page: Page, pid: int, minutes: float) -> None:
    """Play, and print the memory of server and page every half a minute."""
    page.click("#reset")
    page.click("#play")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    for half in range(round(2 * minutes) + 1):
        session.send("HeapProfiler.collectGarbage")
        heap = metrics(session)["JSHeapUsedSize"] / 2**20
        sizes = f"server {memory(pid):7.1f} MiB   page's heap {heap:6.1f} MiB"
        print(f"  {half / 2:5.1f} min   {sizes}   step {_step(page)}", flush=True)
        if half < round(2 * minutes):
            page.wait_for_timeout(30_000)
    page.click("#play")


def _step(page: Page) -> int:
    return int(page.inner_text("#status-step"))


def _line(name: str, value: str, target: str, met: bool, cost: str = "") -> None:
    words = "met" if met else "MISSED"
    print(f"{name:<42}{value:>14}   target {target:<10} {words:<7} {cost}".rstrip(), flush=True)


def main() -> None:
    """Measure all, and print each result next to its target."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=0.0, help="minutes of play to watch the memory over")
    minutes = parser.parse_args().minutes
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        raise SystemExit("there is no Chromium (Debian: apt-get install chromium)")
    load, cores = os.getloadavg()[0], os.cpu_count()
    print(f"before it began, {load:.1f} processes wanted the {cores} cores of this machine", flush=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page.set_default_timeout(PATIENCE)
        file = Path(directory) / "trained.h5"
        nets.train(nets.EmbeddingMLP(tokens=59, dim=128), steps=200, record=1, out=file)
        first_page(page)  # warms the disk caches
        for name, files in (("", ()), (" with a file", (file,))):
            took, computed = map(
                statistics.median, zip(*(first_page(page, *files) for _ in range(3)), strict=True)
            )
            name = f"first page{name} after the command, of 3"
            _line(name, f"{took:.2f} s", "3 s", took <= 3, f"server {computed:.1f} s")
        server, address = start()
        page.goto(address)
        page.wait_for_selector("#status-step")
        for speed in (1, 5, 20):
            found, cost = frames_a_second(page, server.pid, speed)
            _line(f"17 particles, {speed} steps per frame", f"{found:.1f} fps", "25 fps", found >= 25, cost)
        first, before = frames_a_second(page, server.pid, 1, 5.0)
        page.click("#play")
        page.wait_for_timeout(60_000)
        page.click("#play")
        last, after = frames_a_second(page, server.pid, 1, 5.0, reset=False)
        kept = last / first
        costs = f"{before}; then {after}"
        _line("rate after a minute over that before", f"{kept:.2f}", "0.9", kept >= 0.9, costs)
        at(page, address, {"view": "particles", "state": {"tokens": 64, "dim": 8}})
        found, cost = frames_a_second(page, server.pid, 1)
        _line("64 particles in 8 dimensions", f"{found:.1f} fps", "20 fps", found >= 20, cost)
        at(page, address, {"view": "particles"})
        waits = latency(page)
        middle, worst = statistics.median(waits), max(waits)
        _line("slider to screen, median of 20", f"{middle:.0f} ms", "100 ms", middle <= 100)
        _line("slider to screen, worst of 20", f"{worst:.0f} ms", "100 ms", worst <= 100)
        took = opening(page, file)
        _line("a file open and scrubbed", f"{took:.2f} s", "2 s", took <= 2)
        for view, state in FILMS.items():
            at(page, address, {"view": view, "state": state})
            took, computed = film(page, server.pid)
            _line(
                f"GIF of {view}, 80 frames", f"{took:.1f} s", "10 s", took <= 10, f"server {computed:.1f} s"
            )
        size = memory(server.pid)
        _line("memory of the server after all this", f"{size:.0f} MiB", "400 MiB", size <= 400)
        at(page, address, {"view": "particles"})
        if minutes:
            play(page, server.pid, minutes)
        browser.close()


if __name__ == "__main__":
    main()
