"""JSON documents that an attacker has written: each value of a document in turn is replaced, and the seal is right."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEEP, DIGITS, INFINITE = "@deep@", "@digits@", "@infinite@"
_RAW = {
    f'"{DEEP}"': "[" * 20_000 + "]" * 20_000,
    f'"{DIGITS}"': "9" * 5_000,
    f'"{INFINITE}"': "1e999",
}
"""What json.dumps would not write."""
_CHANGES, _EVERYTHING = 0xFC6, 0xFFF
"""Events of inotify: without those of opening and reading, and all."""


def forgeries(outside: Path) -> list[Any]:
    """Values to replace others with. `outside` is a file that nobody asked for."""
    return [
        f"../{outside.parent.name}/{outside.name}",
        f"../../{outside.parent.name}/{outside.name}",
        str(outside),
        f"{outside.parent}/new",
        "a\0b",
        ".",
        "..",
        "",
        "edges/..",
        -1,
        2**31,
        2**62,
        10**30,
        0.5,
        DIGITS,
        INFINITE,
        DEEP,
        None,
        True,
        [],
        {},
        ["x"],
        {"x": 1},
    ]


class Key(str):
    """The last part of the path of a name in an object, and not of its value."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all names and values in a JSON value; of a list, those of its first two elements."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, Key(name))
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for at, inner in enumerate(value[:2]):
            yield from places(inner, (*path, at))


def forged(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value, or name if the value is a text, at a place."""
    if not place:
        return value
    if isinstance(place[0], Key):
        return {
            value if name == place[0] and isinstance(value, str) else name: inner for name, inner in document.items()
        }
    made: Any = dict(document) if isinstance(document, dict) else list(document)
    made[place[0]] = forged(document[place[0]], place[1:], value)
    return made


def text(document: Any, indent: int | None = None) -> str:
    """A document with forged values as JSON."""
    written = json.dumps(document, indent=indent)
    for mark, raw in _RAW.items():
        written = written.replace(mark, raw)
    return written


@contextmanager
def untouched(folder: Path, reads: bool = True) -> Iterator[None]:
    """Fails if anything changes or creates a file in the folder meanwhile, or `reads` it, also from native code."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        events = _EVERYTHING if reads else _CHANGES
        assert handle >= 0 and libc.inotify_add_watch(handle, os.fsencode(folder), events) >= 0
        yield
        try:
            seen = os.read(handle, 1 << 16)
        except BlockingIOError:
            seen = b""
        assert not seen, seen
    finally:
        os.close(handle)
