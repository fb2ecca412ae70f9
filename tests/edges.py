"""The edge of what is allowed: the last value is taken, and the next one is refused in a sentence."""

import pytest

from physics import InputError


def taken_and_refused(call, taken, refused, sentence):
    """Check that `call` takes a value, and refuses another with an `InputError` of exactly this sentence."""
    call(taken)
    with pytest.raises(InputError) as said:
        call(refused)
    assert str(said.value) == sentence
