"""`grokphys analyze`: the final structures of the embeddings of trajectories."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from tyro.conf import Positional

from grokphys.options import Files, Overwrite, Switch, TableFile, structures_of
from grokphys.output import printable, refuse_table, write_table
from physics.errors import InputError
from physics.trajectory import Trajectory


def analyze(
    files: Positional[Files],
    *,
    structures: Literal["auto", "yes", "no"] = "auto",
    neurons: Switch = False,
    logits: Switch = False,
    table: TableFile = None,
    overwrite: Overwrite = False,
) -> int:
    """Report the final structures of the embeddings in trajectory files.

    The command prints one line for each file: how many runs are circles, and the mean number of grid
    imperfections of any others. If these are not counted, it prints how many frequencies survive. --table
    writes all results. A file that cannot be read is named on stderr and skipped; the exit status is then 1.

    Example: grokphys analyze example:ding --table runs.csv

    Args:
        files: Trajectory files, at least one; quoted patterns such as 'runs/*.h5'; or examples such as
            example:ding.
        structures: Whether to count circles and the grid imperfections of the final embeddings. With auto
            this is done for up to 4 dimensions. If it is not done, or pair sums of the model have no classes,
            the summary counts the surviving frequencies.
        neurons: Analyze the neurons instead of the embeddings. A file of `grokphys train` must hold networks
            that add modulo their number of tokens, and their layers (`--observables layers`). The matrix in a
            file of nets.Recorder or of another program is taken as the weights into a hidden layer. The
            summary gives the shares of neurons that have one frequency, two or more, or are dead, and their
            mean purity. The table adds how their phases are related.
        logits: Analyze the logits instead of the embeddings. The networks must add modulo their number of
            tokens p, and the file must hold their layers. The summary gives the fraction of the variance of
            the logits that waves cos(2πk(a + b - c)/p) explain. The table adds the key frequencies, and
            restricted and excluded loss.
        table: Table to write, as CSV or Parquet. It has one row for each run: structures, surviving
            frequencies and the step at which they are decided, effective dimension, final losses and
            accuracies, or the results for neurons and logits.
        overwrite: Replace files that exist.
    """
    from grokphys.batches import read_each, run_columns

    refuse_table(table, overwrite)
    rows: list[dict[str, Any]] = []
    failed: list[Path] = []

    def measure(trajectory: Trajectory) -> tuple[str, list[dict[str, Any]]]:
        if not neurons and not logits:
            return _measure(trajectory, structures)
        parts = [_neurons(trajectory)] if neurons else []
        parts += [_logits(trajectory)] if logits else []
        lines, columns = zip(*parts, strict=True)
        each = [{k: v for part in run for k, v in part.items()} for run in zip(*columns, strict=True)]
        return f"{trajectory.runs} runs, {'; '.join(lines)}", each

    for path, trajectory, (line, measured) in read_each(files, measure, failed):
        print(printable(f"{path}: {line}"))
        rows.extend(run_columns(path, trajectory, k) | columns for k, columns in enumerate(measured))
    if table is not None and rows:
        write_table(table, rows)
        print(f"{len(rows)} runs in {table}")
    return 1 if failed else 0


def _measure(trajectory: Trajectory, wanted: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the summary line of a file, and the columns of each of its runs.

    `wanted` says whether to count grid imperfections: "yes", "no", or "auto" for up to 4 dimensions.
    """
    from analysis.circles import classes
    from analysis.circles.fourier import effective_dimension, signals_and_final
    from analysis.circles.survival import StoppingRule, survives
    from physics.particles.structures import circle_ratio, is_circle

    cyclic = classes.is_cyclic(classes.recorded_operation(trajectory.parameters, trajectory.tokens))
    finite = classes.finite_runs(trajectory)
    finite |= not finite.any()  # the first of their frames is then named and refused
    signals, final = signals_and_final(trajectory, runs=finite)
    signals, final = signals[finite], final[finite]
    ratios, circle, dimension = circle_ratio(final), is_circle(final), effective_dimension(final)
    alive = survives(signals[:, -1])
    counted = wanted == "yes" or (wanted == "auto" and trajectory.dim <= 4)
    grids, line = structures_of(trajectory, final, finite) if counted else (None, "")
    rule = StoppingRule()
    rows = []
    for run, at in enumerate(np.cumsum(finite) - 1):
        row: dict[str, Any] = {"step": int(trajectory.steps[-1])}
        if finite[run]:
            decided = rule.first(trajectory.steps, signals[at])
            row |= {
                "circle": bool(circle[at]),
                "circle_ratio": float(ratios[at]),
                "grid_imperfections": None if grids is None else int(grids.imperfections[at]),
                "effective_dimension": float(dimension[at]),
                "survivors": int(alive[at].sum()) if cyclic else None,
                "surviving_frequencies": " ".join(str(k + 1) for k in np.flatnonzero(alive[at]) if cyclic),
                "survivors_decided_at": decided if cyclic else None,
            }
        for name in trajectory.observables:
            if len(trajectory.clock(name)[0]) and trajectory.observables[name].ndim == 2:
                row[f"final_{name}"] = float(trajectory.observables[name][run, -1])
        rows.append(row)
    none = f"; no frequencies, because tokens are not the numbers added modulo {trajectory.tokens}"
    said = "" if finite.all() else f"; {classes.unfinite_text(np.flatnonzero(~finite))}"
    if grids is not None:
        return line + none * (not cyclic) + said, rows
    lost = classes.lost_runs(trajectory)[finite]
    if lost.any():
        said += f"; {classes.blown_text(np.flatnonzero(finite)[lost], trajectory)}"
    sound = int((~lost).sum())
    if not cyclic:
        return f"{np.count_nonzero(circle & ~lost)} of {sound} runs are circles{none}{said}", rows
    if not sound:
        return f"no frequencies{said}", rows
    counts = alive.sum(axis=1)[~lost]
    if not counts.any():
        limit = "by the rule of twice the mean, which cannot tell where all are about equally strong"
        return f"{sound} runs, no frequencies survive {limit}{said}", rows
    return f"{sound} runs, {counts.mean():.1f} of {alive.shape[1]} frequencies survive{said}", rows


