"""The state that is kept beside a result for the next update: numbering, edges, order of peeling and forest, as raw
columns.

The folder `state` has one file for each array, little-endian without a header, so that it can be mapped into memory,
and an index. The index has the SHA-256 of the pieces of each file, and its own checksum. Small values of edges are
stored in one or two bytes each. In place of the lower end of each edge, a file has the position where the edges of each
vertex start. The state can be computed from the result, so a lost or damaged state costs time and never exactness.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import Topology
from ..errors import NO_SPACE, OutOfRoom, UsageError
from ..ids.identity import Ids
from ..ids.order import offsets
from ..ingest.directions import DOWN, UP
from ..storage.folders import Folder
from ..storage.own_files import open_own
from .arcs import EdgeArcs
from .merging import NumberedGraph
from .order import Order, order_of
from .state_index import FORMAT, INDEX, VERSION, NoState, new_place, read_index, sealed

_STEP = 2**24
"""Bytes of a piece of a file. A piece is written at once and has its own checksum, so that all threads can check one
large file.
"""
_BYTES = ("text", "ways")
"""Files whose bytes are not widened to int32."""
_PIECE = 2**20
"""About the number of lower ends that a thread finds at once: they fit its cache."""


@dataclass(frozen=True)
class State:
    """The graph of a result, and what an update of it starts from."""

    graph: NumberedGraph
    order: Order
    """The order in which the edges were peeled."""
    forest: NDArray[np.int32]
    """[forest] rows of the edges that are a maximum spanning forest with λ as weight, ascending."""
    arcs: EdgeArcs | None = None
    """The directions and weights of the edges, if vertex programs of the result have read some."""

    @classmethod
    def of(cls, graph: NumberedGraph, lam: NDArray[np.int32]) -> State:
        """The state of a graph whose λ is known, int32 [edges]. Peels its edges once."""
        return cls.in_order(graph, order_of(graph.edges, lam))

    @classmethod
    def in_order(cls, graph: NumberedGraph, order: Order) -> State:
        """The state of a graph whose order of peeling is known."""
        from ...kernels.cpu.nest import mark_forest  # loads Numba

        edges = graph.edges
        is_forest = mark_forest(edges.low, edges.high, order.lam, edges.vertices)
        return cls(graph, order, np.flatnonzero(is_forest).astype(np.int32))


def write_state(place: Folder, run: str, state: State) -> int:
    """Write the state of the result of `run` into the folder `place`. Returns its bytes.

    Raises UsageError if it cannot be written, OutOfRoom for a full disk.
    """
    arrays = dict(_arrays(state))
    try:
        with new_place(place), ThreadPoolExecutor() as pool:
            arrays = dict(zip(arrays, pool.map(_stored, arrays.values()), strict=True))
            written = pool.map(lambda name: _write(place, name, arrays[name]), arrays)
            sums = {name: pool.map(_checksum, _pieces(_content(arrays[name]))) for name in arrays}
            deque(written, 0)  # raises the first error
            files = {name: _entry(arrays[name], list(sums[name])) for name in arrays}
            index = {
                "format": FORMAT,
                "format_version": VERSION,
                "run": run,
                "vertices": len(state.graph.ids),
                "edges": state.graph.edges.edges,
                "files": files,
            }
            place.write(INDEX, sealed(index))
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(f"no room left on the disk of {place}") from error
        raise UsageError(f"cannot write {place}: {error.strerror or error}") from error
    return sum(int(file["bytes"]) for file in files.values())


def read_state(place: Folder, run: str) -> State:
    """The state of the result of `run`, from the folder `place`, after all its checksums have been compared.

    Arrays whose type in the files is that in memory are mapped copy-on-write. They are thus writable, like the arrays
    of a new graph, so that kernels are compiled once for both.

    Raises NoState if there is no state, if it is damaged, or if it is of another run. Checksums do not detect forgery,
    and kernels index memory by these arrays. So the lengths and ranges of the arrays are checked as well.
    """
    index = read_index(place)
    if index["run"] != run:
        raise NoState(f"the state in {place} is of run {index['run']}")
    try:
        with ThreadPoolExecutor() as readers:
            found = _read(readers, place, index["files"])
            flaw = _flaw(readers, found, index["vertices"], index["edges"])
    except OSError as error:
        raise NoState(f"the state in {place} cannot be read: {error.strerror or error}") from None
    if flaw is not None:
        raise NoState(f"the state in {place} is not used: {flaw}")
    edges = Topology(_lower_ends(found["first"]), found["high"], index["vertices"])
    order = Order(**{field.name: found[field.name] for field in fields(Order)})
    arcs = EdgeArcs(found.get("ways"), found.get("weight"))
    kept = None if arcs.ways is None and arcs.weight is None else arcs
    return State(NumberedGraph(_ids(found, index["vertices"]), edges), order, found["forest"], kept)


def _arrays(state: State) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name of each file, and its content."""
    ids, edges = state.graph.ids, state.graph.edges
    if isinstance(ids, pa.Array):
        whole = pa.concat_arrays([ids])  # a slice has the buffers of the whole array
        _, starts, text = whole.buffers()
        yield "starts", np.frombuffer(starts, np.int64, len(whole) + 1) if starts else np.zeros(1, np.int64)
        yield "text", np.frombuffer(text or b"", np.uint8)
    else:
        yield "ids", ids
    yield "first", offsets(kernels.bincount(edges.low, edges.vertices))
    yield "high", edges.high
    yield "forest", state.forest
    yield from ((field.name, getattr(state.order, field.name)) for field in fields(Order))
    if state.arcs is not None:
        yield from ((name, own) for name in ("ways", "weight") if (own := getattr(state.arcs, name)) is not None)


