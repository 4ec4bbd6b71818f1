"""The first DN-graphs of a result, with some of their vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..foremost import foremost
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

    def as_json(self) -> dict[str, Any]:
        """The columns of `dn_graphs`, and `first_members`."""
        row = vars(self.graph).copy()
        row["lambda"] = row.pop("lam")
        order = ("id", "lambda", "vertices", "edges", "density", "triangles", "parent")
        return {name: row[name] for name in order} | {"first_members": self.members}


def best_groups(result: Result, most: int, most_members: int) -> list[BestGroup]:
    """The first `most` DN-graphs by λ, as `edgemill top` orders them; none if the result has no table of them.

    Reads the tables of DN-graphs and members once. Raises InputError for damage.
    """
    if result.manifest.dense is None or not result.manifest.dense.dn_graphs:
        return []
    graphs = rows_of(DNGraph, foremost(result, "lambda", most))
    some = members(result.dn_graph_members, [graph.id for graph in graphs], most_members)
    return [BestGroup(graph, some[graph.id]) for graph in graphs]
