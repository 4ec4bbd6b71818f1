"""The keywords of `edgemill.mine`, made by docs/making/keywords.py from pipeline/settings.py: do not edit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

__all__ = [
    "BoundingSection",
    "CheckpointSection",
    "ClusterSection",
    "IngestSection",
    "InputSection",
    "Keywords",
    "LabelsSection",
    "MonitoringSection",
    "NightlySection",
    "OutputSection",
    "PagerankSection",
    "PartitioningSection",
    "ProgramsSection",
]


class InputSection(TypedDict, total=False):
    """Where the edges are."""

    path: str | os.PathLike[str]
    """Edges: a file, a folder, a glob, a table (see docs/tables.md) or an fsspec URL of one of these."""
    format: Literal["auto", "parquet", "csv", "tsv", "jsonl", "arrow"]
    """`parquet`, `csv`, `tsv`, `jsonl`, `arrow`, or `auto`: as the names of the files say, see docs/inputs.md."""
    where: str | None
    """Condition of the rows that are wanted, in SQL, such as `weight > 0.5`; none: all, see docs/inputs.md."""
    table_version: int | None
    """Version of the Delta table, or snapshot id of the Iceberg table, that is the input; none: the current one."""
    source_column: str | None
    """Column of one end of an edge; left out: `src` or `source`, else one of the only two columns."""
    target_column: str | None
    """Column of the other end; left out: `dst` or `target`, else one of the only two columns."""
    bipartite: Literal["prefix", "refuse"] | None
    """For two sets of ids: `prefix` puts the column's name before each id, `refuse` ends a run with an id in both."""
    directed: bool
    """Edges lead from the source column to the target column, which programs heed (docs/programs.md); λ does not."""
    id_type: Literal["auto", "int64", "uint64", "string"]
    """Ids in CSV, TSV and JSON lines: `int64`, `uint64`, `string`, or `auto`: as the first rows have them."""
    header: bool | None
    """Whether CSV and TSV begin with the names of columns; none: found out."""
    delimiter: str | None
    """One character between the fields of CSV and TSV, or `tab` or `space`; none: found out."""
    comment: str | None
    """Lines of CSV and TSV that begin with this are left out, "" for none; none: `#` or `%` if the file begins so."""
    nulls: Literal["refuse", "drop"]
    """Rows with a null id: `refuse` ends the run, `drop` leaves them out and counts them."""
    complete_marker: str | None
    """File whose presence in the input's folder says that it is complete, such as `_SUCCESS`; else exit code 8."""
    least_rows: int | None
    """An input with fewer rows, duplicates counted, is not complete: exit code 8; none: any number will do."""
    vertices: str | os.PathLike[str] | None
    """Attributes of vertices in Parquet, a row each: a file, a folder, a glob, a table or a URL; none: none."""
    vertex_id: str | None
    """Column of the ids in `input.vertices`; left out: `id` or `vertex`."""
    vertex_columns: tuple[str, ...] | None
    """Columns of `input.vertices` that are published with the result; left out: all but the ids."""
    vertex_label: str | None
    """The one that is shown beside ids; left out: `label` or `name`, else the only one that is text."""
    storage_options: dict[str, Any]
    """Options for fsspec, such as credentials; never printed and never written to the result."""


class OutputSection(TypedDict, total=False):
    """Where the result goes."""

    path: str | os.PathLike[str]
    """Folder of the result, local or shared, or fsspec URL in an object store; must not exist yet."""
    overwrite: bool
    """Replace an earlier result at that path, once the new one is complete."""
    format: Literal["parquet", "delta"]
    """`delta`: the tables of the newest result are Delta tables as well, in a place that stays the same."""
    delta_path: str | None
    """Folder or fsspec URL of the Delta tables; none: `output.path` with `current` for the date, or `.delta` added."""
    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"]
    """Parquet compression: `zstd`, `snappy`, `gzip`, `lz4` or `none`."""
    row_group_rows: int
    """Most rows in one Parquet row group."""
    report: bool
    """Make `report.html`, the result on one page, with it; `edgemill report` makes it later."""
    single_writer: bool
    """No other run writes at that path: take an object store that cannot keep two runs apart."""
    storage_options: dict[str, Any]
    """Options for fsspec, such as credentials; never printed and never written to the result."""


