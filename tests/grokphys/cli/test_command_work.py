"""What commands do at work: files that are refused first, frames that are followed, bars that move."""

import contextlib
import gc
import signal
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import physics
from grokphys import interrupts, progress
from grokphys.cli import info
from grokphys.cli.analyze import _mean
from grokphys.cli.main import COMMANDS, command, main
from grokphys.parsing import RENAMED, _refuse_empty, _today


@pytest.mark.parametrize("name", ["phases.csv", "phases-runs.csv", "phases-shares.csv", "phases.svg"])
def test_a_diagram_replaces_no_file_unasked(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("grokphys.phases.phase_diagram_of_networks", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / name).write_text("old")
    words = ["phases", "--steps", "2", "--figures", "svg", "--directory", str(tmp_path)]
    assert main(words) == 1
    assert f"{name} exists; choose another name or pass --overwrite" in capsys.readouterr().err
    (tmp_path / name).rename(tmp_path / "phases.pdf")
    with pytest.raises(pytest.fail.Exception, match="it ran"):
        main(words)


class Growing:
    """A file to which another process adds frames whenever one looks."""

    path = "t.h5.partial"

    def __init__(self, sizes):
        self.sizes, self.frames, self.steps = list(sizes), 1, np.arange(10) * 5
        loss = np.arange(20.0).reshape(2, 10)
        self.observables = {"loss": loss, "layers": np.zeros((2, 10, 3)), "own": loss}
        self.runs = 2

    def clock(self, name):
        return (np.arange(2), None) if name == "own" else (self.steps, None)

    @property
    def complete(self):
        return not self.sizes

    def refresh(self):
        before, self.frames = self.frames, self.sizes.pop(0)
        return self.frames - before


def test_each_frame_of_a_growing_file_is_told_once(capsys, monkeypatch):
    slept = []
    monkeypatch.setattr(info.time, "sleep", slept.append)
    assert info._follow(Growing([1, 1, 3, 3, 4])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"step {5 * k}  loss {5 + k:.6g}" for k in range(4)] + [
        "t.h5.partial: complete, 4 frames"
    ]
    assert slept == [info.FOLLOW_SECONDS] * 3
    assert info._follow(Growing([])) == 0, "a complete file is told too"
    assert capsys.readouterr().out.splitlines()[0] == "step 0  loss 5"


def test_a_run_that_is_finished_between_two_looks_is_told_to_its_end(capsys):
    class Finished(Growing):
        """A log that another process replaces by the finished file before its values are read."""

        @property
        def observables(self):
            if not self.complete:
                raise FileNotFoundError("there is no file t.h5.partial")
            return self.values

        @observables.setter
        def observables(self, values):
            self.values = values

        def __init__(self, sizes):
            super().__init__(sizes)
            self.values = {"loss": self.values["loss"]}

    assert info._follow(Finished([3])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "step 0  loss 5",
        "step 5  loss 6",
        "step 10  loss 7",
        "t.h5.partial: complete, 3 frames",
    ]


def test_following_takes_one_file(tmp_path, capsys):
    for k in range(2):
        physics.simulate(physics.ParticleSystem(5), steps=2, out=tmp_path / f"{k}.h5")
    assert main(["info", "--follow", str(tmp_path / "*.h5")]) == 2
    assert "files must be one file if --follow is given, got 2" in capsys.readouterr().err
    assert main(["info", "--follow", str(tmp_path / "0.h5")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("0.h5: complete, 3 frames")


class Bar:
    """What a bar was told."""

    made: tuple = ()

    def __init__(self, **options):
        self.n, self.disable, self.options, self.words = 0, True, options, []
        Bar.made = (*Bar.made, self)

    def update(self, count=1):
        self.n += count
        self.words.append(self.n)

    def set_postfix_str(self, word):
        self.words.append(word)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_a_bar_stands_at_the_stage_or_the_item_that_has_begun(monkeypatch):
    monkeypatch.setattr(progress, "tqdm", Bar)
    Bar.made = ()
    with progress.stages("work", "first", "second", "third") as begin:
        for _ in range(3):
            begin()
    assert list(progress.progress(iter("ab"), "read", "file", 7)) == ["a", "b"]
    assert list(progress.progress("abc", "read", "file")) == ["a", "b", "c"]
    stages, given, known = Bar.made
    assert stages.words == [0, "first", 1, "second", 2, "third"]
    assert (stages.options["total"], stages.options["unit"], stages.options["desc"]) == (3, "stage", "work")
    assert (given.words, given.options["total"]) == ([1, 2], 7)
    assert (known.words, known.options["total"], known.options["unit"]) == ([1, 2, 3], 3, "file")
    for one in Bar.made:
        assert one.options["disable"] is None, "shown on a terminal only"
        assert one.options["leave"] is False


def test_a_termination_is_raised_only_where_nobody_handles_it():
    default = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with pytest.raises(interrupts.Terminated), interrupts.terminates():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        came = []
        signal.signal(signal.SIGTERM, lambda *_: came.append(1))
        mine = signal.getsignal(signal.SIGTERM)
        with interrupts.terminates():
            signal.raise_signal(signal.SIGTERM)
        assert (came, signal.getsignal(signal.SIGTERM)) == ([1], mine)
    finally:
        signal.signal(signal.SIGTERM, default)


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, interrupts.Terminated)]
)
def test_an_import_that_a_signal_breaks_is_an_interrupt_and_no_other_is(number, kind):
    before = signal.getsignal(number)

    def work():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        error = ImportError("numba._devicearray failed to import")
        error.add_note("7 frames are kept")
        raise error

    with pytest.raises(KeyboardInterrupt) as stop, interrupts.terminates():
        work()
    assert type(stop.value) is kind
    assert stop.value.__notes__ == ["7 frames are kept"]
    with pytest.raises(ImportError, match="no such module"), interrupts.terminates():
        raise ImportError("no such module")
    assert signal.getsignal(number) == before