def _neurons(trajectory: Trajectory) -> tuple[str, list[dict[str, Any]]]:
    """Return a summary of the neurons in the last frame of a file, and the columns of each of its runs."""
    from analysis import diversification, neuron_spectrum
    from physics.neurons.spectrum import KINDS

    weights = _weights(trajectory)
    sound = np.isfinite(weights["W_in"]).all(axis=(1, 2))
    rows: list[dict[str, Any]] = [{"neurons": weights["W_in"].shape[2]} for _ in sound]
    if not sound.any():
        return "no neuron is finite", rows
    finite = {name: value[sound] for name, value in weights.items()}
    spectrum = neuron_spectrum(finite["W_in"], finite.get("W_out"), second=finite.get("second"))
    spread = diversification(spectrum)
    alive = np.maximum((~spectrum.dead).sum(axis=1), 1)
    purity = np.nansum(spectrum.purity, axis=1) / alive
    gini = np.nansum(spectrum.gini, axis=1) / alive
    for at, run in enumerate(np.flatnonzero(sound)):
        counts = (f"{k}:{count}" for k, count in enumerate(spread.counts[at], 1) if count)
        asymmetry = zip(spread.orders, spread.asymmetry[at].T, strict=True)
        rows[run] |= {
            **{f"neurons_{kind}": int((spectrum.kind[at] == kind).sum()) for kind in KINDS},
            "neuron_purity": float(purity[at]),
            "neuron_gini": float(gini[at]),
            "neuron_frequencies": " ".join(counts),
            "frequency_diversity": float(spread.diversity[at]),
            **{f"phase_asymmetry_{order}": _mean(values) for order, values in asymmetry},
        }
        if spectrum.xi is not None:
            rows[run]["phase_misalignment"] = _mean(np.abs(np.sin(spectrum.misalignment[at])))
    shares = ", ".join(f"{np.mean(spectrum.kind == kind):.1%} {kind}" for kind in KINDS)
    return f"neurons of frequencies: {shares}; mean purity {purity.mean():.2f}", rows


def _weights(trajectory: Trajectory) -> dict[str, Any]:
    """Return the arguments of `neuron_spectrum` for the last frame of a file.

    Raises
    ------
    InputError
        If the file is a simulation of another system than `FourierLottery`.
    """
    import nets
    from analysis.circles.classes import require_cyclic

    made = trajectory.parameters
    require_cyclic(trajectory)
    if made.get("program") == "nets.train":
        return nets.networks(trajectory).neuron_weights()
    final = np.asarray(trajectory.final)
    both = len(made.get("neurons", [])) == 2  # weights into a hidden layer, and out of it
    if both or made.get("system", {}).get("type") == "FourierLottery":
        half = trajectory.dim // 2
        return {"W_in": final[..., :half], "W_out": final[..., half:].swapaxes(1, 2)}
    if made.get("program") == "physics.simulate":
        kind = made.get("system", {}).get("type", "a system")
        raise InputError(f"--neurons needs networks or a FourierLottery, got a simulation of {kind}")
    return {"W_in": final}


def _logits(trajectory: Trajectory) -> tuple[str, list[dict[str, Any]]]:
    """Return a summary of the logits in the last frame of a file, and the columns of each of its runs."""
    import nets
    from analysis.circles import excluded_loss, logit_spectrum, restricted_loss

    networks = nets.networks(trajectory)
    seen = networks.model.task.inputs[networks.examples("train")]
    rows: list[dict[str, Any]] = []
    for run in range(trajectory.runs):  # one at a time: p³ numbers each
        logits = networks.member(run).logits()[0]
        if not np.isfinite(logits).all():
            rows.append({})
            continue
        spectrum = logit_spectrum(logits)
        keys = spectrum.key_frequencies()
        rows.append(
            {
                "logits_explained": float(np.nansum(spectrum.explained)),
                "key_frequencies": " ".join(map(str, keys)),
                "restricted_loss": float(restricted_loss(logits, keys)),
                "excluded_loss": float(excluded_loss(logits, keys, examples=seen[run])),
            }
        )
    explained = _mean(np.array([row.get("logits_explained", np.nan) for row in rows]))
    if explained is None:
        return "no logits are finite", rows
    return f"waves of a + b - c explain {explained:.1%} of the logits", rows


def _mean(values: Any) -> float | None:
    """Return the mean of the numbers among the values; None if there are none."""
    numbers = values[np.isfinite(values)]
    return float(numbers.mean()) if len(numbers) else None
