"""manifest.json: what a run read, did and wrote. A run writes it last, so a folder with a manifest is a whole result.

The order is: what every run records, the input, what a run that computes λ adds, updates, the whole manifest, and how
it is read and written.
"""

from __future__ import annotations

import os
import platform
import re
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    ValidationError,
    field_validator,
)
from pydantic.dataclasses import dataclass

from ...tasks.errors import InputError, UsageError
from ...tasks.inputs.sources import Measure
from ...tasks.storage.atomic import write_new
from ...tasks.storage.checksums import is_intact, json_object, with_checksum_key
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.own_files import NOT_A_FILE, plain_name, plain_path
from ...tasks.tables import table_title
from ..messages.wording import in_json
from ..settings.declared_programs import LAMBDA
from ..settings.setting_names import naming_keywords

Int64: TypeAlias = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A number in a list, which `Record` does not check."""
_TABLE_FILE = re.compile(r"(?:edgemill-[^/]+/)?[a-z_]+/[^/]+\.parquet")


class Record(BaseModel):
    """An object in the manifest. Reading ignores unknown keys: later releases may add keys within a format version."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, defer_build=True)

    @field_validator("*")
    @classmethod
    def _fits_64_bits(cls, value: Any) -> Any:
        """No count of a run is larger, and no type of NumPy or Arrow."""
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError("it does not fit 64 bits")
        return value

    def _repr_html_(self) -> str:
        from ..messages.html import record_html

        return record_html(self)


class Counts(Record):
    """Totals; rows = self_loops + duplicates + nulls_dropped + filtered + edges."""

    rows: int
    self_loops: int
    duplicates: int
    """Rows after the first of an edge, in either direction."""
    nulls_dropped: int
    filtered: int = 0
    """Rows that do not match `input.where`."""
    comments: int = 0
    """Lines of CSV and TSV that were skipped as comments. They are no rows."""
    edges: int
    vertices: int
    triangles: int | None
    """Null in a run without λ, which does not count them, and where λ counts butterflies."""
    butterflies: int | None = None
    """Null unless λ counts them."""

    @property
    def figures(self) -> int | None:
        """The triangles or butterflies that λ counts; None in a run without λ."""
        return self.triangles if self.butterflies is None else self.butterflies


class PlanRecord(Record):
    """What the plan expected before the run."""

    rows_looked_at: int
    """Rows in the sample; if 0, `edges` and `vertices` are upper limits."""
    edges: int
    vertices: int
    worker_bytes: int
    """Memory that a worker needs to spill nothing."""
    reason: str
    """Why the plan has this number of partitions."""
    triangles: int | None = None
    """Null if the plan read no row, or too few of them."""
    seconds: float | None = None
    """Predicted duration of the run without vertex programs; null on GPUs, and where `triangles` is null."""
    programs: dict[str, float] = Field(default_factory=dict)
    """Predicted seconds of vertex programs by name: of PageRank on GPUs, and of some in one block on CPUs. From the
    edges and vertices of the run if `rows_looked_at` is 0.
    """


class StageRecord(Record):
    """Wall time of a stage, without stages within it, as `keep` within `bound`.

    The sum lacks the time to load code, to start workers and to inspect the input.
    """

    stage: str
    seconds: float


class EarlierRecord(Record):
    """The result of an earlier night."""

    day: str
    path: str
    run: str


class TracksRecord(Record):
    """How tracks were assigned to groups: DN-graphs, or the listed groups of a program. Their number is continued +
    again + new.
    """

    previous: EarlierRecord | None
    """The result of the night before, whose tracks were continued; null if all tracks are new."""
    continued: int
    """Groups with a track of the night before."""
    again: int
    """Groups with a track that began in an earlier result of the same night."""
    new: int
    """Groups with a new track."""
    next: int
    """A number above all tracks of this result and of earlier results of its series."""
    refused: EarlierRecord | None = None
    """The result of the night before if its tracks could not be continued."""


