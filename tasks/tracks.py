"""Tracks: numbers that DN-graphs, and the listed groups of programs, keep from one night of a series to the next, found
bucket by bucket. In order:

    every bucket   inherit_tracks       without an earlier result nothing is inherited
    exchange 1     send_shapes          buckets → one task: number_shapes
    exchange 2                          one task → buckets: collect_tracks

Before that, for the result of the night before and for one that is replaced:

    exchange       send_overlaps        buckets of vertices → buckets of DN-graphs: match

For the counts of changes since the night before:

    exchange       send_outcomes        buckets of DN-graphs → buckets of old DN-graphs: count_old

DN-graphs are rows of the hierarchy, ascending by id. The one task gets the number of DN-graphs of each λ, vertices and
edges per bucket, not the DN-graphs: most of them have one of a few small sizes. DN-graphs get new tracks in the order
of λ, vertices and edges, the largest first, then of the id. All this holds for the listed groups of a program, with k
in place of λ, and tracks of their own.

The rules of changes are those of `edgemill diff`:

- An old DN-graph continues as a new one if both are the same by `MatchedPairs.same`.
- A new DN-graph is a merge if each of two or more old ones has more than half of its vertices in it.
- An old DN-graph was split if each of two or more new ones has more than half of its vertices from it.
- An old DN-graph died if it neither continues nor is part of a merge or split. A new DN-graph was born if it neither
  continues an old one nor is part of a merge or split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from ..kernels.runtime.sizes import SizedArrays
from .dense.listing import Homes
from .dense.merge import HierarchyRows
from .errors import InputError
from .ids import identity, order
from .ids.id_types import from_internal
from .ingest.numbering import BucketIds
from .inputs.opening import error_reason
from .messages import Bundle, bundle
from .storage.folders import Folder


class GroupsOfBucket(Protocol):
    """The groups of one bucket that get tracks: BucketGroups with DN-graphs, or BucketListing of a program."""

    @property
    def bucket(self) -> int:
        """The number of the bucket."""

    @property
    def listed(self) -> HierarchyRows:
        """The groups whose least vertex is in the bucket."""

    @property
    def innermost(self) -> NDArray[np.int64]:
        """[vertices] id of the group of each vertex, if it is a member of one."""

    @property
    def is_member(self) -> NDArray[np.bool_]:
        """[vertices] whether each is in such a group."""


@dataclass(frozen=True)
class EarlierResult:
    """The files of an earlier result that tracks are read from. Picklable."""

    place: Folder
    vertices: tuple[str, ...]
    """Files of its table of vertices, relative to its folder, in order."""
    groups: tuple[str, ...]
    """Files of its table of DN-graphs, or of groups of a program."""
    count: int
    """Number of its groups that have tracks."""
    column: str = "component"
    """The column of vertices with the innermost group of each."""
    homes: Homes | None = None
    """Leads from innermost groups of a program to those that have tracks; None for DN-graphs."""

    def rows_of_vertices(self, first: pa.Scalar, last: pa.Scalar) -> pa.Table:
        """Id and group of its vertices with ids from `first` to `last`, without those in no group. The group need not
        have a track.

        Raises InputError if a file is damaged; StoreLost or UsageError if the store cannot be read.
        """
        inside = (pc.field("id") >= first) & (pc.field("id") <= last) & pc.field(self.column).is_valid()
        rows = self._rows(self.vertices, ["id", self.column], inside).rename_columns(["id", "group"])
        if self.homes is None:
            return rows
        return rows.set_column(1, "group", pa.array(self.homes.of(rows["group"].to_numpy())))

    def rows_of_groups(self, ids: pa.Array) -> pa.Table:
        """id, vertices and track of its groups with these ids and a track, ascending. Raises as `rows_of_vertices`."""
        ends = pc.min_max(ids)
        inside = (pc.field("id") >= ends["min"]) & (pc.field("id") <= ends["max"]) & pc.field("id").isin(ids)
        return self._rows(self.groups, ["id", "vertices", "track"], inside & pc.field("track").is_valid()).sort_by("id")

    def tracks_among(self, tracks: pa.Array) -> pa.Array:
        """Those of `tracks` that its groups have. Raises as `rows_of_vertices` does."""
        column = self._rows(self.groups, ["track"], pc.field("track").isin(tracks))["track"]
        return pa.concat_arrays(column.chunks) if column.num_chunks else tracks[:0]

    def _rows(self, files: tuple[str, ...], columns: list[str], wanted: pc.Expression) -> pa.Table:
        scan = ds.ParquetFragmentScanOptions(page_checksum_verification=True, arrow_extensions_enabled=False)
        try:
            with self.place.store_errors("read"):
                table = ds.dataset(
                    [self.place.path(file) for file in files],
                    format=ds.ParquetFileFormat(default_fragment_scan_options=scan),
                    filesystem=None if self.place.is_local else self.place.files,
                )
                return table.to_table(columns=columns, filter=wanted, batch_readahead=1, fragment_readahead=1)
        except MemoryError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"the result is damaged: {self.place}: {error_reason(error)}") from error


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

    def same(self, graphs: HierarchyRows) -> NDArray[np.bool_]:
        """[pairs] whether both count as the same DN-graph: more than half of the vertices of their union are in both.

        Then each DN-graph has more than half of its vertices in the other one, so a DN-graph has at most one such
        counterpart.
        """
        return 3 * self.common > self.vertices + graphs.vertices[self.graph]


def members_of(ids: BucketIds, groups: GroupsOfBucket, id_type: pa.DataType) -> tuple[pa.Array, Int]:
    """The ids of a bucket's vertices that are in DN-graphs, ascending, and the DN-graph of each."""
    members = np.flatnonzero(groups.is_member)
    names = from_internal(identity.take(identity.to_host(ids.ids), members), id_type)
    return (names.storage if isinstance(names, pa.ExtensionArray) else names), groups.innermost[members]


