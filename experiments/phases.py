"""`grokphys phases`: the phases of learning over any two hyper-parameters of training."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from experiments.output import make_directory, save_figure
from experiments.training import ModelName, build, named_group
from physics.errors import InputError

Scale = Literal["auto", "linear", "log"]
AxisWords = Annotated[tuple[str, float, float], tyro.conf.arg(metavar="NAME LOW HIGH")]
Settings = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")]
OTHERS = ("freeze_embedding", "shared", "dtype", "engine", "device")
"""What else of `nets.train` a diagram may set, beside the hyper-parameters."""


def phases(
    model: ModelName = "toy-addition",
    *,
    x: AxisWords = ("learning_rate", 1e-4, 1e-2),
    y: AxisWords = ("weight_decay", 0.0, 10.0),
    cells: tuple[int, int] = (6, 6),
    scales: tuple[Scale, Scale] = ("auto", "auto"),
    options: Settings = (),
    seeds: int = 3,
    most_seeds: int = 7,
    levels: int = 2,
    most_runs: int | None = None,
    certain: float = 0.9,
    steps: int = 5000,
    delay: float = 1000,
    train_accuracy: float = 0.9,
    validation_accuracy: float = 0.9,
    seed: int = 0,
    out: Path = Path("results/phases"),
) -> int:
    """Map comprehension, grokking, memorization and confusion over two hyper-parameters (Liu, Table 1).

    Cells where phases meet are halved, unclear cells get more networks. The networks are kept in
    OUT/networks: an interrupted command, given again, goes on where it was.

    Args:
        model: as in `grokphys train`.
        x: what varies from left to right, from where to where: a rate, decay or scale that `grokphys train`
            has, batch_size, train_fraction, or a number of the model such as dim or dropout.
        y: what varies upwards.
        cells: coarse cells along x and y.
        scales: equal widths or equal ratios along x and y; 'auto' takes ratios where an axis spans a decade.
        options: other settings of the model or of the training, such as kind=classification hidden=100,100
            embedding_learning_rate=0.001.
        seeds: networks of each cell.
        most_seeds: up to how many networks an unclear cell is given.
        levels: how often a coarse cell may be halved.
        most_runs: networks in all, at least those of the coarse cells.
        certain: probability from which on a cell is decided: that most networks are in its phase.
        steps: longest training.
        delay: from how many steps between fitting and generalising on it is grokking.
        train_accuracy: accuracy that counts as fitted.
        validation_accuracy: accuracy that counts as generalised.
        seed: seed of all networks.
        out: directory to write to; tables and figure of an earlier diagram there are replaced.
    """
    from matplotlib.figure import Figure

    from analysis.figures import style
    from analysis.phase_diagram import Refinement
    from analysis.phase_figures import show_phases
    from experiments.phase_training import Training, axis, summary, write_diagrams

    network, settings = _settings(model, options)
    across, upwards = (
        axis(network, *words, count, scale=None if scale == "auto" else scale)
        for words, count, scale in zip((x, y), cells, scales, strict=True)
    )
    training = Training(
        network,
        across,
        upwards,
        steps,
        delay,
        {"train_accuracy": train_accuracy, "validation_accuracy": validation_accuracy},
        seed,
        settings,
        out / "networks",
        progress=True,
    )
    diagram = training.diagram(Refinement(seeds, most_seeds, levels, most_runs, certain))
    for line in summary(diagram):
        print(line)
    make_directory(out)
    with style():
        figure = Figure(figsize=(6.4, 5.2))
        show_phases(diagram, figure.subplots(), title=f"{model}, at most {steps} steps")
    for path in (*write_diagrams(out, "phases", {model: diagram}), save_figure(figure, out / "phases.png")):
        print(f"wrote {path}")
    return 0


def _settings(model: ModelName, words: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """Return the model, and arguments of `nets.train`, that NAME=VALUE say."""
    from experiments.phase_training import SETTINGS

    given = dict(_named(word) for word in words)
    options = {name: value for name, value in given.items() if name in (*SETTINGS, *OTHERS)}
    return build(model, {name: value for name, value in given.items() if name not in options}), options


def _named(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if not equals or not name or not text:
        raise InputError(f"options must be NAME=VALUE, such as kind=classification, got {word!r}")
    if name == "group":
        return name, named_group(text)
    if name in ("hidden", "shared"):
        return name, tuple(_value(part) for part in text.split(","))
    return name, _value(text)


def _value(text: str) -> Any:
    """Return a number or truth value where it is one, else the word."""
    try:
        return json.loads(text.lower())
    except json.JSONDecodeError:
        return text
