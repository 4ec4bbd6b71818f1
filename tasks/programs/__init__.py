"""Vertex programs on graphs that are stored once: every edge at the home of its target.

Start with `program`, what a program is; `block` has where edges lie, `running` the loop that every group runs,
`gathering` what comes to vertices, `mirrors` and `mail` what groups tell each other, `shipped` the programs that
edgemill brings. May import `kernels`.
"""

from .block import Block, Entries, build_block, entries_of
from .program import Best, Program, Totals, Vertices
from .running import Outcome, run_program
from .together import cut_blocks, run_alone, run_blocks

__all__ = [
    "Best",
    "Block",
    "Entries",
    "Outcome",
    "Program",
    "Totals",
    "Vertices",
    "build_block",
    "cut_blocks",
    "entries_of",
    "run_alone",
    "run_blocks",
    "run_program",
]
