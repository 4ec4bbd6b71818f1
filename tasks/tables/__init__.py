"""Delta and Iceberg tables as inputs: the Parquet files with the rows of one version.

Imports `tasks.errors` and `storage`; deltalake and pyiceberg only if there is such a table. Start with `finding`, whose
`table_at` recognizes a table; `delta` and `iceberg` list its files as `live.LiveFiles`. This file imports nothing, so
that reading a manifest does not load what reads tables.
"""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {"delta": "Delta", "iceberg": "Iceberg", "hudi": "Hudi"}
"""Format of a table → its name in messages."""


def table_title(table_format: str, version: int) -> str:
    """For example "Delta table, version 3" or "Iceberg table, snapshot 3"."""
    return f"{TITLES[table_format]} table, {'snapshot' if table_format == 'iceberg' else 'version'} {version}"
