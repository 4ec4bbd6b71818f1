"""manifest.json: what a run read, did and wrote. Written last, so a folder that has one is a complete result."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from ..tasks.errors import InputError, UsageError
from ..tasks.own_files import open_own, plain, plain_names
from ..tasks.places import Place, place_of
from ..tasks.sealed_json import is_whole, seal
from ..tasks.tables.titles import table_title
from .escaping import in_json

__all__ = [
    "FORMAT_VERSION",
    "MANIFEST_NAME",
    "BoundingRecord",
    "Counts",
    "EarlierRecord",
    "ExchangeRecord",
    "FrameRecord",
    "InputFile",
    "InputRecord",
    "LambdaRecord",
    "LayoutRecord",
    "Manifest",
    "OutputRecord",
    "PartitionRecord",
    "PlanRecord",
    "ProgramRecord",
    "ShardsRecord",
    "StageRecord",
    "TableRecord",
    "TracksRecord",
    "VerticesRecord",
    "WhereRecord",
    "is_exact",
    "is_result",
    "next_track",
    "read_manifest",
    "versions",
    "write_manifest",
]

MANIFEST_NAME = "manifest.json"
FORMAT_VERSION = 1


class _Record(BaseModel):
    # Unknown keys are ignored when reading: a later release may add some within one format version.
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    def _repr_html_(self) -> str:
        from .notebook.records import record_html

        return record_html(self)


class InputFile(_Record):
    """One file that was read."""

    path: str
    bytes: int
    rows: int | None
    """None where only reading tells: of CSV, TSV, JSON lines and Arrow."""


class TableRecord(_Record):
    """The table that was read."""

    format: Literal["delta", "iceberg"]
    location: str
    """Its folder: an absolute path, or a URL."""
    version: int
    """Version of a Delta table, snapshot id of an Iceberg table."""

    def __str__(self) -> str:
        return table_title(self.format, self.version)


class LayoutRecord(_Record):
    """How files that are not Parquet were read."""

    format: str
    delimiter: str
    """Of CSV and TSV."""
    header: bool
    """Whether their first line has names."""
    comment: str
    """Lines that begin with this are no rows; empty for none."""
    types: list[tuple[str, str]]
    """Columns of text that were read, and their Arrow types."""


class WhereRecord(_Record):
    """The condition of the rows that were wanted."""

    condition: str
    types: dict[str, str]
    """Arrow types of the columns that it names."""
    files_left_out: int
    """Files that were not read, as their paths say that no row is wanted; `counts.filtered` has rows of the others."""


class VerticesRecord(_Record):
    """The attributes of vertices that were read; rows = unknown + vertices of the graph - missing."""

    files: list[InputFile]
    id_column: str
    columns: list[str]
    """The attributes, as the table `attributes` has them after its `id`."""
    label: str | None
    """The attribute that is shown beside the id of a vertex; none if there is none."""
    rows: int
    unknown: int
    """Rows whose id is no vertex of the graph."""
    missing: int
    """Vertices of the graph without a row."""
    table: TableRecord | None = None
    """The Delta or Iceberg table whose live files these are; none for loose files."""


class FrameRecord(_Record):
    """The frame or graph that was given to `mine` from Python."""

    kind: str
    """Package and class, as `pandas.DataFrame`."""
    rows: int
    """Its rows, or its edges."""
    sha256: str
    """Of its two columns of ids, as they were written to a Parquet file for the time of the run; of a Dask DataFrame,
    of these digests of its partitions, one after the other.
    """

    def __str__(self) -> str:
        return f"{self.kind} of {self.rows:,} rows"


class InputRecord(_Record):
    """What was read."""

    files: list[InputFile]
    id_type: str
    """Arrow type of the ids, in the input and in the result; `uuid` is Arrow's and Parquet's type of UUIDs."""
    source_column: str
    target_column: str
    fingerprint: str | None = None
    """Changes with the input; none where its storage does not tell whether files have changed."""
    table: TableRecord | None = None
    """The Delta or Iceberg table whose live files these are; none for loose files."""
    format: str = "parquet"
    """Of the files: parquet, csv, tsv, jsonl or arrow."""
    layout: LayoutRecord | None = None
    """None of Parquet."""
    where: WhereRecord | None = None
    """None if all rows were wanted."""
    bipartite: Literal["prefix", "refuse"] | None = None
    """What was done about ids that are in both columns, as the setting says."""
    directed: bool = False
    """Whether edges lead from the source column to the target column, for programs."""
    notes: list[str] = []
    """What was guessed, in sentences."""
    frame: FrameRecord | None = None
    """The frame or graph that was read in place of files; none for files."""
    vertices: VerticesRecord | None = None
    """Attributes of vertices; none if the run was given none."""


class Counts(_Record):
    """Totals; rows = self_loops + duplicates + nulls_dropped + filtered + edges."""

    rows: int
    self_loops: int
    duplicates: int
    """Rows beyond the first of an edge, whatever their direction."""
    nulls_dropped: int
    filtered: int = 0
    """Rows that do not meet `input.where`."""
    edges: int
    vertices: int
    triangles: int


class PartitionRecord(_Record):
    """Sizes of one partition, or of one group of shards, of edges with triangles; owned = inner + peripheral + cut."""

    partition: int
    owned: int
    """Edges that this partition decides."""
    ghost: int
    """Edges of other partitions that share a triangle with an owned edge; groups of shards have none."""
    inner: int
    """Owned edges with both ends and all common neighbours in this partition; in a group of shards, with both ends."""
    peripheral: int
    """Owned edges with both ends here and a common neighbour elsewhere."""
    cut: int
    """Owned edges with an end in another partition."""
    vertices: int


class PlanRecord(_Record):
    """What was expected before the run."""

    rows_looked_at: int
    """None, if one partition fits whatever they hold: edges and vertices are the most there can be then."""
    edges: int
    vertices: int
    replication: float
    """Copies of an edge over all partitions, one at least."""
    worker_bytes: int
    """Memory of a worker that spills nothing."""
    reason: str
    """Why so many partitions."""


class ShardsRecord(_Record):
    """How a graph was peeled that is stored once, in shards."""

    shards: int
    """Shards over all groups."""
    groups: int
    """Groups of shards, each on one worker."""
    carrier: str
    """What carried: memory of one process, mailboxes of GPUs, shared-memory of a host, Dask's connections, or nccl."""
    relayed: str = ""
    """Why threads carried between GPUs, and their kernels did not; empty where they did, and on CPUs."""
    exchanges: int
    """Meetings of all groups."""
    rounds: int
    """Exchanges after which edges were removed."""
    alarms: int
    """Halves of a count that fell so low that the other shard was asked."""
    reports: int
    """Losses of a half that were told to the other shard."""
    grants: int
    """Counts that were split again."""
    bytes: int
    """Bytes that groups sent each other."""
    busiest: float
    """Entries of rows that the busiest shard read, over the mean of all."""


