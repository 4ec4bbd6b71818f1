"""Whether a plan in shards on CPUs leaves its last edges to bands, or to one worker, and how many."""

from __future__ import annotations

from dataclasses import replace

from ...kernels.graph import MAX_LOCAL_VERTICES
from .plan import Plan


def with_bands(shards: Plan, least_edges: int) -> Plan:
    """The plan in shards that stop when a worker can hold what is left, if that saves time; else the plan as it is.

    Several hosts then peel bands, each with at least `least_edges` of the edges left. Workers of one host share
    its cores: one of them peels all that is left with the threads of all.
    """
    capacity = shards.capacity
    if capacity.workers == 1 or capacity.in_process or capacity.device_bytes or not capacity.memory_bytes:
        return shards
    if shards.graph.vertices.most > MAX_LOCAL_VERTICES:
        return shards
    hosts = min(capacity.hosts, max(1, shards.remaining_edges(True) // least_edges))
    left = shards.remaining_edges(hosts > 1)
    found = replace(shards, bands_at=left, bands_on=hosts)
    if not left or not found.seconds_saved > 0:
        return shards
    workers, how = f"each of {hosts} workers holds", "peels in bands of λ"
    if hosts == 1:
        workers, how = "one worker holds", f"peels with the {capacity.host_threads} cores of its host"
    if left >= shards.edges * shards.graph.with_triangles:
        then = f"to count triangles; {workers} all edges that have some, and {how}"
    else:
        then = f"until ~{float(f'{left:.3g}'):,.0f} edges are left, which {workers} and {how}"
    return replace(found, reason=f"{shards.reason}, {then}")
