"""Reading and writing of manifest.json."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ....tasks.errors import InputError, UsageError
from ....tasks.storage.atomic import write_new
from ....tasks.storage.checksums import is_intact, json_object, with_checksum_key
from ....tasks.storage.folders import Folder, folder_at
from ....tasks.storage.own_files import NOT_A_FILE
from ...messages.escaping import in_json
from .model import FORMAT_VERSION, Manifest

MANIFEST_NAME = "manifest.json"
_MOST_TRACKS = 2**62
"""A manifest with more tracks is damaged; each has a number of 64 bits."""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json, with its own checksum, into `folder`, and flush it to the disk (fsync). Raises OSError."""
    write_new(folder / MANIFEST_NAME, with_checksum_key(in_json(manifest.model_dump_json(by_alias=True, indent=1))))


def read_manifest(out: Folder | str | os.PathLike[str]) -> Manifest:
    """The manifest of the result in the folder `out`.

    Raises UsageError if there is no such folder, InputError if it is not a result or its manifest is damaged.
    """
    folder = folder_at(out)
    path = f"{folder}/{MANIFEST_NAME}"
    try:
        text = folder.read(MANIFEST_NAME)
    except OSError as error:
        if error.errno in NOT_A_FILE:
            raise InputError(f"{path} is damaged: it is a link, a pipe or a device, and not a file") from error
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    content = _parse(text)
    if content is None:
        if not (os.path.exists(folder.url) if folder.is_local else folder.names()):
            raise UsageError(f"there is no result at {folder}: no such folder")
        raise InputError(f"{folder} is not an edgemill result: it has no {MANIFEST_NAME} written by edgemill")
    if not is_intact(text or b""):
        raise InputError(f"{path} is damaged: it is not what edgemill wrote")
    if content.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {content.get('format_version')}; this edgemill reads {FORMAT_VERSION}"
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        raise InputError(f"{path} is damaged: {key}: {problem['msg']}") from error


def is_result(folder: Folder | str | os.PathLike[str]) -> bool:
    """Whether `folder` has a manifest of edgemill, of any format version."""
    try:
        return _parse(folder_at(folder).read(MANIFEST_NAME)) is not None
    except OSError:
        return False


def is_exact(folder: Folder) -> bool:
    """Whether `folder` has a manifest of edgemill, of any format version, of a run that no limit ended.

    Raises UsageError if it cannot be read.
    """
    return _any_version(folder).get("converged") is True


def run_of(folder: Folder) -> str | None:
    """The id of the run that made the result in `folder`, of any format version; None if there is no result.

    Raises UsageError if the manifest cannot be read, StoreLost if a store does not answer.
    """
    run = _any_version(folder).get("run")
    return run if isinstance(run, str) else None


def next_track(folder: Folder) -> int:
    """A number above all tracks of the result in `folder` and of earlier results of its series; 1 if it has no tracks.

    Raises UsageError if the manifest cannot be read, StoreLost if a store does not answer.
    """
    tracks = _any_version(folder).get("tracks")
    number = tracks.get("next") if isinstance(tracks, dict) else None
    return number if isinstance(number, int) and 0 < number < _MOST_TRACKS else 1


def folders_in_use(folder: Folder) -> set[str] | None:
    """Names of the folders in `folder` with files that a manifest of any format version lists; None if it cannot tell.

    Raises UsageError if the manifest cannot be read, StoreLost if a store does not answer.
    """
    content = _any_version(folder)
    outputs = content.get("outputs", [])
    if not isinstance(outputs, list):
        return None
    paths = [output.get("path") if isinstance(output, dict) else None for output in outputs]
    return {path.partition("/")[0] for path in paths if isinstance(path, str)} if all(paths) else None


def _any_version(folder: Folder) -> dict[str, Any]:
    """The keys of a manifest of any format version; empty if there is no manifest. Raises UsageError, StoreLost."""
    try:
        return _parse(folder.read(MANIFEST_NAME)) or {}
    except OSError as error:
        raise UsageError(f"cannot read {folder}/{MANIFEST_NAME}: {error.strerror or error}") from error


def _parse(text: bytes | None) -> dict[str, Any] | None:
    try:
        content = json_object(text or b"")
    except ValueError:
        return None
    return content if content.get("format") == "edgemill-result" else None
