"""Every console line and Python block of the pages runs, and what the errata name exists.

A comment before a block says what to do with it, where that is not to run it in the default suite:

* ``<!-- test: slow -->``: run it in the slow part; ``<!-- test: slow from here -->``: all blocks that follow.
* ``<!-- test: slow, with OPTIONS -->``: the same with options that make it shorter.
* ``<!-- test: file NAME -->``: it is a file of that name, which later blocks need.
* ``<!-- test: not run, REASON -->``: it cannot run in a test.

The blocks of a page run in their order, in one directory that is empty but for `docs/` and `data/`.
"""

import ast
import inspect
import re
import shlex
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import pytest

from grokphys.cli import main as cli
from grokphys.cli.main import COMMANDS, main
from grokphys.papers.run import recipes

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "data/README.md")] + sorted(
    page for page in DOCS.rglob("*.md") if "made" not in page.parts
)
BLOCK = re.compile(
    r"^<!-- test: (?P<from>slow from here) -->$"
    r"|^(?:<!-- test: (?P<marker>[^\n]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
INLINE = re.compile(r"(?<!`)`(grokphys [^`]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A block of code of a page.

    `options` make its commands shorter, `file` is the name of the file that it is, or "", and `reason` says
    why it does not run, or is "".
    """

    language: str
    text: str
    slow: bool
    options: tuple[str, ...] = ()
    file: str = ""
    reason: str = ""

    @property
    def commands(self):
        """Commands of a console block, one a line."""
        lines = [line for line in self.text.splitlines() if line.startswith("$ ")]
        return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]


def blocks(page):
    """Blocks of a page, in their order."""
    found, slow = [], False
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if match["from"]:
            slow = True
            continue
        said = match["marker"] or ""
        kind, _, rest = said.partition(", ") if not said.startswith("file ") else ("file", "", said[5:])
        assert kind in ("", "slow", "file", "not run"), said
        assert bool(rest) == (kind in ("file", "not run")) or (kind == "slow" and rest.startswith("with "))
        options = tuple(shlex.split(rest.removeprefix("with "))) if kind == "slow" else ()
        file, reason = (rest if kind == word else "" for word in ("file", "not run"))
        found.append(Block(match["language"], match["text"], slow or kind == "slow", options, file, reason))
    return found


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def run_page(page, place, monkeypatch, capsys, *, slow):
    """Run the blocks of a page in a directory; in the default suite those alone that are quick."""
    monkeypatch.chdir(place)
    for name in ("docs", "data"):
        (place / name).symlink_to(ROOT / name)
    names = {}  # the first block of a page runs in a fresh interpreter
    done = 0
    for block in blocks(page):
        if block.file:
            (place / block.file).write_text(block.text, encoding="utf-8")
        if block.reason or block.file or (block.slow and not slow):
            continue
        done += 1
        if block.language == "python":
            exec(compile(block.text, name_of(page), "exec"), names)
            continue
        for program, *arguments in block.commands:
            assert program == "grokphys"
            status = main([*arguments, *block.options])
            assert status == 0, (arguments, capsys.readouterr().err)
    assert done or not slow
    return names


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_runs_or_says_why_not(page):
    text = page.read_text(encoding="utf-8")
    assert len(blocks(page)) == len(re.findall(r"^```\w+$", text, re.MULTILINE)), "a block that is not found"
    markers = re.findall(r"^<!-- test: [^\n]+ -->\n(?:```\w|$)", text, re.MULTILINE)
    assert text.count("<!-- test:") == len(markers)
    for block in blocks(page):
        assert block.language in ("console", "python") or block.reason or block.file, block.text
        if block.language == "python":
            ast.parse(block.text)
        if block.language == "console" and not block.reason:
            assert all(line.startswith("$ grokphys ") for line in block.text.splitlines()), block.text


QUICK = [page for page in PAGES if any(not (b.slow or b.reason or b.file) for b in blocks(page))]
LONG = [page for page in PAGES if any(b.slow for b in blocks(page))]


@pytest.mark.parametrize("page", QUICK, ids=name_of)
def test_quick_blocks_run(page, tmp_path, monkeypatch, capsys):
    run_page(page, tmp_path, monkeypatch, capsys, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", LONG, ids=name_of)
def test_all_blocks_run(page, tmp_path, monkeypatch, capsys):
    names = run_page(page, tmp_path, monkeypatch, capsys, slow=True)
    made = {path.name for path in tmp_path.iterdir()}
    if page == DOCS / "start.md":
        assert {"particles.h5", "networks.h5", "runs.csv", "report.html"} <= made
    if page == ROOT / "README.md":
        assert names["comparison"].shapes.nearest.shape == (100,)
        assert "mine.h5" in made


def test_the_guide_runs_every_command_but_those_that_take_minutes():
    run = (block for page in PAGES for block in blocks(page) if not block.reason)
    used = {words[1] for block in run for words in block.commands}
    assert used >= {*COMMANDS} - {"bench", "demo", "explore"}


# -- commands within the text -------------------------------------------------------------------------------


def inline():
    """Commands within the text of all pages: page, words."""
    for page in PAGES:
        for line in INLINE.findall(page.read_text(encoding="utf-8")):
            if "…" not in line and not re.search(r" [A-Z]{2,}\b", line):  # a placeholder, such as NAME
                yield page, shlex.split(line)[1:]


@pytest.fixture
def parse(monkeypatch, capsys):
    """Let the command line read words, but do nothing."""
    heard = []

    def stub(function):
        @wraps(function)
        def listen(*arguments, **options):
            heard.append(inspect.signature(function).bind(*arguments, **options).arguments)
            return 0

        return listen

    def read(words):
        chosen = {name: stub(COMMANDS[name]) for name in (words[0], "info")}
        monkeypatch.setattr(cli, "COMMANDS", chosen)
        assert main(words) == 0, (words, capsys.readouterr().err)
        return heard.pop()

    return read


def test_commands_within_the_text_are_understood(parse):
    once = {tuple(words): page for page, words in inline()}
    for words, page in once.items():
        if words == ("--version",):
            continue
        assert words[0] in COMMANDS, (name_of(page), words)
        if words[0] == "reproduce":
            end = next(
                (at for at, word in enumerate(words) if word in ("--budget", "--publish", "--redraw")), None
            )
            assert {*words[1:end]} <= {*recipes(), "NAME", "--all", "--list"}, (name_of(page), words)
        elif len(words) > 1:
            parse(list(words))


# -- errata -------------------------------------------------------------------------------------------------

ENTRY = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_erratum_names_a_test_that_exists():
    entries = ENTRY.findall((DOCS / "errata.md").read_text(encoding="utf-8"))
    assert len(entries) >= 20
    for title, text in entries:
        named = TEST.findall(text)
        assert named, f"{title} names no test"
        assert "Shown by `tests/" in text, title
        for file, function in named:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert function in defined, f"{title}: {file} has no {function}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
