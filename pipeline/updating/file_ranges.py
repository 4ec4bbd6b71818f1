"""Which files of a table an update takes over from the result before it, and how it cuts the others.

Files keep their ranges of ids from night to night: a file is cut only when it has grown large. So a change in one range
leaves the files of all others as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from ..output.manifest import Manifest, OutputRecord
from .reading import chunks

FILE_ROWS = 2**18
"""Rows of a file that is cut from a larger one. More than twice as many are cut, so that later nights rewrite less."""


@dataclass(frozen=True)
class FileRange:
    """A file of the new table."""

    number: int
    rows: slice
    """Its rows of the table."""
    kept: OutputRecord | None
    """The file of the earlier result that has these rows; None if the file must be written."""


def files_of(manifest: Manifest, table: str) -> list[OutputRecord]:
    """The files of a table, in the order of its rows."""
    found = (output for output in manifest.outputs if PurePosixPath(output.path).parent.name == table)
    return sorted(found, key=lambda output: output.path)


def file_ranges(
    files: Sequence[OutputRecord], starts: NDArray[np.int64], rows: int, touched: NDArray[np.bool_] | None
) -> list[FileRange]:
    """The files of the new table of `rows` rows.

    `starts` [files] are the new rows at which the range of each old file starts; there may be no file. `touched` [rows]
    says which new rows differ from their old ones, and None that no file can be taken over.
    """
    found: list[FileRange] = []
    old: Sequence[OutputRecord | None] = files or [None]
    firsts = [0, *starts[1:].tolist()]
    for kept, start, stop in zip(old, firsts, [*firsts[1:], rows], strict=True):
        size = stop - start
        if kept and touched is not None and size == kept.rows and not touched[start:stop].any():
            found.append(FileRange(len(found), slice(start, stop), kept))
            continue
        for part in chunks(size, FILE_ROWS) if size > 2 * FILE_ROWS else [slice(0, size)] * bool(size):
            found.append(FileRange(len(found), slice(start + part.start, start + part.stop), None))
    return found or [FileRange(0, slice(0, rows), None)]
