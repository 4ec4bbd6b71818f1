"""Where a checkpoint lies, and its indexes: JSON after a line with the SHA-256 of its text."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from ..tasks.own_files import plain
from ..tasks.places import Place

__all__ = ["INDEXES", "Index", "checked", "checkpoint_place", "clear_earlier", "opened", "seal"]

Index: TypeAlias = dict[str, Any]
"""`format`, `folder`, a plain name, `files`, of each kind with url, bytes and sha256, and what else is to be known."""

INDEXES = ("progress.json", "progress.before.json", "graph.json", "owned.json", "edges.json")
"""Names of all that a checkpoint may have, the furthest first."""


def checkpoint_place(out: Place, path: str | None) -> str:
    """The path or URL of the checkpoint of the output `out`; `path` is the setting `checkpoint.path`."""
    parent, _, last = out.url.rpartition("/")
    name = f".{last}.edgemill.checkpoint"
    if path is not None:
        # In a folder that others use too, one of the output's own.
        return f"{path.rstrip('/')}/{name}-{sha256(os.fsencode(out.url)).hexdigest()[:16]}"
    return f"{parent}/{name}" if out.is_local else f"{out.url}/.edgemill.checkpoint"


def clear_earlier(place: Place, time: datetime) -> None:
    """Remove a checkpoint that was written last before `time`, if the storage tells when that was.

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
    """What every index has."""

    model_config = ConfigDict(extra="allow", strict=True)

    format: int
    folder: Annotated[str, AfterValidator(plain)]
    files: dict[Annotated[str, AfterValidator(plain)], list[_File]]
    made_of: dict[str, Any]


def seal(index: Mapping[str, Any]) -> bytes:
    """An index as a line with the SHA-256 of its text, and the text."""
    text = json.dumps(index).encode()
    return sha256(text).hexdigest().encode() + b"\n" + text


def opened(content: bytes) -> Index:
    """The index, of any format. Raises ValueError if its text is not what was written."""
    own, _, text = content.partition(b"\n")
    if sha256(text).hexdigest().encode() != own:
        raise ValueError("it was cut off or changed")
    index = json.loads(text)
    if not isinstance(index, dict):
        raise ValueError("it is no JSON object")
    return index


def checked(index: Index) -> Index:
    """The index of the present format. Raises ValueError if it lacks something, or names what is no file of it."""
    try:
        return _Index.model_validate(index).model_dump()
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
