"""Records of the manifest of any run: counts, plan, stages, vertex programs and files."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, field_validator

from ....tasks.storage.own_files import plain_path

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
        from ...results.notebook.record import record_html

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
    """Null in a run without λ, which does not count them."""


class PlanRecord(Record):
    """What the plan expected before the run."""

    rows_looked_at: int
    """Rows in the sample. 0 if one partition holds any graph of this size: `edges` and `vertices` are upper limits."""
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
    """Wall time of one stage, without the stages within it: `keep` and `restore` may run within `bound`.

    Every task belongs to one stage. The sum lacks the time to load code, to start workers and to inspect the input,
    and stages that a lost worker ended.
    """

    stage: str
    seconds: float


class ProgramRecord(Record):
    """How a vertex program ran."""

    name: str
    parameters: dict[str, Any]
    """Its settings."""
    columns: list[str]
    """Columns that it added to the table of vertices."""
    supersteps: int
    converged: bool
    """Whether it reached its tolerance, or made the number of supersteps that it was to make."""
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
    """Those of its columns that hold ids of vertices."""

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
