"""Operations on ids of either kind: integers (an int64 array) or strings (a pyarrow LargeStringArray).

Only this module distinguishes the two kinds. Strings are ordered by their UTF-8 bytes. Ids are never converted to
floating point. Integers are hashed by splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ... import kernels
from ..device import MemorySpace
from . import order

if TYPE_CHECKING:
    from ...kernels.gpu.arrays.strings import DeviceStrings

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, odd."""


def splitmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit hash of each value, written over the input."""
    values += np.uint64(GOLDEN_GAMMA)
    return mix64(values)


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64, a permutation of 64-bit integers, written over the input."""
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


Kind: TypeAlias = Literal["integer", "string"]
"""The kind of a graph's ids."""

MERGED_AT_ONCE = 2**20
"""Fewest strings that a thread merges, if several threads merge."""
SAMPLES = 64
"""Strings that are sampled for each thread that merges."""

Ids: TypeAlias = Any
"""Ids of one graph: `NDArray[np.int64]`, or `pyarrow.LargeStringArray` without nulls (pyarrow is not typed)."""


def no_ids(kind: Kind, space: MemorySpace = MemorySpace.HOST) -> Ids:
    """An empty array of ids."""
    return space.place(np.zeros(0, np.int64)) if kind == "integer" else pa.array([], pa.large_string())


def encode(
    first: Ids, second: Ids, space: MemorySpace = MemorySpace.HOST
) -> tuple[Ids, NDArray[np.int32], NDArray[np.int32]]:
    """The distinct ids of two columns, ascending, and each column as positions in them.

    Positions of integers are where the integers are, those of strings in `space`.

    Raises OutOfRoom for more than `order.MAX_CODES` distinct ids.
    """
    if not isinstance(first, pa.Array):
        values, (first_code, second_code) = order.encode(first, second)
        return values, first_code, second_code
    ids, (first_code, second_code) = encode_all([first, second], space)
    return ids, first_code, second_code


def merge(
    runs: Sequence[Ids], space: MemorySpace = MemorySpace.HOST, threads: int = 1
) -> tuple[Ids, list[NDArray[np.int32]]]:
    """Merge non-empty ascending arrays: the distinct ids, ascending, and each array as positions in them.

    Positions of integers are where the integers are, those of strings in `space`. Up to `threads` threads merge many
    strings.

    Raises OutOfRoom for more than `order.MAX_CODES` distinct ids, as `encode` does.
    """
    if len(runs) == 1:
        order.check_codes(len(runs[0]))
        if isinstance(runs[0], pa.Array):
            return runs[0], [space.place(np.arange(len(runs[0]), dtype=np.int32))]
        return runs[0], [np.arange(len(runs[0]), dtype=np.int32, like=runs[0])]
    if not isinstance(runs[0], pa.Array):
        return order.encode_runs(runs)
    if space is MemorySpace.DEVICE:
        return encode_all(runs, space)
    parts = min(threads, sum(map(len, runs)) // MERGED_AT_ONCE)
    return _merge_by_range(runs, parts) if parts > 1 else encode_all(runs)


def _merge_by_range(runs: Sequence[pa.LargeStringArray], parts: int) -> tuple[Ids, list[NDArray[np.int32]]]:
    """As `encode_all` of ascending runs of strings: each of `parts` threads merges a range of the strings."""
    every = max(1, sum(map(len, runs)) // (SAMPLES * parts))
    splitters = quantiles(concatenate([sample(run, every) for run in runs]), parts)
    cuts = [split(run, splitters) for run in runs]

    def merge_range(part: int) -> tuple[pa.LargeStringArray, list[NDArray[np.int32]]]:
        bounds = [(cut[part], cut[part + 1] - cut[part]) for cut in cuts]
        return encode_all([run.slice(*bound) for run, bound in zip(runs, bounds, strict=True)])

    with ThreadPoolExecutor(parts) as pool:
        merged = list(pool.map(merge_range, range(parts)))
    starts = np.cumsum([0, *(len(ids) for ids, _ in merged)])
    order.check_codes(int(starts[-1]))
    positions = [
        np.concatenate([codes[run] + np.int32(start) for (_, codes), start in zip(merged, starts, strict=False)])
        for run in range(len(runs))
    ]
    return concatenate([ids for ids, _ in merged]), positions


def encode_all(
    columns: Sequence[pa.LargeStringArray | DeviceStrings], space: MemorySpace = MemorySpace.HOST
) -> tuple[pa.LargeStringArray, list[NDArray[np.int32]]]:
    """The distinct strings of at least one column, ascending, and each column as positions in them, in `space`.

    The GPU codes the strings if the positions are placed there and it has room for the strings.

    Raises OutOfRoom as `encode` does.
    """
    if space is MemorySpace.DEVICE:
        placed = [place_strings(column) for column in columns]
        if (coded := _encode_on_gpu(placed)) is not None:
            return coded
        ids, codes = encode_all([column if isinstance(column, pa.Array) else _from_gpu(column) for column in placed])
        return ids, [space.place(code) for code in codes]
    from ...kernels.cpu.arrays.strings import number_strings  # loads Numba

    texts, sizes = pa.concat_arrays(columns), list(map(len, columns))
    numbered = number_strings(*_bytes(texts))
    if numbered is None:
        ids, code = _sorted(texts)
        return ids, _parts(code, sizes)
    offsets, content, code = numbered
    del texts
    ids, position = _sorted(_strings(offsets, content))
    return ids, _parts(kernels.take(position, code), sizes)


def _sorted(texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, NDArray[np.int32]]:
    """The distinct strings, ascending, and the position of each string among them."""
    from ...kernels.cpu.arrays.strings import sort_strings

    ascending, repeats = sort_strings(*_bytes(texts))
    first = ~repeats
    order.check_codes(int(np.count_nonzero(first)))
    code = np.empty(len(texts), np.int32)
    code[ascending] = np.cumsum(first, dtype=np.int32) - np.int32(1)
    return texts.take(pa.array(ascending[first])), code


def place_strings(column: pa.LargeStringArray | DeviceStrings) -> pa.LargeStringArray | DeviceStrings:
    """The strings in the GPU's memory; the column itself if they are there, or if there is no room for them."""
    from ...kernels.gpu.arrays.strings import to_device  # imports CuPy

    if not isinstance(column, pa.Array):
        return column
    placed = to_device(*_bytes(column))
    return column if placed is None else placed


def _encode_on_gpu(
    columns: Sequence[pa.LargeStringArray | DeviceStrings],
) -> tuple[pa.LargeStringArray, list[NDArray[np.int32]]] | None:
    """As `encode_all`; None if the strings do not fit the GPU."""
    from ...kernels.gpu.arrays.strings import distinct_strings

    placed = [column for column in columns if not isinstance(column, pa.Array)]
    found = distinct_strings(placed) if len(placed) == len(columns) else None
    if found is None:
        return None
    order.check_codes(len(found.offsets) - 1)
    return _strings(found.offsets, found.content), _parts(found.code, list(map(len, placed)))


def _from_gpu(column: DeviceStrings) -> pa.LargeStringArray:
    from ...kernels.gpu.arrays.strings import to_host

    return _strings(*to_host(column))


def _strings(offsets: NDArray[np.int64], content: NDArray[np.uint8]) -> pa.LargeStringArray:
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(content))


def _parts(code: NDArray[np.int32], sizes: Sequence[int]) -> list[NDArray[np.int32]]:
    """Consecutive parts of `code` of these sizes."""
    return [code[end - size : end] for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True)]


