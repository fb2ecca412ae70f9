"""The system `LinearNetwork`: a linear network from which the effective theory emerges (Liu, Appendix L)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from physics.blas import one_blas_thread
from physics.checks import InputError, finite_array, number, regular_array, whole_number
from physics.values import Array, Shown, Value, read_only


@dataclass(frozen=True, eq=False)
class LinearNetwork(Shown, Value):
    """A linear decoder and its inputs, which both descend the gradient of their loss (Liu, Appendix L).

    The decoder answers ``A r + b`` to an input r. The loss is ``Σ_s (½|A r_s + b - y_s|² + ½ γ |A|²)`` over
    samples s with fixed labels y_s. A and b move at the rate η_A, and the inputs at the rate η_x. Each input
    is a separate point, as in the paper. With `pairs`, each is the sum of two embeddings E_i + E_j, and the
    embeddings move.

    Parameters
    ----------
    labels : array_like of float, shape (samples, outputs)
        Labels y_s, at least one.
    inputs : int, default 2
        Dimension of r, at least 1.
    pairs : array_like of int, shape (samples, 2), optional
        The two symbols that each sample adds, numbered from 0.
    network_rate : float, default 0.1
        Rate η_A of A and b, at least 0. With 0, the adiabatic limit, they do not move.
    input_rate : float, default 1.0
        Rate η_x of the inputs, at least 0.
    decay : float, default 0.0
        Weight decay γ for each sample, at least 0, as in Eq. 39.

    Raises
    ------
    InputError
        If shapes do not agree, a value is not finite or out of its range, or `pairs` are not integers.

    Notes
    -----
    As a system of `simulate`, the whole state is one point set: first the moving points (x, 0), and then a
    row (A_k, b_k) for each output k. `pack` and `unpack` convert it. Steps are taken by the Runge-Kutta
    method of order 4.

    For two samples with the same label, the difference of their inputs obeys ``d(r - r')/dt = -η_x AᵀA (r -
    r')`` exactly. If AᵀA = I and η_A → 0, this is gradient descent on ½|r - r'|², the interaction of Eq. 41.
    `internal_energy` generalizes it to any training set. Without decay, the matrix ``AᵀA/η_A - Σ x xᵀ/η_x``,
    summed over the moving points x, is conserved.

    Below Eq. 37, the paper gives ``b = (1 - exp(-2 η_A t)) y`` for one sample, if only b moves. The factor 2
    is correct for two samples; for n samples of one label it is n.

    Examples
    --------
    >>> import physics
    >>> network = physics.LinearNetwork([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> trajectory = physics.simulate(network, steps=1000)
    >>> A, b, r = network.unpack(trajectory.final[0])
    >>> A.shape, b.shape, r.shape
    ((2, 2), (2,), (3, 2))
    >>> bool(trajectory.observables["loss"][0, -1] < 1e-3)
    True
    """

    labels: Any
    inputs: int = 2
    pairs: Any = None
    network_rate: float = 0.1
    input_rate: float = 1.0
    decay: float = 0.0

    default_step_size: ClassVar[float] = 0.01

    def __post_init__(self) -> None:
        labels = finite_array("labels", self.labels).copy()
        if labels.ndim != 2 or not labels.size:
            raise InputError(f"labels must have the shape (samples, outputs), got {labels.shape}")
        rates = {
            name: number(name, getattr(self, name), 0.0) for name in ("network_rate", "input_rate", "decay")
        }
        self._set(labels=read_only(labels), inputs=whole_number("inputs", self.inputs, 1), **rates)
        if self.pairs is not None:
            pairs = regular_array("pairs", self.pairs)
            if pairs.dtype.kind not in "iu" or pairs.shape != (len(labels), 2):
                got = f"{pairs.dtype} of shape {pairs.shape}"
                raise InputError(f"pairs must be integers of shape ({len(labels)}, 2), got {got}")
            if pairs.min() < 0:
                raise InputError(f"pairs must hold numbers of at least 0, got {pairs.min()}")
            self._set(pairs=read_only(pairs.astype(np.int64)))

    @property
    def points(self) -> int:
        """Number of points that move: the samples, or with `pairs` the symbols from 0 to the largest."""
        return len(self.labels) if self.pairs is None else int(self.pairs.max()) + 1

    @property
    def outputs(self) -> int:
        """Number of outputs of the decoder, which is the dimension of the labels."""
        return int(self.labels.shape[1])

    @property
    def tokens(self) -> int:
        """Number of rows of the state: one for each moving point, and one for each output."""
        return self.points + self.outputs

    @property
    def dim(self) -> int:
        """Number of columns of the state: the dimension of the inputs, and one more for b."""
        return self.inputs + 1

    @cached_property
    def design(self) -> Array:
        """Matrix, float64 (samples, points), whose product with the moving points gives all inputs.

        An entry is 1 where a sample contains a point, and 2 where it adds a symbol to itself.
        """
        design = np.zeros((len(self.labels), self.points))
        rows = np.arange(len(self.labels))
        for column in (rows,) if self.pairs is None else self.pairs.T:
            np.add.at(design, (rows, column), 1.0)
        return design

    @one_blas_thread
    def start(self, generator: np.random.Generator) -> Array:
        """Draw an initial state: standard normal points, A with orthonormal columns or rows, and b = 0.

        The paper starts with AᵀA ≈ I. Here AᵀA = I exactly if there are at least as many outputs as inputs.

        Parameters
        ----------
        generator : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of float64, shape (tokens, dim)
            State, which `unpack` separates.

        Examples
        --------
        >>> import numpy as np, physics
        >>> physics.LinearNetwork([[1.0], [2.0]]).start(np.random.default_rng(0)).shape
        (3, 3)
        """
        x = generator.standard_normal((self.points, self.inputs))
        size = max(self.outputs, self.inputs)
        A = np.linalg.qr(generator.standard_normal((size, size)))[0][: self.outputs, : self.inputs]
        return self.pack(A, np.zeros(self.outputs), x)

    @one_blas_thread
    def loss(self, state: Any) -> Array:
        """Return the loss of states, summed over the samples (Eq. 35).

        Parameters
        ----------
        state : array_like, shape (..., tokens, dim)
            States, as `pack` returns them.

        Returns
        -------
        ndarray of float64, shape (...)
            Loss of each state, with the weight decay.

        Raises
        ------
        InputError
            If `state` is not finite or of another shape.

        Examples
        --------
        >>> import physics
        >>> network = physics.LinearNetwork([[1.0], [2.0]], inputs=1)
        >>> float(network.loss(network.pack([[0.0]], [0.0], [[1.0], [1.0]])))  # ½ (1² + 2²)
        2.5
        """
        A, b, x = self.unpack(state)
        error = self._errors(A, b, x)
        return np.asarray(
            0.5 * np.sum(error**2, axis=(-2, -1))
            + 0.5 * self.decay * len(self.labels) * np.sum(A**2, axis=(-2, -1))
        )

    @one_blas_thread
    def velocity(self, state: Any) -> Array:
        """Return the time derivative of states under gradient descent on the loss (Liu, Eq. 37).

        Parameters
        ----------
        state : array_like, shape (..., tokens, dim)
            States, as `pack` returns them.

        Returns
        -------
        ndarray of float64, shape (..., tokens, dim)
            Derivatives, in the layout of `pack`.

        Raises
        ------
        InputError
            If `state` is not finite or of another shape.

        Examples
        --------
        >>> import physics
        >>> network = physics.LinearNetwork([[1.0]], inputs=1)
        >>> network.velocity(network.pack([[1.0]], [0.0], [[3.0]])).tolist()  # the error is 2
        [[-2.0, 0.0], [-0.6000000000000001, -0.2]]
        """
        self.unpack(state)
        return self._velocity(finite_array("state", state))

    @one_blas_thread
    def internal_energy(self, state: Any) -> Array:
        """Return the part of the loss that remains if every class has its best constant.

        A class c is the m_c samples with one label, r_a is the input of sample a, and the energy is ``½ Σ_c
        (1/m_c) Σ_{a<b in c} |A (r_a - r_b)|²``. It shows how the effective loss emerges from the true one. If
        AᵀA = I and all classes have the same size m, it is the mean of ``|r_a - r_b|²`` over all pairs of
        samples of a class, times their number over 2m.

        Parameters
        ----------
        state : array_like, shape (..., tokens, dim)
            States, as `pack` returns them.

        Returns
        -------
        ndarray of float64, shape (...)
            Energy of each state, in the unit of the loss.

        Raises
        ------
        InputError
            If `state` is not finite or of another shape.

        Examples
        --------
        >>> import physics
        >>> network = physics.LinearNetwork([[1.0], [1.0]], inputs=1)
        >>> float(network.internal_energy(network.pack([[1.0]], [0.0], [[0.0], [2.0]])))  # ½ · ½ · 2²
        1.0
        """
        A, _, x = self.unpack(state)
        r = self.design @ x
        label = np.unique(self.labels, axis=0, return_inverse=True)[1].ravel()
        average = (label[:, None] == label) / np.bincount(label)[label][:, None]
        spread = (r - average @ r) @ A.swapaxes(-1, -2)
        return np.asarray(0.5 * np.sum(spread**2, axis=(-2, -1)))

    @one_blas_thread
    def advance(self, positions: Array, step_size: float, steps: int) -> None:
        """Move an ensemble in place by Runge-Kutta steps of order 4.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            States, as `pack` returns them, which are overwritten.
        step_size : float
            Length of a step, in units of time.
        steps : int

        Examples
        --------
        >>> import numpy as np, physics
        >>> network = physics.LinearNetwork([[4.0]], inputs=1, network_rate=0.0)
        >>> state = network.pack([[2.0]], [0.0], [[0.0]])[None]  # one run
        >>> network.advance(state, step_size=0.01, steps=1000)
        >>> network.unpack(state)[2].round(6).tolist()
        [[[2.0]]]
        """
        with np.errstate(over="ignore", invalid="ignore"):  # `simulate` checks the result
            for _ in range(steps):
                k1 = self._velocity(positions)
                k2 = self._velocity(positions + 0.5 * step_size * k1)
                k3 = self._velocity(positions + 0.5 * step_size * k2)
                k4 = self._velocity(positions + step_size * k3)
                positions += step_size / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def observables(self, positions: Array) -> dict[str, Array]:
        """Measure the quantities that `simulate` records with every frame.

        Parameters
        ----------
        positions : ndarray of float64, shape (runs, tokens, dim)
            States, as `pack` returns them.

        Returns
        -------
        dict of ndarray of float64, shape (runs,) each
            "loss" (Eq. 35) and "internal_energy", as the methods of these names return them.

        Examples
        --------
        >>> import physics
        >>> network = physics.LinearNetwork([[1.0], [2.0]], inputs=1)
        >>> network.observables(network.pack([[0.0]], [0.0], [[1.0], [1.0]])[None])["loss"].tolist()
        [2.5]
        """
        return {"loss": self.loss(positions), "internal_energy": self.internal_energy(positions)}

    def pack(self, A: Any, b: Any, x: Any) -> Array:
        """Combine a decoder and points into one state.

        Parameters
        ----------
        A : array_like, shape (..., outputs, inputs)
            Matrix of the decoder.
        b : array_like, shape (..., outputs)
            Constant of the decoder.
        x : array_like, shape (..., points, inputs)
            Points that move: the inputs of the samples, or the embeddings of the symbols.

        Returns
        -------
        ndarray of float64, shape (..., tokens, dim)
            State, as `simulate` takes and records it.

        Raises
        ------
        InputError
            If shapes do not agree or a value is not finite.

        Examples
        --------
        >>> import physics
        >>> network = physics.LinearNetwork([[1.0], [2.0]], inputs=1)
        >>> network.pack([[3.0]], [4.0], [[5.0], [6.0]]).tolist()
        [[5.0, 0.0], [6.0, 0.0], [3.0, 4.0]]
        """
        A, b, x = finite_array("A", A), finite_array("b", b), finite_array("x", x)
        wanted = (self.outputs, self.inputs), (self.outputs,), (self.points, self.inputs)
        if (A.shape[-2:], b.shape[-1:], x.shape[-2:]) != wanted:
            got = A.shape, b.shape, x.shape
            raise InputError(f"A, b and x must end in the shapes {wanted}, got {got}")
        batch = np.broadcast_shapes(A.shape[:-2], b.shape[:-1], x.shape[:-2])
        state = np.zeros((*batch, self.tokens, self.dim))
        state[..., : self.points, :-1] = x
        state[..., self.points :, :-1] = A
        state[..., self.points :, -1] = b
        return state

    def unpack(self, state: Any) -> tuple[Array, Array, Array]:
        """Separate a state into the decoder and the points; this is the inverse of `pack`.

        Parameters
        ----------
        state : array_like, shape (..., tokens, dim)
            State, such as a frame of a trajectory.

        Returns
        -------
        A, b, x : ndarray of float64, shapes (..., outputs, inputs), (..., outputs) and (..., points, inputs)
            Matrix and constant of the decoder, and the points that move.

        Raises
        ------
        InputError
            If `state` is not finite or of another shape.

        Examples
        --------
        >>> import physics
        >>> network = physics.LinearNetwork([[1.0], [2.0]], inputs=1)
        >>> A, b, x = network.unpack(network.pack([[3.0]], [4.0], [[5.0], [6.0]]))
        >>> A.tolist(), b.tolist(), x.tolist()
        ([[3.0]], [4.0], [[5.0], [6.0]])
        """
        array = finite_array("state", state)
        if array.shape[-2:] != (self.tokens, self.dim):
            raise InputError(f"state must have the shape (..., {self.tokens}, {self.dim}), got {array.shape}")
        return (array[..., self.points :, :-1], array[..., self.points :, -1], array[..., : self.points, :-1])

    def _errors(self, A: Array, b: Array, x: Array) -> Array:
        """Return the error A r + b - y of every sample, (..., samples, outputs)."""
        return np.asarray(self.design @ x @ A.swapaxes(-1, -2) + b[..., None, :] - self.labels)

    def _velocity(self, state: Array) -> Array:
        n = self.points
        A, b, x = state[..., n:, :-1], state[..., n:, -1], state[..., :n, :-1]
        error = self._errors(A, b, x)
        r = self.design @ x
        velocity = np.zeros_like(state)
        slope = error.swapaxes(-1, -2) @ r + len(self.labels) * self.decay * A
        velocity[..., n:, :-1] = -self.network_rate * slope
        velocity[..., n:, -1] = -self.network_rate * error.sum(axis=-2)
        velocity[..., :n, :-1] = -self.input_rate * self.design.T @ (error @ A)
        return velocity