def test_former_names_of_options_are_replaced_with_their_values():
    warned = []
    words = ["fit-ode", "a", "--out", "d", "--kind=generator", "--outer", "x"]
    assert _today(list(words), warned.append) == [
        "fit-ode", "a", "--directory", "d", "--form=generator", "--outer", "x"
    ]  # fmt: skip
    assert warned == ["--out of fit-ode is now --directory", "--kind of fit-ode is now --form"]
    assert _today(["train", "--out", "d"], pytest.fail) == ["train", "--out", "d"]
    assert _today([], pytest.fail) == []
    assert RENAMED.keys() <= set(COMMANDS)
    assert _refuse_empty(("a", "--b", "c")) == ["a", "--b", "c"]


def test_a_mean_is_of_the_numbers_among_the_values():
    assert _mean(np.array([1.0, np.nan, 3.0, np.inf])) == 2.0
    assert _mean(np.array([np.nan])) is None


def test_the_status_of_a_command_is_a_number(monkeypatch):
    monkeypatch.setitem(COMMANDS, "info", lambda: True)
    status = main(["info"])
    assert (status, type(status)) == (1, int)


def test_an_interrupt_that_python_loses_is_sent_again_and_nothing_else_is(monkeypatch):
    lost, timers = [], []

    def timer(*given):
        timers.append(given)
        return SimpleNamespace(start=lambda: timers.append("started"))

    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    monkeypatch.setattr(interrupts.threading, "Timer", timer)
    before = sys.unraisablehook
    with interrupts.kept():
        other = SimpleNamespace(exc_type=ValueError)
        sys.unraisablehook(other)
        assert (lost, timers) == ([other], [])
        for kind in (KeyboardInterrupt, interrupts.Terminated):
            sys.unraisablehook(SimpleNamespace(exc_type=kind))
            main = threading.main_thread().ident
            again = (interrupts.AGAIN_AFTER, signal.pthread_kill, (main, signal.SIGINT))
            assert timers[-2:] == [again, "started"]
        assert lost == [other]
    assert sys.unraisablehook is before


def test_a_process_that_ends_looks_for_no_garbage(monkeypatch):
    """What the libraries have made is frozen: to look through it would take a quarter of a second."""
    did, handled = [], {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr("grokphys.cli.main.main", lambda: did.append("work") or 3)
    monkeypatch.setattr(gc, "set_threshold", lambda *numbers: did.append(min(numbers) >= 10))
    monkeypatch.setattr(gc, "freeze", lambda: did.append("freeze"))
    try:
        assert command() == 3
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
    assert did == [True, "work", "freeze"]
