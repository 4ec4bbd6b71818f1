"""A finished run as one JSON document: what `run --json` and `show --json` print. docs/json.md lists its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..report.written import report_of
from ..result import Result

__all__ = ["result_document"]

_SHORT = ("run", "started", "finished", "device", "converged", "unsettled", "counts", "lambda", "lambda_high", "dense")
"""Keys of the manifest that are in every document, with their meaning there."""
_INPUT = ("source_column", "target_column", "id_type", "table", "frame", "format", "where", "bipartite", "notes")
_APART = ("input", "format", "format_version", "outputs")
"""Keys of the manifest that are not taken over as they are."""


def result_document(result: Result, groups: Sequence[dict[str, Any]], detail: bool = False) -> dict[str, Any]:
    """JSON values; with `detail` the other keys of the manifest, too."""
    manifest = result.manifest.model_dump(mode="json", by_alias=True)
    files = result.manifest.input.files
    read = {name: manifest["input"][name] for name in _INPUT}
    document = {
        "result": result.place.whole,
        "report": report_of(result),
        "seconds": round(result.manifest.seconds, 3),
        **{name: manifest[name] for name in _SHORT},
        "input": {"files": len(files), "bytes": sum(file.bytes for file in files), **read},
        "groups": [*groups],
    }
    if detail:
        document |= {name: value for name, value in manifest.items() if name not in {*document, *_APART}}
    return document
