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
        const text = over(back, [turned ? ink.map(v => 247.35 - 0.94 * v) : ink, alpha])  // see FIGURE_CSS
        const [dark, light] = [luminance(back), luminance(text)].sort((a, b) => a - b)
        return [(light + 0.05) / (dark + 0.05), node.outerHTML.slice(0, 120)]
    }}).sort((a, b) => a[0] - b[0])
}}"""


def test_every_control_is_reached_by_keyboard_is_seen_and_has_a_name(browser, explorer):
    """In one page for all views: to open a page takes longer than to look through a view."""
    with opened(browser, explorer) as tab:
        page = tab.page
        for before, kind in zip((None, *VIEWS), VIEWS, strict=False):
            if before is not None:
                page.focus(f"#tab-{before.slug}")
                page.keyboard.press("ArrowRight")
            page.wait_for_selector(f"#tab-{kind.slug}[aria-selected=true]")
            page.wait_for_function("document.getElementById('message').hidden")
            page.wait_for_timeout(1500)  # its sliders have names by then
            assert page.evaluate(NAMELESS) == [], kind.slug
            count = page.evaluate(CONTROLS)
            assert count > 30, kind.slug
            page.focus(f"#tab-{kind.slug}")
            for _ in range(count + 5):
                ring, node = page.evaluate(FOCUSED)
                assert ring, (kind.slug, node)
                page.keyboard.press("Tab")
            left = page.evaluate("[...window.left].map(node => node.outerHTML.slice(0, 120))")
            assert left == [], kind.slug


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


def test_text_of_every_view_stands_out_by_day_and_by_night(browser, explorer):
    with opened(browser, explorer) as tab:
        for kind in VIEWS:
            tab.choose(kind.slug)
            tab.page.wait_for_function("document.getElementById('message').hidden")
            tab.page.wait_for_timeout(300)
            tab.page.locator("summary").filter(visible=True).click()
            for scheme in ("light", "dark"):
                tab.page.emulate_media(color_scheme=scheme)
                found = tab.page.evaluate(CONTRASTS)
                assert len(found) > 60
                assert found[0][0] >= 4.5, (kind.slug, scheme, found[:5])


STATES = """
const [play, verdict] = ["play", "verdict"].map(id => () => document.getElementById(id))
window.states = []
document.addEventListener("DOMContentLoaded", () => {
    const note = () => window.states.push([play().textContent, play().disabled, verdict().textContent])
    const options = {subtree: true, childList: true, characterData: true, attributes: true}
    note()
    for (const part of [play(), verdict()]) new MutationObserver(note).observe(part, options)
}, {once: true})
"""
"""Script that keeps what the button and the headline say from the first moment on."""


def test_it_opens_playing_says_what_one_sees_and_explains_it(browser, explorer):
    """By mouse, touch and keyboard, on a phone at night: nothing is out of reach."""
    with opened(
        browser,
        explorer,
        still=False,
        width=400,
        height=800,
        script=STATES,
        color_scheme="dark",
        has_touch=True,
    ) as tab:
        page = tab.page
        page.wait_for_selector("#play[aria-pressed=true]")
        assert "Watch 17 particles" in page.inner_text("#watch")
        states = page.evaluate("window.states")
        assert states[0] == ["Play", True, "Loading the first figures …"], "until the session is there"
        assert {play for play, waits, _ in states if not waits} == {"Pause"}
        assert all(words for _, _, words in states)
        page.wait_for_function("document.getElementById('verdict').textContent.includes('Circle, step 8')")
        page.get_by_label("What is circle ratio?", exact=True).tap()
        assert "largest" in page.inner_text("#term").lower()
        assert "Musat, Appendix A.1" in page.inner_text("#term")
        page.keyboard.press("Escape")
        assert page.locator("#term").is_hidden()
        page.get_by_role("button", name="an imperfect grid").tap()
        page.wait_for_function("document.getElementById('verdict').textContent.includes('imperfections')")
        page.locator("summary").filter(visible=True).tap()
        assert "attracted by sums with the same answer" in page.inner_text("details[open]")
        tab.command("play")
        page.wait_for_selector("#play[aria-pressed=false]")
        page.locator("#controls").tap()
        page.get_by_label("seed", exact=True).fill("0")
        page.keyboard.press("Enter")
        tab.wait_status("step", "value === '0'")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.focus("#tab-particles")
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector("#tab-neurons[aria-selected=true]")
        page.wait_for_selector("#play[aria-pressed=true]")  # the first time a view plays, too
        assert "Watch the race of neuron 0" in page.inner_text("#watch")
        page.keyboard.press("Home")
        page.wait_for_selector("#tab-particles[aria-selected=true]")
        page.focus("#stage")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Shift+ArrowRight")
        page.wait_for_function("decodeURIComponent(location.hash).includes('particles')")
        shown = page.evaluate(
            """() => {
                const luminance = color => {
                    const parts = color.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255)
                    const linear = parts.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
                }
                const behind = node => {
                    for (; node !== null; node = node.parentElement) {
                        const color = getComputedStyle(node).backgroundColor
                        if (!color.startsWith("rgba(0, 0, 0, 0")) return color
                    }
                    return "rgb(255, 255, 255)"
                }
                return [...document.querySelectorAll("button, dt, dd, p, summary, output")]
                    .filter(node => node.offsetParent !== null && node.textContent.trim() !== "")
                    .map(node => {
                        const both = [getComputedStyle(node).color, behind(node)].map(luminance)
                        const contrast = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05)
                        return [contrast, node.outerHTML.slice(0, 60)]
                    }).sort((a, b) => a[0] - b[0])[0]
            }"""
        )
        assert shown[0] >= 4.5, shown


def test_an_explanation_covers_no_value_and_a_link_no_token(browser, explorer):
    with opened(
        browser, explorer, width=1440, height=900, permissions=["clipboard-read", "clipboard-write"]
    ) as tab:
        page = tab.page
        page.wait_for_timeout(500)
        for which in (2, 6, 8):
            button = page.locator(".why").filter(visible=True).nth(which)
            button.click()
            box = page.locator("#term").bounding_box()
            values = page.locator("#status dd, #verdict, .bk-slider-title, .bk-input").filter(visible=True)
            for value in (values.nth(k).bounding_box() for k in range(values.count())):
                apart = [
                    box[a] >= value[a] + value[size] or value[a] >= box[a] + box[size]
                    for a, size in (("x", "width"), ("y", "height"))
                ]
                assert any(apart), (which, value, box)
            page.keyboard.press("Escape")
        tab.command("step")
        page.wait_for_function("location.hash.includes('step%22%3A1')")
        page.click("#link")
        tab.wait_message("The state is copied; it contains no access token.")
        state = page.evaluate("navigator.clipboard.readText()")
        assert state.startswith("#")
        assert explorer.token not in state
        with opened(browser, explorer) as other:
            other.page.evaluate("state => { location.hash = state }", state)
            other.wait_status("step", "value === '1'")
            other.page.evaluate(
                "state => { location.hash = state }", state.replace("step%22%3A1", "step%22%3A12345")
            )
            other.wait_status("step", "value === '12345'")
            wide = other.page.locator("#status-step").bounding_box()["width"]
            other.command("reset")
            other.wait_status("step", "value === '0'")
            assert other.page.locator("#status-step").bounding_box()["width"] == wide, "others stand still"
        page.wait_for_function("document.getElementById('message').hidden")  # what is done goes by itself
