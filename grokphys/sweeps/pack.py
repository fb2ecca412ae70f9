"""The packs of a sweep: ensembles of bounded size, each of which fills one trajectory file."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import physics
from grokphys.models import PER_MEMBER, built, named_group
from grokphys.papers.pieces import code_digest
from grokphys.sweeps.config import SYSTEMS, Cell, Declaration, Values, canonical
from physics.checks import short_text, whole_number
from physics.errors import InputError
from physics.simulate import simulate
from physics.trajectory import Trajectory
from physics.trajectory.provenance import plain

SCHEMA = 1
"""Version of the content of a pack's name; a new version gives new names."""
PACK_RUNS, PACK_BYTES, PACK_OPERATIONS = 256, 2**28, 5e11
"""Limits on the runs, bytes and operations of a pack; the operations take one core about a minute."""


@dataclass(frozen=True)
class Pack:
    """Runs that one call of `physics.simulate` or `nets.train` computes, and that share a file.

    Attributes
    ----------
    kind : {"simulate", "train"}
        What each run is.
    common : dict of str to object
        Parameters that all runs share.
    columns : dict of str to list
        Parameters with a separate value for each run.
    numbers : list of int
        Numbers of the runs. Run k is drawn from the k-th child of the seed. Each of a simulation is one more
        than the one before.
    rows : list of int
        Row of each run in the index of the sweep, which does not affect the run.
    program : str
        Fingerprint of the code and the libraries that compute the runs; see `program`.
    """

    kind: str
    common: Values
    columns: dict[str, list[Any]]
    numbers: list[int]
    rows: list[int]
    program: str

    @cached_property
    def name(self) -> str:
        """Name of the file: a hash of everything that determines its content, including the program."""
        content = [SCHEMA, self.program, self.kind, self.common, self.columns, self.numbers]
        return f"{self.kind}-{hashlib.sha256(canonical(content).encode()).hexdigest()[:20]}.h5"

    def run(self, out: Path | None, *, progress: bool = False) -> Trajectory:
        """Compute the runs, or resume them from an unfinished file `out`; None keeps them in memory.

        An `InputError` refuses a parameter, an `OutputError` says that the file cannot be written, and a
        `SimulationError` that a simulation cannot continue.
        """
        storing: Any = {"out": out, "resume": out is not None, "progress": progress}
        if self.kind == "train":
            return _train(self, **storing)
        names = ("steps", "step_size", "record", "observables", "seed")
        options = {name: self.common[name] for name in names} | storing
        first, runs = self.numbers[0], len(self.numbers)
        return simulate(system_of(self.common), first_run=first, runs=runs, **options)

    def made(self, parameters: Values) -> bool:
        """Return whether a file that states `parameters` can be of this pack: the numbers of both agree."""
        stated = parameters | parameters.get("system", {}) | parameters.get("model", {})
        wanted: Values = {k: value for k, value in self.common.items() if isinstance(value, int | float)}
        wanted |= self.columns | {"runs": len(self.numbers)}
        wanted |= {"first_run": self.numbers[0]} if self.kind == "simulate" else {"run_numbers": self.numbers}
        return all(stated[name] == plain(value) for name, value in wanted.items() if name in stated)


def program(kind: str) -> str:
    """Return a fingerprint of the code and the libraries that compute and measure the runs of a kind."""
    return code_digest("physics", *(["nets"] if kind == "train" else []))


def packs(sweep: Declaration) -> list[Pack]:
    """Divide a sweep into packs, which hold each run once and depend only on the declaration and the program.

    An `InputError` refuses a declared value, and names the cell if a system or a model has refused it.
    """
    groups: dict[str, list[tuple[Cell, int]]] = {}
    row = 0
    for cell in sweep.cells:
        # Simulations of two cells are apart, because `simulate` counts on from the number of its first run.
        apart = row if sweep.kind == "simulate" else None
        groups.setdefault(canonical([_common(sweep.kind, cell), apart]), []).append((cell, row))
        row += len(cell.numbers)
    return [pack for group in groups.values() for pack in _cut(sweep, group)]


