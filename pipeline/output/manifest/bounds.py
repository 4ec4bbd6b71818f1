"""Records of the manifest of a run that computes λ: how it was computed, its distribution, dense groups and tracks."""

from __future__ import annotations

from typing import Literal

from pydantic.dataclasses import dataclass

from .records import Int64, Record


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
    """Edges that were left when shards stopped, as a worker could hold all of these: bands followed, or one worker
    peeled them alone. 0 if shards peeled to the end.
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
    """Pairs of λ and the number of vertices whose highest λ it is, ascending; without vertices that have no edge. Null
    in results of earlier releases.
    """


class DenseRecord(Record):
    """Rows of the tables of dense groups."""

    components: int
    """Of the hierarchy."""
    roots: int
    """Connected components of the graph, which are among these."""
    dn_graphs: int
    members: int
    """Vertices in a DN-graph."""


class EarlierRecord(Record):
    """The result of an earlier night."""

    day: str
    path: str
    run: str


class TracksRecord(Record):
    """How tracks were assigned to DN-graphs; dn_graphs = continued + again + new."""

    previous: EarlierRecord | None
    """The result of the night before, whose tracks were continued; null if all tracks are new."""
    continued: int
    """DN-graphs with a track of the night before."""
    again: int
    """DN-graphs with a track that began in an earlier result of the same night."""
    new: int
    """DN-graphs with a new track."""
    next: int
    """A number above all tracks of this result and of earlier results of its series."""
    refused: EarlierRecord | None = None
    """The result of the night before if its tracks could not be continued; its run is empty if it cannot be read."""
