"""What the manifest says of the input."""

from __future__ import annotations

from dataclasses import asdict

from ..tasks.passwords import without_passwords
from ..tasks.sources import Source
from ..tasks.spelling import type_name
from .manifest import InputFile, InputRecord, LayoutRecord, TableRecord, WhereRecord

__all__ = ["input_record"]


def input_record(source: Source) -> InputRecord:
    """The record of an input, without its fingerprint."""
    where, layout = source.where, source.layout
    return InputRecord(
        files=[
            InputFile(path=without_passwords(f.path), bytes=f.bytes, rows=f.rows if source.is_counted else None)
            for f in source.files
        ],
        id_type=type_name(source.id_type),
        source_column=source.source_column,
        target_column=source.target_column,
        table=None if source.table is None else TableRecord(**asdict(source.table)),
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
        notes=[without_passwords(note) for note in source.notes],
    )
