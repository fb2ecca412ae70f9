"""The explorer for everyone: controls by keyboard, with names and a focus that is seen; contrast of text."""

import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from browser import Server, opened

from grokphys.explorer.views.tabs import VIEWS

FIND = """
const everything = () => {
    const found = []
    const walk = root => {
        for (const node of root.querySelectorAll("*")) {
            found.push(node)
            if (node.shadowRoot) walk(node.shadowRoot)
        }
    }
    walk(document)
    return found
}
const above = node => node.parentElement ?? node.getRootNode().host ?? null
const seen = node => node.checkVisibility({visibilityProperty: true})
    && node.getBoundingClientRect().width > 1
"""
"""All elements of a page, those within others too."""

CONTROLS = f"""() => {{{FIND}
    window.left = new Set(everything().filter(node => node.tabIndex >= 0 && !node.disabled && seen(node)
        && node.matches("button, input, select, summary, [tabindex]")))
    return window.left.size
}}"""

FOCUSED = """() => {
    let node = document.activeElement
    while (node.shadowRoot?.activeElement) node = node.shadowRoot.activeElement
    window.left.delete(node)
    const {outlineStyle, outlineWidth} = getComputedStyle(node)
    const ring = outlineStyle !== "none" && parseFloat(outlineWidth) >= 1
    return [node === document.body || ring, node.outerHTML.slice(0, 120)]
}"""

NAMELESS = f"""() => {{{FIND}
    const named = node => node.ariaLabel || node.getAttribute("aria-labelledby") || node.title
        || node.labels?.length || node.tagName === "BUTTON" && node.textContent.trim()
    return everything().filter(node => node.matches("button, input, select, [role=slider]") && seen(node))
        .filter(node => node.tabIndex >= 0 && !named(node)).map(node => node.outerHTML.slice(0, 120))
}}"""

CONTRASTS = f"""() => {{{FIND}
    const parts = color => {{
        const [r, g, b, a] = color.match(/[\\d.]+/g).map(Number)
        return [[r, g, b], a ?? 1]
    }}
    const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
    const luminance = rgb => {{
        const [r, g, b] = rgb.map(v => linear(v / 255))
        return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }}
    const over = (below, [rgb, alpha]) => below.map((v, k) => rgb[k] * alpha + v * (1 - alpha))
    const night = matchMedia("(prefers-color-scheme: dark)").matches
    const written = node => [...node.childNodes].some(child => child.nodeType === 3
        && child.textContent.trim()) || node.matches("select, input:not([type=range]):not([type=checkbox])")
    const aside = "style, script, option"
    const texts = everything().filter(node => seen(node) && written(node) && !node.matches(aside))
    return texts.map(node => {{
        const layers = []
        let turned = false
        for (let under = node; under !== null; under = above(under)) {{
            turned ||= night && under.matches(".bk-Canvas")
            const [rgb, alpha] = parts(getComputedStyle(under).backgroundColor)
            if (alpha > 0) layers.unshift([rgb, alpha])
        }}
        const back = layers.reduce(over, [255, 255, 255])
        const [ink, alpha] = parts(getComputedStyle(node).color)
        const text = over(back, [turned ? ink.map(v => 229.5 - 0.8 * v) : ink, alpha])  // see FIGURE_CSS
        const [dark, light] = [luminance(back), luminance(text)].sort((a, b) => a - b)
        return [(light + 0.05) / (dark + 0.05), node.outerHTML.slice(0, 120)]
    }}).sort((a, b) => a[0] - b[0])
}}"""


@pytest.mark.parametrize("view", [kind.slug for kind in VIEWS])
def test_every_control_is_reached_by_keyboard_is_seen_and_has_a_name(browser, explorer, view):
    with opened(browser, explorer) as tab:
        page = tab.page
        page.focus("#tab-particles")
        for _ in range([kind.slug for kind in VIEWS].index(view)):
            page.keyboard.press("ArrowRight")
        page.wait_for_selector(f"#tab-{view}[aria-selected=true]")
        page.wait_for_function("document.getElementById('message').hidden")
        page.wait_for_timeout(1500)  # its sliders have names by then
        assert page.evaluate(NAMELESS) == []
        count = page.evaluate(CONTROLS)
        assert count > 30
        for _ in range(count + 5):
            ring, node = page.evaluate(FOCUSED)
            assert ring, node
            page.keyboard.press("Tab")
        left = page.evaluate("[...window.left].map(node => node.outerHTML.slice(0, 120))")
        assert left == []


def test_a_particle_is_chosen_and_moved_by_keys_alone(browser, explorer):
    with opened(browser, explorer) as tab:
        page = tab.page
        page.focus("#stage")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Shift+ArrowUp")
        page.wait_for_timeout(300)
        assert "E[1] = [" in tab.python()
        assert "E[0] = [" not in tab.python()


def test_the_space_bar_opens_an_explanation_or_plays(browser, explorer):
    with opened(browser, explorer) as tab:
        page = tab.page
        page.locator("summary").filter(visible=True).focus()
        page.keyboard.press("Space")
        page.wait_for_selector("details[open]")
        assert page.inner_text("#play") == "Play"
        page.focus("#stage")
        page.keyboard.press("Space")
        page.wait_for_selector("#play[aria-pressed=true]")


def test_a_file_that_cannot_be_opened_is_said_at_once(browser, tmp_path):
    (tmp_path / "notes.h5").write_text("nothing")
    server = Server(tmp_path / "notes.h5")
    try:
        with opened(browser, server) as tab:
            tab.wait_message("notes.h5 is not an HDF5 file")
            assert tab.page.locator("#message").is_visible()
    finally:
        server.kill()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_of_every_view_stands_out(browser, explorer, scheme):
    with opened(browser, explorer, color_scheme=scheme) as tab:
        for kind in VIEWS:
            tab.choose(kind.slug)
            tab.page.wait_for_function("document.getElementById('message').hidden")
            tab.page.wait_for_timeout(300)
            tab.page.locator("summary").filter(visible=True).click()
            found = tab.page.evaluate(CONTRASTS)
            assert len(found) > 60
            assert found[0][0] >= 4.5, (kind.slug, found[:5])
