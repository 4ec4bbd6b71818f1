"""Peeling of a graph that is stored once, on any number of groups of shards that run in step.

May import `kernels`, `tasks.storage`, `tasks.ids`, `tasks.graph` and `tasks.ingest`. Start with `peeling`, the loop
that every group runs. `state` has what a group starts and ends with, and `carriers` what takes its packets to other
groups. `supports` counts triangles, `group_edges` brings edges to their groups; `answers` returns λ.
"""

from .assignment import first_shards
from .carriers.carrier import Carrier, MemoryCarrier, Packet, Words
from .file_allocator import FileAllocator
from .gpu.groups import peel_groups_on_gpu
from .gpu.shard import ShardOnGpu
from .group_edges import ShardEdges
from .peeling import peel_shards
from .state import Figures, ShardState
from .warm import warm_shards, warm_shards_on_gpu

__all__ = [
    "Carrier",
    "Figures",
    "FileAllocator",
    "MemoryCarrier",
    "Packet",
    "ShardEdges",
    "ShardOnGpu",
    "ShardState",
    "Words",
    "first_shards",
    "peel_groups_on_gpu",
    "peel_shards",
    "warm_shards",
    "warm_shards_on_gpu",
]
