"""Checks of arrays. A ValueError says which argument is wrong, and gives its first wrong element."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def not_negative(name: str, given: ArrayLike) -> Array:
    array = np.asarray(given, np.float64)
    check(name, array)
    return array


def positive(name: str, given: ArrayLike) -> Array:
    array = not_negative(name, given)
    refuse(name, array, array == 0, "positive")
    return array


def check(name: str, array: NDArray[np.floating[Any]]) -> None:
    """Raises ValueError unless all are finite and not negative."""
    # min and max return NaN if there is one, and the comparison then fails. isfinite would need another array.
    if array.size and not (array.min() >= 0 and array.max() < math.inf):
        refuse(name, array, ~((array >= 0) & (array < math.inf)), "finite and not negative")


def refuse(name: str, array: NDArray[Any], wrong: NDArray[np.bool], wanted: str) -> None:
    """Raises ValueError if any element is wrong."""
    if wrong.any():
        where = np.unravel_index(int(wrong.argmax()), array.shape)
        place = f"[{', '.join(map(str, where))}]" if where else ""
        raise ValueError(f"{name}{place} must be {wanted}, got {array[where]}")
