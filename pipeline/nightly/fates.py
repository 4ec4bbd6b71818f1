"""The fate of each DN-graph between two results: it continued, died, was born, merged or split.

Only members count. Every rule needs more than half of the members, so a DN-graph matches a rule at most once:

- An old DN-graph *continued* as the new one that `overlaps.same_groups` pairs it with.
- A new DN-graph is a *merge* if two or more old ones each have more than half of their members in it.
- An old DN-graph was *split* if two or more new ones each have more than half of their members from it.
- Any other DN-graph *died* (old) or was *born* (new).

The largest part of a split may continue the old DN-graph, and one of the merged ones may continue as the merge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .overlaps import same_groups

Int = NDArray[np.int64]

FATES = ("kept", "grown", "shrunk", "merged", "split", "died", "born")
"""A continued DN-graph is kept, grown or shrunk, by its number of vertices."""


@dataclass(frozen=True)
class Fates:
    """Counts of the fates of DN-graphs between an old and a new result."""

    continued: int
    """DN-graphs that are in both results."""
    grown: int
    """Continued DN-graphs with more vertices in the new result."""
    shrunk: int
    """Continued DN-graphs with fewer vertices in the new result."""
    born: int
    """New DN-graphs that continue no old one and are not part of a merge or split."""
    died: int
    """Old DN-graphs that do not continue and are not part of a merge or split."""
    merged: int
    """New DN-graphs that are merges."""
    split: int
    """Old DN-graphs that were split."""


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
