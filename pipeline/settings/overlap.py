"""Checks that the paths of a run do not overlap, since a run removes and replaces some of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from ...tasks.errors import UsageError
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.locations import location_of
from .models import Settings


def check_locations(settings: Settings) -> None:
    """Raise UsageError if the output contains checkpoints, spill files or vertex attributes, or overlaps these."""
    out = folder_at(settings.output.path, settings.output.storage_options)
    for name, path in (
        ("checkpoint.path", settings.checkpoint.path),
        ("cluster.local_directory", settings.cluster.local_directory),
    ):
        if path is not None and location_of(path).is_inside(out.location):
            raise UsageError(f"{name} {folder_at(path)} is inside output.path {out}: choose another")
    if settings.input.vertices is not None:
        refuse_input_overlap(folder_at(settings.input.vertices, settings.input.storage_options), out)


def refuse_within(place: Folder, results: Iterable[Folder]) -> None:
    """Raise UsageError if the path is inside one of the results."""
    for result in results:
        if place.location.is_inside(result.location):
            raise UsageError(f"{place} is inside the result {result}, which must not change: choose another path")


def refuse_input_overlap(source: Folder, out: Folder) -> None:
    """Raise UsageError if the next run would read the output as input, or if replacing the output would delete the
    input.
    """
    base, whole_tree = _base(source)
    if base.location.is_inside(out.location) and not (base.is_local and not os.path.exists(base.location.path)):
        raise UsageError(f"output.path {out}: the input {source} is inside it; choose an output elsewhere")
    if whole_tree and out.location.is_inside(base.location):
        raise UsageError(f"output.path {out} is inside the input {source}; choose an output elsewhere")


def _base(source: Folder) -> tuple[Folder, bool]:
    """The file or folder of an input (of a glob: before its first wildcard), and whether all below it is read."""
    names = source.url.split("/")
    first = next((at for at, name in enumerate(names) if glob.has_magic(name)), None)
    if first is None or (source.is_local and os.path.exists(os.path.expanduser(source.url))):
        return source, True
    scheme = source.url.partition("://")[0]
    base = "/".join(names[:first])
    if not source.is_local and len(base) <= len(scheme) + len("://"):  # the bucket is a wildcard
        return source, False
    return Folder(base or ("/" if source.url.startswith("/") else "."), source.options), first < len(names) - 1
