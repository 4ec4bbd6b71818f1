"""Values of dataclasses and arrays in files: arrays as .npy in a zip archive, and a JSON tree that refers to them.

Equal values give equal bytes, since entries have no time stamps. Nothing is pickled: only dataclasses that the caller
lists are created again, from plain values. A file is verified by its SHA-256 before it is read; the checksums of zip
guard each array as well.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from ... import kernels
from ...kernels.runtime.device import device
from ..errors import NO_SPACE, OutOfRoom, UsageError
from .checksums import HashedFile, json_object
from .folders import file_system
from .own_files import open_own
from .stores import store_errors

Types: TypeAlias = Mapping[str, type[Any]]
"""Name of a dataclass in files → the dataclass."""

_TREE = "tree.json"
_OWN_COMPONENTS = 3
"""Last components of a file's path that edgemill chose: the checkpoint, a folder in it, and the file."""


_KINDS = "biuf"
"""Kinds of the types of arrays: none has references to objects."""
_NOT_OURS = (
    *(AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError),
    *(zipfile.BadZipFile, pa.ArrowException),
)
"""Errors of decoding a file that another program wrote."""
_HEADER_BYTES = 1 << 16
"""More than the header of a .npy file has."""


class DamagedFile(Exception):
    """A stored file does not have the content that was written."""


@dataclass(frozen=True)
class StoredFile:
    """A file that was written."""

    url: str
    bytes: int
    sha256: str


