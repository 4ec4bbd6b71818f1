"""Settings of what a run writes: its result and its checkpoints."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_serializer, field_validator, model_validator

from ...tasks.storage.passwords import without_passwords
from .section import Section, output_location


class OutputSettings(Section):
    """The result."""

    path: str = Field(min_length=1)
    """Folder of the result, local or shared, or an fsspec URL in an object store. It must not exist."""
    overwrite: bool = False
    """Replace an existing result once the new one is complete."""
    format: Literal["parquet", "delta"] = "parquet"
    """`delta` also publishes the newest result as Delta tables at a fixed path."""
    delta_path: str | None = Field(None, min_length=1)
    """Folder or fsspec URL of the Delta tables; null: `output.path` with date `current`, or with `.delta` added."""
    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd"
    """Compression of the Parquet files."""
    row_group_rows: int = Field(1_000_000, ge=1)
    """Most rows of a Parquet row group."""
    report: bool = True
    """Write `report.html`, a summary of the result on one page; `edgemill report` writes it later."""
    single_writer: bool = False
    """Assert that no other run writes to this path; permits an object store that cannot lock it."""
    storage_options: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """fsspec options such as credentials; never printed, never written to the result."""

    @field_validator("path", "delta_path")
    @classmethod
    def _check_path(cls, path: str | None) -> str | None:
        return None if path is None else output_location(path)

    @field_serializer("path", "delta_path")
    def _without_password(self, path: str | None) -> str | None:
        return None if path is None else without_passwords(path)

    @model_validator(mode="after")
    def _check_delta_path(self) -> Self:
        if self.delta_path is not None and self.format != "delta":
            raise ValueError("output.delta_path is the location of Delta tables: it needs output.format delta")
        return self


class CheckpointSettings(Section):
    """What a run saves, so that the next run with the same output can resume it."""

    path: str | None = None
    """Folder or fsspec URL that all workers can reach; null: a hidden folder beside the output."""
    every_seconds: float | None = Field(300, ge=0)
    """Seconds between checkpoints, or more: all take a tenth of the time at most; 0: at each chance; null: none."""
    every_exchanges: int | None = Field(None, ge=1)
    """Iterations of `band` or `fixpoint` between checkpoints, beside `every_seconds`, whatever they take."""
    fresh: bool = False
    """Ignore checkpoints of an earlier run; with `output.overwrite` also recompute a result that is up to date."""
    storage_options: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """fsspec options; never printed, never written to the result."""

    @field_validator("path")
    @classmethod
    def _check_path(cls, path: str | None) -> str | None:
        return None if path is None else output_location(path)

    @field_serializer("path")
    def _without_password(self, path: str | None) -> str | None:
        return None if path is None else without_passwords(path)
