"""A night with the same input and settings as an earlier result: all files of that result become those of the new one.

This is decided by the input's files and settings, before Dask and the kernels are imported. The functions that find and
move the folder of a result's state are here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from ...tasks.errors import EdgemillError, StoreLost
from ...tasks.inputs.sources import Source, file_digests
from ...tasks.publish.writing import OutputFile
from ...tasks.storage.folders import Folder, folder_at, take_over
from ...tasks.update.state_index import FOLDER, NoState, carry_state, has_state
from ..events import Events
from ..messages.exits import message
from ..nightly.night import Lineage, lineage_of, refuse_few_edges
from ..opening.context import Call
from ..opening.existing_result import differences
from ..opening.input import input_record
from ..output.manifest import (
    EarlierRecord,
    InputRecord,
    Manifest,
    OutputRecord,
    ProgramRecord,
    TracksRecord,
    UpdateRecord,
)
from ..output.staging import Staging
from ..results.result import Result
from ..settings.declared_programs import LAMBDA
from ..settings.models import Settings
from .eligibility import NotUsable, earlier_result


def state_place(settings: Settings, place: Folder, run: str) -> Folder:
    """The folder of the state of the result of `run`, whose files are at `place`."""
    own = settings.nightly.state
    if own is None:
        return place.subfolder(FOLDER)
    return folder_at(own, settings.output.storage_options).subfolder(run)


def state_found(settings: Settings, result: Result) -> Folder:
    """The folder of the state of a result. Raises NoState."""
    places = [result.place.subfolder(FOLDER), result.place.subfolder(f"edgemill-{result.manifest.run}/{FOLDER}")]
    if settings.nightly.state is not None:
        places.insert(0, state_place(settings, result.place, result.manifest.run))
    for place in places:
        try:
            if has_state(place):
                return place
        except (EdgemillError, OSError) as error:
            raise NoState(f"the state in {place} cannot be read: {message(error)}") from error
    raise NoState("the earlier result has no state")


def move_state(settings: Settings, base: Result, staging: Staging, events: Events) -> None:
    """Take over the files of the state of `base` for this run, whose result is the same. Raises NoState if there is
    none.
    """
    source, target = state_found(settings, base), state_place(settings, staging.tables, events.run_id)
    carry_state(source, target, events.run_id)
    events.emit("state_written", place=str(target), bytes=0)


T = TypeVar("T")


def beside(call: Callable[[], T]) -> Future[T]:
    """The outcome of a call in a thread of its own. The process does not end before the call has returned."""
    pool = ThreadPoolExecutor(1)
    outcome = pool.submit(call)
    pool.shutdown(wait=False)
    return outcome


Digests = Future[list[str] | None]
"""Digest of each file of an input; None for an input that has none."""
REASON = "nothing has changed"
_LINKERS = 16
"""Threads that take files over. They mostly wait for the disk or the store."""


@dataclass(frozen=True)
class Unchanged:
    """A result that has all files of an earlier one."""

    manifest: Manifest
    base: Result


def digests_of(source: Source) -> Digests:
    """SHA-256 of the files of an input, by which a night without change is recognised. Other threads compute them.

    None for inputs whose edges depend not only on files: versions of tables, conditions with values in paths, frames.
    """
    if source.frame is not None or source.table is not None or source.where is not None:
        none: Digests = Future()
        none.set_result(None)
        return none
    return beside(partial(file_digests, source.files))


def take_over_unchanged(call: Call, source: Source, known: str | None, digests: Digests) -> Unchanged | None:
    """Take over all files of the earlier result; None if its input or settings differ, or may differ, from those of
    this run.

    `known` is the fingerprint of the input, and `digests` is the result of `digests_of`. Also None if λ is due to be
    found from nothing.
    """
    settings, events = call.settings, call.events
    try:
        base = earlier_result(settings, call.night)
    except StoreLost:
        raise
    except (EdgemillError, NotUsable):
        return None  # the update that follows tells why
    call.reads(base)
    if base is None or not is_same(settings, base, source, known, digests):
        return None
    refuse_few_edges(call.before, settings.nightly, base.manifest.counts.edges)
    lineage = lineage_to(call, source, base)
    tracks = same_tracks(base, lineage)
    programs = programs_with_same_tracks(call, source, base)
    if (base.manifest.tracks is not None and tracks is None) or programs is None:
        return None
    if is_full_run_due(settings, base):
        return None
    before = base.manifest.update
    counts = dict.fromkeys(("inserted", "deleted", "vertices_new", "vertices_gone"), 0)
    told = {**counts, "repeated": 0, "present": 0, "absent": 0, "in_both": 0}
    events.emit("update_planned", base=str(base.place), way="changes", reason=REASON, **told)
    with events.stage("publish", 0):
        files = take_all(base, call.staging.tables)
        with suppress(NoState):  # results of clusters have none
            move_state(settings, base, call.staging, events)
    record = UpdateRecord(
        base=str(base.place),
        base_run=base.manifest.run,
        full_run=base.manifest.run if before is None else before.full_run,
        nights=1 if before is None else before.nights + 1,
        way="changes",
        reason=REASON,
        changed=0,
        files_kept=len(files),
        **counts,
    )
    manifest = base.manifest.model_copy(
        update={
            "run": events.run_id,
            "settings": settings.model_dump(),
            "started": events.started,
            "finished": datetime.now(UTC),
            "input": _input(source, base),
            "exchanges": [],
            "stages": events.stages,
            "tracks": tracks,
            "programs": programs,
            "update": record,
            "outputs": [
                OutputRecord(path=call.staging.prefix + f.name, rows=f.rows, bytes=f.bytes, sha256=f.sha256)
                for f in files
            ],
        }
    )
    return Unchanged(manifest, base)


def take_all(result: Result, folder: Folder) -> list[OutputFile]:
    """Take all files of a result over, under their names."""

    def taken(record: OutputRecord) -> OutputFile:
        name = "/".join(record.path.rsplit("/", 2)[-2:])
        take_over(result.place, record.path, folder, name)
        return OutputFile(name, record.rows, record.bytes, record.sha256)

    with ThreadPoolExecutor(_LINKERS) as linkers:
        return list(linkers.map(taken, result.manifest.outputs))


def lineage_to(call: Call, source: Source, base: Result, groups: str = LAMBDA) -> Lineage:
    """The earlier results from which DN-graphs, or groups of a program, take their tracks: the results of the series,
    or else the earlier result.
    """
    if call.night is not None:
        lineage = lineage_of(call.night, source.id_type, call.events, groups)
        call.reads(lineage.before)
        return lineage
    tracks = base.manifest.tracks_of(groups)
    day = str(base.manifest.settings.get("nightly", {}).get("date") or "")
    return Lineage() if tracks is None else Lineage(tracks.next, base, day)


def same_tracks(base: Result, lineage: Lineage, groups: str = LAMBDA) -> TracksRecord | None:
    """The record of tracks if all tracks are the same as in the earlier result; None if they may differ."""
    tracks, before = base.manifest.tracks_of(groups), lineage.before
    if before is None or before.manifest.run != base.manifest.run or lineage.replaced or not tracks:
        return None
    earlier = EarlierRecord(day=lineage.day, path=str(base.place), run=base.manifest.run)
    continued = tracks.continued + tracks.again + tracks.new
    return TracksRecord(previous=earlier, continued=continued, again=0, new=0, next=lineage.first)


def programs_with_same_tracks(call: Call, source: Source, base: Result) -> list[ProgramRecord] | None:
    """The records of the programs of the earlier result, with its tracks continued; None if some tracks may differ."""
    found = []
    for record in base.manifest.programs:
        if record.tracks is not None:
            tracks = same_tracks(base, lineage_to(call, source, base, record.name), record.name)
            if tracks is None:
                return None
            record = record.model_copy(update={"tracks": tracks})
        found.append(record)
    return found


def is_full_run_due(settings: Settings, base: Result) -> bool:
    """Whether λ must be found from nothing again, because the last time was `nightly.full_every` nights ago."""
    before = base.manifest.update
    nights = 1 if before is None else before.nights + 1
    return settings.nightly.incremental != "always" and nights >= settings.nightly.full_every


def is_same(settings: Settings, base: Result, source: Source, known: str | None, digests: Digests) -> bool:
    """Whether the earlier result is the one that a run with these settings would make.

    `known` is the fingerprint of the input, and `digests` is the result of `digests_of`. Waits for the digests only if
    the files have the sizes of the earlier ones.
    """
    then = base.manifest
    if differences(then, settings):
        return False
    if known is not None and known == then.input.fingerprint:
        return True
    if settings.input.vertices is not None or then.input.vertices is not None:
        return False
    if Counter(file.bytes for file in source.files) != Counter(file.bytes for file in then.input.files):
        return False
    own = digests.result()
    if own is None or Counter(own) != Counter(file.sha256 for file in then.input.files):
        return False
    return _facts(then.input) == _facts(input_record(source))


def _facts(record: InputRecord) -> InputRecord:
    """The record without its files and what names them."""
    return record.model_copy(update={"files": [], "fingerprint": None, "notes": []})


def _input(source: Source, base: Result) -> InputRecord:
    """The record of today's input, with the frame, vertices and notes of the earlier record."""
    then = base.manifest.input
    new = input_record(source, then.isolated)
    return new.model_copy(update={"frame": then.frame, "vertices": then.vertices, "notes": then.notes})
