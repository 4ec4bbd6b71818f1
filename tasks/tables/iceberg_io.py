"""pyiceberg's access to files: only through the file system of the input."""

from __future__ import annotations

import re
from typing import Any

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.fsspec import FsspecInputFile

from ..errors import InputError

_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]*):/")


class TableIO(FileIO):
    """Read-only access through fsspec, with the storage options of the input."""

    def __init__(self, filesystem: Any, location: str) -> None:
        super().__init__({})
        self._filesystem = filesystem
        self._location = location

    def own(self, path: str) -> str:
        """Return a path of the table's metadata. Raises InputError if its file system is not that of the table."""
        known = self._filesystem.protocol
        scheme = _SCHEME.match(path)
        if (scheme[1] if scheme else "file") not in ((known,) if isinstance(known, str) else known):
            raise InputError(
                f"the Iceberg table {self._location} refers to files in another file system, such as {path}: "
                "its metadata has absolute paths, so read it where it was written, and by the same kind of URL"
            )
        return path

    def new_input(self, location: str) -> InputFile:
        """A file of the table, for reading."""
        return FsspecInputFile(self.own(location), self._filesystem)

    def new_output(self, location: str) -> OutputFile:
        """Raises PermissionError."""
        raise PermissionError(f"{location} is an input, which is never written")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Raises PermissionError."""
        raise PermissionError(f"{location} is an input, which is never removed")
