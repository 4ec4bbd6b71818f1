"""An object of JSON on each line. `formats.text` reads them."""

from __future__ import annotations

from ..input_format import InputFormat


class JsonLines(InputFormat):
    """JSON lines."""

    title = "JSON lines"
    suffixes = (".jsonl", ".ndjson")
    other_suffixes = (".json",)
    is_text = True
    duckdb_reader = "read_json"
    reading = "in pieces of 16 MiB; an object on each line"
