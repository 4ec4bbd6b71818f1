"""Settings of operation: nightly series and monitoring."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_serializer, field_validator

from ...tasks.storage.passwords import without_passwords
from .dates import parse_day
from .section import Section, output_location


class NightlySettings(Section):
    """A series of runs, one per day, with `{date}` in their paths."""

    date: str | None = None
    """Day that replaces `{date}` in paths: `2026-11-20`, `today`, `yesterday`, `25 hours ago`, in UTC; null: today."""
    keep: int | None = Field(None, ge=1)
    """Results to keep; a successful run removes older ones; null keeps all."""
    latest: bool = True
    """Keep a pointer to the newest converged result, at `output.path` with `latest` as the date."""
    compare: bool = True
    """Report the changes since the previous night. Costs as much time as `edgemill diff`."""
    incremental: Literal["auto", "always", "never"] = "never"
    """Start from an earlier result: where it is less work (`auto`), whatever it costs, or not (docs/update.md)."""
    previous: str | None = Field(None, min_length=1)
    """Result to start from, of the same columns; null: the newest earlier night, unless `incremental` is `never`."""
    least_share: float | None = Field(0.5, gt=0, le=1)
    """Least share of the last night's edges; fewer, or ids of another type, end with exit code 3; null: any."""
    full_every: int = Field(30, ge=1)
    """With `incremental: auto`, find λ of all edges from nothing after this many nights."""
    state: str | None = Field(None, min_length=1)
    """Folder or URL for what the next night starts from, ≤ 20 bytes an edge; null: the folder `state` of the result."""
    series: str | None = None
    """`output.path` with `{date}` unreplaced, which locates other nights' results. Filled in automatically."""

    @property
    def may_start_from_earlier(self) -> bool:
        """Whether a run with these settings looks for an earlier result to start from."""
        return self.previous is not None or self.incremental != "never"

    @field_validator("date")
    @classmethod
    def _check_date(cls, day: str | None) -> str | None:
        return None if day is None else parse_day(day)

    @field_validator("previous", "state")
    @classmethod
    def _check_path(cls, path: str | None) -> str | None:
        return None if path is None else output_location(path)

    @field_serializer("series", "previous", "state")
    def _without_password(self, path: str | None) -> str | None:
        return None if path is None else without_passwords(path)


class MonitoringSettings(Section):
    """Metrics and performance reports."""

    metrics_port: int | None = Field(None, ge=0, le=65535)
    """Port that serves metrics to Prometheus, see docs/monitoring.md; 0 takes a free port; null serves none."""
    metrics_host: str = Field("127.0.0.1", min_length=1)
    """Address that `metrics_port` binds to. It has no password: bind to another only in a trusted network."""
    textfile: str | None = Field(None, min_length=1)
    """Local `*.prom` file for node_exporter's textfile collector: exit code and times of the last run; null: none."""
    performance_report: str | None = Field(None, min_length=1)
    """Local HTML file for Dask's performance report; an existing HTML file is replaced; null: none."""

    @field_validator("performance_report", "textfile")
    @classmethod
    def _check_local(cls, file: str | None) -> str | None:
        if file is not None and "://" in file:
            raise ValueError("must be a file on a disk of this machine, not a URL")
        return file

    @field_validator("textfile")
    @classmethod
    def _check_suffix(cls, file: str | None) -> str | None:
        if file is not None and not file.endswith(".prom"):
            raise ValueError("must end in .prom: node_exporter reads no other files")
        return file