class ProgramRecord(Record):
    """How a vertex program ran."""

    name: str
    parameters: dict[str, Any]
    """Its settings."""
    columns: list[str]
    """Columns that it added to the table of vertices."""
    supersteps: int
    converged: bool
    """Whether it ended by itself."""
    moved: float
    """Sum of all changes in the last superstep, or the number of vertices that changed."""
    groups: int
    """Blocks of the graph, each on one worker."""
    carrier: str
    """How groups sent data to each other, as for shards."""
    entries: int
    """Ends of edges that were read, over all supersteps."""
    bytes: int
    """Bytes that groups sent to each other."""
    seconds: float
    order: str = "synchronous"
    """`asynchronous` if groups went on alone between exchanges."""
    exchanges: int = 0
    """Exchanges within supersteps."""
    begun: Literal["nothing", "earlier", "kept"] = "nothing"
    """`earlier` if it went on from the values of the earlier result; `kept` if its values follow from those."""
    source: str | None = None
    """`module:Class` of a program of the user; null for programs of edgemill."""
    sha256: str | None = None
    """Of the source of its module."""
    facts: dict[str, Any] = Field(default_factory=dict)
    """Facts of the whole graph by name, see docs/programs.md; of programs that search from many sources."""
    edge_columns: list[str] = Field(default_factory=list)
    """Columns that it added to the table of edges."""
    meanings: dict[str, str] = Field(default_factory=dict)
    """What the values of each of its columns say."""
    id_columns: list[str] = Field(default_factory=list)
    """Those of its columns that hold ids, of vertices or of groups."""

    group_column: str | None = None
    """Its column with the innermost group of each vertex; the table of groups has this name with an s."""
    group_level: int | None = None
    """The level of groups that are listed by default; null for the innermost."""
    tracks: TracksRecord | None = None
    """How tracks were assigned to the groups that are listed; null if it finds none, and in results of earlier
    releases.
    """

    @property
    def has_distances(self) -> bool:
        """Whether it filled the table of distances."""
        return bool(self.parameters.get("table")) and "hop_plot" in self.facts


def _table_file(path: str) -> str:
    if not _TABLE_FILE.fullmatch(plain_path(path)):
        raise ValueError(f"{path!r} is not the name of a file of a table")
    return path


class OutputRecord(Record):
    """One file of the result."""

    path: Annotated[str, AfterValidator(_table_file)]
    """Relative to the result's folder: the table and the file, in object stores after the folder of the run."""
    rows: NonNegativeInt
    bytes: NonNegativeInt
    sha256: str


class InputFile(Record):
    """One input file."""

    path: str
    bytes: int
    rows: int | None
    """Null except for Parquet."""
    sha256: str | None = None
    """Null unless the file is on a disk and the next night may start from the result."""


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
    """Files that were not read, since their paths exclude a match."""


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
    """Arrow type of the ids, in the input and in the result, such as `int64` or `uuid`."""
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
    """How ids that are in both columns were treated."""
    two_sided: bool = False
    """Whether every edge joins two sides, which are the columns: λ then counts butterflies."""
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


class PartitionRecord(Record):
    """Sizes of the only partition, or of one group of shards, of edges with triangles; owned = inner + cut."""

    partition: int
    owned: int
    """Edges whose λ this partition computes."""
    inner: int
    """Owned edges whose ends are both of the group's classes; all edges of the only partition."""
    cut: int
    """Owned edges with an end of another group's classes."""
    vertices: int


