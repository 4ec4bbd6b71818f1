"""λ of an update in the checkpoint of its output. If the update is interrupted later, the same one goes on from it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ....tasks.inputs.sources import Source
from ....tasks.storage import array_files
from ....tasks.storage.array_files import StoredFile
from ....tasks.storage.folders import folder_at
from ...checkpoint.files import checkpoint_place
from ...checkpoint.made_of import made_of_input
from ...run.context import Call
from ...stages.task_engine import ThreadedEngine
from ..start import Start
from .finding_lambda import TYPES, FoundLambda

if TYPE_CHECKING:
    from ...checkpoint.checkpoint import Checkpoint

_NAME = "update"


class SavedLambda:
    """λ of one update in a checkpoint. Dask, which checkpoints load, is loaded only if there is one, or one is due."""

    def __init__(self, call: Call, source: Source, engine: ThreadedEngine, start: Start) -> None:
        self._call, self._source, self._engine, self._start = call, source, engine, start
        self._began = time.monotonic()

    def load(self) -> FoundLambda | None:
        """λ that the same update found before; None without a usable checkpoint, and with `checkpoint.fresh`.

        Reports why a checkpoint is not used.
        """
        settings, out = self._call.settings.checkpoint, self._call.staging.out
        place = checkpoint_place(folder_at(out), settings.path)
        options = folder_at(out).options if settings.path is None else settings.storage_options
        if folder_at(place, options).read(f"{_NAME}.json") is None:
            return None
        if settings.fresh:
            self._checkpoint.clear()
            return None
        found = self._checkpoint.load(self._engine, self._call.events, _NAME, self._check, self._restored)
        if found is None:
            return None
        (lam,) = found[1]["lambda"]
        assert isinstance(lam, FoundLambda)  # the index and the file have the right checksums
        return lam

    def save_if_due(self, found: FoundLambda) -> None:
        """Save λ if it took `checkpoint.every_seconds` to find. Raises UsageError, OutOfRoom and StoreLost."""
        every = self._call.settings.checkpoint.every_seconds
        if every is None or time.monotonic() - self._began < every:
            return
        with self._call.events.stage("keep", 1) as stage:
            facts = {"made_of": self._made_of}
            self._checkpoint.save(self._engine, _NAME, {"lambda": [(found,)]}, _store, facts, stage=stage)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Within the context errors tell of a checkpoint that there is."""
        try:
            yield
        except BaseException as error:
            if "_checkpoint" in self.__dict__ and self._checkpoint.note is not None:
                error.add_note(self._checkpoint.note)
            raise

    def _check(self, index: Mapping[str, Any]) -> None:
        self._checkpoint.check(index, self._made_of)

    def _restored(self, engine: ThreadedEngine, index: Mapping[str, Any]) -> dict[str, list[Any]]:
        files = [(StoredFile(**file), self._checkpoint.options, TYPES) for file in index["files"]["lambda"]]
        return {"lambda": engine.map("restore-lambda", array_files.restore, files)}

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        from ...checkpoint.checkpoint import Checkpoint  # loads Dask

        return Checkpoint(self._call.settings.checkpoint, self._made_of, self._call.staging.out)

    @cached_property
    def _made_of(self) -> dict[str, Any]:
        """Values that determine λ and the numbering of the edges, and how λ is found."""
        nightly = self._call.settings.nightly
        return made_of_input(self._call.settings, self._source) | {
            "earlier result": self._start.base.manifest.run,
            "nightly.incremental": nightly.incremental,
            "nightly.full_every": nightly.full_every,
        }


def _store(url: str, options: Mapping[str, Any], found: FoundLambda) -> StoredFile:
    return array_files.store(found, url, options, TYPES)
