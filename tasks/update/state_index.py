"""The index of the state of a result, and operations on the state's folder that do not read its arrays. Loads no
kernels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import NO_SPACE, OutOfRoom, UsageError
from ..storage.checksums import after_checksum_line, json_object, with_checksum_line
from ..storage.folders import Folder, take_over
from ..storage.own_files import locked

FOLDER = "state"
"""Name of the folder."""
INDEX = "index.json"
FORMAT, VERSION = "edgemill-state", 4


class NoState(Exception):
    """There is no state that can be used; the message says why."""


FILES = {
    "ids": "<i8",
    "starts": "<i8",
    "text": "|u1",
    "first": "<i8",
    "high": "<i4",
    "forest": "<i4",
    "lam": "<i4",
    "time": "<i4",
    "count": "<i4",
    "remainder": "<i4",
    "ways": "|u1",
    "weight": "<f8",
}
"""The files that a state may have, and the type of each. Small values of type <i4 are stored in fewer bytes."""
NARROW = ("|u1", "<u2")


@contextmanager
def new_place(place: Folder) -> Iterator[None]:
    """Make the folder of a state, and hold its lock while the state is written. Raises OSError."""
    if not place.is_local:
        yield
        return
    Path(place.url).mkdir(0o700, parents=True)
    with locked(Path(place.url)):
        yield


def is_unfinished(place: Folder) -> bool:
    """Whether a run that was killed has left part of a state in the folder; False unless the folder is on a disk."""
    if not place.is_local or has_state(place):
        return False
    try:
        with locked(Path(place.url), wait=False) as is_left:
            return is_left and not {*os.listdir(place.url)} - FILES.keys()
    except OSError:
        return False


def has_state(place: Folder) -> bool:
    """Whether the folder has the index of a state, of any version."""
    return place.read(INDEX) is not None


def carry_state(source: Folder, target: Folder, run: str) -> None:
    """Make the state in `source` also that of the result of `run`, in the folder `target`, with the same files.

    Raises NoState if the index in `source` cannot be read; UsageError, OutOfRoom.
    """
    index = read_index(source)
    try:
        with new_place(target):
            for name in index["files"]:
                take_over(source, name, target, name)
            target.write(INDEX, sealed(index | {"run": run}))
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(f"no room left on the disk of {target}") from error
        raise UsageError(f"cannot write {target}: {error.strerror or error}") from error


def read_index(place: Folder) -> dict[str, Any]:
    """The index of a state: the files, all of which FILES lists, with the type, size in bytes and checksums of each.

    Raises NoState.
    """
    if place.is_local and os.path.islink(place.url):
        raise NoState(f"the state in {place} is not used: the folder is a symbolic link")
    try:
        text = place.read(INDEX)
    except OSError as error:
        raise NoState(f"the state in {place} cannot be read: {error.strerror or error}") from None
    if text is None:
        raise NoState(f"{place} has no state")
    try:
        index = json_object(after_checksum_line(text))
    except ValueError as error:
        raise NoState(f"the state in {place} is damaged: {error}") from None
    if (index.get("format"), index.get("format_version")) != (FORMAT, VERSION):
        found = index.get("format_version")
        raise NoState(f"the state in {place} has format version {found}; this edgemill reads {VERSION}")
    if (flaw := _flaw(index)) is not None:
        raise NoState(f"the state in {place} is damaged: {INDEX}: {flaw}")
    return index


def _flaw(index: Mapping[str, Any]) -> str | None:
    """What is wrong with an index, which anyone may have replaced; None if nothing is."""
    for name in ("vertices", "edges"):
        if not _is_count(index.get(name)):
            return f"{name} is not a number of {name}"
    if not isinstance(index.get("run"), str):
        return "run is not the id of a run"
    files = index.get("files")
    if not isinstance(files, dict):
        return "files is not an object"
    for name, file in files.items():
        if name not in FILES:
            return f"{name!r} is not a file of a state"
        if not isinstance(file, dict) or not _is_count(file.get("bytes"), 2**62):
            return f"{name} has no number of bytes"
        if file.get("dtype") != FILES[name] and not (FILES[name] == "<i4" and file.get("dtype") in NARROW):
            return f"{name} has another type than {FILES[name]}"
        sums = file.get("sha256")
        if not isinstance(sums, list) or not all(isinstance(one, str) for one in sums):
            return f"{name} has no list of checksums"
    return None


def _is_count(value: object, most: int = 2**31) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most


def sealed(index: Mapping[str, Any]) -> bytes:
    """The index as a file with its own checksum."""
    return with_checksum_line(json.dumps(index, indent=1).encode())