class ShardsRecord(Record):
    """How shards, which store the graph once, were peeled."""

    shards: int
    """Shards over all groups."""
    groups: int
    """Groups of shards, each on one worker."""
    carrier: str
    """How groups sent data: memory of one process, GPU mailboxes, shared memory, Dask's connections, or nccl."""
    relayed: str = ""
    """Why threads of the host, and not kernels, sent data between GPUs; empty if kernels did, and on CPUs."""
    exchanges: int
    """Exchanges between all groups."""
    rounds: int
    """Exchanges after which edges were removed."""
    alarms: int
    """Times that half of a count fell so low that the other shard was asked."""
    reports: int
    """Losses of a half that were reported to the other shard."""
    grants: int
    """Counts that were split again."""
    bytes: int
    """Bytes that groups sent to each other."""
    busiest: float
    """Row entries that the busiest shard read, over the mean of all shards."""
    handed_over: int = 0
    """Edges that were left when shards stopped, since a worker could hold them; 0 if shards peeled to the end.
    """


class BandsRecord(Record):
    """How bands of λ were peeled, on workers that each hold a copy of the graph."""

    workers: int
    """Workers that held a copy."""
    bands: int
    passes: int
    """Passes of the coarse filter."""
    exchanges: int
    """Passes whose lowered counts were added up over the workers."""
    taken_back: int
    """Passes of jumps that went too far."""
    bytes: int
    """Bytes that a worker received in the filter."""
    filter_seconds: float
    band_seconds: float


class StreamErrorRecord(Record):
    """How far estimates of `streamdn` are from λ, over the edges with triangles; errors as shares of λ."""

    median: float
    mean: float
    top_tenth: float
    """Median over the tenth of the edges with the highest λ."""
    exact: float
    """Share of edges whose estimate is λ."""
    close: float
    """Share of edges whose estimate is within a tenth of λ."""
    below: float
    """Share of edges whose estimate is below λ."""
    support: float
    """Median error of the estimated supports."""


class StreamRecord(Record):
    """Estimates of λ by `bounding.operator=streamdn`, which are no bounds."""

    column: str
    """Column of the table of edges."""
    permutations: int
    passes: int
    """Passes over the edges that lowered estimates."""
    seconds: float
    error: StreamErrorRecord | None
    """Null if λ is not known."""


class BoundingRecord(Record):
    """How λ was computed."""

    method: Literal["peel", "band", "fixpoint", "update"]
    """`update`: from the λ of an earlier result and what changed since."""
    steps: int
    exchanges: int
    evaluations: int
    """Evaluations of an edge, over all workers."""
    shards: ShardsRecord | None = None
    """How shards were peeled; null without any."""
    bands: BandsRecord | None = None
    """How bands were peeled; null without any."""
    compact_rows: bool = False
    """Whether a GPU used compact rows, since it had no room for full rows."""
    estimates: StreamRecord | None = None
    """Estimates of λ beside it; null without any."""


@dataclass(frozen=True, slots=True)
class ExchangeRecord:  # a dataclass: a run may have thousands, and one takes a fifth of a model's memory
    """One iteration of `band` or `fixpoint`, or all exchanges between shards."""

    exchange: Int64
    step: Int64
    open_bands: Int64
    settled: Int64
    """Edges whose λ is known after the exchange."""
    unsettled: Int64
    messages: Int64
    bytes: Int64
    evaluations: Int64
    seconds: float


class LambdaRecord(Record):
    """Distribution of λ over the edges."""

    max: int
    sum: int
    histogram: list[tuple[Int64, Int64]]
    """Pairs of λ and its number of edges, ascending."""
    vertices: list[tuple[Int64, Int64]] | None = None
    """The same of vertices with edges, by their highest λ. Null in results of earlier releases."""


class DenseRecord(Record):
    """Rows of the tables of dense groups."""

    components: int
    """Of the hierarchy."""
    roots: int
    """Connected components of the graph, which are among these."""
    dn_graphs: int
    members: int
    """Vertices in a DN-graph."""


