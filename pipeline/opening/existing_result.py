"""A call of `mine` whose output already holds a result: reasons to replace it, and the work left if it is kept.

Reasons are the differences from the result that the call would make: in settings, input and versions. `follow_up` does
the work after a complete result, whether this run or an earlier one made the result.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...tasks.errors import EdgemillError, StoreLost
from ...tasks.ids.display import type_name
from ...tasks.inputs.sources import Source, SourceFile
from ...tasks.storage.folders import folder_at
from ...tasks.storage.passwords import without_passwords
from ..inputs.frame_input import VERTICES
from ..messages.exits import message
from ..nightly.night import stale_tracks
from ..output.checkpoint_files import checkpoint_place, clear_earlier, clear_files
from ..output.manifest import InputFile, InputRecord, Manifest, VerticesRecord
from ..output.staging import Staging
from ..results.result import Result
from ..settings.declared_programs import LAMBDA, names_of
from ..settings.models import SECTIONS, Settings
from ..settings.sources import sections_of
from .context import Call
from .input import frame_record, open_vertices

if TYPE_CHECKING:
    from ...tasks.attributes import AttributeSource


def reasons_to_replace(call: Call) -> list[str]:
    """All reasons why the existing result differs from the one that this call would make; empty if it does not.

    Opens the input if this is possible.
    """
    try:
        manifest = Result(folder_at(call.staging.out)).manifest
    except StoreLost:
        raise
    except EdgemillError as error:
        return [str(error)]
    reasons = differences(manifest, call.settings)
    if reasons and call.input.is_written:  # a reader of batches can only be read once
        return reasons
    try:
        source = call.input.open()
    except EdgemillError:
        if not reasons:
            raise
        return reasons  # the run that replaces the result raises the error again
    return [*reasons, *input_differences(manifest, source, open_vertices(call.settings, source))]


def outdated_by(call: Call) -> str | None:
    """Why the existing result does not follow the one before it as that is now; None if it does.

    The tracks of its groups and the changes that it reports depend on the result before it. λ does not.
    """
    before, manifest = call.before, Result(folder_at(call.staging.out)).manifest
    stale = None if before is None else stale_tracks(manifest, before, before.run)
    if before is None or stale is None:
        return None
    then = stale.previous or stale.refused
    if then is None or (before.day and then.day != before.day):
        return f"its tracks and changes are not those since {before}, whose result was made later"
    return f"its tracks and changes are those since run {then.run or 'unknown'} of {before}, which has been replaced"


def keep_existing(call: Call, outdated: str | None = None) -> Result:
    """The existing result. Completes the work of a run that ended right after it published the result.

    The event `outdated` tells why it should be made again, if it should.
    """
    staging, events = call.staging, call.events
    result = Result(folder_at(staging.out))
    checkpoints = folder_at(*_checkpoint(call))
    events.emit("nothing_to_do", result=result.manifest.run)
    if outdated is not None:
        events.emit("outdated", result=str(staging.out), reason=outdated)
    try:
        clear_earlier(checkpoints, result.manifest.finished)
    except (EdgemillError, OSError) as error:
        events.emit("not_removed", place=str(checkpoints), reason=message(error))
    with _noting_result(staging):
        if call.night is not None:
            call.night.succeeded(events)
        if call.tables is not None:
            call.tables.publish(events)
    with suppress(EdgemillError, OSError):  # the result is complete even if the log is not
        staging.add_to_log()
    return result


def clear_checkpoint(call: Call) -> None:
    """Remove the checkpoint that a run left at this output. Raises UsageError."""
    clear_files(*_checkpoint(call))


def _checkpoint(call: Call) -> tuple[str, Mapping[str, Any]]:
    """Path or URL of the checkpoint of this output, and the options of its storage."""
    path, out = call.settings.checkpoint.path, folder_at(call.staging.out)
    options = out.options if path is None else call.settings.checkpoint.storage_options
    return checkpoint_place(out, path), options


def follow_up(call: Call, clear: Callable[[], None], converged: bool) -> None:
    """Do the work after a complete result: `clear` its checkpoint, end the night, and write the Delta tables."""
    events = call.events
    with _noting_result(call.staging):
        try:
            clear()
        except EdgemillError as error:
            events.emit("not_removed", place=without_passwords(_checkpoint(call)[0]), reason=message(error))
        if call.night is not None:
            call.night.succeeded(events) if converged else call.night.move_latest(events)
        if call.tables is not None and converged:
            call.tables.publish(events)


@contextmanager
def _noting_result(staging: Staging) -> Iterator[None]:
    """Add a note to errors of the block: the result itself is complete."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the result is at {staging.out}; run the same command again for the remaining steps")
        raise


