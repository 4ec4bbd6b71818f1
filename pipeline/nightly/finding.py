"""Find the DN-graph of a track in one result."""

from __future__ import annotations

from typing import SupportsIndex

import pyarrow.compute as pc

from ...tasks.errors import UsageError
from ..calls.arguments import ResultOrPath, open_result, plain_id
from ..messages.setting_names import naming_keywords
from ..results.rows import Group
from ..results.streaming import stream


@naming_keywords()
def find_track(result: ResultOrPath, track: SupportsIndex) -> Group:
    """The DN-graph with this track, the number that it keeps over a series of nights. Scans the table of DN-graphs.

    Raises UsageError if there is none, if the result has no DN-graphs, or if it was made by a release without tracks;
    InputError if it is damaged.
    """
    found, number = open_result(result), plain_id(track, "a track")
    if "track" not in found.dn_graphs.schema.names:
        raise UsageError(f"{found.place} was made by a release without tracks: edgemill diff matches its groups")
    columns = ["id", "lambda", "parent", "vertices", "edges"]
    with found.reading():
        batches = stream(found.dn_graphs, [*columns, "track"], pc.field("track") == number)
        rows = [row for batch in batches for row in batch.to_pylist()]
    if not rows:
        raise UsageError(
            f"no DN-graph has track {number} in {found.place}: the track ended before that night or began after it"
        )
    (row,) = rows
    return Group(row["id"], row["lambda"], row["parent"], row["vertices"], row["edges"], dn_graph=True)
