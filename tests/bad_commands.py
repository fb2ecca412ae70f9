"""Command lines that must be refused: made from the signatures of the commands, by a seed.

Each is a small good command line with one thing wrong. What is expected of every one: status 1 or 2, one
sentence on stderr, nothing written, and an end within seconds.
"""

import inspect
import os
import random
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

import nets
import physics
from grokphys.cli.main import COMMANDS
from physics.particles.system import ParticleSystem

HUGE = str(10**22)
MAKES_DIRECTORIES = ("directory", "scoreboard", "gallery")
PATHS = ("out", "table", "directory", "scoreboard", "gallery")
"""Options that name what is written."""
ENDINGS = {"animate": ".png", "compare": ".html", "scoreboard": ".md", "table": ".csv"}
SIGNED = ("attraction", "repulsion", "alignment")
"""Numbers that may be negative."""
ZERO_TOO_SMALL = (
    "steps", "runs", "record_every", "tokens", "dim", "step_size", "modulus", "relative_tolerance",
    "batch_size", "train_fraction", "depth", "heads", "width", "layer_scale", "embedding_scale", "track",
    "max_iter", "last", "factor", "bins", "delta", "cells", "seeds", "most_seeds", "delay", "frames", "fps",
    "size", "workers", "epochs", "hidden", "scale", "at",
)  # fmt: skip
"""Numbers that must be greater than 0."""
FRACTIONS = {
    "l1_ratio": "1.5",
    "train_fraction": "1",
    "certain": "1.5",
    "dropout": "1",
    "train_accuracy": "7",
}
LARGE = (
    "tokens",
    "dim",
    "runs",
    "steps",
    "hidden",
    "first_run",
    "port",
    "frequency",
    "run",
    "size",
    "epochs",
    "at",
)
"""Whole numbers of which 10^22 are too many, to hold or to count."""


@dataclass(frozen=True)
class Bad:
    """A command line that must be refused."""

    words: tuple[str, ...]
    where: str = "here"
    """Directory that it runs in, below the world; "gone" has been deleted."""

    def __str__(self) -> str:
        return " ".join(word if len(word) < 60 else f"{word[:30]}…" for word in self.words)


