"""What became of each DN-graph between two results: it continued, died, was born, or had part in a merge or a split.

By members alone, and every rule asks for more than half, so that a DN-graph has one answer at most:

- Two DN-graphs are the same, and the old one *continued*, as `overlaps.same` says.
- A new DN-graph is a *merge* if two or more old ones each have more than half of their members in it.
- An old DN-graph was *split* if two or more new ones each have more than half of their members from it.
- What does not continue and has no part in either *died*, or was *born*.

The larger part of a split may continue what was split, and one of the old ones may continue as the merge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .overlaps import same

__all__ = ["FATES", "Fates", "became"]

Int = NDArray[np.int64]

FATES = ("kept", "grown", "shrunk", "merged", "split", "died", "born")
"""Of a DN-graph that continued: kept, grown or shrunk, by its number of vertices."""


@dataclass(frozen=True)
class Fates:
    """What became of the DN-graphs from the old result to the new one, in counts."""

    continued: int
    """DN-graphs that are the same in both, by their members."""
    grown: int
    """Of these, with more vertices in the new result."""
    shrunk: int
    """Of these, with fewer vertices in the new result."""
    born: int
    """In the new result: does not continue an old one, and came from no merge or split."""
    died: int
    """In the old result: does not continue, and had no part in a merge or split."""
    merged: int
    """In the new result: more than half of the members of two or more old ones are in it."""
    split: int
    """In the old result: more than half of the members of two or more new ones come from it."""


def became(before: pa.Table, after: pa.Table, pairs: pa.Table) -> tuple[pa.Table, Fates]:
    """All DN-graphs of two results with what became of them, and the counts.

    `before` and `after` are the DN-graphs, as `dn_graphs_of` gives them, `pairs` their overlaps. What is the same in
    both is one row, of the columns of both; other rows have null for the result that they are not in. Added are the
    columns fate, one of FATES; merged_into, the new DN-graph that holds more than half of an old one that merged; and
    split_from, the old DN-graph that more than half of a new one comes from. Both are null elsewhere.
    """
    partners = same(pairs)
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
    merged_into, was_merged = _looked_up(id_old, old[in_merge], new[in_merge])
    split_from, was_split = _looked_up(id_new, new[from_split], old[from_split])
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
    """A column of int64; 0 for null."""
    found: Int = table[name].cast(pa.int64()).fill_null(0).to_numpy()
    return found


def _repeated(ids: Int) -> Int:
    """The ids that occur more than once."""
    found, counts = np.unique(ids, return_counts=True)
    return found[counts > 1]


def _looked_up(wanted: Int, keys: Int, values: Int) -> tuple[Int, NDArray[np.bool_]]:
    """[wanted] the value of each key, of which there are no two alike, and whether it is there."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return values[order][at], keys[order][at] == wanted
