"""The input of one run, opened once; what it has written for that time, and how its errors call it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask.base
from distributed import Client

from ...tasks.errors import EdgemillError, UsageError
from ...tasks.places import Place, place_of
from ...tasks.sources import Source
from ..overlap import refuse_input_overlap
from ..planning import open_input, refuse_few_rows
from ..settings import Settings
from ..staging import AnyStaging
from ..telemetry import Events
from .frame_input import FrameInput, is_frame_input
from .given import Given
from .path_list import PathList
from .row_groups import FOLDER

__all__ = ["RunInput", "given_as_input", "refuse_overlap"]


def given_as_input(given: object) -> str | Given:
    """A path, or an input that is none. Raises UsageError for what cannot be mined."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    if isinstance(given, list | tuple):
        return PathList.of(given)
    if is_frame_input(given):
        return FrameInput(given)
    raise UsageError(
        f"mine cannot read a {type(given).__module__}.{type(given).__qualname__}: give a path, a list of paths, "
        "a table (pandas, polars, Arrow, DuckDB, Dask, cudf) or a graph (networkx, igraph, scipy.sparse)"
    )


def refuse_overlap(given: Given | None, settings: Settings) -> None:
    """Raises UsageError if one of several inputs lies in the output, or the other way round."""
    out = place_of(settings.output.path, settings.output.storage_options)
    for path in () if given is None else given.paths:
        refuse_input_overlap(place_of(path, settings.input.storage_options), out)


class RunInput:
    """The input of a run with these settings; `given` if it is no path, whose cluster is that of `client`."""

    def __init__(
        self, settings: Settings, given: Given | None, staging: AnyStaging, client: Client | None, events: Events
    ) -> None:
        self._settings, self._given, self._client, self._events = settings, given, client, events
        self._place = _place(settings, staging, client)
        self._source: Source | None = None

    @property
    def is_written(self) -> bool:
        """Whether opening it writes it first, as a frame is."""
        return isinstance(self._given, FrameInput)

    def open(self) -> Source:
        """Its files. Of a frame they are written at the first call. Raises InputError, UsageError, OutOfRoom."""
        if self._source is None:
            if self._given is None:
                self._source = open_input(self._settings)
            else:
                with self.named():
                    self._source = self._given.open(self._settings.input, self._place, self._compute)
                    self._tell(self._source)
                    refuse_few_rows(self._source, self._settings.input.least_rows)
        return self._source

    def _tell(self, source: Source) -> None:
        if source.frame is not None:
            size = {"rows": source.rows, "files": len(source.files), "bytes": source.bytes}
            self._events.emit("input_written", input=source.frame.kind, **size)

    def remove(self) -> None:
        """Remove what was written, when it has been read for the last time."""
        if self._source is not None and self._source.frame is not None:
            self._place.remove(FOLDER)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Within it, errors of a frame name the frame, in place of the files that hold it for the time of the run."""
        try:
            yield
        except EdgemillError as error:
            if isinstance(self._given, FrameInput):
                error.args = tuple(self._told(part) if isinstance(part, str) else part for part in error.args)
            raise

    def _told(self, text: str) -> str:
        """The text with the frame's name in place of its files."""
        name = "" if self._given is None else self._given.name
        for file in () if self._source is None else self._source.files:
            text = text.replace(file.path, name)
        return re.sub(rf"{re.escape(str(self._place.within(FOLDER)))}(/part-[0-9]+\.parquet)?", name, text)

    def _compute(self, *tasks: Any) -> Any:
        if self._client is None:
            return dask.base.compute(*tasks)  # type: ignore[no-untyped-call]
        return self._client.gather(self._client.compute(list(tasks)))


def _place(settings: Settings, staging: AnyStaging, client: Client | None) -> Place:
    """Where a frame is written: where all that compute can read it, and where a run that is killed leaves nothing that
    the next does not clear.
    """
    here = client is None and settings.cluster.is_started_here
    return place_of(staging.scratch) if here else staging.tables
