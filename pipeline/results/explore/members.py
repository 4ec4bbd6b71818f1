"""Members of DN-graphs: some for a list of groups, or all members of one group as JSON or CSV."""

from __future__ import annotations

import io
from typing import Any

from ....tasks.ids.display import display_id
from ..groups.attributes import labels_of
from ..groups.files import write_table
from ..groups.members import members_of
from ..queries import find_dn_graph
from ..rows import DNGraph
from .queries import BadRequest, Queries

MOST_MEMBERS = 1_000_000
"""Members of the largest DN-graph whose members are all sent."""


def some_members(queries: Queries, group: DNGraph, most: int) -> dict[str, Any]:
    """The first `most` stored members as JSON values: ids as text, and labels, null for a vertex without one."""
    ids = queries.members(group.id, min(most, group.vertices))
    return {"ids": [str(display_id(id)) for id in ids.to_pylist()], "labels": labels_of(queries.result, ids)}


def members_csv(queries: Queries, group: DNGraph) -> bytes:
    """All members with their attributes as CSV, as `edgemill members` writes them: most edges inside the group first.

    Raises BadRequest for more than MOST_MEMBERS members.
    """
    if group.vertices > MOST_MEMBERS:
        raise BadRequest(
            f"the DN-graph has {group.vertices:,} members, more than {MOST_MEMBERS:,}: "
            f"edgemill members {queries.result.place} {group.id} --output FILE writes them"
        )
    file = io.BytesIO()
    write_table(members_of(queries.result, find_dn_graph(queries.result, group.id)), file, "csv")
    return file.getvalue()
