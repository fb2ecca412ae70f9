"""Which axis of an array is the tokens, and which tokens are the numbers 0 to p - 1."""

import re
from collections.abc import Container, Mapping

from physics.errors import FileFormatError, InputError

MODULUS = ("modulus", "p", "prime", "mod", "P", "C", "prime_p", "n_tokens_mod")
"""Names under which programs store the modulus."""
EMBEDDING = re.compile(r"(?i)(?:^|\.)(?:[^.]*emb[^.]*|wte|wpe)\.weight$")
"""Names of the weights of torch.nn.Embedding, whose axes are (tokens, dim)."""


def fits(count: int, modulus: int) -> bool:
    """Whether an axis can hold the numbers 0 to p - 1, and up to nine other signs, or a second operand."""
    return modulus <= count < min(2 * modulus, modulus + 10) or count == 2 * modulus


def axes_of(
    name: str,
    shape: tuple[int, ...],
    vectors: Container[str],
    stated: Mapping[str, int],
    modulus: int | None,
    transpose: bool | None,
    chosen: bool,
    notes: list[str],
) -> tuple[bool, int | None]:
    """Return whether the last axis is the tokens, and the modulus, or ask with an `InputError`.

    `vectors` are the names of arrays of one axis, such as biases; `stated` are possible moduli in the file,
    by where they stand; `modulus` and `transpose` are the user's, and `chosen` says that he names the tokens.
    What is assumed is added to `notes`.
    """
    *_, first, last = shape
    if modulus is None:
        fitting = {where: p for where, p in stated.items() if p > 2 and (fits(first, p) or fits(last, p))}
        reasons = ", ".join(f"{p} ({where})" for where, p in fitting.items())
        if len(set(fitting.values())) > 1:
            raise InputError(f"modulus must say which of these is the modulus: {reasons}")
        if fitting:
            modulus = next(iter(fitting.values()))
            notes.append(f"the modulus is {reasons}")
    linear = name.endswith("weight") and name.removesuffix("weight") + "bias" in vectors
    embedding = bool(EMBEDDING.search(name)) and not linear
    swap = transpose
    if swap is None and modulus is not None:
        here = fits(first, modulus)
        there = fits(last, modulus) and (last == modulus or not embedding)
        if here != there:
            swap = there
            if there:
                notes.append(f"the matrix is transposed: its last axis, of length {last}, is the tokens")
        elif not here and not chosen:
            got = f"{modulus} for {name} with {first} and {last}; tokens=FIRST:END states the numbers"
            raise InputError(f"modulus must be the length of an axis, got {got}")
    if swap is None and embedding:
        swap = False
        if modulus is None:
            notes.append(f"the tokens are the first axis, as in torch.nn.Embedding, by the name {name}")
    if swap is None and min(first, last) < 3:
        swap = False
    if swap is None:
        states = "" if modulus else "modulus=P states their number without signs such as '=', and "
        advice = f"{states}transpose=True takes the last axis, transpose=False the one before it"
        raise InputError(
            f"{name} has the axes {first} and {last}, and nothing says which is tokens: {advice}"
        )
    count = last if swap else first
    if count < 3 or 0 in shape:
        raise FileFormatError(f"{name} must have at least 3 tokens and 1 dimension, got {shape}")
    if chosen:
        return swap, modulus
    if modulus is not None and not fits(count, modulus):
        raise InputError(f"modulus must be the number of tokens, {count} in {name}, got {modulus}")
    if modulus is not None and count > modulus:
        notes.append(f"of {count} tokens the first {modulus} are kept, as the modulus is {modulus}")
    if modulus is None:
        notes.append(
            f"no modulus is known: analysis takes the {count} tokens as the numbers 0 to {count - 1}; "
            "modulus=P leaves out signs such as '='"
        )
    return swap, modulus
