"""A version of a table: its live files, and how its columns are found in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from ..errors import InputError
from . import table_title

Format = Literal["delta", "iceberg"]

_FIELD_ID = b"PARQUET:field_id"


def path_of(filesystem: Any, name: str) -> str:
    """The absolute path or URL of `name`, a path in an fsspec file system."""
    return name if isinstance(filesystem, LocalFileSystem) else str(filesystem.unstrip_protocol(name))


@dataclass(frozen=True)
class TableVersion:
    """A table at one version. Picklable."""

    format: Format

    location: str
    """Its folder: an absolute path or a URL, without passwords."""

    version: int
    """Version of a Delta table, snapshot id of an Iceberg table."""

    @property
    def kind(self) -> str:
        """Format and version, without the location."""
        return table_title(self.format, self.version)

    def __str__(self) -> str:
        return f"{self.location} ({self.kind})"


@dataclass(frozen=True)
class ColumnInFiles:
    """One column of a table."""

    in_files: bool = True
    """False if its values are only in the paths of the files."""

    field_id: int | None = None
    """Iceberg's id of the column in each file, where it may have another name; None in a Delta table."""

    other_names: frozenset[str] = frozenset()
    """Names of the column in files without field ids."""


@dataclass(frozen=True)
class LiveFiles:
    """The files with the rows of a table."""

    table: TableVersion

    paths: tuple[str, ...]
    """Absolute paths or URLs, sorted; at least one."""

    columns: Mapping[str, ColumnInFiles]
    """The columns of the table by name, in order."""

    def refuse_columns(self, names: Sequence[str]) -> None:
        """Raises InputError for a column that the table lacks, or whose values are not in its files."""
        for name in names:
            if name not in self.columns:
                known = ", ".join(map(repr, self.columns))
                raise InputError(f"{self.table} has no column {name!r}; it has {known}")
            if not self.columns[name].in_files:
                raise InputError(
                    f"{self.table}: column {name!r} is a partition column, whose values are in the paths of the files "
                    "and not in the files: write the table again, partitioned by another column or by none"
                )

    def refuse_file(self, path: str, schema: pa.Schema, names: Sequence[str]) -> None:
        """Raises InputError if a column of this name in a live file is not the column of the table."""
        for name in names:
            column = self.columns[name]
            if column.field_id is None:
                continue
            ids = {field.name: _field_id(field) for field in schema}
            if set(ids.values()) <= {None}:  # a file that another program wrote, added to the table
                same = name in ids and name in column.other_names
            else:
                same = ids.get(name) == column.field_id
            if not same:
                raise InputError(
                    f"{self.table}: {path} does not have column {name!r} under this name: it was added, renamed or "
                    "dropped since the file was written; rewrite the files of the table (rewrite_data_files)"
                )

    @contextmanager
    def all_there(self) -> Iterator[None]:
        """Context in which an InputError about a missing file says that the table refers to it."""
        try:
            yield
        except InputError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            raise InputError(
                f"{self.table} has a live file that does not exist: {error.__cause__}; if it was removed as old "
                "(VACUUM, expire_snapshots), read a later version"
            ) from error


def _field_id(field: pa.Field) -> int | None:
    written = (field.metadata or {}).get(_FIELD_ID)
    return None if written is None else int(written)
