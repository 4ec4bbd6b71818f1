"""Buckets → buckets: bring the values of both ends of each edge together, and compute the columns of an `EdgeProgram`.

exchange   send_ends   buckets → buckets: collect_edge_columns
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from ..ingest.degrees import BucketDegrees
from ..ingest.numbering import BucketEdges
from ..messages import Bundle, bundle
from .delivery import BucketColumns, HasSupport, NamedColumns
from .orders.calls import Calls
from .program import Array, EdgeProgram, Program, Vertices


@dataclass(frozen=True)
class EndValues(SizedArrays):
    """Values of the vertices that are larger ends of another bucket's edges. `len()` is the number of vertices."""

    degree: NDArray[np.int64]
    """[vertices]"""
    state: Mapping[str, Array]
    """[vertices] by name."""

    def __len__(self) -> int:
        return len(self.degree)


@dataclass(frozen=True)
class EdgeColumns(SizedArrays):
    """The columns of a program for the edges of one bucket. `len()` is the number of columns."""

    bucket: int
    columns: Mapping[str, Array]
    """[edges] by name."""

    def __len__(self) -> int:
        return len(self.columns)


def send_ends(found: BucketColumns, degrees: BucketDegrees) -> Bundle[EndValues]:
    """Bucket → buckets: degrees, and the state of a program, of the vertices that each bucket has as larger ends."""
    degree = kernels.to_host(degrees.degree)
    parts = {}
    for asker, asked in degrees.asked.items():
        at = kernels.to_host(asked)
        parts[asker] = EndValues(degree[at], {name: values[at] for name, values in found.columns.items()})
    return bundle(found.bucket, parts)


def collect_edge_columns(
    program: Program | EdgeProgram,
    edges: BucketEdges,
    degrees: BucketDegrees,
    found: BucketColumns,
    results: HasSupport,
    parts: Mapping[int, EndValues],
) -> EdgeColumns:
    """The columns of a program for a bucket's edges. `found` is its state, which is empty for an `EdgeProgram`.

    Raises ProgramError for an error of the program, and InternalError unless each larger end has its values.
    """
    highs, degree = kernels.to_host(edges.highs), kernels.to_host(degrees.degree)
    answers = [parts[b] for b in sorted(parts)]
    if sum(map(len, answers)) != len(highs):
        raise InternalError(
            f"bucket {edges.bucket} asked for the values of {len(highs)} vertices and got {sum(map(len, answers))}"
        )
    of_low = {"number": np.arange(len(degree)) + edges.first, "degree": degree, **found.columns}
    of_high = {
        "number": highs.astype(np.int64),
        "degree": np.concatenate([np.zeros(0, np.int64), *(part.degree for part in answers)]),
        **{
            name: np.concatenate([values[:0], *(part.state[name] for part in answers)])
            for name, values in found.columns.items()
        },
    }
    low, high = (
        Vertices(arrays, edges.all_vertices, 0, kernels.to_host(rows))
        for arrays, rows in ((of_low, edges.low), (of_high, edges.high))
    )
    return EdgeColumns(edges.bucket, Calls(program).of_edges(low, high, kernels.to_host(results.support)))


def with_edges(named: NamedColumns, edges: EdgeColumns) -> NamedColumns:
    """The results of a program for a bucket, with those for its edges."""
    return replace(named, edges=edges.columns)
