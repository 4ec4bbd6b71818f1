"""Parquet. `formats.parquet` reads it."""

from __future__ import annotations

from ..input_format import InputFormat


class Parquet(InputFormat):
    """Parquet."""

    title = "Parquet"
    suffixes = (".parquet",)
    other_suffixes = (".pq", ".parq")
    marks = (b"PAR1", b"PARE")
    is_counted = True
    duckdb_reader = "read_parquet"
    reading = "by row groups, only the needed columns"
