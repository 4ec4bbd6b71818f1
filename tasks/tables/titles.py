"""Names of tables in messages. Imports nothing: reading a manifest must not load what reads tables."""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {"delta": "Delta", "iceberg": "Iceberg", "hudi": "Hudi"}
"""Format of a table → its name."""


def table_title(table_format: str, version: int) -> str:
    """For example "Delta table, version 3" or "Iceberg table, snapshot 3"."""
    return f"{TITLES[table_format]} table, {'snapshot' if table_format == 'iceberg' else 'version'} {version}"
