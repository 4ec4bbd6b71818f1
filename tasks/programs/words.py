"""Messages between groups as arrays of 32-bit words: JSON values for all groups, and columns of values for one.

Words of columns lie where the columns do, in host or in GPU memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.arrays.indexing import copy_words, gather_words, scatter_words
from ...kernels.graph import IntArray
from ..device import place_like
from ..shards.carriers.carrier import Words
from .program import Array

NO_WORDS: Words = np.empty(0, np.uint32)
"""An empty message."""


def json_to_words(content: Any) -> Words:
    """Encode a value that JSON can represent."""
    text = json.dumps(content).encode()
    padded = text + bytes(-len(text) % 4)
    return np.concatenate([np.array([len(text)], np.uint32), np.frombuffer(padded, np.uint32)])


def words_to_json(words: Words) -> Any:
    """Decode the result of `json_to_words`."""
    return json.loads(words[1:].tobytes()[: int(words[0])])


def pack(*columns: Array) -> Words:
    """Concatenate arrays of equal length with elements of four or eight bytes, all in host or all in GPU memory.

    The words of a single array may share its memory.
    """
    words = [_contiguous(column).view(np.uint32) for column in columns]
    return words[0] if len(words) == 1 else np.concatenate(words)


def unpack(words: Words, types: Sequence[Any], like: Array | None = None) -> list[Array]:
    """The arrays of `pack`, by their types, in the memory of `like`, or of the host.

    Copies: words are valid until the next exchange only.
    """
    widths = [np.dtype(kind).itemsize // 4 for kind in types]
    count = len(words) // sum(widths)
    found: list[NDArray[Any]] = []
    first = 0
    for kind, width in zip(types, widths, strict=True):
        column = words[first : first + width * count].copy().view(kind)
        found.append(kernels.to_host(column) if like is None else place_like(like, column))
        first += width * count
    return found


def pack_rows(values: Array, rows: IntArray, head: Words = NO_WORDS) -> Words:
    """The words `head`, and then those of `values[rows]`."""
    if not kernels.on_host(values):
        words = pack(values[rows])
        return np.concatenate([place_like(words, head), words]) if len(head) else words
    words = np.empty(len(head) + len(rows) * values.itemsize // 4, np.uint32)
    words[: len(head)] = head
    gather_words(_contiguous(values), rows, words[len(head) :])
    return words


def unpack_to(values: Array, rows: IntArray | slice, words: Words) -> None:
    """Write the values of `pack_rows`, without a head, to `values[rows]`. No row comes twice."""
    if isinstance(rows, slice):
        part = values[rows].view(np.uint32)
        if kernels.on_host(values):
            copy_words(words, part)
        else:
            part[:] = place_like(part, words)
    elif kernels.on_host(values):
        scatter_words(words, rows, values)
    else:
        values[rows] = unpack(words, [values.dtype], values)[0]


def _contiguous(values: Array) -> Array:
    return values if values.flags.c_contiguous else values.copy()
