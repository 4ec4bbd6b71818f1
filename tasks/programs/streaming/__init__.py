"""Blocks whose entries do not fit the memory in which a program runs.

May import `programs.block`, `programs.program` and the kernels. Start with `placing`, which decides where the entries
of a block lie: in memory, in pinned host memory that is streamed past a GPU, or in mapped files.
"""

from .placing import place_block, share_of_room

__all__ = ["place_block", "share_of_room"]
