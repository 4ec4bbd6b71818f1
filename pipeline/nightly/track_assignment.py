"""Assign tracks to the DN-graphs and the groups of programs of a run, from earlier results, before their tables are
written.

The tasks are in `tasks/tracks`: each bucket reads its part of the earlier results. `lineage` selects the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...tasks import tracks
from ...tasks.dense.listing import BucketListing, Homes, homes_of, list_bucket
from ...tasks.dense.merge import HierarchyRows, component_ids
from ...tasks.errors import InputError
from ...tasks.messages import Bundle
from ...tasks.tracks import (
    EarlierResult,
    Fates,
    GroupsOfBucket,
    InheritedTracks,
    MatchedPairs,
    NewCounts,
    OldCounts,
    Shapes,
    summed,
)
from ..events import Events
from ..messages.exits import message
from ..output.manifest import EarlierRecord, ProgramRecord, TracksRecord
from ..results.listed_groups import listed_groups
from ..results.result import Result
from ..settings.declared_programs import LAMBDA
from ..settings.models import Settings
from ..stages.exchange import exchange, forward, send
from ..stages.layout import Layout
from ..stages.task_engine import Future, TaskEngine
from .night import Lineage

if TYPE_CHECKING:
    from ...tasks.programs.delivery import NamedColumns


@dataclass(frozen=True)
class GroupBuckets:
    """The DN-graphs of a run, or the listed groups of a program, by bucket."""

    ids: Sequence[Future]
    """[buckets] BucketIds"""
    groups: Sequence[Future]
    """[buckets] GroupsOfBucket"""
    firsts: NDArray[np.int64]
    """[buckets + 1] bucket b has the groups with ids from `firsts[b]` to below `firsts[b + 1]`."""
    id_type: pa.DataType
    """Type of vertex ids in the result."""
    program: str = LAMBDA
    """The program that found the groups."""

    @classmethod
    def of_dn_graphs(
        cls,
        ids: Sequence[Future],
        groups: Sequence[Future],
        starts: NDArray[np.int64],
        highest: int,
        id_type: pa.DataType,
    ) -> GroupBuckets:
        """The DN-graphs `groups` [buckets] BucketGroups. `starts` [buckets + 1] are the first dense numbers of buckets,
        and `highest` is the largest λ.
        """
        return cls(ids, groups, component_ids(starts, np.zeros(1, np.int32), highest), id_type)


@dataclass(frozen=True)
class TrackedGroups:
    """The tracks of the DN-graphs of a run, or of the listed groups of a program."""

    tracks: list[Future]
    """[buckets] int64 tracks of the groups of each bucket."""
    record: TracksRecord


@dataclass(frozen=True)
class TrackedPrograms:
    """The tracks of the groups of all programs of a run."""

    tracks: Mapping[str, Sequence[Future]]
    """By the name of the table of groups: [buckets] int64 tracks of its rows, -1 for groups that are not listed."""
    records: list[ProgramRecord]
    """The records of all programs, with those of tracks."""


def track_programs(
    engine: TaskEngine,
    events: Events,
    settings: Settings,
    ids: Sequence[Future],
    id_type: pa.DataType,
    tables: Mapping[str, Sequence[Future]],
    records: Sequence[ProgramRecord],
    lineage: Callable[[str], Lineage],
) -> TrackedPrograms:
    """Assign a track to each listed group of each program, as to DN-graphs.

    `ids` [buckets] are BucketIds, `tables` [buckets] NamedColumns with groups by the name of their table. `lineage`
    returns the earlier results of a program. The groups of one program at a time are in memory, 40 bytes each.
    """
    found: dict[str, Sequence[Future]] = {}
    told: list[ProgramRecord] = []
    for record in records:
        table, declared = f"{record.group_column}s", settings.requested_programs[record.name].groups
        if declared is None:
            told.append(record)
            continue
        named = tables[table]
        rows = engine.gather(engine.map("groups", _groups_of, [(own,) for own in named]))
        homes = homes_of(_joined(rows), record.group_level)
        listings = engine.map("list-groups", _listing, [(own, declared.column, homes) for own in named])
        buckets = GroupBuckets(ids, listings, _firsts(rows), id_type, record.name)
        tracked = assign_tracks(engine, events, buckets, lineage(record.name))
        tasks = list(zip(named, listings, tracked.tracks, strict=True))
        found[table] = engine.map("tracks-of-rows", _of_rows, tasks)
        told.append(record.model_copy(update={"tracks": tracked.record}))
    return TrackedPrograms(found, told)


def _groups_of(named: NamedColumns) -> HierarchyRows:
    assert named.groups is not None
    return named.groups


def _joined(rows: Sequence[HierarchyRows]) -> HierarchyRows:
    """All rows, whose ids ascend over the buckets."""
    names = [field.name for field in fields(HierarchyRows)]
    return HierarchyRows(*(np.concatenate([getattr(own, name) for own in rows]) for name in names))


def _firsts(rows: Sequence[HierarchyRows]) -> NDArray[np.int64]:
    """[buckets + 1] the first id of each bucket, or of the next one that has groups."""
    ends = np.cumsum([0, *(len(own) for own in rows)])
    ids = np.concatenate([own.id for own in rows])
    found: NDArray[np.int64] = np.append(ids, ids[-1:] + 1)[np.minimum(ends, len(ids))] if len(ids) else ends * 0
    return found


def _listing(named: NamedColumns, column: str, homes: Homes) -> BucketListing:
    return list_bucket(named.bucket, _groups_of(named), np.asarray(named.columns[column]), homes)


def _of_rows(named: NamedColumns, listing: BucketListing, given: NDArray[np.int64]) -> NDArray[np.int64]:
    rows = _groups_of(named)
    found = np.full(len(rows), -1, np.int64)
    found[np.searchsorted(rows.id, listing.listed.id)] = given
    return found


def assign_tracks(engine: TaskEngine, events: Events, buckets: GroupBuckets, lineage: Lineage) -> TrackedGroups:
    """Assign a track to each group.

    All tracks are new if there is no earlier result to continue, or if it is damaged, which the event `tracks_new`
    says. Raises StoreLost as `lineage_of` does.
    """
    start, before = time.perf_counter(), lineage.before
    program = {} if buckets.program == LAMBDA else {"program": buckets.program}
    with events.stage("follow", 0) if before is not None else nullcontext():
        try:
            given, taken, fates = _assigned(engine, buckets, lineage)
        except InputError as error:  # the tasks read only earlier results
            if before is not None:
                events.emit("tracks_new", before=str(before.place), reason=message(error), **program)
            refused = None if before is None else _record(lineage, before)
            lineage, before = replace(lineage, before=None, replaced=None, refused=refused), None
            given, taken, fates = _assigned(engine, buckets, lineage)
        counts = engine.peek(taken, _counts)
    graphs, continued, again = (sum(column) for column in zip(*counts, strict=True))
    new = graphs - continued - again
    record = None
    if before is not None:
        record = _record(lineage, before)
    events.emit(
        "followed",
        **program,
        since=None if record is None else record.day,
        before=None if record is None else record.path,
        seconds=round(time.perf_counter() - start, 3),
        new=new,
        groups=None if fates is None else asdict(fates),
    )
    return TrackedGroups(
        given,
        TracksRecord(
            previous=record,
            continued=continued,
            again=again,
            new=new,
            next=lineage.first + new,
            refused=lineage.refused,
        ),
    )


def tracks_tasks(layout: Layout) -> int:
    """Tasks of `assign_tracks` if all DN-graphs are new: one task numbers those of all buckets."""
    buckets = layout.buckets
    return buckets + layout.exchange(buckets, 1) + layout.forward(1, buckets) + layout.peek(buckets)


def _record(lineage: Lineage, before: Result) -> EarlierRecord:
    return EarlierRecord(day=lineage.day, path=str(before.place), run=before.manifest.run)


def earlier_tables(result: Result, groups: str = LAMBDA) -> EarlierResult:
    """The files of a result from which tracks are continued. Raises InputError for damaged groups of a program."""

    def files(table: str) -> tuple[str, ...]:
        paths = sorted(output.path for output in result.manifest.outputs)
        return tuple(path for path in paths if PurePosixPath(path).parent.name == table)

    if groups == LAMBDA:
        count = 0 if result.manifest.dense is None else result.manifest.dense.dn_graphs
        return EarlierResult(result.place, files("vertices"), files("dn_graphs"), count)
    listed = listed_groups(result, groups)
    tables = files("vertices"), files(result.groups_table(groups))
    return EarlierResult(result.place, *tables, len(listed.rows), listed.column, listed.homes)


def _assigned(
    engine: TaskEngine, buckets: GroupBuckets, lineage: Lineage
) -> tuple[list[Future], list[Future], Fates | None]:
    """[buckets] tracks; [buckets] InheritedTracks; the fates of the groups of the previous night."""
    everyone = range(len(buckets.groups))
    earlier, own_earlier = (
        None if result is None else earlier_tables(result, buckets.program)
        for result in (lineage.before, lineage.replaced)
    )
    before, replaced = _matched(engine, buckets, earlier), _matched(engine, buckets, own_earlier)
    previous_result = None if replaced is None else earlier
    taken = engine.map(
        "take-over",
        _take_over,
        [(buckets.groups[b], before and before[b], replaced and replaced[b], previous_result) for b in everyone],
    )
    own = list(zip(buckets.groups, taken, strict=True))
    sent = send(engine, "send-shapes", "shapes", _send_shapes, own)
    numbers = forward(engine, "shapes", sent, "track-numbers", tracks.number_shapes, [(lineage.first,)])
    given = exchange(engine, "track-numbers", numbers, _collect_tracks, own)
    fates = None
    if before is not None and earlier is not None:
        fates = _fates(engine, buckets, before, earlier.count)
    engine.wait(given)
    return given, taken, fates


def _matched(engine: TaskEngine, buckets: GroupBuckets, earlier: EarlierResult | None) -> list[Future] | None:
    """[buckets] overlaps of their groups with those of the earlier result."""
    if earlier is None:
        return None
    sent = send(
        engine,
        "send-overlaps",
        "overlaps",
        tracks.send_overlaps,
        [
            (ids, groups, buckets.id_type, buckets.firsts, earlier)
            for ids, groups in zip(buckets.ids, buckets.groups, strict=True)
        ],
    )
    return exchange(engine, "overlaps", sent, _match, [(groups, earlier) for groups in buckets.groups])


def _fates(engine: TaskEngine, buckets: GroupBuckets, before: Sequence[Future], earlier_groups: int) -> Fates:
    own = list(zip(buckets.groups, before, strict=True))
    count = len(own)
    sent = send(engine, "send-matches", "matches", partial(_send_matches, count), own)
    earlier: list[OldCounts] = engine.gather(exchange(engine, "matches", sent, tracks.count_old, [() for _ in own]))
    later: list[NewCounts] = engine.gather(engine.map("count-later", _count_later, own))
    return summed(later, earlier, earlier_groups)


def _match(groups: GroupsOfBucket, earlier: EarlierResult, parts: dict[int, tracks.Overlaps]) -> MatchedPairs:
    return tracks.match(groups.listed, earlier, parts)


def _take_over(
    groups: GroupsOfBucket,
    before: MatchedPairs | None,
    replaced: MatchedPairs | None,
    previous_result: EarlierResult | None,
) -> InheritedTracks:
    return tracks.inherit_tracks(groups.listed, before, replaced, previous_result)


def _send_shapes(groups: GroupsOfBucket, taken: InheritedTracks) -> Bundle[Shapes]:
    return tracks.send_shapes(groups.bucket, groups.listed, taken)


def _collect_tracks(
    groups: GroupsOfBucket, taken: InheritedTracks, parts: dict[int, tracks.Numbers]
) -> NDArray[np.int64]:
    return tracks.collect_tracks(groups.listed, taken, parts)


def _send_matches(buckets: int, groups: GroupsOfBucket, before: MatchedPairs) -> Bundle[tracks.PairOutcomes]:
    return tracks.send_outcomes(groups.bucket, buckets, groups.listed, before)


def _count_later(groups: GroupsOfBucket, before: MatchedPairs) -> NewCounts:
    return tracks.count_new(groups.listed, before)


def _counts(taken: InheritedTracks) -> tuple[int, int, int]:
    return len(taken.track), taken.continued, taken.again
