"""A finished run as a JSON document, printed by `run --json` and `show --json`. docs/json.md lists its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..report.report_file import report_of
from ..result import Result

_SHORT = ("run", "started", "finished", "device", "converged", "unsettled", "counts", "lambda", "lambda_high", "dense")
"""Keys of the manifest that every document has, with the same meaning."""
_INPUT = ("source_column", "target_column", "id_type", "table", "frame", "format", "where", "bipartite", "notes")
_NOT_COPIED = ("input", "format", "format_version", "outputs")
"""Keys of the manifest that are not copied as they are."""


def result_document(result: Result, groups: Sequence[dict[str, Any]], detail: bool = False) -> dict[str, Any]:
    """The document of a result, as JSON values. `detail` adds the other keys of the manifest."""
    manifest = result.manifest.model_dump(mode="json", by_alias=True)
    files = result.manifest.input.files
    read = {name: manifest["input"][name] for name in _INPUT}
    document = {
        "result": result.place.absolute,
        "report": report_of(result),
        "seconds": round(result.manifest.seconds, 3),
        **{name: manifest[name] for name in _SHORT},
        "input": {"files": len(files), "bytes": sum(file.bytes for file in files), **read},
        "groups": [*groups],
    }
    if detail:
        document |= {name: value for name, value in manifest.items() if name not in {*document, *_NOT_COPIED}}
    return document
