"""What is declared, what a wheel holds, and that every command works from it outside of a checkout."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from grokphys.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGES = ("physics", "nets", "analysis", "grokphys")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMES = {"imageio_ffmpeg": "imageio-ffmpeg", "PIL": "pillow", "sklearn": "scikit-learn"}
"""Distributions that are not named as what they hold."""
OPTIONAL = [one for extra in PROJECT["optional-dependencies"].values() for one in extra]
BROUGHT = {"joblib": "scikit-learn", "markupsafe": "jinja2", "tornado": "bokeh"}
"""Packages that another one, which is declared, cannot do without."""


def distribution(requirement):
    """Name of what a requirement asks for."""
    return requirement.split(">")[0].split("[")[0].lower()


def test_everything_that_is_imported_is_declared():
    declared = set(map(distribution, PROJECT["dependencies"]))
    optional = set(map(distribution, OPTIONAL))
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [node.module]
                for name in names:
                    top = name.partition(".")[0]
                    if top in PACKAGES or top in sys.stdlib_module_names:
                        continue
                    wanted = BROUGHT.get(top, NAMES.get(top, top)).lower()
                    assert wanted in declared | optional, f"{path} imports {top}"


# -- a wheel ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment outside of the checkout with a wheel of it, beside the libraries of this environment."""
    pytest.importorskip("setuptools")
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    source.mkdir()
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in tracked.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(place)]
    subprocess.run([*pip, "wheel", *options, str(source)], check=True, cwd=place)
    shutil.rmtree(source)
    (wheel,) = place.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    python = place / "env" / "bin" / "python"
    subprocess.run(
        [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)], check=True
    )
    (packages,) = (place / "env").glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return place


SWEEP = """kind = "simulate"
[fixed]
tokens = 7
runs = 2
steps = 5
[grid]
alignment = [0.0, 1.0]
"""
LINES = """
simulate --runs 5 --alignment 2 --out p.h5
train --runs 5 --steps 50 --out n.h5
info example:ding p.h5 n.h5
analyze p.h5 n.h5 example:ding
fit-ode example:ding --directory fit
survival example:ding
compare p.h5 n.h5 --out compare.html
phases --x learning_rate 1e-3 1e-2 --cells 2 2 --levels 0 --seeds 1 --most-seeds 1 --steps 50 --directory ph
animate example:ding --frequency 7 --frames 2 --size 300 --out circle.gif
import x.npy --out x.h5
sweep sweep.toml --directory sweep
reproduce liu-4c ding-2 --budget quick --directory figures
bench particles --budget quick --directory bench
demo --runs 3 --steps 10 --directory demo
arena --tracks survivors --out arena
"""


@pytest.mark.slow
def test_a_wheel_holds_the_packages_and_what_the_readme_names(installed):
    (wheel,) = installed.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert "physics/data/ding_p59_d128_seed0.h5" in names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == set(PACKAGES)
    pages = {name.partition(".data/data/share/doc/grokphys/")[2] for name in names}
    linked = re.findall(r"\]\(([^):#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert set(linked) <= pages


@pytest.mark.slow
def test_every_command_works_from_a_wheel(installed):
    lines = [line.split() for line in LINES.strip().splitlines()]
    assert {line[0] for line in lines} == set(COMMANDS) - {"explore"}, "the explorer is tested below"
    work = installed / "work"
    work.mkdir()
    (work / "sweep.toml").write_text(SWEEP)
    np.save(work / "x.npy", np.random.default_rng(0).standard_normal((3, 5, 2)))
    where = [str(installed / "env/bin/python"), "-c", "import physics; print(physics.__file__)"]
    found = subprocess.run(where, cwd=work, env=clean(), capture_output=True, text=True, check=True).stdout
    assert found.startswith(str(installed)), found
    for line in lines:
        done = subprocess.run(
            [str(installed / "env/bin/grokphys"), *line],
            cwd=work,
            env=clean(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (line, done.stderr[-2000:])


@pytest.mark.slow
def test_the_explorer_starts_from_a_wheel(installed):
    pytest.importorskip("bokeh")
    command = [str(installed / "env/bin/grokphys"), "explore", "example:ding", "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, cwd=installed, env=clean(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert "http" in server.stdout.readline()
    finally:
        server.terminate()
        server.communicate()


def clean():
    """The environment without what leads Python to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
