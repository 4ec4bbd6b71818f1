"""Rows cut by the third vertex: shard p stores, for every vertex, its neighbours of class p.

Start with `cut` (which class a vertex has), then `rows` (what a shard stores), `halves` (how an edge's count is kept
in two places) and `rounds` (how edges leave). A group of shards lies in one process; each of its threads works at one
shard at a time, and writes to no other.
"""

from .cut import Cut
from .group import Leaving, ShardGroup
from .halves import Messages
from .rows import NO_HALF, EdgeHalves, Pairs, ShardRows, build_rows, pair_halves

__all__ = [
    "NO_HALF",
    "Cut",
    "EdgeHalves",
    "Leaving",
    "Messages",
    "Pairs",
    "ShardGroup",
    "ShardRows",
    "build_rows",
    "pair_halves",
]
