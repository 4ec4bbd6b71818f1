"""What goes wrong while tables of a result are read, as edgemill's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from ...tasks.errors import InputError
from ...tasks.places import Place
from ...tasks.sources import reason

__all__ = ["reading"]


@contextmanager
def reading(place: Place) -> Iterator[None]:
    """Within it, what reading tables raises becomes an InputError, or a UsageError where a store does not let read."""
    try:
        with place.reached("read"):
            yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"the result is damaged: {place}: {reason(error)}") from error