def send_overlaps(
    ids: BucketIds,
    groups: GroupsOfBucket,
    id_type: pa.DataType,
    firsts: Int,
    earlier: EarlierResult,
) -> Bundle[Overlaps]:
    """Bucket of vertices → buckets of DN-graphs: how many vertices each pair has in common. `firsts` as for
    `overlaps_of`. Raises as `EarlierResult` does.
    """
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
    old = rows["group"].filter(known).to_numpy()
    new = graph[at.drop_null().to_numpy()]
    pairs = _summed(Overlaps(old, new, np.ones(len(old), np.int64)))
    cuts = np.searchsorted(pairs.new, firsts)
    parts = (slice(cuts[b], cuts[b + 1]) for b in range(len(firsts) - 1))
    return bundle(bucket, {b: Overlaps(pairs.old[p], pairs.new[p], pairs.common[p]) for b, p in enumerate(parts)})


def match(graphs: HierarchyRows, earlier: EarlierResult, parts: Mapping[int, Overlaps]) -> MatchedPairs:
    """The pairs of a bucket's DN-graphs and those of the earlier result. Raises as `EarlierResult` does."""
    none = np.zeros(0, np.int64)
    columns = zip(*((part.old, part.new, part.common) for part in parts.values()), strict=True)
    pairs = _summed(Overlaps(*map(np.concatenate, columns))) if parts else Overlaps(none, none, none)
    if not len(pairs):
        return MatchedPairs(none.astype(np.intp), none, none, none, none)
    rows = earlier.rows_of_groups(pa.array(np.unique(pairs.old)))
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


@dataclass(frozen=True)
class InheritedTracks(SizedArrays):
    """The tracks that DN-graphs of a bucket have inherited."""

    track: NDArray[np.int64]
    """[DN-graphs] the track; 0 if the DN-graph needs a new one."""
    continued: int
    """DN-graphs with a track from the night before."""
    again: int
    """DN-graphs with a track from the result that is replaced."""


