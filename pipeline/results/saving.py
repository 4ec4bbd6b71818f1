"""Copy a result, and publish the copy as a run publishes its result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from ...tasks.errors import NO_SPACE, OutOfRoom
from ...tasks.storage.folders import Folder
from ...tasks.storage.own_files import open_own
from ..output.manifest import Manifest, write_manifest
from ..output.staging import LOG_NAME, staging_for
from ..settings.models import InputSettings, OutputSettings, Settings


def save(
    place: Folder,
    manifest: Manifest,
    path: str | os.PathLike[str],
    overwrite: bool,
    options: Mapping[str, Any] | None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Copy the result at `place` to `path`, without its report, which contains its path.

    `check` runs just before the copy is published; if it raises, nothing is.

    Raises UsageError if `path` exists and `overwrite` is false, or if it cannot be written; OutOfRoom for a full disk.
    """
    output = OutputSettings(path=os.fspath(path), overwrite=overwrite, storage_options=dict(options or {}))
    where = Settings(input=InputSettings(path=str(place)), output=output)
    with staging_for(where, manifest.run) as staging:
        staging.refuse_existing()
        outputs = []
        try:
            for one in manifest.outputs:
                name = "/".join(
                    PurePosixPath(one.path).parts[-2:]
                )  # in an object store, the folder of the run comes first
                _copy(place, one.path, staging.tables, name)
                outputs.append(one.model_copy(update={"path": staging.prefix + name}))
            folder = PurePosixPath(manifest.outputs[0].path).parents[1] if manifest.outputs else PurePosixPath()
            with open(open_own(staging.scratch / LOG_NAME, os.O_WRONLY | os.O_CREAT, own=2), "wb") as log:
                log.write(place.read(str(folder / LOG_NAME)) or b"")
            sections = manifest.settings | {"output": manifest.settings.get("output", {}) | {"path": where.output.path}}
            write_manifest(staging.scratch, manifest.model_copy(update={"outputs": outputs, "settings": sections}))
            check()
            staging.commit()
        except OSError as error:
            if error.errno in NO_SPACE:
                raise OutOfRoom(f"no space left for {path}") from error
            raise


def _copy(source: Folder, name: str, target: Folder, as_name: str) -> None:
    path = target.path(as_name)
    with source.store_errors("read", name), target.store_errors("write", as_name):
        target.files.makedirs(path.rpartition("/")[0], exist_ok=True)
        with source.files.open(source.path(name), "rb") as read, target.files.open(path, "wb") as written:
            shutil.copyfileobj(read, written, 1 << 22)