def make_world(root: Path) -> Path:
    """Make good files, and every kind of what is no good file."""
    root.mkdir()
    (root / "here").mkdir()
    physics.simulate(physics.ParticleSystem(5), runs=2, steps=6, out=root / "good.h5")
    nets.train(nets.ConstantAttention(5), runs=2, steps=6, record=1, out=root / "net.h5")
    np.save(root / "good.npy", np.random.default_rng(0).standard_normal((4, 5, 2)))
    (root / "good.toml").write_text('kind = "simulate"\n[fixed]\ntokens = 5\nsteps = 2\n')
    (root / "wrong.toml").write_text('kind = "simulate"\n[fixed]\ntokenz = 5\n')
    (root / "huge.toml").write_text(f'kind = "simulate"\n[fixed]\nruns = {HUGE}\n')
    (root / "broken.toml").write_text("kind = [")
    for name in ("text.h5", "text.npy", "text.npz", "text.toml", "text.json"):
        (root / name).write_text("nothing = nothing")
    for name in ("empty.h5", "empty.npy", "empty.toml"):
        (root / name).touch()
    (root / "cut.h5").write_bytes((root / "good.h5").read_bytes()[:3000])
    (root / "deep.json").write_text("[" * 100_000)
    (root / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for ending in (".h5", ".csv", ".html", ".png"):
        (root / f"directory{ending}").mkdir()
    (root / "exists").write_text("precious")
    os.mkfifo(root / "fifo.h5")
    (root / "loop.h5").symlink_to(root / "loop.h5")
    (root / "dangling.h5").symlink_to(root / "none.h5")
    closed = root / "closed"
    closed.mkdir()
    (closed / "in.h5").touch()
    closed.chmod(0)
    unreadable = root / "unreadable.h5"
    unreadable.write_bytes((root / "good.h5").read_bytes())
    unreadable.chmod(0)
    return root


def snapshot(root: Path) -> dict[str, tuple[int, int]]:
    """Every file below a directory, with its size and time of change."""
    return {
        str(path.relative_to(root)): (found.st_size, found.st_mtime_ns if not path.is_dir() else 0)
        for path in root.rglob("*")
        for found in [path.lstat()]
    }


def base(command: str, world: Path) -> dict[str, list[str]]:
    """Small good options of a command; "" holds what has no name."""
    good, new = str(world / "good.h5"), str(world / "here" / "new")
    simulate = {"steps": ["2"], "tokens": ["5"]}
    return {
        "simulate": simulate,
        "train": {**simulate, "runs": ["1"]},
        "analyze": {"": [good]},
        "fit-ode": {"": [good], "penalty": ["least-squares"], "last": ["6"]},
        "survival": {"": [good], "at": ["1"]},
        "compare": {"": [good, good], "out": [f"{new}.html"]},
        "phases": {
            "x": ["learning_rate", "0.001", "0.01"],
            "y": ["weight_decay", "0", "1"],
            "cells": ["1", "1"],
            "seeds": ["1"],
            "most_seeds": ["1"],
            "levels": ["0"],
            "steps": ["2"],
            "delay": ["1"],
            "options": ["hidden=4"],
        },
        "animate": {"": [good], "out": [f"{new}.png"]},
        "import": {"": [str(world / "good.npy")], "out": [f"{new}.h5"]},
        "info": {"": [good]},
        "sweep": {"": [str(world / "good.toml")]},
        "reproduce": {"": ["ding-2"], "budget": ["quick"]},
        "bench": {"": ["theory"], "budget": ["quick"]},
        "warm": {},
        "explore": {"": [], "browser": ["False"]},
        "demo": {"runs": ["1"], "epochs": ["2"]},
    }[command]


def line(command: str, options: dict[str, list[str]]) -> tuple[str, ...]:
    """The words of a command line."""
    words = [command, *options.get("", [])]
    for name, values in options.items():
        if name == "browser" and values == ["False"]:
            words.append("--no-browser")
        elif name:
            words += [f"--{name.rstrip('_').replace('_', '-')}", *values]
    return tuple(words)


def options_of(command: str) -> dict[str, Any]:
    """Every option of a command with its type."""
    found: dict[str, Any] = {}
    hints = get_type_hints(COMMANDS[command], include_extras=True)
    for name in inspect.signature(COMMANDS[command]).parameters:
        if name == "system":
            fields = get_type_hints(ParticleSystem)
            found |= {field: fields[field] for field in inspect.signature(ParticleSystem).parameters}
        elif "Positional" not in str(hints[name]):
            found[name] = hints[name]
    return {name: kind for name, kind in found.items() if kind is not Any}


def plain_type(kind: Any) -> Any:
    """A type without what is said about it, and without None."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        kind = plain_type(next(one for one in get_args(kind) if one is not type(None)))
    return kind


def bad_values(command: str, name: str, kind: Any, world: Path) -> Iterator[list[str]]:
    """Values that an option must refuse."""
    kind = plain_type(kind)
    if name in PATHS:
        yield from ([path] for path in bad_targets(command, name, world))
    elif get_origin(kind) is Literal:
        yield from (["wrong"], [""], ["AUTO"], [])
    elif get_origin(kind) is tuple:
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            if plain_type(inner[0]) is str:
                yield from (["wrong"], ["=", "="], [""]) if name != "options" else (["wrong"], ["=1"], [""])
            else:
                yield from (one for one in bad_values(command, name, inner[0], world) if one)
        else:
            yield from (["1"], ["1", "2", "3", "4"], ["a", "b"], [])
            if inner[0] is int:
                yield from (["0", "1"], ["-1", "1"], [HUGE, "1"])
            if inner == (str, float, float):
                yield from (["nothing", "0", "1"], ["weight_decay", "1", "1"], ["weight_decay", "nan", "1"])
                yield from (["weight_decay", "0", "inf"], ["learning_rate", "-1", "1"], ["model", "0", "1"])
    elif kind is int:
        yield from (["x"], ["1.5"], [""], ["nan"], ["1e3"], ["9" * 5000], ["-1"], [])
        if name in ZERO_TOO_SMALL:
            yield ["0"]
        if name in LARGE:
            yield [HUGE]
    elif kind is float:
        yield from (["x"], [""], ["nan"], ["inf"], ["-inf"], ["1e999"], ["1", "x"], [])
        if name not in SIGNED:
            yield ["-1"]
        if name in ZERO_TOO_SMALL:
            yield ["0"]
        if name in FRACTIONS:
            yield [FRACTIONS[name]]
    elif kind is bool:
        yield from (["maybe"], ["1"])
    else:
        yield from ([""], [])
        if name not in ("host",):
            yield ["no such\nthing"]


def bad_targets(command: str, name: str, world: Path) -> Iterator[str]:
    """Paths that nothing can be written to."""
    ending = ENDINGS.get(name, ENDINGS.get(command, ".h5"))
    yield from ("", str(world / "exists" / f"t{ending}"), str(world / ("n" * 300 + ending)))
    yield from (
        f"/proc/nothing/t{ending}",
        f"/sys/t{ending}",
        "/dev/null",
        "/dev/full",
        str(world / "fifo.h5"),
    )
    yield from (f"/dev/null/t{ending}", str(world / "loop.h5" / f"t{ending}"), str(world / "exists"))
    yield str(world / ("d" * 90 + "/") / ("e" * 5000))
    if name in ("out", "table") and command != "compare":
        yield str(world / "none" / f"t{ending}")
    if name not in MAKES_DIRECTORIES:
        yield from (str(world / f"directory{ending}"), str(world))
    if os.getuid():
        yield str(world / "closed" / f"t{ending}")


def bad_sources(command: str, world: Path) -> Iterator[str]:
    """What cannot be read as the file that a command wants."""
    kind = {"import": ".npy", "sweep": ".toml"}.get(command, ".h5")
    yield from (
        "",
        "none.h5",
        str(world / f"none{kind}"),
        str(world / f"empty{kind}"),
        str(world / f"text{kind}"),
    )
    yield from (str(world / "directory.h5"), str(world / "fifo.h5"), "/dev/null", "/dev/zero", "/dev/full")
    yield from (str(world / "loop.h5"), str(world / "dangling.h5"), str(world / ("n" * 300)), "*.none", "[")
    yield from (str(world / "cut.h5"), str(world / "none*" / "x"), "e" * 5000, str(world / "exists" / "x"))
    if command == "sweep":
        yield from (str(world / name) for name in ("wrong.toml", "huge.toml", "broken.toml", "bytes.toml"))
        yield from (str(world / name) for name in ("deep.json", "text.json"))
    if os.getuid():
        yield from (str(world / "unreadable.h5"), str(world / "closed" / "in.h5"))


def contradictions(world: Path) -> Iterator[tuple[str, ...]]:
    """Options that do not go together, and those that one model or law does not have."""
    good, net = str(world / "good.h5"), str(world / "net.h5")
    yield ("simulate", "--resume")
    yield ("simulate", "--tokens", "1000000000000", "--steps", "1")
    yield ("simulate", "--tokens", "5", "--steps", "10000000000000")
    yield ("simulate", "--tokens", "5", "--runs", "10000000000000")
    yield ("simulate", "--dim", "10000000000000", "--steps", "1")
    yield ("simulate", "--tokens", "5", "--steps", "2", "--step-size", "1e308")
    yield ("simulate", "--tokens", "5", "--steps", "2", "--attraction", "1e308", "--no-normalise")
    yield ("simulate", "--tokens", "5", "--steps", "2", "--integrator", "adaptive", "--step-size", "1e300")
    yield ("train", "--resume")
    for command in ("simulate", "train"):
        yield (command, "--tokens", "5", "--steps", "2", "--out", str(world / "fifo.h5"), "--overwrite")
    yield ("import", str(world / "good.npy"), "--out", str(world / "fifo.h5"), "--overwrite")
    yield ("analyze", good, "--table", str(world / "directory.csv"), "--overwrite")
    yield ("demo", "--directory", str(world / "exists"), "--overwrite")
    yield ("train", "--tokens", "1000000000", "--steps", "1")
    yield ("train", "--hidden", "1000000000000", "--steps", "1")
    yield ("train", "--dim", "1000000000000", "--steps", "1")
    yield ("train", "--tokens", "5", "--runs", "10000000000000", "--steps", "1")
    yield ("train", "--model", "embedding-mlp", "--tokens", "100000000", "--steps", "1")
    yield ("train", "--model", "nothing")
    yield ("train", "--model", "image-mlp", "--data", str(world / "none.npz"))
    yield ("train", "--model", "image-mlp", "--data", str(world / "text.npz"))
    yield ("train", "--model", "image-mlp", "--data", str(world / "fifo.h5"))
    yield ("train", "--model", "image-mlp", "--data", "/dev/zero")
    yield ("train", "--kind", "regression")
    yield ("train", "--model", "group-decoder", "--group", "S99")
    yield ("train", "--model", "group-decoder", "--group", f"Z{HUGE}")
    yield ("train", "--model", "group-decoder", "--group", "Z" + "9" * 5000)
    yield ("train", "--stop-at-thresholds", "--steps", "2")
    yield ("train", "--engine", "fused", "--device", "cuda", "--steps", "2")
    yield ("train", "--device", "nothing", "--steps", "2")
    yield ("train", "--record", "log:0", "--steps", "2")
    yield ("train", "--record", "1:-5,0", "--steps", "2")
    yield ("train", "--record", HUGE + ",1", "--steps", "2")
    yield ("train", "--threshold", "train_accuracy=nan", "--steps", "2")
    yield ("train", "--threshold", "train_accuracy=0.5", "train_accuracy=0.9", "--steps", "2")
    yield ("train", "--learning-rate", "0.1", "0.2", "--runs", "3", "--steps", "2")
    yield ("fit-ode", good, "--resamples", "20")
    yield ("fit-ode", good, "--resamples", "20", "--law", "mean-field", "--directory", "fit", "--last", "6")
    yield ("fit-ode", good, "--resamples", "20", "--alpha", "aic", "--directory", "fit", "--last", "6")
    yield ("fit-ode", good, "--alpha", "nothing", "--directory", "fit")
    yield ("fit-ode", good, "--alpha", "nan", "--directory", "fit")
    yield ("fit-ode", good, "--alpha", "-1", "--directory", "fit")
    yield ("fit-ode", good, "--first", "5", "--last", "2")
    yield ("fit-ode", good, net, "--last", "nan")
    yield ("survival", good, "--at", HUGE)
    yield ("compare", good)
    yield ("compare", good, net, good)
    yield ("compare", good, net, "--align", "nothing", "--out", "r.html")
    yield ("compare", good, net, "--out", "r.txt")
    yield ("compare", good, net, "--out", "r.html", "--delta", "1e308")
    yield ("phases", "--x", "weight_decay", "0", "1", "--y", "weight_decay", "0", "1", "--steps", "2")
    yield ("phases", "--most-runs", "1", "--steps", "2")
    yield ("phases", "--most-seeds", "1", "--seeds", "2", "--steps", "2")
    yield ("phases", "--options", "nothing=1")
    yield ("phases", "--options", "dim=" + "1" * 5000)
    yield ("phases", "--options", "hidden=4", "hidden=8", "--steps", "2")
    yield ("phases", "--options", "kind=nothing")
    yield ("phases", "--options", "hidden=-1")
    yield ("phases", "--options", "steps=2")
    yield ("phases", "--model", "group-decoder", "--options", "group=S99")
    yield ("animate", good, "--out", "t.jpg")
    yield ("animate", good, "--out", "t.png", "--view", "particles", "--frequency", "1")
    yield ("animate", good, "--out", "t.png", "--frequency", "99")
    yield ("animate", good, "--out", "t.gif", "--fps", "1e300")
    yield ("animate", good, "--out", "t.gif", "--fps", "1e-300")
    yield ("animate", good, "--out", "t.png", "--run", "7")
    yield ("animate", good)
    yield ("import", str(world / "good.npy"))
    yield ("import", str(world / "good.npy"), "--out", "t.h5", "--array", "nothing")
    yield ("import", str(world / "good.npy"), "--out", "t.h5", "--steps-array", "nothing")
    yield ("sweep", str(world / "good.toml"), "--shard", "0/3")
    yield ("sweep", str(world / "good.toml"), "--shard", "4/3")
    yield ("sweep", str(world / "good.toml"), "--shard", "1/" + "9" * 5000)
    yield ("sweep", str(world / "good.toml"), "--workers", "2", "--scheduler", "tcp://127.0.0.1:1")
    yield ("sweep", str(world / "good.toml"), "--scheduler", "nothing")
    yield ("reproduce", "nothing")
    yield ("reproduce", "liu-17", "--all")
    yield ("reproduce",)
    yield ("reproduce", "liu-17", "--budget", "default")
    yield ("bench", "nothing")
    yield ("explore", "--no-browser", "--port", "70000")
    yield ("explore", "--no-browser", "--host", "no.such.host.invalid")
    yield ("explore", "--no-browser", "--host", "::1")
    yield ("nothing",)
    yield ("--nothing",)
    yield ("simulate", "--out", "a\0b")
    yield ("info", "a\0b")


def all_bad(world: Path) -> list[Bad]:
    """Every bad command line there is, in a fixed order."""
    found = [Bad(words) for words in contradictions(world)]
    for command in COMMANDS:
        good = base(command, world)
        for name, kind in options_of(command).items():
            for values in bad_values(command, name, kind, world):
                options = dict(good)
                options.pop(name, None)
                found.append(Bad(line(command, {**options, name: values})))
        if command in READERS:
            for source in bad_sources(command, world):
                if command == "explore" and source not in ("", "[") and os.path.lexists(source):
                    continue  # it opens files once a page asks for them
                rest = good[""][1:]
                found.append(Bad(line(command, {**good, "": [source, *rest]})))
            if command != "explore":  # it shows the toolkit without files too
                found.append(Bad(line(command, {**good, "": []})))
        found += [
            Bad((*line(command, good), "--nothing")),
            Bad((*line(command, good), "--nothing", "1")),
            Bad((*line(command, good), "--seed=")),
        ]
        target = next((name for name in PATHS if name in options_of(command)), None)
        if target is not None:
            ending = ENDINGS.get(target, ENDINGS.get(command, ".h5"))
            options = {name: values for name, values in good.items() if name != target}
            found.append(Bad(line(command, {**options, target: [f"t{ending}"]}), "gone"))
    return list(dict.fromkeys(found))


READERS = ("analyze", "fit-ode", "survival", "compare", "animate", "import", "info", "sweep", "explore")
"""Commands that read files."""


def sample(world: Path, count: int, seed: int) -> list[Bad]:
    """Return so many bad command lines of a seed; as many of each command as there are, in turn."""
    generator = random.Random(seed)
    by_command: dict[str, list[Bad]] = {}
    for bad in all_bad(world):
        by_command.setdefault(bad.words[0] if bad.words else "", []).append(bad)
    for each in by_command.values():
        generator.shuffle(each)
    longest = max(map(len, by_command.values()))
    turns = [each[k] for k in range(longest) for each in by_command.values() if k < len(each)]
    return turns[:count]


def complaint(status: Any, err: str, before: Any, after: Any) -> str:
    """What is wrong with how a bad command line ended; nothing if all is well."""
    said = [one for one in err.splitlines() if one and not one.startswith("grokphys: warning: ")]
    if "Traceback" in err:
        return f"a traceback: {err.splitlines()[-1][:300]}"
    if status not in (1, 2):
        return f"status {status}, {err[:200]!r}"
    if len(said) != 1 or not said[0].startswith("grokphys: "):
        return f"no one sentence: {err[:300]!r}"
    if before != after:
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        return f"status {status}, but it wrote {sorted(changed)[:5]}"
    return ""


Judge = Callable[[Bad], str]
