"""Peeling of a graph whose rows are cut by the third vertex: shard p stores, for every vertex, its neighbours of class
p.

May import `kernels.graph`, `kernels.runtime` and `kernels.cpu.arrays`. Start with `cut` (the class of a vertex), then
`rows` (what a shard stores), `half_counts` (how two shards share the triangle count of an edge), `removal` (how edges
are removed), `packets` (what groups send each other) and `rounds` (the work of a group between two exchanges).
`triangles` counts the triangles before peeling. The shards of a group belong to one process. Each thread works on one
shard at a time and writes to no other.
"""

from ...runtime.sizes import NUMPY_ALLOCATOR, Allocator
from .cut import Cut
from .endpoint_words import read_endpoint_words, write_endpoint_words
from .group import RoundTotals, ShardGroup
from .rows import ShardRows, build_rows

__all__ = [
    "NUMPY_ALLOCATOR",
    "Allocator",
    "Cut",
    "RoundTotals",
    "ShardGroup",
    "ShardRows",
    "build_rows",
    "read_endpoint_words",
    "write_endpoint_words",
]