class IngestSection(TypedDict, total=False):
    """How the input is read."""

    rows_per_block: int
    """Rows read by one task, at most: consecutive row groups up to about this many, fewer where memory is short."""
    sample_rows: int
    """Rows that a plan looks at, at most, before anything runs: of an input with more, all it says is a guess."""


class PartitioningSection(TypedDict, total=False):
    """How the edges are spread over partitions."""

    count: int | Literal["auto"]
    """Partitions, or groups of shards, 1 to 4096; `auto`: as many as are quickest and fit, see docs/planning.md."""
    method: Literal["auto", "range", "hash"]
    """Vertex to partition, see docs/partitioning.md; `auto`: `range`. Without effect on shards."""


class BoundingSection(TypedDict, total=False):
    """How λ is found."""

    method: Literal["auto", "peel", "band", "fixpoint"]
    """`peel` (in one piece, or in shards), or `band` or `fixpoint` (over partitions, for study); `auto`: `peel`."""
    carrier: Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"]
    """Between workers that peel shards: GPUs' `mailboxes`, `shared-memory`, `dask`; `auto`: the first; or `nccl`."""
    operator: Literal["hindex", "tridn"]
    """Operator of `fixpoint`: `hindex`, or `tridn`, which lowers by one."""
    max_exchanges: int | None
    """End `band` or `fixpoint` after so many exchanges with intervals (exit code 5); a run that peels refuses it."""
    max_seconds: float | None
    """End the search for λ after this many seconds, with an interval for each edge (exit code 5); none: never."""


class CheckpointSection(TypedDict, total=False):
    """What a run keeps for the one that follows if it is ended."""

    path: str | os.PathLike[str] | None
    """Folder or fsspec URL that all workers see, for a folder of this output; none: a hidden one beside the output."""
    every_seconds: float | None
    """Work is kept when so much more would be lost; none: never."""
    every_exchanges: int | None
    """Of `band` and `fixpoint`: work is kept after so many exchanges too; none: never. Peeling goes by the time."""
    fresh: bool
    """Start anew, whatever an earlier run has left; with `output.overwrite` even if the result is there already."""
    storage_options: dict[str, Any]
    """Options for fsspec; never printed and never written to the result."""


class ClusterSection(TypedDict, total=False):
    """What computes."""

    device: Literal["auto", "cpu", "gpu"]
    """What computes: `cpu`, `gpu`, or `auto`: the GPU where every worker has one, else the CPU."""
    workers: int | None
    """Worker processes to start on this machine, on `gpu` one for each GPU; none: one worker inside this process."""
    protocol: Literal["tcp", "ucxx"]
    """Between GPU workers started here: `tcp`, or `ucxx` (GPU to GPU over NVLink; needs distributed-ucxx)."""
    threads_per_worker: int | None
    """Threads of each worker; none: the machine's cores shared out evenly."""
    memory_limit_bytes: int | None
    """Memory of each worker, in bytes; none: the machine's memory shared out evenly."""
    local_directory: str | os.PathLike[str] | None
    """Folder on each machine for results that exceed a worker's memory; none: Dask's, or that of temporary files."""
    device_memory_limit_bytes: int | None
    """GPU memory of each worker above which results that wait move to the host's; none: 80 % of the GPU's."""
    scheduler: str | None
    """Address of a running Dask scheduler, such as `tcp://host:8786`."""
    scheduler_file: str | os.PathLike[str] | None
    """File that a running Dask scheduler wrote (`dask scheduler --scheduler-file`)."""
    least_workers: int | None
    """Workers that a running cluster must have first; waits `waiting_seconds` for them and its scheduler; none: one."""
    tls_ca_file: str | os.PathLike[str] | None
    """PEM file of the authority that signs the certificates of the cluster; none: Dask's configuration."""
    tls_cert_file: str | os.PathLike[str] | None
    """PEM file of the certificate that the driver, and workers and scheduler started here, show each other."""
    tls_key_file: str | os.PathLike[str] | None
    """PEM file of that certificate's key, without a password; none: it is in `tls_cert_file`."""
    dashboard_address: str | None
    """Of a cluster started here, `host:port`; it has no password, so keep to `127.0.0.1:8787`; none: no dashboard."""
    silence_seconds: float
    """A worker process started here that gives no sign of life for so long is replaced, and its tasks done again."""
    waiting_seconds: float
    """The run ends (exit code 4) when no worker could run its tasks, or had come, for so long."""


