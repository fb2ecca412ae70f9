"""Bounds of the options of commands: the last value that is taken, and the sentence on the next one."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from edges import taken_and_refused
from matplotlib.figure import Figure

import nets
import physics
from analysis import Axis
from analysis.phases.cells import Cell, Run
from analysis.phases.diagram import PhaseDiagram
from grokphys import models
from grokphys.cli.animate import _check_output, _film
from grokphys.cli.fit_ode import fit_ode
from grokphys.cli.survival import survival
from grokphys.explorer.films import parts
from grokphys.explorer.films.export import evenly
from grokphys.options import check_names, structures_of, summarise
from grokphys.phases import Training, axis, is_whole
from grokphys.report.demo import _reproduced
from grokphys.report.laws import recipe_of
from grokphys.report.phases import or_never, summary
from grokphys.report.survival import group_labels
from physics import InputError, Operation, OutputError, Trajectory

MODEL = nets.ConstantAttention(5, hidden=4)
PAIRS = np.bitwise_xor.outer(np.arange(4), np.arange(4))
"""Cayley table of the Klein group, whose products are no sums modulo 4."""
MLP = nets.EmbeddingMLP(5, 2, hidden=(4, 6))


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A file of ten frames whose tokens move at random."""
    monkeypatch.chdir(tmp_path)
    steps = np.random.default_rng(0).normal(size=(2, 10, 5, 2))
    Trajectory(steps.cumsum(axis=1), np.arange(10)).save("a.h5")
    return "a.h5"


def fit(file, **options):
    return fit_ode((file,), **({"last": 9} | options))


def alive(file, **options):
    return survival((file,), **({"at": 1} | options))


def recipe(**options):
    given = {"law": "linear", "penalty": "lasso", "alpha": "0.01", "l1_ratio": 0.5, "max_iter": 9}
    return recipe_of(**(given | {"form": "increment", "resamples": 0} | options))


def training(**options):
    x, y = Axis("learning_rate", 0.1, 1, 1), Axis("weight_decay", 0, 1, 1)
    return Training(**({"model": MODEL, "x": x, "y": y, "steps": 1} | options))


