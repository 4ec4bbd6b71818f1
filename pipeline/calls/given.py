"""The input of a call of `mine`: what may be given, and the path that a run reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ...tasks.errors import UsageError

__all__ = ["Input", "input_path"]

Input = str | os.PathLike[str]
"""What `mine` takes as its input."""


@contextmanager
def input_path(given: object) -> Iterator[str]:
    """The path of Parquet edges, while they are there. Raises UsageError for what is no input, and for none."""
    if given is None:
        raise UsageError('mine needs an input: give a path first, as in mine("edges.parquet", "out")')
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"mine takes a path as its input, not a {type(given).__name__}")
    yield os.fspath(given)
