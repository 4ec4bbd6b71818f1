"""DN-graphs that differ between two results, which are told by their members: ids change with the graph."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .edge_changes import change_of
from .nights.fates import Fates, became
from .nights.overlaps import ENDS, dn_graphs_of, overlaps
from .result import Result

__all__ = ["DN_GRAPH_SCHEMA", "changed_dn_graphs"]

DN_GRAPH_SCHEMA = pa.schema(
    [
        ("change", pa.string()),
        *((f"id_{end}", pa.int64()) for end in ENDS),
        *((f"lambda_{end}", pa.int32()) for end in ENDS),
        *((f"vertices_{end}", pa.int64()) for end in ENDS),
        *((f"edges_{end}", pa.int64()) for end in ENDS),
        ("vertices_common", pa.int64()),
        ("fate", pa.string()),
        ("merged_into", pa.int64()),
        ("split_from", pa.int64()),
        *((f"track_{end}", pa.int64()) for end in ENDS),
    ]
)
"""change: appeared, vanished, rose, fell, or reshaped: the same λ, but other members or another number of edges.
Columns of one result are null where there is no such DN-graph; vertices_common is 0 then. fate, merged_into and
split_from are as `became` says. Tracks are null in results of releases that had none.
"""


def changed_dn_graphs(old: Result, new: Result) -> tuple[pa.Table, Fates]:
    """The DN-graphs that changed, with the columns of DN_GRAPH_SCHEMA, those of the highest λ first; and what became of
    all DN-graphs, in counts.

    One of each result are the same if more than half of the vertices in either are in both. The DN-graphs of both
    results and their overlaps lie in memory; vertices pass through it. The results have the same type of ids. Raises
    UsageError if one of them has no DN-graphs, InputError for damage.
    """
    before, after = (dn_graphs_of(result, end) for result, end in zip((old, new), ENDS, strict=True))
    rows, fates = became(before, after, overlaps(old, new, before, after))
    rows = rows.append_column("change", _change(rows))
    rows = rows.append_column("height", pc.max_element_wise(rows["lambda_old"], rows["lambda_new"]))
    rows = rows.filter(pc.is_valid(rows["change"]))
    common = pc.fill_null(rows["vertices_common"], 0)
    rows = rows.set_column(rows.schema.get_field_index("vertices_common"), "vertices_common", common)
    ascending = [(name, "ascending") for name in ("id_new", "id_old")]
    rows = rows.sort_by([("height", "descending"), *ascending])
    return rows.select(DN_GRAPH_SCHEMA.names).cast(DN_GRAPH_SCHEMA), fates


def _change(rows: pa.Table) -> pa.ChunkedArray:
    """What became of each; null for what is the same."""
    same_members = pc.equal(pc.add(rows["vertices_old"], rows["vertices_new"]), pc.multiply(rows["vertices_common"], 2))
    same_shape = pc.and_(same_members, pc.equal(rows["edges_old"], rows["edges_new"]))  # null for one without partner
    change = change_of(rows["lambda_old"], rows["lambda_new"])
    return pc.coalesce(change, pc.if_else(same_shape, pa.scalar(None, pa.string()), "reshaped"))