class UpdateRecord(Record):
    """From which result, by which changes, and how a result was brought up to date."""

    base: str
    """Folder or URL of the earlier result."""
    base_run: str
    full_run: str
    """The last run of the chain that found λ of all edges from nothing."""
    nights: int
    """Updates since `full_run`; 0 if this run found λ from nothing."""
    way: Literal["changes", "whole"]
    """Whether λ was found from the changes, or from nothing."""
    reason: str
    """Why it went this way."""
    inserted: int
    """Edges that the earlier result lacks."""
    deleted: int
    """Edges of the earlier result that are gone."""
    present: int = 0
    """Edges to insert that the earlier result has already; 0 for a whole input."""
    absent: int = 0
    """Edges to delete that the earlier result lacks; 0 for a whole input."""
    in_both: int = 0
    """Edges to delete and to insert, which are in the result; 0 for a whole input."""
    repeated: int = 0
    """Rows of the batch after the first of an edge; 0 for a whole input."""
    vertices_new: int
    vertices_gone: int
    changed: int | None = None
    """Edges of both results whose λ differs; null if λ was found from nothing."""
    triangles: int = 0
    """Triangles that the update looked at, also if it was given up."""
    expected: int | None = None
    """Work in triangles, by samples of the changed edges; null without samples."""
    files_kept: int = 0
    """Files that are those of the earlier result."""


FORMAT_VERSION = 1
BUTTERFLIES_VERSION = 2
"""The format version of results whose λ counts butterflies."""


def _distinct(outputs: list[OutputRecord]) -> list[OutputRecord]:
    """Raises ValueError if two files have one name: an update takes each over under its table and name."""
    if len({tuple(output.path.rsplit("/", 2)[-2:]) for output in outputs}) < len(outputs):
        raise ValueError("two files have one name")
    return outputs


