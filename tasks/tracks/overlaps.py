"""How many vertices the DN-graphs of a bucket have in common with those of an earlier result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...kernels.held import Held
from .. import identity, order
from ..dense import BucketGroups
from ..dense.merge import Components, component_ids
from ..id_types import published
from ..messages import Bundle, bundle
from ..numbering import BucketIds
from .earlier import Earlier

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Overlaps(Held):
    """Pairs of a component of an earlier result and a DN-graph of this one. `len()` counts them."""

    old: Int
    """[pairs] id of the earlier component, a DN-graph or not."""
    new: Int
    """[pairs] id of the DN-graph."""
    common: Int
    """[pairs] vertices that are in both."""

    def __len__(self) -> int:
        return len(self.old)


@dataclass(frozen=True)
class Matched(Held):
    """DN-graphs of an earlier result with vertices in DN-graphs of a bucket. `len()` counts pairs."""

    graph: NDArray[np.intp]
    """[pairs] row of the bucket's DN-graph."""
    old: Int
    """[pairs] id of the earlier one."""
    common: Int
    """[pairs] vertices that are in both."""
    vertices: Int
    """[pairs] vertices of the earlier one."""
    track: Int
    """[pairs] track of the earlier one."""

    def __len__(self) -> int:
        return len(self.old)

    def same(self, graphs: Components) -> NDArray[np.bool_]:
        """[pairs] whether both are one DN-graph at two times: more than half of the vertices in either are in both.

        Then each has more than half of its vertices in the other, and neither has another such partner.
        """
        return 3 * self.common > self.vertices + graphs.vertices[self.graph]


def members_of(ids: BucketIds, groups: BucketGroups, id_type: pa.DataType) -> tuple[pa.Array, Int]:
    """The vertices of a bucket that are in DN-graphs, as ids of the result, ascending; and of each its DN-graph."""
    members = np.flatnonzero(groups.is_member)
    names = published(identity.take(identity.to_host(ids.ids), members), id_type)
    return (names.storage if isinstance(names, pa.ExtensionArray) else names), groups.home[members]


def send_overlaps(
    ids: BucketIds,
    groups: BucketGroups,
    id_type: pa.DataType,
    starts: Int,
    highest: int,
    earlier: Earlier,
) -> Bundle[Overlaps]:
    """Buckets of vertices → buckets of DN-graphs: what the bucket's vertices are in, and were in.

    `starts` are the first dense numbers of buckets, `highest` is the highest λ. Raises as `Earlier` does.
    """
    firsts = component_ids(starts, np.zeros(1, np.int32), highest)
    return overlaps_of(groups.bucket, *members_of(ids, groups, id_type), firsts, earlier)


def overlaps_of(bucket: int, vertices: pa.Array, graph: Int, firsts: Int, earlier: Earlier) -> Bundle[Overlaps]:
    """The same of `vertices`, ascending, in the DN-graphs `graph` [vertices]: bucket b has those of the ids from
    `firsts[b]` to below `firsts[b + 1]`.
    """
    if not len(vertices):
        return bundle(bucket, {})
    rows = earlier.rows_of_vertices(vertices[0], vertices[-1])
    at = pc.index_in(rows["id"], value_set=vertices)
    known = at.is_valid()
    old = rows["component"].filter(known).to_numpy()
    new = graph[at.drop_null().to_numpy()]
    pairs = _summed(Overlaps(old, new, np.ones(len(old), np.int64)))
    cuts = np.searchsorted(pairs.new, firsts)
    parts = (slice(cuts[b], cuts[b + 1]) for b in range(len(firsts) - 1))
    return bundle(bucket, {b: Overlaps(pairs.old[p], pairs.new[p], pairs.common[p]) for b, p in enumerate(parts)})


def match(graphs: Components, earlier: Earlier, parts: Mapping[int, Overlaps]) -> Matched:
    """The pairs of a bucket's DN-graphs and those of the earlier result. Raises as `Earlier` does."""
    none = np.zeros(0, np.int64)
    columns = zip(*((part.old, part.new, part.common) for part in parts.values()), strict=True)
    pairs = _summed(Overlaps(*map(np.concatenate, columns))) if parts else Overlaps(none, none, none)
    if not len(pairs):
        return Matched(none.astype(np.intp), none, none, none, none)
    rows = earlier.rows_of_dn_graphs(pa.array(np.unique(pairs.old)))
    known = rows["id"].to_numpy()
    at = np.minimum(np.searchsorted(known, pairs.old), max(len(known) - 1, 0))
    is_graph = known[at] == pairs.old if len(known) else np.zeros(len(pairs), np.bool_)
    at = at[is_graph]
    return Matched(
        order.lookup(graphs.id, pairs.new[is_graph]).astype(np.intp),
        pairs.old[is_graph],
        pairs.common[is_graph],
        rows["vertices"].to_numpy()[at],
        rows["track"].to_numpy()[at],
    )


def _summed(pairs: Overlaps) -> Overlaps:
    """Each pair once, with the sum of its vertices, ascending by new and old."""
    by = np.lexsort((pairs.old, pairs.new))
    old, new = pairs.old[by], pairs.new[by]
    first = np.flatnonzero(order.heads(old) | order.heads(new))
    return Overlaps(old[first], new[first], np.add.reduceat(pairs.common[by], first) if len(first) else pairs.common)
