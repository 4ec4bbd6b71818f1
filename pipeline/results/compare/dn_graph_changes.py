"""DN-graphs that differ between two results. They are matched by their members, since ids change with the graph."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...nightly.fates import Fates, classify
from ...nightly.overlaps import SUFFIXES, dn_graphs_of, overlaps
from ..result import Result
from .edge_changes import change_of

DN_GRAPH_SCHEMA = pa.schema(
    [
        ("change", pa.string()),
        *((f"id_{end}", pa.int64()) for end in SUFFIXES),
        *((f"lambda_{end}", pa.int32()) for end in SUFFIXES),
        *((f"vertices_{end}", pa.int64()) for end in SUFFIXES),
        *((f"edges_{end}", pa.int64()) for end in SUFFIXES),
        ("vertices_common", pa.int64()),
        ("fate", pa.string()),
        ("merged_into", pa.int64()),
        ("split_from", pa.int64()),
        *((f"track_{end}", pa.int64()) for end in SUFFIXES),
    ]
)
"""change: appeared, vanished, rose, fell, or reshaped (equal λ, but other members or another number of edges).
The columns of a result are null for a DN-graph that it does not have; vertices_common is then 0. `classify` defines
fate, merged_into and split_from. Tracks are null for results of releases without tracks.
"""


def changed_dn_graphs(old: Result, new: Result) -> tuple[pa.Table, Fates]:
    """The DN-graphs that changed, with the columns of DN_GRAPH_SCHEMA, highest λ first; and the counts of all fates.

    Two DN-graphs match if each shares more than half of its vertices with the other. The DN-graphs of both results and
    their overlaps are in memory; vertices are read in batches. The results must have the same type of ids. Raises
    UsageError if a result has no table of DN-graphs, InputError for damage.
    """
    before, after = (dn_graphs_of(result, end) for result, end in zip((old, new), SUFFIXES, strict=True))
    rows, fates = classify(before, after, overlaps(old, new, before, after))
    rows = rows.append_column("change", _change(rows))
    rows = rows.append_column("height", pc.max_element_wise(rows["lambda_old"], rows["lambda_new"]))
    rows = rows.filter(pc.is_valid(rows["change"]))
    common = pc.fill_null(rows["vertices_common"], 0)
    rows = rows.set_column(rows.schema.get_field_index("vertices_common"), "vertices_common", common)
    ascending = [(name, "ascending") for name in ("id_new", "id_old")]
    rows = rows.sort_by([("height", "descending"), *ascending])
    return rows.select(DN_GRAPH_SCHEMA.names).cast(DN_GRAPH_SCHEMA), fates


def _change(rows: pa.Table) -> pa.ChunkedArray:
    """The change of each DN-graph; null for an unchanged one."""
    same_members = pc.equal(pc.add(rows["vertices_old"], rows["vertices_new"]), pc.multiply(rows["vertices_common"], 2))
    same_shape = pc.and_(same_members, pc.equal(rows["edges_old"], rows["edges_new"]))  # null without a match
    change = change_of(rows["lambda_old"], rows["lambda_new"])
    return pc.coalesce(change, pc.if_else(same_shape, pa.scalar(None, pa.string()), "reshaped"))
