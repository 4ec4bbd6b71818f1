"""What questions to a result take: the result or where it is, groups and vertices or their ids."""

from __future__ import annotations

import os
from operator import index
from typing import Any, TypeAlias

from ...tasks.errors import UsageError
from ...tasks.places import Place
from ..result import Result

__all__ = ["AnyResult", "opened", "plain_id"]

AnyResult: TypeAlias = Result | Place | str | os.PathLike[str]
"""A result, or its folder, or its fsspec URL."""


def opened(result: AnyResult) -> Result:
    """The result itself, or that at a path, opened for this question. Raises as `Result` does, and UsageError for what
    is neither.
    """
    if isinstance(result, Result):
        return result
    if isinstance(result, Place | str | os.PathLike):
        return Result(result)
    raise UsageError(f"a question is asked to a Result, or to the path of one, not to a {type(result).__name__}")


def plain_id(given: object, what: str) -> int:
    """The id of a group as a Python integer, also of one that Arrow or NumPy holds. Raises UsageError for others."""
    value: Any = getattr(given, "as_py", lambda: given)()
    try:
        return index(value)
    except TypeError:
        raise UsageError(f"{what} is a whole number, as the tables have it, or a Group, not {given!r}") from None
