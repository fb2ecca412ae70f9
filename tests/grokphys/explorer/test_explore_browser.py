"""The explorer in a real browser: play, step, drag, change, export, two tabs, a server that dies."""

import io
import signal

import numpy as np
import pytest
from browser import FIRST, Server, executed, loaded, opened, wait_for
from PIL import Image

import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")


def number(tab, name):
    return float(tab.status(name))


def test_it_plays_pauses_steps_and_resets(browser, explorer):
    with opened(browser, explorer) as tab:
        assert tab.status("step") == "0"
        assert tab.status("fps") == "–", "nothing is drawn"
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        tab.page.focus("#speed")
        tab.page.keyboard.press("ArrowRight")
        tab.page.keyboard.press("ArrowRight")
        tab.page.wait_for_function("document.getElementById('speed-value').textContent === '3'")
        tab.command("play")
        tab.wait_status("step", "value > 30")
        tab.wait_status("fps", "value > 0")
        tab.command("play")  # it says Pause now
        tab.page.wait_for_selector("#play[aria-pressed=false]")
        tab.page.wait_for_timeout(300)
        step = number(tab, "step")
        assert (step - 1) % 3 == 0
        assert tab.status("circle-ratio") != "0"
        tab.page.wait_for_timeout(300)
        assert number(tab, "step") == step
        made = executed(tab.python())
        assert f"steps={step:.0f}" in tab.page.text_content("#script-text")
        kept = loaded(tab.download("save"))
        np.testing.assert_array_equal(kept.final[0], made["E"])
        assert kept.steps[-1] == step
        assert f"{kept.observables['circle_ratio'][0, -1]:.3f}" == tab.status("circle-ratio")
        tab.command("reset")
        tab.wait_status("step", "value === '0'")


