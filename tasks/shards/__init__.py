"""Peeling of a graph that is stored once, on any number of groups of shards that run in step.

May import `kernels`, `tasks.storage`, `tasks.ids`, `tasks.graph`, `tasks.ingest` and `tasks.publish`. Start with
`peeling`, the loop that every group runs, and the state in which a group stops or ends. `carriers` take its packets to
other groups. `supports` counts triangles; `group_edges` brings edges to their groups, and their λ back.
"""

from .assignment import first_shards
from .carriers.carrier import Carrier, GroupPacket, MemoryCarrier, Words
from .file_allocator import FileAllocator
from .gpu.groups import peel_groups_on_gpu
from .gpu.shard import ShardOnGpu
from .group_edges import ShardEdges
from .peeling import Figures, ShardState, peel_shards
from .warm import warm_shards, warm_shards_on_gpu

__all__ = [
    "Carrier",
    "Figures",
    "FileAllocator",
    "GroupPacket",
    "MemoryCarrier",
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