def inherit_tracks(
    graphs: HierarchyRows,
    before: MatchedPairs | None,
    replaced: MatchedPairs | None,
    night_before: EarlierResult | None,
) -> InheritedTracks:
    """The tracks that the DN-graphs of a bucket inherit.

    A DN-graph inherits the track of the same DN-graph of the night before. Without one it inherits the track of the
    same DN-graph of the replaced result, unless a DN-graph of the night before has this track. `before` and `replaced`
    are the pairs with the two results, None if there is no such result. Raises as `EarlierResult` does.
    """
    track = np.zeros(len(graphs), np.int64)
    if before is not None:
        same = before.same(graphs)
        track[before.graph[same]] = before.track[same]
    continued = int(np.count_nonzero(track))
    if replaced is not None:
        left = np.flatnonzero(replaced.same(graphs) & (track[replaced.graph] == 0))
        if night_before is not None and len(left):
            known = night_before.tracks_among(pa.array(replaced.track[left]))
            left = left[~np.isin(replaced.track[left], known.to_numpy())]
        track[replaced.graph[left]] = replaced.track[left]
    return InheritedTracks(track, continued, int(np.count_nonzero(track)) - continued)


@dataclass(frozen=True)
class Shapes(SizedArrays):
    """Counts of a bucket's DN-graphs without a track by shape: λ, vertices and edges. `len()` counts shapes."""

    shape: Int
    """[shapes, 3] λ, vertices and edges, the largest first."""
    count: Int
    """[shapes] DN-graphs."""

    def __len__(self) -> int:
        return len(self.count)


@dataclass(frozen=True)
class Numbers(SizedArrays):
    """The first track for each shape that a bucket has sent. `len()` counts shapes."""

    first: Int

    def __len__(self) -> int:
        return len(self.first)


def send_shapes(bucket: int, graphs: HierarchyRows, taken: InheritedTracks) -> Bundle[Shapes]:
    """Bucket → one task: the shapes of its DN-graphs without a track."""
    shapes, _ = _shapes(graphs, taken)
    return bundle(bucket, {0: shapes})


def number_shapes(first: int, parts: Mapping[int, Shapes]) -> Bundle[Numbers]:
    """One task → buckets: tracks from `first` on. Ids of DN-graphs ascend over the buckets."""
    senders = sorted(parts)
    if not senders:
        return bundle(0, {})
    shape = np.concatenate([parts[sender].shape for sender in senders])
    count = np.concatenate([parts[sender].count for sender in senders])
    sizes = [len(parts[sender]) for sender in senders]
    by = _largest_first(shape)  # stable: within one shape the order of the buckets
    numbers = np.empty(len(count), np.int64)
    numbers[by] = first + np.cumsum(count[by]) - count[by]
    runs = np.split(numbers, np.cumsum(sizes)[:-1])
    return bundle(0, {sender: Numbers(run) for sender, run in zip(senders, runs, strict=True)})


def collect_tracks(graphs: HierarchyRows, taken: InheritedTracks, parts: Mapping[int, Numbers]) -> Int:
    """[DN-graphs] tracks, inherited or new."""
    track = taken.track.copy()
    shapes, rows = _shapes(graphs, taken)
    for part in parts.values():
        within = np.arange(len(rows)) - np.repeat(np.cumsum(shapes.count) - shapes.count, shapes.count)
        track[rows] = np.repeat(part.first, shapes.count) + within
    return track


def _shapes(graphs: HierarchyRows, taken: InheritedTracks) -> tuple[Shapes, NDArray[np.intp]]:
    """The shapes of DN-graphs without a track, and the rows of these in the order of shapes, then of ids."""
    rows = np.flatnonzero(taken.track == 0)
    shape = np.stack([graphs.level[rows], graphs.vertices[rows], graphs.edges[rows]], axis=1).astype(np.int64)
    by = _largest_first(shape)
    ordered = shape[by]
    first = np.flatnonzero(order.heads(ordered[:, 0]) | order.heads(ordered[:, 1]) | order.heads(ordered[:, 2]))
    return Shapes(ordered[first], np.diff(np.append(first, len(rows)))), rows[by]


def _largest_first(shape: Int) -> NDArray[np.intp]:
    return np.lexsort((-shape[:, 2], -shape[:, 1], -shape[:, 0]))


Bools = NDArray[np.bool_]


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


@dataclass(frozen=True)
class NewCounts:
    """Counts of the new DN-graphs of a bucket."""

    continued: int
    grown: int
    """Continued ones with more vertices than before."""
    shrunk: int
    """Continued ones with fewer vertices than before."""
    merged: int
    unmatched: int
    """Those that neither continue an old one nor are a merge."""


