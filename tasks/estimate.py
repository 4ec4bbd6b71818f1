"""What a plan knows of a graph before it is read: edges, vertices, copies of an edge, bytes of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .counting import Guess, count_edges, count_vertices
from .replication import Copies, Witnesses, find_witnesses
from .sampling import Sample, take_sample
from .sources import Source
from .writing import packed_bytes

_VERTEX_VALUES = 2.9
"""Degree, triangles and λ of a vertex together, as a multiple of its degree alone. Measured: 1.4 to 3.3."""
_GROUP_BYTES = 2.0
"""What dense groups add for each vertex. Measured: 1.0 to 6.3, most where all are in small DN-graphs."""
_MOST_PACKED = 200_000
"""Rows that are packed to see what they take."""
_TEXT = 0.35
"""What is left of text that is sorted, or stands in a dictionary, when it is compressed."""
_VALUES = 1.9
"""Support and λ of an edge together, as a multiple of its support alone."""
_SCATTERED_BYTES = 1.5
"""Larger ends that take less lie close together, and so do equal supports."""
_EDGE_ROW_BYTES = 24
"""An edge's ids, support and λ as they are in memory."""
_VERTEX_ROWS_BYTES = 100
"""The same of a vertex, of its membership of a DN-graph, and of a component and a DN-graph for each."""


@dataclass(frozen=True)
class Figures:
    """What is told of a graph, whatever its partitions."""

    rows_looked_at: int

    edges: Guess

    vertices: Guess

    with_triangles: float
    """Share of the edges that have triangles."""

    id_bytes: float
    """Length of an id; of an integer, 8."""

    id_span: int
    """Integers from the smallest to the largest id that was seen; 0 of strings."""

    output_bytes: int
    """All tables of the result."""


@dataclass(frozen=True)
class Estimate:
    """What a sample tells of the input. Holds the sample: to be let go when its figures are known."""

    source: Source
    sample: Sample
    edges: Guess
    vertices: Guess

    @property
    def id_bytes(self) -> float:
        """Length of an id, if ids are strings; of an integer, 8."""
        ids = self.sample.ids
        if not isinstance(ids, pa.Array):
            return 8.0
        return float(ids.nbytes / len(ids) - 8) if len(ids) else 0.0

    @property
    def id_span(self) -> int:
        """Integers from the smallest id to the largest; 0 of strings."""
        ids = self.sample.ids
        return 0 if isinstance(ids, pa.Array) or not len(ids) else int(ids[-1]) - int(ids[0]) + 1

    @cached_property
    def witnesses(self) -> Witnesses:
        """Edges whose triangles are known."""
        return find_witnesses(self.sample)

    def figures(self, compression: str) -> Figures:
        """What it comes to, for an output of that compression."""
        with_triangles = self.witnesses.with_triangles
        rows, output = self.sample.rows_read, self.output_bytes(compression)
        return Figures(rows, self.edges, self.vertices, with_triangles, self.id_bytes, self.id_span, output)

    def copies(self, method: str, partitions: int) -> Copies:
        """Copies of an edge over so many partitions, by a partitioning method."""
        return self.witnesses.copies(method, partitions)

    def output_bytes(self, compression: str) -> int:
        """All tables of the result, from the columns that are known of the vertices in S, packed as they will be."""
        sample = self.sample
        rows = np.flatnonzero(
            sample.picked[sample.low]
        )  # of a vertex there are all its rows, in the order of the table
        if not len(rows):
            return 0
        _, low = np.unique(sample.low[rows], return_inverse=True)
        high = sample.high[rows]
        edge = self._packed(low, compression)
        edge += self._packed(high if self.source.kind == "string" else sample.ids[high], compression)
        edge += _VALUES * self._packed(self.witnesses.support, compression) * min(1.0, edge / _SCATTERED_BYTES)
        seen = np.bincount(np.concatenate([sample.low, sample.high]), minlength=len(sample.picked))
        vertex = _GROUP_BYTES + _VERTEX_VALUES * self._packed(seen[sample.picked], compression)
        if self.source.kind == "string":
            vertex += 2 * _TEXT * self.id_bytes
        return round(self.edges.likely * edge + self.vertices.likely * vertex)

    def _packed(self, values: NDArray[Any], compression: str) -> float:
        """Bytes a value of a column of numbers takes."""
        return packed_bytes([pa.array(values)], compression) / len(values) if len(values) else 0.0


def at_most(source: Source) -> Figures:
    """The most that the rows, integers, can come to; nothing but the footers is looked at. Their number must be known,
    or the most that it can be.
    """
    low, high = source.id_range or (0, 2**63 - 1)
    rows = source.rows if source.most_rows is None else source.most_rows
    vertices = min(2 * rows, high - low + 1)
    return Figures(
        rows_looked_at=0,
        edges=Guess(rows, 0, rows),
        vertices=Guess(vertices, 0, vertices),
        with_triangles=1.0,
        id_bytes=8.0,
        id_span=high - low + 1,
        output_bytes=rows * _EDGE_ROW_BYTES + vertices * _VERTEX_ROWS_BYTES,
    )


def estimate(source: Source, most_rows: int) -> Estimate:
    """Look at `most_rows` rows of the input, about; at all, if there are no more. Raises InputError."""
    sample = take_sample(source, most_rows)
    pa.default_memory_pool().release_unused()  # Arrow would keep what it took to read it
    return Estimate(source, sample, count_edges(sample), count_vertices(sample))
