"""Hypothesis strategies: graphs as users write them, and ids of every type."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

EdgeList = list[tuple[int, int]]

INTEGER_TYPES = (
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
)
STRING_TYPES = (pa.string(), pa.large_string())
ID_TYPES = (*INTEGER_TYPES, *STRING_TYPES, pa.binary(16))

_LETTERS = "\x00\t aAbZ019_-/\x7f\x80éλ→漢\ufffd\U0001f600\U0010ffff"
"""One to four bytes in UTF-8; NUL; and a pair with the opposite order in UTF-16."""


@dataclass(frozen=True)
class Naming:
    """Names for the vertex numbers 0 to n - 1: all different, in no particular order."""

    type: pa.DataType
    names: tuple[Any, ...]

    def table(self, rows: EdgeList, source: str = "src", target: str = "dst") -> pa.Table:
        """The rows as a table with two columns of these names."""
        columns = [pa.array([self.names[row[end]] for row in rows], self.type) for end in (0, 1)]
        return pa.table(columns, names=[source, target])


@st.composite
def simple_graphs(draw: st.DrawFn, max_vertices: int = 12) -> EdgeList:
    """Simple graphs from empty to complete: sparse or dense at random, unions of cliques, bipartite."""
    size = draw(st.integers(2, max_vertices))
    pairs = list(combinations(range(size), 2))
    kind = draw(st.sampled_from(["any", "dense", "cliques", "bipartite"]))
    if kind == "any":
        return draw(st.lists(st.sampled_from(pairs), unique=True, max_size=3 * size))
    if kind == "dense":
        missing = set(draw(st.lists(st.sampled_from(pairs), unique=True, max_size=size)))
        return [pair for pair in pairs if pair not in missing]
    if kind == "bipartite":
        left = draw(st.integers(1, size - 1))
        across = [(u, v) for u, v in pairs if u < left <= v]
        return draw(st.lists(st.sampled_from(across), unique=True))
    members = st.sets(st.integers(0, size - 1), min_size=2, max_size=6)
    cliques = draw(st.lists(members, min_size=1, max_size=4))
    extra = draw(st.lists(st.sampled_from(pairs), max_size=size))
    return sorted({pair for clique in cliques for pair in combinations(sorted(clique), 2)} | set(extra))


@st.composite
def messy_rows(draw: st.DrawFn, graph: EdgeList, max_vertices: int = 12) -> EdgeList:
    """The graph as users may write it: shuffled, some edges reversed, with duplicates and self-loops."""
    rows = list(graph)
    if graph:
        rows += draw(st.lists(st.sampled_from(graph), max_size=6))
    flips = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    rows = [(v, u) if flip else (u, v) for (u, v), flip in zip(rows, flips, strict=True)]
    rows += [(loop, loop) for loop in draw(st.lists(st.integers(0, max_vertices - 1), max_size=3))]
    return draw(st.permutations(rows))


@st.composite
def edge_lists(draw: st.DrawFn, max_vertices: int = 12) -> EdgeList:
    """Edge lists over the vertices 0 to max_vertices - 1 with loops, duplicates and both directions."""
    return draw(messy_rows(draw(simple_graphs(max_vertices)), max_vertices))


@st.composite
def namings(draw: st.DrawFn, vertices: int, types: tuple[pa.DataType, ...] = ID_TYPES) -> Naming:
    """Distinct ids of a drawn type: ends of the type's range, negative ids, any text."""
    id_type = draw(st.sampled_from(types))
    values: st.SearchStrategy[Any]
    if pa.types.is_integer(id_type):
        bits = id_type.bit_width if pa.types.is_unsigned_integer(id_type) else id_type.bit_width - 1
        lowest = 0 if pa.types.is_unsigned_integer(id_type) else -(1 << bits)
        highest = (1 << bits) - 1
        near_the_top = st.integers(max(lowest, highest - 4 * vertices), highest)
        values = st.one_of(st.integers(lowest, highest), near_the_top, st.integers(lowest, min(highest, 4 * vertices)))
    elif pa.types.is_fixed_size_binary(id_type):
        values = st.binary(min_size=16, max_size=16)
    else:
        values = st.text(_LETTERS, max_size=6)
    names = draw(st.lists(values, unique=True, min_size=vertices, max_size=vertices))
    return Naming(id_type, tuple(names))
