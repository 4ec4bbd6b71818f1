"""A call of `mine` whose output already holds a result: reasons to replace it, and the work left if it is kept.

`follow_up` does the work after a complete result, whether this run or an earlier one made the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ...tasks.errors import EdgemillError, StoreLost
from ...tasks.storage.folders import folder_at
from ...tasks.storage.passwords import without_passwords
from ..checkpoint.files import checkpoint_place, clear_earlier, clear_files
from ..messages.exits import message
from ..nightly.night import follows
from ..output.staging import Staging
from ..results.result import Result
from .context import Call
from .inputs.up_to_date import differences, input_differences
from .inputs.vertices import open_vertices


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
    if before is None or follows(manifest, before, before.run) or manifest.tracks is None:
        return None
    then = manifest.tracks.previous or manifest.tracks.refused
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
