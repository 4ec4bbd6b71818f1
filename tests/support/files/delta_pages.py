"""Pages in the encoding DELTA_BINARY_PACKED, made value by value, as the reference of those that a GPU makes."""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from edgemill.kernels.gpu.delta import Pages


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _wrapped(value: int, bits: int) -> int:
    """The signed integer of `bits` bits that is equal modulo 2^bits."""
    half = 1 << bits - 1
    return (value + half) % (2 * half) - half


def page_of(values: list[int], bits: int) -> bytes:
    """A page of signed integers of `bits` bits, all of which are there."""
    levels = _varint(len(values) << 1) + b"\1"
    found = [len(levels).to_bytes(4, "little"), levels]
    found += [_varint(128), _varint(4), _varint(len(values)), _zigzag(values[0])]
    steps = [_wrapped(b - a, bits) for a, b in pairwise(values)]
    for start in range(0, len(steps), 128):
        block = steps[start : start + 128]
        least = min(block)
        parts = [[(step - least) % 2**bits for step in block[at : at + 32]] for at in range(0, 128, 32)]
        widths = [max(part, default=0).bit_length() for part in parts]
        found += [_zigzag(least), bytes(widths)]
        for part, width in zip(parts, widths, strict=True):
            if part:
                packed = sum(value << width * i for i, value in enumerate(part))
                found.append(packed.to_bytes(4 * width, "little"))
    return b"".join(found)


def pages_of(values: NDArray[np.int32] | NDArray[np.int64], starts: NDArray[np.int64]) -> Pages:
    """As `kernels.gpu.delta.encode`, of an array on the host."""
    parts = [values[start:stop] for start, stop in pairwise(starts.tolist())]
    bodies = [page_of(part.tolist(), 8 * values.itemsize) for part in parts]
    return Pages(
        np.frombuffer(b"".join(bodies), np.uint8),
        np.cumsum([0, *map(len, bodies)]),
        np.array([crc32(body) for body in bodies], np.uint32),
        np.array([part.min() for part in parts], np.int64),
        np.array([part.max() for part in parts], np.int64),
    )
