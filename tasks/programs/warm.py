"""Run a program on a small graph, so that its kernels are compiled before its stage is timed."""

from __future__ import annotations

import numpy as np

from ...kernels.runtime.threads import kernel_threads
from ..device import MemorySpace
from .batches import SourceProgram
from .block import Entries
from .local_runs import AnyProgram, run_in_one_block
from .program import Program

VERTICES = 600
"""Vertices of the path. Enough that a superstep with few changed vertices pushes, and others pull."""


def warm_program(program: AnyProgram, space: MemorySpace = MemorySpace.HOST) -> int:
    """Run a program on a path of VERTICES vertices, in `space`; one batch, if it searches from sources. Returns the
    number of supersteps.
    """
    number = np.arange(VERTICES, dtype=np.int32)
    weight = np.ones(VERTICES - 1) if isinstance(program, Program) and program.along else None
    path = Entries(number[:-1], number[1:], weight)
    most = 1 if isinstance(program, SourceProgram) else VERTICES
    with kernel_threads(1):
        return run_in_one_block(program, path, VERTICES, False, space=space, most_steps=most).steps