class BoundingRecord(_Record):
    """How λ was found."""

    method: Literal["peel", "band", "fixpoint"]
    steps: int
    exchanges: int
    evaluations: int
    """Times that an edge was looked at, over all partitions."""
    shards: ShardsRecord | None = None
    """How shards were peeled; none for partitions."""
    compact_rows: bool = False
    """Whether a GPU held compact rows, as it had no room for others."""


@dataclass(frozen=True, slots=True)
class ExchangeRecord:
    """One exchange between partitions. A run may have thousands: this takes a fifth of a model's memory."""

    exchange: int
    step: int
    open_bands: int
    settled: int
    """Edges whose λ is known, after the exchange."""
    unsettled: int
    messages: int
    bytes: int
    evaluations: int
    seconds: float


class StageRecord(_Record):
    """Wall time of one stage, without the stages within it: `keep` and `restore` may lie within `bound`.

    All tasks are of one stage. What the sum lacks of the run's time is code that is loaded, workers that start, the
    driver's look at the input, and stages that a lost worker ended.
    """

    stage: str
    seconds: float


class LambdaRecord(_Record):
    """Distribution of λ over the edges."""

    max: int
    sum: int
    histogram: list[tuple[int, int]]
    """Pairs of λ and the number of edges that have it, ascending."""


class DenseRecord(_Record):
    """Rows of the tables of dense groups."""

    components: int
    """Of the hierarchy."""
    roots: int
    """Connected components of the graph, among these."""
    dn_graphs: int
    members: int
    """Vertices in a DN-graph."""


class ProgramRecord(_Record):
    """How a program ran."""

    name: str
    parameters: dict[str, Any]
    """Its settings."""
    columns: list[str]
    """What it added to the table of vertices."""
    supersteps: int
    converged: bool
    """Whether it came to its end: by its tolerance, or after as many supersteps as it was to make."""
    moved: float
    """How far all vertices moved in the last superstep, or how many moved."""
    groups: int
    """Blocks of the graph that it ran on, each on one worker."""
    carrier: str
    """What carried between groups, as for shards."""
    entries: int
    """Ends of edges that were read, over all supersteps."""
    bytes: int
    """Bytes that groups sent each other."""
    seconds: float


class EarlierRecord(_Record):
    """The result of an earlier night."""

    day: str
    path: str
    run: str


class TracksRecord(_Record):
    """How the DN-graphs got their tracks; dn_graphs = continued + again + new."""

    previous: EarlierRecord | None
    """The result of the night before, whose tracks were taken over; none if all are new."""
    continued: int
    """DN-graphs with the track of one of the night before."""
    again: int
    """DN-graphs with the track that began in an earlier result of the same night."""
    new: int
    """DN-graphs with a track of their own."""
    next: int
    """A number above all tracks that this result and those before it in its series have given out."""


