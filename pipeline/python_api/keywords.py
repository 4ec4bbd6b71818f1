"""The keywords of `edgemill.mine`, made by docs/making/keywords.py from the settings: do not edit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict


class InputSection(TypedDict, total=False):
    """The edges, and attributes of their vertices."""

    path: str | os.PathLike[str]
    """Edges: a file, a folder, a glob, a table (see docs/tables.md) or an fsspec URL of one of these."""
    format: str
    """Format of the files, by its name in docs/inputs.md. `auto` infers it from their names and first bytes."""
    where: str | None
    """SQL condition that selects rows, such as `weight > 0.5`, see docs/inputs.md; null reads all rows."""
    table_version: int | None
    """Version of a Delta table, or snapshot id of an Iceberg table; null reads the current one."""
    source_column: str | None
    """Column of the first endpoint; null finds it by its name, see docs/inputs.md."""
    target_column: str | None
    """Column of the second endpoint; null finds it by its name, see docs/inputs.md."""
    bipartite: Literal["prefix", "refuse"] | None
    """For ids of two kinds: `prefix` puts the column name before each id; `refuse` fails if an id is in both."""
    two_sided: bool
    """Every edge joins two sides, such as accounts and devices: λ counts butterflies (docs/two-sided-tables.md)."""
    directed: bool
    """Edges point from source to target. Vertex programs use the direction (docs/programs.md); λ does not."""
    weight_column: str | None
    """Column of numbers that weigh the edges, read as float64, for programs; null: no weights, see docs/inputs.md."""
    repeats: Literal["error", "sum", "min", "max"]
    """Weight of an edge with several rows: their `sum`, `min` or `max`; `error` ends the run with exit code 3."""
    id_type: Literal["auto", "int64", "uint64", "string"]
    """Type of ids in CSV, TSV and JSON lines. `auto`: integers if all ids are written as integers, else text."""
    header: bool | None
    """Whether CSV and TSV files start with a line of column names; null detects it."""
    delimiter: str | None
    """Field separator of CSV and TSV: one character, `tab` or `space`; null detects it."""
    comment: str | None
    """Skip CSV and TSV lines that start with this text; "" skips none; null takes `#` or `%` if a file starts so."""
    strip: bool
    """Remove blanks around the fields of CSV and TSV, so that ` 7` is 7."""
    nulls: Literal["refuse", "drop"]
    """Rows with a null id: `refuse` ends the run; `drop` skips and counts them."""
    complete_marker: str | None
    """File in the input folder that marks it complete, such as `_SUCCESS`; without it the run ends with exit code 8."""
    least_rows: int | None
    """Fewest rows of a complete input, duplicates included; fewer end the run with exit code 8; null: no minimum."""
    vertices: Any
    """Vertex attributes, one row per vertex, in Parquet: a file, a folder, a glob, a table or a URL."""
    isolated: bool
    """Ids of `input.vertices` without edges are vertices of the graph, too, with degree 0."""
    vertex_id: str | None
    """Id column of `input.vertices`; null finds it by its name, see docs/asking.md."""
    vertex_columns: Sequence[str] | None
    """Columns of `input.vertices` to publish; null publishes all."""
    vertex_label: str | None
    """Column of `input.vertices` to show beside ids; null takes `label`, `name` or the only text column."""
    storage_options: dict[str, Any]
    """fsspec options such as credentials; never printed, never written to the result."""


class OutputSection(TypedDict, total=False):
    """The result."""

    path: str | os.PathLike[str]
    """Folder of the result, local or shared, or an fsspec URL in an object store. It must not exist."""
    overwrite: bool
    """Replace an existing result once the new one is complete."""
    format: Literal["parquet", "delta"]
    """`delta` also publishes the newest result as Delta tables at a fixed path."""
    delta_path: str | None
    """Folder or fsspec URL of the Delta tables; null: `output.path` with date `current`, or with `.delta` added."""
    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"]
    """Compression of the Parquet files; of columns that a GPU encodes, where it saves a fifth."""
    row_group_rows: int
    """Most rows of a Parquet row group."""
    report: bool
    """Write `report.html`, a summary of the result on one page; `edgemill report` writes it later."""
    single_writer: bool
    """Assert that no other run writes to this path; permits an object store that cannot lock it."""
    storage_options: dict[str, Any]
    """fsspec options such as credentials; never printed, never written to the result."""


class IngestSection(TypedDict, total=False):
    """How the input is read."""

    rows_per_block: int | None
    """Most rows that one task reads. By default 2,000,000, with GPUs of several workers 8,000,000."""
    sample_rows: int
    """Most rows that planning reads before the run; figures of a larger input are estimates."""


class PartitioningSection(TypedDict, total=False):
    """How many workers divide a graph that is too large for one."""

    count: int | Literal["auto"]
    """Groups of shards, 1 to 4096; 1: one worker. `auto` takes what is fastest and fits, see docs/planning.md."""


class BoundingSection(TypedDict, total=False):
    """How λ is found."""

    method: Literal["auto", "peel", "band", "fixpoint"]
    """`peel`, or for study `band` or `fixpoint` on copies of the graph, see docs/bounds.md; `auto` is `peel`."""
    carrier: Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"]
    """Transport between workers. `auto` takes the first that works of `mailboxes` (GPUs), `shared-memory`, `dask`."""
    operator: Literal["hindex", "tridn", "streamdn"]
    """Of `fixpoint`: `hindex`; `tridn`, one at a time; `streamdn`, with estimates of λ besides, see docs/bounds.md."""
    permutations: int
    """Permutations of `streamdn`; each takes 8 bytes a vertex."""
    max_exchanges: int | None
    """Stop `band` or `fixpoint` after this many iterations, with λ intervals and exit code 5. `peel` refuses it."""
    max_seconds: float | None
    """Stop bounding after this many seconds, with λ intervals and exit code 5; null: no limit."""


class CheckpointSection(TypedDict, total=False):
    """What a run saves, so that the next run with the same output can resume it."""

    path: str | os.PathLike[str] | None
    """Folder or fsspec URL that all workers can reach; null: a hidden folder beside the output."""
    every_seconds: float | None
    """Seconds between checkpoints, or more: all take a tenth of the time at most; 0: at each chance; null: none."""
    every_exchanges: int | None
    """Iterations of `band` or `fixpoint` between checkpoints, beside `every_seconds`, whatever they take."""
    fresh: bool
    """Ignore checkpoints of an earlier run; with `output.overwrite` also recompute a result that is up to date."""
    storage_options: dict[str, Any]
    """fsspec options; never printed, never written to the result."""


class ClusterSection(TypedDict, total=False):
    """The device and the Dask cluster."""

    device: Literal["auto", "cpu", "gpu"]
    """Device that computes. `auto` is `gpu` where every worker has one, else `cpu`."""
    workers: int | None
    """Worker processes to start on this machine, with `gpu` one per GPU; null: one worker inside this process."""
    protocol: Literal["tcp", "ucxx"]
    """Protocol between GPU workers started here. `ucxx` sends GPU to GPU over NVLink; it needs distributed-ucxx."""
    threads_per_worker: int | None
    """Threads of a worker; null: an equal share of the cores, at most 16 for tasks and 48 for a kernel."""
    memory_limit_bytes: int | None
    """Memory limit of a worker; null: an equal share of the memory."""
    local_directory: str | os.PathLike[str] | None
    """Spill folder on each machine, for results above a worker's memory; null: Dask's, or the temporary folder."""
    device_memory_limit_bytes: int | None
    """GPU memory of a worker above which waiting results move to host memory; null: 80 % of the GPU."""
    scheduler: str | None
    """Address of a running Dask scheduler, such as `tcp://host:8786`."""
    scheduler_file: str | os.PathLike[str] | None
    """Scheduler file of a running Dask scheduler (`dask scheduler --scheduler-file`)."""
    least_workers: int | None
    """Workers of a running cluster to wait for, up to `waiting_seconds`; null: one."""
    tls_ca_file: str | os.PathLike[str] | None
    """PEM file of the CA that signs the cluster's certificates; null: Dask's configuration."""
    tls_cert_file: str | os.PathLike[str] | None
    """PEM file of the certificate of the driver, and of workers and a scheduler started here."""
    tls_key_file: str | os.PathLike[str] | None
    """PEM file of the key of that certificate, without a password; null: the key is in `tls_cert_file`."""
    dashboard_address: str | None
    """`host:port` of the dashboard of a cluster started here, such as `127.0.0.1:8787`; no password; null: none."""
    silence_seconds: float
    """Seconds without a heartbeat after which a worker started here is replaced and its tasks run again."""
    waiting_seconds: float
    """Seconds without a scheduler that answers, or without any usable worker, after which the run ends with code 4."""


class NightlySection(TypedDict, total=False):
    """A series of runs, one per day, with `{date}` in their paths."""

    date: str | None
    """Day that replaces `{date}` in paths: `2026-11-20`, `today`, `yesterday`, `25 hours ago`, in UTC; null: today."""
    keep: int | None
    """Results to keep; a successful run removes older ones; null keeps all."""
    latest: bool
    """Keep a pointer to the newest converged result, at `output.path` with `latest` as the date."""
    compare: bool
    """Report the changes since the previous night. Costs as much time as `edgemill diff`."""
    incremental: Literal["auto", "always", "never"]
    """Start from an earlier result: where it is less work (`auto`), whatever it costs, or not (docs/update.md)."""
    previous: str | None
    """Result to start from, of the same columns; null: the newest earlier night, unless `incremental` is `never`."""
    least_share: float | None
    """Least share of the last night's edges; fewer, or ids of another type, end with exit code 3; null: any."""
    full_every: int
    """With `incremental: auto`, find λ of all edges from nothing after this many nights."""
    state: str | None
    """Folder or URL for what the next night starts from, ≤ 20 bytes an edge; null: the folder `state` of the result."""
    series: str | None
    """`output.path` with `{date}` unreplaced, which locates other nights' results. Filled in automatically."""


