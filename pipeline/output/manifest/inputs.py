"""Records of the manifest that describe the input."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....tasks.tables.titles import table_title
from .records import Record


class InputFile(Record):
    """One input file."""

    path: str
    bytes: int
    rows: int | None
    """Null except for Parquet: other formats do not tell how many rows they have before they are read."""
    sha256: str | None = None
    """Digest of the file; null unless it is on a disk and the next night may start from the result."""


class TableRecord(Record):
    """The table that was read."""

    format: Literal["delta", "iceberg"]
    location: str
    """Its folder: an absolute path, or a URL."""
    version: int
    """Version of a Delta table, snapshot id of an Iceberg table."""

    def __str__(self) -> str:
        return table_title(self.format, self.version)


class LayoutRecord(Record):
    """How files that are not Parquet were read."""

    format: str
    delimiter: str
    """Of CSV and TSV."""
    header: bool
    """Whether their first line has the names of the columns."""
    comment: str
    """Prefix of lines that are comments; empty if there are no comments."""
    strip: bool = False
    """Whether blanks around fields were removed."""
    types: list[tuple[str, str]]
    """Text columns that were read, and their Arrow types."""


class WhereRecord(Record):
    """The condition that selected rows."""

    condition: str
    types: dict[str, str]
    """Arrow types of the columns in the condition."""
    files_left_out: int
    """Files that were not read, since their paths exclude a match; `counts.filtered` counts rows of the other files."""


class VerticesRecord(Record):
    """The attributes of vertices that were read; rows = unknown + vertices of the graph - missing."""

    files: list[InputFile]
    id_column: str
    columns: list[str]
    """The attributes, as the columns of the table `attributes` after its `id`."""
    label: str | None
    """The attribute that is shown beside the id of a vertex; null if there is none."""
    rows: int
    unknown: int
    """Rows whose id is no vertex of the graph."""
    missing: int
    """Vertices of the graph without a row."""
    table: TableRecord | None = None
    """The Delta or Iceberg table that has these files; null for other files."""


BATCH = "edgemill.update"
"""Kind of the input of `edgemill update`: an earlier result and a batch of changes."""


class FrameRecord(Record):
    """The frame or graph that was passed to `mine` in Python, or a batch of changes to an earlier result."""

    kind: str
    """Package and class, as `pandas.DataFrame`."""
    rows: int
    """Its rows, or its edges."""
    sha256: str
    """Digest of its id columns in a temporary Parquet file; of a Dask DataFrame, of digests of its partitions."""

    def __str__(self) -> str:
        return f"{self.kind} of {self.rows:,} rows"

    @property
    def origin(self) -> str:
        """What was read, in words."""
        return "earlier result and a batch of changes" if self.kind == BATCH else f"{self}, from Python"


class WeightRecord(Record):
    """The weights of edges."""

    column: str
    repeats: Literal["error", "sum", "min", "max"]
    """How the weights of repeated rows were combined, as the setting says."""


class InputRecord(Record):
    """What was read."""

    files: list[InputFile]
    id_type: str
    """Arrow type of the ids, in the input and in the result; `uuid` is the UUID type of Arrow and Parquet."""
    source_column: str
    target_column: str
    fingerprint: str | None = None
    """Changes with the input; null if the storage does not tell whether files have changed."""
    table: TableRecord | None = None
    """The Delta or Iceberg table that has these files; null for other files."""
    format: str = "parquet"
    """Of the files, as `input.format` names it."""
    layout: LayoutRecord | None = None
    """Null for Parquet."""
    where: WhereRecord | None = None
    """Null if all rows were selected."""
    bipartite: Literal["prefix", "refuse"] | None = None
    """How ids that are in both columns were treated, as the setting says."""
    directed: bool = False
    """Whether edges lead from the source column to the target column, for programs."""
    weights: WeightRecord | None = None
    """Null if edges have no weights."""
    isolated: bool = False
    """Whether ids of `vertices` without edges are vertices of the graph."""
    notes: list[str] = Field(default_factory=list)
    """What was guessed, in sentences."""
    frame: FrameRecord | None = None
    """The frame or graph that was read in place of files; null for files."""
    vertices: VerticesRecord | None = None
    """Attributes of vertices; null if the run had none."""