def _bytes(texts: pa.LargeStringArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The offsets of the strings [strings + 1] and their bytes."""
    _, offsets, content = texts.buffers()
    starts = np.frombuffer(offsets or bytes(8), np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return starts, np.frombuffer(content or b"", np.uint8)


def lengths(ids: Ids) -> NDArray[np.int64] | None:
    """Length of each id in bytes; None for integers."""
    return np.diff(_bytes(ids)[0]) if isinstance(ids, pa.Array) else None


def hashes(ids: Ids) -> NDArray[np.uint64]:
    """A 64-bit hash of each id, equal in every process. Arrays on the host only."""
    if not isinstance(ids, pa.Array):
        return splitmix64(ids.astype(np.uint64))
    from ...kernels.cpu.arrays.strings import hash_strings  # loads Numba

    return splitmix64(hash_strings(*_bytes(ids), np.uint64(GOLDEN_GAMMA)))


def to_host(ids: Ids) -> Ids:
    """The ids in host memory."""
    return ids if isinstance(ids, pa.Array) else kernels.to_host(ids)


def sample(ids: Ids, every: int) -> Ids:
    """One of every `every` ids, starting in the middle of the first `every` ids."""
    if isinstance(ids, pa.Array):
        return ids.take(pa.array(np.arange(every // 2, len(ids), every)))
    return ids[every // 2 :: every]


def quantiles(ids: Ids, parts: int) -> Ids:
    """The parts - 1 ids that cut a sample into equal parts. The sample is unordered and may repeat ids."""
    if not len(ids):
        ids = np.zeros(1, np.int64) if isinstance(ids, np.ndarray) else pa.array([""], ids.type)
    cuts = np.arange(1, parts) * len(ids) // parts
    if isinstance(ids, np.ndarray):
        return np.sort(ids)[cuts]
    return ids.take(pc.sort_indices(ids)).take(pa.array(cuts))


def take(ids: Ids, positions: NDArray[Any]) -> Ids:
    """The ids at the positions."""
    if isinstance(ids, pa.Array):
        return ids.take(pa.array(kernels.to_host(positions)))
    if not kernels.on_host(ids):
        return ids[positions]
    # Arrow reuses memory, while NumPy takes new pages for each array.
    return pa.array(ids).take(pa.array(positions)).to_numpy()


def part(ids: Ids, start: int, stop: int) -> Ids:
    """The ids from start to stop. Strings are copied: Arrow would pickle the whole array with a slice."""
    return pa.concat_arrays([ids.slice(start, stop - start)]) if isinstance(ids, pa.Array) else ids[start:stop]


def concatenate(runs: Sequence[Ids]) -> Ids:
    """All ids of at least one array, in order."""
    if len(runs) == 1:
        return runs[0]
    return pa.concat_arrays(runs) if isinstance(runs[0], pa.Array) else np.concatenate(runs)


def split(ids: Ids, splitters: Ids) -> NDArray[np.int64]:
    """Cut ascending ids at the splitters. Range b is ids[cuts[b] : cuts[b + 1]]: splitters[b - 1] ≤ id < splitters[b].

    Returns the cuts, int64 [len(splitters) + 2].
    """
    cuts = np.zeros(len(splitters) + 2, np.int64)
    cuts[-1] = len(ids)
    if not isinstance(ids, pa.Array):
        cuts[1:-1] = kernels.to_host(np.searchsorted(ids, np.asarray(splitters, like=ids)))
    else:
        cuts[1:-1] = [_bisect(ids, splitters[i]) for i in range(len(splitters))]
    return cuts


def _bisect(ids: pa.LargeStringArray, splitter: pa.LargeStringScalar) -> int:
    return bisect_left(range(len(ids)), _utf8(splitter), key=lambda i: _utf8(ids[i]))


def _utf8(value: pa.LargeStringScalar) -> bytes:
    return bytes(value.as_buffer())
