"""The live page of the site in a real browser: its forces are those of the kernels, without a network."""

import json
from pathlib import Path

import numpy as np
import pytest

import physics
from physics.particles.tabulated import PairKernels

PAGE = (Path(__file__).parents[3] / "docs" / "extra" / "live" / "index.html").as_uri()
MUSAT = {"alignment": 1.5, "attraction": 0.7, "repulsion": 1.2, "softening": 0.1}


@pytest.fixture
def page(browser):
    context = browser.new_context(reduced_motion="reduce")
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: request.url.startswith("file:") or complaints.append(request.url))
    page.goto(PAGE)
    yield page
    context.close()
    assert complaints == []


def test_forces_and_steps_are_those_of_the_kernels(page):
    x = np.random.default_rng(5).normal(size=(17, 2))
    table = json.loads(page.evaluate("JSON.stringify(DATA.kernels)"))
    kernels = PairKernels(**{name: value for name, value in table.items() if name != "pace"})
    measured = physics.PairForces(kernels, 17, 2, on="pair sums", normalise=True)
    for law, system in ((MUSAT, physics.ParticleSystem(**MUSAT)), (table, measured)):
        forces = np.array(page.evaluate("([x, law]) => forces(x, law)", [x.tolist(), law]))
        np.testing.assert_allclose(forces, system.forces(x), rtol=1e-9, atol=1e-9 * np.abs(forces).max())
        moved = x[None].copy()
        system.advance(moved, 0.002, 10)
        program = "([x, law]) => { for (let n = 0; n < 10; n++) x = stepped(x, law, 0.002); return x }"
        np.testing.assert_allclose(page.evaluate(program, [x.tolist(), law]), moved[0], rtol=1e-9, atol=1e-9)
    measures = page.evaluate("x => [circleRatio(x), imperfections(x)]", x.tolist())
    np.testing.assert_allclose(measures, [physics.circle_ratio(x), physics.grid_imperfections(x)], rtol=1e-9)


def test_presets_play_and_a_particle_can_be_dragged(page):
    for button in page.locator("#presets button").all():
        button.click()
        before = page.inner_text("#steps")
        page.click("#step")
        assert page.inner_text("#steps") != before, button.inner_text()
    page.click("#presets button[value=pull]")
    box = page.locator("#points").bounding_box()
    x, y = page.evaluate(
        "plane($('points').clientWidth, $('points').clientHeight, reach(state.points)).to(state.points[0])"
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + x - 40, box["y"] + y - 20, steps=4)
    page.mouse.up()
    assert page.evaluate("circleRatio(state.points)") > 1.05
