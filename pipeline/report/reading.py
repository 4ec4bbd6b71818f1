"""Tables of a result, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.dataset as ds

from ...tasks.errors import InputError
from ...tasks.sources import DAMAGE, reason

__all__ = ["batches"]


def batches(table: ds.Dataset, columns: list[str], only: Any = None) -> Iterator[Any]:
    """Record batches of these columns, of the rows that the pyarrow expression `only` picks.

    Next to nothing is read ahead, so that they take the memory of a few row groups, whatever the table. Raises
    InputError for damage.
    """
    how = ds.ParquetFragmentScanOptions(pre_buffer=False, page_checksum_verification=True)
    ahead = {"batch_readahead": 1, "fragment_readahead": 1, "fragment_scan_options": how}
    try:
        yield from table.to_batches(columns=columns, filter=only, **ahead)
    except DAMAGE as error:
        raise InputError(f"the result is damaged: {reason(error)}") from error
