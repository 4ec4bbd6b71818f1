"""Count the edges between the sources of each row of in-edges; the kernels are in links.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...graph import InRows
from ..adjacency import row_numbers
from ..runtime import source
from .classes import BLOCK


def count_all_links(offsets: Any, lower: Any, times: Any) -> Any:
    """For each vertex, the sum of `times` over the edges between its neighbours; see `kernels.programs`."""
    links = cupy.zeros(len(offsets) - 1, np.uint64)
    if len(lower):
        arguments = (offsets, lower, row_numbers(offsets), times, np.int64(len(lower)), links)
        source.kernel("programs/links:count_all_links")((source.grid(32 * len(lower), BLOCK),), (BLOCK,), arguments)
    return links.view(np.int64)


def count_links(transposed: InRows, one: Any, other: Any, times: Any, links: Any) -> None:
    """Add to each row the `times` of the edges that have both ends in the row; see `kernels.programs`."""
    if len(one):
        arguments = (transposed.offsets, transposed.source, one, other, times, np.int64(len(one)), links)
        source.kernel("programs/links:count_links")((source.grid(32 * len(one), BLOCK),), (BLOCK,), arguments)
