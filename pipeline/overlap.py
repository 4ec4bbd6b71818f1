"""Locations of one run that must lie apart: a run removes and replaces some of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from ..tasks.errors import UsageError
from ..tasks.locations import location_of
from ..tasks.places import Place, place_of
from .settings import Settings

__all__ = ["check_locations", "refuse_input_overlap", "refuse_within"]


def check_locations(settings: Settings) -> None:
    """Raises UsageError if what a run keeps, or spills, would lie in its output, which appears when it is complete."""
    out = place_of(settings.output.path, settings.output.storage_options)
    for name, given in (
        ("checkpoint.path", settings.checkpoint.path),
        ("cluster.local_directory", settings.cluster.local_directory),
    ):
        if given is not None and location_of(given).lies_in(out.location):
            raise UsageError(f"{name} {place_of(given)} lies in output.path {out}: choose another")
    if settings.input.vertices is not None:
        refuse_input_overlap(place_of(settings.input.vertices, settings.input.storage_options), out)


def refuse_within(place: Place, results: Iterable[Place]) -> None:
    """Raises UsageError if the place is in one of the results."""
    for result in results:
        if place.location.lies_in(result.location):
            raise UsageError(f"{place} lies in the result {result}, which stays as it is: choose another place")


def refuse_input_overlap(source: Place, out: Place) -> None:
    """Raises UsageError for an output that a later reading of the input would pick up, or whose replacement would
    delete the input.
    """
    base, whole_tree = _base(source)
    if base.location.lies_in(out.location) and not (base.is_local and not os.path.exists(base.location.path)):
        raise UsageError(f"output.path {out}: the input {source} lies in it; choose an output elsewhere")
    if whole_tree and out.location.lies_in(base.location):
        raise UsageError(f"output.path {out} lies in the input {source}; choose an output elsewhere")


def _base(source: Place) -> tuple[Place, bool]:
    """The file or folder of an input, or that before the first wildcard of a glob; and whether all below is read."""
    names = source.url.split("/")
    first = next((at for at, name in enumerate(names) if glob.has_magic(name)), None)
    if first is None or (source.is_local and os.path.exists(os.path.expanduser(source.url))):
        return source, True
    scheme = source.url.partition("://")[0]
    base = "/".join(names[:first])
    if not source.is_local and len(base) <= len(scheme) + len("://"):  # the bucket is a wildcard
        return source, False
    return Place(base or ("/" if source.url.startswith("/") else "."), source.options), first < len(names) - 1
