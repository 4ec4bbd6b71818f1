"""The number of buckets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import runs
from edgemill.pipeline import Result
from edgemill.pipeline.cluster.execution import Capacity
from edgemill.pipeline.stages import ingesting

Mine = Callable[..., Result]
GIB = 2**30


def test_buckets_for_the_memory() -> None:
    """The memory of numbering divided by the memory that a thread has for a bucket."""

    def buckets(*numbering: int, threads: int = 1, memory: int = 2 * GIB) -> int:
        return ingesting._buckets_for(numbering, Capacity(2, threads, memory))

    assert buckets(1000) == 1
    assert 20 < buckets(*[GIB // 2] * 50) < 40
    assert 3 * buckets(*[GIB] * 10) <= buckets(*[GIB] * 10, threads=4) <= 4 * buckets(*[GIB] * 10)
    assert buckets(GIB, memory=0) == 1  # no limit
    assert buckets(GIB, memory=1) == GIB // ingesting.MIN_NUMBERING_BYTES
    assert buckets(2**50, memory=1) == 2**15 - 1
    assert buckets() == 0


@pytest.mark.slow
def test_a_run_with_as_many_buckets_as_its_ids_take(
    tmp_path: Path, mined: Mine, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"https://example.org/{number * 7919 % 10_007:05d}" for number in range(60)]
    rows = [(u, v) for i, u in enumerate(names) for v in names[i + 1 : i + 5]]
    path = runs.write_rows(tmp_path / "rows.parquet", rows, pa.string())
    plain = mined(path)
    monkeypatch.setattr(ingesting, "_buckets_for", lambda numbering, capacity: sum(numbering) // 500)
    result = mined(path)
    # One block: an id takes 25 bytes and 8 that say where it ends.
    numbering = ingesting.NUMBERING_FACTOR * (60 * (25 + 8) + 8) + ingesting.MERGING_BYTES * len(rows)
    assert len(list((result.path / "edges").iterdir())) == numbering // 500 > 2
    assert len(list((plain.path / "edges").iterdir())) == 1
    for name in ("edges", "vertices"):
        assert getattr(result, name).to_table() == getattr(plain, name).to_table()
