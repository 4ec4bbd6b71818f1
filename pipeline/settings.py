"""The settings of a run as frozen models: units in the names, an unknown key is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    field_serializer,
    field_validator,
    model_validator,
)

from ..tasks.errors import UsageError
from ..tasks.inputs.form import Form
from ..tasks.locations import normal, tidied
from ..tasks.own_files import plain
from ..tasks.passwords import without_passwords
from ..tasks.where.condition import parse_where
from .dates import day_of, filled_in, has_date
from .programs.catalogue import CATALOGUE, LAMBDA

__all__ = [
    "MAX_PARTITIONS",
    "SECTIONS",
    "BoundingSettings",
    "CheckpointSettings",
    "ClusterSettings",
    "IngestSettings",
    "InputSettings",
    "LabelsSettings",
    "MonitoringSettings",
    "NightlySettings",
    "OutputSettings",
    "PagerankSettings",
    "PartitioningSettings",
    "ProgramsSettings",
    "Settings",
]

MAX_PARTITIONS = 4096
"""Of a run."""


def _partition_count(value: object) -> int | str:
    if value == "auto" or (type(value) is int and 1 <= value <= MAX_PARTITIONS):
        return value
    raise ValueError(f"must be auto or a whole number from 1 to {MAX_PARTITIONS}")


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


def _location(path: str) -> str:
    """The same, as it is told. Raises ValueError for what is no location."""
    _check_location(path)
    return tidied(path)


def _check_location(path: str) -> None:
    try:
        normal(path)
    except UsageError as error:
        raise ValueError(str(error)) from error


def _own_location(path: str) -> str:
    """As `_location`, of what is written."""
    if "::" in path:
        raise ValueError("goes through a cache or an archive, where nothing is written: name what is behind it")
    _check_location(path)
    return path  # as it was given: results of other nights are found by it


class InputSettings(_Section):
    """Where the edges are."""

    path: str = Field(min_length=1)
    """Edges: a file, a folder, a glob, a table (see docs/tables.md) or an fsspec URL of one of these."""
    format: Literal["auto", "parquet", "csv", "tsv", "jsonl", "arrow"] = "auto"
    """`parquet`, `csv`, `tsv`, `jsonl`, `arrow`, or `auto`: as the names of the files say, see docs/inputs.md."""
    where: str | None = Field(None, min_length=1)
    """Condition of the rows that are wanted, in SQL, such as `weight > 0.5`; none: all, see docs/inputs.md."""
    table_version: int | None = Field(None, ge=0)
    """Version of the Delta table, or snapshot id of the Iceberg table, that is the input; none: the current one."""
    source_column: str | None = None
    """Column of one end of an edge; left out: `src` or `source`, else one of the only two columns."""
    target_column: str | None = None
    """Column of the other end; left out: `dst` or `target`, else one of the only two columns."""
    bipartite: Literal["prefix", "refuse"] | None = None
    """For two sets of ids: `prefix` puts the column's name before each id, `refuse` ends a run with an id in both."""
    directed: bool = False
    """Edges lead from the source column to the target column, which programs heed (docs/programs.md); λ does not."""
    id_type: Literal["auto", "int64", "uint64", "string"] = "auto"
    """Ids in CSV, TSV and JSON lines: `int64`, `uint64`, `string`, or `auto`: as the first rows have them."""
    header: bool | None = None
    """Whether CSV and TSV begin with the names of columns; none: found out."""
    delimiter: str | None = None
    """One character between the fields of CSV and TSV, or `tab` or `space`; none: found out."""
    comment: str | None = None
    """Lines of CSV and TSV that begin with this are left out, "" for none; none: `#` or `%` if the file begins so."""
    nulls: Literal["refuse", "drop"] = "refuse"
    """Rows with a null id: `refuse` ends the run, `drop` leaves them out and counts them."""
    complete_marker: str | None = None
    """File whose presence in the input's folder says that it is complete, such as `_SUCCESS`; else exit code 8."""
    least_rows: int | None = Field(None, ge=1)
    """An input with fewer rows, duplicates counted, is not complete: exit code 8; none: any number will do."""
    vertices: str | None = Field(None, min_length=1)
    """Attributes of vertices in Parquet, a row each: a file, a folder, a glob, a table or a URL; none: none."""
    vertex_id: str | None = None
    """Column of the ids in `input.vertices`; left out: `id` or `vertex`."""
    vertex_columns: tuple[str, ...] | None = None
    """Columns of `input.vertices` that are published with the result; left out: all but the ids."""
    vertex_label: str | None = None
    """The one that is shown beside ids; left out: `label` or `name`, else the only one that is text."""
    storage_options: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """Options for fsspec, such as credentials; never printed and never written to the result."""

    @property
    def form(self) -> Form:
        """What is known of the files, and which rows are wanted."""
        delimiter = {"tab": "\t", "space": " "}.get(self.delimiter or "", self.delimiter)
        how = self.format, self.header, delimiter, self.comment, self.id_type, self.where, self.bipartite
        return Form(*how, directed=self.directed)

    @field_serializer("path", "vertices")
    def _without_password(self, path: str | None) -> str | None:
        return None if path is None else without_passwords(path)

    @field_validator("path", "vertices")
    @classmethod
    def _a_location(cls, path: str | None) -> str | None:
        return None if path is None else _location(path)

    @field_validator("vertex_columns", mode="before")
    @classmethod
    def _several_names(cls, names: object) -> object:
        if isinstance(names, str):
            return tuple(name.strip() for name in names.split(","))
        return tuple(names) if isinstance(names, list) else names

    @field_validator("vertex_columns")
    @classmethod
    def _different_names(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names is not None and (not names or len(set(names)) < len(names) or "" in names):
            raise ValueError("must name one column or more, each once, such as name,city")
        return names

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, delimiter: str | None) -> str | None:
        if delimiter is None or delimiter in ("tab", "space"):
            return delimiter
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n"' or delimiter.isalnum():
            raise ValueError("must be one character, such as ; or |, or tab or space")
        return delimiter

    @field_validator("comment")
    @classmethod
    def _no_line_end(cls, comment: str | None) -> str | None:
        if comment is not None and ("\n" in comment or "\r" in comment):
            raise ValueError("must not hold an end of a line")
        return comment

    @field_validator("where")
    @classmethod
    def _a_condition(cls, where: str | None) -> str | None:
        try:
            _ = where if where is None else parse_where(where)
        except UsageError as error:
            raise ValueError(str(error).removeprefix("input.where: ")) from error
        return where

    @field_validator("complete_marker")
    @classmethod
    def _a_name(cls, marker: str | None) -> str | None:
        try:
            return marker if marker is None else plain(marker)
        except ValueError as error:
            raise ValueError("must be the name of a file in the input's folder") from error

    @model_validator(mode="after")
    def _both_columns_or_none(self) -> Self:
        if (self.source_column is None) != (self.target_column is None):
            raise ValueError("input.source_column and input.target_column go together: set both or neither")
        if self.source_column is not None and self.source_column == self.target_column:
            raise ValueError(f"input.source_column and input.target_column are the same column, {self.source_column!r}")
        return self

    @model_validator(mode="after")
    def _attributes_of_vertices(self) -> Self:
        if self.vertices is None:
            for name in ("vertex_id", "vertex_columns", "vertex_label"):
                if getattr(self, name) is not None:
                    raise ValueError(f"input.{name} is for attributes of vertices: name their file with --vertices")
        return self


