"""Connected components of the sources of rows by union-find, and the smallest value in each; see connected.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ...graph import InRows
from ..runtime import source
from .classes import BLOCK
from .reductions import VALUES

ROUNDS = 2
"""Entries of each row that are linked before the largest component is looked for."""
SAMPLES = 1024
"""Approximate number of sources that are sampled to find the largest component."""


def connected_sources(rows: InRows, own: Any, sources: int, symmetric: bool) -> Any:
    """The smallest source in the component of each source; see `kernels.programs`."""
    root = cupy.arange(sources, dtype=np.int32)
    shape = (source.grid(rows.rows, BLOCK, 16),), (BLOCK,)
    entries = (rows.offsets, np.int64(rows.rows), own, rows.source)
    for at in range(ROUNDS):
        source.kernel("programs/connected:link_one", VALUE=0)(*shape, (*entries, np.int32(at), root))
        _compress(root)
    largest = _most_frequent(root[:: max(1, sources // SAMPLES)].get()) if sources else -1
    rest = (*entries, np.int32(ROUNDS), np.bool_(symmetric), np.int32(largest), root)
    source.kernel("programs/connected:link_rest", VALUE=0)(*shape, rest)
    _compress(root)
    return root


def _most_frequent(values: NDArray[np.int32]) -> int:
    different, times = np.unique(values, return_counts=True)
    return int(different[times.argmax()])


def _compress(root: Any) -> None:
    kernel = source.kernel("programs/connected:compress", VALUE=0)
    kernel((source.grid(len(root), BLOCK, 16),), (BLOCK,), (root, np.int64(len(root))))


def lower_values(root: Any, position: Any, values: Any, least: Any, lowered: Any) -> None:
    """Lower the smallest value of each component; see `kernels.programs`."""
    kernel = source.kernel("programs/connected:lower_values", VALUE=VALUES[least.dtype])
    arguments = (root, position, np.int64(len(position)), values, least, lowered)
    kernel((source.grid(len(position), BLOCK, 16),), (BLOCK,), arguments)


def lowered_rows(root: Any, own: Any, least: Any, lowered: Any) -> tuple[Any, Any]:
    """The rows of lowered components, and their smallest values; see `kernels.programs`."""
    of = root[own]
    rows = cupy.flatnonzero(lowered[of]).astype(np.int32)
    return rows, least[of[rows]]
