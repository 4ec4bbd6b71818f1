"""A program on a path, so that what it calls is compiled before the clock of its stage runs."""

from __future__ import annotations

import numpy as np

from ...kernels.threads import kernel_threads
from .block import Entries
from .program import Program
from .together import run_alone

VERTICES = 600
"""So many that of few that move the edges are taken round, and of all of them rows are read."""


def warm_program(program: Program) -> int:
    """Run a program on a path; gives its supersteps."""
    number = np.arange(VERTICES, dtype=np.int32)
    with kernel_threads(1):
        return run_alone(program, Entries(number[:-1], number[1:]), VERTICES, False, most_steps=VERTICES).steps
