"""Where an update starts: the graph of the earlier result, its order of peeling, and the change since."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from ...tasks.inputs.sources import Source
from ...tasks.update.merging import Change, compare
from ...tasks.update.order import Order
from ...tasks.update.state import State
from ...tasks.update.state_index import NoState
from ..monitor.events import Events
from ..results.result import Result
from ..settings.models import Settings
from ..stages.ingesting import Buckets, RowCounts
from ..stages.task_engine import ThreadedEngine
from .batches.batch_input import BatchInput
from .reading import graph_of_result, read_graph
from .result_manifest import nights_since
from .search.deciding import Decision
from .state import known_state


@dataclass(frozen=True)
class Start:
    """What is known before λ is found."""

    base: Result
    change: Change
    order: Order | None
    """The order of the earlier result; None if λ is to be found from nothing."""
    forest: NDArray[np.int32] | None
    """The forest of the earlier result, as in `State`; None where the order is."""
    whole: Decision | None
    """Why λ is found from nothing; None if that is not decided yet."""
    rows: RowCounts
    repeated: int
    arcs: Buckets | None = None
    """The edges of today with their directions and weights, for vertex programs; None if these need none."""


def _known_state(settings: Settings, base: Result, with_kernels: bool) -> State:
    """The state of the earlier result. Meanwhile Numba and the kernels of updates are imported, if they are needed in
    any case: a batch without change needs none. Raises NoState.
    """
    with ThreadPoolExecutor(1) as beside:
        if with_kernels:
            beside.submit(import_module, "...tasks.update.warm", __package__)
        return known_state(settings, base)


def start_from(
    settings: Settings,
    events: Events,
    engine: ThreadedEngine,
    base: Result,
    source: Source,
    batch: BatchInput | None,
) -> Start:
    """Read the earlier result, and what changed since. Raises InputError for damage, and as `read_graph` does."""
    order, forest, whole = None, None, None
    every = settings.nightly.full_every
    due = settings.nightly.incremental != "always" and nights_since(base) + 1 >= every
    with events.stage("load", 0):
        try:
            if due:
                whole = Decision("whole", f"a full run is due: nightly.full_every is {every:,}")
                graph = graph_of_result(base)
            else:
                known = None if batch is None else batch.state
                state = known or _known_state(settings, base, with_kernels=batch is None)
                graph, order, forest = state.graph, state.order, state.forest
        except NoState as why:
            whole = Decision("whole", str(why))
            graph = graph_of_result(base)
    if batch is None or batch.counts is not None:
        own, needs_arcs = settings.input, bool(settings.programs.vertex_programs)
        today = read_graph(engine, events, source, settings.ingest, own.nulls, needs_arcs)
        with events.stage("compare", 0):
            change = compare(graph, today.graph)
        rows, repeated = today.rows, 0
        if batch is not None and batch.counts is not None and batch.batch is not None:
            change, repeated = replace(change, counts=batch.counts), batch.batch.repeated
            rows = replace(rows, nulls=batch.batch.inserted.rows.nulls)
        return Start(base, change, order, forest, whole, rows, repeated, today.arcs)
    assert batch.batch is not None  # the run has opened its input
    with events.stage("compare", 0):
        change = batch.change(graph)
    new, rows = batch.batch.inserted, batch.batch.inserted.rows
    present = new.graph.edges.edges - change.added.edges
    kept = change.before.edges - change.lost
    rows = replace(rows, rows=rows.rows + kept, duplicates=rows.duplicates + present, notes=())  # the source has them
    return Start(base, change, order, forest, whole, rows, batch.batch.repeated)
