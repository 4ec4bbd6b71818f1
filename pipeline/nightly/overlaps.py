"""Overlaps of the DN-graphs of two results, and which pairs are the same DN-graph.

A pair is the same DN-graph if its Jaccard index is above 1/2: more than half of the vertices in either are in both.
DN-graphs of one result are disjoint, so each has at most one such partner, and the pairing depends on no order. At
exactly 1/2 there may be two partners, as when a DN-graph splits into equal parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..results.compare.sorted_tables import aligned_blocks, sorted_batches
from ..results.result import Result

Int = NDArray[np.int64]

SUFFIXES = ("old", "new")

_PENDING_ROWS = 1 << 20
_COLUMNS = ("id", "lambda", "vertices", "edges", "track")


def dn_graphs_of(result: Result, end: str) -> pa.Table:
    """The DN-graphs of a result: id, lambda, vertices, edges and track, each name followed by `_` and `end`.

    The track is null in results of releases without tracks. Raises UsageError if the result has no DN-graphs, and
    InputError if it is damaged.
    """
    with result.reading():
        has_tracks = "track" in result.dn_graphs.schema.names
        rows = result.dn_graphs.to_table(columns=[*(_COLUMNS if has_tracks else _COLUMNS[:-1])])
    if not has_tracks:
        rows = rows.append_column("track", pa.nulls(len(rows), pa.int64()))
    return rows.rename_columns([f"{name}_{end}" for name in _COLUMNS])


def overlaps(old: Result, new: Result, before: pa.Table, after: pa.Table) -> pa.Table:
    """Pairs of DN-graphs with common vertices: id_old, id_new, vertices_common, all int64, and the columns of `before`
    and `after`, the DN-graphs of the two results as `dn_graphs_of` returns them.

    The results must have ids of one type. All pairs are in memory; vertices are read in blocks. Raises InputError if a
    result is damaged.
    """
    pairs = _pairs(old, new, before["id_old"].to_numpy(), after["id_new"].to_numpy())
    return pairs.join(before, "id_old", join_type="inner").join(after, "id_new", join_type="inner")


def same_groups(pairs: pa.Table) -> pa.Table:
    """The pairs whose Jaccard index is above 1/2."""
    sizes = pc.add(pairs["vertices_old"], pairs["vertices_new"])
    return pairs.filter(pc.greater(pc.multiply(pairs["vertices_common"], 3), sizes))


def _pairs(old: Result, new: Result, old_ids: Int, new_ids: Int) -> pa.Table:
    schema = pa.schema([(name, pa.int64()) for name in ("id_old", "id_new", "vertices_common")])
    pairs, most = schema.empty_table(), _PENDING_ROWS
    for before, after in aligned_blocks(_members(old, old_ids, "id_old"), _members(new, new_ids, "id_new"), keys=1):
        if before is None or after is None:
            continue
        both = pa.Table.from_batches([before]).join(pa.Table.from_batches([after]), "id", join_type="inner")
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(both))
        pairs = pa.concat_tables([pairs, both.drop("id").append_column("vertices_common", ones).select(schema.names)])
        if len(pairs) > most:
            pairs = _summed(pairs)
            most = 2 * len(pairs) + _PENDING_ROWS
    return _summed(pairs)


def _summed(pairs: pa.Table) -> pa.Table:
    sums = pairs.group_by(["id_old", "id_new"]).aggregate([("vertices_common", "sum")])
    return sums.rename_columns({"vertices_common_sum": "vertices_common"}).select(pairs.schema.names)


def _members(result: Result, ids: Int, name: str) -> Iterator[pa.RecordBatch]:
    """The members of DN-graphs, by ascending vertex id: id, and the id of the DN-graph in a column `name`."""
    for batch in sorted_batches(result.vertices, ["id", "component"]):
        component = pc.fill_null(batch["component"], 0).to_numpy()
        at = np.minimum(np.searchsorted(ids, component), len(ids) - 1)
        inside = pa.array(ids[at] == component if len(ids) else np.zeros(len(batch), np.bool_))
        rows = batch.filter(pc.and_(inside, batch["component"].is_valid()))
        yield pa.RecordBatch.from_arrays(rows.columns, names=["id", name])
