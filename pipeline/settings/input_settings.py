"""Settings of the input: which edges and vertex attributes are read, and how."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_serializer, field_validator, model_validator

from ...tasks.errors import UsageError
from ...tasks.inputs.formats.form import Form, Weights
from ...tasks.inputs.formats.formats import format_names
from ...tasks.storage.own_files import plain_name
from ...tasks.storage.passwords import without_passwords
from ...tasks.where.condition import parse_where
from .section import Section, input_location


class InputSettings(Section):
    """The edges, and attributes of their vertices."""

    path: str = Field(min_length=1)
    """Edges: a file, a folder, a glob, a table (see docs/tables.md) or an fsspec URL of one of these."""
    format: str = "auto"
    """Format of the files, by its name in docs/inputs.md. `auto` infers it from their names and first bytes."""
    where: str | None = Field(None, min_length=1)
    """SQL condition that selects rows, such as `weight > 0.5`, see docs/inputs.md; null reads all rows."""
    table_version: int | None = Field(None, ge=0)
    """Version of a Delta table, or snapshot id of an Iceberg table; null reads the current one."""
    source_column: str | None = None
    """Column of the first endpoint; null finds it by its name, see docs/inputs.md."""
    target_column: str | None = None
    """Column of the second endpoint; null finds it by its name, see docs/inputs.md."""
    bipartite: Literal["prefix", "refuse"] | None = None
    """For ids of two kinds: `prefix` puts the column name before each id; `refuse` fails if an id is in both."""
    directed: bool = False
    """Edges point from source to target. Vertex programs use the direction (docs/programs.md); λ does not."""
    weight_column: str | None = Field(None, min_length=1)
    """Column of numbers that weigh the edges, read as float64, for programs; null: no weights, see docs/inputs.md."""
    repeats: Literal["error", "sum", "min", "max"] = "error"
    """Weight of an edge with several rows: their `sum`, `min` or `max`; `error` ends the run with exit code 3."""
    id_type: Literal["auto", "int64", "uint64", "string"] = "auto"
    """Type of ids in CSV, TSV and JSON lines. `auto`: integers if all ids are written as integers, else text."""
    header: bool | None = None
    """Whether CSV and TSV files start with a line of column names; null detects it."""
    delimiter: str | None = None
    """Field separator of CSV and TSV: one character, `tab` or `space`; null detects it."""
    comment: str | None = None
    """Skip CSV and TSV lines that start with this text; "" skips none; null takes `#` or `%` if a file starts so."""
    strip: bool = False
    """Remove blanks around the fields of CSV and TSV, so that ` 7` is 7."""
    nulls: Literal["refuse", "drop"] = "refuse"
    """Rows with a null id: `refuse` ends the run; `drop` skips and counts them."""
    complete_marker: str | None = None
    """File in the input folder that marks it complete, such as `_SUCCESS`; without it the run ends with exit code 8."""
    least_rows: int | None = Field(None, ge=1)
    """Fewest rows of a complete input, duplicates included; fewer end the run with exit code 8; null: no minimum."""
    vertices: str | None = Field(None, min_length=1)
    """Vertex attributes, one row per vertex, in Parquet: a file, a folder, a glob, a table or a URL."""
    isolated: bool = False
    """Ids of `input.vertices` without edges are vertices of the graph, too, with degree 0."""
    vertex_id: str | None = None
    """Id column of `input.vertices`; null finds it by its name, see docs/asking.md."""
    vertex_columns: tuple[str, ...] | None = None
    """Columns of `input.vertices` to publish; null publishes all."""
    vertex_label: str | None = None
    """Column of `input.vertices` to show beside ids; null takes `label`, `name` or the only text column."""
    storage_options: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """fsspec options such as credentials; never printed, never written to the result."""

    @property
    def form(self) -> Form:
        """How the files are parsed and which rows are selected."""
        return Form(
            self.format,
            self.header,
            {"tab": "\t", "space": " "}.get(self.delimiter or "", self.delimiter),
            self.comment,
            self.strip,
            self.id_type,
            self.where,
            self.bipartite,
            directed=self.directed,
            weights=self.weights,
        )

    @property
    def weights(self) -> Weights | None:
        """The weights of edges; None if edges have none."""
        return None if self.weight_column is None else Weights(self.weight_column, self.repeats)

    @field_serializer("path", "vertices")
    def _without_password(self, path: str | None) -> str | None:
        return None if path is None else without_passwords(path)

    @field_validator("path", "vertices")
    @classmethod
    def _check_path(cls, path: str | None) -> str | None:
        return None if path is None else input_location(path)

    @field_validator("vertex_columns", mode="before")
    @classmethod
    def _split_columns(cls, names: object) -> object:
        if isinstance(names, str):
            return tuple(name.strip() for name in names.split(","))
        return tuple(names) if isinstance(names, list) else names

    @field_validator("vertex_columns")
    @classmethod
    def _check_columns(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names is not None and (not names or len(set(names)) < len(names) or "" in names):
            raise ValueError("must name one or more columns, each once, such as name,city")
        return names

    @field_validator("format")
    @classmethod
    def _check_format(cls, name: str) -> str:
        known = ("auto", *format_names())
        if name not in known:
            raise ValueError(f"must be {', '.join(known[:-1])} or {known[-1]}")
        return name

    @field_validator("delimiter")
    @classmethod
    def _check_delimiter(cls, delimiter: str | None) -> str | None:
        if delimiter is None or delimiter in ("tab", "space"):
            return delimiter
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n"' or delimiter.isalnum():
            raise ValueError("must be one character, such as ; or |, or tab or space")
        return delimiter

    @field_validator("comment")
    @classmethod
    def _check_comment(cls, comment: str | None) -> str | None:
        if comment is not None and ("\n" in comment or "\r" in comment):
            raise ValueError("must not contain a line break")
        return comment

    @field_validator("where")
    @classmethod
    def _check_condition(cls, where: str | None) -> str | None:
        try:
            _ = where if where is None else parse_where(where)
        except UsageError as error:
            raise ValueError(str(error).removeprefix("input.where: ")) from error
        return where

    @field_validator("complete_marker")
    @classmethod
    def _check_marker(cls, marker: str | None) -> str | None:
        try:
            return marker if marker is None else plain_name(marker)
        except ValueError as error:
            raise ValueError("must be the name of a file in the input folder") from error

    @model_validator(mode="after")
    def _check_endpoint_columns(self) -> Self:
        if (self.source_column is None) != (self.target_column is None):
            raise ValueError("input.source_column and input.target_column must be set together: set both or neither")
        if self.source_column is not None and self.source_column == self.target_column:
            raise ValueError(f"input.source_column and input.target_column are the same column, {self.source_column!r}")
        if self.weight_column is None and self.repeats != "error":
            raise ValueError("input.repeats applies to weights: name their column with --weight-column")
        return self

    @model_validator(mode="after")
    def _check_attributes(self) -> Self:
        if self.vertices is None:
            for name in ("vertex_id", "vertex_columns", "vertex_label", "isolated"):
                if getattr(self, name) not in (None, False):
                    raise ValueError(f"input.{name} applies to vertex attributes: name their file with --vertices")
        return self


BLOCK_ROWS = 2_000_000
"""Most rows of a block, unless `rows_per_block` gives another number."""


class IngestSettings(Section):
    """How the input is read."""

    rows_per_block: int | None = Field(None, ge=1)
    """Most rows that one task reads. By default 2,000,000, with GPUs of several workers 8,000,000."""
    sample_rows: int = Field(20_000_000, ge=1)
    """Most rows that planning reads before the run; figures of a larger input are estimates."""
