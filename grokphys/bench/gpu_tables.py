"""The tables of `grokphys bench gpu`."""

from grokphys.bench.timing import Row, table
from grokphys.report.page import Table

FEW, MANY = 5, 50
"""Numbers of steps after which the devices are compared. Only after the first must they agree."""
BOUNDS = {"float64": 1e-10, "float32": 1e-4}
LEARNING_RATE, WEIGHT_DECAY = 0.01, 0.5


def agreement_table(rows: list[Row]) -> Table:
    """Return the differences between the devices as a table.

    Parameters
    ----------
    rows : list of dict of str to object
        Rows that `grokphys.bench.gpu.agreement` yields.

    Returns
    -------
    Table
        Largest difference from the CPU for each model and number type, or why it was not measured.
    """
    return table(
        f"Against the CPU after {FEW} and {MANY} steps: in float64 the largest difference of a parameter or "
        f"a loss, at most\n{BOUNDS['float64']:.0e} after {FEW}; in float32 that of a loss, or the relative "
        f"one of all parameters, at most {BOUNDS['float32']:.0e}.\nAfter {MANY} it is how rounding grows.",
        rows,
        {
            "model": "{model}",
            "type": "{dtype}",
            **{
                f"{head} {n}": f"{{{name}after_{n}:.1e}}"
                for n in (FEW, MANY)
                for head, name in (("step", ""), ("captured", "captured_"))
            },
            "same bits again": "{same_bits_again:yes}",
            "agrees": "{agrees:yes}",
        },
    )


def steps_table(rows: list[Row]) -> Table:
    """Return the time of a step, relative to the references, as a table.

    Parameters
    ----------
    rows : list of dict of str to object
        Rows that `grokphys.bench.gpu.steps` yields.

    Returns
    -------
    Table
        Time of a step on CUDA, and ratios to the CPU and to a PyTorch loop, for each model and ensemble.
    """
    return table(
        "A step of all members, and how many times as long others take: median [least, most] of rounds.\n"
        "The loop is plain PyTorch on the device, one member after the other: the time of one, times all.",
        [row | row["times_as_long"] | {"ours_s": row["step_s"]["ours"]} for row in rows],
        {
            "model": "{model}",
            "members": "{members}",
            "ours": "{ours_s:time}",
            "CPU, fused kernels": "{CPU:spread}",
            "a PyTorch loop": "{loop:spread}",
            "captured as a graph": "{captured:spread}",
        },
    )


def memory_table(rows: list[Row]) -> Table:
    """Return the peak memory by the number of networks at a time as a table.

    Parameters
    ----------
    rows : list of dict of str to object
        Rows that `grokphys.bench.gpu.memory` yields.

    Returns
    -------
    Table
        Peak memory in GiB and time of a step, for each number of networks.
    """
    return table(
        "Memory by the members whose activations exist at a time, and a step of all of them.",
        rows,
        {
            "members": "{members}",
            "chunk": "{chunk}",
            "parameters and moments": "{stored_bytes:gib}",
            "at most": "{peak_bytes:gib}",
            "activations as expected": "{activations_expected_bytes:gib}",
            "a step": "{step_s:time}",
        },
    )


def training_table(rows: list[Row]) -> Table:
    """Return accuracies and circles over the steps of training as a table.

    Parameters
    ----------
    rows : list of dict of str to object
        Rows that `grokphys.bench.gpu.training` yields.

    Returns
    -------
    Table
        Accuracies, losses and number of surviving circles, for each measured step.
    """
    return table(
        f"Networks trained at learning rate {LEARNING_RATE:g} and weight decay {WEIGHT_DECAY:g} on 80 % of "
        "the pairs; means with 95 % intervals.",
        rows,
        {
            "step": "{step}",
            "seconds": "{seconds:.1f}",
            "training accuracy (%)": "{train_accuracy:percent}",
            "validation accuracy (%)": "{validation_accuracy:percent}",
            "at 99 %": "{validation_reached_99} of {networks}",
            "surviving circles": "{survivors:interval}",
        },
    )
