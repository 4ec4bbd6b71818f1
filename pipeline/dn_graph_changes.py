"""DN-graphs that differ between two results, which are told by their members: ids change with the graph.

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

from .edge_changes import change_of
from .lookup import reading
from .merging import side_by_side, sorted_batches
from .result import Result

__all__ = ["DN_GRAPH_SCHEMA", "changed_dn_graphs"]

Int = NDArray[np.int64]

_ENDS = ("old", "new")
_PENDING_ROWS = 1 << 20

DN_GRAPH_SCHEMA = pa.schema(
    [
        ("change", pa.string()),
        *((f"id_{end}", pa.int64()) for end in _ENDS),
        *((f"lambda_{end}", pa.int32()) for end in _ENDS),
        *((f"vertices_{end}", pa.int64()) for end in _ENDS),
        *((f"edges_{end}", pa.int64()) for end in _ENDS),
        ("vertices_common", pa.int64()),
    ]
)
"""change: appeared, vanished, rose, fell, or reshaped: the same λ, but other members or another number of edges.
Columns of one result are null where there is no such DN-graph; vertices_common is 0 then.
"""


def changed_dn_graphs(old: Result, new: Result) -> pa.Table:
    """The DN-graphs that changed, with the columns of DN_GRAPH_SCHEMA, those of the highest λ first.

    One of each result are the same if more than half of the vertices in either are in both. The DN-graphs of both
    results and their overlaps lie in memory; vertices pass through it. The results have the same type of ids. Raises
    UsageError if one of them has no DN-graphs, InputError for damage.
    """
    before, after = (_dn_graphs(result, end) for result, end in zip((old, new), _ENDS, strict=True))
    pairs = _overlaps(old, new, before["id_old"].to_numpy(), after["id_new"].to_numpy())
    pairs = pairs.join(before, "id_old", join_type="inner").join(after, "id_new", join_type="inner")
    sizes = pc.add(pairs["vertices_old"], pairs["vertices_new"])
    same = pairs.filter(pc.greater(pc.multiply(pairs["vertices_common"], 3), sizes))
    vanished = before.join(same.select(["id_old"]), "id_old", join_type="left anti")
    appeared = after.join(same.select(["id_new"]), "id_new", join_type="left anti")
    rows = pa.concat_tables([same, vanished, appeared], promote_options="default")
    rows = rows.append_column("change", _change(rows))
    rows = rows.append_column("height", pc.max_element_wise(rows["lambda_old"], rows["lambda_new"]))
    rows = rows.filter(pc.is_valid(rows["change"]))
    common = pc.fill_null(rows["vertices_common"], 0)
    rows = rows.set_column(rows.schema.get_field_index("vertices_common"), "vertices_common", common)
    ascending = [(name, "ascending") for name in ("id_new", "id_old")]
    return rows.sort_by([("height", "descending"), *ascending]).select(DN_GRAPH_SCHEMA.names).cast(DN_GRAPH_SCHEMA)


def _change(rows: pa.Table) -> pa.ChunkedArray:
    """What became of each; null for what is the same."""
    same_members = pc.equal(pc.add(rows["vertices_old"], rows["vertices_new"]), pc.multiply(rows["vertices_common"], 2))
    same_shape = pc.and_(same_members, pc.equal(rows["edges_old"], rows["edges_new"]))  # null for one without partner
    change = change_of(rows["lambda_old"], rows["lambda_new"])
    return pc.coalesce(change, pc.if_else(same_shape, pa.scalar(None, pa.string()), "reshaped"))


def _dn_graphs(result: Result, end: str) -> pa.Table:
    names = ["id", "lambda", "vertices", "edges"]
    with reading(result.place):
        rows = result.dn_graphs.to_table(columns=names)
    return rows.rename_columns([f"{name}_{end}" for name in names])


def _overlaps(old: Result, new: Result, old_ids: Int, new_ids: Int) -> pa.Table:
    """Pairs of DN-graphs that have vertices in common: id_old, id_new, vertices_common, all int64."""
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
