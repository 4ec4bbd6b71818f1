"""Ids of any type. The only place that tells integers (an int64 array) from strings (a pyarrow LargeStringArray).

Strings are ordered by their UTF-8 bytes. Ids never pass through a floating-point type.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from . import order

Kind: TypeAlias = Literal["integer", "string"]
"""What the ids of a graph are."""

Ids: TypeAlias = Any
"""Ids of one graph: `NDArray[np.int64]`, or `pyarrow.LargeStringArray` without nulls (pyarrow has no types to name)."""


def no_ids(kind: Kind) -> Ids:
    """An array of no ids."""
    return np.zeros(0, np.int64) if kind == "integer" else pa.array([], pa.large_string())


def encode(first: Ids, second: Ids) -> tuple[Ids, NDArray[np.int32], NDArray[np.int32]]:
    """The distinct ids of two columns, ascending, and each column as positions in them."""
    if isinstance(first, np.ndarray):
        values, (first_code, second_code) = order.encode(first, second)
        return values, first_code, second_code
    values, codes = order.hash_columns([first, second])
    ascending = pc.sort_indices(values)
    first_code, second_code = order.recode(ascending.to_numpy(), codes, [len(first), len(second)])
    return values.take(ascending), first_code, second_code


def merge(runs: Sequence[Ids]) -> Ids:
    """The distinct ids of at least one sorted array, ascending."""
    if len(runs) == 1:
        return runs[0]
    if isinstance(runs[0], np.ndarray):
        return order.distinct(np.concatenate(runs))
    values = pc.unique(pa.chunked_array(runs))
    return values.take(pc.sort_indices(values))


def lookup(ids: Ids, wanted: Ids) -> NDArray[np.int32]:
    """Positions in `ids` (ascending, distinct) of `wanted` (ascending), each of which occurs there."""
    if isinstance(ids, np.ndarray):
        return order.lookup(ids, wanted)
    if len(ids) == len(wanted):
        return np.arange(len(ids), dtype=np.int32)
    return np.asarray(pc.index_in(wanted, value_set=ids).to_numpy())


def sample(ids: Ids, every: int) -> Ids:
    """Every n-th id, from the middle of the first n on."""
    return take(ids, np.arange(every // 2, len(ids), every))


def quantiles(ids: Ids, parts: int) -> Ids:
    """The parts - 1 ids that cut a sample, in any order and with repetitions, into equal parts."""
    if not len(ids):
        ids = np.zeros(1, np.int64) if isinstance(ids, np.ndarray) else pa.array([""], ids.type)
    cuts = np.arange(1, parts) * len(ids) // parts
    if isinstance(ids, np.ndarray):
        return np.sort(ids)[cuts]
    return ids.take(pc.sort_indices(ids)).take(pa.array(cuts))


def take(ids: Ids, positions: NDArray[Any]) -> Ids:
    """The ids at the positions."""
    return ids[positions] if isinstance(ids, np.ndarray) else ids.take(pa.array(positions))


def part(ids: Ids, start: int, stop: int) -> Ids:
    """The ids from start to stop, copied where Arrow would pickle the whole array with a slice."""
    return ids[start:stop] if isinstance(ids, np.ndarray) else pa.concat_arrays([ids.slice(start, stop - start)])


def concatenate(runs: Sequence[Ids]) -> Ids:
    """All ids of at least one array, in order."""
    if len(runs) == 1:
        return runs[0]
    return np.concatenate(runs) if isinstance(runs[0], np.ndarray) else pa.concat_arrays(runs)


def split(ids: Ids, splitters: Ids) -> NDArray[np.int64]:
    """Where ascending ids part: range b is ids[cuts[b] : cuts[b + 1]] and holds splitters[b - 1] ≤ id < splitters[b].

    Returns int64 [len(splitters) + 2].
    """
    cuts = np.zeros(len(splitters) + 2, np.int64)
    cuts[-1] = len(ids)
    if isinstance(ids, np.ndarray):
        cuts[1:-1] = np.searchsorted(ids, splitters)
    else:
        cuts[1:-1] = [_bisect(ids, splitters[i]) for i in range(len(splitters))]
    return cuts


def _bisect(ids: pa.LargeStringArray, splitter: pa.LargeStringScalar) -> int:
    return bisect_left(range(len(ids)), _utf8(splitter), key=lambda i: _utf8(ids[i]))


def _utf8(value: pa.LargeStringScalar) -> bytes:
    return bytes(value.as_buffer())
