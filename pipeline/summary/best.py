"""The first DN-graphs of a result, with some of their vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..foremost import foremost
from ..groups.attributes import label_column, labels_of
from ..groups.spelling import json_value, spelt
from ..report.groups import members
from ..result import Result
from ..rows import DNGraph, rows_of

__all__ = ["BestGroup", "best_groups"]


@dataclass(frozen=True)
class BestGroup:
    """A DN-graph and the first of its vertices."""

    graph: DNGraph
    members: list[Any]
    """Ids of the input, ascending."""
    labels: list[str | None] | None = None
    """Of these, None for one without; None for all of them if the run was given no labels."""

    @property
    def names(self) -> list[str]:
        """What to call these vertices: their labels, and the ids of those without."""
        labels = self.labels or [None] * len(self.members)
        return [spelt(id) if label is None else label for id, label in zip(self.members, labels, strict=True)]

    def as_json(self) -> dict[str, Any]:
        """The columns of `dn_graphs`, `first_members`, and `first_labels` if the run was given labels."""
        row = vars(self.graph).copy()
        row["lambda"] = row.pop("lam")
        order = ("id", "lambda", "vertices", "edges", "density", "triangles", "parent")
        found = {name: row[name] for name in order} | {"first_members": [json_value(id) for id in self.members]}
        return found if self.labels is None else found | {"first_labels": self.labels}


def best_groups(result: Result, most: int, most_members: int) -> list[BestGroup]:
    """The first `most` DN-graphs by λ, as `edgemill top` orders them; none if the result has no table of them.

    Reads the tables of DN-graphs and members once. Raises InputError for damage.
    """
    if result.manifest.dense is None or not result.manifest.dense.dn_graphs:
        return []
    graphs = rows_of(DNGraph, foremost(result, "lambda", most))
    some = members(result.dn_graph_members, [graph.id for graph in graphs], most_members)
    if label_column(result) is None:
        return [BestGroup(graph, some[graph.id]) for graph in graphs]
    return [BestGroup(graph, some[graph.id], labels_of(result, some[graph.id])) for graph in graphs]