class OutputRecord(_Record):
    """One file of the result."""

    path: Annotated[str, AfterValidator(plain_names)]
    """Relative to the result's folder."""
    rows: int
    bytes: int
    sha256: str


class Manifest(_Record):
    """All of manifest.json."""

    format: Literal["edgemill-result"] = "edgemill-result"
    format_version: int = FORMAT_VERSION
    run: Annotated[str, AfterValidator(plain)]
    """The run's id, as in log.jsonl."""
    versions: dict[str, str]
    settings: dict[str, Any]
    """Settings in effect, without storage options."""
    started: AwareDatetime
    finished: AwareDatetime
    input: InputRecord
    counts: Counts
    partitions: list[PartitionRecord]
    plan: PlanRecord | None = None
    """None in results of earlier releases."""
    device: str = "cpu"
    """What found triangles and λ: `cpu`, or the name of a GPU."""
    bounding: BoundingRecord
    exchanges: list[ExchangeRecord]
    stages: list[StageRecord]
    lam: LambdaRecord = Field(alias="lambda")
    """λ; the lower ends of the edges' intervals if the run did not converge."""
    lambda_high: LambdaRecord | None = None
    """The upper ends, if the run did not converge."""
    converged: bool
    unsettled: int = 0
    """Edges whose interval holds more than one value."""
    dense: DenseRecord | None = None
    """None if the run did not converge, and in results of earlier releases."""
    tracks: TracksRecord | None = None
    """None if the run did not converge, and in results of earlier releases."""
    programs: list[ProgramRecord] = []
    """Programs that ran beside λ, in the order of their columns."""
    outputs: list[OutputRecord]

    @property
    def seconds(self) -> float:
        """Wall time of the run."""
        return (self.finished - self.started).total_seconds()

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.counts if number)
        state = "converged" if self.converged else f"{self.unsettled} edges unsettled"
        return f"Manifest(run {self.run!r} of {self.finished:%Y-%m-%d %H:%M}: {counts}; {state}; model_dump() has all)"

    __str__ = __repr__

    @property
    def seconds_outside(self) -> float:
        """What the stages' sum lacks of the run's time."""
        return max(0.0, self.seconds - sum(stage.seconds for stage in self.stages))


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a result depends on, none of them imported."""
    packages = ("edgemill", "dask", "distributed", "numba", "numpy", "pyarrow")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json, with its own checksum, into `folder` and wait until it is on the disk."""
    with open(open_own(folder / MANIFEST_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(seal(in_json(manifest.model_dump_json(by_alias=True, indent=1))))
        file.flush()
        os.fsync(file.fileno())


def is_result(folder: Place | str | os.PathLike[str]) -> bool:
    """Whether `folder` holds a manifest of ours, of any format version."""
    try:
        return _content(place_of(folder).read(MANIFEST_NAME)) is not None
    except OSError:
        return False


def is_exact(folder: Place) -> bool:
    """Whether `folder` holds a manifest of ours, of any format version, that says that λ is exact.

    Raises UsageError if that cannot be read.
    """
    try:
        return (_content(folder.read(MANIFEST_NAME)) or {}).get("converged") is True
    except OSError as error:
        raise UsageError(f"cannot read {folder}/{MANIFEST_NAME}: {error.strerror or error}") from error


def next_track(folder: Place) -> int:
    """A number above all tracks that the result in `folder` and those before it gave out; 1 if no result with tracks
    is there.

    Raises UsageError if its manifest cannot be read, StoreLost where a store does not answer.
    """
    try:
        tracks = (_content(folder.read(MANIFEST_NAME)) or {}).get("tracks")
    except OSError as error:
        raise UsageError(f"cannot read {folder}/{MANIFEST_NAME}: {error.strerror or error}") from error
    number = tracks.get("next") if isinstance(tracks, dict) else None
    return number if isinstance(number, int) else 1


def _content(text: bytes | None) -> dict[str, Any] | None:
    try:
        content = json.loads(text or b"")
    except ValueError:
        return None
    return content if isinstance(content, dict) and content.get("format") == "edgemill-result" else None


def read_manifest(out: Place | str | os.PathLike[str]) -> Manifest:
    """The manifest of the result in the folder `out`.

    Raises UsageError if there is no such folder, InputError if it is not a result or its manifest is damaged.
    """
    folder = place_of(out)
    text = folder.read(MANIFEST_NAME)
    content = _content(text)
    if content is None:
        if not (os.path.exists(folder.url) if folder.is_local else folder.names()):
            raise UsageError(f"there is no result at {folder}: no such folder")
        raise InputError(f"{folder} is not an edgemill result: it has no {MANIFEST_NAME} written by edgemill")
    path = f"{folder}/{MANIFEST_NAME}"
    if not is_whole(text or b""):
        raise InputError(f"{path} is damaged: it is not what edgemill wrote")
    if content.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {content.get('format_version')}; this edgemill reads {FORMAT_VERSION}"
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise InputError(f"{path} is damaged: {place}: {problem['msg']}") from error
