"""A pointer to a result, which can be changed to another result: a symbolic link on a disk, a small file in a store.

Object stores have no links. There the object `latest` names its result, relative to its own folder:

    {"format": "edgemill-pointer", "format_version": 1, "result": "2026-11-20"}
"""

from __future__ import annotations

import json
import os
import posixpath
from pathlib import Path

from ..errors import NO_SPACE, InputError, OutOfRoom, UsageError
from .atomic import NO_LINKS, atomic_file, make_link
from .checksums import json_object
from .folders import Folder
from .own_files import plain_path

FORMAT, FORMAT_VERSION = "edgemill-pointer", 1


def follow_pointer(pointer: Folder) -> Folder:
    """The result that `pointer` points to; `pointer` itself if it is a result, or not a pointer.

    Raises InputError for a damaged pointer, UsageError if the store refuses to read.
    """
    if pointer.is_local and os.path.islink(pointer.url):
        return Folder(os.path.realpath(pointer.url))
    if not pointer.is_local:
        with pointer.store_errors("look at"):
            if pointer.files.exists(pointer.path("manifest.json")):
                return pointer  # the usual case, with one request
    return pointer_target(pointer) or pointer


def pointer_target(pointer: Folder) -> Folder | None:
    """The target of the pointer, which need not exist; None if there is no pointer.

    Raises InputError for a damaged pointer, UsageError if the store refuses to read.
    """
    if pointer.is_local and os.path.islink(pointer.url):
        target = os.readlink(pointer.url)
    else:
        text = _read(pointer)
        if text is None:
            return None
        target = _target(pointer, text)
    root, path = _split(pointer)
    return Folder(root + posixpath.normpath(posixpath.join(posixpath.dirname(path), target)), pointer.options)


def set_pointer(pointer: Folder, result: Folder) -> None:
    """Make `pointer` point to `result`, in the same file system, atomically.

    On a disk this is a symbolic link, or a file if the file system has no links; in an object store it is one PUT.
    Raises UsageError if something else is there or it cannot be written, OutOfRoom for a full disk.
    """
    refuse_non_pointer(pointer)
    (root, path), (other, target) = _split(pointer), _split(result)
    assert root == other, (pointer, result)
    target = posixpath.relpath(target, posixpath.dirname(path))
    content = json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, "result": target}).encode() + b"\n"
    if not pointer.is_local:
        folder, name = _within(pointer)
        folder.write(name, content)
        return
    try:
        _write_on_disk(Path(path), target, content)
    except OSError as error:
        kind = OutOfRoom if error.errno in NO_SPACE else UsageError
        raise kind(f"cannot make {pointer} point to {target}: {error.strerror}") from error


def _write_on_disk(path: Path, target: str, content: bytes) -> None:
    """Make a symbolic link to `target`, or a file with `content` where the file system has no links."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        make_link(path, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        with atomic_file(path) as file:
            file.write(content)


def refuse_non_pointer(pointer: Folder) -> None:
    """Raises UsageError if something other than a pointer is at `pointer`."""
    if pointer.is_local:
        exists = os.path.lexists(pointer.url) and pointer_target(pointer) is None
    else:
        folder, name = _within(pointer)
        exists = bool(pointer.names()) or (folder.read(name) is not None and pointer_target(pointer) is None)
    if exists:
        raise UsageError(
            f"{pointer} exists and is not a pointer: move it away, or leave the pointer out with nightly.latest=false"
        )


def _read(pointer: Folder) -> bytes | None:
    """The content of a pointer that edgemill wrote; None if there is no such file."""
    if pointer.is_local and not os.path.isfile(pointer.url):
        return None
    folder, name = _within(pointer)
    text = folder.read(name) if folder.path() else None
    return text if text and FORMAT.encode() in text[:200] else None


def _target(pointer: Folder, text: bytes) -> str:
    try:
        content = json_object(text)
        target = content["result"]
    except (ValueError, KeyError):
        raise InputError(
            f"{pointer} is damaged: it is not a pointer to a result as edgemill writes it; remove it"
        ) from None
    if content.get("format_version") != FORMAT_VERSION:
        raise InputError(f"{pointer} has format version {content.get('format_version')}; this edgemill reads 1")
    if not isinstance(target, str) or not _is_beside(target):
        raise InputError(f"{pointer} is damaged: it points to {target!r}, which is not beside it; remove it")
    return target


def _is_beside(target: str) -> bool:
    """Whether a relative path goes up and then further down, as to another day of a series."""
    names = target.split("/")
    ups = next((at for at, name in enumerate(names) if name != ".."), len(names))
    try:
        return len(names) - ups > ups and bool(plain_path("/".join(names[ups:])))
    except ValueError:
        return False


def _within(pointer: Folder) -> tuple[Folder, str]:
    root, path = _split(pointer)
    folder, _, name = path.rpartition("/")
    return Folder(root + folder or "/", pointer.options), name


def _split(pointer: Folder) -> tuple[str, str]:
    """The scheme of a URL, or "", and the path, which is absolute on a disk."""
    if pointer.is_local:
        return "", os.path.abspath(os.path.expanduser(pointer.url))
    start, mark, path = pointer.url.partition("://")
    return start + mark, path
