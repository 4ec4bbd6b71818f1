"""The dictionary and the encoded edges by DuckDB, on one host, within a memory limit: what `read` and `number` do.

python -m benchmarks.duckdb_ids EDGES FOLDER MEMORY_BYTES THREADS
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

DICTIONARY = """
    copy (
        select row_number() over () - 1 as number, id
        from (select distinct id from (select src as id from rows union all select dst from rows) order by id)
    ) to '{folder}/ids.parquet' (compression uncompressed)
"""
"""Strings are compared by their UTF-8 bytes."""

EDGES = """
    copy (
        select distinct least(s.number, d.number) as low, greatest(s.number, d.number) as high
        from rows join '{folder}/ids.parquet' s on rows.src = s.id join '{folder}/ids.parquet' d on rows.dst = d.id
        where s.number <> d.number
        order by low, high
    ) to '{folder}/edges.parquet' (compression uncompressed)
"""


def number(path: Path, folder: Path, memory_bytes: int, threads: int) -> dict[str, Any]:
    """Write ids.parquet (number, id) and edges.parquet (low, high); gives their rows, and the times of both steps."""
    with duckdb.connect(str(folder / "work.db")) as base:
        base.execute(f"set memory_limit = '{memory_bytes}B'")
        base.execute(f"set threads = {threads}")
        base.execute(f"set temp_directory = '{folder / 'spilled'}'")
        base.execute(f"create view rows as from '{path}/*.parquet'")
        start = datetime.now(UTC)
        vertices = base.execute(DICTIONARY.format(folder=folder)).fetchall()[0][0]
        between = datetime.now(UTC)
        edges = base.execute(EDGES.format(folder=folder)).fetchall()[0][0]
        end = datetime.now(UTC)
    steps = {"dictionary": (start, between), "edges": (between, end)}
    times = {name: [time.isoformat() for time in both] for name, both in steps.items()}
    return {"vertices": vertices, "edges": edges, "steps": times}


if __name__ == "__main__":
    edges, folder, memory, threads = sys.argv[1:]
    print(json.dumps(number(Path(edges), Path(folder), int(memory), int(threads))))
