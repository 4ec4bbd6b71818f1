"""The first DN-graphs of a result, with some of their vertices."""

from __future__ import annotations

from typing import Any

from ..groups.top_members import with_members
from ..queries import top
from ..result import Result


def top_groups(result: Result, most: int, most_members: int) -> list[dict[str, Any]]:
    """The first `most` DN-graphs by λ, as `edgemill top` orders them; empty if the result has no table of them.

    A group is its row of `Result.dn_graphs` as JSON values, with `first_members`, at most `most_members` ids of its
    vertices, and `first_labels` if the run had labels. Raises InputError for damage.
    """
    if result.manifest.dense is None or not result.manifest.dense.dn_graphs:
        return []
    rows = with_members(result, top(result, "lambda", most).to_pylist(), most_members)
    return [{_NAMES.get(name, name): value for name, value in row.items()} for row in rows]


_NAMES = {"members": "first_members", "labels": "first_labels"}
