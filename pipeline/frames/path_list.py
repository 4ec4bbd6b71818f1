"""Several paths as one input."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ...tasks.errors import UsageError
from ...tasks.inputs.open_source import open_source
from ...tasks.inputs.sources import Source
from ...tasks.publish.writing import VALUE_COLUMNS
from ...tasks.storage.folders import Folder
from ..settings.models import InputSettings


@dataclass(frozen=True)
class PathList:
    """Paths or fsspec URLs of files with edges. A file that several paths match is read once."""

    paths: Sequence[str]

    @classmethod
    def of(cls, paths: Sequence[Any]) -> Self:
        """The list of these paths. Raises UsageError for an empty list, and for an item that is not a path."""
        if not paths:
            raise UsageError("the list of inputs is empty: name a path")
        for one in paths:
            if not isinstance(one, str | os.PathLike):
                raise UsageError(f"a list of inputs holds paths, but it has {one!r}, a {type(one).__name__}")
        return cls([os.fspath(one) for one in paths])

    @property
    def name(self) -> str:
        """The number of paths; the manifest lists the files."""
        return "1 path" if len(self.paths) == 1 else f"{len(self.paths)} paths"

    def open(self, settings: InputSettings, folder: Folder, compute: Callable[..., Any]) -> Source:
        """Open the files, as `tasks.inputs.open_source` does."""
        ends = settings.source_column, settings.target_column
        return open_source(self.paths, *ends, settings.storage_options, VALUE_COLUMNS, form=settings.form)