@dataclass(frozen=True)
class OldCounts:
    """Counts of the DN-graphs of the night before."""

    survived: int
    """Those that continued, merged or were split. The others died."""
    split: int
    split_parts: int
    """Unmatched DN-graphs of this result that come from a split. The other unmatched ones were born."""


@dataclass(frozen=True)
class PairOutcomes(SizedArrays):
    """Pairs of DN-graphs on their way to the bucket that counts the old ones. `len()` counts pairs."""

    old: NDArray[np.int64]
    """[pairs] id of the old one."""
    survives: Bools
    """[pairs] whether the old one continues as the new one, or the new one is a merge with more than half of it."""
    mostly_from: Bools
    """[pairs] whether more than half of the new one comes from it."""
    unmatched: Bools
    """[pairs] whether the new one neither continues an old one nor is a merge."""

    def __len__(self) -> int:
        return len(self.old)


def count_new(graphs: HierarchyRows, before: MatchedPairs) -> NewCounts:
    """Count the new DN-graphs of a bucket. `before` are its pairs with old ones."""
    continues, merges = _continues(graphs, before), _merges(graphs, before)
    same = before.same(graphs)
    growth = graphs.vertices[before.graph[same]] - before.vertices[same]
    return NewCounts(
        continued=int(continues.sum()),
        grown=int((growth > 0).sum()),
        shrunk=int((growth < 0).sum()),
        merged=int(merges.sum()),
        unmatched=int((~continues & ~merges).sum()),
    )


def send_outcomes(bucket: int, buckets: int, graphs: HierarchyRows, before: MatchedPairs) -> Bundle[PairOutcomes]:
    """Bucket of new DN-graphs → buckets of old ones. An old one is in the bucket of its id modulo `buckets`."""
    continues, merges = _continues(graphs, before), _merges(graphs, before)
    survives = before.same(graphs) | (_mostly_in(before) & merges[before.graph])
    mostly_from = 2 * before.common > graphs.vertices[before.graph]
    unmatched = ~(continues | merges)[before.graph]
    receiver = before.old % buckets
    parts = {}
    for b in range(buckets):
        own = receiver == b
        parts[b] = PairOutcomes(before.old[own], survives[own], mostly_from[own], unmatched[own])
    return bundle(bucket, parts)


def count_old(parts: Mapping[int, PairOutcomes]) -> OldCounts:
    """Count the old DN-graphs of a bucket that have vertices in new ones."""
    if not parts:
        return OldCounts(0, 0, 0)
    old, at = np.unique(np.concatenate([part.old for part in parts.values()]), return_inverse=True)
    survives, mostly_from, unmatched = (
        np.concatenate([getattr(part, name) for part in parts.values()])
        for name in ("survives", "mostly_from", "unmatched")
    )
    splits = np.bincount(at[mostly_from], minlength=len(old)) > 1
    survived = splits | (np.bincount(at[survives], minlength=len(old)) > 0)
    return OldCounts(int(survived.sum()), int(splits.sum()), int((mostly_from & unmatched & splits[at]).sum()))


def summed(later: Sequence[NewCounts], earlier: Sequence[OldCounts], graphs: int) -> Fates:
    """The fates of the `graphs` DN-graphs of the previous night, from the counts of all buckets."""

    def total(name: str, counts: Sequence[NewCounts] | Sequence[OldCounts]) -> int:
        return sum(map(attrgetter(name), counts))

    return Fates(
        continued=total("continued", later),
        grown=total("grown", later),
        shrunk=total("shrunk", later),
        born=total("unmatched", later) - total("split_parts", earlier),
        died=graphs - total("survived", earlier),
        merged=total("merged", later),
        split=total("split", earlier),
    )


def _continues(graphs: HierarchyRows, before: MatchedPairs) -> Bools:
    """[DN-graphs] whether each is the same as one of the night before."""
    found = np.zeros(len(graphs), np.bool_)
    found[before.graph[before.same(graphs)]] = True
    return found


def _merges(graphs: HierarchyRows, before: MatchedPairs) -> Bools:
    """[DN-graphs] whether two or more of the night before each have more than half of their vertices in it."""
    return np.bincount(before.graph[_mostly_in(before)], minlength=len(graphs)) > 1


def _mostly_in(before: MatchedPairs) -> Bools:
    return 2 * before.common > before.vertices
