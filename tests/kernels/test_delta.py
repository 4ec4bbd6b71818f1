"""Integers that a GPU encodes as Parquet's DELTA_BINARY_PACKED."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from delta_pages import pages_of

RANDOM = np.random.default_rng(5)
VALUES = {
    "one": np.array([7]),
    "two": np.array([7, -9]),
    "equal": np.full(1000, 3),
    "ascending": np.arange(1000) * 3,
    "of a block": RANDOM.integers(0, 50, 129),
    "of a part": RANDOM.integers(0, 2, 33),
    "small": RANDOM.integers(0, 1000, 10_001),
    "signed": RANDOM.integers(-(2**31), 2**31, 5000),
    "the ends": np.array([2**31 - 1, -(2**31), 2**31 - 1, 0, -(2**31), -1] * 50),
    "with zeros": np.repeat(RANDOM.integers(0, 9, 40), 97),
}
LONG = {
    "signed": RANDOM.integers(-(2**63), 2**63, 3001),
    "the ends": np.array([2**63 - 1, -(2**63), 2**63 - 1, 0, -(2**63), -1] * 50),
    "35 bits": RANDOM.integers(0, 2**35, 3001),
}


def cases() -> list[tuple[str, NDArray[np.int32] | NDArray[np.int64]]]:
    own: list[tuple[str, NDArray[np.int32] | NDArray[np.int64]]] = []
    own += [(f"int32 {name}", values.astype(np.int32)) for name, values in VALUES.items()]
    return own + [(f"int64 {name}", values.astype(np.int64)) for name, values in (VALUES | LONG).items()]


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 128, 129, 1000, 10**6])
@pytest.mark.parametrize("values", [pytest.param(values, id=name) for name, values in cases()])
def test_as_the_reference_does(values: NDArray[np.int32] | NDArray[np.int64], rows: int) -> None:
    """Pages of `rows` values at most, from the second value on if there are several."""
    import cupy

    from edgemill.kernels.gpu import delta

    start = min(1, len(values) - 1)
    starts = np.array([*range(start, len(values), rows), len(values)], np.int64)
    found, right = delta.encode(cupy.asarray(values), starts), pages_of(values, starts)
    assert found.offsets.tolist() == right.offsets.tolist()
    assert found.content.tobytes() == right.content.tobytes()
    assert found.checksum.tolist() == right.checksum.tolist()
    assert found.smallest.tolist() == right.smallest.tolist()
    assert found.largest.tolist() == right.largest.tolist()
