"""λ of the new graph: from the changes, or from nothing where that is less work.

λ is kept in the checkpoint of the output. If the update is interrupted later, the next run of the same update reads it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.update import values_since
from ...kernels.graph import Topology
from ...kernels.runtime.threads import kernel_threads
from ...tasks.inputs.sources import Source
from ...tasks.storage import array_files
from ...tasks.storage.array_files import StoredFile
from ...tasks.storage.folders import folder_at
from ...tasks.update.order import Order
from ...tasks.update.updating import OverBudget, update_order
from ...tasks.update.warm import warm_updates
from ...tasks.update.whole import order_from_nothing, supports_after
from ..events import Events
from ..opening.context import Call
from ..opening.reading import edge_column
from ..output.checkpoint_files import checkpoint_place
from ..stages.task_engine import ThreadedEngine
from .beginning import Start
from .deciding import Decision, supports_follow

if TYPE_CHECKING:
    from ..checkpoint.checkpoint import Checkpoint

MOST_LISTED = 6
"""Most entries of an update's lists for each edge of the graph, 72 bytes."""
LEAST_ROOM = 2**26
"""Entries that are allowed on any graph, 0.8 GB: the edges of small dense graphs are in many triangles each."""


@dataclass(frozen=True)
class Since:
    """The edges of the new graph and those of the earlier result."""

    origin: NDArray[np.int32]
    """[edges] row in the earlier result, -1 for an added edge."""
    changed: NDArray[np.bool_]
    """[edges] true for added edges, and where λ differs."""


@dataclass(frozen=True)
class FoundLambda:
    """The edges of the new graph, in the numbering of the change, with their values."""

    edges: Topology
    support: NDArray[np.int32]
    order: Order
    touched: NDArray[np.bool_]
    """[edges] true for added edges, and where support or λ differ from those of the earlier result."""
    since: Since | None
    """How the edges differ from those of the earlier result; None if λ was found from nothing."""
    changed: int | None
    """Edges of both graphs whose λ differs."""
    triangles: int
    decision: Decision


TYPES: Mapping[str, type[Any]] = {
    "Decision": Decision,
    "FoundLambda": FoundLambda,
    "Order": Order,
    "Since": Since,
    "Topology": Topology,
}
"""Name in files of a checkpoint → dataclass."""


def find_lambda(
    events: Events, start: Start, before: NDArray[np.int32], decision: Decision, threads: int
) -> FoundLambda:
    """λ and the order of the new graph. `before` [edges of the earlier result] are their supports."""
    change, spent = start.change, 0
    if decision.way == "changes" and start.order is not None:
        with events.stage("compile", 0):
            warm_updates(threads)
        with events.stage("update", 0), kernel_threads(threads):
            try:
                made = update_order(
                    *(change.before, start.order, change.removed, change.added, decision.most_work),
                    most_listed=max(MOST_LISTED * change.before.edges, LEAST_ROOM),
                    peels_rest=True,
                )
                support, touched, changed = values_since(before, made.origin, made.changed, made.support_change)
            except OverBudget as over:
                spent, most = over.triangles, decision.most_work
                events.emit("update_given_up", triangles=spent, work=over.work, expected=over.is_expected, most=most)
                when = "as its first changes told of" if over.is_expected else "after"
                why = f"the update was given up {when} a work of {over.work:,} triangles"
                why += f": its budget was {most:,}" if over.has_room else ", as its lists would take too much memory"
                decision = Decision("whole", why, expected=decision.expected)
        if decision.way == "changes":
            if made.peeled_from is not None:
                events.emit("rest_peeled", level=made.peeled_from, edges=made.peeled, of=made.edges.edges)
            since = Since(made.origin, made.changed)
            return FoundLambda(made.edges, support, made.order, touched, since, changed, made.triangles, decision)
    with events.stage("bound", 0), kernel_threads(threads):
        known = None
        if start.order is not None and supports_follow(change, start.base, before):
            edges, origin, known = supports_after(change.before, start.order, before, change.removed, change.added)
        else:
            edges, origin = change.after()
        support, found = order_from_nothing(edges, known)
        old = origin >= 0
        touched = ~old
        rows = origin[old]
        touched[old] = (before[rows] != support[old]) | (edge_column(start.base, "lambda")[rows] != found.lam[old])
    return FoundLambda(edges, support, found, touched, None, None, spent, decision)


_NAME = "update"


class SavedLambda:
    """λ of one update in a checkpoint. Checkpoints load Dask, so this class uses them only if there is one, or one is
    due.
    """

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
        """Context in which errors get a note about the checkpoint, if there is one."""
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
        from ..checkpoint.checkpoint import Checkpoint  # loads Dask

        return Checkpoint(self._call.settings.checkpoint, self._made_of, self._call.staging.out)

    @cached_property
    def _made_of(self) -> dict[str, Any]:
        """Values that determine λ and the numbering of the edges, and how λ is found."""
        from ..checkpoint.checkpoint import made_of_input  # loads Dask

        nightly = self._call.settings.nightly
        return made_of_input(self._call.settings, self._source) | {
            "earlier result": self._start.base.manifest.run,
            "nightly.incremental": nightly.incremental,
            "nightly.full_every": nightly.full_every,
        }


def _store(url: str, options: Mapping[str, Any], found: FoundLambda) -> StoredFile:
    return array_files.store(found, url, options, TYPES)
