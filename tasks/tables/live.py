"""What a table is at one version: its files, and where its columns are in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from ..errors import InputError
from .titles import table_title

Format = Literal["delta", "iceberg"]

_FIELD_ID = b"PARQUET:field_id"


def path_of(filesystem: Any, name: str) -> str:
    """An absolute path, or a URL, of what an fsspec file system knows as `name`."""
    return name if isinstance(filesystem, LocalFileSystem) else str(filesystem.unstrip_protocol(name))


@dataclass(frozen=True)
class Table:
    """A table at one version. Picklable."""

    format: Format

    location: str
    """Its folder, as an absolute path or a URL, without passwords."""

    version: int
    """Version of a Delta table, snapshot id of an Iceberg table."""

    @property
    def kind(self) -> str:
        """What it is, without its location."""
        return table_title(self.format, self.version)

    def __str__(self) -> str:
        return f"{self.location} ({self.kind})"


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    in_files: bool = True
    """False where only the paths of the files say its values."""

    field_id: int | None = None
    """What Iceberg knows it by in each file, whatever its name there; None in a Delta table."""

    other_names: frozenset[str] = frozenset()
    """Names by which it is known in files without field ids."""


@dataclass(frozen=True)
class LiveFiles:
    """The files that hold the rows of a table."""

    table: Table

    paths: tuple[str, ...]
    """Absolute paths, or URLs, sorted; one at least."""

    columns: Mapping[str, Column]
    """The columns of the table by name, in order."""

    def refuse_columns(self, names: Sequence[str]) -> None:
        """Raises InputError for a column that the table lacks, or whose values are in none of its files."""
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
        """Raises InputError for a live file in which a column of that name is not the column of the table."""
        for name in names:
            column = self.columns[name]
            if column.field_id is None:
                continue
            held = {field.name: _field_id(field) for field in schema}
            if all(found is None for found in held.values()):  # a file that was added to the table as it was
                same = name in held and name in column.other_names
            else:
                same = held.get(name) == column.field_id
            if not same:
                raise InputError(
                    f"{self.table}: {path} does not hold column {name!r} by this name: it was added, renamed or "
                    "dropped since the file was written; rewrite the files of the table (rewrite_data_files)"
                )

    @contextmanager
    def all_there(self) -> Iterator[None]:
        """Within it, an InputError about a file that does not exist says that the table names it."""
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
    found = (field.metadata or {}).get(_FIELD_ID)
    return None if found is None else int(found)
