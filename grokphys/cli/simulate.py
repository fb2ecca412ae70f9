"""`grokphys simulate`: particles that cluster and align, as one ensemble."""

from typing import Annotated

import tyro

from grokphys.options import (
    Overwrite,
    Resume,
    StoredFile,
    checked,
    given_otherwise,
    refuse_special,
    summarise,
)
from physics.particles.system import Observable, ParticleSystem
from physics.simulate import simulate as simulate_system

SYSTEM_OPTIONS = {
    "tokens": given_otherwise("17", "INT", "number of tokens, here particles N; at least 3."),
    "dim": given_otherwise("2", "INT", "number of dimensions, of the space; at least 1."),
    "modulus": given_otherwise(
        "the number of tokens", "INT", "modulus of the classes: that of (i, j) is (i + j) mod it; at least 2."
    ),
}
"""What the help says of the options that other commands have too, or whose default is not a number."""


def simulate(
    system: Annotated[ParticleSystem, tyro.conf.arg(constructor=checked(ParticleSystem, SYSTEM_OPTIONS))],
    *,
    steps: int = 100,
    step_size: Annotated[float | None, given_otherwise("0.02", "FLOAT")] = None,
    runs: int = 1,
    record_every: int = 1,
    observables: Annotated[tuple[Observable, ...], given_otherwise("none", "NAME ...")] = (),
    seed: int = 0,
    first_run: int = 0,
    out: StoredFile = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> int:
    """Simulate particles that cluster and align (Musat §5-6).

    Args:
        system: the particles and their forces.
        steps: number of steps.
        step_size: length of a step, in units of time.
        runs: number of runs; run k starts from the k-th child of the seed.
        record_every: number of steps from one recorded frame to the next; the first and the last step too.
        observables: what to record beside the positions: circle_ratio, grid_imperfections, mean_force,
            potential.
        seed: seed of the ensemble, a whole number of at least 0.
        first_run: number of the first run, for shards of a larger ensemble.
        out: file to write: the trajectory, streamed to OUT.partial until it is complete.
        overwrite: replace what is there.
        resume: go on with the unfinished run in OUT.partial.
    """
    refuse_special(out)
    trajectory = simulate_system(
        system,
        steps=steps,
        step_size=step_size,
        runs=runs,
        record_every=record_every,
        observables=observables,
        seed=seed,
        first_run=first_run,
        out=out,
        overwrite=overwrite,
        resume=resume,
        progress=True,
    )
    return summarise(trajectory, out)
