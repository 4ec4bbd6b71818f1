"""How many vertices the DN-graphs of two results have in common, and which of them are the same.

The DN-graphs of one result have no vertex in common. So if two of different results share more than half of all the
vertices in either (their Jaccard index is above 1/2), each has more than half of its own in the other, and neither has
another such partner. These are the same DN-graph at two times, whatever became of it; no choice is left to make, and
none depends on order. At exactly half there may be two partners, as when one falls into equal parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..lookup import reading
from ..merging import side_by_side, sorted_batches
from ..result import Result

__all__ = ["ENDS", "dn_graphs_of", "overlaps", "same"]

Int = NDArray[np.int64]

ENDS = ("old", "new")

_PENDING_ROWS = 1 << 20
_COLUMNS = ("id", "lambda", "vertices", "edges", "track")


def dn_graphs_of(result: Result, end: str) -> pa.Table:
    """The DN-graphs of a result: id, lambda, vertices, edges and track, each named with `_old` or `_new`.

    The track is null in results of releases that had none. Raises UsageError without DN-graphs, InputError for damage.
    """
    with reading(result.place):
        has_tracks = "track" in result.dn_graphs.schema.names
        rows = result.dn_graphs.to_table(columns=[*(_COLUMNS if has_tracks else _COLUMNS[:-1])])
    if not has_tracks:
        rows = rows.append_column("track", pa.nulls(len(rows), pa.int64()))
    return rows.rename_columns([f"{name}_{end}" for name in _COLUMNS])


def overlaps(old: Result, new: Result, before: pa.Table, after: pa.Table) -> pa.Table:
    """Pairs of DN-graphs that have vertices in common: id_old, id_new, vertices_common, all int64, and the columns of
    `before` and `after`, which are the DN-graphs of the two results as `dn_graphs_of` gives them.

    The pairs lie in memory; vertices pass through it in blocks. The results have the same type of ids. Raises
    InputError for damage.
    """
    pairs = _pairs(old, new, before["id_old"].to_numpy(), after["id_new"].to_numpy())
    return pairs.join(before, "id_old", join_type="inner").join(after, "id_new", join_type="inner")


def same(pairs: pa.Table) -> pa.Table:
    """Those of the overlaps that are one DN-graph in both results: more than half of all vertices in either are in
    both.
    """
    sizes = pc.add(pairs["vertices_old"], pairs["vertices_new"])
    return pairs.filter(pc.greater(pc.multiply(pairs["vertices_common"], 3), sizes))


def _pairs(old: Result, new: Result, old_ids: Int, new_ids: Int) -> pa.Table:
    schema = pa.schema([(name, pa.int64()) for name in ("id_old", "id_new", "vertices_common")])
    found, most = schema.empty_table(), _PENDING_ROWS
    for before, after in side_by_side(_placed(old, old_ids, "id_old"), _placed(new, new_ids, "id_new"), keys=1):
        if before is None or after is None:
            continue
        both = pa.Table.from_batches([before]).join(pa.Table.from_batches([after]), "id", join_type="inner")
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(both))
        found = pa.concat_tables([found, both.drop("id").append_column("vertices_common", ones).select(schema.names)])
        if len(found) > most:
            found = _summed(found)
            most = 2 * len(found) + _PENDING_ROWS
    return _summed(found)


def _summed(pairs: pa.Table) -> pa.Table:
    sums = pairs.group_by(["id_old", "id_new"]).aggregate([("vertices_common", "sum")])
    return sums.rename_columns({"vertices_common_sum": "vertices_common"}).select(pairs.schema.names)


def _placed(result: Result, ids: Int, name: str) -> Iterator[pa.RecordBatch]:
    """Vertices that are in DN-graphs, ascending, and which: id, and a column of that name."""
    for batch in sorted_batches(result.place, result.vertices, ["id", "component"]):
        component = pc.fill_null(batch["component"], 0).to_numpy()
        at = np.minimum(np.searchsorted(ids, component), len(ids) - 1)
        inside = pa.array(ids[at] == component if len(ids) else np.zeros(len(batch), np.bool_))
        rows = batch.filter(pc.and_(inside, batch["component"].is_valid()))
        yield pa.RecordBatch.from_arrays(rows.columns, names=["id", name])
