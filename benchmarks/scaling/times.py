"""Seconds of a run by term. No terms overlap."""

from __future__ import annotations

from math import ceil, log2

from .machines import Graph, Layout, Machines
from .model import EACH_GPU, EACH_SHARD, STAGES, Model
from .moves import INGESTING, MESSAGES, REMOVALS, STREAMS, away, moves
from .spans import Span, exactly, sum_of

STREAM_EDGES = 2**22
"""Edges of a stream that pass by a group at a time, at least (pipeline/stages/sharding.py)."""
SORTED_BYTES = 8 * 40
"""A GPU sorts at most as many packed rows together as it has bytes over these (pipeline/stages/limits.py)."""
PACKED_IDS = 2**31
"""Ids that rows are packed for (tasks/ingest/packed)."""
ROWS_OF_AN_ID = 16
"""Rows for each id of R-MAT, isolated vertices included."""
BLOCK_ROWS, LEAST_ROWS, THREADS = 8_000_000, 250_000, 16
"""Rows of a block that is not packed, at most and at least, and threads of a worker (pipeline/plan/choice.py)."""
RESULTS_TOGETHER = 4
"""Results of one worker from which a task makes a parcel (pipeline/cluster/execution.py)."""
NCCL_PEERS = 3
"""Other processes of each when NCCL was measured."""


def times(model: Model, machines: Machines, graph: Graph, layout: Layout) -> dict[str, Span]:
    """Term → seconds, with a shard and a bucket for each GPU."""
    sums, shards, exchanges = model.sums, machines.shards, model.exchanges_of(graph.edges)
    triangles, local = graph.triangles / shards, graph.local / shards
    support, remove, look = sums["support"].constants, sums["remove"].constants, sums["look"].constants
    own = model.uneven * triangles
    removal = own * remove["triangle of a shard"]
    removal += exactly(local * look["edge of a shard"] + sums["outside"](1, local))
    return {
        "ingest, publishing: work": sum_of([_stage(model, machines, graph.edges, stage) for stage in STAGES]),
        INGESTING: _network(model, machines, graph, layout, INGESTING),
        "scheduler": scheduler(model, machines, tasks(machines, graph.edges, layout)),
        "triangles: work": own * support["triangle of a shard"] + exactly(sums["sort"](graph.edges / shards)),
        "triangles: each edge in each shard": sums["support"].range_of(EACH_SHARD) * graph.edges,
        STREAMS: _network(model, machines, graph, layout, STREAMS),
        "removal: work": removal * model.in_a_run,
        "removal: each edge in each shard": sums["remove"].range_of(EACH_SHARD) * graph.local * model.in_a_run,
        REMOVALS: _network(model, machines, graph, layout, REMOVALS),
        MESSAGES: _network(model, machines, graph, layout, MESSAGES),
        "removal: exchanges": exchanges * (exchange_seconds(model, machines, layout) + exactly(look["exchange"])),
    }


def total(model: Model, machines: Machines, graph: Graph, layout: Layout) -> Span:
    """Seconds of a run."""
    return sum_of(list(times(model, machines, graph, layout).values()))


def exchange_seconds(model: Model, machines: Machines, layout: Layout) -> Span:
    """Seconds of an exchange in which little is sent."""
    inside = within_a_node(model, machines.gpus) if layout.by_node else exactly(0)
    peers = (machines.nodes if layout.by_node else machines.shards) - 1
    if layout.way == "steps":
        return inside + machines.step * ceil(log2(machines.nodes))
    if layout.way == "nccl":
        four = model.sums["nccl"](1)
        return inside + Span(four, four * max(1.0, peers / NCCL_PEERS))
    return inside + model.sums["packets"].span(peers, 1)


def within_a_node(model: Model, gpus: int) -> Span:
    """Seconds of an exchange between the GPUs of a node."""
    meet = model.sums["meet"]
    return meet.range_of(EACH_GPU) * gpus + exactly(meet.constants["exchange"])


def scheduler(model: Model, machines: Machines, count: float) -> Span:
    """Seconds of the scheduler for so many tasks: at best, and as measured."""
    return Span(machines.task, max(machines.task, model.sums["scheduler"].constants["task"])) * count


def tasks(machines: Machines, edges: float, layout: Layout, rows: float = 0) -> float:
    """Tasks of a run: parcels of three exchanges between blocks and buckets, or of one if rows are packed, and of eight
    others, and of the streams. A parcel is for a pair of workers, of up to RESULTS_TOGETHER blocks, and for as many
    receivers as a worker runs at once.

    `rows` are those of a block, if it is not to be as large as it is by default.
    """
    shards, groups = machines.shards, machines.nodes if layout.by_node else machines.shards
    blocks, exchanges = (edges / rows, 3) if rows else blocks_of(machines, edges)
    batches = max(1.0, min(shards, 2 * groups, edges / STREAM_EDGES))
    streams = batches * (2 * groups + min(groups, batches) * (shards / batches + 1))
    if layout.bundled:
        return exchanges * blocks + 8 * shards + streams
    parcels = min(exchanges, 2) * max(shards, blocks / RESULTS_TOGETHER) + (exchanges > 1) * max(
        shards, blocks / THREADS
    )
    return parcels * shards + 4 * shards**2 + 4 * shards * groups + streams


def blocks_of(machines: Machines, edges: float) -> tuple[float, int]:
    """Blocks that exchange data with all buckets, and the exchanges: few of both if rows are packed."""
    rows = edges / machines.shards
    if edges / ROWS_OF_AN_ID < PACKED_IDS:
        return machines.shards * ceil(rows / (machines.memory / SORTED_BYTES)), 1
    return edges / min(BLOCK_ROWS, max(rows / THREADS, LEAST_ROWS)), 3


def _stage(model: Model, machines: Machines, edges: float, stage: str) -> Span:
    """At best each GPU works like the machine with one, at worst a node like the machine with four."""
    alone, four = (model.sums[f"{stage} {gpus}"] for gpus in (1, 4))
    best, worst = alone.span(edges / machines.shards, 1), four.span(edges / machines.nodes, 1)
    return Span(min(best.least, worst.least), max(best.most, worst.most))


def _network(model: Model, machines: Machines, graph: Graph, layout: Layout, term: str) -> Span:
    own = [move for move in moves(model, machines, graph) if move.term == term]
    outside = sum_of([away(move, machines, layout.by_node) for move in own])
    inside = sum_of([move.each for move in own if move.shared and layout.by_node])
    return outside * machines.network + inside * machines.nvlink