class OutputSettings(_Section):
    """Where the result goes."""

    path: str = Field(min_length=1)
    """Folder of the result, local or shared, or fsspec URL in an object store; must not exist yet."""
    overwrite: bool = False
    """Replace an earlier result at that path, once the new one is complete."""
    format: Literal["parquet", "delta"] = "parquet"
    """`delta`: the tables of the newest result are Delta tables as well, in a place that stays the same."""
    delta_path: str | None = Field(None, min_length=1)
    """Folder or fsspec URL of the Delta tables; none: `output.path` with `current` for the date, or `.delta` added."""
    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd"
    """Parquet compression: `zstd`, `snappy`, `gzip`, `lz4` or `none`."""
    row_group_rows: int = Field(1_000_000, ge=1)
    """Most rows in one Parquet row group."""
    report: bool = True
    """Make `report.html`, the result on one page, with it; `edgemill report` makes it later."""
    single_writer: bool = False
    """No other run writes at that path: take an object store that cannot keep two runs apart."""
    storage_options: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """Options for fsspec, such as credentials; never printed and never written to the result."""

    @field_validator("path")
    @classmethod
    def _a_location(cls, path: str) -> str:
        return _own_location(path)

    @field_validator("delta_path")
    @classmethod
    def _a_location_of_tables(cls, path: str | None) -> str | None:
        return None if path is None else _own_location(path)

    @field_serializer("path", "delta_path")
    def _without_password(self, path: str | None) -> str | None:
        return None if path is None else without_passwords(path)

    @model_validator(mode="after")
    def _a_place_for_delta_tables(self) -> Self:
        if self.delta_path is not None and self.format != "delta":
            raise ValueError("output.delta_path is the place of Delta tables: it needs output.format delta")
        return self


