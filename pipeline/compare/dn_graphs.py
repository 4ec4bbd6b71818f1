"""DN-graphs of two results: which are the same, and the fate of each: continued, died, born, merged or split. The
groups of programs that are listed have the same fates.

Ids change with the graph, so DN-graphs are matched by their members. A pair is the same DN-graph if its Jaccard index
is above 1/2: more than half of the vertices in either are in both. DN-graphs of one result are disjoint, so each has at
most one such partner, and the pairing depends on no order. At exactly 1/2 there may be two partners, as when a DN-graph
splits into equal parts.

The rules of the fates need more than half of the members, too, so a DN-graph matches a rule at most once:

- An old DN-graph *continued* as the new one that `same_groups` pairs it with.
- A new DN-graph is a *merge* if two or more old ones each have more than half of their members in it.
- An old DN-graph was *split* if two or more new ones each have more than half of their members from it.
- Any other DN-graph *died* (old) or was *born* (new).

The largest part of a split may continue the old DN-graph, and one of the merged ones may continue as the merge.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tasks.tracks import Fates
from ..results.listed_groups import listed_groups
from ..results.result import Result
from .edges import aligned_blocks, change_of, sorted_batches

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
    members = _members(old, before["id_old"].to_numpy()), _members(new, after["id_new"].to_numpy())
    return _with_sizes(_pairs(*members), before, after)


def _with_sizes(pairs: pa.Table, before: pa.Table, after: pa.Table) -> pa.Table:
    return pairs.join(before, "id_old", join_type="inner").join(after, "id_new", join_type="inner")


def same_groups(pairs: pa.Table) -> pa.Table:
    """The pairs whose Jaccard index is above 1/2."""
    sizes = pc.add(pairs["vertices_old"], pairs["vertices_new"])
    return pairs.filter(pc.greater(pc.multiply(pairs["vertices_common"], 3), sizes))


def _pairs(old: Iterator[pa.RecordBatch], new: Iterator[pa.RecordBatch]) -> pa.Table:
    """Pairs of groups with common vertices, by the members of the groups of each result."""
    schema = pa.schema([(name, pa.int64()) for name in ("id_old", "id_new", "vertices_common")])
    pairs, most = schema.empty_table(), _PENDING_ROWS
    for before, after in aligned_blocks(old, new, keys=1):
        if before is None or after is None:
            continue
        sides = (pa.Table.from_batches([own]) for own in (before, after))
        left, right = (own.rename_columns(["id", f"id_{end}"]) for own, end in zip(sides, SUFFIXES, strict=True))
        both = left.join(right, "id", join_type="inner")
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(both))
        pairs = pa.concat_tables([pairs, both.drop("id").append_column("vertices_common", ones).select(schema.names)])
        if len(pairs) > most:
            pairs = _summed(pairs)
            most = 2 * len(pairs) + _PENDING_ROWS
    return _summed(pairs)


def _summed(pairs: pa.Table) -> pa.Table:
    sums = pairs.group_by(["id_old", "id_new"]).aggregate([("vertices_common", "sum")])
    return sums.rename_columns({"vertices_common_sum": "vertices_common"}).select(pairs.schema.names)


def _members(result: Result, ids: Int) -> Iterator[pa.RecordBatch]:
    """The members of DN-graphs, by ascending vertex id: id, and the id of the DN-graph in a column `group`."""
    for batch in sorted_batches(result.vertices, ["id", "component"]):
        component = pc.fill_null(batch["component"], 0).to_numpy()
        at = np.minimum(np.searchsorted(ids, component), len(ids) - 1)
        inside = pa.array(ids[at] == component if len(ids) else np.zeros(len(batch), np.bool_))
        rows = batch.filter(pc.and_(inside, batch["component"].is_valid()))
        yield pa.RecordBatch.from_arrays(rows.columns, names=["id", "group"])


Int = NDArray[np.int64]

FATES = ("kept", "grown", "shrunk", "merged", "split", "died", "born")
"""A continued DN-graph is kept, grown or shrunk, by its number of vertices."""


def classify(before: pa.Table, after: pa.Table, pairs: pa.Table) -> tuple[pa.Table, Fates]:
    """All DN-graphs of two results with their fates, and the counts.

    `before` and `after` are the DN-graphs as `dn_graphs_of` returns them, `pairs` their overlaps. A continued DN-graph
    is one row with the columns of both results; other rows are null in the columns of the result without them. Added
    columns: fate, one of FATES; merged_into, the merge that an old DN-graph is part of; split_from, the split DN-graph
    that a new one is part of. The last two are null if they do not apply.
    """
    partners = same_groups(pairs)
    vanished = before.join(partners.select(["id_old"]), "id_old", join_type="left anti")
    appeared = after.join(partners.select(["id_new"]), "id_new", join_type="left anti")
    rows = pa.concat_tables([partners, vanished, appeared], promote_options="default")
    old, new, common = (_numbers(pairs, name) for name in ("id_old", "id_new", "vertices_common"))
    mostly_in = 2 * common > _numbers(pairs, "vertices_old")
    mostly_from = 2 * common > _numbers(pairs, "vertices_new")
    merges, splits = _repeated(new[mostly_in]), _repeated(old[mostly_from])
    in_merge, from_split = mostly_in & np.isin(new, merges), mostly_from & np.isin(old, splits)

    id_old, id_new = _numbers(rows, "id_old"), _numbers(rows, "id_new")
    has_old, has_new = (rows[name].is_valid().to_numpy() for name in ("id_old", "id_new"))
    merged_into, was_merged = _look_up(id_old, old[in_merge], new[in_merge])
    split_from, was_split = _look_up(id_new, new[from_split], old[from_split])
    ended, began = has_old & ~has_new, has_new & ~has_old
    was_merged &= ended
    was_split &= began
    growth = np.where(has_old & has_new, _numbers(rows, "vertices_new") - _numbers(rows, "vertices_old"), 0)

    fate = np.full(len(rows), "kept", object)
    fate[growth > 0] = "grown"
    fate[growth < 0] = "shrunk"
    fate[ended] = "died"
    fate[ended & np.isin(id_old, splits)] = "split"
    fate[was_merged] = "merged"
    fate[began] = "born"
    fate[began & np.isin(id_new, merges)] = "merged"
    fate[was_split] = "split"
    counts = Fates(
        continued=int((has_old & has_new).sum()),
        grown=int((growth > 0).sum()),
        shrunk=int((growth < 0).sum()),
        born=int((fate == "born").sum()),
        died=int((fate == "died").sum()),
        merged=len(merges),
        split=len(splits),
    )
    rows = rows.append_column("fate", pa.array(fate, pa.string()))
    rows = rows.append_column("merged_into", pa.array(merged_into, mask=~was_merged))
    return rows.append_column("split_from", pa.array(split_from, mask=~was_split)), counts


def _numbers(table: pa.Table, name: str) -> Int:
    """A column as int64; null becomes 0."""
    column: Int = table[name].cast(pa.int64()).fill_null(0).to_numpy()
    return column


def _repeated(ids: Int) -> Int:
    """The ids that occur more than once."""
    found, counts = np.unique(ids, return_counts=True)
    return found[counts > 1]


def _look_up(queries: Int, keys: Int, values: Int) -> tuple[Int, NDArray[np.bool_]]:
    """[queries] the value of each query, and whether it is among the keys. The keys are distinct, in any order."""
    if not len(keys):
        return np.zeros(len(queries), np.int64), np.zeros(len(queries), np.bool_)
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[order], queries), len(keys) - 1)
    return values[order][at], keys[order][at] == queries


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


def fates_of_groups(old: Result, new: Result, program: str) -> Fates:
    """The counts of the fates of the groups of a program that both results list. Raises InputError for damage."""
    sides = [listed_groups(result, program) for result in (old, new)]
    before, after = (
        side.rows.select(["id", "vertices"]).rename_columns([f"id_{end}", f"vertices_{end}"])
        for side, end in zip(sides, SUFFIXES, strict=True)
    )
    pairs = _pairs(sides[0].members(old), sides[1].members(new))
    return classify(before, after, _with_sizes(pairs, before, after))[1]


def _change(rows: pa.Table) -> pa.ChunkedArray:
    """The change of each DN-graph; null for an unchanged one."""
    same_members = pc.equal(pc.add(rows["vertices_old"], rows["vertices_new"]), pc.multiply(rows["vertices_common"], 2))
    same_shape = pc.and_(same_members, pc.equal(rows["edges_old"], rows["edges_new"]))  # null without a match
    change = change_of(rows["lambda_old"], rows["lambda_new"])
    return pc.coalesce(change, pc.if_else(same_shape, pa.scalar(None, pa.string()), "reshaped"))
