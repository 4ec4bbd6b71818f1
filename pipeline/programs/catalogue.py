"""The programs that the setting `programs.run` can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


LAMBDA = "lambda"
"""The name of λ, which is not a vertex program."""


@dataclass(frozen=True)
class Column:
    """A column that a program adds to the table of vertices."""

    name: str
    state: str
    """Name of the array in the program's state."""
    kind: str
    """Alias of the Arrow type; `id` for ids of vertices."""
    meaning: str

    def type(self, id_type: pa.DataType) -> pa.DataType:
        """The Arrow type, in a graph with ids of `id_type`."""
        import pyarrow as pa

        return id_type if self.kind == "id" else pa.type_for_alias(self.kind)


@dataclass(frozen=True)
class Entry:
    """A program in the catalogue."""

    title: str
    columns: tuple[Column, ...]
    section: str | None = None
    """Section of the settings with its parameters; None without parameters."""


CATALOGUE: Mapping[str, Entry] = {
    "pagerank": Entry(
        "PageRank: how often a random walk with restarts visits a vertex.",
        (Column("pagerank", "rank", "double", "PageRank; the sum over all vertices is 1."),),
        "pagerank",
    ),
    "components": Entry(
        "Connected components, ignoring directions.",
        (Column("weak_component", "component", "id", "The smallest id in the component of the vertex."),),
    ),
    "labels": Entry(
        "Communities by label propagation: each vertex repeatedly takes the most frequent label of its neighbours.",
        (Column("label", "label", "id", "The label of the community, a vertex id."),),
        "labels",
    ),
    "coreness": Entry(
        "Core number of a vertex.",
        (Column("coreness", "core", "int32", "The largest k such that the vertex is in the k-core."),),
    ),
    "clustering": Entry(
        "Local clustering coefficient.",
        (Column("clustering", "clustering", "double", "The share of pairs of neighbours that are joined by an edge."),),
    ),
}
"""Name → program, in the order of their columns."""
