"""The explorer in a real browser, as hands use it: keys after a drag, touch, dropped files, slow tabs."""

import signal

import numpy as np
import pytest
from browser import FIRST, Server, executed, loaded, opened, wait_for

import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")


def pressed(tab):
    """Names of the presets that are marked."""
    return tab.page.evaluate(
        "[...document.querySelectorAll('[data-preset][aria-pressed=true]')].map(one => one.dataset.preset)"
    )


def test_keys_work_after_a_drag_and_no_canvas_is_a_stop_of_the_tab_key(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.command("play")
        tab.wait_status("step", "value > 30")
        where, mouse = tab.page.evaluate(FIRST), tab.page.mouse
        mouse.move(*where)
        mouse.down()
        mouse.move(where[0] - 30, where[1] - 20, steps=4)
        mouse.up()
        wait_for(lambda: tab.page.evaluate("document.activeElement.id") == "stage")
        tab.page.keyboard.press("Space")
        tab.page.wait_for_selector("#play[aria-pressed=false]")
        assert tab.page.evaluate("scrollY") == 0
        tab.page.wait_for_timeout(300)
        step = int(tab.status("step"))
        tab.page.keyboard.press(".")
        tab.wait_status("step", f"value === '{step + 1}'")
        stops = """() => {
            const found = [], walk = root => {
                for (const node of root.querySelectorAll("*")) {
                    if (node.matches(".bk-events")) found.push(node.tabIndex)
                    if (node.shadowRoot) walk(node.shadowRoot)
                }
            }
            walk(document)
            return found
        }"""
        assert set(tab.page.evaluate(stops)) == {-1}


def test_the_preset_on_screen_is_marked(browser, explorer):
    with opened(browser, explorer) as tab:
        assert pressed(tab) == ["a circle forms"]
        tab.page.click("[data-of=particles] [data-preset='pull it apart']")
        wait_for(lambda: pressed(tab) == ["pull it apart"])
        tab.command("play")
        tab.choose("circles")
        wait_for(lambda: pressed(tab) == ["circles survive"])


def test_a_tab_that_loads_says_so_at_once(browser):
    """A new server has loaded no other view, so that opening one takes its time."""
    server = Server()
    try:
        with opened(browser, server) as tab:
            said = tab.page.evaluate("""() => {
                document.getElementById("tab-networks").click()
                return [document.getElementById("verdict").textContent,
                    document.getElementById("tab-networks").ariaBusy, document.body.className]
            }""")
            assert said == ["Opening Networks …", "true", "ready awaiting"]
            tab.page.wait_for_selector("#tab-networks[aria-selected=true][aria-busy=false]")
            assert tab.page.inner_text("#verdict").startswith("Answers ")
            assert "awaiting" not in tab.page.get_attribute("body", "class")
    finally:
        server.stop()


def test_a_particle_is_dragged_by_touch_on_a_phone(browser, explorer):
    phone = {"width": 400, "height": 760, "has_touch": True, "is_mobile": True}
    circle = '#{"view":"particles","speed":1,"state":{"kind":"circle","noise":0.05}}'
    with opened(browser, explorer, fragment=circle, **phone) as tab:
        tab.wait_status("circle-ratio", "Number(value) < 1.5")
        before = executed(tab.python())["E"]
        tab.page.evaluate("document.getElementById('stage').scrollIntoView()")
        tab.page.wait_for_timeout(300)
        top = "document.getElementById('stage').getBoundingClientRect().top"
        resting = tab.page.evaluate(top)
        x, y = tab.page.evaluate(FIRST)
        devtools = tab.context.new_cdp_session(tab.page)

        def touch(kind, *points):
            given = [{"x": x, "y": y} for x, y in points]
            devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": given})

        seen = tab.status("circle-ratio")
        touch("touchStart", (x, y))
        for k in range(1, 9):
            touch("touchMove", (x - 16 * k, y - k))
            tab.page.wait_for_timeout(30)
        tab.wait_status("circle-ratio", f"value !== '{seen}'")  # all follows while the finger is down
        touch("touchEnd")
        assert abs(tab.page.evaluate(top) - resting) < 2, "the page does not move under the finger"
        moved = None

        def arrived():
            nonlocal moved
            moved = tab.python()
            return "E[0]" in moved

        wait_for(arrived)
        after = executed(moved)["E"]
        assert np.flatnonzero((after != before).any(axis=1)).tolist() == [0]
        assert after[0, 0] < before[0, 0]
        assert after[0, 1] > before[0, 1]


def test_a_file_is_dropped_by_the_browser_and_nothing_moves(browser, explorer, tmp_path):
    path = tmp_path / "nine.h5"
    physics.simulate(physics.ParticleSystem(9), steps=5, out=path)
    with opened(browser, explorer) as tab:
        top = "document.getElementById('stage').getBoundingClientRect().top"
        before = tab.page.evaluate(top)
        devtools = tab.context.new_cdp_session(tab.page)
        held = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 500, "y": 400, "data": held})
        tab.page.wait_for_function('decodeURIComponent(location.hash).includes(\'"kind":"file"\')')
        tab.page.wait_for_selector("#message", state="hidden")
        assert tab.page.evaluate(top) == before
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        assert len(loaded(tab.download("save")).final[0]) == 9
        tab.command("png")
        tab.wait_message("is in your downloads")
        assert tab.page.evaluate(top) == before, "a message is no reason to move figures"
        tab.page.click("#dismiss")
        tab.page.wait_for_selector("#message", state="hidden")


