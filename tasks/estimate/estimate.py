"""The estimate that a plan is based on: edges, vertices, triangles, bytes of the result's tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..inputs.sources import Source
from ..publish.writing import packed_bytes
from .sampling import EstimatedCount, Sample, Witnesses, count_edges, count_vertices, find_witnesses, take_sample

_VERTEX_VALUES = 2.9
"""Degree, triangles and λ of a vertex together, as a multiple of its degree alone. Measured: 1.4 to 3.3."""
_GROUP_BYTES = 2.0
"""Bytes that dense groups add per vertex. Measured: 1.0 to 6.3, largest if all vertices are in small DN-graphs."""
_TEXT = 0.35
"""Compressed size of sorted or dictionary-encoded text, as a share of its size."""
_VALUES = 1.9
"""Support and λ of an edge together, as a multiple of its support alone."""
_SCATTERED_BYTES = 1.5
"""If larger ends take fewer bytes than this, they are clustered, and so are equal supports."""
_EDGE_ROW_BYTES = 24
"""Uncompressed bytes of an edge's ids, support and λ."""
_VERTEX_ROWS_BYTES = 100
"""Uncompressed bytes of a vertex, its membership of a DN-graph, and one component and DN-graph per vertex."""
_ID_BYTES = 8
"""Bytes of each of the two ids in both of these, if ids are integers."""
_LENGTH_BYTES = 4
"""Bytes that Parquet adds to each text."""


@dataclass(frozen=True)
class GraphEstimate:
    """Estimates of a graph that do not depend on partitions."""

    rows_looked_at: int
    """Rows of the input that were read."""

    edges: EstimatedCount

    vertices: EstimatedCount

    with_triangles: float
    """Share of the edges with triangles."""

    id_bytes: float
    """Mean bytes of an id; 8 for integers."""

    id_span: int
    """Size of the range from the smallest to the largest sampled id; 0 for strings."""

    output_bytes: int
    """Bytes of all tables of the result."""

    triangles: int | None = None
    """Triangles of the graph; None if the sample does not tell, or nothing was sampled."""

    @property
    def is_bound(self) -> bool:
        """Whether these are upper bounds, as no row was read."""
        return self.rows_looked_at == 0


@dataclass(frozen=True)
class Estimate:
    """A sample of the input with estimates. Holds the sample, so it should be dropped after use."""

    source: Source
    sample: Sample
    edges: EstimatedCount
    vertices: EstimatedCount

    @property
    def id_bytes(self) -> float:
        """Mean bytes of an id; 8 for integers."""
        ids = self.sample.ids
        if not isinstance(ids, pa.Array):
            return 8.0
        return float(ids.nbytes / len(ids) - 8) if len(ids) else 0.0

    @property
    def id_span(self) -> int:
        """Size of the range of sampled ids; 0 for strings."""
        ids = self.sample.ids
        return 0 if isinstance(ids, pa.Array) or not len(ids) else int(ids[-1]) - int(ids[0]) + 1

    @cached_property
    def witnesses(self) -> Witnesses:
        """Sampled edges with their triangles."""
        return find_witnesses(self.sample)

    def for_output(self, compression: str) -> GraphEstimate:
        """The estimates, for an output with that Parquet compression."""
        with_triangles = self.witnesses.with_triangles
        rows, output = self.sample.rows_read, self.output_bytes(compression)
        ids, mean = (self.id_bytes, self.id_span), self.witnesses.mean_triangles
        triangles = None if mean is None else round(self.edges.likely * mean / 3)
        return GraphEstimate(rows, self.edges, self.vertices, with_triangles, *ids, output, triangles)

    def output_bytes(self, compression: str) -> int:
        """Bytes of all tables of the result, from the compressed columns of the vertices in S."""
        sample = self.sample
        # The sample has all rows of a vertex in S, in the order of the table.
        rows = np.flatnonzero(sample.picked[sample.low])
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
        """Compressed bytes per value of a column of numbers."""
        return packed_bytes([pa.array(values)], compression) / len(values) if len(values) else 0.0


def upper_bounds(source: Source) -> GraphEstimate | None:
    """Upper bounds from the footers alone; None if they do not tell the number of rows, or that of bytes of texts."""
    rows, text = source.most_rows, 0.0
    if rows is None:
        return None
    vertices, id_bytes, span = 2 * rows, float(_ID_BYTES), 0
    if source.kind == "integer":
        low, high = source.id_range or (0, 2**63 - 1)
        span = high - low + 1
        vertices = min(vertices, span)
    elif source.most_id_bytes is None:
        return None
    else:
        id_bytes = source.most_id_bytes
        text = max(0.0, id_bytes + _LENGTH_BYTES - _ID_BYTES)
    return GraphEstimate(
        rows_looked_at=0,
        edges=EstimatedCount(rows, 0, rows),
        vertices=EstimatedCount(vertices, 0, vertices),
        with_triangles=1.0,
        id_bytes=id_bytes,
        id_span=span,
        output_bytes=round(rows * (_EDGE_ROW_BYTES + 2 * text) + vertices * (_VERTEX_ROWS_BYTES + 2 * text)),
    )


def estimate(source: Source, most_rows: int) -> Estimate:
    """Read about `most_rows` rows of the input, or all rows if there are fewer, and estimate. Raises InputError."""
    sample = take_sample(source, most_rows)
    pa.default_memory_pool().release_unused()  # Arrow would keep the memory it used for reading
    return Estimate(source, sample, count_edges(sample), count_vertices(sample))
