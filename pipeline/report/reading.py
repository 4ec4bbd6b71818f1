"""Tables of a result, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...tasks.errors import InputError
from ...tasks.sources import DAMAGE, reason
from ..streaming import stream

if TYPE_CHECKING:
    import pyarrow.dataset as ds

__all__ = ["batches"]


def batches(table: ds.Dataset, columns: list[str], only: Any = None) -> Iterator[Any]:
    """Record batches of these columns, of the rows that the pyarrow expression `only` picks. Raises InputError for
    damage.
    """
    try:
        yield from stream(table, columns, only)
    except DAMAGE as error:
        raise InputError(f"the result is damaged: {reason(error)}") from error
