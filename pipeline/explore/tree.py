"""The hierarchy as it is shown: some levels below a component, without the steps at which nothing parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..rows import Component
from .children import Children
from .queries import Queries

__all__ = ["as_json", "branches", "tree"]

_OPENED = 64
"""Components of one level whose children are looked for, the largest."""
_LEAST_PASSES, _MOST_PASSES = 24, 400
_ROWS = 20_000_000
"""Rows of the hierarchy that are looked at for one tree, beyond _LEAST_PASSES."""


@dataclass
class _Node:
    component: Component | None
    """None: all of the graph."""
    level: int
    """Branchings above it."""
    children: Children | None = None
    """None as long as they were not looked for."""
    below: list[_Node] = field(default_factory=list)

    @property
    def steps(self) -> bool:
        """Whether it becomes a smaller component without parting, of which others are part in turn."""
        only = self.below[0] if self.children and self.children.count == len(self.below) == 1 else None
        return only is not None and (only.children is None or only.children.count > 0)


def as_json(component: Component) -> dict[str, Any]:
    """A component by itself."""
    shown = {"component": str(component.component), "k": component.k}
    return shown | {"vertices": component.vertices, "edges": component.edges}


def branches(queries: Queries, path: list[Component]) -> list[Component]:
    """Of the components that hold path[0] (innermost first), those that parted from others there; outermost first.

    The connected component of the graph is one of them.
    """
    above = path[1:]
    parents = [component.parent for component in above if component.parent is not None]
    counts = queries.children(parents, 0) if parents else {}
    return [c for c in reversed(above) if c.parent is None or counts[c.parent].count > 1]


def tree(queries: Queries, top: Component | None, depth: int, most: int) -> dict[str, Any]:
    """What lies in `top` (None: in the graph), ready for JSON: `depth` branchings, the `most` largest children of each.

    A node has component (a string; None for the graph), k, vertices and edges. Components that only step down, one in
    the other, are one node: that of the outermost, with `to`, the innermost of them. `children` are those of the
    innermost: count, edges (of all), largest (nodes); absent where they were not looked for. A node with k > 0 whose
    count is 0 is a DN-graph.
    """
    root = _Node(top, 0)
    level = [root]
    for _ in range(max(_LEAST_PASSES, min(_MOST_PASSES, _ROWS // max(queries.components, 1)))):
        if not level:
            break
        level = list(_opened(queries, level, depth, most))
    return _folded(root, queries)


def _opened(queries: Queries, level: list[_Node], depth: int, most: int) -> Iterator[_Node]:
    """Look for the children of a level; yields those whose own are to be looked for, the largest."""
    parents = None if level[0].component is None else [n.component.component for n in level if n.component]
    found = queries.children(parents, most)
    for node in level:
        node.children = found.get(node.component.component if node.component else None, Children([], 0, 0))
        if node.level < depth:
            parts = node.component is None or node.children.count > 1
            node.below = [_Node(child, node.level + parts) for child in node.children.largest]
    below = [child for node in level for child in node.below]
    below.sort(key=lambda node: -node.component.edges if node.component else 0)
    yield from below[:_OPENED]


def _folded(node: _Node, queries: Queries) -> dict[str, Any]:
    outer = node.component
    shown: dict[str, Any] = {"component": None, "edges": queries.result.manifest.counts.edges}
    if outer is not None:
        shown = as_json(outer)
        while node.steps:
            node = node.below[0]
        if node.component is not None and node.component is not outer:
            shown["to"] = as_json(node.component)
    if node.children is not None:
        largest = [_folded(child, queries) for child in node.below]
        shown["children"] = {"count": node.children.count, "edges": node.children.edges, "largest": largest}
    return shown
