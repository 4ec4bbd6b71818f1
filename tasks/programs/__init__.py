"""Vertex programs on a graph in blocks: each edge is stored once, in the block of its target.

May import `kernels`, `device`, `ids`, `ingest`, `partition`, `messages`, `errors`, `shards.carriers`, and
`verify.program_checks`, to name the check of a program. Start with `program`, the interface of a program. `block` is
the layout of the edges, `running` runs a program in one of the `orders`, `gathering` combines values per vertex,
`mirrors` and `words` are the messages between groups; `batches` runs programs that search from many sources; `delivery`
brings edges to blocks and results back, with the values of edges; `pairs` is the table of distances; `streaming` is for
blocks that do not fit memory; `shipped` has the programs of edgemill.
"""

from .batches import SourceProgram
from .block import Entries, GraphBlock, build_block, entries_of
from .local_runs import AnyProgram, cut_blocks, run_blocks, run_in_one_block
from .program import Best, EdgeProgram, GraphProgram, Program, Top, Totals, VertexId, Vertices
from .running import Order, ProgramOutcome, run_program

__all__ = [
    "AnyProgram",
    "Best",
    "EdgeProgram",
    "Entries",
    "GraphBlock",
    "GraphProgram",
    "Order",
    "Program",
    "ProgramOutcome",
    "SourceProgram",
    "Top",
    "Totals",
    "VertexId",
    "Vertices",
    "build_block",
    "cut_blocks",
    "entries_of",
    "run_blocks",
    "run_in_one_block",
    "run_program",
]
