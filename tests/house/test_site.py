"""The site: every page is reached, every public name has its place, links lead somewhere, and it builds."""

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recipe_checks import published

from grokphys.papers.recipe import RECIPES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCES = [page for kind in ("md", "rst") for page in DOCS.rglob(f"*.{kind}") if "made" not in page.parts]
PAGES = [page for page in SOURCES if not {"templates", "examples"} & {*page.relative_to(DOCS).parts}]
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text(path):
    return path.read_text(encoding="utf-8")


def children(page):
    """Pages that the tables of contents of a page name."""
    entries = []
    for block in TOCTREE.findall(text(page)):
        lines = [line.strip() for line in block.splitlines() if line.strip() and not line.startswith(":")]
        for line in lines:
            named = re.search(r"<(.+)>$", line)
            entries += [named[1] if named else line]
        if ":glob:" in block:
            entries += [one.with_suffix("").name for e in lines for one in page.parent.glob(f"{e}.md")]
    return {(page.parent / f"{entry}{end}").resolve() for entry in entries for end in (".md", ".rst")}


def test_every_page_is_reached_from_the_first():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page.exists() and page not in reached:
            reached.add(page)
            waiting += children(page)
    assert {*PAGES} - reached == set()


@pytest.mark.parametrize("package", ["physics", "nets", "analysis", "grokphys"])
def test_every_public_name_has_its_place_in_the_interface(package):
    page = text(DOCS / "api" / f"{package}.rst")
    listed = re.findall(r"^   (\w+)$", page, re.MULTILINE)
    module = importlib.import_module(package)
    names = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
    assert names <= {*listed}


def test_terms_that_pages_link_are_in_the_glossary():
    terms = re.findall(r"^## (.+)\n\n.+$", text(DOCS / "glossary.md"), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", term.lower()).replace(" ", "-") for term in terms}
    linked = re.findall(r"\]\((?:\.\./)?glossary\.md#([^)]+)\)", "".join(map(text, PAGES)))
    linked += re.findall(r"\]\(#([^)]+)\)", text(DOCS / "glossary.md"))
    assert set(linked) <= anchors


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built without a warning from a copy of the tree."""
    pytest.importorskip("sphinx")
    place = tmp_path_factory.mktemp("site")
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", "html"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return place / "html"


@pytest.mark.slow
def test_the_site_executes_its_examples_and_its_links_lead_somewhere(site):
    for path in (DOCS / "examples").glob("*.py"):
        assert list((site / "_images").glob(f"sphx_glr_{path.stem}_001*.png")), path.name
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"'](https?:)?//", text(page))
        assert not loaded, f"{page} fetches something"
        for target, anchor in re.findall(r'href="([^":#?]*)(?:#([^"]*))?"', text(page)):
            if "://" not in target:
                there = (page.parent / target).resolve() if target else page
                assert there.exists(), (page.name, target)
                if anchor and there.suffix == ".html":
                    live = there.parent.name == "live"  # whose presets are made by its program
                    named = f'"{anchor}"' if live else f'id="{anchor}"'
                    files = there.parent.glob("*.js") if live else [there]
                    assert any(named in text(file) for file in files), (page.name, target, anchor)


@pytest.mark.slow
def test_the_scoreboard_shows_the_claims_that_are_asked_for(site, browser):
    """On a telephone, from a file: those of a paper and a verdict, and the one that an address names."""
    address = (site / "scoreboard.html").as_uri()
    page, complaints = browser.new_page(viewport={"width": 400, "height": 800}), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: request.url.startswith("file:") or complaints.append(request.url))
    page.goto(f"{address}#ding-7.1")
    named = page.locator("details.claim:has([id='ding-7.1'])")
    assert named.get_attribute("open") is not None
    assert 0 < named.bounding_box()["y"] < 800
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    every = page.locator("details.claim:visible").count()
    assert page.locator("#choose-claims select").count() == 2
    for label, value in (("Paper", "Ding"), ("Verdict", "disagrees")):
        page.get_by_label(label).select_option(value)
    ids = page.locator("summary > span.disagrees:visible").evaluate_all("all => all.map(one => one.id)")
    failed = [
        f"{name}.{number}"
        for name, stored in published().items()
        for number, claim in enumerate(stored.about["claims"], 1)
        if name.startswith("ding") and claim["verdict"] == "disagrees" and RECIPES[name].paper == "Ding"
    ]
    assert sorted(ids) == sorted(failed)
    assert page.locator("#choose-claims output").inner_text() == f"{len(failed)} claims"
    assert page.locator("table.matrix tr:has(td):visible").count() == len({one.split(".")[0] for one in ids})
    assert complaints == []
    page.close()
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(address)
    assert plain.locator("details.claim:visible").count() == every
    plain.context.close()