class MonitoringSection(TypedDict, total=False):
    """Metrics and performance reports."""

    metrics_port: int | None
    """Port that serves metrics to Prometheus, see docs/monitoring.md; 0 takes a free port; null serves none."""
    metrics_host: str
    """Address that `metrics_port` binds to. It has no password: bind to another only in a trusted network."""
    textfile: str | os.PathLike[str] | None
    """Local `*.prom` file for node_exporter's textfile collector: exit code and times of the last run; null: none."""
    performance_report: str | os.PathLike[str] | None
    """Local HTML file for Dask's performance report; an existing HTML file is replaced; null: none."""


class ProgramsSection(TypedDict, total=False):
    """What is computed."""

    run: Sequence[str]
    """`lambda`, and vertex programs that add columns, such as `pagerank,components`, see docs/programs.md."""
    max_supersteps: int | None
    """Stop each program after this many supersteps, with the values of then and exit code 5; null: no limit."""
    max_seconds: float | None
    """Stop each program after this many seconds, with the values of then and exit code 5; null: no limit."""
    own: Sequence[str]
    """Your own programs, `module:Class` or `name=module:Class`: imported and run, see docs/own-programs.md."""
    order: Literal["auto", "synchronous", "asynchronous"]
    """Order of supersteps of programs for which it does not matter, see docs/programs.md. Results are the same."""
    device_topology_bytes: int | None
    """GPU memory of a worker for edges; others stream from host memory. null: what is free (docs/programs.md)."""


