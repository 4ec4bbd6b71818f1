"""Peeling of a graph that is stored once: rows cut by the third vertex, on any number of groups in step.

Start with `peeling`, the loop that every group runs; `carrier` has what takes its letters to the others, `edges` what
a group starts from, and `state` what it ends with. May import `kernels`.
"""

from .carrier import Carrier, Letter, MemoryCarrier, Words
from .edges import ShardEdges
from .file_room import FileRoom
from .gpu_groups import peel_groups_on_gpu
from .groups import first_shards
from .on_gpu import ShardOnGpu
from .peeling import peel_shards
from .state import Figures, ShardState
from .warm import warm_shards, warm_shards_on_gpu

__all__ = [
    "Carrier",
    "Figures",
    "FileRoom",
    "Letter",
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