class RunManifest(Record):
    """What any run records."""

    format: Literal["edgemill-result"] = "edgemill-result"
    format_version: int = FORMAT_VERSION
    """2 if λ counts butterflies, which earlier releases would take for triangles; else 1."""
    run: Annotated[str, AfterValidator(plain_name)]
    """The run's id, as in log.jsonl."""
    versions: dict[str, str]
    settings: dict[str, dict[str, Any]]
    """Settings in effect, without storage options."""
    started: AwareDatetime
    finished: AwareDatetime
    input: InputRecord
    counts: Counts
    plan: PlanRecord | None = None
    """Null in results of earlier releases."""
    device: str = "cpu"
    """Where the kernels ran: `cpu`, or the name of a GPU."""
    stages: list[StageRecord]
    programs: list[ProgramRecord] = Field(default_factory=list)
    """Vertex programs, in the order of their columns."""
    update: UpdateRecord | None = None
    """Null if the result was not made from an earlier one."""
    outputs: Annotated[list[OutputRecord], AfterValidator(_distinct)]

    @field_validator("settings")
    @classmethod
    def _names_programs(cls, settings: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Later runs read the names of programs; other settings are compared or shown only."""
        for name in ("run", "own"):
            names = settings.get("programs", {}).get(name, [])
            if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
                raise ValueError(f"programs.{name} is no list of names")
        return settings

    @property
    def seconds(self) -> float:
        """Wall time of the run."""
        return (self.finished - self.started).total_seconds()

    @property
    def seconds_outside(self) -> float:
        """Wall time of the run that is in no stage."""
        return max(0.0, self.seconds - sum(stage.seconds for stage in self.stages))

    @property
    def seconds_for_lambda(self) -> float:
        """Wall time of the run without its vertex programs: what the plan predicts."""
        return max(0.0, self.seconds - sum(program.seconds for program in self.programs))

    @property
    def predicted_programs(self) -> list[tuple[str, float, float]]:
        """Name, predicted and actual seconds of programs: by their first batches of sources, else by the plan. The
        former are those of all batches.
        """
        planned = {} if self.plan is None else self.plan.programs
        found = []
        for program in self.programs:
            facts = program.facts
            if facts.get("predicted_seconds") is not None:
                found.append((program.name, float(facts["predicted_seconds"]), float(facts["batch_seconds"])))
            elif program.name in planned:
                found.append((program.name, planned[program.name], program.seconds))
        return found


class Manifest(RunManifest):
    """All of manifest.json."""

    partitions: list[PartitionRecord]
    how_bounded: BoundingRecord | None = Field(alias="bounding")
    """Null in a run without λ."""
    exchanges: list[ExchangeRecord]
    lambda_low: LambdaRecord | None = Field(alias="lambda")
    """λ; the lower ends of the edges' intervals if a limit ended bounding; null in a run without λ."""
    lambda_high: LambdaRecord | None = None
    """The upper ends of the intervals if a limit ended bounding."""
    converged: bool
    """Whether no limit ended the run: λ is exact, and all programs have converged."""
    unsettled: int = 0
    """Edges whose interval holds more than one value."""
    dense: DenseRecord | None = None
    """Null without exact λ, and in results of earlier releases."""
    tracks: TracksRecord | None = None
    """Null without exact λ, and in results of earlier releases."""

    def tracks_of(self, groups: str) -> TracksRecord | None:
        """How tracks were assigned to DN-graphs ("lambda"), or to groups of a program."""
        if groups == LAMBDA:
            return self.tracks
        return next((program.tracks for program in self.programs if program.name == groups), None)

    @property
    def every_tracks(self) -> list[TracksRecord]:
        """The records of tracks of DN-graphs and of all programs."""
        return [own for own in (self.tracks, *(program.tracks for program in self.programs)) if own is not None]

    @property
    def has_lambda(self) -> bool:
        """Whether the run computed λ, or intervals that contain it."""
        return self.lambda_low is not None

    @property
    def measure(self) -> Measure:
        """What λ counts."""
        return "butterflies" if self.input.two_sided else "triangles"

    @property
    def exact(self) -> bool:
        """Whether the result has the λ of every edge."""
        return self.has_lambda and self.lambda_high is None

    @property
    @naming_keywords()
    def lam(self) -> LambdaRecord:
        """λ, or the lower ends of the intervals. Raises UsageError for a run without λ."""
        if self.lambda_low is None:
            raise self._without_lambda()
        return self.lambda_low

    @property
    @naming_keywords()
    def bounding(self) -> BoundingRecord:
        """How λ was computed. Raises UsageError for a run without λ."""
        if self.how_bounded is None:
            raise self._without_lambda()
        return self.how_bounded

    def _without_lambda(self) -> UsageError:
        ran = ",".join(program.name for program in self.programs)
        return UsageError(f"run {self.run} computed {ran} and no λ: run again with --programs lambda,{ran}")

    @property
    def unfinished(self) -> list[str]:
        """What a limit ended, as sentences."""
        found = [] if self.lambda_high is None else [f"{self.unsettled:,} edges have an interval instead of lambda"]
        return found + [
            f"{program.name} has not converged after {program.supersteps:,} supersteps"
            for program in self.programs
            if not program.converged
        ]

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.counts if number)
        state = "converged" if self.converged else "; ".join(self.unfinished)
        return f"Manifest(run {self.run!r} of {self.finished:%Y-%m-%d %H:%M}: {counts}; {state}; model_dump() has all)"

    __str__ = __repr__


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a result depends on; imports none of them."""
    return dict(_versions())


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    packages = ("edgemill", "dask", "distributed", "numba", "numpy", "pyarrow")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


MANIFEST_NAME = "manifest.json"
_MOST_TRACKS = 2**62
"""A manifest with more tracks is damaged; each has a number of 64 bits."""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json, with its own checksum, into `folder`, and flush it to the disk (fsync). Raises OSError."""
    write_new(folder / MANIFEST_NAME, with_checksum_key(in_json(manifest.model_dump_json(by_alias=True, indent=1))))