class IngestSettings(_Section):
    """How the input is read."""

    rows_per_block: int = Field(2_000_000, ge=1)
    """Rows read by one task, at most: consecutive row groups up to about this many, fewer where memory is short."""
    sample_rows: int = Field(20_000_000, ge=1)
    """Rows that a plan looks at, at most, before anything runs: of an input with more, all it says is a guess."""


class PartitioningSettings(_Section):
    """How the edges are spread over partitions."""

    count: Annotated[int | Literal["auto"], PlainValidator(_partition_count)] = "auto"
    """Partitions, or groups of shards, 1 to 4096; `auto`: as many as are quickest and fit, see docs/planning.md."""
    method: Literal["auto", "range", "hash"] = "auto"
    """Vertex to partition, see docs/partitioning.md; `auto`: `range`. Without effect on shards."""


class BoundingSettings(_Section):
    """How λ is found."""

    method: Literal["auto", "peel", "band", "fixpoint"] = "auto"
    """`peel` (in one piece, or in shards), or `band` or `fixpoint` (over partitions, for study); `auto`: `peel`."""
    carrier: Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"] = "auto"
    """Between workers that peel shards: GPUs' `mailboxes`, `shared-memory`, `dask`; `auto`: the first; or `nccl`."""
    operator: Literal["hindex", "tridn"] = "hindex"
    """Operator of `fixpoint`: `hindex`, or `tridn`, which lowers by one."""
    max_exchanges: int | None = Field(None, ge=1)
    """End `band` or `fixpoint` after so many exchanges with intervals (exit code 5); a run that peels refuses it."""
    max_seconds: float | None = Field(None, gt=0)
    """End the search for λ after this many seconds, with an interval for each edge (exit code 5); none: never."""

    @model_validator(mode="after")
    def _operator_needs_fixpoint(self) -> Self:
        if self.operator != "hindex" and self.method != "fixpoint":
            raise ValueError(f"bounding.operator={self.operator} needs bounding.method=fixpoint, not {self.method}")
        return self


class CheckpointSettings(_Section):
    """What a run keeps for the one that follows if it is ended."""

    path: str | None = None
    """Folder or fsspec URL that all workers see, for a folder of this output; none: a hidden one beside the output."""
    every_seconds: float | None = Field(300, ge=0)
    """Work is kept when so much more would be lost; none: never."""
    every_exchanges: int | None = Field(500, ge=1)
    """Of `band` and `fixpoint`: work is kept after so many exchanges too; none: never. Peeling goes by the time."""
    fresh: bool = False
    """Start anew, whatever an earlier run has left; with `output.overwrite` even if the result is there already."""
    storage_options: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """Options for fsspec; never printed and never written to the result."""

    @field_validator("path")
    @classmethod
    def _a_location(cls, path: str | None) -> str | None:
        return None if path is None else _own_location(path)

    @field_serializer("path")
    def _without_password(self, path: str | None) -> str | None:
        return None if path is None else without_passwords(path)


