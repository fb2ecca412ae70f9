"""Apply plausible one-line mutants, one at a time, and tell which of them the suite does not notice.

The mutants stand in `tests/mutants.toml`. Each is applied to a throw-away copy of the tree, never in place,
and the tests that should notice it are run there: a mutant is killed where one of them fails. First all these
tests run on a copy without a mutant, so that a test which fails anyway kills nothing.

    python tests/mutants.py --only lanes --jobs 2

Copies keep the times of files, and with them the compiled kernels of all files but the mutated one.
"""

import argparse
import ast
import importlib.util
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "mutants.toml"
NEEDED = 0.9
"""Part of the mutants that must be killed."""
SECONDS = 300.0
"""Time limit of the tests of a mutant; a mutant that takes longer does not count as killed."""
LEFT_OUT = (".*", "results", "build", "*.egg-info")
"""What a copy does without."""
PRELOADED = ("torch", "numba", "h5py", "scipy.stats", "sklearn.linear_model", "matplotlib.figure")
"""Packages of others that are imported once for all mutants."""


class Unfit(Exception):  # noqa: N818 - it ends as a sentence
    """A mutant that does not apply, or is none."""


@dataclass(frozen=True)
class Mutant:
    """A change of one place.

    Attributes
    ----------
    name : str
        What is printed: the short name of the file, and a word.
    path : str
        File, relative to the tree.
    old, new : str
        What is replaced, and by what.
    within : str
        Beginning of the line of the function or class that `old` stands in; the whole file if empty.
    tests : tuple of str
        Node ids, relative to the tree.
    why : str
        Why it matters.
    """

    name: str
    path: str
    old: str
    new: str
    within: str
    tests: tuple[str, ...]
    why: str

    def applied(self, text: str) -> str:
        """Return the text of the file with the mutant in it.

        Raises
        ------
        Unfit
            If `old` does not occur exactly once where it is looked for, or what comes out is no Python.
        """
        start, end = _block(text, self.within) if self.within else (0, len(text))
        found = text.count(self.old, start, end)
        if found != 1:
            where = f"{self.path}, {self.within}" if self.within else self.path
            raise Unfit(f"{self.name}: {self.old!r} must occur once in {where}, and occurs {found} times")
        at = text.index(self.old, start, end)
        mutated = text[:at] + self.new + text[at + len(self.old) :]
        try:
            program = ast.parse(mutated)
        except SyntaxError as error:
            raise Unfit(f"{self.name}: what comes out is no Python: {error}") from None
        # Writing out a program takes ten times as long as reading it, and it is hardly ever equal otherwise.
        if _letters(self.old) == _letters(self.new) and ast.dump(program) == ast.dump(ast.parse(text)):
            raise Unfit(f"{self.name}: {self.new!r} is the same program as {self.old!r}")
        return mutated


def _letters(part: str) -> str:
    """Return the part of a line or more without comments, spaces, brackets, commas and kinds of quotes."""
    return re.sub(r"#.*|[\s()\\,'\"]", "", part)


def _block(text: str, header: str) -> tuple[int, int]:
    """Where the one function or class begins and ends whose first line begins with `header`."""
    lines = text.splitlines(keepends=True)
    heads = [n for n, line in enumerate(lines) if line.strip().startswith(header)]
    if len(heads) != 1:
        raise Unfit(f"{header!r} must begin one line, and begins {len(heads)}")
    first = lines[heads[0]]
    indent = len(first) - len(first.lstrip())
    end = heads[0] + 1
    while end < len(lines):
        line = lines[end]
        # The end of a signature over several lines stands as far left as its beginning.
        if line.strip() and len(line) - len(line.lstrip()) <= indent and not line.lstrip().startswith(")"):
            break
        end += 1
    return len("".join(lines[: heads[0]])), len("".join(lines[:end]))


