"""Bad command lines, made by a seed: each ends in one sentence, and nothing is written."""

import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from bad_commands import complaint, make_world, sample, snapshot

from grokphys.cli.main import main

ROOM = 4 * 2**30
"""Memory that a bad command line may ask for before it is refused: the machine is not ours alone."""


LOADED = (
    "bench.registry",
    "report.comparing",
    "report.demo",
    "report.laws",
    "report.survival",
    "explorer.films.export",
    "phases",
    "papers.catalogue",
)
"""Modules that commands load when they are called: loaded before, none can be cut short by the alarm."""
HANGS_AFTER = 120
"""Seconds, many more than any bad command line takes."""


class Hang(BaseException):
    """A command line did not end."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    for name in LOADED:
        importlib.import_module(f"grokphys.{name}")
    root = make_world(tmp_path_factory.mktemp("bad") / "world")
    yield root
    (root / "closed").chmod(0o700)


@pytest.fixture
def little_memory():
    """Let no allocation be so large that the system would end the process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:  # noqa: PTH123
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def here(world, bad, monkeypatch):
    """Go where a command line is to run, and return the directory."""
    place = world / bad.where
    if bad.where == "gone":
        place.mkdir()
        monkeypatch.chdir(place)
        place.rmdir()
    else:
        monkeypatch.chdir(place)
    return place


def judged(world, bad, capsys, monkeypatch):
    """Run a command line in this process, and return what is wrong with how it ended."""

    def ring(*_):
        raise Hang

    before = snapshot(world)
    here(world, bad, monkeypatch)
    old = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANGS_AFTER)
    try:
        status = main(list(bad.words))
    except Hang:
        status = "hang"
    except SystemExit as stop:
        status = stop.code
    except Exception as error:
        status = f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
        os.chdir(world)
    return complaint(status, capsys.readouterr().err, before, cleaned(world, before))


def cleaned(world, before):
    """What a command line has left; it is then removed, so that the next one finds the same world."""
    after = snapshot(world)
    for name in sorted({*after} - {*before}):
        path = world / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return after


def assert_none(found):
    assert not found, f"{len(found)} are taken amiss:\n" + "\n".join(f"  {b}: {why}" for b, why in found)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.filterwarnings("default")
def test_a_few_bad_command_lines(world, capsys, monkeypatch):
    bad = sample(world, 150, seed=0)
    assert_none([(one, why) for one in bad if (why := judged(world, one, capsys, monkeypatch))])


@pytest.mark.slow
@pytest.mark.usefixtures("little_memory")
@pytest.mark.filterwarnings("default")
def test_all_bad_command_lines(world, capsys, monkeypatch):
    bad = sample(world, 10**6, seed=1)
    assert len(bad) >= 600
    assert_none([(one, why) for one in bad if (why := judged(world, one, capsys, monkeypatch))])


def in_a_process(world, bad):
    """Run a command line as a process of its own, and return what is wrong with how it ended."""
    before = snapshot(world)
    code = "import os, sys; from grokphys.cli.main import main\n"
    code += "if sys.argv.pop(1) == 'gone': os.mkdir('x'); os.chdir('x'); os.rmdir('../x')\n"
    code += "sys.exit(main())"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, bad.where, *bad.words],
            cwd=world / "here",
            capture_output=True,
            text=True,
            timeout=HANGS_AFTER,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "hang"
    return complaint(done.returncode, done.stderr, before, cleaned(world, before))


def real(world, count, seed):
    """Bad command lines that a process can be given: no word of one holds a zero byte."""
    fit = [bad for bad in sample(world, 10**6, seed) if not any("\0" in word for word in bad.words)]
    return fit[:count]


def test_bad_command_lines_of_a_real_process(world):
    assert_none([(one, why) for one in real(world, 4, 2) if (why := in_a_process(world, one))])


@pytest.mark.slow
def test_more_bad_command_lines_of_a_real_process(world):
    assert_none([(one, why) for one in real(world, 60, 3) if (why := in_a_process(world, one))])
