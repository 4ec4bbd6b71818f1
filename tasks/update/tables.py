"""The graph of a published result, read from its tables of vertices and edges."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.graph import Topology
from ..errors import InputError
from ..ids import identity
from ..ids.id_types import to_internal
from .merging import NumberedGraph


def graph_of(vertices: pa.ChunkedArray, source: pa.ChunkedArray, target: pa.ChunkedArray) -> NumberedGraph:
    """The graph whose vertices have these ids, ascending, with edges from `source` to `target`, sorted by both.

    All columns have one type. Raises InputError if an edge has an end that is no vertex, or if the rows are not sorted.
    """
    ids = to_internal(vertices, vertices.type)
    low, high = (_numbers(ids, to_internal(end, vertices.type)) for end in (source, target))
    key = (low.astype(np.int64) << 32) | high
    if (low >= high).any() or (key[1:] <= key[:-1]).any():
        raise InputError("the result is damaged: its edges are not sorted by their ends")
    return NumberedGraph(ids, Topology(low, high, len(ids)))


def _numbers(ids: identity.Ids, ends: identity.Ids) -> NDArray[np.int32]:
    if not len(ends):
        return np.zeros(0, np.int32)
    known, _, numbers = identity.encode(ids, ends)
    if len(known) != len(ids):
        raise InputError("the result is damaged: an end of an edge is not in its table of vertices")
    return numbers
