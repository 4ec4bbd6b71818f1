"""Whether text has numbers alone that are written as integers print, or that a parser of integers refuses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..runtime.cache import cached_njit


@cached_njit
def _are_plain(codes, delimiter):
    """One pass without branches over bytes, so that the compiler keeps the states in registers."""
    plain, starts, zero, minus = True, True, False, False
    for i in range(codes.size):
        code = codes[i]
        digit = np.uint8(code - np.uint8(48)) <= np.uint8(9)
        ends = (code == delimiter) | (code == np.uint8(10)) | (code == np.uint8(13))
        others = (code == np.uint8(46)) | (code == np.uint8(43)) | (code == np.uint8(45))
        others |= (code == np.uint8(69)) | (code == np.uint8(101))
        plain &= digit | ends | others
        plain &= not ((zero & digit) | (minus & (code == np.uint8(48))))
        zero = starts & (code == np.uint8(48))
        minus = starts & (code == np.uint8(45))
        starts = ends
    return plain


def are_plain_numbers(text: bytes, delimiter: int) -> bool:
    """Whether the text has only digits, signs, points, exponents, line ends and the byte `delimiter`, and no field in
    it begins with a zero before a digit, or with -0. The text begins with a field.

    It reads each byte once, and releases the GIL: NumPy would take and release it for each operation.
    """
    codes: NDArray[np.uint8] = np.frombuffer(text, np.uint8)
    return bool(_are_plain(codes, np.uint8(delimiter)))
