"""Blocks whose entries do not fit the memory in which a program runs.

May import `programs.block`, `programs.program` and the kernels. Start with `placing`, which decides where the entries
of a block lie: in memory, in pinned host memory that is streamed past a GPU, or in mapped files. `cost` predicts what
streaming costs.
"""

from ....kernels.runtime.sizes import Allocator
from .collecting import collect_block_in_pieces
from .cost import StreamCost
from .placing import place_block, place_entries, share_of_room

__all__ = ["Allocator", "StreamCost", "collect_block_in_pieces", "place_block", "place_entries", "share_of_room"]
