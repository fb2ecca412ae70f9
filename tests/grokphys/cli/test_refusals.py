"""Command lines that are refused: the status, the name that the message must hold, and nothing is written."""

import os
import re

import numpy as np
import pytest

import nets
import physics
from grokphys.cli.main import COMMANDS, main

HUGE = str(10**22)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Good files, and every kind of what is no good file."""
    root = tmp_path_factory.mktemp("world")
    physics.simulate(physics.ParticleSystem(5), runs=2, steps=6, out=root / "good.h5")
    nets.train(nets.ConstantAttention(5), runs=2, steps=6, record=1, out=root / "net.h5")
    np.save(root / "good.npy", np.random.default_rng(0).standard_normal((4, 5, 2)))
    (root / "good.toml").write_text('kind = "simulate"\n[fixed]\ntokens = 5\nsteps = 2\n')
    (root / "wrong.toml").write_text('kind = "simulate"\n[fixed]\ntokenz = 5\n')
    (root / "broken.toml").write_text("kind = [")
    for name in ("text.h5", "text.npy", "exists", "text.npz"):
        (root / name).write_text("precious")
    (root / "empty.h5").touch()
    (root / "cut.h5").write_bytes((root / "good.h5").read_bytes()[:3000])
    for ending in ("h5", "csv", "html", "png"):
        (root / f"directory.{ending}").mkdir()
    os.mkfifo(root / "fifo.h5")
    (root / "loop.h5").symlink_to(root / "loop.h5")
    (root / "dangling.h5").symlink_to(root / "none.h5")
    return root


def listing(root):
    return {str(path): path.lstat().st_size for path in root.rglob("*")}


SMALL = "--tokens 5 --steps 2"
REFUSED = [
    # options of the parser
    ("simulate --tokenz 5", 2, "--tokens"),
    ("simulate --runs many", 2, "--runs"),
    ("simulate --group None", 2, "--group"),
    ("nothing", 2, "simulate"),
    ("compare good.h5", 2, "second"),
    ("animate good.h5", 2, "--out"),
    ("import good.npy --out t.h5 --steps x", 2, "--steps must be numbers"),
    # values
    ("simulate --tokens 2", 2, "--tokens must be at least 3, got 2"),
    ("simulate --step-size nan", 2, "--step-size"),
    (f"simulate --tokens {HUGE}", 2, "tokens"),
    ("simulate --runs 10000000000", 2, "GiB"),
    ("simulate --tokens 1000000000000 --steps 1", 2, ""),
    (f"simulate {SMALL} --step-size 1e308", 1, "overflow"),
    ("train --resume", 2, "out"),
    ("train --model nothing", 2, "embedding-mlp"),
    ("train --hidden 3 4", 2, "hidden"),
    ("train --device cuda --engine fused", 2, "cuda"),
    ("train --record never", 2, "record"),
    ("train --model group-decoder --group S99", 2, "99"),
    (f"train --model group-decoder --group Z{HUGE}", 2, "group"),
    ("train --model image-mlp --data none.npz", 1, "none.npz"),
    (f"train {SMALL} --stop-at-thresholds", 2, "threshold"),
    (f"train {SMALL} --threshold train_accuracy=nan", 2, "threshold"),
    (f"train {SMALL} --threshold train_accuracy=0.5 train_accuracy=0.9", 2, "train_accuracy"),
    (f"train {SMALL} --learning-rate 0.1 0.2 --runs 3", 2, "--learning-rate"),
    ("fit-ode good.h5 --alpha nothing", 2, "alpha"),
    ("fit-ode good.h5 --first 5 --last 2", 2, "--last"),
    ("fit-ode good.h5 --resamples 20", 2, "directory"),
    ("fit-ode good.h5 --table fit/coefficients.csv --directory fit --last 6", 2, "table"),
    ("fit-ode good.h5 --first 6", 1, "2 frames"),
    ("survival good.h5 --at 0", 2, "--at"),
    ("survival good.h5 --bins 0", 2, "--bins"),
    ("compare good.h5 net.h5 --align nothing --out r.html", 2, "align"),
    ("compare good.h5 net.h5 --out r.txt", 2, ".html"),
    ("phases --x weight_decay 0 1 --y weight_decay 0 1", 2, "weight_decay"),
    ("phases --x nothing 0 1", 2, "nothing"),
    ("phases --options nothing=1", 2, "nothing"),
    ("phases --options hidden=4 hidden=8", 2, "hidden"),
    ("phases --options learning_rate=1", 2, "learning_rate"),
    ("phases --most-seeds 1 --seeds 2", 2, "--most-seeds"),
    ("phases --x tokens 5 6 --options tokens=8", 2, "tokens"),
    ("phases --validation-accuracy nan", 2, "--validation-accuracy"),
    ("animate good.h5 --out t.jpg", 1, ".png"),
    ("animate good.h5 --out t.png --view particles --frequency 1", 2, "frequency"),
    ("animate good.h5 --out t.png --frequency 99", 2, "frequency"),
    ("animate good.h5 --out t.gif --fps 1e300", 2, "fps"),
    ("animate good.h5 --out t.png --run 7", 2, "run"),
    ("import good.npy --out t.h5 --array nothing", 2, "--array"),
    ("import good.npy --out t.h5 --step-key nothing", 2, "--step-key"),
    ("import good.npy --out t.h5 --modulus 2", 2, "modulus"),
    ("import good.npy --out t.h5 --transpose --no-transpose", 2, "--transpose"),
    ("import net.h5 --out t.h5", 2, "net.h5"),
    ("sweep wrong.toml", 2, "tokenz"),
    ("sweep broken.toml", 1, "broken.toml"),
    ("sweep good.toml --shard 4/3", 2, "shard must be i/n with i from 1 to n, such as 3/16"),
    ("sweep good.toml --workers 0", 2, "workers"),
    ("sweep good.toml --workers 2 --scheduler tcp://a:1", 2, "workers of its own"),
    ("reproduce nothing", 2, "musat-table1"),
    ("reproduce liu-17 --all", 2, "--all"),
    ("reproduce", 2, "--all"),
    ("reproduce liu-17 --pieces here", 2, "pieces"),
    ("reproduce liu-17 --other-seeds -1", 2, "other-seeds"),
    ("bench nothing", 2, "particles"),
    ("explore --no-browser --port 70000", 2, "port"),
    ("demo --runs 0", 2, "--runs"),
    # files that are read
    ("info", 2, "files"),
    ("info none.h5", 1, "none.h5"),
    ("analyze nothing_*.h5", 2, "nothing_*.h5"),
    ("analyze text.h5", 1, "text.h5 is not an HDF5 file"),
    ("analyze /dev/null", 1, "/dev/null"),
    ("survival loop.h5", 1, "loop.h5"),
    ("compare none.h5 good.h5 --out r.html", 1, "none.h5"),
    ("import text.npy --out t.h5", 1, "text.npy"),
    ("sweep none.toml", 1, "none.toml"),
    ("info good.h5 net.h5 --follow", 2, "one file"),
    # files that are written
    (f"simulate {SMALL} --out exists", 1, "exists; choose another name or pass"),
    ("analyze good.h5 --table t.txt", 1, ".csv or .parquet"),
    ("survival good.h5 --table none/t.csv", 1, "none"),
    ("import good.npy --out exists", 1, "exists; choose another name or pass"),
    ("import good.npy --out fifo.h5 --overwrite", 1, "fifo.h5"),
    (f"simulate {SMALL} --out fifo.h5 --overwrite", 1, "fifo.h5"),
    (f"simulate {SMALL} --out none/t.h5", 1, "none"),
    ("demo --directory exists --runs 1 --steps 2", 1, "exists"),
    ("fit-ode good.h5 --last 6 --directory exists", 1, "exists"),
]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("line", "status", "name"), REFUSED, ids=[line for line, _, _ in REFUSED])
def test_a_command_line_is_refused(world, line, status, name, capsys, monkeypatch):
    monkeypatch.chdir(world)
    before = listing(world)
    assert main(line.split()) == status
    said = capsys.readouterr().err
    assert name in said
    assert "Traceback" not in said
    lines = [text for text in said.splitlines() if not text.startswith("grokphys: warning: ")]
    by_parser = "--help" in said  # in its box
    assert by_parser or (len(lines) == 1 and lines[0].startswith("grokphys: "))
    partial = {path for path in listing(world) if path.endswith(".partial")}  # of what overflowed
    assert listing(world).keys() - partial == before.keys()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_has_help(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert f"usage: grokphys {command}" in shown
    text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", shown).split())
    without = re.findall(r"(--[a-z-]+)(?: [A-Z{][^ ]*)?(?:, --no-[a-z-]+)? \(default", text)
    assert not without


def test_the_working_directory_may_be_gone(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["simulate", *SMALL.split(), "--out", "t.h5"]) in (1, 2)
    assert capsys.readouterr().err.startswith("grokphys: error: ")