def read_mutants(path: Path = LIST) -> list[Mutant]:
    """Read the list; paths of files and of tests stand once, at its head."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    files, tests = content["files"], content["tests"]
    found = []
    for entry in content["mutant"]:
        known = {"file", "name", "old", "new", "within", "tests", "why"}
        if not entry.keys() <= known:
            raise Unfit(f"{entry}: unknown are {sorted(entry.keys() - known)}")
        places = [one.partition("::") for one in entry["tests"]]
        found.append(
            Mutant(
                f"{entry['file']}: {entry['name']}",
                files[entry["file"]],
                entry["old"],
                entry["new"],
                entry.get("within", ""),
                tuple(tests[name] + mark + node for name, mark, node in places),
                entry["why"],
            )
        )
    return found


def missing(mutants: Sequence[Mutant], root: Path = ROOT) -> list[str]:
    """Say which mutants no longer apply, and which name tests that are not there."""
    wrong = [f"{name} names two mutants" for name, n in Counter(m.name for m in mutants).items() if n > 1]
    for mutant in mutants:
        try:
            mutant.applied((root / mutant.path).read_text(encoding="utf-8"))
        except (OSError, Unfit) as error:
            wrong.append(str(error))
        for test in mutant.tests:
            path, _, node = test.partition("::")
            if not (root / path).is_file() or (
                node and f"def {node.partition('[')[0]}(" not in (root / path).read_text(encoding="utf-8")
            ):
                wrong.append(f"{mutant.name}: there is no test {test}")
    return wrong


# -- running ------------------------------------------------------------------------------------------------


def run_mutants(
    mutants: Sequence[Mutant],
    *,
    jobs: int = 1,
    seconds: float = SECONDS,
    tell: Callable[[str], None] = print,
) -> dict[str, list[Mutant]]:
    """Run the tests of each mutant in a copy of its own; return the mutants by outcome, and print each.

    The outcomes are "killed", "survived", "timeout", and "error" where the tests could not be run at all.

    Raises
    ------
    Unfit
        If one does not apply, or its tests fail without it.
    """
    wrong = missing(mutants)
    if wrong:
        raise Unfit("\n".join(wrong))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    outcomes: dict[str, list[Mutant]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        clean = Path(directory) / "clean"
        shutil.copytree(ROOT, clean, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        began = time.monotonic()
        found, said = _run(context, clean, tests, max(seconds, 10.0 * len(tests) + 600.0))
        if found != "survived":
            raise Unfit(f"the tests must pass without a mutant, and they do not ({found}):\n{said}")
        tell(f"{len(tests)} tests pass without a mutant ({time.monotonic() - began:.0f} s)")

        def one(number: int) -> tuple[Mutant, str, float, str]:
            mutant, copy = mutants[number], Path(directory) / str(number)
            began = time.monotonic()
            shutil.copytree(clean, copy)
            path = copy / mutant.path
            path.write_text(mutant.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
            found, said = _run(context, copy, mutant.tests, seconds)
            shutil.rmtree(copy)
            return mutant, found, time.monotonic() - began, said

        with ThreadPoolExecutor(jobs) as pool:
            for mutant, found, took, said in pool.map(one, range(len(mutants))):
                outcomes.setdefault(found, []).append(mutant)
                tell(f"{found:9}{took:6.0f} s  {mutant.name}" + (f"\n{said}" if found == "error" else ""))
    return outcomes


def _run(
    context: multiprocessing.context.BaseContext, root: Path, tests: Sequence[str], seconds: float
) -> tuple[str, str]:
    """Run tests in a tree; return the outcome and the end of what pytest said."""
    log = root / "pytest.log"
    process = context.Process(target=_pytest, args=(str(root), list(tests), str(log)))  # type: ignore[attr-defined]
    process.start()
    process.join(seconds)
    late = process.is_alive()
    if late:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    said = "\n".join(log.read_text(encoding="utf-8").splitlines()[-30:]) if log.exists() else ""
    word = "timeout" if late else {0: "survived", 1: "killed"}.get(process.exitcode, "error")
    return word, said


def _pytest(root: str, tests: list[str], log: str) -> None:
    """Run pytest in a fresh process, whose packages of ours come from `root`."""
    os.setsid()  # so that what the tests start can be ended with them
    os.chdir(root)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    ours = {"", str(ROOT), str(Path(__file__).parent)}
    sys.path[:] = [root, *(path for path in sys.path if path not in ours)]
    os.environ["PYTHONPATH"] = root
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False  # the copies of the mutants take what is compiled here
    spec = importlib.util.find_spec("physics")
    assert spec is not None
    assert str(spec.origin).startswith(root), f"the tests would look at {spec.origin}"
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow", "--hypothesis-seed=0"]
    code = int(pytest.main([*options, *tests]))
    sys.stdout.flush()
    os._exit(code)  # a worker that a test left behind would be waited for


def table(outcomes: dict[str, list[Mutant]]) -> Iterator[str]:
    """Yield a line for each file: how many mutants it has, and how many of them were killed."""
    words = ("killed", "survived", "timeout", "error")
    yield f"{'file':45}" + "".join(f"{word:>10}" for word in words)
    for path in sorted({mutant.path for found in outcomes.values() for mutant in found}):
        counts = [sum(mutant.path == path for mutant in outcomes.get(word, [])) for word in words]
        yield f"{path:45}" + "".join(f"{count:10}" for count in counts)
    yield f"{'all':45}" + "".join(f"{len(outcomes.get(word, [])):10}" for word in words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 where enough are killed, 1 where not, 2 where one does not apply."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    pattern = {"default": "", "metavar": "REGEX"}
    parser.add_argument("--only", **pattern, help="mutants whose name or reason matches")
    parser.add_argument("--file", **pattern, help="mutants of the files whose path matches")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at the same time (default 1)")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"time limit of a mutant (default {SECONDS:g} s)"
    )
    given = parser.parse_args(arguments)
    try:
        chosen = [
            mutant
            for mutant in read_mutants()
            if re.search(given.only, f"{mutant.name} ({mutant.why})") and re.search(given.file, mutant.path)
        ]
        if not chosen:
            raise Unfit("no mutant is of that name")
        began = time.monotonic()
        outcomes = run_mutants(
            chosen, jobs=given.jobs, seconds=given.seconds, tell=lambda line: print(line, flush=True)
        )
    except Unfit as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(table(outcomes)))
    for word in ("survived", "timeout", "error"):
        for mutant in outcomes.get(word, []):
            print(f"{word}: {mutant.name}: {mutant.old!r} -> {mutant.new!r} ({mutant.why})")
    share = len(outcomes.get("killed", [])) / len(chosen)
    print(f"{100 * share:.1f} % of {len(chosen)} mutants killed in {time.monotonic() - began:.0f} s")
    return 0 if share >= NEEDED else 1


if __name__ == "__main__":
    sys.exit(main())
