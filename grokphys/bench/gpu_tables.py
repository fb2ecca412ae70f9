"""The tables of `grokphys bench gpu`."""

from typing import Any

from grokphys.report.page import Table

FEW, MANY = 5, 50
"""Steps after which the devices are held together; only the first are judged."""
BOUNDS = {"float64": 1e-10, "float32": 1e-4}
LEARNING_RATE, WEIGHT_DECAY = 0.01, 0.5
Row = dict[str, Any]


def agreement_table(rows: list[Row]) -> Table:
    """How far apart the devices are."""

    def found(row: Row, name: str) -> str:
        return "-" if row[name] is None else f"{row[name]:.1e}"

    return Table(
        f"Against the CPU after {FEW} and {MANY} steps: in float64 the largest difference of a parameter or "
        f"a loss, at most\n{BOUNDS['float64']:.0e} after {FEW}; in float32 that of a loss, or the relative "
        f"one of all parameters, at most {BOUNDS['float32']:.0e}.\nAfter {MANY} it is how rounding grows.",
        [
            "model",
            "type",
            *(f"{kind} {n}" for n in (FEW, MANY) for kind in ("step", "captured")),
            "same bits again",
            "agrees",
        ],
        [
            [
                row["model"],
                row["dtype"],
                *(found(row, f"{kind}after_{n}") for n in (FEW, MANY) for kind in ("", "captured_")),
                "yes" if row["same_bits_again"] else "no",
                "yes" if row["agrees"] else "NO",
            ]
            for row in rows
        ],
    )


def steps_table(rows: list[Row]) -> Table:
    """How long a step takes, against others."""

    def ratio(row: Row, name: str) -> str:
        if name not in row["times_as_long"]:
            return "-"
        return "{median:.3g} [{least:.3g}, {most:.3g}]".format(**row["times_as_long"][name])

    return Table(
        "A step of all members, and how many times as long others take: median [least, most] of rounds.\n"
        "The loop is plain PyTorch on the device, one member after the other: the time of one, times all.",
        ["model", "members", "ours", "CPU, fused kernels", "a PyTorch loop", "captured as a graph"],
        [
            [
                row["model"],
                str(row["members"]),
                f"{row['step_s']['ours']['median'] * 1e3:.4g} ms",
                *(ratio(row, name) for name in ("CPU", "loop", "captured")),
            ]
            for row in rows
        ],
    )


def memory_table(rows: list[Row]) -> Table:
    """How much memory a chunk takes."""

    def gib(value: float) -> str:
        return f"{value / 2**30:.3g} GiB"

    return Table(
        "Memory by the members whose activations exist at a time, and a step of all of them.",
        ["members", "chunk", "parameters and moments", "at most", "activations as expected", "a step"],
        [
            [
                str(row["members"]),
                str(row["chunk"]),
                *(gib(row[name]) for name in ("stored_bytes", "peak_bytes", "activations_expected_bytes")),
                f"{row['step_s']['median'] * 1e3:.4g} ms",
            ]
            for row in rows
        ],
    )


def training_table(rows: list[Row]) -> Table:
    """How far the networks came."""

    def interval(values: dict[str, float], scale: float = 1.0) -> str:
        low, high = (f"{scale * values[name]:.1f}" for name in ("low", "high"))
        return f"{scale * values['estimate']:.1f} [{low}, {high}]"

    return Table(
        f"Networks trained at learning rate {LEARNING_RATE:g} and weight decay {WEIGHT_DECAY:g} on 80 % of "
        "the pairs; means with 95 % intervals.",
        [
            "step",
            "seconds",
            "training accuracy (%)",
            "validation accuracy (%)",
            "at 99 %",
            "surviving circles",
        ],
        [
            [
                str(row["step"]),
                f"{row['seconds']:.1f}",
                *(interval(row[f"{part}_accuracy"], 100) for part in ("train", "validation")),
                f"{row['validation_reached_99']} of {row['networks']}",
                interval(row["survivors"]),
            ]
            for row in rows
        ],
    )
