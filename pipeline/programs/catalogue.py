"""The programs that a run can be asked for, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CATALOGUE", "LAMBDA", "Column", "Entry"]

LAMBDA = "lambda"
"""What is found without being a program."""


@dataclass(frozen=True)
class Column:
    """What a program adds to the table of vertices."""

    name: str
    state: str
    """Its name in the program's state."""
    kind: str
    """Arrow's name of its type; `id` for ids of vertices."""
    meaning: str

    def type(self, id_type: pa.DataType) -> pa.DataType:
        """Its Arrow type, in a graph with such ids."""
        import pyarrow as pa

        return id_type if self.kind == "id" else pa.type_for_alias(self.kind)


@dataclass(frozen=True)
class Entry:
    """A program in the catalogue."""

    title: str
    columns: tuple[Column, ...]
    section: str | None = None
    """The settings that are its parameters."""


CATALOGUE: Mapping[str, Entry] = {
    "pagerank": Entry(
        "How often a walk along edges comes by, which starts anew now and then.",
        (Column("pagerank", "rank", "double", "PageRank; over all vertices 1."),),
        "pagerank",
    ),
    "components": Entry(
        "Which vertices are joined by edges.",
        (Column("weak_component", "component", "id", "The least id of those that the vertex is joined with."),),
    ),
    "labels": Entry(
        "Communities: each vertex takes the label that most of its neighbours have, some times over.",
        (Column("label", "label", "id", "Label of the community: an id."),),
        "labels",
    ),
    "coreness": Entry(
        "In how dense a core a vertex is, by degrees.",
        (Column("coreness", "core", "int32", "The largest k with the vertex in a k-core."),),
    ),
    "clustering": Entry(
        "How many of a vertex's neighbours are joined themselves.",
        (Column("clustering", "clustering", "double", "Edges between its neighbours among all there could be."),),
    ),
}
"""Name → program, in the order of their columns."""
