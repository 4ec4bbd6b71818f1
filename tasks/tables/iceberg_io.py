"""Files of an Iceberg table as pyiceberg reads them: through the file system of the input, and of no other."""

from __future__ import annotations

import re
from typing import Any

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.fsspec import FsspecInputFile

from ..errors import InputError

__all__ = ["TableIO"]

_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]*):/")


class TableIO(FileIO):
    """Reads by fsspec with the storage options of the input, and writes nothing."""

    def __init__(self, filesystem: Any, location: str) -> None:
        super().__init__({})
        self._filesystem = filesystem
        self._location = location

    def own(self, path: str) -> str:
        """A path of the table's metadata. Raises InputError if it is of another file system than the table."""
        known = self._filesystem.protocol
        scheme = _SCHEME.match(path)
        if (scheme[1] if scheme else "file") not in ((known,) if isinstance(known, str) else known):
            raise InputError(
                f"the Iceberg table {self._location} names files elsewhere, such as {path}: its metadata holds whole "
                "paths, so read a copied table where it was written, and name it by the same kind of URL"
            )
        return path

    def new_input(self, location: str) -> InputFile:
        """A file of the table, to read."""
        return FsspecInputFile(self.own(location), self._filesystem)

    def new_output(self, location: str) -> OutputFile:
        """Raises PermissionError."""
        raise PermissionError(f"{location} is of an input: it is not written")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Raises PermissionError."""
        raise PermissionError(f"{location} is of an input: it is not removed")