class ClusterSettings(_Section):
    """What computes."""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    """What computes: `cpu`, `gpu`, or `auto`: the GPU where every worker has one, else the CPU."""
    workers: int | None = Field(None, ge=1)
    """Worker processes to start on this machine, on `gpu` one for each GPU; none: one worker inside this process."""
    protocol: Literal["tcp", "ucxx"] = "tcp"
    """Between GPU workers started here: `tcp`, or `ucxx` (GPU to GPU over NVLink; needs distributed-ucxx)."""
    threads_per_worker: int | None = Field(None, ge=1)
    """Threads of each worker; none: the machine's cores shared out evenly."""
    memory_limit_bytes: int | None = Field(None, ge=1)
    """Memory of each worker, in bytes; none: the machine's memory shared out evenly."""
    local_directory: str | None = None
    """Folder on each machine for results that exceed a worker's memory; none: Dask's, or that of temporary files."""
    device_memory_limit_bytes: int | None = Field(None, ge=1)
    """GPU memory of each worker above which results that wait move to the host's; none: 80 % of the GPU's."""
    scheduler: str | None = None
    """Address of a running Dask scheduler, such as `tcp://host:8786`."""
    scheduler_file: str | None = None
    """File that a running Dask scheduler wrote (`dask scheduler --scheduler-file`)."""
    least_workers: int | None = Field(None, ge=1)
    """Workers that a running cluster must have first; waits `waiting_seconds` for them and its scheduler; none: one."""
    tls_ca_file: str | None = None
    """PEM file of the authority that signs the certificates of the cluster; none: Dask's configuration."""
    tls_cert_file: str | None = None
    """PEM file of the certificate that the driver, and workers and scheduler started here, show each other."""
    tls_key_file: str | None = None
    """PEM file of that certificate's key, without a password; none: it is in `tls_cert_file`."""
    dashboard_address: str | None = None
    """Of a cluster started here, `host:port`; it has no password, so keep to `127.0.0.1:8787`; none: no dashboard."""
    silence_seconds: float = Field(60, gt=0)
    """A worker process started here that gives no sign of life for so long is replaced, and its tasks done again."""
    waiting_seconds: float = Field(300, gt=0)
    """The run ends (exit code 4) when no worker could run its tasks, or had come, for so long."""

    @property
    def is_started_here(self) -> bool:
        """Whether a run starts its cluster itself, and no scheduler is named."""
        return self.scheduler is None and self.scheduler_file is None

    @model_validator(mode="after")
    def _one_cluster(self) -> Self:
        if self.scheduler is not None and self.scheduler_file is not None:
            raise ValueError("cluster.scheduler and cluster.scheduler_file exclude each other: set one")
        if not self.is_started_here:
            own = (
                "workers",
                "threads_per_worker",
                "memory_limit_bytes",
                "local_directory",
                "device_memory_limit_bytes",
                "dashboard_address",
            )
            for name in own:
                if getattr(self, name) is not None:
                    raise ValueError(f"cluster.{name} is for workers started here: leave it out with a scheduler")
        return self

    @model_validator(mode="after")
    def _certificate_with_its_authority(self) -> Self:
        if (self.tls_ca_file is None) != (self.tls_cert_file is None):
            raise ValueError("cluster.tls_ca_file and cluster.tls_cert_file go together: set both or neither")
        if self.tls_key_file is not None and self.tls_cert_file is None:
            raise ValueError("cluster.tls_key_file is the key of cluster.tls_cert_file: set that too")
        if self.tls_ca_file is not None and self.protocol != "tcp":
            raise ValueError(
                f"cluster.protocol={self.protocol} is not encrypted: leave it out with cluster.tls_ca_file"
            )
        return self

    @model_validator(mode="after")
    def _dashboard_says_where(self) -> Self:
        address = self.dashboard_address
        if address is None:
            return self
        found = re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", address)
        if found is None or int(found[2]) > 65535:
            raise ValueError(
                "cluster.dashboard_address: must be host:port, such as 127.0.0.1:8787 for this machine alone, "
                f"got {address!r}"
            )
        return self


class NightlySettings(_Section):
    """A run that is repeated day by day, with `{date}` in its paths."""

    date: str | None = None
    """Day in place of `{date}` in the paths: `2026-11-20`, `today` or `yesterday`, in UTC; none: today."""
    keep: int | None = Field(None, ge=1)
    """Results of so many nights stay; after a night that succeeded the oldest of more are removed; none: all stay."""
    latest: bool = True
    """Keep a pointer at `output.path`, with `latest` in place of the date, to the newest result that converged."""
    compare: bool = True
    """Say in the report what changed since the night before; takes the time of `edgemill diff`."""
    series: str | None = None
    """`output.path` as given, with `{date}`, by which other nights' results are found; filled in by itself."""

    @field_validator("date")
    @classmethod
    def _iso_day(cls, day: str | None) -> str | None:
        return None if day is None else day_of(day)

    @field_serializer("series")
    def _without_password(self, series: str | None) -> str | None:
        return None if series is None else without_passwords(series)