POSITIVE = "must be a finite number greater than 0, got 0"
GROUP = "group must be Q8, or Zn, Sn, An or Dn with n from 1 to 999999999, such as S3, got "
ALPHA = "alpha must be a finite number of at least 0, got -1"
OF_FILES = [
    (fit, "last", 1, 0, "last must be at least 1, got 0"),
    (fit, "first", 0, -1, "first must be at least 0, got -1"),
    (fit, "first", 8, 9, "last must be greater than 9, the value of first (--first), got 9"),
    (fit, "resamples", 0, 2, "resamples needs directory (--directory), to which intervals.csv is written"),
    (alive, "at", 9, 0, "at must be at least 1, got 0"),
    (alive, "bins", 1, 0, "bins must be at least 1, got 0"),
    (alive, "factor", 1e-9, 0, f"factor {POSITIVE}"),
    (
        alive, "signal_threshold", 1e-9, 0,
        "signal_threshold must be a finite number greater than 0, got 0",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name", "taken", "refused", "sentence"), OF_FILES)
def test_a_command_takes_the_last_value_and_refuses_the_next(stored, call, name, taken, refused, sentence):
    with warnings.catch_warnings(record=True):  # that few steps do not determine a law
        assert call(stored, **{name: taken}) in (0, 1)
    with pytest.raises(InputError) as said:
        call(stored, **{name: refused})
    assert str(said.value) == sentence


WITHIN = [
    (lambda n: recipe(resamples=n), 2, 1, "resamples must be 0 or at least 2, got 1"),
    (lambda n: recipe(resamples=n), 0, -1, "resamples must be at least 0, got -1"),
    (lambda x: recipe(alpha=x), "aic", "hic", "alpha must be a number of at least 0, aic, bic or cv, "
     "got 'hic'"),
    (lambda x: recipe(alpha=x), "0", "-1", ALPHA),
    (lambda x: recipe(alpha=x, resamples=2), "0", "cv",
     "resamples must be 0 unless the law is linear and alpha a number, got 2 with the linear law and "
     "alpha cv"),
    (lambda n: training(steps=n), 1, 0, "steps must be at least 1, got 0"),
    (lambda x: training(delay=x), 1e-9, 0, f"delay {POSITIVE}"),
    (lambda x: training(thresholds={"train_accuracy": x}), 1, 1.1,
     "train_accuracy must be a finite number greater than 0 and at most 1, got 1.1"),
    (lambda x: training(thresholds={"train_accuracy": x}), 1e-9, 0,
     "train_accuracy must be a finite number greater than 0 and at most 1, got 0"),
    (lambda x: training(y=Axis("weight_decay", x, 1, 1)), 0, -0.5,
     "weight_decay must be at least 0, got an axis from -0.5"),
    (lambda x: training(x=Axis("hidden", 1, 9, 1, whole=x)), True, False,
     "the axis of hidden, a whole number, must have whole=True, got whole=False"),
    (lambda x: training(x=Axis("batch_size", 1, 9, 1, whole=x)), True, False,
     "the axis of batch_size, a whole number, must have whole=True, got whole=False"),
    (models.named_group, "z1", "z0", GROUP + "'z0'"),
    (models.named_group, "z3", "z", GROUP + "'z'"),
    (models.named_group, "q8", "q9", GROUP + "'q9'"),
    (models.named_group, "q8", 5, GROUP + "5"),
    (models.named_group, "S3", "S" * 40,
     GROUP + f"'{'S' * 20}…'"),
    (models.named_group, "D4", "S" * 39, GROUP + f"'{'S' * 39}'"),
    (models.named_value, "a=0.5", "a", "threshold must be NAME=VALUE, such as train_accuracy=0.9, got 'a'"),
    (models.named_value, "a=0.5", "=1", "threshold must be NAME=VALUE, such as train_accuracy=0.9, got '=1'"),
    (lambda x: models.build("two-layer", {"hidden": x}), (4,), (4, 4),
     "hidden must be one width for two-layer, got 2 widths"),
    (lambda x: models.build("constant-attention", {"hidden": x}), (4,), (4, 4),
     "hidden must be one width for constant-attention, got 2 widths"),
    (lambda x: check_names((x,), ("a", "b"), "quick"), "b", "c", "names must be one of 'a', 'b', got 'c'"),
    (lambda x: check_names((), ("a",), x), "paper", "all",
     "budget must be one of 'quick', 'default', 'paper', got 'all'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "taken", "refused", "sentence"), WITHIN, ids=range(len(WITHIN)))
def test_the_last_value_is_taken_and_the_next_one_refused(call, taken, refused, sentence):
    taken_and_refused(call, taken, refused, sentence)


def test_films_and_pictures_are_known_by_their_endings(tmp_path):
    for name in ("a.gif", "a.mp4", "a.png"):
        _check_output(tmp_path / name, overwrite=False)
    (tmp_path / "a.gif").write_bytes(b"")
    _check_output(tmp_path / "a.gif", overwrite=True)
    with pytest.raises(OutputError, match=r"a\.gif exists; choose another name or pass --overwrite"):
        _check_output(tmp_path / "a.gif", overwrite=False)
    with pytest.raises(OutputError, match=r"a\.jpg: the name of a film must end in \.gif or \.mp4, and"):
        _check_output(Path("a.jpg"), overwrite=False)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"model": {"type": "ToyAddition"}}, Operation(4)), ({}, Operation(4, 4)),
        ({"system": {"type": "EffectiveTheory"}}, Operation(4)), ({"modulus": 3}, Operation(4, 3)),
        ({"system": {"type": "EffectiveTheory", "modulus": 5}}, Operation(4, 5)),
        ({"system": {"type": "ParticleSystem", "modulus": 2}}, Operation(4, 2)),
        ({"system": {"type": "ParticleSystem", "group": PAIRS.tolist()}}, Operation(group=PAIRS)),
    ],
)  # fmt: skip
def test_a_film_colors_pair_sums_by_the_recorded_operation(parameters, expected, monkeypatch):
    """A film of plain addition has a class for each sum, and one of a group its products."""
    drawn = []
    monkeypatch.setattr(parts, "sums", lambda _ax, _points, classes, _count: drawn.append(classes))
    moves = Trajectory(np.zeros((1, 2, 4, 2)), [0, 1], parameters=parameters)
    _film(SimpleNamespace(trajectory=moves), "particles", None).begin(Figure())
    assert drawn[0].tolist() == expected.label.tolist()


def test_frames_of_a_film_are_spread_from_the_first_to_the_last():
    assert list(evenly(5, 9)) == [0, 1, 2, 3, 4]
    assert list(evenly(9, 3)) == [0, 4, 8]
    assert [len(list(evenly(100, most))) for most in (1, 2, 99, 100)] == [1, 2, 99, 100]


