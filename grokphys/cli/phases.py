"""`grokphys phases`: the phases of learning over any two hyperparameters of training."""

from pathlib import Path
from typing import Annotated

import tyro

from grokphys.models import model_and_settings, model_name, named_values
from grokphys.options import Directory, Figures, ModelName, Overwrite, given_otherwise
from grokphys.output import make_directory, refuse_existing, save_figure
from physics.errors import InputError

AxisWords = Annotated[tuple[str, float, float], tyro.conf.arg(metavar="NAME LOW HIGH")]
Pairs = Annotated[tuple[str, ...], given_otherwise("none", "NAME=VALUE ...")]


def phases(
    model: ModelName = "toy-addition",
    *,
    x: AxisWords = ("learning_rate", 1e-4, 1e-2),
    y: AxisWords = ("weight_decay", 0.0, 10.0),
    cells: tuple[int, int] = (6, 6),
    options: Pairs = (),
    seeds: int = 3,
    most_seeds: int = 7,
    levels: int = 2,
    steps: int = 5000,
    delay: float = 1000,
    train_accuracy: float = 0.9,
    validation_accuracy: float = 0.9,
    seed: int = 0,
    directory: Directory = Path("results/phases"),
    figures: Figures = "png",
    overwrite: Overwrite = False,
) -> int:
    """Map the four phases of learning over two settings of the training (Liu, Table 1).

    The phases are comprehension, grokking, memorization and confusion. Cells at the borders of phases are
    divided in half, and cells without a clear majority get more networks. Networks are kept in
    DIRECTORY/networks, so an interrupted command continues when it is run again. The other learning rates
    and weight decays are those of the model's paper, as in `grokphys train`, unless --options sets them.

    Example: grokphys phases --model toy-addition --x learning_rate 1e-4 1e-2 --y weight_decay 0 10

    Args:
        model: Network to train, by its name in `grokphys train`.
        x: Setting that varies from left to right, and its range from the smallest to the largest value. It is
            a learning rate, weight decay or scale of `grokphys train`, batch_size, train_fraction, epsilon
            (of AdamW), or a number of the model such as dim or dropout. An axis that begins above 0 and spans
            a factor of at least 10 is logarithmic.
        y: Setting that varies from bottom to top, and its range, as for --x.
        cells: Numbers of coarse cells along x and along y, each from 1 to 1000.
        options: Other settings of the model or of the training, such as kind=classification hidden=100,100
            embedding_learning_rate=0.001.
        seeds: Number of networks in each cell, at least 1. They differ in their seeds.
        most_seeds: Largest number of networks in a cell without a clear majority, at least as many as
            --seeds. A majority is clear once its probability among all networks is 0.9.
        levels: Number of times, at least 0, that a coarse cell may be divided in half along each axis.
        steps: Number of steps, at least 1, of the optimizer. Training stops earlier when a network has
            reached both accuracies.
        delay: Number of steps that separates grokking from comprehension, greater than 0. A network has
            grokked if it reaches the validation accuracy at least this many steps after the training
            accuracy.
        train_accuracy: Training accuracy, greater than 0 and at most 1, at which a network has fitted its
            training set.
        validation_accuracy: Validation accuracy, greater than 0 and at most 1, at which a network has
            generalized.
        seed: Seed of the ensemble, a whole number of at least 0.
        directory: Directory to write to. It will hold the tables, the figure, and the directory networks.
        overwrite: Replace files that exist. The networks that are stored are kept and used again in any case.
    """
    from matplotlib.figure import Figure

    from analysis.phases import Refinement
    from analysis.plots.phases import show_phases
    from analysis.plots.style import style
    from grokphys.phases import phase_diagram_of_networks
    from grokphys.report.phases import summary, write_diagram

    model = model_name(model)
    values = named_values("options", options)
    if taken := {x[0], y[0]} & values.keys():
        raise InputError(f"options must not set {min(taken)}, which varies along an axis")
    network, settings = model_and_settings(model, values)
    for name in ("phases.csv", "phases-runs.csv", "phases-shares.csv", f"phases.{figures}"):
        refuse_existing(directory / name, overwrite, parents=True)
    diagram = phase_diagram_of_networks(
        network,
        x,
        y,
        cells=cells,
        steps=steps,
        refinement=Refinement(seeds, most_seeds, levels),
        delay=delay,
        thresholds={"train_accuracy": train_accuracy, "validation_accuracy": validation_accuracy},
        seed=seed,
        store=directory / "networks",
        progress=True,
        **settings,
    )
    for line in summary(diagram):
        print(line)
    make_directory(directory)
    with style():
        figure = Figure(figsize=(6.4, 5.2))
        show_phases(diagram, figure.subplots(), title=f"{model}, at most {steps} steps")
    for path in (*write_diagram(directory, diagram), save_figure(figure, directory / f"phases.{figures}")):
        print(f"wrote {path}")
    return 0