def test_a_link_to_circles_opens_without_an_error(browser, explorer):
    link = '#{"view":"circles","speed":1,"state":{"time":24}}'
    with opened(browser, explorer, fragment=link) as tab:  # which fails if the console has an error
        tab.page.wait_for_selector("#tab-circles[aria-selected=true]")
        tab.wait_status("step", "value !== '0'")
        tab.page.wait_for_timeout(500)


def test_the_address_follows_while_it_plays(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.command("play")
        tab.page.wait_for_function("location.hash.includes('step')")
        assert tab.page.get_attribute("#play", "aria-pressed") == "true"


def test_hand_picked_pairs_survive_the_plane(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.choose("theory")
        tab.page.get_by_placeholder("i, j, then Enter").fill("9, 9")
        tab.page.keyboard.press("Enter")
        wait_for(lambda: "pairs" in tab.page.evaluate("location.hash"))
        picked = tab.python().split("pairs = ")[1].splitlines()[0]
        embeddings = tab.page.get_by_label("embeddings")
        embeddings.select_option("in the plane")
        wait_for(lambda: "(10, 2, pairs" in tab.python())
        assert tab.python().split("pairs = ")[1].splitlines()[0] == picked
        embeddings.select_option("on a line")
        wait_for(lambda: "(10, 1, pairs" in tab.python())
        assert tab.python().split("pairs = ")[1].splitlines()[0] == picked


LONG = '#{"view":"particles","speed":1,"state":{"tokens":64,"dim":8,"step":20000}}'


def test_a_link_to_a_long_run_says_how_far_it_is_and_leaves_other_pages_alone(browser):
    """The run takes minutes; the server ends within seconds nevertheless."""
    server = Server()
    try:
        with opened(browser, server, fragment=LONG) as waits:
            waits.wait_message("Repeating the run of this link: step")
            with opened(browser, server) as lives:
                lives.command("play")
                lives.wait_status("step", "value > 5")
            waits.command("step")  # what is done by hand ends the replay
            waits.page.wait_for_function(
                "!document.getElementById('message').textContent.includes('Repeating')"
            )
            waits.page.wait_for_timeout(1000)  # the step itself is shown
            step = int(waits.status("step"))
            assert 0 < step < 20_000
            waits.page.wait_for_timeout(1000)
            assert int(waits.status("step")) == step
        server.process.send_signal(signal.SIGTERM)
        said, _ = server.process.communicate(timeout=30)
        assert "Traceback" not in said
    finally:
        server.kill()
