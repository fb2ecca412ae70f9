"""The explorer in a real browser: each view, play, drag, upload, exports, links, a server that dies."""

import io
import resource

import numpy as np
import pytest
from browser import FIRST, Server, executed, loaded, opened, wait_for
from PIL import Image

import physics

pytest.importorskip("bokeh", reason="bokeh is not installed")


STARTS = ("Particles (drag to move)", "Second start")


def number(tab, name):
    return float(tab.status(name))


def pictures(content):
    with Image.open(io.BytesIO(content)) as film:
        return film.n_frames, film.size


def test_particles_play_pause_step_and_reset(browser, explorer):
    with opened(browser, explorer) as tab:
        assert tab.status("step") == "0"
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        tab.page.focus("#speed")
        tab.page.keyboard.press("ArrowRight")
        tab.page.keyboard.press("ArrowRight")
        tab.page.wait_for_function("document.getElementById('speed-value').textContent === '3'")
        tab.command("play")
        tab.wait_status("step", "value > 30")
        made = executed(tab.python())  # which pauses
        assert tab.page.get_attribute("#play", "aria-pressed") == "false"
        step = number(tab, "step")
        assert (step - 1) % 3 == 0
        kept = loaded(tab.download("save"))
        np.testing.assert_array_equal(kept.final[0], made["E"])
        assert kept.steps[-1] == step
        assert tab.status("circle-ratio") == f"{physics.circle_ratio(made['E']):.3f}"
        tab.command("reset")
        tab.wait_status("step", "value === '0'")
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        assert pictures(tab.download("gif")) == (2, (640, 432))
        assert b"ftyp" in tab.download("mp4")[:16]


def test_a_link_is_an_address_that_opens_the_same(browser, explorer):
    with opened(browser, explorer, permissions=["clipboard-read", "clipboard-write"]) as tab:
        assert tab.page.title() == "GrokPhys: Particles, a circle forms"
        tab.page.click("text=two starts, one law")
        tab.wait_status("step", "value > 10")
        tops = [tab.page.locator(f"h3:text-is('{name}')").bounding_box()["y"] for name in STARTS]
        assert tops[0] == tops[1] < 400, "side by side"
        tab.python()  # which pauses
        step = number(tab, "step")
        tab.command("link")
        tab.wait_message("The address is copied.")
        link = tab.page.evaluate("navigator.clipboard.readText()")
        tab.page.goto("about:blank")
        tab.page.goto(link)
        tab.wait_status("step", f"value === '{step:.0f}'")
        assert tab.page.title() == "GrokPhys: Particles, two starts, one law"