class EstimateSection(TypedDict, total=False):
    """The command `estimate`."""

    samples: int
    """Wedges in the sample. Four times as many halve the intervals."""
    seed: int
    """Seed of the sample. The same seed gives the same sample for any number of workers."""


class RunKeywords(TypedDict, total=False):
    """What all functions that run take by name: whole sections of settings, and single settings."""

    input: str | os.PathLike[str] | InputSection | Mapping[str, Any]
    """The edges, and attributes of their vertices."""
    output: str | os.PathLike[str] | OutputSection | Mapping[str, Any]
    """The result."""
    ingest: IngestSection | Mapping[str, Any]
    """How the input is read."""
    partitioning: PartitioningSection | Mapping[str, Any]
    """How many workers divide a graph that is too large for one."""
    bounding: BoundingSection | Mapping[str, Any]
    """How λ is found."""
    checkpoint: CheckpointSection | Mapping[str, Any]
    """What a run saves, so that the next run with the same output can resume it."""
    cluster: ClusterSection | Mapping[str, Any]
    """The device and the Dask cluster."""
    nightly: NightlySection | Mapping[str, Any]
    """A series of runs, one per day, with `{date}` in their paths."""
    monitoring: MonitoringSection | Mapping[str, Any]
    """Metrics and performance reports."""
    estimate: EstimateSection | Mapping[str, Any]
    """The command `estimate`."""
    source_column: str | None
    """Column of the first endpoint; null finds it by its name, see docs/inputs.md."""
    target_column: str | None
    """Column of the second endpoint; null finds it by its name, see docs/inputs.md."""
    table_version: int | None
    """Version of a Delta table, or snapshot id of an Iceberg table; null reads the current one."""
    input_format: str
    """Format of the files, by its name in docs/inputs.md. `auto` infers it from their names and first bytes."""
    where: str | None
    """SQL condition that selects rows, such as `weight > 0.5`, see docs/inputs.md; null reads all rows."""
    bipartite: Literal["prefix", "refuse"] | None
    """For ids of two kinds: `prefix` puts the column name before each id; `refuse` fails if an id is in both."""
    two_sided: bool
    """Every edge joins two sides, such as accounts and devices: λ counts butterflies (docs/two-sided-tables.md)."""
    directed: bool
    """Edges point from source to target. Vertex programs use the direction (docs/programs.md); λ does not."""
    weight_column: str | None
    """Column of numbers that weigh the edges, read as float64, for programs; null: no weights, see docs/inputs.md."""
    vertices: Any
    """Vertex attributes, one row per vertex, in Parquet: a file, a folder, a glob, a table or a URL."""
    vertex_id: str | None
    """Id column of `input.vertices`; null finds it by its name, see docs/asking.md."""
    overwrite: bool
    """Replace an existing result once the new one is complete."""
    output_format: Literal["parquet", "delta"]
    """`delta` also publishes the newest result as Delta tables at a fixed path."""
    partitions: int | Literal["auto"]
    """Groups of shards, 1 to 4096; 1: one worker. `auto` takes what is fastest and fits, see docs/planning.md."""
    method: Literal["auto", "peel", "band", "fixpoint"]
    """`peel`, or for study `band` or `fixpoint` on copies of the graph, see docs/bounds.md; `auto` is `peel`."""
    max_exchanges: int | None
    """Stop `band` or `fixpoint` after this many iterations, with λ intervals and exit code 5. `peel` refuses it."""
    max_seconds: float | None
    """Stop bounding after this many seconds, with λ intervals and exit code 5; null: no limit."""
    fresh: bool
    """Ignore checkpoints of an earlier run; with `output.overwrite` also recompute a result that is up to date."""
    device: Literal["auto", "cpu", "gpu"]
    """Device that computes. `auto` is `gpu` where every worker has one, else `cpu`."""
    workers: int | None
    """Worker processes to start on this machine, with `gpu` one per GPU; null: one worker inside this process."""
    scheduler: str | None
    """Address of a running Dask scheduler, such as `tcp://host:8786`."""
    scheduler_file: str | os.PathLike[str] | None
    """Scheduler file of a running Dask scheduler (`dask scheduler --scheduler-file`)."""
    date: str | None
    """Day that replaces `{date}` in paths: `2026-11-20`, `today`, `yesterday`, `25 hours ago`, in UTC; null: today."""
    previous: str | None
    """Result to start from, of the same columns; null: the newest earlier night, unless `incremental` is `never`."""
    metrics_port: int | None
    """Port that serves metrics to Prometheus, see docs/monitoring.md; 0 takes a free port; null serves none."""
    performance_report: str | os.PathLike[str] | None
    """Local HTML file for Dask's performance report; an existing HTML file is replaced; null: none."""
    repeats: Literal["error", "sum", "min", "max"]
    """Weight of an edge with several rows: their `sum`, `min` or `max`; `error` ends the run with exit code 3."""
    id_type: Literal["auto", "int64", "uint64", "string"]
    """Type of ids in CSV, TSV and JSON lines. `auto`: integers if all ids are written as integers, else text."""
    header: bool | None
    """Whether CSV and TSV files start with a line of column names; null detects it."""
    delimiter: str | None
    """Field separator of CSV and TSV: one character, `tab` or `space`; null detects it."""
    comment: str | None
    """Skip CSV and TSV lines that start with this text; "" skips none; null takes `#` or `%` if a file starts so."""
    strip: bool
    """Remove blanks around the fields of CSV and TSV, so that ` 7` is 7."""
    nulls: Literal["refuse", "drop"]
    """Rows with a null id: `refuse` ends the run; `drop` skips and counts them."""
    complete_marker: str | None
    """File in the input folder that marks it complete, such as `_SUCCESS`; without it the run ends with exit code 8."""
    least_rows: int | None
    """Fewest rows of a complete input, duplicates included; fewer end the run with exit code 8; null: no minimum."""
    isolated: bool
    """Ids of `input.vertices` without edges are vertices of the graph, too, with degree 0."""
    vertex_columns: Sequence[str] | None
    """Columns of `input.vertices` to publish; null publishes all."""
    vertex_label: str | None
    """Column of `input.vertices` to show beside ids; null takes `label`, `name` or the only text column."""
    delta_path: str | None
    """Folder or fsspec URL of the Delta tables; null: `output.path` with date `current`, or with `.delta` added."""
    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"]
    """Compression of the Parquet files; of columns that a GPU encodes, where it saves a fifth."""
    row_group_rows: int
    """Most rows of a Parquet row group."""
    report: bool
    """Write `report.html`, a summary of the result on one page; `edgemill report` writes it later."""
    single_writer: bool
    """Assert that no other run writes to this path; permits an object store that cannot lock it."""
    rows_per_block: int | None
    """Most rows that one task reads. By default 2,000,000, with GPUs of several workers 8,000,000."""
    sample_rows: int
    """Most rows that planning reads before the run; figures of a larger input are estimates."""
    carrier: Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"]
    """Transport between workers. `auto` takes the first that works of `mailboxes` (GPUs), `shared-memory`, `dask`."""
    operator: Literal["hindex", "tridn", "streamdn"]
    """Of `fixpoint`: `hindex`; `tridn`, one at a time; `streamdn`, with estimates of λ besides, see docs/bounds.md."""
    permutations: int
    """Permutations of `streamdn`; each takes 8 bytes a vertex."""
    every_seconds: float | None
    """Seconds between checkpoints, or more: all take a tenth of the time at most; 0: at each chance; null: none."""
    every_exchanges: int | None
    """Iterations of `band` or `fixpoint` between checkpoints, beside `every_seconds`, whatever they take."""
    protocol: Literal["tcp", "ucxx"]
    """Protocol between GPU workers started here. `ucxx` sends GPU to GPU over NVLink; it needs distributed-ucxx."""
    threads_per_worker: int | None
    """Threads of a worker; null: an equal share of the cores, at most 16 for tasks and 48 for a kernel."""
    memory_limit_bytes: int | None
    """Memory limit of a worker; null: an equal share of the memory."""
    local_directory: str | os.PathLike[str] | None
    """Spill folder on each machine, for results above a worker's memory; null: Dask's, or the temporary folder."""
    device_memory_limit_bytes: int | None
    """GPU memory of a worker above which waiting results move to host memory; null: 80 % of the GPU."""
    least_workers: int | None
    """Workers of a running cluster to wait for, up to `waiting_seconds`; null: one."""
    tls_ca_file: str | os.PathLike[str] | None
    """PEM file of the CA that signs the cluster's certificates; null: Dask's configuration."""
    tls_cert_file: str | os.PathLike[str] | None
    """PEM file of the certificate of the driver, and of workers and a scheduler started here."""
    tls_key_file: str | os.PathLike[str] | None
    """PEM file of the key of that certificate, without a password; null: the key is in `tls_cert_file`."""
    dashboard_address: str | None
    """`host:port` of the dashboard of a cluster started here, such as `127.0.0.1:8787`; no password; null: none."""
    silence_seconds: float
    """Seconds without a heartbeat after which a worker started here is replaced and its tasks run again."""
    waiting_seconds: float
    """Seconds without a scheduler that answers, or without any usable worker, after which the run ends with code 4."""
    keep: int | None
    """Results to keep; a successful run removes older ones; null keeps all."""
    latest: bool
    """Keep a pointer to the newest converged result, at `output.path` with `latest` as the date."""
    compare: bool
    """Report the changes since the previous night. Costs as much time as `edgemill diff`."""
    incremental: Literal["auto", "always", "never"]
    """Start from an earlier result: where it is less work (`auto`), whatever it costs, or not (docs/update.md)."""
    least_share: float | None
    """Least share of the last night's edges; fewer, or ids of another type, end with exit code 3; null: any."""
    full_every: int
    """With `incremental: auto`, find λ of all edges from nothing after this many nights."""
    state: str | None
    """Folder or URL for what the next night starts from, ≤ 20 bytes an edge; null: the folder `state` of the result."""
    series: str | None
    """`output.path` with `{date}` unreplaced, which locates other nights' results. Filled in automatically."""
    metrics_host: str
    """Address that `metrics_port` binds to. It has no password: bind to another only in a trusted network."""
    textfile: str | os.PathLike[str] | None
    """Local `*.prom` file for node_exporter's textfile collector: exit code and times of the last run; null: none."""
    samples: int
    """Wedges in the sample. Four times as many halve the intervals."""
    seed: int
    """Seed of the sample. The same seed gives the same sample for any number of workers."""


class Keywords(RunKeywords, total=False):
    """What `mine` takes by name: also which programs run."""

    programs: Sequence[str] | ProgramsSection | Mapping[str, Any]
    """What is computed."""
    program: Sequence[str]
    """Your own programs, `module:Class` or `name=module:Class`: imported and run, see docs/own-programs.md."""
    max_supersteps: int | None
    """Stop each program after this many supersteps, with the values of then and exit code 5; null: no limit."""
    order: Literal["auto", "synchronous", "asynchronous"]
    """Order of supersteps of programs for which it does not matter, see docs/programs.md. Results are the same."""
    device_topology_bytes: int | None
    """GPU memory of a worker for edges; others stream from host memory. null: what is free (docs/programs.md)."""
