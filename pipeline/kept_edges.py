"""The edges that a run keeps while it looks for its graph: those in buckets, then those in partitions.

The second checkpoint takes the place of the first, and the graph that of the second.
"""

from __future__ import annotations

from dataclasses import dataclass

from .checkpoint import Checkpoint, edges_of, facts_of
from .engine import Engine, Future
from .stages import Buckets, RowCounts
from .telemetry import Events

__all__ = ["Numbered", "Owned", "load_numbered", "load_owned", "save_numbered", "save_owned"]

_NUMBERED = "edges"
_OWNED = "owned"


@dataclass(frozen=True)
class Numbered:
    """The clean edges in buckets, with dense numbers in place of ids."""

    rows: RowCounts
    buckets: Buckets


@dataclass(frozen=True)
class Owned:
    """The same edges in buckets, for what is published, and in partitions."""

    numbered: Numbered
    degrees: list[Future]
    """[buckets] BucketDegrees"""
    edges: list[Future]
    """[partitions] OwnedEdges"""


def load_numbered(checkpoint: Checkpoint, engine: Engine, events: Events) -> Numbered | None:
    """What an earlier run has kept; None if there is none to use."""
    return checkpoint.load_step(engine, events, _NUMBERED, lambda facts, futures: Numbered(*edges_of(facts, futures)))


def save_numbered(checkpoint: Checkpoint, engine: Engine, events: Events, kept: Numbered) -> None:
    """Keep it in place of all that is kept; its futures are replaced as by `Checkpoint.save_graph`."""
    parts = {"ids": kept.buckets.ids, "edges": kept.buckets.edges}
    checkpoint.save_step(engine, events, _NUMBERED, parts, facts_of(kept.rows, kept.buckets))


def load_owned(checkpoint: Checkpoint, engine: Engine, events: Events) -> Owned | None:
    """What an earlier run has kept; None if there is none to use."""
    return checkpoint.load_step(
        engine,
        events,
        _OWNED,
        lambda facts, futures: Owned(Numbered(*edges_of(facts, futures)), futures["degrees"], futures["owned"]),
    )


def save_owned(checkpoint: Checkpoint, engine: Engine, events: Events, kept: Owned) -> None:
    """As `save_numbered`."""
    rows, buckets = kept.numbered.rows, kept.numbered.buckets
    parts = {"ids": buckets.ids, "edges": buckets.edges, "degrees": kept.degrees, "owned": kept.edges}
    checkpoint.save_step(engine, events, _OWNED, parts, facts_of(rows, buckets))