_MOST_NAMES = 3
_WIDER = ("uint64", "double", "string")
"""Types that a column of integers can get when all its rows are read."""

_IGNORED: Mapping[str, tuple[str, ...]] = {
    # The fingerprint has the columns, the layout and the version of a table, as they were resolved.
    "input": (
        *("path", "source_column", "target_column", "table_version", "complete_marker", "least_rows"),
        *("format", "header", "delimiter", "comment", "strip", "id_type", "weight_column"),
        *("vertices", "vertex_id", "vertex_columns", "vertex_label"),
    ),
    "output": ("path", "overwrite", "report", "single_writer", "format", "delta_path"),
    "partitioning": (),
    "bounding": (),
    "programs": ("order",),
}
"""Sections of settings on which a result depends, with the settings in them on which it does not depend. It depends on
those of its programs, too.
"""


def fingerprint(source: Source, vertices: AttributeSource | None = None) -> str | None:
    """SHA-256 that identifies the input.

    It covers the paths, sizes, row groups and storage versions of files (for a frame, its content), the columns, the
    version of a table, the layout of text, the condition on rows, and the attributes of vertices.

    None if the storage does not report versions of files, because a change of a file could then not be detected.
    """
    unknown = any(file.version is None for file in (() if vertices is None else vertices.files))
    if source.frame is not None:
        files: list[Any] = [[digest] for digest in source.frame.sha256]
    else:
        unknown = unknown or any(file.version is None for file in source.files)
        files = [[file.path, file.bytes, list(file.row_groups), file.version] for file in source.files]
    if unknown:
        return None
    facts: list[Any] = [files, source.source_column, source.target_column, type_name(source.id_type)]
    if source.table is not None:
        facts.append([source.table.format, source.table.version])
    if source.layout is not None:
        facts.append(source.layout.facts())
    if source.where is not None:
        facts.append([source.where.condition.text, source.files_left_out])
    if source.bipartite is not None:
        facts.append("two-sided" if source.two_sided else source.bipartite)
    if source.directed:
        facts.append("directed")
    if source.weights is not None:
        facts.append(["weights", source.weights.column, source.weights.repeats])
    if vertices is not None:
        facts.append(_facts(vertices))
    return sha256(json.dumps(facts).encode()).hexdigest()


def _facts(vertices: AttributeSource) -> list[Any]:
    files: list[list[Any]] = [[file.path, file.bytes, list(file.row_groups), file.version] for file in vertices.files]
    if os.path.basename(vertices.path) == VERTICES:  # of a frame, by its content
        files = [[sha256(Path(file.path).read_bytes()).hexdigest()] for file in vertices.files]
    columns = [[field.name, str(field.type)] for field in vertices.schema]
    table = [] if vertices.table is None else [vertices.table.format, vertices.table.version]
    return ["vertices", files, vertices.id_column, columns, vertices.label, table]


def differences(manifest: Manifest, settings: Settings) -> list[str]:
    """All differences between a result and the one that these settings would make, except those of the input."""
    found = [] if manifest.converged else ["it did not converge: a limit ended its run"]
    made, here = manifest.versions.get("edgemill"), version("edgemill")
    if made != here:
        found.append(f"it was made by edgemill {made}, and this is {here}")
    then, now = (_relevant(one, _programs(one)) for one in (manifest.settings, settings.model_dump()))
    then = {name: default for name, default in _defaults(settings).items() if name in now} | then
    for name in sorted(then.keys() | now.keys()):
        if then.get(name) != now.get(name):
            found.append(f"{name} was {_shown(then.get(name))}, and is {_shown(now.get(name))} now")
    digests = {program.name: program.sha256 for program in manifest.programs if program.source is not None}
    for name, program in settings.requested_programs.items():
        if program.is_own and digests.get(name, program.sha256) != program.sha256:
            found.append(f"the module of the program {name}, {program.place}, has changed")
    return found


