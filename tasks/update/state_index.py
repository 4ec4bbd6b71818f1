"""The index of the state of a result, and the state's files as they are. Loads no arrays and no kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..storage.checksums import after_checksum_line, with_checksum_line
from ..storage.folders import Folder
from ..storage.taking_over import take_over

FOLDER = "state"
"""Name of the folder."""
INDEX = "index.json"
FORMAT, VERSION = "edgemill-state", 4


class NoState(Exception):
    """There is no state that can be used; the message says why."""


def has_state(place: Folder) -> bool:
    """Whether the folder has the index of a state, of any version."""
    return place.read(INDEX) is not None


def carry_state(source: Folder, target: Folder, run: str) -> None:
    """Make the state in `source` also that of the result of `run`, in the folder `target`, with the same files.

    Raises NoState if the index in `source` cannot be read; UsageError, OutOfRoom.
    """
    index = read_index(source)
    if target.is_local:
        Path(target.url).mkdir(0o700, parents=True, exist_ok=True)
    for name in index["files"]:
        take_over(source, name, target, name)
    target.write(INDEX, sealed(index | {"run": run}))


def read_index(place: Folder) -> dict[str, Any]:
    """The index of a state. Raises NoState."""
    text = place.read(INDEX)
    if text is None:
        raise NoState(f"{place} has no state")
    try:
        index: dict[str, Any] = json.loads(after_checksum_line(text))
    except ValueError as error:
        raise NoState(f"the state in {place} is damaged: {error}") from None
    if (index.get("format"), index.get("format_version")) != (FORMAT, VERSION):
        found = index.get("format_version")
        raise NoState(f"the state in {place} has format version {found}; this edgemill reads {VERSION}")
    return index


def sealed(index: Mapping[str, Any]) -> bytes:
    """The index as a file with its own checksum."""
    return with_checksum_line(json.dumps(index, indent=1).encode())