def test_what_an_axis_of_a_diagram_counts_is_whole():
    names = ("tokens", "hidden", "batch_size", "learning_rate", "epsilon", "even")
    assert [is_whole(MLP, name) for name in names] == [True, True, True, False, False, False]
    with pytest.raises(
        InputError, match=r"^x and y must each name a hyperparameter of EmbeddingMLP or of its"
    ):
        is_whole(MLP, "activation")


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [(0.1, 1.0, "log"), (0.11, 1.0, "linear"), (0.0, 1.0, "linear"), (1e-4, 1.0, "log")],
)
def test_an_axis_over_a_decade_is_logarithmic(low, high, scale):
    assert axis(MODEL, "learning_rate", low, high).scale == scale
    assert axis(MODEL, "learning_rate", low or 0.1, high, scale="log").scale == "log"
    assert axis(MODEL, "learning_rate", low, high).cells == 6


def test_a_summary_of_a_diagram_counts_its_cells_by_size():
    def cell(x, y, level, phases):
        runs = [Run(n, 1.0, 1.0, phase) for n, phase in enumerate(phases)]
        return Cell(x, y, (0.5, 0.5), level, runs)

    sure, split = ["grokking"] * 7, ["grokking", "confusion"]
    cells = [cell((0, 0.5), (0, 0.5), 3, sure), cell((0.5, 1), (0, 1), 0, split)]
    x, y = Axis("x", 0, 1, 2), Axis("y", 0, 1, 3)
    lines = summary(PhaseDiagram(x, y, 1000, 0.9, cells, complete=True))
    assert (
        lines[0]
        == "2 cells (384 of the smallest size would fill the plane), 1 undecided; 9 networks, 2 to 7 a cell"
    )
    ended = summary(PhaseDiagram(x, y, 1000, 0.9, cells, complete=False))[0]
    assert ended == lines[0] + "; the budget of networks ended the refinement"
    assert [or_never(step) for step in (np.nan, 0.0, 7.0)] == ["never", 0, 7]


def test_circles_are_grouped_by_their_start_or_by_their_file():
    columns = [{"file": "a"}, {"file": "a"}, {"file": "b"}]
    signals = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    assert group_labels(columns, signals, "file") == ["a", "a", "b"]
    first, second, third = group_labels(columns, signals, "embedding")
    assert first == third != second


def test_structures_are_those_of_the_operation_that_a_file_names_or_of_its_tokens():
    angle = 2 * np.pi * np.arange(5) / 5
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def said(**parameters):
        moves = Trajectory(np.stack([ring, ring])[None], [0, 1], parameters=parameters)
        return structures_of(moves, moves.final)

    found, line = said()
    assert found.circle.tolist() == [True]
    assert line.startswith("1 of 1 runs are circles (100.0 [")
    assert "grid imperfections" not in line, "there is no rest"
    for kind in ("AffineFlow", "LinearNetwork", "ImageMLP"):
        assert said(system={"type": kind}) == (None, "")
    table = physics.symmetric(3).table.tolist()
    moves = Trajectory(np.zeros((1, 2, 6, 2)), [0, 1], parameters={"group": table})
    assert structures_of(moves, moves.final) == (None, ""), "products do not commute"


def test_a_summary_counts_runs_that_diverged_and_steps_that_were_reached(capsys):
    positions = np.zeros((3, 2, 5, 2)) + np.arange(5)[:, None]
    positions[2, -1] = np.nan
    observables = {
        "train_accuracy": np.array([[0.0, 1.0], [0.0, 0.5], [0.0, np.nan]]),
        "steps_to_train_accuracy": np.array([[np.nan, 4.0], [np.nan, 8.0], [np.nan, np.nan]]),
    }
    parameters = {"model": {"type": "EmbeddingMLP"}, "unseen_classes": [0, 2, 1]}
    assert summarise(Trajectory(positions, [0, 9], observables=observables, parameters=parameters), None) == 1
    assert capsys.readouterr().out.splitlines() == [
        "train accuracy 75.0 %, train accuracy reached by 2 of 3, median step 6, 2 of 3 networks have a "
        "class without a training example, 1 of 3 runs diverged",
        "not stored; give --out FILE to keep the trajectory",
    ]


@pytest.mark.parametrize(
    ("covered", "meet", "differ", "said"),
    [
        (3, 0, 0, "all 3 numbers of T"),
        (1, 2, 0, "1 of the 3 numbers of T (for 2 more, the interval of the paper overlaps with ours)"),
        (2, 0, 1, "2 of the 3 numbers of T (1 differs)"),
        (0, 0, 2, "0 of the 2 numbers of T (2 differ)"),
        (
            1,
            1,
            2,
            "1 of the 4 numbers of T (for 1 more, the interval of the paper overlaps with ours; 2 differ)",
        ),
    ],
)
def test_the_demo_counts_numbers_by_their_verdicts(covered, meet, differ, said):
    words = covered * ["covered"] + meet * ["intervals meet"] + differ * ["not covered"]
    tables = [SimpleNamespace(rows=[["other", word] for word in words])]
    assert _reproduced(SimpleNamespace(tables=tables), "T") == said
