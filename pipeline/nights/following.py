"""A run's DN-graphs get their tracks, from the results that are there already, while their tables are not written yet.

`tasks/tracks` says how: each bucket reads what concerns it of the earlier results.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...tasks import tracks
from ...tasks.dense import BucketGroups
from ...tasks.errors import EdgemillError, InputError, StoreLost
from ...tasks.messages import Bundle
from ...tasks.places import Place
from ...tasks.spelling import type_name
from ...tasks.tracks import Earlier, EarlierCounts, LaterCounts, Matched, Shapes, Taken
from ..engine import Engine, Future
from ..exchange import exchange, send
from ..exits import message
from ..manifest import EarlierRecord, TracksRecord
from ..result import Result
from ..telemetry import Events
from .fates import Fates

if TYPE_CHECKING:
    from ..nightly import Night

__all__ = ["Buckets", "Followed", "Lineage", "earlier_tables", "follow_groups", "lineage_of", "summed"]


@dataclass(frozen=True)
class Lineage:
    """What the tracks of a run go by."""

    first: int = 1
    """The smallest number that no track has."""
    before: Result | None = None
    """The result of the night before, if its tracks can be taken over."""
    day: str = ""
    """Its day."""
    replaced: Result | None = None
    """The result of the same night that this run replaces, if its tracks can be taken over."""


@dataclass(frozen=True)
class Buckets:
    """The DN-graphs of a run."""

    ids: Sequence[Future]
    """[buckets] BucketIds"""
    groups: Sequence[Future]
    """[buckets] BucketGroups"""
    starts: NDArray[np.int64]
    """[buckets + 1] first dense number of each."""
    highest: int
    """The highest λ."""
    id_type: pa.DataType
    """Of vertices, in the result."""


@dataclass(frozen=True)
class Followed:
    """DN-graphs with tracks."""

    tracks: list[Future]
    """[buckets] tracks of its DN-graphs, int64"""
    record: TracksRecord


def lineage_of(night: Night | None, id_type: pa.DataType, events: Events) -> Lineage:
    """The earlier results that a run of these ids can take tracks over from.

    If the night before cannot be read, or has other ids, the event `tracks_new` says why. Raises StoreLost where a
    store does not answer: new numbers for all would be worse than a night that is repeated.
    """
    if night is None:
        return Lineage()
    earlier, ids = night.previous(), type_name(id_type)
    return Lineage(
        night.series.next_track(),
        None if earlier is None else _usable(earlier.place, ids, events),
        "" if earlier is None else earlier.day,
        _usable(night.place, ids, None) if night.has_result() else None,
    )


def follow_groups(engine: Engine, events: Events, buckets: Buckets, lineage: Lineage) -> Followed:
    """Give each DN-graph a track. Without a result that they can be taken over from, or if it turns out to be damaged,
    which the event `tracks_new` tells, all tracks are new. Raises StoreLost as `lineage_of` does.
    """
    start, before = time.perf_counter(), lineage.before
    with events.stage("follow", 0) if before is not None else nullcontext():
        try:
            given, taken, fates = _assigned(engine, buckets, lineage)
        except InputError as error:  # tasks read nothing but earlier results
            if before is not None:
                events.emit("tracks_new", before=str(before.place), reason=message(error))
            lineage, before = replace(lineage, before=None, replaced=None), None
            given, taken, fates = _assigned(engine, buckets, lineage)
        counts = engine.peek(taken, _counts)
    graphs, continued, again = (sum(column) for column in zip(*counts, strict=True))
    new = graphs - continued - again
    record = None
    if before is not None:
        record = EarlierRecord(day=lineage.day, path=str(before.place), run=before.manifest.run)
    events.emit(
        "followed",
        since=None if record is None else record.day,
        before=None if record is None else record.path,
        seconds=round(time.perf_counter() - start, 3),
        new=new,
        groups=None if fates is None else asdict(fates),
    )
    return Followed(
        given,
        TracksRecord(previous=record, continued=continued, again=again, new=new, next=lineage.first + new),
    )


def earlier_tables(result: Result) -> Earlier:
    """Where the tables of a result are that tracks are taken over from."""

    def files(table: str) -> tuple[str, ...]:
        paths = sorted(output.path for output in result.manifest.outputs)
        return tuple(path for path in paths if PurePosixPath(path).parent.name == table)

    return Earlier(result.place, files("vertices"), files("dn_graphs"))


def summed(later: Sequence[LaterCounts], earlier: Sequence[EarlierCounts], graphs: int) -> Fates:
    """What became of the DN-graphs of the night before, `graphs` in number, by the counts of all buckets."""

    def total(name: str, counts: Sequence[LaterCounts] | Sequence[EarlierCounts]) -> int:
        return sum(map(attrgetter(name), counts))

    return Fates(
        continued=total("continued", later),
        grown=total("grown", later),
        shrunk=total("shrunk", later),
        born=total("apart", later) - total("parts", earlier),
        died=graphs - total("left", earlier),
        merged=total("merged", later),
        split=total("split", earlier),
    )


def _assigned(engine: Engine, buckets: Buckets, lineage: Lineage) -> tuple[list[Future], list[Future], Fates | None]:
    """[buckets] tracks; [buckets] Taken; what became of the groups of the night before."""
    everyone = range(len(buckets.groups))
    before = _matched(engine, buckets, lineage.before)
    replaced = _matched(engine, buckets, lineage.replaced)
    night_before = None if lineage.before is None or replaced is None else earlier_tables(lineage.before)
    taken = engine.map(
        "take-over",
        _take_over,
        [(buckets.groups[b], before and before[b], replaced and replaced[b], night_before) for b in everyone],
    )
    own = list(zip(buckets.groups, taken, strict=True))
    sent = send(engine, "send-shapes", "shapes", _send_shapes, own)
    numbers = exchange(engine, "shapes", sent, tracks.number_shapes, [(lineage.first,)], forward="numbers")
    given = exchange(engine, "numbers", numbers, _collect_tracks, own)
    fates = None
    if before is not None and lineage.before is not None:
        fates = _fates(engine, buckets, before, lineage.before)
    engine.wait(given)
    return given, taken, fates


def _matched(engine: Engine, buckets: Buckets, result: Result | None) -> list[Future] | None:
    """[buckets] what their DN-graphs have in common with those of the result."""
    if result is None:
        return None
    earlier = earlier_tables(result)
    sent = send(
        engine,
        "send-overlaps",
        "overlaps",
        tracks.send_overlaps,
        [
            (ids, groups, buckets.id_type, buckets.starts, buckets.highest, earlier)
            for ids, groups in zip(buckets.ids, buckets.groups, strict=True)
        ],
    )
    return exchange(engine, "overlaps", sent, _match, [(groups, earlier) for groups in buckets.groups])


def _fates(engine: Engine, buckets: Buckets, before: Sequence[Future], result: Result) -> Fates:
    own = list(zip(buckets.groups, before, strict=True))
    count = len(own)
    sent = send(engine, "send-matches", "matches", partial(_send_matches, count), own)
    earlier: list[EarlierCounts] = engine.gather(
        exchange(engine, "matches", sent, tracks.count_earlier, [() for _ in own])
    )
    later: list[LaterCounts] = engine.gather(engine.map("count-later", _count_later, own))
    return summed(later, earlier, 0 if result.manifest.dense is None else result.manifest.dense.dn_graphs)


def _match(groups: BucketGroups, earlier: Earlier, parts: dict[int, tracks.Overlaps]) -> Matched:
    return tracks.match(groups.dn_graphs, earlier, parts)


def _take_over(
    groups: BucketGroups, before: Matched | None, replaced: Matched | None, night_before: Earlier | None
) -> Taken:
    return tracks.take_over(groups.dn_graphs, before, replaced, night_before)


def _send_shapes(groups: BucketGroups, taken: Taken) -> Bundle[Shapes]:
    return tracks.send_shapes(groups.bucket, groups.dn_graphs, taken)


def _collect_tracks(groups: BucketGroups, taken: Taken, parts: dict[int, tracks.Numbers]) -> NDArray[np.int64]:
    return tracks.collect_tracks(groups.dn_graphs, taken, parts)


def _send_matches(buckets: int, groups: BucketGroups, before: Matched) -> Bundle[tracks.Matches]:
    return tracks.send_matches(groups.bucket, buckets, groups.dn_graphs, before)


def _count_later(groups: BucketGroups, before: Matched) -> LaterCounts:
    return tracks.count_later(groups.dn_graphs, before)


def _counts(taken: Taken) -> tuple[int, int, int]:
    return len(taken.track), taken.continued, taken.again


def _usable(place: Place, id_type: str, events: Events | None) -> Result | None:
    """The result there, if its tracks can be taken over; the events, if given, say why not."""
    try:
        result = Result(place)
        why = _difference(result, id_type)
        if not why:
            _ = result.vertices, result.dn_graphs  # damage of their footers is known now
            return result
    except StoreLost:
        raise
    except EdgemillError as error:
        why = message(error)
    if events is not None:
        events.emit("tracks_new", before=str(place), reason=why)
    return None


def _difference(old: Result, id_type: str) -> str:
    manifest = old.manifest
    if not manifest.converged:
        return "it did not converge"
    if manifest.tracks is None:
        return "it was made by a release without tracks"
    if manifest.input.id_type != id_type:
        return f"its ids are {manifest.input.id_type}, and now they are {id_type}"
    return ""
