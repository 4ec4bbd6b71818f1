"""Attempts to compute all values and write the tables, until one succeeds."""

from __future__ import annotations

from functools import cache

from ...tasks.errors import StateLost
from ...tasks.storage.folders import Folder, folder_at
from ..bounding.bounding_checkpoint import BoundingCheckpoint
from ..checkpoint.checkpoint import Checkpoint, Graph
from ..nightly.lineage import Lineage, lineage_from, lineage_of
from ..programs.saving import KeptPrograms
from ..results.report.run_report import import_early
from .context import RunContext
from .tables import Made, make_tables

MAX_ATTEMPTS = 3
"""Most consecutive attempts that lose a worker and reach no later checkpoint or exchange than the previous attempt."""


def compute(run: RunContext, graph: Graph, checkpoint: Checkpoint) -> Made:
    """Bound, run programs, extract and publish.

    If a worker is lost with its state, the next attempt resumes from the last checkpoint. Raises StateLost after
    MAX_ATTEMPTS without progress.
    """
    if run.settings.output.report:
        import_early()

    @cache
    def lineage() -> Lineage:
        base = None if run.call.night is not None else _base(run)
        if base is not None:
            found = lineage_from(base, run.source.id_type, run.events)
        else:
            found = lineage_of(run.call.night, run.source.id_type, run.events)
        run.call.reads(found.before)
        return found

    events = run.events
    how = {"bounding.method": run.plan.method, "bounding.operator": run.settings.bounding.operator}
    holding = run.engine.for_tasks(max(1, len(graph.subgraphs))).for_partitions()
    progress = BoundingCheckpoint(checkpoint, graph, holding, events, how, run.plan.ingest_in_parts)
    # A search builds rows before it begins, also when it starts again. It was not timed yet, so it counts as the
    # triangles do, which are found in such rows.
    progress.stop_seconds = sum(own.seconds for own in events.stages if own.stage == "triangulate")
    programs = KeptPrograms(checkpoint, graph, run.engine, events)
    exchanges, saves, attempts = -1, 0, 0
    while True:
        try:
            return make_tables(run, graph, progress, programs, lineage)
        except StateLost as error:
            # Peeling makes no exchanges, so only its checkpoints show progress.
            now = progress.saves + programs.progress
            attempts = 1 if len(events.exchanges) > exchanges or now > saves else attempts + 1
            exchanges, saves = max(exchanges, len(events.exchanges)), now
            if attempts == MAX_ATTEMPTS:
                raise
            events.emit("rolled_back", **events.reached)
            error.__traceback__ = None  # Dask keeps the error, and its frames would keep the futures


def _base(run: RunContext) -> Folder | None:
    """The earlier result that the run was to start from, if the call names one."""
    settings, batch = run.settings, run.call.input.batch
    if batch is not None:
        return batch.base.place
    previous = settings.nightly.previous
    return None if previous is None else folder_at(previous, settings.output.storage_options)
