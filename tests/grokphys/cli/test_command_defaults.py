"""What a command does without options: what its function does in Python, and the same in all commands."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import nets
import physics
from analysis.circles.prediction import survival_rates
from analysis.circles.signals import Circles, circles_of
from analysis.compare.comparison import compare as compare_ensembles
from analysis.laws.batch import Recipe, fit_batch
from analysis.phases.diagram import Refinement
from grokphys.cli.main import COMMANDS
from grokphys.phases import ACCURACIES, phase_diagram_of_networks
from grokphys.sweeps.driver import run_sweep

EVERYWHERE = {
    "overwrite": False,
    "resume": False,
    "seed": 0,
    "first_run": 0,
    "figures": "png",
    "table": None,
    "files": (),
    "names": (),
}
OWN = {
    "analyze": {"structures": "auto", "neurons": False, "logits": False},
    "animate": {"view": "auto", "frequency": None, "run": 0, "frames": 60, "fps": 12.0, "size": 900},
    "bench": {"directory": Path("results/bench"), "budget": "default", "minutes": None},
    "compare": {"out": Path("results/compare/report.html")},
    "demo": {"directory": Path("results/demo"), "runs": 100, "epochs": 2000},
    "explore": {"port": 5006, "host": "127.0.0.1", "browser": True},
    "fit-ode": {"directory": None, "resamples": 0},
    "import": {"dtype": None, "array": None, "steps_array": None},
    "info": {"follow": False},
    "phases": {"directory": Path("results/phases"), "scales": ("auto", "auto"), "model": "toy-addition"},
    "reproduce": {"budget": "quick", "again": False, "other_seeds": 0, "publish": None, "redraw": None},
    "simulate": {"out": None},
    "survival": {"groups": "run"},
    "sweep": {"dry_run": False, "directory": None},
    "train": {"out": None, "model": "constant-attention", "stop_at_thresholds": False},
}


def defaults(function):
    empty = inspect.Parameter.empty
    given = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in given if one.default is not empty}


@pytest.mark.parametrize("command", COMMANDS)
def test_one_option_has_one_default_in_all_commands(command):
    found = defaults(COMMANDS[command])
    expected = EVERYWHERE | OWN.get(command, {})
    assert {name: found[name] for name in found.keys() & expected.keys()} == {
        name: expected[name] for name in found.keys() & expected.keys()
    }
    assert OWN.get(command, {}).keys() <= found.keys()


@pytest.mark.parametrize(
    ("command", "function", "renamed"),
    [
        ("simulate", physics.simulate, {}),
        ("train", nets.train, {}),
        ("fit-ode", Recipe, {"kind": "form"}),
        ("fit-ode", fit_batch, {}),
        ("survival", circles_of, {"threshold": "signal_threshold"}),
        ("survival", Circles.gradient, {}),
        ("survival", survival_rates, {}),
        ("compare", compare_ensembles, {}),
        ("phases", phase_diagram_of_networks, {}),
        ("phases", Refinement, {}),
        ("sweep", run_sweep, {}),
    ],
)
def test_a_command_does_by_default_what_its_function_does(command, function, renamed):
    ours = defaults(COMMANDS[command])
    theirs = {renamed.get(name, name): value for name, value in defaults(function).items()}
    unset = (None, ())
    shared = [
        name for name in ours.keys() & theirs.keys() if ours[name] not in unset and theirs[name] not in unset
    ]
    assert shared
    for name in shared:
        said, value = ours[name], theirs[name]
        if isinstance(said, str):  # words of the command line
            said = type(value)(said)
        if isinstance(said, tuple) and not isinstance(value, tuple):  # one number for all members
            (said,) = said
        assert said == value, name


def test_accuracies_count_as_learned_where_the_command_says():
    found = defaults(COMMANDS["phases"])
    assert {name: found[name] for name in ACCURACIES} == ACCURACIES
    assert found["x"] == ("learning_rate", 1e-4, 1e-2)
    assert found["y"] == ("weight_decay", 0.0, 10.0)


def test_the_particles_of_the_command_are_those_of_python():
    from grokphys.cli.simulate import SYSTEM_OPTIONS

    stated = {name: one.help_behavior_hint for name, one in SYSTEM_OPTIONS.items()}
    system = {field.name: field.default for field in fields(physics.ParticleSystem)}
    assert physics.ParticleSystem().tokens == 17
    assert stated["tokens"] == "(default: 17)"
    assert stated["dim"] == f"(default: {system['dim']})"
