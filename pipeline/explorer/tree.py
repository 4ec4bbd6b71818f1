"""The part of the hierarchy that is shown: some levels below a component. Levels without a split are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..results.lookup import Component
from .queries import Children, Queries

_EXPANDED = 64
"""Components of one level whose children are read: the largest ones."""
_LEAST_PASSES, _MOST_PASSES = 24, 400
_ROWS = 20_000_000
"""Rows of the hierarchy that are read for one tree, beyond _LEAST_PASSES passes."""


@dataclass
class _Node:
    component: Component | None
    """None for the whole graph."""
    level: int
    """Number of splits above it."""
    children: Children | None = None
    """None until they are read."""
    below: list[_Node] = field(default_factory=list)

    @property
    def merges_with_child(self) -> bool:
        """Whether it has a single child, which has children in turn or was not expanded."""
        only = self.below[0] if self.children and self.children.count == len(self.below) == 1 else None
        return only is not None and (only.children is None or only.children.count > 0)


def as_json(component: Component) -> dict[str, Any]:
    """A component as JSON values, without its children."""
    shown = {"component": str(component.component), "k": component.k}
    return shown | {"vertices": component.vertices, "edges": component.edges}


def branches(queries: Queries, path: list[Component]) -> list[Component]:
    """The ancestors of path[0] that have siblings or are a root, outermost first. `path` is innermost first."""
    above = path[1:]
    parents = [component.parent for component in above if component.parent is not None]
    counts = queries.children(parents, 0) if parents else {}
    return [c for c in reversed(above) if c.parent is None or counts[c.parent].count > 1]


def tree(queries: Queries, top: Component | None, depth: int, most: int) -> dict[str, Any]:
    """The descendants of `top` (None: of the graph) as JSON values: `depth` levels of splits, `most` children of each.

    A node has component (a string; None for the graph), k, vertices and edges. A chain of components without a split is
    one node: that of the outermost component, with the innermost one as `to`. `children` are those of the innermost
    component: count, edges (of all children), largest (nodes); absent if they were not read. A node with k > 0 and no
    children is a DN-graph.
    """
    root = _Node(top, 0)
    level = [root]
    for _ in range(max(_LEAST_PASSES, min(_MOST_PASSES, _ROWS // max(queries.components, 1)))):
        if not level:
            break
        level = list(_expand(queries, level, depth, most))
    return _node_as_json(root, queries)


def _expand(queries: Queries, level: list[_Node], depth: int, most: int) -> Iterator[_Node]:
    """Read the children of a level. Yields the largest of them, which are expanded next."""
    parents = None if level[0].component is None else [n.component.component for n in level if n.component]
    found = queries.children(parents, most)
    for node in level:
        node.children = found.get(node.component.component if node.component else None, Children([], 0, 0))
        if node.level < depth:
            splits = node.component is None or node.children.count > 1
            node.below = [_Node(child, node.level + splits) for child in node.children.largest]
    below = [child for node in level for child in node.below]
    below.sort(key=lambda node: -node.component.edges if node.component else 0)
    yield from below[:_EXPANDED]


def _node_as_json(node: _Node, queries: Queries) -> dict[str, Any]:
    outer = node.component
    shown: dict[str, Any] = {"component": None, "edges": queries.result.manifest.counts.edges}
    if outer is not None:
        shown = as_json(outer)
        while node.merges_with_child:
            node = node.below[0]
        if node.component is not None and node.component is not outer:
            shown["to"] = as_json(node.component)
    if node.children is not None:
        largest = [_node_as_json(child, queries) for child in node.below]
        shown["children"] = {"count": node.children.count, "edges": node.children.edges, "largest": largest}
    return shown
