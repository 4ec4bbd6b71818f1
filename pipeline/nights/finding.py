"""The DN-graph of a track in one result."""

from __future__ import annotations

from typing import SupportsIndex

import pyarrow.compute as pc

from ...tasks.errors import UsageError
from ..calls.asked import AnyResult, opened, plain_id
from ..lookup import reading
from ..rows import Group
from ..streaming import stream

__all__ = ["find_track"]


def find_track(result: AnyResult, track: SupportsIndex) -> Group:
    """The DN-graph with that track: the number that it keeps over the nights of a series.

    The columns of the table of DN-graphs are read in one scan. Raises UsageError if there is no such, or the result has
    no DN-graphs or is of a release without tracks; InputError for damage.
    """
    found, wanted = opened(result), plain_id(track, "a track")
    if "track" not in found.dn_graphs.schema.names:
        raise UsageError(f"{found.place} is of a release without tracks: edgemill diff tells which groups are the same")
    columns = ["id", "lambda", "parent", "vertices", "edges"]
    with reading(found.place):
        batches = stream(found.dn_graphs, [*columns, "track"], pc.field("track") == wanted)
        rows = [row for batch in batches for row in batch.to_pylist()]
    if not rows:
        raise UsageError(
            f"there is no DN-graph of track {wanted} in {found.place}: it ended before that night, or began after it"
        )
    (row,) = rows
    return Group(row["id"], row["lambda"], row["parent"], row["vertices"], row["edges"], dn_graph=True)
