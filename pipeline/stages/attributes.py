"""The stage of a run that sends attributes of vertices to the buckets of the vertices and writes their table.

It runs before bounding, so that an id with several rows ends the run early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ...tasks import attributes
from ...tasks.attributes import AttributeSource
from ...tasks.device import MemorySpace
from ...tasks.inputs.sources import Source
from ...tasks.publish.writing import OutputFile
from ...tasks.storage.folders import Folder
from ...tasks.storage.passwords import without_passwords
from ..cluster.engine import Engine, Future
from ..events import Events
from ..output.manifest import InputFile, Manifest, OutputRecord, TableRecord, VerticesRecord
from ..settings.models import BLOCK_ROWS, Settings
from .exchange import exchange, send


@dataclass(frozen=True)
class JoinedAttributes:
    """The written files, and their record for the manifest."""

    files: list[OutputFile]
    record: VerticesRecord


def read_isolated(
    engine: Engine, source: Source, vertices: AttributeSource, settings: Settings, first: int, space: MemorySpace
) -> list[Future]:
    """The ids of the table of vertices as blocks of the input without edges, numbered from `first`.

    Returns [blocks] BlockEdges. Raises InputError for damage and null ids.
    """
    blocks = attributes.plan_attribute_blocks(vertices, settings.ingest.rows_per_block or BLOCK_ROWS)
    tasks = [(vertices, source, block, first + block.number, space) for block in blocks]
    found = engine.for_tasks(len(blocks)).map("read-vertices", attributes.read_listed_ids, tasks)
    engine.wait(found)
    return found


def join_attributes(
    engine: Engine,
    events: Events,
    source: AttributeSource,
    buckets: Sequence[Future],
    folder: Folder,
    settings: Settings,
) -> JoinedAttributes:
    """Write the table `attributes` below `folder`, a file for each bucket. `buckets` hold BucketIds.

    Raises InputError for damage, null ids and an id with several rows.
    """
    blocks = attributes.plan_attribute_blocks(source, settings.ingest.rows_per_block or BLOCK_ROWS)
    engine = engine.for_tasks(len(buckets))
    with events.stage("attributes", len(blocks) + len(buckets)) as stage:
        firsts = engine.peek(buckets, attributes.bucket_range)
        rows = engine.map("read-attributes", attributes.read_attributes, [(source, block) for block in blocks])
        engine.wait(rows, stage)
        sent = send(
            engine,
            "send-attributes",
            "attributes",
            attributes.send_attributes,
            [(own, firsts) for own in rows],
            engine.holders(rows),
        )
        del rows
        how = attributes.AttributeTable(folder, settings.output.compression, settings.output.row_group_rows)
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
    return JoinedAttributes([own.file for own in written], record)


def with_attributes(manifest: Manifest, joined: JoinedAttributes | None, prefix: str) -> Manifest:
    """The manifest with the table of attributes, whose files are below `prefix`; unchanged if `joined` is None."""
    if joined is None:
        return manifest
    files = [OutputRecord(path=prefix + f.name, rows=f.rows, bytes=f.bytes, sha256=f.sha256) for f in joined.files]
    read = manifest.input.model_copy(update={"vertices": joined.record})
    return manifest.model_copy(update={"input": read, "outputs": [*manifest.outputs, *files]})
