"""Commands as processes: closed streams, signals, a full disk, and what a notebook passes on."""

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import physics
from grokphys.cli.main import main

PYTHON = [sys.executable, "-m", "grokphys"]


def run(directory, *words, shell="", **options):
    line = [*PYTHON, *map(str, words)]
    if shell:
        line = ["bash", "-c", f'"$@" {shell}', "bash", *line]
    return subprocess.run(
        line, cwd=directory, capture_output=True, text=True, timeout=120, check=False, **options
    )


def test_commands_work_without_their_streams(tmp_path):
    run(tmp_path, "simulate", "--tokens", 5, "--steps", 3, "--out", "p.h5", shell="<&- >&- 2>&-")
    assert physics.load(tmp_path / "p.h5").frames == 4
    done = run(tmp_path, "analyze", "none.h5", shell="2>&-")
    assert (done.returncode, done.stdout) == (1, ""), "errors do not go to the output"


def test_a_bar_without_stderr_is_none(python):
    code = """
import sys
sys.stderr = None
import nets, physics
physics.simulate(physics.ParticleSystem(5), steps=2, progress=True)
nets.train(nets.ConstantAttention(5), steps=2, progress=True)
"""
    assert python(code).stdout == ""


def test_the_backend_of_a_notebook_is_not_used(tmp_path):
    backend = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    done = run(tmp_path, "animate", "example:ding", "--out", "a.png", env=os.environ | backend)
    assert (done.returncode, done.stderr) == (0, "")


FULL = """
import pathlib, resource
from grokphys.cli.main import main
lines = (
    "survival example:ding --table {}/s.csv",
    "fit-ode example:ding --last 300 --directory {}/fit",
    "animate example:ding --out {}/a.png",
)
for place, limit in (("there", -1), ("full", 3000)):  # first, kernels are compiled and cached
    pathlib.Path(place).mkdir()
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1))
    print([main(line.format(place).split()) for line in lines])
"""


def test_a_full_disk_is_one_error(tmp_path, python):
    done = python(FULL, cwd=tmp_path)
    assert [line for line in done.stdout.splitlines() if line.startswith("[")] == ["[0, 0, 0]", "[1, 1, 1]"]
    errors = done.stderr.splitlines()
    assert len(errors) == 3
    assert all(line.startswith("grokphys: error: cannot write ") for line in errors)
    assert not [path for path in (tmp_path / "full").rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def undisturbed():
    return physics.simulate(physics.ParticleSystem(31), runs=4, steps=1500).positions


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_recording_that_can_be_resumed(tmp_path, number, status, monkeypatch, undisturbed):
    words = ["simulate", "--tokens", "31", "--runs", "4", "--steps", "1500", "--out", "p.h5"]
    process = subprocess.Popen([*PYTHON, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    partial = tmp_path / "p.h5.partial"
    while process.poll() is None and not (partial.exists() and partial.stat().st_size > 100_000):
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    assert len(said.splitlines()) == 1
    assert "Traceback" not in said
    begun = physics.load(partial)
    assert 0 < begun.frames < 1501
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--resume"]) == 0
    np.testing.assert_array_equal(physics.load(tmp_path / "p.h5").positions, undisturbed)


def test_a_reader_that_closes_the_output_ends_the_command(tmp_path):
    done = run(tmp_path, "train", "--help", shell="| head -1; exit ${PIPESTATUS[0]}")
    assert done.returncode in (0, 141)
    assert done.stderr == ""


def test_the_version_leaves_no_lock_in_the_repository_on_a_full_disk(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    (tmp_path / "code.py").write_text("a = 1\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    os.utime(tmp_path / "code.py", (0, 0))  # so that git would refresh its index
    code = "import physics.trajectory.provenance as p, sys; p.__file__ = sys.argv[1]; print(p.code_version())"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))

    for content, ending in (("a = 1\n", ""), ("a = 2\n", "-dirty")):
        line = [sys.executable, "-c", code, tmp_path / "code.py"]
        done = subprocess.run(line, preexec_fn=limit, capture_output=True, text=True, check=True)
        assert "+g" in done.stdout
        assert done.stdout.strip().endswith("-dirty") == bool(ending), content
        assert not (tmp_path / ".git" / "index.lock").exists()
        (tmp_path / "code.py").write_text("a = 2\n")
