"""What groups tell each other in an exchange, as words: texts for all, and values of vertices for one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..shards.carrier import Words
from .program import Array

NOTHING: Words = np.empty(0, np.uint32)


def as_words(content: Any) -> Words:
    """Something that JSON can hold."""
    text = json.dumps(content).encode()
    padded = text + bytes(-len(text) % 4)
    return np.concatenate([np.array([len(text)], np.uint32), np.frombuffer(padded, np.uint32)])


def from_words(words: Words) -> Any:
    """What `as_words` was given."""
    return json.loads(words[1:].tobytes()[: int(words[0])])


def pack(*columns: Array) -> Words:
    """Arrays of the same length, of elements of four or eight bytes each."""
    return np.concatenate([np.ascontiguousarray(column).view(np.uint32) for column in columns])


def unpack(words: Words, types: Sequence[Any]) -> list[Array]:
    """The arrays of `pack`, by their types; copies, since words are valid until the next exchange only."""
    widths = [np.dtype(kind).itemsize // 4 for kind in types]
    count = len(words) // sum(widths)
    found: list[NDArray[Any]] = []
    first = 0
    for kind, width in zip(types, widths, strict=True):
        found.append(words[first : first + width * count].copy().view(kind))
        first += width * count
    return found