class MonitoringSettings(_Section):
    """How to look on."""

    metrics_port: int | None = Field(None, ge=0, le=65535)
    """Port where Prometheus finds figures of the run, see docs/monitoring.md; 0: a free one; none: no port."""
    metrics_host: str = Field("127.0.0.1", min_length=1)
    """Address that the port is bound to; it has no password, so name another where you trust all who reach it."""
    textfile: str | None = Field(None, min_length=1)
    """File `*.prom` on a disk here for node_exporter's textfile collector: how and when runs ended; none: none."""
    performance_report: str | None = Field(None, min_length=1)
    """File on a disk here for Dask's performance report of the run; an HTML page there is replaced; none: none."""

    @field_validator("performance_report", "textfile")
    @classmethod
    def _on_a_disk(cls, file: str | None) -> str | None:
        if file is not None and "://" in file:
            raise ValueError("must be a file on a disk of this machine, not a URL")
        return file

    @field_validator("textfile")
    @classmethod
    def _as_node_exporter_has_it(cls, file: str | None) -> str | None:
        if file is not None and not file.endswith(".prom"):
            raise ValueError("must end in .prom: node_exporter reads no other files")
        return file


class ProgramsSettings(_Section):
    """What is found of the graph."""

    run: tuple[str, ...] = ("lambda",)
    """`lambda`, and programs that add columns to the vertices, such as `lambda,pagerank`: docs/programs.md."""

    @field_validator("run", mode="before")
    @classmethod
    def _several_names(cls, names: object) -> object:
        if isinstance(names, str):
            return tuple(name.strip() for name in names.split(","))
        return tuple(names) if isinstance(names, list) else names

    @field_validator("run")
    @classmethod
    def _known_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        known = (LAMBDA, *CATALOGUE)
        for name in names:
            if name not in known:
                raise ValueError(f"there is no program {name!r}; there are: {', '.join(known)}")
        if len(set(names)) < len(names):
            raise ValueError("names a program twice")
        if LAMBDA not in names:
            raise ValueError(f"has to name {LAMBDA}, too, such as {','.join((LAMBDA, *names))}")
        return names


class PagerankSettings(_Section):
    """The program pagerank."""

    damping: float = Field(0.85, ge=0, lt=1)
    """How likely a walk goes on; else it starts anew."""
    tolerance: float = Field(1e-9, ge=1e-14)
    """Ends when all ranks together moved less in a superstep."""
    iterations: int | None = Field(None, ge=1)
    """Ends after so many supersteps instead; none: by the tolerance."""


class LabelsSettings(_Section):
    """The program labels."""

    iterations: int = Field(10, ge=1)
    """Supersteps, unless no label changes before."""


class Settings(_Section):
    """All settings of a run; every one of them has a default except the two paths."""

    input: InputSettings
    output: OutputSettings
    ingest: IngestSettings = IngestSettings()
    partitioning: PartitioningSettings = PartitioningSettings()
    bounding: BoundingSettings = BoundingSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    cluster: ClusterSettings = ClusterSettings()
    nightly: NightlySettings = NightlySettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    programs: ProgramsSettings = ProgramsSettings()
    pagerank: PagerankSettings = PagerankSettings()
    labels: LabelsSettings = LabelsSettings()

    @model_validator(mode="after")
    def _nights_of_this_output(self) -> Self:
        day, series = self.nightly.date, self.nightly.series
        if series is None:
            if self.nightly.keep is not None:
                raise ValueError("nightly.keep is for results of many nights: put {date} into output.path")
            return self
        if re.match(r"[^/]+://[^/]*\{date\}", series):
            raise ValueError(f"output.path {without_passwords(series)}: {{date}} belongs below the bucket")
        try:
            fits = day is not None and filled_in(series, day) == self.output.path and has_date(series, "nightly.series")
        except UsageError as error:
            raise ValueError(str(error)) from error
        if not fits:
            raise ValueError("nightly.series is not what output.path was made of: leave it out")
        return self


SECTIONS: Mapping[str, type[BaseModel]] = {
    "input": InputSettings,
    "output": OutputSettings,
    "ingest": IngestSettings,
    "partitioning": PartitioningSettings,
    "bounding": BoundingSettings,
    "checkpoint": CheckpointSettings,
    "cluster": ClusterSettings,
    "nightly": NightlySettings,
    "monitoring": MonitoringSettings,
    "programs": ProgramsSettings,
    "pagerank": PagerankSettings,
    "labels": LabelsSettings,
}
"""The model of each section, in order."""
