"""Some members of each of several DN-graphs, as `edgemill top` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..queries import dn_graph_members
from ..result import Result
from .attributes import label_column, labels_of
from .values import json_value


def with_members(result: Result, rows: Iterable[Mapping[str, Any]], most: int | None) -> Iterator[dict[str, Any]]:
    """Rows of `Result.dn_graphs` with `members`, the first `most` ids of each group, or all ids if `most` is None.

    If the run had labels, the rows also have `labels`, None for a vertex without one. The members of one group at a
    time are in memory. Raises InputError for damage.
    """
    labelled = label_column(result) is not None
    for row in rows:
        ids = dn_graph_members(result, row["id"], row["vertices"] if most is None else min(most, row["vertices"]))
        more: dict[str, Any] = {"members": [json_value(id) for id in ids.to_pylist()]}
        if labelled:
            more["labels"] = labels_of(result, ids)
        yield {**row, **more}
