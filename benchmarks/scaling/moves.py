"""Bytes that a run moves between GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from .machines import Graph, Machines
from .model import Model
from .spans import Span, exactly

INGESTING, STREAMS = "ingest, publishing: network", "triangles: streams, counts"
REMOVALS, MESSAGES = "removal: sent to all", "removal: messages"
"""Terms of the time of a run that are bytes."""
IDS = Span(2, 25)
"""Bytes an edge of ids, degrees, ranks and names, as counted in 4 to 64 partitions."""
STREAMED = Span(4.3, 8.5)
"""Bytes an edge of a stream: 4, and 8 for each low end of a bucket, of which there are 0.04 to 0.57 an edge."""


@dataclass(frozen=True)
class Move:
    """Bytes that an exchange brings to each GPU, or takes from it."""

    term: str
    """Of the time of a run."""
    exchange: str
    formula: str
    each: Span
    shared: bool = False
    """Whether all GPUs need the same bytes, so that a node needs them once."""


def moves(model: Model, machines: Machines, graph: Graph) -> list[Move]:
    """All exchanges of a run. w is the size of a vertex number before ranks exist."""
    w = 4 if graph.vertices < 2**31 else 8
    own, local = graph.edges / machines.shards, graph.local / machines.shards
    return [
        Move(INGESTING, "ids, degrees, ranks, names", "2 to 25 E / P", IDS * own),
        Move(INGESTING, "pairs", "2w E / P", exactly(2 * w * own)),
        Move(INGESTING, "edges to owners", "8 E / P", exactly(8 * own)),
        Move(STREAMS, "streams", "4 E, and 8 for each low end of a bucket", STREAMED * graph.edges, True),
        Move(STREAMS, "partial counts", "4 E", exactly(4 * graph.edges), True),
        Move(INGESTING, "sums of owners", "4 E / P", exactly(4 * own)),
        Move(INGESTING, "edges with triangles", "28 L / P", exactly(28 * local)),
        Move(REMOVALS, "removals", "8 L", exactly(8 * graph.local), True),
        Move(MESSAGES, "alarms, reports, grants", "16 for each, 2 to 4 L / P of them", model.messages * (16 * local)),
        Move(INGESTING, "λ", "8 L / P", exactly(8 * local)),
    ]


def away(move: Move, machines: Machines, relayed: bool) -> Span:
    """The bytes of a move that come from other nodes or go there, for each GPU."""
    share = 1 - 1 / machines.nodes
    return move.each * (share / machines.gpus if move.shared and relayed else share)
