"""Whether the result that a run would make is there already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from ..tasks.sources import Source
from ..tasks.spelling import type_name
from .manifest import Manifest
from .settings import Settings

__all__ = ["difference", "fingerprint"]

_WITHOUT_WEIGHT: Mapping[str, tuple[str, ...]] = {
    # Columns, layout and the version of a table are in the fingerprint, as they were understood.
    "input": (
        *("path", "source_column", "target_column", "table_version", "complete_marker", "least_rows"),
        *("format", "header", "delimiter", "comment", "id_type"),
    ),
    "output": ("path", "overwrite", "report", "single_writer"),
    "partitioning": (),
    "bounding": (),
}
"""Sections of settings that a result depends on, and what in them does not count."""


def fingerprint(source: Source) -> str | None:
    """SHA-256 of what the input is: paths, sizes, rows, columns, what the storage says of each file's version, the
    version of a table, how text is laid out, and the condition of the rows that are wanted.

    None where the storage does not say, so that a file may have changed unnoticed.
    """
    if any(file.version is None for file in source.files):
        return None
    files = [[file.path, file.bytes, list(file.row_groups), file.version] for file in source.files]
    facts: list[Any] = [files, source.source_column, source.target_column, type_name(source.id_type)]
    if source.table is not None:
        facts.append([source.table.format, source.table.version])
    if source.layout is not None:
        facts.append(source.layout.facts())
    if source.where is not None:
        facts.append([source.where.condition.text, source.files_left_out])
    if source.bipartite is not None:
        facts.append(source.bipartite)
    return sha256(json.dumps(facts).encode()).hexdigest()


def difference(manifest: Manifest, settings: Settings) -> str | None:
    """Why a result is another than these settings would make, whatever the input; None if it is not."""
    if not manifest.converged:
        return "it is not converged"
    if manifest.versions.get("edgemill") != version("edgemill"):
        return f"it was made by edgemill {manifest.versions.get('edgemill')}"
    if manifest.input.fingerprint is None:
        return "its input may have changed unnoticed"
    then, now = _weighty(manifest.settings), _weighty(settings.model_dump())
    others = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    return f"it was made with other settings: {', '.join(others)}" if others else None


def _weighty(settings: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        f"{section}.{name}": value
        for section, light in _WITHOUT_WEIGHT.items()
        for name, value in settings.get(section, {}).items()
        if name not in light
    }
    return found | {"cluster.device": settings.get("cluster", {}).get("device")}
