"""Memory of a GPU, and the sizes of graphs at which a run breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import exp, log

from edgemill.kernels.gpu_shards import MAX_PEERS
from edgemill.pipeline.stages import gpu_memory as plan
from edgemill.pipeline.stages.limits import GPU_FILL

from .machines import FLAT, Graph, Machines
from .model import Model
from .spans import Span, exactly, sum_of
from .times import exchange_seconds, scheduler, tasks

ROUND_EDGES = 2**31 - 2**29
"""Edges that may leave in one round on CPUs (kernels/cpu/shards/group.py)."""
VERTICES = 2**32 - 2
"""Ranks are uint32 (tasks/shards/assignment.py)."""
MERGING = 60
"""Bytes of a row of a bucket while the bucket is merged (pipeline/stages/ingesting.py)."""


def peeling_memory(machines: Machines, graph: Graph) -> dict[str, Span]:
    """Term → bytes of each GPU while it peels."""
    shards, largest = machines.shards, Span(1, plan.LARGEST)
    halves = (2 / shards - 1 / shards**2) * graph.local
    return {
        "row headers": exactly(plan.VERTEX_BYTES * graph.vertices),
        "halves": largest * ((plan.HALF_BYTES + plan.ARRIVED_BYTES) * halves),
        "entries": largest * (plan.ENTRY_BYTES * 2 * graph.local / shards),
        "mailboxes of the node": exactly(plan.mailbox_bytes(int(graph.local), machines.gpus)),
        "the GPU's bucket": exactly(plan.BUCKET_BYTES * graph.edges / shards),
    }


def counting_memory(machines: Machines, graph: Graph) -> Span:
    """Bytes of each GPU while edges are streamed to count triangles."""
    owned = graph.edges / machines.shards
    batch = min(graph.edges, max(plan.BATCH_EDGES, owned / 2))
    fixed = plan.PASSED_VERTEX_BYTES * graph.vertices + plan.PASSING_BYTES * batch + plan.BUCKET_BYTES * owned
    return Span(1, plan.LARGEST) * (plan.OWNED_BYTES * owned) + exactly(fixed)


def room(machines: Machines) -> float:
    """Bytes of a GPU that may be used."""
    return GPU_FILL * machines.memory


@dataclass(frozen=True)
class Limit:
    """Something that breaks, and the edges at which it does: R-MAT's curves, and a graph of ten edges a vertex."""

    term: str
    where: str
    rmat: float
    sparse: float


def limits(model: Model, machines: Machines) -> list[Limit]:
    """What breaks, the first one first. Each entry has a quantity that is 1 at the limit."""
    shards = machines.shards
    few = replace(machines, nodes=MAX_PEERS // machines.gpus)
    meeting = exchange_seconds(model, machines, FLAT).most
    over: Mapping[tuple[str, str], Callable[[Graph], float]] = {
        (f"memory of {MAX_PEERS} GPUs, peeling", "`MAX_PEERS`"): lambda g: _held(few, g),
        (f"memory of {shards} GPUs, peeling", "16 B a vertex"): lambda g: _held(machines, g),
        (f"memory of {shards} GPUs, counting triangles", "32 B a vertex"): lambda g: (
            counting_memory(machines, g).most / room(machines)
        ),
        ("vertices", "2^32 - 2, ranks are uint32"): lambda g: g.vertices / VERTICES,
        ("edges of the largest round, on CPUs", "2^31 - 2^29 (`MAX_ROUND_EDGES`)"): lambda g: (
            model.largest.most * g.local / ROUND_EDGES
        ),
        ("halves of a shard", "2^31"): lambda g: 2 * plan.LARGEST * g.local / shards / 2**31,
        ("rows of a bucket", "int32"): lambda g: g.edges / shards / 2**31,
        ("memory while a bucket is merged", f"{MERGING} B a row"): lambda g: (
            MERGING * g.edges / shards / room(machines)
        ),
        ("an hour of the scheduler, as measured", f"{shards} groups, blocks of 8 M rows"): lambda g: (
            scheduler(model, machines, tasks(machines, g.edges, FLAT)).most / 3600
        ),
        ("an hour of exchanges, at worst", f"{shards} groups, Dask's comms"): lambda g: (
            model.exchanges_of(g.edges).most * meeting / 3600
        ),
    }
    found = [
        Limit(term, where, _edges_at(own, model.rmat), _edges_at(own, lambda edges: sparse(model, edges)))
        for (term, where), own in over.items()
    ]
    return sorted(found, key=lambda one: one.sparse)


def _held(machines: Machines, graph: Graph) -> float:
    return sum_of(list(peeling_memory(machines, graph).values())).most / room(machines)


def sparse(model: Model, edges: float) -> Graph:
    """As R-MAT, with ten edges a vertex."""
    return replace(model.rmat(edges), vertices=edges / 10)


def _edges_at(over: Callable[[Graph], float], graph: Callable[[float], Graph]) -> float:
    """The edges at which a growing quantity is 1, by bisection of logarithms."""
    least, most = log(1e6), log(1e16)
    for _ in range(100):
        middle = (least + most) / 2
        least, most = (middle, most) if over(graph(exp(middle))) < 1 else (least, middle)
    return exp(least)
