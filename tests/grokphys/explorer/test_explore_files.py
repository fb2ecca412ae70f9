"""Effective theory and circles in a real browser: what is clicked, typed and exported comes back right."""

import io
import re

import numpy as np
import pytest
from browser import opened, wait_for
from PIL import Image

import physics

SPOT = """([name, x, y]) => {
  const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(name))
  const box = view.canvas.el.getBoundingClientRect()
  return [box.x + view.frame.x_scale.compute(x), box.y + view.frame.y_scale.compute(y)]
}"""


@pytest.fixture(scope="module")
def tab(browser, explorer):
    with opened(browser, explorer) as found:
        yield found


@pytest.fixture
def particles(tmp_path):
    path = tmp_path / "particles.h5"
    physics.simulate(physics.ParticleSystem(7), runs=2, steps=5, seed=5, out=path)
    return path


def click(tab, name, x, y):
    """Click on a place of a figure, in its own units."""
    tab.page.wait_for_function("name => Bokeh.documents[0].get_model_by_name(name) != null", arg=name)
    tab.page.mouse.click(*tab.page.evaluate(SPOT, [name, x, y]))


def executed(program):
    names = {}
    exec(program, names)
    return names


def test_clicked_pairs_read_back_as_the_theory_says(tab):
    tab.choose("theory")
    tab.wait_status("pairs", "value === '45 of 55'")
    pairs = {tuple(pair) for pair in executed(tab.python())["pairs"]}
    for i, j, count in [(8, 9, 46), (0, 0, 45), (9, 9, 44)]:
        tab.page.wait_for_timeout(350)  # two taps at once would be a double tap
        click(tab, "Training set (click to add or remove pairs)", i, j)
        tab.wait_status("pairs", f"value === '{count} of 55'")
        pairs ^= {(i, j)}
    theory = physics.EffectiveTheory(10, pairs=sorted(pairs))
    assert tab.status("ground states") == str(theory.ground_state_dimension)
    assert tab.status("grokking rate") == f"{theory.grokking_rate:.6g}"
    assert tab.status("ideal accuracy") == f"{100 * physics.ideal_accuracy(theory):.2f} %"
    assert tab.status("parallelograms") == str(len(theory.parallelograms))

    tab.command("step")
    tab.wait_status("time", "value !== '0'")
    slider = tab.page.locator('.noUi-handle[aria-valuemax="120.0"]')
    for _ in range(2):
        slider.press("ArrowRight")
    found = executed(tab.python())
    tab.wait_status("time", f"Number(value) > 2 * {float(tab.status('time')) / 4}")
    assert found["lambda_3"] == theory.grokking_rate
    assert found["E"].shape == (10, 1)

    file = io.BytesIO(tab.download("save"))
    assert file.getvalue()[1:4] == b"HDF"
    assert Image.open(io.BytesIO(tab.download("png"))).format == "PNG"
    tab.page.get_by_label("add or remove a pair").fill("3, 10")
    tab.page.keyboard.press("Enter")
    tab.wait_message("pairs must hold symbols from 0 to 9, got (3, 10)")


def test_a_file_is_uploaded_scrubbed_fitted_and_exported(tab, particles, tmp_path, monkeypatch):
    tab.choose("circles")
    assert tab.status("survivors") == "7 8 11 13 25"
    tab.upload("notes.txt", b"not ours")
    tab.wait_message("notes.txt is not an HDF5 file")
    assert tab.status("file") == "ding_p59_d128_seed0.h5"
    tab.errors.clear()  # the browser's own, of a request that was refused

    tab.upload("particles.h5", particles.read_bytes())
    tab.wait_status("file", "value === 'particles.h5'")
    assert tab.page.get_by_label("file", exact=True).filter(visible=True).locator(
        "option"
    ).all_text_contents() == [
        "particles.h5",
        "ding_p59_d128_seed0.h5",
    ]
    slider = tab.page.locator('.noUi-handle[aria-valuemax="5.0"]')
    for _ in range(3):
        slider.press("ArrowRight")
    tab.wait_status("step", "value === '3'")
    monkeypatch.chdir(tmp_path)  # the script calls the file what its owner does
    found = executed(tab.python())
    np.testing.assert_array_equal(found["E"], physics.load(particles).positions[0, 3])
    tab.page.get_by_role("button", name="Fit the linear ODE").click()
    tab.wait_status("rollout-R²", "value !== undefined")

    assert physics.load(_written(tmp_path / "back.h5", tab.download("save"))).frames == 6
    with Image.open(io.BytesIO(tab.download("gif"))) as film:
        assert film.n_frames == 6
    tab.command("play")
    tab.wait_status("step", "value === '5'")


def test_a_pause_leaves_slider_readouts_and_script_at_one_frame(browser, explorer):
    with opened(browser, explorer) as tab:
        tab.choose("circles")
        slider = tab.page.locator('.noUi-handle[aria-valuemax="79.0"]')
        tab.page.focus("#speed")
        tab.page.keyboard.press("Home")  # so that the run does not end before it is paused
        tab.page.wait_for_function("document.getElementById('speed-value').textContent === '1'")
        for _ in range(3):
            before = tab.status("step")
            tab.command("play")
            tab.wait_status("step", f"value !== '{before}'")
            tab.command("play")
            frame, step = re.search(r"positions\[(\d+)\]  # step (\d+)", tab.python()).groups()
            assert tab.status("step") == step
            wait_for(lambda frame=frame: slider.get_attribute("aria-valuenow") == f"{frame}.0")


def test_a_phone_shows_both_without_scrolling_sideways(tab):
    tab.page.set_viewport_size({"width": 390, "height": 844})
    for view in ("theory", "circles"):
        tab.choose(view)
        tab.page.wait_for_timeout(300)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390


def _written(path, content):
    path.write_bytes(content)
    return path
