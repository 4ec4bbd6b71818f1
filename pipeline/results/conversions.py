"""Conversions of Arrow tables and batches to frames of pandas, Polars, cuDF, Dask, and graphs of NetworkX and igraph.

The libraries are optional; each is imported when it is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ...tasks.errors import UsageError
from ...tasks.ids.display import display_column
from ...tasks.inputs.columns import is_uuid
from ...tasks.inputs.opening import error_reason

if TYPE_CHECKING:
    import pandas
    import polars


_EXTRA = {"igraph": "igraph", "matplotlib": "plot", "networkx": "networkx", "pandas": "pandas", "polars": "polars"}
"""Package → the extra of edgemill that brings it."""


def import_optional(module: str, what: str) -> ModuleType:
    """Import the module, which `what` needs. Raises UsageError with the name of the package and of edgemill's extra."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if package in _EXTRA:
            how = f"pip install 'edgemill[{_EXTRA[package]}]'"
        else:
            how = f"install {package} as its documentation says"
        raise UsageError(f"{what} needs the package {package}, which cannot be imported ({error}): {how}") from error


def to_pandas(table: pa.Table, nullable: Collection[str] = ()) -> pandas.DataFrame:
    """A pandas.DataFrame. The columns in `nullable` are integers with nulls: they become `Int64`, which does not round.

    Raises UsageError if pandas is not installed.
    """
    package = import_optional("pandas", "to_pandas()")
    frame: pandas.DataFrame = table.to_pandas()
    for name in nullable:
        if name in frame:
            frame[name] = package.Int64Dtype().__from_arrow__(table[name])
    return frame


def to_polars(table: pa.Table) -> polars.DataFrame:
    """A polars.DataFrame, which shares memory with the table where possible.

    Raises UsageError if polars is not installed.
    """
    frame: polars.DataFrame = import_optional("polars", "to_polars()").from_arrow(table)
    return frame


def to_cudf(table: pa.Table) -> Any:
    """A cudf.DataFrame: a copy of the table in the memory of the GPU. cudf has no type for UUIDs; they become text.

    Raises UsageError if cudf is not installed or has no type for a column.
    """
    cudf = import_optional("cudf", "to_cudf()")
    for column, field in enumerate(table.schema):
        if is_uuid(field.type):
            parts = [display_column(part) for part in table.column(column).chunks]
            table = table.set_column(column, field.name, pa.chunked_array(parts, pa.string()))
    try:  # cudf uses one dictionary for all chunks of a column
        return cudf.DataFrame.from_arrow(table.unify_dictionaries())
    except (TypeError, ValueError, RuntimeError) as error:
        columns = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise UsageError(
            f"cudf cannot make a frame of this table ({columns}): {error_reason(error)}; "
            "name the columns that it can hold: to_cudf(columns=…)"
        ) from error


def to_networkx(edges: Iterable[pa.RecordBatch], vertices: Iterable[pa.RecordBatch] = ()) -> Any:
    """A networkx.Graph.

    The first two columns of `edges` are the ends of each edge, the others are attributes of the edge. The first column
    of `vertices` is the node, the others are its attributes; nulls are left out. Raises UsageError if networkx is not
    installed.
    """
    graph = import_optional("networkx", "to_networkx()").Graph()
    for batch in vertices:
        ids, names = batch.column(0).to_pylist(), batch.schema.names[1:]
        graph.add_nodes_from(zip(ids, _attributes(batch, names, 1), strict=True))
    for batch in edges:
        ends, names = (batch.column(end).to_pylist() for end in (0, 1)), batch.schema.names[2:]
        graph.add_edges_from(zip(*ends, _attributes(batch, names, 2), strict=True))
    return graph


def forest_in_networkx(rows: Iterable[pa.RecordBatch], parent: str) -> Any:
    """A networkx.DiGraph with an arc from each parent to each child.

    The first column of `rows` is the node, the column `parent` is its parent, the others are attributes of the node.
    Raises UsageError if networkx is not installed.
    """
    graph = import_optional("networkx", "to_networkx()").DiGraph()
    for batch in rows:
        nodes = batch.column(0).to_pylist()
        attributes = batch.drop_columns([parent])
        graph.add_nodes_from(zip(nodes, _attributes(attributes, attributes.schema.names[1:], 1), strict=True))
        pairs = zip(batch.column(parent).to_pylist(), nodes, strict=True)
        graph.add_edges_from(pair for pair in pairs if pair[0] is not None)
    return graph


def to_igraph(edges: pa.Table, vertices: pa.Table | None = None) -> Any:
    """An undirected igraph.Graph. Ids are the attribute `name` of vertices; a column named `name` becomes `name_`.

    The first two columns of `edges` are the ends of each edge. The first column of `vertices` is the id. Without
    `vertices`, the vertices are the ends of the edges, ascending. Other columns are attributes. Raises UsageError if
    igraph is not installed.
    """
    igraph = import_optional("igraph", "to_igraph()")
    ends = [edges.column(end) for end in (0, 1)]
    if vertices is None:
        both = pa.chunked_array([chunk for end in ends for chunk in end.chunks], ends[0].type)
        ids = pc.unique(both)
        ids = ids.take(pc.sort_indices(ids))
        found: Any = ()
    else:
        ids = vertices.column(0).combine_chunks()
        found = _columns(vertices.select(vertices.column_names[1:])).items()
    pairs = np.stack([np.asarray(pc.index_in(end, ids), np.int64) for end in ends], axis=1)
    return igraph.Graph(
        n=len(ids),
        edges=pairs,
        vertex_attrs={"name": ids.to_pylist()} | {f"{name}_" if name == "name" else name: own for name, own in found},
        edge_attrs=_columns(edges.select(edges.column_names[2:])),
    )


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    return {name: table[name].to_pylist() for name in table.column_names}


def _attributes(batch: pa.RecordBatch, names: list[str], first: int) -> Iterator[Mapping[str, Any]]:
    """For each row a mapping from name to value, of the columns from `first` on. Nulls are left out."""
    if not names:
        return ({} for _ in range(batch.num_rows))
    columns = [batch.column(first + at) for at in range(len(names))]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    if not any(column.null_count for column in columns):
        return (dict(zip(names, row, strict=True)) for row in rows)
    return ({name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows)


def to_dask_frame(
    label: str,
    pieces: Sequence[ds.ParquetFileFragment],
    filters: Sequence[pc.Expression | None],
    schema: pa.Schema,
    nullable: Sequence[str],
) -> Any:
    """A dask.dataframe.DataFrame with a partition for each of `pieces`, of the rows that meet the filter of the piece.

    `schema` has the columns to read; `nullable` is as in `to_pandas`. Raises UsageError if pandas is not installed.
    """
    import_optional("pandas", "to_dask()")
    frames = import_optional("dask.dataframe", "to_dask()")
    empty = to_pandas(schema.empty_table(), nullable)
    if not pieces:
        return frames.from_pandas(empty, npartitions=1)
    return frames.from_map(
        _partition,
        list(pieces),
        list(filters),
        meta=empty,
        label=label,
        enforce_metadata=False,
        columns=schema.names,
        nullable=tuple(nullable),
    )


def _partition(
    piece: ds.ParquetFileFragment, filter: pc.Expression | None, columns: list[str], nullable: tuple[str, ...]
) -> Any:
    return to_pandas(piece.to_table(columns=columns, filter=filter), nullable)
