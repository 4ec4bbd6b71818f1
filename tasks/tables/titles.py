"""What messages call tables. Imports nothing, as a manifest is read without what reads tables."""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {"delta": "Delta", "iceberg": "Iceberg", "hudi": "Hudi"}
"""Format of a table → its name."""


def table_title(table_format: str, version: int) -> str:
    """Such as "Delta table, version 3", and "Iceberg table, snapshot 3"."""
    return f"{TITLES[table_format]} table, {'snapshot' if table_format == 'iceberg' else 'version'} {version}"