def read_manifest(out: Folder | str | os.PathLike[str]) -> Manifest:
    """The manifest of the result in the folder `out`.

    Raises UsageError if there is no such folder, InputError if it is not a result or its manifest is damaged.
    """
    folder = folder_at(out)
    path = f"{folder}/{MANIFEST_NAME}"
    try:
        text = folder.read(MANIFEST_NAME)
    except OSError as error:
        if error.errno in NOT_A_FILE:
            raise InputError(f"{path} is damaged: it is a link, a pipe or a device, and not a file") from error
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    content = _parse(text)
    if content is None:
        if not (os.path.exists(folder.url) if folder.is_local else folder.names()):
            raise UsageError(f"there is no result at {folder}: no such folder")
        raise InputError(f"{folder} is not an edgemill result: it has no {MANIFEST_NAME} written by edgemill")
    if not is_intact(text or b""):
        raise InputError(f"{path} is damaged: it is not what edgemill wrote")
    if content.get("format_version") not in (FORMAT_VERSION, BUTTERFLIES_VERSION):
        raise InputError(
            f"{path} has format version {content.get('format_version')}; this edgemill reads {FORMAT_VERSION} and "
            f"{BUTTERFLIES_VERSION}"
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        raise InputError(f"{path} is damaged: {key}: {problem['msg']}") from error


def is_result(folder: Folder | str | os.PathLike[str]) -> bool:
    """Whether `folder` has a manifest of edgemill, of any format version."""
    try:
        return _parse(folder_at(folder).read(MANIFEST_NAME)) is not None
    except OSError:
        return False


def is_exact(folder: Folder) -> bool:
    """Whether `folder` has a manifest of edgemill, of any format version, of a run that no limit ended.

    Raises UsageError if it cannot be read.
    """
    return _any_version(folder).get("converged") is True


def run_of(folder: Folder) -> str | None:
    """The id of the run that made the result in `folder`, of any format version; None if there is no result.

    Raises UsageError if the manifest cannot be read, StoreLost if a store does not answer.
    """
    run = _any_version(folder).get("run")
    return run if isinstance(run, str) else None


def next_track(folder: Folder, groups: str = LAMBDA) -> int:
    """A number above all tracks of the result in `folder` and of earlier results of its series; 1 if it has no tracks.
    `groups` are DN-graphs, or those of a program by its name.

    Raises UsageError if the manifest cannot be read, StoreLost if a store does not answer.
    """
    holder = _any_version(folder)
    if groups != LAMBDA:
        programs = holder.get("programs")
        known = [own for own in programs if isinstance(own, dict)] if isinstance(programs, list) else []
        holder = next((own for own in known if own.get("name") == groups), {})
    tracks = holder.get("tracks")
    number = tracks.get("next") if isinstance(tracks, dict) else None
    return number if isinstance(number, int) and 0 < number < _MOST_TRACKS else 1


def folders_in_use(folder: Folder) -> set[str] | None:
    """Names of the folders in `folder` with files that a manifest of any format version lists; None if it cannot tell.

    Raises UsageError if the manifest cannot be read, StoreLost if a store does not answer.
    """
    content = _any_version(folder)
    outputs = content.get("outputs", [])
    if not isinstance(outputs, list):
        return None
    paths = [output.get("path") if isinstance(output, dict) else None for output in outputs]
    return {path.partition("/")[0] for path in paths if isinstance(path, str)} if all(paths) else None


def _any_version(folder: Folder) -> dict[str, Any]:
    """The keys of a manifest of any format version; empty if there is no manifest. Raises UsageError, StoreLost."""
    try:
        return _parse(folder.read(MANIFEST_NAME)) or {}
    except OSError as error:
        raise UsageError(f"cannot read {folder}/{MANIFEST_NAME}: {error.strerror or error}") from error


def _parse(text: bytes | None) -> dict[str, Any] | None:
    try:
        content = json_object(text or b"")
    except ValueError:
        return None
    return content if content.get("format") == "edgemill-result" else None
