"""The location of a checkpoint and the format of its indexes: a line with the SHA-256 of the text, then JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from ...tasks.storage.checksums import after_checksum_line, json_object, with_checksum_line
from ...tasks.storage.folders import Folder
from ...tasks.storage.own_files import plain_name

Index: TypeAlias = dict[str, Any]
"""`format`; `folder`, a plain name; `files` by kind, with url, bytes and sha256; and other facts."""

INDEXES = ("update.json", "progress.json", "progress.before.json", "graph.json", "owned.json", "edges.json")
"""Names of all indexes that a checkpoint may have, the latest step first."""


def checkpoint_place(out: Folder, path: str | None) -> str:
    """The path or URL of the checkpoint of the output `out`; `path` is the setting `checkpoint.path`."""
    parent, _, last = out.url.rpartition("/")
    name = f".{last}.edgemill.checkpoint"
    if path is not None:
        # Several outputs may share the folder `path`, so each output has its own folder in it.
        return f"{path.rstrip('/')}/{name}-{sha256(os.fsencode(out.url)).hexdigest()[:16]}"
    return f"{parent}/{name}" if out.is_local else f"{out.url}/.edgemill.checkpoint"


def clear_earlier(place: Folder, time: datetime) -> None:
    """Remove a checkpoint that was last written before `time`. It stays if the storage does not report times.

    Raises UsageError or StoreLost for a store, OSError for a disk.
    """
    written = [when for name in INDEXES if (when := place.modified(name)) is not None]
    if written and max(written) <= time:
        place.remove("")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    url: str
    bytes: int
    sha256: str


class _Index(BaseModel):
    """The fields of every index."""

    model_config = ConfigDict(extra="allow", strict=True)

    format: int
    folder: Annotated[str, AfterValidator(plain_name)]
    files: dict[Annotated[str, AfterValidator(plain_name)], list[_File]]
    made_of: dict[str, Any]


def seal(index: Mapping[str, Any]) -> bytes:
    """The bytes of an index file."""
    return with_checksum_line(json.dumps(index).encode())


def opened(content: bytes) -> Index:
    """The index of a file, in any format. Raises ValueError if the checksum is wrong."""
    return json_object(after_checksum_line(content))


def checked(index: Index) -> Index:
    """The validated index. Raises ValueError for missing fields and for names that are not plain file names."""
    try:
        return _Index.model_validate(index).model_dump()
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
