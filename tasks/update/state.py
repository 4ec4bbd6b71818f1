"""What is kept beside a result for the next update: its numbering, edges and order of peeling, as raw columns.

The folder `state` has one file for each array, little-endian without a header, so that it can be mapped into memory,
and an index with the SHA-256 of each file, which is itself sealed. All of it can be computed from the result, so a lost
or damaged state costs time and never exactness.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.graph import Topology
from ..errors import NO_SPACE, OutOfRoom, UsageError
from ..ids.identity import Ids
from ..storage.checksums import HashedFile, after_checksum_line, with_checksum_line
from ..storage.folders import Folder
from ..storage.own_files import open_own
from ..storage.taking_over import take_over
from .merging import NumberedGraph
from .order import Order

FOLDER = "state"
"""Name of the folder."""
INDEX = "index.json"
_FORMAT, _VERSION = "edgemill-state", 1
_STEP = 2**24
"""Bytes that are written at once."""


class NoState(Exception):
    """There is no state that can be used; the message says why."""


@dataclass(frozen=True)
class State:
    """The graph of a result, and the order in which its edges were peeled."""

    graph: NumberedGraph
    order: Order


def write_state(place: Folder, run: str, state: State) -> int:
    """Write the state of the result of `run` into the folder `place`. Returns its bytes.

    Raises UsageError if it cannot be written, OutOfRoom for a full disk.
    """
    arrays = dict(_arrays(state))
    try:
        if place.is_local:
            Path(place.url).mkdir(0o700, parents=True)
        with ThreadPoolExecutor() as writers:
            files = dict(zip(arrays, writers.map(lambda name: _write(place, name, arrays[name]), arrays), strict=True))
        index = {
            "format": _FORMAT,
            "format_version": _VERSION,
            "run": run,
            "vertices": len(state.graph.ids),
            "edges": state.graph.edges.edges,
            "files": files,
        }
        place.write(INDEX, _sealed(index))
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(f"no room left on the disk of {place}") from error
        raise UsageError(f"cannot write {place}: {error.strerror or error}") from error
    return sum(int(file["bytes"]) for file in files.values())


def has_state(place: Folder) -> bool:
    """Whether the folder has the index of a state, of any version."""
    return place.read(INDEX) is not None


def read_state(place: Folder, run: str) -> State:
    """The state of the result of `run`, mapped from the folder `place`, after all its checksums have been compared.

    Raises NoState if there is none, if it is damaged, or if it is of another run.
    """
    index = _index(place)
    if index.get("run") != run:
        raise NoState(f"the state in {place} is of run {index.get('run')}")
    try:
        with ThreadPoolExecutor() as readers:
            found = dict(readers.map(lambda item: (item[0], _read(place, *item)), index["files"].items()))
    except OSError as error:
        raise NoState(f"the state in {place} cannot be read: {error.strerror or error}") from None
    edges = Topology(found["low"], found["high"], index["vertices"])
    order = Order(**{field.name: found[field.name] for field in fields(Order)})
    return State(NumberedGraph(_ids(found, index["vertices"]), edges), order)


def carry_state(source: Folder, target: Folder, run: str) -> None:
    """Make the state in `source` also that of the result of `run`, in the folder `target`, with the same files.

    Raises NoState if the index in `source` cannot be read; UsageError, OutOfRoom.
    """
    index = _index(source)
    if target.is_local:
        Path(target.url).mkdir(0o700, parents=True, exist_ok=True)
    for name in index["files"]:
        take_over(source, name, target, name)
    target.write(INDEX, _sealed(index | {"run": run}))


def _index(place: Folder) -> dict[str, Any]:
    """The index of a state. Raises NoState."""
    text = place.read(INDEX)
    if text is None:
        raise NoState(f"{place} has no state")
    try:
        index: dict[str, Any] = json.loads(after_checksum_line(text))
    except ValueError as error:
        raise NoState(f"the state in {place} is damaged: {error}") from None
    if (index.get("format"), index.get("format_version")) != (_FORMAT, _VERSION):
        raise NoState(f"the state in {place} has format version {index.get('format_version')}; this edgemill reads 1")
    return index


def _sealed(index: Mapping[str, Any]) -> bytes:
    return with_checksum_line(json.dumps(index, indent=1).encode())


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
    yield from (("low", edges.low), ("high", edges.high))
    yield from ((field.name, getattr(state.order, field.name)) for field in fields(Order))


def _ids(found: Mapping[str, NDArray[Any]], vertices: int) -> Ids:
    if "ids" in found:
        return found["ids"]
    return pa.LargeStringArray.from_buffers(vertices, pa.py_buffer(found["starts"]), pa.py_buffer(found["text"]))


def _write(place: Folder, name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Write an array to a new file, and describe it."""
    array = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    content = array.data.cast("B") if array.size else memoryview(b"")
    if place.is_local:
        handle = open_own(Path(place.url, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, own=3)
        with open(handle, "wb") as file:
            hashed = HashedFile(file)
            for start in range(0, len(content), _STEP):
                hashed.write(content[start : start + _STEP])  # type: ignore[arg-type]  # a buffer
            file.flush()
            os.fsync(file.fileno())
        digest = hashed.sha256
    else:
        place.write(name, bytes(content))
        digest = sha256(content).hexdigest()
    return {"dtype": array.dtype.str, "bytes": len(content), "sha256": digest}


def _read(place: Folder, name: str, file: Mapping[str, Any]) -> NDArray[Any]:
    """The array of a file. Raises NoState unless the file has the content that was written."""
    dtype = np.dtype(file["dtype"])
    if place.is_local:
        with open(open_own(Path(place.url, name), os.O_RDONLY, own=3), "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            content = np.memmap(opened, np.uint8, "r") if size else np.zeros(0, np.uint8)
    else:
        content = np.frombuffer(place.read(name) or b"", np.uint8)
    if len(content) != file["bytes"] or sha256(content.data).hexdigest() != file["sha256"]:
        raise NoState(f"the state in {place} is damaged: {name} is not what was written")
    return content.view(dtype)