def _ids(found: Mapping[str, NDArray[Any]], vertices: int) -> Ids:
    if "ids" in found:
        return found["ids"]
    return pa.LargeStringArray.from_buffers(vertices, pa.py_buffer(found["starts"]), pa.py_buffer(found["text"]))


def _lower_ends(first: NDArray[np.int64]) -> NDArray[np.int32]:
    """The lower end of each edge, int32 [edges], from the positions where the edges of each vertex start, int64
    [vertices + 1].

    Uses no kernels, which would load Numba: a batch without changes does not need it.
    """
    low = np.empty(int(first[-1]), np.int32)
    cuts = np.searchsorted(first, np.arange(0, len(low), _PIECE)).tolist()

    def find(begin: int, end: int) -> None:
        own = np.arange(begin, end, dtype=np.int32)
        low[first[begin] : first[end]] = np.repeat(own, np.diff(first[begin : end + 1]))

    with ThreadPoolExecutor() as pool:
        deque(pool.map(find, [0, *cuts], [*cuts, len(first) - 1]), 0)
    return low


def _stored(array: NDArray[Any]) -> NDArray[Any]:
    """The array as it is written: little-endian, int32 in as many bytes as its values need if none is negative."""
    dtype = array.dtype
    if dtype == np.int32 and array.min(initial=0) >= 0:
        dtype = min(dtype, np.min_scalar_type(array.max(initial=0)), key=lambda kind: kind.itemsize)
    return np.ascontiguousarray(array).astype(dtype.newbyteorder("<"), copy=False)


def _content(array: NDArray[Any]) -> memoryview:
    return array.data.cast("B") if array.size else memoryview(b"")


def _pieces(content: memoryview) -> list[memoryview]:
    """The pieces that have checksums of their own."""
    return [content[start : start + _STEP] for start in range(0, len(content), _STEP)]


def _checksum(piece: memoryview) -> str:
    return sha256(piece).hexdigest()


def _entry(array: NDArray[Any], sums: list[str]) -> dict[str, Any]:
    """The entry of an array in the index."""
    return {"dtype": array.dtype.str, "bytes": array.nbytes, "sha256": sums}


