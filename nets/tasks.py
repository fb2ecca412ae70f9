"""Tasks: the examples, their labels, and the split into training and validation sets."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from physics.checks import InputError, distinct, flag, misfit, number, regular_array, short_text, whole_number
from physics.theory.operations import FiniteGroup
from physics.values import Shown, Value

Split = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Task(Shown, Value):
    """A task: all its examples with their labels, and which of them may be used for training.

    Arrays are checked when a task is made, since the kernels trust them. Whole numbers become int64.

    Attributes
    ----------
    inputs : array_like, shape (examples, 2) or (examples, features)
        Tokens a and b of each example (whole numbers), or data (floating point).
    labels : array_like of int, shape (examples,)
        Class of each example, 0 … classes - 1.
    classes : int
        Number of classes.
    held_out : array_like of int, optional
        Indices of examples that are never drawn for training, such as a test set that comes with the data. If
        there are any, they are the validation set, and other examples that are not used for training are left
        out. `given_split` may choose otherwise.
    whole : bool, default False
        Whether all examples may be used for training. If they are, the validation set is empty, and its
        losses and accuracies are NaN.

    Raises
    ------
    InputError
        If a label is not one of the classes, if there are not as many labels as inputs, if `held_out` names
        an example that there is not or one twice, or if an array has another shape or kind of number.

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
        whole_number("classes", self.classes, 1)
        flag("whole", self.whole)
        inputs = regular_array("inputs", self.inputs)
        if inputs.dtype.kind in "iu":
            inputs = inputs.astype(np.int64, copy=False)
        elif inputs.dtype.kind != "f" or not np.isfinite(inputs).all():
            raise InputError(f"inputs must be whole numbers or finite data, got {short_text(self.inputs)}")
        labels = _numbers_below(self.classes, "labels", self.labels)
        if inputs.ndim < 2 or len(inputs) != len(labels):
            raise misfit("inputs", inputs, f"have the shape ({len(labels)}, …), a row for each label")
        self._set(inputs=inputs, labels=labels, held_out=_examples(len(labels), "held_out", self.held_out))

    def __len__(self) -> int:
        return len(self.labels)

    def training_size(self, fraction: float | None) -> int:
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
            If `fraction` is out of its range, if no training example would be left, or if no validation
            example would be left although `whole` is false.

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
            got = distinct(fraction, 1.0)
            raise InputError(f"train_fraction must leave at least one {need} of {free}, got {got}")
        return size

    def split(self, fraction: float | None, generator: np.random.Generator) -> Split:
        """Draw a training set at random, and return it with its validation set.

        The validation set is the examples that are held out. If none are, it is all examples that are not
        used for training.

        Parameters
        ----------
        fraction : float
            Fraction of the examples that are not held out, greater than 0 and at most 1.
        generator : numpy.random.Generator
            Source of the random choice.

        Returns
        -------
        train, validation : ndarray of int64, shape (examples,)
            Indices of the examples of each set, in increasing order.

        Raises
        ------
        InputError
            As in `training_size`.

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
            Indices of the validation examples. By default they are the examples that are held out, or, if
            none are, all examples that are not used for training.

        Returns
        -------
        train, validation : ndarray of int64, shape (examples,)
            Indices of the examples of each set, in increasing order.

        Raises
        ------
        InputError
            If a given set is empty, repeats an example or names one that does not exist, if the sets overlap,
            or if no validation example is left although `whole` is false.

        Examples
        --------
        >>> import nets
        >>> train, validation = nets.ConstantAttention(3).task.given_split([4, 0, 1])
        >>> train.tolist(), validation.tolist()
        ([0, 1, 4], [2, 3, 5])
        """
        training = _examples(len(self), "train_examples", train)
        candidates = self.held_out if len(self.held_out) else np.arange(len(self))
        validating = np.setdiff1d(candidates, training)
        if validation is not None:
            validating = _examples(len(self), "validation_examples", validation)
        both = np.intersect1d(training, validating)
        if len(both):
            got = f"{len(both)}, the first of them example {both[0]}"
            raise InputError(f"validation_examples must share no example with train_examples, got {got}")
        if not len(training) or not (len(validating) or self.whole):
            need = f"name an example, and leave one of {len(candidates)} to validate on"
            raise InputError(f"train_examples must {need}, got {len(training)}")
        return training, validating


def _numbers_below(count: int, name: str, value: Any) -> NDArray[np.int64]:
    """Return `value`, whole numbers (n,) from 0 to `count` - 1, as int64; refuse all others."""
    array = regular_array(name, value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be whole numbers with one axis, got {short_text(value)}")
    if array.size and not 0 <= array.min() <= array.max() < count:
        got = f"{array.min()} to {array.max()}"
        raise InputError(f"{name} must be whole numbers from 0 to {count - 1}, got {got}")
    return array.astype(np.int64, copy=False)


def _examples(count: int, name: str, value: Any) -> NDArray[np.int64]:
    """Return the numbers of some of `count` examples in increasing order; refuse one that is named twice."""
    examples = np.unique(numbers := _numbers_below(count, name, value))
    if len(examples) < len(numbers):
        raise InputError(f"{name} must name each example once, got {short_text(value)}")
    return examples


def modular_addition(tokens: int, *, ordered: bool = False, whole: bool = False) -> Task:
    """Return the task of addition modulo `tokens`: pairs of tokens a, b with the label (a + b) mod tokens.

    The pairs are all ordered ones (Ding et al. §2), or those with a ≤ b (Musat §3) unless `ordered`. If
    `whole`, all of them may be used for training.
    """
    inputs = _pairs(tokens, ordered)
    return Task(inputs, inputs.sum(axis=1) % tokens, tokens, whole=whole)


def addition(tokens: int) -> Task:
    """Return the task of plain addition (Liu et al. §2): pairs of tokens a ≤ b with the label a + b.

    The labels are 0 to 2 (tokens - 1), one for each sum.
    """
    inputs = _pairs(tokens, ordered=False)
    return Task(inputs, inputs.sum(axis=1), 2 * tokens - 1)


def group_products(group: FiniteGroup) -> Task:
    """Return the task of a group (Liu et al., Appendix H): all ordered pairs a, b with the label a ∘ b."""
    inputs = _pairs(group.order, ordered=True)
    return Task(inputs, group.table[inputs[:, 0], inputs[:, 1]].astype(np.int64), group.order)


def _pairs(tokens: int, ordered: bool) -> NDArray[np.int64]:
    """Return all pairs of tokens (n, 2): ordered, or unordered with a ≤ b."""
    if ordered:
        return np.indices((tokens, tokens)).reshape(2, -1).T.astype(np.int64)
    return np.stack(np.triu_indices(tokens), axis=1).astype(np.int64)
