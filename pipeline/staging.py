"""Where a result is made and how it is published: on a disk or in an object store, as the output's place has it."""

from __future__ import annotations

from typing import TypeAlias

from ..tasks.places import place_of
from .output import Staging
from .settings import Settings
from .store_output import StoreStaging

__all__ = ["AnyStaging", "staging_for"]

AnyStaging: TypeAlias = Staging | StoreStaging


def staging_for(settings: Settings, run_id: str, is_path: bool = True) -> AnyStaging:
    """The staging of a run with these settings; a context manager, which holds the output's lock. The input
    `is_path`, which is to lie apart, or it is something else, and then the settings have its name.
    """
    out = place_of(settings.output.path, settings.output.storage_options)
    how = {"overwrite": settings.output.overwrite, "or_same": not settings.checkpoint.fresh}
    source = place_of(settings.input.path, settings.input.storage_options) if is_path else None
    if out.is_local:
        return Staging(out.url, run_id=run_id, source=source, **how)
    return StoreStaging(out, run_id=run_id, source=source, single_writer=settings.output.single_writer, **how)
