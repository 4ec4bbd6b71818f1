"""Values separated by commas, or by another character. `formats.text` reads them."""

from __future__ import annotations

from ..input_format import InputFormat


class Csv(InputFormat):
    """CSV."""

    title = "CSV"
    suffixes = (".csv",)
    other_suffixes = (".txt", ".edges", ".edgelist", ".el", ".dat")
    is_text = True
    duckdb_reader = "read_csv"
    reading = "in pieces of 16 MiB"
