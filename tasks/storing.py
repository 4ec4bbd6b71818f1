"""What tasks hold to files and back: arrays as .npy in a zip, and a JSON tree that says where each belongs.

The same value makes the same bytes: entries bear no time. Nothing is pickled: only the types of TYPES are made again,
from plain values. What is read is what was written, by the file's size and SHA-256; zip's own checksums guard each
array besides.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from .. import kernels
from ..kernels.cpu.shards import Cut
from ..kernels.graph import Topology
from .bound.band import KeptBands
from .bound.fixpoint import FallenBounds, KeptBounds
from .bound.peel import Peeled
from .degrees import BucketDegrees
from .errors import NO_SPACE, OutOfRoom, UsageError
from .ingest import OwnedEdges, OwnedRows
from .numbering import BucketEdges, BucketIds
from .own_files import open_own
from .places import file_system
from .shards.edges import ShardEdges
from .shards.on_gpu import ShardOnGpu
from .shards.state import Figures, ShardState
from .shards.supports import BucketSupports
from .stores import asked
from .subgraph import PartitionCounts, Subgraph

TYPES = {
    kind.__name__: kind
    for kind in (
        BucketDegrees,
        BucketEdges,
        BucketIds,
        BucketSupports,
        Cut,
        FallenBounds,
        Figures,
        KeptBands,
        KeptBounds,
        OwnedEdges,
        OwnedRows,
        PartitionCounts,
        Peeled,
        ShardEdges,
        ShardOnGpu,
        ShardState,
        Subgraph,
        Topology,
    )
}
"""What can be stored."""

_TREE = "tree.json"
_OWN_NAMES = 3
"""Last names of a checkpoint's file: the checkpoint's own, that of a folder in it, and the file's."""


class DamagedFile(Exception):
    """A stored file is not what was written."""


@dataclass(frozen=True)
class StoredFile:
    """A file that was written."""

    url: str
    bytes: int
    sha256: str


def store(value: Any, url: str, options: Mapping[str, Any]) -> StoredFile:
    """Write a value of TYPES to a new file; `options` are fsspec's. Raises UsageError or OutOfRoom."""
    with _writing(url, options) as file:
        hashed: Any = _Hashed(file)  # zip asks for no more than this where it cannot seek
        with zipfile.ZipFile(hashed, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            tree = _take_apart(value, archive)
            archive.writestr(zipfile.ZipInfo(_TREE), json.dumps(tree))
        return StoredFile(url, hashed.bytes, hashed.sha256)


def restore(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    """The value that was written, its arrays on the host or the GPU as they were. Raises DamagedFile."""
    try:
        with _reading(stored.url, options) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != stored.sha256:
                raise DamagedFile(f"{stored.url} is not what was written: it was cut off or changed")
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                return _put_together(json.loads(archive.read(_TREE)), archive)
    except OSError as error:
        raise DamagedFile(f"{stored.url} cannot be read: {error.strerror or error}") from error


def _take_apart(value: Any, archive: zipfile.ZipFile) -> Any:
    """The JSON tree of a value, whose arrays go into the archive."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if is_dataclass(value) and type(value).__name__ in TYPES:
        parts = {field.name: _take_apart(getattr(value, field.name), archive) for field in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    if isinstance(value, tuple):
        return {"tuple": [int(inner) for inner in value]}
    if isinstance(value, Mapping):
        return {"map": [[int(key), _take_apart(inner, archive)] for key, inner in value.items()]}
    if isinstance(value, pa.LargeStringArray):
        whole = pa.concat_arrays([value])  # a slice keeps the buffers of all
        _, starts, text = whole.buffers()
        ends = np.frombuffer(starts, np.int64, len(whole) + 1) if starts else np.zeros(1, np.int64)
        return {"strings": [_add(archive, ends), _add(archive, np.frombuffer(text or b"", np.uint8))]}
    there = not kernels.on_host(value)
    if value.ndim == 1 and len(value) > 1 and value.strides == (0,):
        return {"array": _add(archive, kernels.to_host(value[:1])), "on_device": there, "repeated": len(value)}
    return {"array": _add(archive, kernels.to_host(value)), "on_device": there}


def _add(archive: zipfile.ZipFile, array: np.ndarray[Any, Any]) -> list[Any]:
    """The array's name, dtype and shape."""
    name = f"{len(archive.namelist())}.npy"
    with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)
    return [name, array.dtype.str, list(array.shape)]


def _put_together(tree: Any, archive: zipfile.ZipFile) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "type" in tree:
        return TYPES[tree["type"]](**{name: _put_together(inner, archive) for name, inner in tree["fields"].items()})
    if "tuple" in tree:
        return tuple(tree["tuple"])
    if "map" in tree:
        return {key: _put_together(inner, archive) for key, inner in tree["map"]}
    if "strings" in tree:
        ends, text = (_read(archive, name) for name in tree["strings"])
        return pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(text))
    array = _read(archive, tree["array"])
    put: Any = kernels.to_device(array) if tree["on_device"] else array
    return np.broadcast_to(put, (tree["repeated"],)) if "repeated" in tree else put


def _read(archive: zipfile.ZipFile, stored: list[Any]) -> np.ndarray[Any, Any]:
    """An array by what the tree says of it. NumPy would evaluate the text that an .npy starts with, and CPython's
    parser sometimes fails when several threads are at it.
    """
    name, dtype, shape = stored
    entry: Any  # typeshed does not know that it can read into a buffer
    with archive.open(name) as entry:
        major, _ = np.lib.format.read_magic(entry)
        entry.read(int.from_bytes(entry.read(2 if major == 1 else 4), "little"))
        array: np.ndarray[Any, Any] = np.empty(shape, dtype)
        content = array.data.cast("B") if array.size else memoryview(bytearray())
        if entry.readinto(content) != len(content) or entry.read(1):
            raise ValueError(f"{name} is not as long as its array")
    return array


class _Hashed:
    """A file to write to, once from start to end, that knows the size and SHA-256 of what it got."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.bytes = 0

    def write(self, content: Any) -> int:
        self._hash.update(content)
        size = memoryview(content).nbytes
        self.bytes += size
        self._file.write(content)
        return size

    def flush(self) -> None:
        self._file.flush()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


@contextmanager
def _reading(url: str, options: Mapping[str, Any]) -> Iterator[Any]:
    files, path = file_system(url, options)
    if type(files) is LocalFileSystem:
        with open(open_own(Path(path), os.O_RDONLY, _OWN_NAMES), "rb") as file:
            yield file
    else:
        with asked("read", url), files.open(path, "rb") as file:
            yield file


@contextmanager
def _writing(url: str, options: Mapping[str, Any]) -> Iterator[BinaryIO]:
    """A new file; no folder is made, which may be gone with its run."""
    files, path = file_system(url, options)
    try:
        if type(files) is LocalFileSystem:
            new = open_own(Path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWN_NAMES)
            with open(new, "wb") as file:
                yield file
        else:
            with asked("write", url), files.open(path, "wb") as file:
                yield file
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(f"no room left for the checkpoint {url}: free some, or set checkpoint.path=…") from error
        raise UsageError(
            f"cannot write the checkpoint {url}: {error.strerror or error}; set checkpoint.path=…"
        ) from error
