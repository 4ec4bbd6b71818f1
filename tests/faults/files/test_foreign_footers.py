"""One flipped bit in the footer of a file that edgemill did not write gives an error or a result, never a signal.

The result may have other ids, as no checksum covers such a footer (docs/limits.md).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flips import footer_bits, try_flips
from trials import Trials

SOURCES = [1, 2, 1, 3, 2] * 4
TARGETS = [2, 3, 3, 4, 4] * 4


def _integers(path: Path) -> None:
    """Signed and unsigned, in two row groups, with pages of version 2."""
    table = pa.table({"src": pa.array(SOURCES, pa.int64()), "dst": pa.array(TARGETS, pa.uint32())})
    pq.write_table(table, path, row_group_size=12, data_page_version="2.0")


def _unpacked(path: Path) -> None:
    """Without Arrow's own schema, dictionaries and compression."""
    table = pa.table({"src": pa.array(SOURCES, pa.uint64()), "dst": pa.array(TARGETS, pa.int8())})
    pq.write_table(table, path, store_schema=False, compression="none", use_dictionary=False)


def _strings(path: Path) -> None:
    """One column a dictionary of Arrow's, too; Parquet 1.0."""
    names = [pa.array([f"v{number}" for number in ends]) for ends in (SOURCES, TARGETS)]
    pq.write_table(pa.table({"src": names[0], "dst": names[1].dictionary_encode()}), path, version="1.0")


def _by_duckdb(path: Path) -> None:
    duckdb.sql(
        "COPY (SELECT i % 7 AS src, (i * i) % 11 AS dst, i::utinyint AS w FROM range(40) t(i)) "
        f"TO '{path}' (FORMAT parquet)"
    )


FILES = [_integers, _unpacked, _strings, _by_duckdb]


def _try(write: Callable[[Path], None], folder: Path, command: str, every: int, trials: Trials) -> None:
    original, place = folder / "whole.parquet", folder / "place"
    place.mkdir()
    write(original)
    bits = range(every // 2, footer_bits(original), every)
    tried = 0
    for ended in try_flips(original, place, command, bits):
        tried += 1
        read = ended.code == 0
        whole = read or (ended.code == 3 and "flipped.parquet" in ended.message) or ended.code == 2
        if not read:  # what is read is not compared
            trials(f"footer of others: bit flip, {command}", "refused" if whole else "wrong")
        assert whole, ended
        assert set(ended.left) <= ({"out"} if command == "run" else set()), ended  # neither lock nor staging
    assert tried == len(bits)


@pytest.mark.parametrize(
    "write", [_unpacked, *(pytest.param(write, marks=pytest.mark.slow) for write in FILES if write is not _unpacked)]
)
def test_some_bits_through_plan(write: Callable[[Path], None], tmp_path: Path, trials: Trials) -> None:
    _try(write, tmp_path, "plan", 31, trials)


@pytest.mark.slow
@pytest.mark.parametrize("write", FILES)
def test_every_bit_through_plan(write: Callable[[Path], None], tmp_path: Path, trials: Trials) -> None:
    _try(write, tmp_path, "plan", 1, trials)


@pytest.mark.parametrize("every", [685, pytest.param(137, marks=pytest.mark.slow)])
def test_some_bits_through_a_run(tmp_path: Path, trials: Trials, every: int) -> None:
    _try(_unpacked, tmp_path, "run", every, trials)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("write", FILES)
def test_more_bits_through_a_run(write: Callable[[Path], None], tmp_path: Path, trials: Trials) -> None:
    _try(write, tmp_path, "run", 13, trials)
