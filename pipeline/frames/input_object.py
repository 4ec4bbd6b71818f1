"""The protocol of Python objects that `mine` takes as input."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ...tasks.inputs.columns import check_columns
from ...tasks.inputs.sources import Source
from ...tasks.storage.folders import Folder
from ..settings.models import InputSettings


@dataclass
class ColumnNames:
    """The columns of a frame with ids and weights: as the settings name them, and then as they were found."""

    source: str | None
    target: str | None
    weight: str | None = None
    """None if edges have no weights."""
    notes: tuple[str, ...] = ()
    """Sentences on what the settings do not name."""

    def find(self, name: str, schema: pa.Schema, reserved: Collection[str] = ()) -> tuple[str, ...]:
        """The names of these columns in a frame, called `name` in messages. They are kept, with notes.

        Raises InputError as `check_columns` does.
        """
        found, notes = check_columns(name, schema, self.source, self.target, reserved, self.weight)
        self.source, self.target = found[:2]
        self.notes += notes
        return found


@dataclass(frozen=True)
class EdgeBatches:
    """Two columns of ids, and a third one of weights if edges have weights, in batches."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class InputObject(Protocol):
    """An input that is a Python object and not a path."""

    @property
    def name(self) -> str:
        """The name of the input in messages, log and manifest."""

    @property
    def paths(self) -> Sequence[str]:
        """The paths of the input's files; empty if it has none."""

    def open(self, settings: InputSettings, folder: Folder, compute: Callable[..., Any]) -> Source:
        """Open the input's files, or files that are written below `folder`.

        `compute` is `dask.compute`, or an equivalent on a client. Raises InputError, UsageError, OutOfRoom.
        """
