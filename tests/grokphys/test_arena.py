"""The arena: theories that know the answer, what theories see, what is kept, and what is refused."""

import csv
import importlib
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.spatial import procrustes

import physics
from grokphys import arena
from grokphys.arena import shapes
from grokphys.arena.track import digest
from grokphys.cli.main import main
from physics.errors import InputError

SMALL = arena.Attention(1.0, networks=8, steps=40)
FATE, FORCE = arena.TRACKS["fate"], arena.TRACKS["force"]


class Told:
    """A theory that returns what it was told."""

    def __init__(self, name, answer):
        self.name, self.answer = name, answer

    def fit(self, trajectory):
        return self

    def predict(self, starts):
        return self.answer

    def force(self, past):
        return self.answer[past.final.tobytes()]


class Vandal(Told):
    """A theory that returns what it sees, and overwrites it."""

    def fit(self, trajectory):
        assert trajectory.positions.std() > 0
        trajectory.positions[:] = 1
        return self

    def predict(self, starts):
        self.answer = starts.initial.copy()
        starts.positions[:] = 2
        return self.answer


def scores(rows, theory):
    return rows["score"][rows["theory"] == theory]


def test_who_knows_the_fate_has_no_disparity_and_who_says_nothing_the_lower_end():
    networks = SMALL.train(None)
    final, start = networks.final[4:], networks.initial[4:]
    turn = np.array([[0.0, -2.0], [2.0, 0.0]])  # disparity ignores turns and sizes
    path = physics.Trajectory(np.stack([start, final], axis=1), [0, 1])
    told = [Told("fate", final @ turn + 1), Told("path", path), Vandal("start", 0), Vandal("again", 0)]
    rows = arena.run(FATE, told, {"small": replace(SMALL, others=8)})
    assert scores(rows, shapes.OTHERS).mean() < scores(rows, arena.ANOTHER).mean()
    for name in ("fate", "path"):
        np.testing.assert_allclose(scores(rows, name), 0, atol=1e-12)
    for name in ("start", "again"):
        np.testing.assert_array_equal(scores(rows, name), scores(rows, arena.STILL))
    other = SMALL.train(None, shapes.LAYERS)
    np.testing.assert_array_equal(other.initial, start)
    reference = [procrustes(a, b)[2] for a, b in zip(other.final, final, strict=True)]
    np.testing.assert_allclose(scores(rows, arena.ANOTHER), reference, rtol=1e-9)
    row = arena.summary(rows)[0]
    assert (row["networks"], row["score"]) == (4, pytest.approx(scores(rows, arena.STILL).mean()))


def test_who_knows_the_force_explains_all_of_it_and_other_layers_a_part(monkeypatch):
    networks = SMALL.train(None)[4:]
    forces = -networks.observables["gradient"]
    answers = {networks.frame(k).tobytes(): forces[:, k] for k in range(networks.frames)}
    windows = {"early": replace(SMALL, window=(1, 40))}
    shifted = {key: 3 * value + 1 for key, value in answers.items()}  # amplitude and translation do not count
    wrong = {key: -value for key, value in answers.items()}
    told = [Told("force", answers), Told("shifted", shifted), Told("opposite", wrong)]
    rows = arena.run(FORCE, told, windows)
    for name, value in (("force", 1), ("shifted", 1), ("opposite", 0), (arena.STILL, 0)):
        np.testing.assert_allclose(scores(rows, name), value, atol=1e-9)
    another, ceiling = scores(rows, arena.ANOTHER), scores(rows, shapes.CEILING)
    assert (another < ceiling).all()
    assert (ceiling < 1).all()
    monkeypatch.setattr(shapes, "LAYERS", shapes.SEED)  # the layers of the network itself
    np.testing.assert_allclose(SMALL.led(None), -forces, rtol=1e-6, atol=1e-12)


@dataclass(frozen=True)
class Planted(arena.Attention):
    """Musat's particles on the training sets of networks, in the place of networks."""

    def train(self, folder, layers=None):
        networks = SMALL.train(folder, layers)
        runs = []
        for x, pairs in zip(networks.initial, arena.training_pairs(networks), strict=True):
            system = physics.ParticleSystem(17, 2, pairs=pairs)
            run = physics.simulate(system, initial=x, steps=100, record=10)
            runs.append((run.positions[0], -system.forces(run.positions[0])))
        positions, gradient = (np.stack(part) for part in zip(*runs, strict=True))
        about = {"parameters": networks.parameters, "start": networks.start}
        return physics.Trajectory(positions, run.steps, observables={"gradient": gradient}, **about)

    def led(self, folder):
        return np.ones_like(self.train(folder).positions[4:])


def test_the_law_that_was_planted_wins_its_tracks():
    planted = {"planted": Planted(1.0, 8, window=(10, 100))}
    named = {theory.name: theory for theory in shapes.theories()}
    particles, refitted = "Musat's particles, as printed", "Musat's terms, refitted"
    losers = ["arc-cosine kernel", "one-body law", "effective theory"]
    rows = arena.run(FORCE, [named[name] for name in (particles, refitted, *losers)], planted)
    np.testing.assert_allclose(scores(rows, particles), 1, atol=1e-9)
    np.testing.assert_allclose(scores(rows, refitted), 1, atol=1e-3)
    assert max(scores(rows, name).max() for name in losers) < 0.9
    fates = arena.run(FATE, [named[particles], named[losers[2]]], planted)
    np.testing.assert_allclose(scores(fates, particles), 0, atol=1e-9)
    assert scores(fates, losers[2]).min() > 0.01


