"""A name that stands for a result and may be moved to another: a symbolic link on a disk, a small file in a store.

Object stores have no links. There the object `latest` says which result it stands for, relative to where it lies:

    {"format": "edgemill-pointer", "format_version": 1, "result": "2026-11-20"}
"""

from __future__ import annotations

import errno
import json
import os
import posixpath
import secrets
from contextlib import suppress
from pathlib import Path

from .errors import NO_SPACE, InputError, OutOfRoom, UsageError
from .own_files import open_own, plain_names, publish, usual_modes
from .places import Place

__all__ = ["follow", "point", "pointed", "refuse_others"]

FORMAT, FORMAT_VERSION = "edgemill-pointer", 1
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


def follow(place: Place) -> Place:
    """The result that `place` stands for; the place itself if it is one, or no pointer.

    Raises InputError for a pointer that cannot be understood, UsageError for a store that does not let read.
    """
    if place.is_local and os.path.islink(place.url):
        return Place(os.path.realpath(place.url))
    if not place.is_local:
        with place.reached("look at"):
            if place.files.exists(place.path("manifest.json")):
                return place  # as nearly all are: no other question is asked of the store
    return pointed(place) or place


def pointed(place: Place) -> Place | None:
    """What the pointer at `place` stands for, whether or not that is there; None if there is no pointer.

    Raises InputError for a pointer that cannot be understood, UsageError for a store that does not let read.
    """
    if place.is_local and os.path.islink(place.url):
        target = os.readlink(place.url)
    else:
        text = _read(place)
        if text is None:
            return None
        target = _target(place, text)
    root, path = _split(place)
    return Place(root + posixpath.normpath(posixpath.join(posixpath.dirname(path), target)), place.options)


def point(place: Place, result: Place) -> None:
    """Let `place` stand for `result`, in the same file system, from one moment to the next.

    A symbolic link that is renamed into its place; where there are no links, a file, which is one PUT in an object
    store. Raises UsageError if something else is there, or nothing can be written, OutOfRoom for a full disk.
    """
    refuse_others(place)
    (root, path), (other, target) = _split(place), _split(result)
    assert root == other, (place, result)
    target = posixpath.relpath(target, posixpath.dirname(path))
    content = json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, "result": target}).encode() + b"\n"
    if not place.is_local:
        folder, name = _within(place)
        folder.write(name, content)
        return
    new = Path(f"{posixpath.dirname(path)}/.{posixpath.basename(path)}.edgemill-{secrets.token_hex(4)}")
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.symlink_to(target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with open(open_own(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(content)
            publish(new, usual_modes(new.parent))
        os.replace(new, path)
    except OSError as error:
        kind = OutOfRoom if error.errno in NO_SPACE else UsageError
        raise kind(f"cannot make {place} point to {target}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def refuse_others(place: Place) -> None:
    """Raises UsageError if what is at `place` is not a pointer."""
    if place.is_local:
        there = os.path.lexists(place.url) and pointed(place) is None
    else:
        folder, name = _within(place)
        there = bool(place.names()) or (folder.read(name) is not None and pointed(place) is None)
    if there:
        raise UsageError(
            f"{place} is there and is not a pointer: move it away, or leave the pointer out with nightly.latest=false"
        )


def _read(place: Place) -> bytes | None:
    """The text of a pointer of ours; None if there is none."""
    if place.is_local and not os.path.isfile(place.url):
        return None
    folder, name = _within(place)
    text = folder.read(name) if folder.path() else None
    return text if text and FORMAT.encode() in text[:200] else None


def _target(place: Place, text: bytes) -> str:
    try:
        content = json.loads(text)
        target = content["result"]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{place} is damaged: it is not a pointer to a result as edgemill writes it; remove it"
        ) from None
    if content.get("format_version") != FORMAT_VERSION:
        raise InputError(f"{place} has format version {content.get('format_version')}; this edgemill reads 1")
    if not isinstance(target, str) or not _is_beside(target):
        raise InputError(f"{place} is damaged: it points to {target!r}, which is no place beside it; remove it")
    return target


def _is_beside(target: str) -> bool:
    """Whether a relative path leads up and down again, further down than up, as to another day of one series."""
    names = target.split("/")
    ups = next((at for at, name in enumerate(names) if name != ".."), len(names))
    try:
        return len(names) - ups > ups and bool(plain_names("/".join(names[ups:])))
    except ValueError:
        return False


def _within(place: Place) -> tuple[Place, str]:
    root, path = _split(place)
    folder, _, name = path.rpartition("/")
    return Place(root + folder or "/", place.options), name


def _split(place: Place) -> tuple[str, str]:
    """What stands before the path, and the path: absolute on a disk."""
    if place.is_local:
        return "", os.path.abspath(os.path.expanduser(place.url))
    start, mark, path = place.url.partition("://")
    return start + mark, path
