"""The tutorial and the README run, and what the errata name exists."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from experiments.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text):
    """Language and text of the code blocks of a page."""
    return BLOCK.findall(text)


def tutorial():
    """Code blocks of the tutorial."""
    return blocks((DOCS / "tutorial.md").read_text(encoding="utf-8"))


def commands(text):
    """Commands of a console block, one a line."""
    return [shlex.split(line.removeprefix("$ ")) for line in text.splitlines() if line.startswith("$ ")]


def test_the_tutorial_has_blocks_of_all_kinds():
    found = tutorial()
    assert {language for language, _ in found} == {"sh", "console", "python"}
    used = {words[1] for language, text in found if language == "console" for words in commands(text)}
    assert {"simulate", "train", "analyze", "fit-ode", "compare", "survival", "import", "reproduce"} <= used
    for language, text in found:
        if language == "console":
            assert all(line.startswith("$ grokphys ") for line in text.splitlines()), text
        if language == "python":
            ast.parse(text)


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, text in tutorial():
        if language == "python":
            exec(compile(text, "docs/tutorial.md", "exec"), names)
        elif language == "console":
            for program, *arguments in commands(text):
                assert program == "grokphys"
                status = main(arguments)
                assert status == 0, (arguments, capsys.readouterr().err)
    made = {path.name for path in tmp_path.iterdir()}
    assert {
        "particles.h5",
        "networks.h5",
        "runs.csv",
        "report.html",
        "mine.h5",
        "figures",
    } <= made


@pytest.mark.slow
def test_the_readme_s_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")
    names = {}
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## From Python")[1].split("\n## ")[0]
    for language, text in blocks(section):
        assert language == "python"
        exec(compile(text, "README.md", "exec"), names)
    assert names["comparison"].shapes.nearest.shape == (100,)
    assert names["sets"].shape[0] == 10_000
    assert (tmp_path / "networks.h5").is_file()
    assert (tmp_path / "sweep.h5").is_file()


# -- errata -------------------------------------------------------------------------------------------------

ENTRY = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`(tests/\w+\.py)::(\w+)`")


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


@pytest.mark.parametrize("page", ["tutorial", "errata", "scoreboard", "gallery"])
def test_links_lead_somewhere(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (DOCS / target).exists(), target