def input_differences(manifest: Manifest, source: Source, vertices: AttributeSource | None) -> list[str]:
    """All reasons why a result may have another input than `source` and `vertices`; empty if the input is the same."""
    then, source = manifest.input, _with_types_of(manifest, source)
    known = fingerprint(source, vertices)
    if then.fingerprint is not None and then.fingerprint == known:
        return []
    found = []
    before, now = (then.source_column, then.target_column), (source.source_column, source.target_column)
    if before != now:
        found.append(f"its input's columns were {' and '.join(before)}, and are {' and '.join(now)} now")
    if then.id_type != type_name(source.id_type):
        found.append(f"its ids were of the type {then.id_type}, and are {type_name(source.id_type)} now")
    weighed, weighs = (None if own is None else own.column for own in (then.weights, source.weights))
    if weighed != weighs:
        found.append(f"its weights were {_column(weighed)}, and are {_column(weighs)} now")
    old, new = (None if table is None else f"{table.format} {table.version}" for table in (then.table, source.table))
    if old != new:
        found.append(f"its input was {old or 'no table'}, and is {new or 'no table'} now")
    if then.frame is None and source.frame is None:
        found += _file_differences("files of its input", then.files, source.files, source.is_counted)
    else:
        found += _frame_differences(then, source)
    found += _vertex_differences(then.vertices, vertices)
    if not found:
        unknown = then.fingerprint is None or known is None
        why = "may have changed: their storage does not tell versions of files" if unknown else "were written again"
        files = "the files of its input" + ("" if vertices is None else ", or of attributes of vertices,")
        found.append(f"{files} {why}")
    return found


def _with_types_of(manifest: Manifest, source: Source) -> Source:
    """The input of text files with the types that a result found in all rows, where the first rows have others.

    Only the types that this run would find, too, if the files are the same.
    """
    then, layout = manifest.input.layout, source.layout
    was_guessed = manifest.settings.get("input", {}).get("id_type", "auto") == "auto"
    if then is None or layout is None or not layout.types_are_guessed or not was_guessed:
        return source
    return source.with_types({name: pa.type_for_alias(kind) for name, kind in then.types if kind in _WIDER})


def _frame_differences(then: InputRecord, now: Source) -> list[str]:
    """Differences if one of both inputs is a frame, which is compared by its digest."""
    before = "files" if then.frame is None else str(then.frame)
    there = "files" if now.frame is None else str(frame_record(now.frame, now.rows))
    if before != there:
        return [f"its input was {before}, and is {there} now"]
    same = then.frame is not None and now.frame is not None and then.frame == frame_record(now.frame, now.rows)
    return [] if same else [f"its input was another {before}"]


def _vertex_differences(then: VerticesRecord | None, now: AttributeSource | None) -> list[str]:
    if then is None or now is None:
        both = "it has attributes of vertices", "it has no attributes of vertices"
        if then is None and now is None:
            return []
        return [f"{both[then is None]}, and {'none' if now is None else 'some'} are given now"]
    found = []
    if then.id_column != now.id_column:
        found.append(f"ids of its attributes were in column {then.id_column}, and are in {now.id_column} now")
    if then.columns != now.schema.names:
        found.append(f"its attributes were {', '.join(then.columns)}, and are {', '.join(now.schema.names)} now")
    if then.label != now.label:
        found.append(f"its label of vertices was {then.label or 'none'}, and is {now.label or 'none'} now")
    return found + _file_differences("files of its attributes", then.files, now.files)


def _file_differences(
    files: str, then: Sequence[InputFile], now: Sequence[SourceFile], is_counted: bool = True
) -> list[str]:
    """`is_counted`: whether the rows of files are known before they are read."""
    before = {file.path: (file.bytes, file.rows) for file in then}
    there = {without_passwords(file.path): (file.bytes, file.rows if is_counted else None) for file in now}
    changes = (
        ("are gone", before.keys() - there.keys()),
        ("are new", there.keys() - before.keys()),
        ("have other sizes", {name for name in before.keys() & there.keys() if before[name] != there[name]}),
    )
    return [f"{files} {what}: {_some(sorted(names))}" for what, names in changes if names]


def _defaults(settings: Settings) -> dict[str, Any]:
    """Values of settings that a result of this version may lack, as the code gained them later. Ids are texts."""
    of_programs = sections_of(type(settings))
    values = {
        section: {name: own.get_default(call_default_factory=True) for name, own in model.model_fields.items()}
        for section, model in {**SECTIONS, **of_programs}.items()
    }
    return _relevant(values, of_programs)


def _column(name: str | None) -> str:
    return "none" if name is None else f"in column {name}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return "not set" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _programs(settings: Mapping[str, Any]) -> list[str]:
    """The names of the programs that run."""
    programs = settings.get("programs", {})
    return sorted({*programs.get("run", ()), *names_of(programs.get("own", ()))} - {LAMBDA})


def _relevant(settings: Mapping[str, Any], programs: Iterable[str]) -> dict[str, Any]:
    """The values on which a result with these programs depends, by dotted names."""
    found = {
        f"{section}.{name}": list(value) if isinstance(value, tuple) else value  # as JSON has it
        for section, ignored in {**_IGNORED, **dict.fromkeys(programs, ())}.items()
        for name, value in settings.get(section, {}).items()
        if name not in ignored
    }
    return found | {"cluster.device": settings.get("cluster", {}).get("device")}
