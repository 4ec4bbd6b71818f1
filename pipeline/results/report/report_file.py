"""The report of a finished run: where it is, and how to make it again.

A report lies beside the log, in OUT on a disk or in the run's folder in an object store. It is no part of the result:
the manifest does not list it, and a result without a report is complete.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from ....tasks.errors import NO_SPACE, OutOfRoom, UsageError
from ....tasks.storage.atomic import atomic_file
from ....tasks.storage.folders import Folder
from ...monitor.events import Events
from ...nightly.night import previous_result
from ...output.manifest import Manifest
from ...output.new_path import new_file
from ...output.staging import REPORT_NAME, RUN
from ..result import Result


def write_report(
    out: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, overwrite: bool = False
) -> str:
    """Make the report of the finished run at `out`, a folder or URL, and return its path or URL.

    Without `output` the report replaces the one of the run. With it, the report becomes the file `output`, which
    `overwrite` replaces if it exists.

    Raises UsageError if `out` has no result, if the file cannot be written, exists without `overwrite`, or would lie in
    the result; InputError for damage, or if another run replaces the result; OutOfRoom or OSError for a full disk.
    """
    result = Result(out)
    if output is not None:
        with new_file(output, overwrite, [result.place]) as file:
            file.write(_page(result))
        return str(output)
    content = _page(result)
    name = _name_in(result.place, result.manifest)
    if result.place.is_local:
        _replace(result.path / name, content)
    else:
        result.place.write(name, content)
    return f"{result.place}/{name}"


def report_of(result: Result) -> str | None:
    """The path or URL of a result's report; None if it has none. Raises StoreLost, or UsageError for a store."""
    name = _name_in(result.place, result.manifest)
    return None if result.place.sizes([name]) == [None] else f"{result.place.absolute}/{name}"


def _page(result: Result) -> bytes:
    from .changes import compare_nights
    from .page import page

    with result.reading():
        since = compare_nights(result, partial(previous_result, result), Events())
        return page(result, result.place.absolute, since)


def _name_in(folder: Folder, manifest: Manifest) -> str:
    """The report's path relative to the result."""
    return REPORT_NAME if folder.is_local else f"{RUN}{manifest.run}/{REPORT_NAME}"


def _replace(path: Path, content: bytes) -> None:
    """Write a file beside `path`, then rename it, so that readers see a whole file. Raises UsageError, OutOfRoom."""
    try:
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError(None, "it is a folder")
        with atomic_file(path) as file:
            file.write(content)
    except OSError as error:
        kind = OutOfRoom if error.errno in NO_SPACE else UsageError
        raise kind(f"cannot write the report {path}: {error.strerror}; --output names another file") from error