def test_a_particle_is_dragged(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        before = executed(tab.python())["E"]
        x, y = tab.page.evaluate(FIRST)
        mouse = tab.page.mouse
        mouse.move(x, y)
        mouse.down()
        top = tab.page.locator("h3").first.bounding_box()
        mouse.move(x + 30, y + 20, steps=6)
        tab.page.wait_for_timeout(400)
        assert tab.page.locator("h3").first.bounding_box() == top, "figures stand still"
        style = "getComputedStyle(document.activeElement)"
        assert tab.page.evaluate(f"[document.activeElement.id, {style}.outlineStyle]") == ["stage", "none"]
        mouse.up()
        tab.page.wait_for_timeout(400)
        after = executed(tab.python())["E"]
        moved = (after != before).any(axis=1)
        assert moved.tolist() == [True] + [False] * 16
        right, up = after[0] - before[0]
        assert right > 0 > up
        tab.command("step")
        tab.wait_status("step", "value === '2'")
        twice = executed(tab.python())["E"]
        again = physics.simulate(
            physics.ParticleSystem(alignment=2.0), steps=1, step_size=0.02, initial=after
        )
        np.testing.assert_array_equal(twice, again.final[0])


def test_keys_choose_and_move_a_particle_and_a_pair(browser, explorer):
    with opened(browser, explorer) as tab:
        before = executed(tab.python())["E"]
        tab.page.focus("#stage")
        for key in ("ArrowRight", "ArrowRight", "Shift+ArrowUp"):
            tab.page.keyboard.press(key)
        wait_for(lambda: "E[1]" in tab.python())
        after = executed(tab.python())["E"]
        assert (after[1] > before[1]).tolist() == [False, True]
        tab.choose("theory")
        tab.page.focus("#stage")
        for key in ("ArrowRight", "ArrowUp", "Enter"):  # the pair 1, 1
            tab.page.keyboard.press(key)
        wait_for(lambda: tab.status("pairs") == "44 of 55")


def test_a_network_learns_and_its_rate_is_changed(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.choose("networks")
        tab.command("play")
        tab.wait_status("training step", "value > 40")
        handle = tab.page.get_by_role("slider", name="weight decay")
        handle.focus()
        handle.press("ArrowRight")
        step = number(tab, "training step")
        tab.wait_status("training step", f"value > {step + 40}")
        tab.command("play")
        tab.page.wait_for_selector("#play[aria-pressed=false]")
        code = tab.python()
        assert "training.set_rates(learning_rate=0.01, weight_decay=1.05)" in code
        made = executed(code)
        kept = loaded(tab.download("save"))
        np.testing.assert_array_equal(kept.final[0], made["E"])
        (_, (accuracy,)) = made["training"].losses("train")
        assert tab.status("train-accuracy") == f"{accuracy:.3f}"
        assert pictures(tab.download("png"))[1][0] > 1000


@pytest.mark.slow
def test_a_training_set_is_chosen_by_clicks(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.choose("theory")
        tab.page.get_by_role("button", name="No pairs").click()
        tab.wait_status("pairs", "value === '0 of 55'")
        tab.page.get_by_role("button", name="All pairs").click()
        tab.wait_status("pairs", "value === '55 of 55'")
        tab.command("play")
        tab.page.wait_for_function(
            "document.getElementById('verdict').textContent.startsWith('It generalizes')"
        )
        tab.page.wait_for_selector("#play[aria-pressed=false]")
        made = executed(tab.python())
        assert made["theory"].ground_state_dimension == 2
        assert tab.status("RQI") == f"{made['quality']:.4f}"
        kept = loaded(tab.download("save"))
        np.testing.assert_allclose(kept.final[0], made["E"], rtol=0, atol=1e-9)


def test_a_law_is_fitted_to_circles(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.choose("circles")
        tab.page.get_by_text("Fit the linear ODE").click()
        tab.page.wait_for_selector("#status-rollout-R²")
        made = executed(tab.python())
        rollout = made["law"].score(made["signals"], made["times"]).rollout
        assert tab.status("rollout R²") == f"{rollout:.4f}"
        plane = tab.page.get_by_label("plane", exact=True).filter(visible=True)
        plane.select_option("frequency 7")
        tab.wait_status("signal 7", "value !== undefined")
        assert "frequency_plane(positions[-1], 7)" in tab.python()


def test_a_neuron_is_chosen_by_a_click(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.choose("neurons")
        tab.command("play")
        tab.wait_status("training step", "value > 20")
        tab.command("play")
        tab.page.wait_for_selector("#play[aria-pressed=false]")
        stage = tab.page.locator("#stage")
        stage.focus()
        stage.press("ArrowRight")
        tab.wait_status("neuron", "value === '1'")
        made = executed(tab.python())
        assert tab.status("purity") == f"{made['neurons'].purity[0, 1]:.3f}"


def test_an_upload_is_shown_and_a_foreign_file_is_a_sentence(browser, explorer, tmp_path):
    path = tmp_path / "mine.h5"
    run = physics.simulate(physics.ParticleSystem(11), steps=5, seed=3, out=path)
    with opened(browser, explorer) as tab:
        tab.choose("circles")
        tab.upload("mine.h5", path.read_bytes())
        wait_for(lambda: "mine.h5" in tab.python())
        np.testing.assert_array_equal(loaded(tab.download("save")).final[0], run.final[0])
        tab.upload("other.h5", b"nothing")
        tab.wait_message("other.h5 is not an HDF5 file")
        tab.errors.clear()  # the browser's own, of a request that was refused


@pytest.mark.slow
def test_values_out_of_range_are_sentences_on_a_narrow_page(browser, explorer):
    with opened(browser, explorer, width=390, height=844) as tab:
        field = tab.page.get_by_label("modulus (below 2: tokens N)")
        for typed, got in (("-1", "-1"), ("201", "201"), ("3.7", "3.7"), ("seven", "seven"), ("", "nothing")):
            field.fill("")
            field.press_sequentially(typed)
            field.press("Enter")
            tab.wait_message(f"must be a whole number from 0 to 200, got {got}")
            wait_for(lambda: field.input_value() == "0")
        field.fill("13")
        field.press("Enter")
        tab.command("step")
        tab.wait_status("step", "value === '1'")
        assert "modulus=13" in tab.python()
        for view in ("particles", "networks", "theory", "circles", "neurons"):
            tab.choose(view)
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
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


def test_a_full_disk_is_a_sentence_and_another_tab_has_a_run_of_its_own(browser, tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    server = Server(TMPDIR=folder)
    try:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1000, 1000))
        with opened(browser, server) as tab:
            tab.command("step")
            tab.wait_status("step", "value === '1'")
            tab.command("save")
            tab.page.wait_for_selector("#message.error")
            tab.command("step")
            tab.wait_status("step", "value === '2'")
            with opened(browser, server) as other:
                assert other.status("step") == "0"
    finally:
        server.stop()
    assert server.process.returncode == 0