def chosen_packs(sweep: Declaration, shard: str | None = None) -> list[Pack]:
    """Return all packs of a sweep, or those of one shard, written ``i/n`` with i from 1 to n.

    Each pack is in one shard only. An `InputError` refuses a shard of another form.
    """
    if shard is None:
        return packs(sweep)
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", shard)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard must be i/n with i from 1 to n, such as 3/16, got {short_text(shard)}")
    return packs(sweep)[int(match[1]) - 1 :: int(match[2])]


def _common(kind: str, cell: Cell) -> Values:
    """Return the parameters that a cell must share with the other cells of an ensemble.

    On a GPU the bits of a result depend on the ensemble, so that each cell has a separate ensemble.
    """
    apart = kind == "train" and cell.parameters["device"] == "cpu"
    return {k: v for k, v in cell.parameters.items() if not (apart and k in PER_MEMBER)}


def _cut(sweep: Declaration, group: list[tuple[Cell, int]]) -> Iterator[Pack]:
    """Divide cells that may share an ensemble, each with its first row in the sweep, into packs."""
    kind, common = sweep.kind, _common(sweep.kind, group[0][0])
    try:
        affordable = _affordable(kind, common)  # also where the size is given, because it checks the cell
        size = sweep.pack or affordable
    except InputError as error:
        where = ", ".join(f"{name} = {value}" for name, value in group[0][0].coordinates.items())
        raise InputError(f"{error} (in the cell {where})" if where else str(error)) from None
    members = [(cell, k, row + k) for cell, row in group for k in range(len(cell.numbers))]
    for start in range(0, len(members), size):
        part = members[start : start + size]
        yield Pack(
            kind,
            common,
            {} if PER_MEMBER[0] in common or kind == "simulate" else _columns([cell for cell, _, _ in part]),
            [cell.numbers[k] for cell, k, _ in part],
            [row for _, _, row in part],
            program(kind),
        )


def _columns(cells: Sequence[Cell]) -> dict[str, list[Any]]:
    """Return the rates and scales of runs, given the cell of each.

    Embeddings have the rates of the layers by default; one that is frozen has none.
    """
    frozen = cells[0].parameters["freeze_embedding"]
    columns = {}
    for name in PER_MEMBER:
        values = [cell.parameters.get(name) for cell in cells]
        if not frozen or any(value is not None for value in values):
            layers = [cell.parameters.get(name.removeprefix("embedding_")) for cell in cells]
            columns[name] = [b if a is None else a for a, b in zip(values, layers, strict=True)]
    return columns


def _affordable(kind: str, common: Values) -> int:
    """Return how many runs with some common parameters a pack holds, by their memory and operations."""
    whole_number("steps", common["steps"], 1)
    if kind == "simulate":
        system = system_of(common)
        size = 64.0 * system.tokens * system.dim
        pairs = getattr(system, "pair_count", system.tokens)
        operations = float(common["steps"]) * pairs**2 * system.dim
    else:
        model, _ = built(**common)
        parameters = model.initial(np.random.default_rng(0), np.random.default_rng(0))
        size = 40.0 * sum(value.size for value in parameters.values())
        operations = 0.15 * size * (common["batch_size"] or len(model.task.labels)) * common["steps"]
    return max(1, int(min(PACK_RUNS, PACK_BYTES / size, PACK_OPERATIONS / operations)))


def system_of(common: Values) -> Any:
    """Return the system of `physics` that the parameters of a simulation describe."""
    kind = getattr(physics, SYSTEMS[common["system"]])
    known = getattr(kind, "__dataclass_fields__")  # noqa: B009
    options = {name: common[name] for name in known if name in common}
    if options["group"] is not None:
        options["group"] = named_group(options["group"])
    return kind(**options)


def _train(pack: Pack, **storing: Any) -> Trajectory:
    """Train the networks of a pack one after another, so that no bit depends on the other networks.

    PyTorch uses one thread. `storing` holds the arguments of `nets.train` that concern the file.
    """
    import torch

    import nets

    model, options = built(**pack.common)
    options |= pack.columns | storing
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return nets.train(  # without the initial states, which would be most of a sweep
            model, runs=len(pack.numbers), run_numbers=pack.numbers, keep_start=False,
            chunk=1 if options["device"] == "cpu" else None, **options,
        )  # fmt: skip
    finally:
        torch.set_num_threads(threads)
