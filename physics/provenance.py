"""What a file says of how it was made: plain values that JSON holds."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np


def fields(made_by: Any) -> Mapping[str, Any]:
    """Return the fields of a dataclass, arrays as lists."""
    return {name: plain(value) for name, value in asdict(made_by).items()}


def plain(value: Any) -> Any:
    """Return `value` as JSON holds it: arrays, tuples and what is within become lists and numbers."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value
