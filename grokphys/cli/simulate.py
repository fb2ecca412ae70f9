"""`grokphys simulate`: particles that cluster and align, as one ensemble."""

from typing import Annotated, Any

from grokphys import options as opt
from grokphys.output import refuse_special
from physics.particles.system import Observable, ParticleSystem
from physics.simulate import simulate as simulate_system

TYPES = {
    "tokens": Annotated[int | None, opt.given_otherwise("17", "INT")],
    "modulus": Annotated[int | None, opt.given_otherwise("the number of tokens", "INT")],
}


@opt.with_options(opt.options_of(ParticleSystem, TYPES, without=("pairs", "group")))
def simulate(
    *,
    steps: int = 100,
    step_size: Annotated[float | None, opt.given_otherwise("0.02", "FLOAT")] = None,
    runs: int = 1,
    record: int | str = 1,
    observables: Annotated[tuple[Observable, ...], opt.given_otherwise("none", "NAME ...")] = (),
    seed: int = 0,
    first_run: int = 0,
    out: opt.StoredFile = None,
    overwrite: opt.Overwrite = False,
    resume: opt.Resume = False,
    **system: Any,
) -> int:
    """Simulate particles whose pair sums cluster and align, as one ensemble (Musat, Sections 5 and 6).

    The command prints how many runs end as a circle, and the mean number of grid imperfections of any other
    runs. Give --out to keep the trajectory.

    Example: grokphys simulate --runs 100 --alignment 2.0 --out particles.h5

    Args:
        tokens: Number of tokens, at least 3. Each of them is a particle.
        dim: Number of dimensions, at least 1, of the space of the particles.
        attraction: Constant g_a, without unit, of the attraction between pair sums of the same class. A
            negative value repels.
        repulsion: Constant g_r, without unit, of the repulsion between pair sums of different classes. A
            negative value attracts.
        alignment: Constant f_a, without unit, of the alignment. This force pushes each pair sum along the
            directions of the pair sums of its own class, and against those of the other classes.
        softening: Length ε, at least 0, below which attraction and repulsion fade: the squared distance of
            two pair sums is increased by ε².
        modulus: Modulus of the classes, at least 2. The class of the pair (i, j) is i + j modulo this number.
        normalise: Whether to shift the coordinates on each axis to zero mean and scale them to unit variance
            after each step; the adaptive integrator keeps them so all the time.
        integrator: Method of integration. euler takes the steps of the paper; adaptive follows the continuous
            flow that they approximate, by a Runge-Kutta method of order 5 that chooses its own steps.
            --step-size then only sets the time from one step of the trajectory to the next.
        relative_tolerance: Largest estimated error of an adaptive step, relative to the largest coordinate of
            the run; from 1e-12 to 0.1.
        steps: Number of steps, at least 1. All particles move once in each step.
        step_size: Time that passes in one step, greater than 0. It has no unit: an Euler step adds this
            number times its force to the position of each particle.
        runs: Number of runs, at least 1. Run k has its own random stream, derived from the seed and k, so it
            does not depend on the other runs.
        record: When to record: K (every K steps, K at least 1), 'log' (about 20 frames in each decade),
            'log:N' (about N in each), or '1:1000,100' (every step to 1000, then every hundredth). These
            record step 0 and the last step too. A list such as 0,10,100, which begins with step 0, records
            exactly its steps.
        observables: What to record in addition to the positions: circle_ratio (largest norm of a particle
            over the smallest), grid_imperfections (their number), mean_force (mean length of the force) or
            potential.
        seed: Seed of the ensemble, a whole number of at least 0.
        first_run: Number of the first run, at least 0. Use it to compute a large ensemble in several parts.
        out: File to write. The trajectory is written to OUT.partial until it is complete.
        overwrite: Replace files that exist: OUT, and the unfinished run in OUT.partial.
        resume: Continue the unfinished run in OUT.partial. The options must be those with which it began.
    """
    refuse_special(out)
    trajectory = simulate_system(
        ParticleSystem(**system),
        steps=steps,
        step_size=step_size,
        runs=runs,
        record=record,
        observables=observables,
        seed=seed,
        first_run=first_run,
        out=out,
        overwrite=overwrite,
        resume=resume,
        progress=True,
    )
    return opt.summarise(trajectory, out)