class NightlySection(TypedDict, total=False):
    """A run that is repeated day by day, with `{date}` in its paths."""

    date: str | None
    """Day in place of `{date}` in the paths: `2026-11-20`, `today` or `yesterday`, in UTC; none: today."""
    keep: int | None
    """Results of so many nights stay; after a night that succeeded the oldest of more are removed; none: all stay."""
    latest: bool
    """Keep a pointer at `output.path`, with `latest` in place of the date, to the newest result that converged."""
    compare: bool
    """Say in the report what changed since the night before; takes the time of `edgemill diff`."""
    series: str | None
    """`output.path` as given, with `{date}`, by which other nights' results are found; filled in by itself."""


class MonitoringSection(TypedDict, total=False):
    """How to look on."""

    metrics_port: int | None
    """Port where Prometheus finds figures of the run, see docs/monitoring.md; 0: a free one; none: no port."""
    metrics_host: str
    """Address that the port is bound to; it has no password, so name another where you trust all who reach it."""
    textfile: str | os.PathLike[str] | None
    """File `*.prom` on a disk here for node_exporter's textfile collector: how and when runs ended; none: none."""
    performance_report: str | os.PathLike[str] | None
    """File on a disk here for Dask's performance report of the run; an HTML page there is replaced; none: none."""


class ProgramsSection(TypedDict, total=False):
    """What is found of the graph."""

    run: tuple[str, ...]
    """`lambda`, and programs that add columns to the vertices, such as `lambda,pagerank`: docs/programs.md."""


class PagerankSection(TypedDict, total=False):
    """The program pagerank."""

    damping: float
    """How likely a walk goes on; else it starts anew."""
    tolerance: float
    """Ends when all ranks together moved less in a superstep."""
    iterations: int | None
    """Ends after so many supersteps instead; none: by the tolerance."""


class LabelsSection(TypedDict, total=False):
    """The program labels."""

    iterations: int
    """Supersteps, unless no label changes before."""


