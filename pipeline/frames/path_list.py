"""Several paths as one input."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ...tasks.errors import UsageError
from ...tasks.places import Place
from ...tasks.sources import Source, open_source
from ...tasks.writing import VALUE_COLUMNS
from ..settings import InputSettings

__all__ = ["PathList"]


@dataclass(frozen=True)
class PathList:
    """Paths or fsspec URLs of Parquet edges. A file that several of them find is read once."""

    paths: Sequence[str]

    @classmethod
    def of(cls, given: Sequence[Any]) -> Self:
        """Raises UsageError for an empty list, and for what is no path."""
        if not given:
            raise UsageError("the list of inputs is empty: name a path")
        for one in given:
            if not isinstance(one, str | os.PathLike):
                raise UsageError(f"a list of inputs has paths, and this one has {one!r}, a {type(one).__name__}")
        return cls([os.fspath(one) for one in given])

    @property
    def name(self) -> str:
        """How many they are; the manifest lists the files."""
        return "1 path" if len(self.paths) == 1 else f"{len(self.paths)} paths"

    def open(self, settings: InputSettings, place: Place, compute: Callable[..., Any]) -> Source:
        """As `tasks.sources.open_source`."""
        ends = settings.source_column, settings.target_column
        return open_source(self.paths, *ends, settings.storage_options, VALUE_COLUMNS, form=settings.form)
