"""Read the edges of graphs of NetworkX, igraph and SciPy as columns of ids, and of weights."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ...tasks.errors import UsageError
from .input_object import ColumnNames, EdgeBatches

_BATCH_EDGES = 2**16
"""Edges that are read from a graph at a time."""
_NAMES = ("src", "dst")
_Edges: TypeAlias = tuple[pa.DataType, Iterator[tuple[Any, ...]]]
"""The type of the ids, and batches of sources, targets and, if they are wanted, weights."""


def is_graph(obj: object) -> bool:
    """Whether `obj` is a graph that `rows_of_graph` reads."""
    return _reader_for(obj) is not None


def rows_of_graph(graph: Any, name: str, columns: ColumnNames) -> EdgeBatches:
    """The edges of a graph as the columns `src` and `dst`, with their direction and multiplicity.

    Ids are the nodes of NetworkX; the attribute `name` of igraph's vertices, or their numbers if they have no names;
    the row and column numbers of a SciPy matrix, whose nonzero entries are edges. With a column of weights, they have
    the edges' attribute of that name, or the entries of a matrix. Raises UsageError for ids that are neither integers
    of 64 bits nor strings and for weights that are no numbers, InputError for settings that name other columns.
    """
    read = _reader_for(graph)
    assert read is not None
    kind, pairs = read(graph, name, columns.weight)
    weights = [] if columns.weight is None else [(columns.weight, pa.float64())]
    schema = pa.schema([*((end, kind) for end in _NAMES), *weights])
    columns.find(name, schema)
    return EdgeBatches(schema, (_batch(ends, schema, name) for ends in pairs))


def _reader_for(obj: object) -> Callable[[Any, str, str | None], _Edges] | None:
    # No library is imported here: a graph of a library that is not imported cannot exist.
    networkx, igraph, scipy = (sys.modules.get(module) for module in ("networkx", "igraph", "scipy.sparse"))
    if networkx is not None and isinstance(obj, networkx.Graph):
        return _of_networkx
    if igraph is not None and isinstance(obj, igraph.Graph):
        return _of_igraph
    if scipy is not None and scipy.issparse(obj):
        return _of_scipy
    return None


def _of_networkx(graph: Any, name: str, weight: str | None) -> _Edges:
    kind = _id_type(graph, name, "node")
    if weight is None:
        return kind, _cut((edge[0], edge[1]) for edge in graph.edges())
    return kind, _cut(graph.edges(data=weight))


def _of_igraph(graph: Any, name: str, weight: str | None) -> _Edges:
    if weight is not None and weight not in graph.es.attributes():
        raise UsageError(f"{name}: its edges have no attribute {weight!r}, which input.weight_column names")
    more = () if weight is None else (weight,)
    edges = ((*edge.tuple, *(edge[one] for one in more)) for edge in graph.es)
    if "name" not in graph.vs.attributes():
        return pa.int64(), _cut(edges)
    names = graph.vs["name"]
    kind = _id_type(names, name, "vertex name")
    if len({*names}) < len(names):
        raise UsageError(f"{name}: two vertices have the same name. Names are ids: make them unique, or delete them")
    return kind, _cut((names[source], names[target], *rest) for source, target, *rest in edges)


def _of_scipy(matrix: Any, name: str, weight: str | None) -> _Edges:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UsageError(
            f"{name} has the shape {matrix.shape}: an adjacency matrix is square, "
            "with a row and a column for each vertex"
        )
    if matrix.format not in ("csr", "csc"):
        found = matrix.tocoo(copy=False)
        entries = _entries(found.row, found.col, found.data)
    else:
        entries = _compressed(matrix)
    return pa.int64(), entries if weight is not None else (batch[:2] for batch in entries)


def _entries(rows: Any, columns: Any, values: Any) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(values), _BATCH_EDGES):
        part = slice(start, start + _BATCH_EDGES)
        there = values[part] != 0
        yield rows[part][there], columns[part][there], values[part][there]


def _compressed(matrix: Any) -> Iterator[tuple[Any, ...]]:
    starts = matrix.indptr.astype(np.int64)
    for start in range(0, int(starts[-1]), _BATCH_EDGES):
        stop = min(start + _BATCH_EDGES, int(starts[-1]))
        lines = np.searchsorted(starts, np.arange(start, stop), side="right") - 1
        there = matrix.data[start:stop] != 0
        ends = lines[there], matrix.indices[start:stop][there]
        yield *(ends if matrix.format == "csr" else ends[::-1]), matrix.data[start:stop][there]


def _cut(edges: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    rest = iter(edges)
    while part := list(islice(rest, _BATCH_EDGES)):
        yield tuple(zip(*part, strict=True))


def _batch(ends: tuple[Any, ...], schema: pa.Schema, name: str) -> pa.RecordBatch:
    try:
        return pa.record_batch([pa.array(end, field.type) for end, field in zip(ends, schema, strict=True)], schema)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise UsageError(f"{name}: ids or weights of its edges cannot be read: {error}") from error


def _id_type(ids: Iterable[Any], name: str, what: str) -> pa.DataType:
    """The common type of all ids of a graph. Raises UsageError for ids other than integers of 64 bits or strings."""
    least = most = 0
    number = text = False
    for one in ids:
        if isinstance(one, str):
            text = True
        elif isinstance(one, int | np.integer) and not isinstance(one, bool):
            number = True
            least, most = min(least, int(one)), max(most, int(one))
        else:
            raise UsageError(
                f"{name} has the {what} {one!r}, a {type(one).__name__}: ids are integers or strings; "
                "networkx.convert_node_labels_to_integers gives integers and keeps the original labels"
            )
        if number and text:
            raise UsageError(f"{name} has integers and strings as {what}s: make all of them strings or integers")
    if text:
        return pa.large_string()
    if least < -(2**63) or most >= 2**64 or (most >= 2**63 and least < 0):
        raise UsageError(f"{name} has the {what}s {least} to {most}, which are more than 64 bits: ids have at most 64")
    return pa.uint64() if most >= 2**63 else pa.int64()
