"""The schedules of bounding with no Dask: partitions in one loop, mail handed over between exchanges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgemill import kernels
from edgemill.pipeline.bounding.ledger import Ledger
from edgemill.tasks.bound import band as banding
from edgemill.tasks.bound import fixpoint as rounds
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.bound.peel import peel, peel_intervals
from edgemill.tasks.graph.subgraph import Subgraph
from edgemill.tasks.messages import Bundle, collect

Schedule = Callable[[Sequence[Subgraph]], list[Intervals]]


def highest(subgraphs: Sequence[Subgraph]) -> int:
    """A value that no λ exceeds."""
    supports = np.concatenate([kernels.to_host(subgraph.support) for subgraph in subgraphs])
    return banding.highest_lambda(np.bincount(supports[supports > 0]))


def band(subgraphs: Sequence[Subgraph], max_exchanges: int | None = None) -> list[Intervals]:
    """Banding; after `max_exchanges` it ends with the intervals of that moment."""
    graphs = list(subgraphs)
    partitions = range(len(graphs))
    top = highest(graphs)
    ledger = Ledger(top, [graph.counts.local for graph in graphs])
    states = [banding.start_bands(graph, top) for graph in graphs]
    batches: list[list[list[banding.Order]]] = [[] for _ in partitions]
    mail: list[Bundle[Any]] = []
    orders, exchanges = ledger.start(), 0
    while ledger.open_bands and (max_exchanges is None or exchanges < max_exchanges):
        if orders:
            for waiting in batches:
                waiting.append(orders)
        reports, sent = {}, []
        for p in sorted(ledger.concerned(orders) | {q for bundle in mail for q in bundle.parts}):
            states[p], bundle, reports[p] = banding.band_exchange(
                graphs[p], states[p], batches[p], ledger.floor, collect(p, mail)
            )
            batches[p] = []
            sent.append(bundle)
        mail = sent
        ledger.record(reports)
        orders = ledger.split()
        exchanges += 1
    if orders:
        for waiting in batches:
            waiting.append(orders)
    upper = ledger.upper_ends()
    return [banding.band_intervals(graphs[p], states[p], batches[p], upper) for p in partitions]


def fixpoint(
    subgraphs: Sequence[Subgraph], operator: rounds.Operator = "hindex", max_exchanges: int | None = None
) -> list[Intervals]:
    """Fixpoint rounds; after `max_exchanges` they end with the intervals of that moment."""
    top = highest(subgraphs)
    states = [rounds.start_bounds(graph, top) for graph in subgraphs]
    mail: list[Bundle[Any]] = []
    active, exchanges = set(range(len(subgraphs))), 0
    while active and (max_exchanges is None or exchanges < max_exchanges):
        sent = []
        for p in sorted(active):
            states[p], bundle, _ = rounds.fixpoint_exchange(
                subgraphs[p], states[p], operator, exchanges == 0, collect(p, mail)
            )
            sent.append(bundle)
        mail = sent
        active = {q for bundle in mail for q in bundle.parts}
        exchanges += 1
    return [rounds.fixpoint_intervals(graph, state, not active) for graph, state in zip(subgraphs, states, strict=True)]


def tridn(subgraphs: Sequence[Subgraph]) -> list[Intervals]:
    """Fixpoint rounds that lower by one."""
    return fixpoint(subgraphs, "tridn")


def peeling(subgraphs: Sequence[Subgraph]) -> list[Intervals]:
    """Peeling of the only partition."""
    (subgraph,) = subgraphs
    return [peel_intervals(subgraph, peel(subgraph))]


def peeling_in_pieces(subgraphs: Sequence[Subgraph]) -> list[Intervals]:
    """Peeling of the only partition, each time by a new one that goes on from what was found."""
    (subgraph,) = subgraphs
    found = peel(subgraph, None, 0)
    while found.left:
        found = peel(subgraph, found, 0)
    return [peel_intervals(subgraph, found)]


def schedules(partitions: int) -> list[Schedule]:
    """All that work on so many partitions."""
    return [band, fixpoint, tridn, *([peeling, peeling_in_pieces] if partitions == 1 else [])]
