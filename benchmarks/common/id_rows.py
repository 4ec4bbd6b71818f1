"""Rows drawn from the edges of a random recursive tree, whose vertices are sparse 64-bit integers or strings.

Every edge occurs about three times, in rows far from each other, as in a log. There are no triangles, so that λ takes
no time. A block repeats few ids, so that dictionaries save little: the worst case for numbering.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

ROWS_PER_VERTEX = 10 / 3
"""100 M rows have 30 M vertices."""
FILE_ROWS = 4_000_000
GROUP_ROWS = 1_000_000

PREFIX = b"https://"
LETTERS = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)
DIGITS = 13
"""Base-32 digits of a 64-bit number."""
MOST_MORE = 8
"""Maximum number of characters after the digits; strings have 21 to 29 characters."""


def splitmix64(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A permutation of the 64-bit numbers: the last step of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    x = numbers * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def parents(vertices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of vertices from 1 on: a smaller one, each as likely."""
    return (splitmix64(vertices.view(np.uint64)) % vertices.view(np.uint64)).view(np.int64)


def sparse_ids(vertices: NDArray[np.int64]) -> pa.Array:
    """Integers over all of int64, negative ones too."""
    return pa.array(splitmix64(vertices.view(np.uint64)).view(np.int64))


def string_ids(vertices: NDArray[np.int64]) -> pa.Array:
    """Strings such as `https://4v8a0kq1m2n3p7g5`, of 21 to 29 bytes, 25 on average."""
    x = splitmix64(vertices.view(np.uint64))
    characters = np.empty((len(x), len(PREFIX) + DIGITS + MOST_MORE), np.uint8)
    characters[:, : len(PREFIX)] = np.frombuffer(PREFIX, np.uint8)
    for digit in range(DIGITS + MOST_MORE):
        characters[:, len(PREFIX) + digit] = LETTERS[(x >> np.uint64(5 * digit % 64)) & np.uint64(31)]
    length = len(PREFIX) + DIGITS + (x % np.uint64(MOST_MORE + 1)).astype(np.int32)
    offsets = np.zeros(len(x) + 1, np.int32)
    np.cumsum(length, out=offsets[1:])
    text = characters[np.arange(characters.shape[1]) < length[:, None]]
    return pa.StringArray.from_buffers(len(x), pa.py_buffer(offsets), pa.py_buffer(text))


KINDS: Mapping[str, Callable[[NDArray[np.int64]], Any]] = {"sparse": sparse_ids, "string": string_ids}


def id_rows(kind: str, rows: int, cache: Path) -> Path:
    """The folder with the rows, made on first use, file by file, with one row group in memory at a time."""
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    folder = cache / f"{kind}-ids-{rows}-{version}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as name:
            unfinished = Path(name, "rows")
            unfinished.mkdir()
            for number, start in enumerate(range(0, rows, FILE_ROWS)):
                _write(unfinished / f"{number:05d}.parquet", kind, rows, start, min(FILE_ROWS, rows - start))
            unfinished.rename(folder)
    return folder


def _write(path: Path, kind: str, all_rows: int, start: int, rows: int) -> None:
    vertices = max(2, int(all_rows / ROWS_PER_VERTEX))
    id_type = pa.int64() if kind == "sparse" else pa.string()
    schema = pa.schema([("src", id_type), ("dst", id_type)])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for first in range(start, start + rows, GROUP_ROWS):
            rng = np.random.default_rng([1, first])
            count = min(GROUP_ROWS, start + rows - first)
            child = rng.integers(1, vertices, count)
            ends = [KINDS[kind](end) for end in (child, parents(child))]
            writer.write_table(pa.table(ends, schema=schema), row_group_size=count)