def test_theories_see_what_the_track_allows_and_no_network_is_in_both_halves():
    networks = SMALL.train(None)
    fate, force = FATE.case(SMALL, None), FORCE.case(replace(SMALL, window=(3, 20)), None)
    for shown in (fate.fit, fate.starts, force.fit, *force.starts):
        assert not {"seed", "run_numbers", "first_run", "initial"} & shown.parameters.keys()
        assert set(shown.start) == {"train_examples", "validation_examples"}
    assert (fate.starts.frames, *fate.starts.observables) == (1,)
    last = [path.steps[-1] for path in force.starts]
    assert (min(last), max(last), *force.starts[-1].observables) == (3, 20)
    assert force.fit.steps[-1] == 20
    assert {3, 20} <= set(force.fit.clock("gradient")[0]) <= set(last)
    for case in (fate, force):
        held_out = case.starts if case is fate else case.starts[0]
        both = {x.tobytes() for x in case.fit.initial} & {x.tobytes() for x in held_out.initial}
        assert (case.fit.runs, held_out.runs, both) == (4, 4, set())
    np.testing.assert_array_equal(fate.starts.initial, networks.initial[4:])


def test_what_is_done_is_not_made_again_unless_a_theory_changes(tmp_path, monkeypatch):
    still = Told("still", SMALL.train(None).initial[4:])
    first = arena.run(FATE, [still], {"small": SMALL}, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(type(FATE), "case", None)
        again = arena.run(FATE, [still], {"small": SMALL}, str(tmp_path))
    assert all((first[name] == again[name]).all() for name in first)
    still.answer = SMALL.train(None).final[4:]
    assert scores(arena.run(FATE, [still], {"small": SMALL}, tmp_path), "still").max() < 1e-12
    with (tmp_path / "fate.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 3 * 4
    exec("class Typed(Told): pass", names := {"Told": Told})  # its source text cannot be had: it may change
    typed = names["Typed"]("typed", still.answer)
    assert len({digest(SMALL, typed) for _ in range(9)}) == 9
    monkeypatch.syspath_prepend(tmp_path)
    digests = set()
    for number in (1, 12):  # a function that the class calls
        source = f"def move(x):\n    return {number} * x\nclass Mine:\n    fit = predict = move\n"
        (tmp_path / "a_theory.py").write_text(source)
        sys.modules.pop("a_theory", None)
        digests.add(digest(importlib.import_module("a_theory").Mine()))
    assert len(digests) == 2


class Mute:
    name = "mute"

    def fit(self, trajectory):
        return self


class Broken(Mute):
    def predict(self, starts):
        return np.full(starts.initial.shape, np.nan)


class Flat(Mute):
    def predict(self, starts):
        return np.ones(3)


@pytest.mark.parametrize(
    ("theory", "message"),
    [
        (object(), "theories must be objects with name and fit, got <object"),
        (Broken, "theories must be objects with name and fit, got <class"),
        (Mute(), "theories must have the method predict or force, got mute without"),
        (Told(arena.STILL, None), "theories must have names of their own, got 'nothing moves'"),
        (Flat(), r"prediction must have the shape \(4, 17, 2\), got \(3,\) \(theory 'mute', track 'fate'"),
        (Broken(), "prediction must be finite, got NaN or infinity for the network 0"),
    ],
)
def test_theories_that_cannot_be_scored_are_refused(theory, message):
    with pytest.raises(InputError, match=message):
        arena.run(FATE, [theory], {"small": SMALL})
    with pytest.raises(InputError, match="networks must be at least 2, to fit and to hold out, got 1"):
        arena.run(FATE, [], {"one": replace(SMALL, networks=1)})


def test_the_command_enters_a_theory_from_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shapes.Fate, "settings", {"quick": {"decay 1": SMALL}})
    source = "class {0}:\n name = 'my own'\n def fit(self, t): return self\n {1}\n"
    (tmp_path / "mine.py").write_text(
        source.format("Mine", "def predict(self, starts): return starts.initial")
    )
    (tmp_path / "mute.py").write_text(source.format("Mine", ""))
    words = ["arena", "--tracks", "fate", "--theories", "effective theory", "--theory"]
    assert main([*words, "mine.py:Mine"]) == 0
    out = capsys.readouterr().out
    names = {line[:35].strip() for line in out.splitlines()}
    assert {"my own", "effective theory", arena.STILL, arena.ANOTHER} <= names
    assert sorted(path.suffix for path in (tmp_path / "results/arena/quick").iterdir()) == [
        *(".csv", ".csv", ".h5", ".h5", ".png")
    ]
    for more, name in (
        ([*words, "none.py:Mine"], "--theory"),
        ([*words, "mine.py:Yours"], "Yours"),
        ([*words, "mute.py:Mine"], "predict"),
        (["arena", "--tracks", "fame"], "--tracks"),
        (["arena", "--theories", "phlogiston"], "--theories"),
    ):
        assert main(more) == 2
        err = capsys.readouterr().err
        assert name in err
        assert err.count("\n") == 1
