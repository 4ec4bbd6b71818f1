"""All settings of a run, by section. `Settings` at the end combines the sections.

A field's docstring is its help, in docs/settings.md and in editors. Units are in the names. The sections of programs
are made from their classes, for the programs that a run names (`sources.model_for`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, field_serializer, field_validator, model_validator

from ...tasks.errors import UsageError
from ...tasks.inputs.formats.form import Form, Weights
from ...tasks.inputs.formats.input_format import format_names
from ...tasks.publish.result_columns import BUTTERFLIES, EDGES, ESTIMATE, SIDE, VERTICES
from ...tasks.publish.result_columns import names_of as column_names
from ...tasks.storage.locations import normalized, tidy_path
from ...tasks.storage.own_files import plain_name
from ...tasks.storage.passwords import without_passwords
from ...tasks.where.condition import parse_where
from .dates import has_date, parse_day, replace_date
from .declared_programs import LAMBDA, DeclaredProgram, installed_names, names_of, shipped, shipped_names


class Section(BaseModel):
    """Frozen and strict: an unknown key is an error, and no value is converted to another type."""

    model_config = ConfigDict(
        extra="forbid",
        defer_build=True,  # most sections are checked as parts of all settings, which are built once
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


def input_location(path: str) -> str:
    """The path in its normal form. Raises ValueError if it is not a path or an fsspec URL."""
    _check_location(path)
    return tidy_path(path)


def output_location(path: str) -> str:
    """The path, unchanged, since results of other nights are found by its text.

    Raises ValueError if it is not a path or an fsspec URL, or if it is a chained URL, which cannot be written to.
    """
    if "::" in path:
        raise ValueError("cannot write through a cache or an archive (`::`): name the location behind it")
    _check_location(path)
    return path


def _check_location(path: str) -> None:
    try:
        normalized(path)
    except UsageError as error:
        raise ValueError(str(error)) from error


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
    two_sided: bool = False
    """Every edge joins two sides, such as accounts and devices: λ counts butterflies (docs/two-sided-tables.md)."""
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
            self.sides_apart,
            self.two_sided,
            directed=self.directed,
            weights=self.weights,
        )

    @property
    def sides_apart(self) -> Literal["prefix", "refuse"] | None:
        """How equal ids in both columns are treated."""
        return "prefix" if self.two_sided else self.bipartite

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
    def _check_sides(self) -> Self:
        if self.two_sided and self.directed:
            raise ValueError("input.directed and input.two_sided exclude each other: set one")
        if self.two_sided and self.bipartite == "refuse":
            raise ValueError(
                "input.two_sided keeps equal ids of the two columns apart, and input.bipartite=refuse refuses them: "
                "leave out input.bipartite"
            )
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
    """Compression of the Parquet files; of columns that a GPU encodes, where it saves a fifth."""
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


MAX_PARTITIONS = 4096
"""Largest number of partitions of a run."""


def _partition_count(value: object) -> int | str:
    if value == "auto" or (type(value) is int and 1 <= value <= MAX_PARTITIONS):
        return value
    raise ValueError(f"must be auto or a whole number from 1 to {MAX_PARTITIONS}")


class PartitioningSettings(Section):
    """How many workers divide a graph that is too large for one."""

    count: Annotated[int | Literal["auto"], PlainValidator(_partition_count)] = "auto"
    """Groups of shards, 1 to 4096; 1: one worker. `auto` takes what is fastest and fits, see docs/planning.md."""


class BoundingSettings(Section):
    """How λ is found."""

    method: Literal["auto", "peel", "band", "fixpoint"] = "auto"
    """`peel`, or for study `band` or `fixpoint` on copies of the graph, see docs/bounds.md; `auto` is `peel`."""
    carrier: Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"] = "auto"
    """Transport between workers. `auto` takes the first that works of `mailboxes` (GPUs), `shared-memory`, `dask`."""
    operator: Literal["hindex", "tridn", "streamdn"] = "hindex"
    """Of `fixpoint`: `hindex`; `tridn`, one at a time; `streamdn`, with estimates of λ besides, see docs/bounds.md."""
    permutations: int = Field(128, ge=1, le=1024)
    """Permutations of `streamdn`; each takes 8 bytes a vertex."""
    max_exchanges: int | None = Field(None, ge=1)
    """Stop `band` or `fixpoint` after this many iterations, with λ intervals and exit code 5. `peel` refuses it."""
    max_seconds: float | None = Field(None, gt=0)
    """Stop bounding after this many seconds, with λ intervals and exit code 5; null: no limit."""

    @model_validator(mode="after")
    def _check_operator(self) -> Self:
        if self.operator != "hindex" and self.method != "fixpoint":
            raise ValueError(f"bounding.operator={self.operator} needs bounding.method=fixpoint, not {self.method}")
        return self


class ProgramsSettings(Section):
    """What is computed."""

    run: tuple[str, ...] = ("lambda",)
    """`lambda`, and vertex programs that add columns, such as `pagerank,components`, see docs/programs.md."""
    max_supersteps: int | None = Field(None, ge=1)
    """Stop each program after this many supersteps, with the values of then and exit code 5; null: no limit."""
    max_seconds: float | None = Field(None, gt=0)
    """Stop each program after this many seconds, with the values of then and exit code 5; null: no limit."""

    own: tuple[str, ...] = ()
    """Your own programs, `module:Class` or `name=module:Class`: imported and run, see docs/own-programs.md."""
    order: Literal["auto", "synchronous", "asynchronous"] = "auto"
    """Order of supersteps of programs for which it does not matter, see docs/programs.md. Results are the same."""

    device_topology_bytes: int | None = Field(None, ge=0)
    """GPU memory of a worker for edges; others stream from host memory. null: what is free (docs/programs.md)."""

    @field_validator("run", "own", mode="before")
    @classmethod
    def _split_names(cls, names: object) -> object:
        if isinstance(names, str):
            return tuple(name.strip() for name in names.split(","))
        return tuple(names) if isinstance(names, list) else names

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        try:
            own = names_of(self.own)
        except UsageError as error:
            raise ValueError(str(error)) from error
        known = (LAMBDA, *shipped_names(), *own)
        for name in self.run:
            if name not in known and name not in installed_names():
                raise ValueError(f"programs.run: unknown program {name!r}; known programs: {', '.join(known)}")
        if len(set(self.run)) < len(self.run):
            raise ValueError("programs.run: names a program twice")
        if not self.run:
            raise ValueError(f"programs.run: names no program; known programs: {', '.join(known)}")
        return self

    @property
    def find_lambda(self) -> bool:
        """Whether the run computes λ."""
        return LAMBDA in self.run

    @property
    def vertex_programs(self) -> tuple[str, ...]:
        """The vertex programs of the run, in the order of their columns: that of `run`, then others of `own`."""
        return tuple(dict.fromkeys(name for name in (*self.run, *names_of(self.own)) if name != LAMBDA))


class EstimateSettings(Section):
    """The command `estimate`."""

    samples: int = Field(200_000, ge=100, le=100_000_000)
    """Wedges in the sample. Four times as many halve the intervals."""
    seed: int = Field(1, ge=0)
    """Seed of the sample. The same seed gives the same sample for any number of workers."""


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


_LOCAL_ONLY = (
    "workers",
    "threads_per_worker",
    "memory_limit_bytes",
    "local_directory",
    "device_memory_limit_bytes",
    "dashboard_address",
)
"""Settings of workers that the run starts; an error with a running scheduler."""


class ClusterSettings(Section):
    """The device and the Dask cluster."""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    """Device that computes. `auto` is `gpu` where every worker has one, else `cpu`."""
    workers: int | None = Field(None, ge=1)
    """Worker processes to start on this machine, with `gpu` one per GPU; null: one worker inside this process."""
    protocol: Literal["tcp", "ucxx"] = "tcp"
    """Protocol between GPU workers started here. `ucxx` sends GPU to GPU over NVLink; it needs distributed-ucxx."""
    threads_per_worker: int | None = Field(None, ge=1)
    """Threads of a worker; null: an equal share of the cores, at most 16 for tasks and 48 for a kernel."""
    memory_limit_bytes: int | None = Field(None, ge=1)
    """Memory limit of a worker; null: an equal share of the memory."""
    local_directory: str | None = None
    """Spill folder on each machine, for results above a worker's memory; null: Dask's, or the temporary folder."""
    device_memory_limit_bytes: int | None = Field(None, ge=1)
    """GPU memory of a worker above which waiting results move to host memory; null: 80 % of the GPU."""
    scheduler: str | None = None
    """Address of a running Dask scheduler, such as `tcp://host:8786`."""
    scheduler_file: str | None = None
    """Scheduler file of a running Dask scheduler (`dask scheduler --scheduler-file`)."""
    least_workers: int | None = Field(None, ge=1)
    """Workers of a running cluster to wait for, up to `waiting_seconds`; null: one."""
    tls_ca_file: str | None = None
    """PEM file of the CA that signs the cluster's certificates; null: Dask's configuration."""
    tls_cert_file: str | None = None
    """PEM file of the certificate of the driver, and of workers and a scheduler started here."""
    tls_key_file: str | None = None
    """PEM file of the key of that certificate, without a password; null: the key is in `tls_cert_file`."""
    dashboard_address: str | None = None
    """`host:port` of the dashboard of a cluster started here, such as `127.0.0.1:8787`; no password; null: none."""
    silence_seconds: float = Field(60, gt=0)
    """Seconds without a heartbeat after which a worker started here is replaced and its tasks run again."""
    waiting_seconds: float = Field(300, gt=0)
    """Seconds without a scheduler that answers, or without any usable worker, after which the run ends with code 4."""

    @property
    def is_started_here(self) -> bool:
        """Whether the run starts its own cluster."""
        return self.scheduler is None and self.scheduler_file is None

    @model_validator(mode="after")
    def _check_scheduler(self) -> Self:
        if self.scheduler is not None and self.scheduler_file is not None:
            raise ValueError("cluster.scheduler and cluster.scheduler_file exclude each other: set one")
        if not self.is_started_here:
            for name in _LOCAL_ONLY:
                if getattr(self, name) is not None:
                    raise ValueError(f"cluster.{name} applies to workers started here: leave it out with a scheduler")
        return self

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls_ca_file is None) != (self.tls_cert_file is None):
            raise ValueError("cluster.tls_ca_file and cluster.tls_cert_file must be set together: set both or neither")
        if self.tls_key_file is not None and self.tls_cert_file is None:
            raise ValueError("cluster.tls_key_file is the key of cluster.tls_cert_file: set that too")
        if self.tls_ca_file is not None and self.protocol != "tcp":
            raise ValueError(
                f"cluster.protocol={self.protocol} is not encrypted: leave it out with cluster.tls_ca_file"
            )
        return self

    @model_validator(mode="after")
    def _check_dashboard(self) -> Self:
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


class Settings(Section):
    """All settings of a run. Every setting has a default, except the two paths."""

    declared: ClassVar[Mapping[str, DeclaredProgram]] = {}
    """Name → program, of those that the settings name."""

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
    estimate: EstimateSettings = EstimateSettings()

    def program(self, name: str) -> DeclaredProgram:
        """A program of the run."""
        return self.declared[name] if name in self.declared else shipped(name)

    @property
    def requested_programs(self) -> dict[str, DeclaredProgram]:
        """Name → program of the run, in the order of their columns."""
        return {name: self.program(name) for name in self.programs.vertex_programs}

    def parameters_of(self, name: str) -> dict[str, Any]:
        """The parameters of a program, by name, as JSON values."""
        section = getattr(self, name, None)
        return {} if section is None else section.model_dump(mode="json")

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """The columns that the run adds to the table of edges."""
        estimates = (ESTIMATE.name,) if self.bounding.operator == "streamdn" else ()
        return estimates + tuple(
            column.name for program in self.requested_programs.values() for column in program.edge_columns
        )

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        for reserved, of_edges in (((*VERTICES, SIDE, BUTTERFLIES), False), ((*EDGES, ESTIMATE), True)):
            seen = dict.fromkeys(column_names(reserved), "every result")
            for name, program in self.requested_programs.items():
                for column in program.edge_columns if of_edges else program.columns:
                    if column.name in seen:
                        raise ValueError(
                            f"the program {name} has a column {column.name!r}, as {seen[column.name]} has: "
                            "name the program, as in --program other=module:Class"
                        )
                    seen[column.name] = f"the program {name}"
        return self

    @model_validator(mode="after")
    def _check_programs(self) -> Self:
        for name, program in self.requested_programs.items():
            if program.needs_lambda and not self.programs.find_lambda:
                why = "weighs edges by their triangles, and a run without lambda counts none"
                if program.edge_columns:
                    why = "has columns of edges, and a run without lambda has no table of edges"
                raise ValueError(f"the program {name} {why}: --programs lambda,{name}")
            for parameter in program.vertices:
                if getattr(getattr(self, name), parameter) is None:
                    raise ValueError(f"the program {name} needs the id of a vertex: --set {name}.{parameter}=ID")
        return self

    @model_validator(mode="after")
    def _check_copies(self) -> Self:
        method, count = self.bounding.method, self.partitioning.count
        if method in ("band", "fixpoint") and count not in ("auto", 1):
            raise ValueError(
                f"bounding.method={method} works on copies of the graph: leave out partitioning.count={count}"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _choose_cpu(cls, given: Any) -> Any:
        """A run by butterflies computes on CPUs, also where `auto` would take a GPU."""
        if not isinstance(given, dict) or not isinstance(given.get("input"), dict):
            return given
        cluster = given.get("cluster", {})
        if given["input"].get("two_sided") is not True or not isinstance(cluster, dict):
            return given
        return given | ({"cluster": {**cluster, "device": "cpu"}} if cluster.get("device", "auto") == "auto" else {})

    @model_validator(mode="after")
    def _check_two_sided(self) -> Self:
        if not self.input.two_sided:
            return self
        cluster, bounding = self.cluster, self.bounding
        for name, unfit in {
            "cluster.device": cluster.device == "gpu",
            "cluster.workers": (cluster.workers or 1) > 1,
            "cluster.scheduler": cluster.scheduler is not None,
            "cluster.scheduler_file": cluster.scheduler_file is not None,
            "partitioning.count": self.partitioning.count not in ("auto", 1),
            "bounding.method": bounding.method not in ("auto", "peel"),
            "bounding.max_seconds": bounding.max_seconds is not None,
        }.items():
            if unfit:
                raise ValueError(
                    "input.two_sided finds λ by butterflies on the CPUs of one worker, from start to end: leave out "
                    f"{name}"
                )
        for name, program in self.requested_programs.items():
            if program.needs_lambda:
                raise ValueError(
                    f"the program {name} reads triangles, and a graph with two sides has none: leave it out"
                )
        return self

    @model_validator(mode="after")
    def _check_series(self) -> Self:
        day, series = self.nightly.date, self.nightly.series
        if series is None:
            if self.nightly.keep is not None:
                raise ValueError("nightly.keep applies to a series of nights: put {date} into output.path")
            return self
        if re.match(r"[^/]+://[^/]*\{date\}", series):
            raise ValueError(f"output.path {without_passwords(series)}: {{date}} must come after the bucket name")
        try:
            fits = (
                day is not None and replace_date(series, day) == self.output.path and has_date(series, "nightly.series")
            )
        except UsageError as error:
            raise ValueError(str(error)) from error
        if not fits:
            raise ValueError("nightly.series does not match output.path: leave it out")
        return self


SECTIONS: Mapping[str, type[BaseModel]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}
"""Section name → its model, in the order of the settings file."""
