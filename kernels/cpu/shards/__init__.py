"""Rows cut by the third vertex: shard p stores, for every vertex, its neighbours of class p.

Start with `cut` (which class a vertex has), then `rows` (what a shard stores), `halves` (how an edge's count is kept
in two places), `removal` (how edges leave), `letters` (what groups tell each other) and `rounds` (what a group does
between two exchanges). A group of shards lies in one process; each of its threads works at one shard at a time, and
writes to no other.
"""

from .cut import Cut
from .group import Heard, ShardGroup
from .room import MEMORY, Room
from .rows import ShardRows, build_rows
from .sides import give_sides, take_sides

__all__ = [
    "MEMORY",
    "Cut",
    "Heard",
    "Room",
    "ShardGroup",
    "ShardRows",
    "build_rows",
    "give_sides",
    "take_sides",
]
