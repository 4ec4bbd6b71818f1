"""The table of distances of one bucket: a row for each pair of a source and another vertex that a path joins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..ids import identity
from ..ids.id_types import from_internal
from ..ids.identity import Ids
from .tables import slices_by_text
from .writing import OutputFile, TableFormat, write_table


def write_distances(
    how: TableFormat,
    bucket: int,
    sources: NDArray[np.int64],
    distance: NDArray[np.uint16],
    no_path: int,
    ids: Ids,
) -> OutputFile:
    """Write distances/part-N.parquet: source, target, distance int32, ascending by (source, target).

    `distance` [sources, vertices] has the distances from the vertices with the numbers `sources`, which ascend, and
    `no_path` for pairs without a row. `ids` are those of all vertices.
    """
    kind = how.source.id_type
    schema = pa.schema([("source", kind), ("target", kind), ("distance", pa.int32())])
    at_once = max(1, how.row_group_rows // max(distance.shape[1], 1))

    def batches() -> Iterator[list[pa.Array]]:
        for first in range(0, len(sources), at_once):
            part = distance[first : first + at_once]
            row, target = np.nonzero(part != no_path)
            source, values = sources[first + row], part[row, target].astype(np.int32)
            for start in range(0, len(values), how.row_group_rows):
                run = slice(start, min(start + how.row_group_rows, len(values)))
                for rows in slices_by_text(run, (ids, source), (ids, target)):
                    ends = (from_internal(identity.take(ids, end[rows]), kind) for end in (source, target))
                    yield [*ends, pa.array(values[rows])]

    name = f"distances/part-{bucket:05d}.parquet"
    return write_table(how.folder, name, schema, 2, batches(), how.compression)
