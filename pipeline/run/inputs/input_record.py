"""The input in the manifest, the log and the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256

from ....tasks.ids.display import type_name
from ....tasks.inputs.sources import Frame, Source
from ....tasks.storage.passwords import without_passwords
from ...monitor.events import Events
from ...output.manifest import (
    Counts,
    FrameRecord,
    InputFile,
    InputRecord,
    LayoutRecord,
    TableRecord,
    WeightRecord,
    WhereRecord,
)


def input_record(source: Source, isolated: bool = False, notes: Sequence[str] = ()) -> InputRecord:
    """The record of an input, without its fingerprint. `isolated`: whether listed vertices without edges count;
    `notes`: what was seen in its rows.
    """
    where, layout = source.where, source.layout
    return InputRecord(
        files=[]
        if source.frame is not None
        else [
            InputFile(path=without_passwords(f.path), bytes=f.bytes, rows=f.rows if source.is_counted else None)
            for f in source.files
        ],
        id_type=type_name(source.id_type),
        source_column=source.source_column,
        target_column=source.target_column,
        table=None if source.table is None else TableRecord(**asdict(source.table)),
        frame=None if source.frame is None else frame_record(source.frame, source.rows),
        format=source.format,
        layout=None if layout is None else LayoutRecord(**layout.facts()),
        where=None
        if where is None
        else WhereRecord(
            condition=where.condition.text,
            types={name: str(kind) for name, kind in where.types},
            files_left_out=source.files_left_out,
        ),
        bipartite=source.bipartite,
        directed=source.directed,
        weights=None
        if source.weights is None
        else WeightRecord(column=source.weights.column, repeats=source.weights.repeats),
        isolated=isolated,
        notes=[without_passwords(note) for note in (*source.notes, *notes)],
    )


def with_digests(record: InputRecord, digests: Sequence[str]) -> InputRecord:
    """The record with the SHA-256 of each file."""
    files = [file.model_copy(update={"sha256": one}) for file, one in zip(record.files, digests, strict=True)]
    return record.model_copy(update={"files": files})


def frame_record(frame: Frame, rows: int) -> FrameRecord:
    """The record of a frame with `rows` rows."""
    own = frame.sha256
    return FrameRecord(
        kind=frame.kind, rows=rows, sha256=own[0] if len(own) == 1 else sha256("".join(own).encode()).hexdigest()
    )


def report_input(source: Source, events: Events, notes: Sequence[str]) -> None:
    """Emit an event that says how the input is read, and `notes` on what was guessed about it."""
    where, layout = source.where, source.layout
    events.emit(
        "input",
        format=source.format,
        files=len(source.files),
        columns=[source.source_column, source.target_column],
        id_type=type_name(source.id_type),
        layout=None if layout is None else layout.facts(),
        where=None if where is None else where.condition.text,
        files_left_out=source.files_left_out,
        bipartite=source.bipartite,
        directed=source.directed,
        weights=None if source.weights is None else source.weights.column,
    )
    for note in notes:
        events.emit("note", text=without_passwords(note))


def no_triangle(counts: Counts, events: Events) -> list[str]:
    """The note for a graph with edges and without triangles; empty for other graphs. Emits the note as well."""
    if counts.triangles != 0 or not counts.edges:
        return []
    note = (
        "no edge is in a triangle, so every λ is 0 and there is no dense group: a table of two sets of ids, such as "
        "people and what they bought, never has one; docs/inputs.md says what to do with such a table"
    )
    events.emit("note", text=note)
    return [note]
