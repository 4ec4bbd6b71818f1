"""Programs that search from many sources, a batch of sources at a time, over the blocks and mirrors of other programs.

May import `kernels`, `ids`, `partition`, `errors`, `shards.carriers` and modules of `programs`. Start with `program`,
the interface of such a program. `running` selects the sources and has the loop of batches, `side` the rows that a
search reads and the exchange of what it finds; `paths` is Brandes's algorithm, `levels` breadth-first search, `spans`
bounds of eccentricities by distances.
"""

from .program import LevelsFound, PathsFound, SourceProgram
from .running import Progress, run_batches

__all__ = ["LevelsFound", "PathsFound", "Progress", "SourceProgram", "run_batches"]
