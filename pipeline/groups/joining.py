"""The stage that brings attributes of vertices to the buckets of their vertices, and publishes them.

It comes before the search for λ, so that an id that is there twice ends a run at its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ...tasks import attributes
from ...tasks.attributes import AttributeSource
from ...tasks.passwords import without_passwords
from ...tasks.places import Place
from ...tasks.sources import Source
from ...tasks.writing import OutputFile
from ..engine import Engine, Future
from ..exchange import exchange, send
from ..manifest import InputFile, Manifest, OutputRecord, TableRecord, VerticesRecord
from ..settings import Settings
from ..telemetry import Events

__all__ = ["Joined", "join_attributes", "open_vertices", "with_attributes"]


@dataclass(frozen=True)
class Joined:
    """What was written, and the record of it."""

    files: list[OutputFile]
    record: VerticesRecord


def open_vertices(settings: Settings, source: Source) -> AttributeSource | None:
    """The attributes of vertices that the settings name, by their footers; None if they name none.

    Raises InputError as `open_attributes` does.
    """
    given = settings.input
    if given.vertices is None:
        return None
    return attributes.open_attributes(
        given.vertices,
        source.id_type,
        id_column=given.vertex_id,
        columns=given.vertex_columns,
        label=given.vertex_label,
        storage_options=given.storage_options,
    )


def join_attributes(
    engine: Engine,
    events: Events,
    source: AttributeSource,
    buckets: Sequence[Future],
    folder: Place,
    settings: Settings,
) -> Joined:
    """Write the table `attributes` below `folder`, a file for each of the buckets' BucketIds, and tell what it lacks.

    Raises InputError for damage, null ids and an id that has several rows.
    """
    blocks = attributes.plan_attribute_blocks(source, settings.ingest.rows_per_block)
    engine.spread(len(buckets))
    with events.stage("attributes", len(blocks) + len(buckets)) as stage:
        firsts = engine.peek(buckets, attributes.bucket_range)
        rows = engine.map("read-attributes", attributes.read_attributes, [(source, block) for block in blocks])
        engine.wait(rows, stage)
        sent = send(
            engine, "send-attributes", "attributes", attributes.send_attributes, [(own, firsts) for own in rows]
        )
        del rows
        how = attributes.Published(folder, settings.output.compression, settings.output.row_group_rows)
        tasks = exchange(
            engine, "attributes", sent, attributes.publish_attributes, [(source, how, own) for own in buckets]
        )
        del sent
        engine.wait(tasks, stage)
        written = engine.gather(tasks)
    record = VerticesRecord(
        files=[InputFile(path=without_passwords(f.path), bytes=f.bytes, rows=f.rows) for f in source.files],
        id_column=source.id_column,
        columns=source.schema.names,
        label=source.label,
        rows=source.rows,
        unknown=sum(own.unknown for own in written),
        missing=sum(own.missing for own in written),
        table=None if source.table is None else TableRecord(**asdict(source.table)),
    )
    events.emit(
        "attributes_joined", rows=record.rows, unknown=record.unknown, missing=record.missing, label=record.label
    )
    return Joined([own.file for own in written], record)


def with_attributes(manifest: Manifest, joined: Joined | None, prefix: str) -> Manifest:
    """A manifest that names the table, whose files lie below `prefix`; as it is without one."""
    if joined is None:
        return manifest
    files = [OutputRecord(path=prefix + f.name, rows=f.rows, bytes=f.bytes, sha256=f.sha256) for f in joined.files]
    read = manifest.input.model_copy(update={"vertices": joined.record})
    return manifest.model_copy(update={"input": read, "outputs": [*manifest.outputs, *files]})