def store(value: Any, url: str, options: Mapping[str, Any], types: Types) -> StoredFile:
    """Write a value to a new file at a path or URL; `options` are fsspec's. Raises UsageError, OutOfRoom.

    A value is None, a bool, int, float, str, tuple of ints, array of NumPy, CuPy or large strings of Arrow, mapping
    with int or str keys, or dataclass of `types`, with such values in it.
    """
    with _writing(url, options) as file:
        hashed: Any = HashedFile(file)  # zipfile needs no other methods of a file that cannot seek
        with zipfile.ZipFile(hashed, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            tree = _encode(value, archive, types)
            archive.writestr(zipfile.ZipInfo(_TREE), json.dumps(tree))
        return StoredFile(url, hashed.bytes, hashed.sha256)


def restore(stored: StoredFile, options: Mapping[str, Any], types: Types) -> Any:
    """The value in a file, with its arrays on the host or the GPU as they were. Raises DamagedFile."""
    try:
        with _reading(stored.url, options) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != stored.sha256:
                raise DamagedFile(f"{stored.url} is not what was written: it was cut off or changed")
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                return _decode(json_object(_content(archive, _TREE)), archive, types)
    except OSError as error:
        raise DamagedFile(f"{stored.url} cannot be read: {error.strerror or error}") from error
    except _NOT_OURS as error:  # with the right checksum
        raise DamagedFile(f"{stored.url} is not what edgemill writes: {error}") from error


def _encode(value: Any, archive: zipfile.ZipFile, types: Types) -> Any:
    """The JSON tree of a value. Its arrays are added to the archive."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    name = next((name for name, kind in types.items() if kind is type(value)), None)
    if name is not None:
        parts = {field.name: _encode(getattr(value, field.name), archive, types) for field in fields(value)}
        return {"type": name, "fields": parts}
    if isinstance(value, tuple):
        return {"tuple": [int(inner) for inner in value]}
    if isinstance(value, Mapping):
        keys = (key if isinstance(key, str) else int(key) for key in value)
        return {"map": [[key, _encode(inner, archive, types)] for key, inner in zip(keys, value.values(), strict=True)]}
    if isinstance(value, pa.LargeStringArray):
        whole = pa.concat_arrays([value])  # a slice has the buffers of the whole array
        _, starts, text = whole.buffers()
        ends = np.frombuffer(starts, np.int64, len(whole) + 1) if starts else np.zeros(1, np.int64)
        return {"strings": [_add(archive, ends), _add(archive, np.frombuffer(text or b"", np.uint8))]}
    on_device = not kernels.on_host(value)
    if value.ndim == 1 and len(value) > 1 and value.strides == (0,):
        return {"array": _add(archive, kernels.to_host(value[:1])), "on_device": on_device, "repeated": len(value)}
    return {"array": _add(archive, kernels.to_host(value)), "on_device": on_device}


def _add(archive: zipfile.ZipFile, array: np.ndarray[Any, Any]) -> list[Any]:
    """Add an array to the archive; returns its name, dtype and shape."""
    name = f"{len(archive.namelist())}.npy"
    with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)
    return [name, array.dtype.str, list(array.shape)]


def _decode(tree: Any, archive: zipfile.ZipFile, types: Types) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "type" in tree:
        return types[tree["type"]](**{name: _decode(inner, archive, types) for name, inner in tree["fields"].items()})
    if "tuple" in tree:
        return tuple(tree["tuple"])
    if "map" in tree:
        return {key: _decode(inner, archive, types) for key, inner in tree["map"]}
    if "strings" in tree:
        ends, text = (_read(archive, name) for name in tree["strings"])
        strings = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(text))
        strings.validate(full=True)
        return strings
    array = _read(archive, tree["array"])
    if tree["on_device"] and device().missing:
        raise ValueError("it has an array of a GPU, and there is none here")
    moved: Any = kernels.to_device(array) if tree["on_device"] else array
    return np.broadcast_to(moved, (tree["repeated"],)) if "repeated" in tree else moved


def _read(archive: zipfile.ZipFile, stored: list[Any]) -> np.ndarray[Any, Any]:
    """Read an array with the name, dtype and shape in `stored`. The header of the .npy file is skipped: NumPy would
    evaluate its text, and CPython's parser sometimes fails when several threads use it.
    """
    name, dtype, shape = stored
    kind = np.dtype(dtype)
    bytes_left = archive.getinfo(name).file_size - math.prod(shape) * kind.itemsize
    if kind.kind not in _KINDS or not 0 < bytes_left < _HEADER_BYTES:
        raise ValueError(f"{name} is not an array of the type {dtype} and the shape {shape}")
    entry: Any  # typeshed lacks its method readinto
    with archive.open(_stored_plain(archive, name)) as entry:
        major, _ = np.lib.format.read_magic(entry)
        entry.read(int.from_bytes(entry.read(2 if major == 1 else 4), "little"))
        array: np.ndarray[Any, Any] = np.empty(shape, kind)
        content = array.data.cast("B") if array.size else memoryview(bytearray())
        if entry.readinto(content) != len(content) or entry.read(1):
            raise ValueError(f"{name} is not as long as its array")
    return array


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    return archive.read(_stored_plain(archive, name))


def _stored_plain(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """The entry of a file in the archive. Raises ValueError if it would take more memory than the archive has bytes."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise ValueError(f"{name} is compressed")
    return info


@contextmanager
def _reading(url: str, options: Mapping[str, Any]) -> Iterator[Any]:
    files, path = file_system(url, options)
    if type(files) is LocalFileSystem:
        with open(open_own(Path(path), os.O_RDONLY, _OWN_COMPONENTS), "rb") as file:
            yield file
    else:
        with store_errors("read", url), files.open(path, "rb") as file:
            yield file


@contextmanager
def _writing(url: str, options: Mapping[str, Any]) -> Iterator[BinaryIO]:
    """Open a new file. A missing folder is not created: it may have been removed with its run."""
    files, path = file_system(url, options)
    with checkpoint_errors(url):
        if type(files) is LocalFileSystem:
            new = open_own(Path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWN_COMPONENTS)
            with open(new, "wb") as file:
                yield file
        else:
            with store_errors("write", url), files.open(path, "wb") as file:
                yield file


@contextmanager
def checkpoint_errors(url: str) -> Iterator[None]:
    """While a file of a checkpoint is written: OutOfRoom for a full disk, UsageError for other errors of the system."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(f"no room left for the checkpoint {url}: free some, or set checkpoint.path=…") from error
        raise UsageError(
            f"cannot write the checkpoint {url}: {error.strerror or error}; set checkpoint.path=…"
        ) from error