class Keywords(TypedDict, total=False):
    """What `mine` takes by name: whole sections of settings, and single settings."""

    input: str | os.PathLike[str] | InputSection | Mapping[str, Any]
    """Where the edges are."""
    output: str | os.PathLike[str] | OutputSection | Mapping[str, Any]
    """Where the result goes."""
    ingest: IngestSection | Mapping[str, Any]
    """How the input is read."""
    partitioning: PartitioningSection | Mapping[str, Any]
    """How the edges are spread over partitions."""
    bounding: BoundingSection | Mapping[str, Any]
    """How λ is found."""
    checkpoint: CheckpointSection | Mapping[str, Any]
    """What a run keeps for the one that follows if it is ended."""
    cluster: ClusterSection | Mapping[str, Any]
    """What computes."""
    nightly: NightlySection | Mapping[str, Any]
    """A run that is repeated day by day, with `{date}` in its paths."""
    monitoring: MonitoringSection | Mapping[str, Any]
    """How to look on."""
    programs: tuple[str, ...] | ProgramsSection | Mapping[str, Any]
    """What is found of the graph."""
    pagerank: PagerankSection | Mapping[str, Any]
    """The program pagerank."""
    labels: LabelsSection | Mapping[str, Any]
    """The program labels."""
    source_column: str | None
    """Column of one end of an edge; left out: `src` or `source`, else one of the only two columns."""
    target_column: str | None
    """Column of the other end; left out: `dst` or `target`, else one of the only two columns."""
    table_version: int | None
    """Version of the Delta table, or snapshot id of the Iceberg table, that is the input; none: the current one."""
    input_format: Literal["auto", "parquet", "csv", "tsv", "jsonl", "arrow"]
    """`parquet`, `csv`, `tsv`, `jsonl`, `arrow`, or `auto`: as the names of the files say, see docs/inputs.md."""
    where: str | None
    """Condition of the rows that are wanted, in SQL, such as `weight > 0.5`; none: all, see docs/inputs.md."""
    bipartite: Literal["prefix", "refuse"] | None
    """For two sets of ids: `prefix` puts the column's name before each id, `refuse` ends a run with an id in both."""
    directed: bool
    """Edges lead from the source column to the target column, which programs heed (docs/programs.md); λ does not."""
    vertices: str | os.PathLike[str] | None
    """Attributes of vertices in Parquet, a row each: a file, a folder, a glob, a table or a URL; none: none."""
    vertex_id: str | None
    """Column of the ids in `input.vertices`; left out: `id` or `vertex`."""
    overwrite: bool
    """Replace an earlier result at that path, once the new one is complete."""
    output_format: Literal["parquet", "delta"]
    """`delta`: the tables of the newest result are Delta tables as well, in a place that stays the same."""
    partitions: int | Literal["auto"]
    """Partitions, or groups of shards, 1 to 4096; `auto`: as many as are quickest and fit, see docs/planning.md."""
    method: Literal["auto", "peel", "band", "fixpoint"]
    """`peel` (in one piece, or in shards), or `band` or `fixpoint` (over partitions, for study); `auto`: `peel`."""
    max_exchanges: int | None
    """End `band` or `fixpoint` after so many exchanges with intervals (exit code 5); a run that peels refuses it."""
    max_seconds: float | None
    """End the search for λ after this many seconds, with an interval for each edge (exit code 5); none: never."""
    fresh: bool
    """Start anew, whatever an earlier run has left; with `output.overwrite` even if the result is there already."""
    device: Literal["auto", "cpu", "gpu"]
    """What computes: `cpu`, `gpu`, or `auto`: the GPU where every worker has one, else the CPU."""
    workers: int | None
    """Worker processes to start on this machine, on `gpu` one for each GPU; none: one worker inside this process."""
    scheduler: str | None
    """Address of a running Dask scheduler, such as `tcp://host:8786`."""
    scheduler_file: str | os.PathLike[str] | None
    """File that a running Dask scheduler wrote (`dask scheduler --scheduler-file`)."""
    date: str | None
    """Day in place of `{date}` in the paths: `2026-11-20`, `today` or `yesterday`, in UTC; none: today."""
    metrics_port: int | None
    """Port where Prometheus finds figures of the run, see docs/monitoring.md; 0: a free one; none: no port."""
    performance_report: str | os.PathLike[str] | None
    """File on a disk here for Dask's performance report of the run; an HTML page there is replaced; none: none."""
    id_type: Literal["auto", "int64", "uint64", "string"]
    """Ids in CSV, TSV and JSON lines: `int64`, `uint64`, `string`, or `auto`: as the first rows have them."""
    header: bool | None
    """Whether CSV and TSV begin with the names of columns; none: found out."""
    delimiter: str | None
    """One character between the fields of CSV and TSV, or `tab` or `space`; none: found out."""
    comment: str | None
    """Lines of CSV and TSV that begin with this are left out, "" for none; none: `#` or `%` if the file begins so."""
    nulls: Literal["refuse", "drop"]
    """Rows with a null id: `refuse` ends the run, `drop` leaves them out and counts them."""
    complete_marker: str | None
    """File whose presence in the input's folder says that it is complete, such as `_SUCCESS`; else exit code 8."""
    least_rows: int | None
    """An input with fewer rows, duplicates counted, is not complete: exit code 8; none: any number will do."""
    vertex_columns: tuple[str, ...] | None
    """Columns of `input.vertices` that are published with the result; left out: all but the ids."""
    vertex_label: str | None
    """The one that is shown beside ids; left out: `label` or `name`, else the only one that is text."""
    delta_path: str | None
    """Folder or fsspec URL of the Delta tables; none: `output.path` with `current` for the date, or `.delta` added."""
    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"]
    """Parquet compression: `zstd`, `snappy`, `gzip`, `lz4` or `none`."""
    row_group_rows: int
    """Most rows in one Parquet row group."""
    report: bool
    """Make `report.html`, the result on one page, with it; `edgemill report` makes it later."""
    single_writer: bool
    """No other run writes at that path: take an object store that cannot keep two runs apart."""
    rows_per_block: int
    """Rows read by one task, at most: consecutive row groups up to about this many, fewer where memory is short."""
    sample_rows: int
    """Rows that a plan looks at, at most, before anything runs: of an input with more, all it says is a guess."""
    carrier: Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"]
    """Between workers that peel shards: GPUs' `mailboxes`, `shared-memory`, `dask`; `auto`: the first; or `nccl`."""
    operator: Literal["hindex", "tridn"]
    """Operator of `fixpoint`: `hindex`, or `tridn`, which lowers by one."""
    every_seconds: float | None
    """Work is kept when so much more would be lost; none: never."""
    every_exchanges: int | None
    """Of `band` and `fixpoint`: work is kept after so many exchanges too; none: never. Peeling goes by the time."""
    protocol: Literal["tcp", "ucxx"]
    """Between GPU workers started here: `tcp`, or `ucxx` (GPU to GPU over NVLink; needs distributed-ucxx)."""
    threads_per_worker: int | None
    """Threads of each worker; none: the machine's cores shared out evenly."""
    memory_limit_bytes: int | None
    """Memory of each worker, in bytes; none: the machine's memory shared out evenly."""
    local_directory: str | os.PathLike[str] | None
    """Folder on each machine for results that exceed a worker's memory; none: Dask's, or that of temporary files."""
    device_memory_limit_bytes: int | None
    """GPU memory of each worker above which results that wait move to the host's; none: 80 % of the GPU's."""
    least_workers: int | None
    """Workers that a running cluster must have first; waits `waiting_seconds` for them and its scheduler; none: one."""
    tls_ca_file: str | os.PathLike[str] | None
    """PEM file of the authority that signs the certificates of the cluster; none: Dask's configuration."""
    tls_cert_file: str | os.PathLike[str] | None
    """PEM file of the certificate that the driver, and workers and scheduler started here, show each other."""
    tls_key_file: str | os.PathLike[str] | None
    """PEM file of that certificate's key, without a password; none: it is in `tls_cert_file`."""
    dashboard_address: str | None
    """Of a cluster started here, `host:port`; it has no password, so keep to `127.0.0.1:8787`; none: no dashboard."""
    silence_seconds: float
    """A worker process started here that gives no sign of life for so long is replaced, and its tasks done again."""
    waiting_seconds: float
    """The run ends (exit code 4) when no worker could run its tasks, or had come, for so long."""
    keep: int | None
    """Results of so many nights stay; after a night that succeeded the oldest of more are removed; none: all stay."""
    latest: bool
    """Keep a pointer at `output.path`, with `latest` in place of the date, to the newest result that converged."""
    compare: bool
    """Say in the report what changed since the night before; takes the time of `edgemill diff`."""
    series: str | None
    """`output.path` as given, with `{date}`, by which other nights' results are found; filled in by itself."""
    metrics_host: str
    """Address that the port is bound to; it has no password, so name another where you trust all who reach it."""
    textfile: str | os.PathLike[str] | None
    """File `*.prom` on a disk here for node_exporter's textfile collector: how and when runs ended; none: none."""
    damping: float
    """How likely a walk goes on; else it starts anew."""
    tolerance: float
    """Ends when all ranks together moved less in a superstep."""
