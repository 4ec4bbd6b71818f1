"""Numbers of common vertices of a bucket's DN-graphs and those of an earlier result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..dense import BucketGroups
from ..dense.merge import Components, component_ids
from ..ids import identity, order
from ..ids.id_types import from_internal
from ..ingest.numbering import BucketIds
from ..messages import Bundle, bundle
from .earlier_result import EarlierResult

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Overlaps(SizedArrays):
    """Pairs of a component of an earlier result and a DN-graph of this one. `len()` counts pairs."""

    old: Int
    """[pairs] id of the earlier component, which need not be a DN-graph."""
    new: Int
    """[pairs] id of the DN-graph."""
    common: Int
    """[pairs] vertices that are in both."""

    def __len__(self) -> int:
        return len(self.old)


@dataclass(frozen=True)
class MatchedPairs(SizedArrays):
    """Pairs of a DN-graph of a bucket and one of an earlier result, with common vertices. `len()` counts pairs."""

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
        """[pairs] whether both are the same DN-graph: more than half of the vertices of their union are in both.

        Then each has more than half of its vertices in the other, and neither is the same as a third one.
        """
        return 3 * self.common > self.vertices + graphs.vertices[self.graph]


def members_of(ids: BucketIds, groups: BucketGroups, id_type: pa.DataType) -> tuple[pa.Array, Int]:
    """The ids of a bucket's vertices that are in DN-graphs, ascending, and the DN-graph of each."""
    members = np.flatnonzero(groups.is_member)
    names = from_internal(identity.take(identity.to_host(ids.ids), members), id_type)
    return (names.storage if isinstance(names, pa.ExtensionArray) else names), groups.innermost[members]


def send_overlaps(
    ids: BucketIds,
    groups: BucketGroups,
    id_type: pa.DataType,
    starts: Int,
    highest: int,
    earlier: EarlierResult,
) -> Bundle[Overlaps]:
    """Bucket of vertices → buckets of DN-graphs: how many vertices each pair has in common.

    `starts` [buckets + 1] are the first dense numbers of buckets, `highest` is the largest λ. Raises as
    `EarlierResult` does.
    """
    firsts = component_ids(starts, np.zeros(1, np.int32), highest)
    return overlaps_of(groups.bucket, *members_of(ids, groups, id_type), firsts, earlier)


def overlaps_of(bucket: int, vertices: pa.Array, graph: Int, firsts: Int, earlier: EarlierResult) -> Bundle[Overlaps]:
    """The same for `vertices`, ascending, in the DN-graphs `graph` [vertices].

    Bucket b has the DN-graphs with ids from `firsts[b]` to below `firsts[b + 1]`.
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


def match(graphs: Components, earlier: EarlierResult, parts: Mapping[int, Overlaps]) -> MatchedPairs:
    """The pairs of a bucket's DN-graphs and those of the earlier result. Raises as `EarlierResult` does."""
    none = np.zeros(0, np.int64)
    columns = zip(*((part.old, part.new, part.common) for part in parts.values()), strict=True)
    pairs = _summed(Overlaps(*map(np.concatenate, columns))) if parts else Overlaps(none, none, none)
    if not len(pairs):
        return MatchedPairs(none.astype(np.intp), none, none, none, none)
    rows = earlier.rows_of_dn_graphs(pa.array(np.unique(pairs.old)))
    known = rows["id"].to_numpy()
    at = np.minimum(np.searchsorted(known, pairs.old), max(len(known) - 1, 0))
    is_graph = known[at] == pairs.old if len(known) else np.zeros(len(pairs), np.bool_)
    at = at[is_graph]
    return MatchedPairs(
        order.lookup(graphs.id, pairs.new[is_graph]).astype(np.intp),
        pairs.old[is_graph],
        pairs.common[is_graph],
        rows["vertices"].to_numpy()[at],
        rows["track"].to_numpy()[at],
    )


def _summed(pairs: Overlaps) -> Overlaps:
    """Each pair once, with the sum of its common vertices, ascending by (new, old)."""
    by = np.lexsort((pairs.old, pairs.new))
    old, new = pairs.old[by], pairs.new[by]
    first = np.flatnonzero(order.heads(old) | order.heads(new))
    return Overlaps(old[first], new[first], np.add.reduceat(pairs.common[by], first) if len(first) else pairs.common)