def test_a_particle_is_dragged(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        before = executed(tab.python())["E"]
        where = tab.page.evaluate(FIRST)
        mouse = tab.page.mouse
        mouse.move(*where)
        mouse.down()
        for k in range(1, 6):
            mouse.move(where[0] - 8 * k, where[1] - 6 * k)
        mouse.up()
        moved = None

        def arrived():
            nonlocal moved
            moved = tab.python()
            return "E[" in moved

        wait_for(arrived)
        after = executed(moved)["E"]
        assert np.flatnonzero((after != before).any(axis=1)).tolist() == [0]
        shift = after[0] - before[0]
        assert shift[0] < 0 < shift[1]
        assert tab.status("step") == "1"
        tab.command("step")
        tab.wait_status("step", "value === '2'")
        made = executed(tab.python())["E"]
        np.testing.assert_array_equal(made, loaded(tab.download("save")).final[0])
        tab.page.wait_for_function("location.hash.includes('moves') && location.hash.includes('step%22%3A2')")
        link = tab.page.evaluate("location.hash")
    with opened(browser, explorer, fragment=link) as tab:
        tab.wait_status("step", "value === '2'")
        np.testing.assert_array_equal(executed(tab.python())["E"], made)


@pytest.mark.parametrize("playing", [False, True], ids=["paused", "playing"])
def test_all_follows_while_the_button_is_held(browser, explorer, playing):
    with opened(browser, explorer) as tab:
        tab.command("step")
        tab.page.wait_for_function("location.hash.includes('step%22%3A1')")
        tab.page.evaluate("location.hash = location.hash.replace('step%22%3A1', 'step%22%3A150')")
        tab.wait_status("step", "value === '150'")  # a circle, whose particles hardly move
        if playing:
            tab.command("play")
            tab.wait_status("step", "value > 150")
        where, mouse = tab.page.evaluate(FIRST), tab.page.mouse
        mouse.move(*where)
        mouse.down()
        mouse.move(where[0] - 8, where[1] - 6, steps=2)
        step, same = None, 0
        while same < (4 if playing else 1):  # what was on the way arrives, and play rests
            same = same + 1 if step == tab.status("step") else 0
            step = tab.status("step")
            tab.page.wait_for_timeout(500)
        seen = [tab.status("circle-ratio")]
        for k in range(1, 4):
            mouse.move(where[0] - 40 * k, where[1] - 30 * k, steps=4)
            tab.wait_status("circle-ratio", f"value !== '{seen[-1]}'")
            tab.page.wait_for_timeout(200)
            seen.append(tab.status("circle-ratio"))
        assert tab.status("step") == step
        assert tab.page.inner_text("#verdict").startswith("No shape yet")
        mouse.up()
        wait_for(lambda: "E[" in tab.python())


def test_pictures_and_films_come_down(browser, explorer):
    with opened(browser, explorer) as tab:
        for step in (1, 2, 3):
            tab.command("step")
            tab.wait_status("step", f"value === '{step}'")
        picture = Image.open(io.BytesIO(tab.download("png")))
        assert (picture.format, picture.size) == ("PNG", (1280, 864))
        film = Image.open(io.BytesIO(tab.download("gif")))
        assert (film.format, film.n_frames) == ("GIF", 4)
        tab.wait_message("particles.gif is in your downloads")


def test_a_dropped_file_is_looked_at(browser, explorer, tmp_path):
    path = tmp_path / "mine.h5"
    physics.simulate(physics.ParticleSystem(7), steps=5, out=path)
    with opened(browser, explorer) as tab:
        tab.choose("theory")
        drop = """bytes => {
            const held = new DataTransfer()
            held.items.add(new File([new Uint8Array(bytes)], "mine.h5"))
            document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: held, bubbles: true}))
        }"""
        tab.page.evaluate(drop, list(path.read_bytes()))
        tab.page.wait_for_selector("#tab-circles[aria-selected=true]")
        tab.wait_status("file", "value === 'mine.h5'")
        tab.choose("particles")
        tab.page.evaluate(drop, list(path.read_bytes()))
        tab.page.wait_for_function('decodeURIComponent(location.hash).includes(\'"kind":"file"\')')
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        assert len(loaded(tab.download("save")).final[0]) == 7


TRAILS = """() => {
    for (const view of Bokeh.index.roots) {
        for (const figure of view.owner.query(found => found.model.type === "Figure")) {
            const source = figure.model.renderers.find(r => r.data_source.data.alpha?.length > 0)?.data_source
            if (source !== undefined) return [["x0", "y0"], ["x1", "y1"]].map(
                ends => ends.map(name => [...source.data[name]]))
        }
    }
}"""
"""Where the parts of trails begin and end on the page."""


def test_trails_grow_on_the_page_and_lead_to_the_tokens(browser, explorer):
    with opened(browser, explorer) as tab:
        seen = []
        for step in range(1, 4):
            tab.command("step")
            tab.wait_status("step", f"value === '{step}'")
            seen.append(loaded(tab.download("save")).final[0])
        begins, ends = (np.array(found).T.reshape(-1, 17, 2) for found in tab.page.evaluate(TRAILS))
        np.testing.assert_allclose(ends[-3:], seen, atol=1e-4)
        np.testing.assert_allclose(begins[-2:], seen[:-1], atol=1e-4)
        np.testing.assert_array_equal(begins[:-3], ends[:-3])  # nothing has moved before


def test_many_marks_of_one_look_are_one_path(browser, explorer):
    """Fewer paths are filled than there are marks, and the picture is that of marks drawn one by one."""
    drawn = """() => {
        const drawing = OffscreenCanvasRenderingContext2D.prototype, fill = drawing.fill
        let fills = 0
        drawing.fill = function (...path) { fills++; fill.apply(this, path) }
        for (const root of Bokeh.index.roots) {
            for (const figure of root.owner.query(found => found.model.type === "Figure")) {
                if (!figure.model.name.startsWith("Pair sums")) continue
                const {glyph} = figure.views.find_one(figure.model.renderers[0])
                const all = [...Array(glyph.data_size).keys()], {width, height} = figure.frame.bbox
                const made = [[all], all.map(k => [k])].map(parts => {
                    const ctx = new OffscreenCanvas(width, height).getContext("2d")
                    fills = 0
                    for (const part of parts) glyph.paint(ctx, part)
                    return [fills, ctx.getImageData(0, 0, width, height).data]
                })
                drawing.fill = fill
                const [[few, one], [each, other]] = made
                const inked = one.filter((value, k) => k % 4 === 3 && value > 0).length
                return [few, each, inked, one.filter((value, k) => Math.abs(value - other[k]) > 60).length]
            }
        }
    }"""
    with opened(browser, explorer) as tab:
        tab.page.get_by_label("start", exact=True).select_option("circle")
        tokens = tab.page.get_by_role("slider", name="tokens N")
        for _ in range(7):
            tokens.press("ArrowRight")
        tab.page.wait_for_function("decodeURIComponent(location.hash).includes('\"tokens\":24')")
        tab.page.wait_for_timeout(300)
        few, each, inked, differing = tab.page.evaluate(drawn)
    assert each == 24 * 25 // 2
    assert 24 <= few < each
    assert inked > 5000
    assert differing < 0.1 * inked  # where marks overlap, another may be above


def test_two_tabs_are_two_sessions(browser, explorer):
    with opened(browser, explorer) as one, opened(browser, explorer) as other:
        one.command("step")
        one.wait_status("step", "value === '1'")
        other.command("play")
        other.wait_status("step", "value > 5")
        assert one.status("step") == "1"
        assert other.page.inner_text("#play") == "Pause"
        assert one.page.inner_text("#play") == "Play"


def test_a_network_trains(browser, explorer):
    with opened(browser, explorer) as tab:
        heard = """new MutationObserver(() => (window.heard ??= []).push(performance.now()))
            .observe(document.getElementById("told"), {childList: true})"""
        tab.page.evaluate(heard)
        tab.choose("networks")
        first = number(tab, "train-loss")
        tab.page.evaluate("document.getElementById('speed').value = 6")
        tab.page.dispatch_event("#speed", "input")
        tab.page.wait_for_function("document.getElementById('speed-value').textContent === '20'")
        tab.command("play")
        tab.wait_status("step", "value >= 100")
        tab.command("play")
        tab.page.wait_for_selector("#play[aria-pressed=false]")
        tab.page.wait_for_timeout(300)
        step = number(tab, "step")
        assert number(tab, "train-loss") < first
        assert number(tab, "particle-step") == step / 20
        tab.page.wait_for_function("window.heard?.length > 1")
        assert np.diff(tab.page.evaluate("window.heard")).min() > 1900, "the sentence is not told too often"
        tab.page.wait_for_function(
            "document.getElementById('told').textContent === document.getElementById('verdict').textContent"
        )
        made = executed(tab.python())
        kept = loaded(tab.download("save"))
        np.testing.assert_array_equal(kept.final[0], made["E"])
        tab.choose("particles")
        assert tab.status("step") == "0"


def test_a_value_out_of_range_is_a_sentence(browser, explorer):
    with opened(browser, explorer, width=390, height=844) as tab:
        field = tab.page.get_by_label("modulus (0: tokens N)")
        for typed, kept in (("-1", "0"), ("201", "0"), ("", "0")):
            field.fill(typed)
            field.press("Enter")
            tab.wait_message("modulus (0: tokens N) must be a whole number from 0 to 200, got")
            wait_for(lambda kept=kept: field.input_value() == kept)
        for typed in ("3.7", "1e9", "1e1", "seven"):
            field.press("Control+a")
            field.press_sequentially(typed)
            field.press("Enter")
            tab.wait_message(f"modulus (0: tokens N) must be a whole number from 0 to 200, got {typed}")
            wait_for(lambda: field.input_value() == "0")
        field.press("0")  # and once more the value in force, which is no change
        field.press("Backspace")
        field.press("Enter")
        tab.page.wait_for_function("document.getElementById('message').hidden")
        for key, kept in (("ArrowUp", "2"), ("ArrowUp", "3"), ("ArrowDown", "2"), ("ArrowDown", "0")):
            field.press(key)
            wait_for(lambda kept=kept: field.input_value() == kept)
        tab.page.wait_for_function("document.getElementById('message').hidden")
        field.fill("17")
        field.press("Enter")
        field.fill("1")
        field.press("Enter")
        tab.wait_message("modulus must be at least 2, got 1")
        wait_for(lambda: field.input_value() == "17")
        field.fill("13")
        field.press("Enter")
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        assert "modulus=13" in tab.python()
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_file_that_is_not_ours_is_a_sentence(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.page.get_by_label("start", exact=True).select_option("from a file")
        tab.wait_message("Choose a trajectory file")
        tab.upload("mine.h5", b"nothing")
        tab.wait_message("mine.h5 is not an HDF5 file")
        assert tab.page.get_attribute("#message", "class") == "error"
        tab.errors.clear()  # the browser's own, of a request that was refused
        tab.command("step")
        tab.wait_status("step", "value === '1'")


def test_a_server_that_dies_and_returns(browser):
    server = Server()
    with opened(browser, server) as tab:
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        server.kill()
        tab.wait_message("The connection to the server is lost")
        again = Server(port=server.port)
        tab.wait_message("The server was restarted: open the link that it has printed.")
        tab.page.goto(again.link)
        tab.page.wait_for_selector("body.ready:not(.lost)")
        tab.wait_status("step", "value === '0'")
        tab.errors.clear()  # the browser's own, of a server that was not there
        tab.command("step")
        tab.wait_status("step", "value === '1'")
    assert "Traceback" not in again.stop()


def test_a_page_that_has_lost_its_connection_comes_back_as_it_was(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        tab.page.wait_for_function("location.hash.includes('step%22%3A1')")
        tab.page.evaluate("window.before = true; window.grokphys.lost()")
        tab.page.wait_for_function("window.before === undefined")  # it has loaded again
        tab.page.wait_for_selector("body.ready:not(.lost)")
        tab.wait_status("step", "value === '1'")
        tab.command("step")
        tab.wait_status("step", "value === '2'")
        tab.errors.clear()  # the browser's own: what is asked for is not sent in answer to HEAD


def test_ctrl_c_ends_it_quietly():
    server = Server()
    try:
        server.process.send_signal(signal.SIGINT)
        said, _ = server.process.communicate(timeout=60)
    finally:
        server.kill()
    assert (server.process.returncode, said) == (0, "")


@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
def test_another_origin_gets_no_websocket(explorer, origin):
    from hostile import alone
    from tornado.httpclient import HTTPClientError, HTTPRequest
    from tornado.websocket import websocket_connect

    async def connect():
        request = HTTPRequest(
            explorer.url.replace("http", "ws") + f"ws?token={explorer.token}", headers={"Origin": origin}
        )
        await websocket_connect(request, subprotocols=["bokeh", "token"])

    with pytest.raises(HTTPClientError, match="403"):
        alone(connect())
