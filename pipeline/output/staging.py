"""Selection of the staging of a run: in a folder on a disk, or in an object store."""

from __future__ import annotations

from typing import TypeAlias

from ...tasks.storage.folders import folder_at
from ..settings.models import Settings
from . import folder_staging, store_staging
from .folder_staging import FolderStaging
from .store_staging import StoreStaging

Staging: TypeAlias = FolderStaging | StoreStaging


def staging_for(settings: Settings, run_id: str, is_path: bool = True) -> Staging:
    """The staging of a run with these settings: a context manager that holds the lock of the output.

    If the input `is_path`, it must not overlap the output. Else the setting is only a name for it.
    """
    out = folder_at(settings.output.path, settings.output.storage_options)
    how = {"overwrite": settings.output.overwrite, "or_same": not settings.checkpoint.fresh}
    source = folder_at(settings.input.path, settings.input.storage_options) if is_path else None
    if out.is_local:
        return FolderStaging(out.url, run_id=run_id, source=source, **how)
    return StoreStaging(out, run_id=run_id, source=source, single_writer=settings.output.single_writer, **how)


def keep_failure(settings: Settings, run_id: str, log: bytes) -> str | None:
    """Keep the log of a run that failed before it took the lock of its output, where a staging keeps its own.

    Returns the place; None if the output is a foreign file or folder, beside which nothing is written. Raises OSError,
    UsageError, StoreLost.
    """
    out = folder_at(settings.output.path, settings.output.storage_options)
    if out.is_local:
        return folder_staging.keep_failure(out, run_id, log)
    return store_staging.keep_failure(out, run_id, log)
