"""What `mine` was given as its edges: where they are, or what holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ...tasks.places import Place
from ...tasks.sources import Source
from ..settings import InputSettings

__all__ = ["Columns", "Given", "Rows"]


@dataclass(frozen=True)
class Columns:
    """The columns that the settings name, if they do."""

    source: str | None
    target: str | None


@dataclass(frozen=True)
class Rows:
    """Two columns of ids, a batch at a time."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class Given(Protocol):
    """An input that is no path."""

    @property
    def name(self) -> str:
        """What messages, log and manifest call it."""

    @property
    def paths(self) -> Sequence[str]:
        """Where its files are, if it has some."""

    def open(self, settings: InputSettings, place: Place, compute: Callable[..., Any]) -> Source:
        """Its files, or those that are written below `place`, opened for a run. `compute` is `dask.compute`, or what
        does the same on a client. Raises InputError, UsageError, OutOfRoom.
        """
