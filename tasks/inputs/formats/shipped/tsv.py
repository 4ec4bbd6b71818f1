"""Values separated by tabs. `formats.text` reads them."""

from __future__ import annotations

from ..input_format import InputFormat


class Tsv(InputFormat):
    """TSV."""

    title = "TSV"
    suffixes = (".tsv", ".tab")
    is_text = True
    duckdb_reader = "read_csv"
    reading = "in pieces of 16 MiB"