def _write(place: Folder, name: str, array: NDArray[Any]) -> None:
    """Write an array to a new file."""
    content = _content(array)
    if not place.is_local:
        place.write(name, bytes(content))
        return
    handle = open_own(Path(place.url, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, own=3)
    with open(handle, "wb") as file:
        for piece in _pieces(content):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _read(readers: Executor, place: Folder, files: Mapping[str, Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of the files. Raises NoState unless each file has the content that was written."""
    contents = dict(zip(files, readers.map(lambda name: _file(place, name), files), strict=True))
    found: dict[str, NDArray[Any]] = {}
    checks = []
    for name, file in files.items():
        content, dtype = contents[name], np.dtype(file["dtype"])
        size = len(content)
        if size != file["bytes"] or size % dtype.itemsize or len(file["sha256"]) != -(-size // _STEP):
            raise _damaged(place, name)
        stored = content.view(dtype)
        is_narrow = dtype.kind == "u" and name not in _BYTES
        found[name] = np.empty(len(stored), np.int32) if is_narrow else stored
        step = _STEP // dtype.itemsize
        for piece, wanted in enumerate(file["sha256"]):
            rows = slice(piece * step, (piece + 1) * step)
            wide = found[name][rows] if is_narrow else None
            checks.append((name, readers.submit(_check, stored[rows], wide, wanted)))
    for name, check in checks:
        if not check.result():
            raise _damaged(place, name)
    return found


def _file(place: Folder, name: str) -> NDArray[np.uint8]:
    """The bytes of a file, which is mapped if it is local."""
    if not place.is_local:
        return np.frombuffer(bytearray(place.read(name) or b""), np.uint8)
    with open(open_own(Path(place.url, name), os.O_RDONLY, own=3), "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        return np.memmap(opened, np.uint8, "c") if size else np.zeros(0, np.uint8)


def _check(stored: NDArray[Any], wide: NDArray[np.int32] | None, wanted: str) -> bool:
    """Whether a piece of a file has the checksum `wanted`. Copies its values to `wide` if that is given."""
    if wide is not None:
        wide[:] = stored
    return _checksum(_content(stored)) == wanted


def _flaw(readers: Executor, found: Mapping[str, NDArray[Any]], vertices: int, edges: int) -> str | None:
    """Why the arrays cannot be those of a graph; None if they can. Each thread checks one array."""
    of_ids = ("ids",) if "ids" in found else ("starts", "text")
    needed = {*of_ids, "first", "high", "forest", *(field.name for field in fields(Order))}
    if missing := sorted(needed - found.keys()):
        return f"it has no file {missing[0]}"
    if others := sorted(found.keys() - needed - {"ways", "weight"}):
        return f"{others[0]} is not one of its files"
    lengths = dict.fromkeys(("high", "lam", "time", "count", "remainder", "ways"), edges)
    lengths |= {"ids": vertices, "starts": vertices + 1, "first": vertices + 1}
    for name, length in lengths.items():
        if name in found and len(found[name]) != length:
            return f"{name} has {len(found[name]):,} values, and not {length:,}"
    if len(found["forest"]) >= max(vertices, 1):
        return f"forest has {len(found['forest']):,} of the edges between {vertices:,} vertices"
    if not _is_partition(found["first"], edges):
        return "first does not cut the edges by their vertices"
    checks: dict[str, Callable[[], bool]] = {
        "ids": lambda: _are_ids(found),
        "high": lambda: _are_higher_ends(found["first"], found["high"], vertices),
        "forest": lambda: _ascends(found["forest"]) and _is_within(found["forest"], edges),
        "time": lambda: _is_within(found["time"], None),
        "lam": lambda: _is_within(found["lam"], vertices),
        "count": lambda: bool((found["count"] >= found["lam"]).all()) and _is_within(found["count"], vertices),
        "remainder": lambda: bool((found["remainder"] <= found["lam"]).all()) and _is_within(found["remainder"], None),
        "weight": lambda: _are_weights(found, edges),
    }
    made = {name: readers.submit(check) for name, check in checks.items()}
    return next((f"{name} has values that no graph has" for name, check in made.items() if not check.result()), None)


def _is_within(values: NDArray[Any], end: int | None) -> bool:
    """Whether all values are at least 0, and below `end` if it is given."""
    return not len(values) or (values.min() >= 0 and (end is None or values.max() < end))


def _ascends(values: NDArray[Any]) -> bool:
    return bool((values[1:] > values[:-1]).all())


def _is_partition(bounds: NDArray[np.int64], end: int) -> bool:
    """Whether the bounds begin with 0, end with `end` and never decrease."""
    return bool(bounds[0] == 0 and bounds[-1] == end and (bounds[1:] >= bounds[:-1]).all())


def _are_ids(found: Mapping[str, NDArray[Any]]) -> bool:
    """Whether the ids ascend. Text is UTF-8."""
    if "ids" in found:
        return _ascends(found["ids"])
    starts, text = found["starts"], found["text"]
    if not _is_partition(starts, len(text)):
        return False
    ids = _ids(found, len(starts) - 1)
    try:
        ids.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return bool(pc.all(pc.greater(ids[1:], ids[:-1]), min_count=0).as_py())


def _are_higher_ends(first: NDArray[np.int64], high: NDArray[np.int32], vertices: int) -> bool:
    """Whether the higher ends of each vertex ascend and exceed the vertex, so that no edge occurs twice."""
    if not _is_within(high, vertices):
        return False
    begins = first[:-1][first[1:] > first[:-1]]
    rises = high[1:] > high[:-1]
    rises[begins[1:] - 1] = True
    return bool(rises.all() and (high[begins] > np.flatnonzero(first[1:] > first[:-1])).all())


def _are_weights(found: Mapping[str, NDArray[Any]], edges: int) -> bool:
    """Whether direction bits are valid, and weights are as many as directions."""
    ways, weight = found.get("ways"), found.get("weight")
    if ways is not None and not (_is_within(ways, (UP | DOWN) + 1) and (ways > 0).all()):
        return False
    arcs = edges if ways is None else int(np.bitwise_count(ways).sum(dtype=np.int64))
    return weight is None or len(weight) == arcs


def _damaged(place: Folder, name: str) -> NoState:
    return NoState(f"the state in {place} is damaged: {name} is not what was written")
