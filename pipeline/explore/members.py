"""Members of DN-graphs: some of each in a list, and all of one to copy or as CSV."""

from __future__ import annotations

import io
from typing import Any

from ...tasks.spelling import spelled
from ..asking import find_dn_graph
from ..groups.attributes import labels_of
from ..groups.files import write_table
from ..groups.members import members_of
from ..rows import DNGraph
from .queries import BadQuestion, Queries

__all__ = ["MOST_MEMBERS", "members_csv", "some_members"]

MOST_MEMBERS = 1_000_000
"""Of a DN-graph that is given out whole."""


def some_members(queries: Queries, group: DNGraph, most: int) -> dict[str, Any]:
    """The first `most` members as they are stored, ready for JSON: ids as text, and labels, null without one."""
    ids = queries.members(group.id, min(most, group.vertices))
    return {"ids": [str(spelled(id)) for id in ids.to_pylist()], "labels": labels_of(queries.result, ids)}


def members_csv(queries: Queries, group: DNGraph) -> bytes:
    """All members, as `edgemill members` writes them: those with most edges inside first, with their attributes.

    Raises BadQuestion for more than MOST_MEMBERS.
    """
    if group.vertices > MOST_MEMBERS:
        raise BadQuestion(
            f"the DN-graph has {group.vertices:,} members, more than a page takes: "
            f"edgemill members {queries.result.place} {group.id} --output FILE writes them"
        )
    file = io.BytesIO()
    write_table(members_of(queries.result, find_dn_graph(queries.result, group.id)), file, "csv")
    return file.getvalue()
