"""The project's own files: integration, hooks, citation, issue forms, and a map that is true."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PINNED = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
)
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_hooks_and_constraints_name_the_same_versions():
    repositories = {one["repo"].rpartition("/")[2]: one for one in read(".pre-commit-config.yaml")["repos"]}
    assert repositories["ruff-pre-commit"]["rev"] == f"v{PINNED['ruff']}"
    hooks = {hook["id"]: hook for one in repositories.values() for hook in one["hooks"]}
    assert set(hooks) == {"ruff-check", "ruff-format", "mypy", "import-linter"}
    assert hooks["mypy"]["name"] == f"mypy {PINNED['mypy']}"
    assert hooks["mypy"]["entry"] == ".venv/bin/mypy"


@pytest.mark.parametrize("tool", ["ruff", "mypy"])
def test_the_environment_has_the_pinned_tools(tool):
    assert version(tool) == PINNED[tool]


def test_continuous_integration_runs_what_everyone_runs():
    flow = read(".github/workflows/ci.yml")
    assert set(flow[True]) == {"push", "pull_request"}  # YAML 1.1 reads the key `on` as a truth value
    steps = flow["jobs"]["test"]["steps"]
    assert steps[-1] == {"run": ".ci/run"}
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={steps[1]['with']['python-version']}"


def test_the_citation_is_of_this_version_and_names_the_three_papers():
    citation = read("CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"].lower(), citation["version"]) == (project["name"], project["version"])
    assert citation["license"] == project["license"]
    assert citation["authors"] == [{"name": "GrokPhys contributors"}]
    papers = {paper["authors"][0]["family-names"]: paper for paper in citation["references"]}
    assert set(papers) == {"Musat", "Ding", "Liu"}
    for paper in papers.values():
        number = re.fullmatch(r"https://arxiv.org/abs/(\d{4}\.\d{5})", paper["url"])
        assert paper["identifiers"] == [{"type": "other", "value": f"arXiv:{number[1]}"}]


@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.stem != "config"], ids=lambda form: form.stem
)
def test_issue_forms_ask_what_is_needed(form):
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert content["name"]
    assert content["description"]
    names = [field["id"] for field in content["body"]]
    assert len(set(names)) == len(names) >= 3
    assert any(field.get("validations", {}).get("required") for field in content["body"])


def test_there_is_a_form_for_each_kind_of_issue():
    assert [form.stem for form in FORMS] == ["bug", "config", "feature", "paper"]


def test_every_place_that_contributing_names_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Mutants")[0]
    places = set(
        re.findall(r"`((?:physics|nets|analysis|grokphys|tests|docs|data|benchmarks)/[\w./]*)`", text)
    )
    assert len(places) > 40
    for place in places:
        assert (ROOT / place).exists(), place


def test_every_package_of_the_house_stands_in_the_map():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w/]+)/` \|", text, re.MULTILINE))
    for house in ("physics", "nets", "analysis", "grokphys"):
        found = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / house).glob("*/__init__.py")}
        assert {house, *found} <= rows
