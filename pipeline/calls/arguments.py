"""Arguments of queries on a result: the result or its path, and ids of groups."""

from __future__ import annotations

import os
from operator import index
from typing import Any, TypeAlias

from ...tasks.errors import UsageError
from ...tasks.storage.folders import Folder
from ..results.result import Result

ResultOrPath: TypeAlias = Result | Folder | str | os.PathLike[str]
"""A result, its folder, or its fsspec URL."""


def open_result(result: ResultOrPath) -> Result:
    """The result, opened if `result` is a path. Raises as `Result` does, and UsageError for another type."""
    if isinstance(result, Result):
        return result
    if isinstance(result, Folder | str | os.PathLike):
        return Result(result)
    raise UsageError(f"expected a Result or its path, got {type(result).__name__}")


def plain_id(value: object, what: str) -> int:
    """The id of a group as a Python integer, from a Python, NumPy or Arrow integer. Raises UsageError for others."""
    number: Any = getattr(value, "as_py", lambda: value)()
    try:
        return index(number)
    except TypeError:
        raise UsageError(f"{what} must be a whole number, as in the tables, or a Group, got {value!r}") from None
