"""Tasks: the examples, their labels, and the split into training and validation sets."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import distinct, number, short_text
from physics.errors import InputError
from physics.theory.groups import FiniteGroup

Split = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Task:
    """A task: all its examples with their labels, and which of them may be used for training.

    Attributes
    ----------
    inputs : ndarray, shape (examples, 2) or (examples, features)
        Tokens a and b of each example (int64), or data (floating point).
    labels : ndarray of int64, shape (examples,)
        Class of each example, 0 … classes - 1.
    classes : int
        Number of classes.
    held_out : ndarray of int64, optional
        Indices of examples that are never used for training, such as a test set that comes with the data. If
        there are any, they are the validation set, and other examples that are not used for training are left
        out.
    whole : bool, default False
        Whether all examples may be used for training. The validation set is then empty, and its losses and
        accuracies are NaN.

    Raises
    ------
    InputError
        If a label is not one of the classes.

    Examples
    --------
    >>> import nets, numpy as np
    >>> pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> xor = nets.Task(pairs, pairs.sum(axis=1) % 2, classes=2)
    >>> len(xor), xor.training_size(0.8)
    (4, 3)
    """

    inputs: NDArray[Any]
    labels: NDArray[np.int64]
    classes: int
    held_out: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    whole: bool = False

    def __post_init__(self) -> None:
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < self.classes:
            raise InputError(
                f"labels must be whole numbers from 0 to {self.classes - 1}, got {self.labels.min()} to "
                f"{self.labels.max()}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def training_size(self, fraction: float) -> int:
        """Return the number of training examples for a given fraction.

        Parameters
        ----------
        fraction : float
            Fraction of the examples that are not held out, greater than 0 and at most 1. The resulting number
            is rounded down.

        Returns
        -------
        int
            Number of training examples.

        Raises
        ------
        InputError
            If no training example would be left, or no validation example although the task needs one.

        Examples
        --------
        >>> import nets
        >>> nets.ConstantAttention(7).task.training_size(0.8)  # of 28 pairs
        22
        """
        fraction = number("train_fraction", fraction, maximum=1.0, above=0.0)
        free = len(self) - len(self.held_out)
        size = int(fraction * free + 1e-9)
        spare = not self.whole and not len(self.held_out)
        if not 0 < size <= free - spare:
            need = "training and one validation example" if spare else "training example"
            raise InputError(
                f"train_fraction must leave at least one {need} of {free}, got {distinct(fraction, 1.0)}"
            )
        return size

    def split(self, fraction: float, generator: np.random.Generator) -> Split:
        """Draw a training set at random, and return it with its validation set.

        The validation set is the examples that are held out, or all others if none are.

        Parameters
        ----------
        fraction : float
            Fraction of the examples to train on, greater than 0 and at most 1.
        generator : numpy.random.Generator
            Source of the random choice.

        Returns
        -------
        train, validation : ndarray of int64, shape (examples,)
            Indices of the examples of each set, in increasing order.

        Raises
        ------
        InputError
            If no training example would be left, or no validation example although the task needs one.

        Examples
        --------
        >>> import nets, numpy as np
        >>> train, validation = nets.ConstantAttention(7).task.split(0.8, np.random.default_rng(0))
        >>> len(train), len(validation), np.intersect1d(train, validation).tolist()
        (22, 6, [])
        """
        free = np.setdiff1d(np.arange(len(self)), self.held_out)
        order = generator.permutation(free)
        size = self.training_size(fraction)
        return np.sort(order[:size]), np.sort(order[size:] if not len(self.held_out) else self.held_out)

    def given_split(self, train: Any, validation: Any = None) -> Split:
        """Check a given training set, and return it with its validation set.

        Parameters
        ----------
        train : sequence of int
            Indices of the training examples.
        validation : sequence of int, optional
            Indices of the validation examples. By default they are those that are held out, or all others.

        Returns
        -------
        train, validation : ndarray of int64, shape (examples,)
            Indices of the examples of each set, in increasing order.

        Raises
        ------
        InputError
            If a set is empty, repeats an example or names one that does not exist, or if the sets overlap.

        Examples
        --------
        >>> import nets
        >>> train, validation = nets.ConstantAttention(3).task.given_split([4, 0, 1])
        >>> train.tolist(), validation.tolist()
        ([0, 1, 4], [2, 3, 5])
        """
        training = self._indices("train_examples", train)
        candidates = self.held_out if len(self.held_out) else np.arange(len(self))
        rest = np.setdiff1d(candidates, training)
        validating = rest if validation is None else self._indices("validation_examples", validation)
        both = np.intersect1d(training, validating)
        if len(both):
            raise InputError(
                f"validation_examples must have no example in common with train_examples, got "
                f"{len(both)}, the first of them example {both[0]}"
            )
        if not len(validating) and not self.whole:
            raise InputError("train_examples must leave an example to validate on, got all of them")
        return training, validating

    def _indices(self, name: str, value: Any) -> NDArray[np.int64]:
        """Return checked indices of examples in increasing order; messages call the argument `name`."""
        indices = np.asarray(value)
        if indices.ndim != 1 or not indices.size or indices.dtype.kind not in "iu":
            raise InputError(
                f"{name} must be a non-empty list of numbers of examples, got {short_text(value)}"
            )
        unique = np.unique(indices).astype(np.int64)
        if len(unique) != len(indices) or unique[0] < 0 or unique[-1] >= len(self):
            raise InputError(
                f"{name} must name each example once, by numbers from 0 to {len(self) - 1}, got "
                f"{len(indices) - len(unique)} repeated and numbers from {unique[0]} to {unique[-1]}"
            )
        return unique


def modular_addition(tokens: int, *, ordered: bool = False, whole: bool = False) -> Task:
    """Return the task of addition modulo `tokens`: pairs with the label (a + b) mod tokens.

    Parameters
    ----------
    tokens : int
        Number of tokens, which is the modulus.
    ordered : bool, default False
        Whether the pairs are all tokens² ordered ones (Ding et al. §2), or the unordered ones, a ≤ b (Musat
        §3).
    whole : bool, default False
        Whether training may use all of them.

    Returns
    -------
    Task
        Inputs (examples, 2) and labels (examples,) of int64, and as many classes as tokens.
    """
    inputs = _pairs(tokens, ordered)
    return Task(inputs, inputs.sum(axis=1) % tokens, tokens, whole=whole)


def addition(tokens: int) -> Task:
    """Return the task of plain addition (Liu §2): pairs a ≤ b with the label a + b.

    For `tokens` tokens p, the task has p (p + 1)/2 examples, (examples, 2) of int64, and 2p - 1 classes, one
    for each sum.
    """
    inputs = _pairs(tokens, ordered=False)
    return Task(inputs, inputs.sum(axis=1), 2 * tokens - 1)


def group_products(group: FiniteGroup) -> Task:
    """Return the task of a group (Liu, Appendix H): all ordered pairs with the label a ∘ b.

    A `group` of order n gives n² examples, (examples, 2) of int64, and n classes, one for each element.
    """
    inputs = _pairs(group.order, ordered=True)
    return Task(inputs, group.table[inputs[:, 0], inputs[:, 1]].astype(np.int64), group.order)


def _pairs(tokens: int, ordered: bool) -> NDArray[np.int64]:
    """Return all pairs of tokens (n, 2): ordered, or unordered with a ≤ b."""
    if ordered:
        return np.indices((tokens, tokens)).reshape(2, -1).T.astype(np.int64)
    return np.stack(np.triu_indices(tokens), axis=1).astype(np.int64)
