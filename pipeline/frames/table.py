"""A table of a result: a pyarrow dataset that other libraries' frames and graphs can be made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ...tasks.errors import UsageError
from ...tasks.places import Place
from ..manifest import Manifest
from . import frames_of_rows, graphs_of_rows
from .dn_graphs_as_graphs import dn_graph_edges, dn_graph_vertices
from .frames_of_files import SealedFile, can_decode, cudf_of_files
from .lazily import as_partitions
from .reading import reading

__all__ = ["ResultTable"]

_NULLABLE: Mapping[str, tuple[str, ...]] = {
    "vertices": ("component",),
    "hierarchy": ("parent",),
    "dn_graphs": ("parent",),
}
"""Table → its integer columns that may hold nulls."""


class _Tables(Protocol):
    """One result."""

    manifest: Manifest

    @property
    def edges(self) -> ResultTable: ...

    @property
    def dn_graph_members(self) -> ResultTable: ...

    @property
    def attributes(self) -> ResultTable: ...


class ResultTable(ds.FileSystemDataset):  # type: ignore[misc]
    """A table of a result. It is a `pyarrow.dataset.Dataset` (`to_table()`, `to_batches()`, `filter()`, `scanner()`,
    `count_rows()`, `schema`), so DuckDB reads it by the name of a variable and pushes columns and filters down.

    `to_pandas`, `to_polars`, `to_arrow`, `to_cudf` take `columns`, a sequence of names (all without it), and `filter`,
    a `pyarrow.compute` expression over the columns; what they give lies in memory. All of them raise UsageError for a
    package that is not installed and a column that is not there, and InputError if a file of the result is damaged.
    """

    _name = ""
    _rows = 0
    _place: Place | None = None
    _tables: Callable[[], _Tables] | None = None
    _unfiltered: ResultTable | None = None

    @classmethod
    def of(
        cls, dataset: ds.FileSystemDataset, name: str, rows: int, place: Place, tables: Callable[[], _Tables]
    ) -> Self:
        """The table `name` of the result at `place`, whose files `dataset` reads; `tables` gives it and the others."""
        made = cls(list(dataset.get_fragments()), dataset.schema, dataset.format, dataset.filesystem)
        made._name, made._rows, made._place, made._tables = name, rows, place, tables
        return made

    def filter(self, expression: pc.Expression) -> Self:
        """The rows for which `expression` holds, as a table that is read when it is asked."""
        made: Self = super().filter(expression)
        made._name, made._rows, made._place, made._tables = self._name, self._rows, self._place, self._tables
        made._unfiltered = self._unfiltered or self
        return made

    def to_arrow(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pa.Table:
        """A pyarrow.Table."""
        names = None if columns is None else self._known(columns)
        with _reading(self._place):
            return self.to_table(columns=names, filter=filter)

    def to_pandas(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> Any:
        """A pandas.DataFrame. The columns `component` of vertices and `parent` of groups, which may be missing, are
        `Int64`.
        """
        return frames_of_rows.to_pandas(self.to_arrow(columns, filter), self._nullable)

    def to_polars(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> Any:
        """A polars.DataFrame. For a lazy one: `polars.scan_pyarrow_dataset(table)`."""
        return frames_of_rows.to_polars(self.to_arrow(columns, filter))

    def to_cudf(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> Any:
        """A cudf.DataFrame, in the memory of the GPU. Whole columns of a result on a disk are decoded there; else rows
        are decoded in the host's memory and copied.
        """
        if filter is None and self._filter is None:
            frame = self._decoded_on_gpu(self.schema.names if columns is None else list(columns))
            if frame is not None:
                return frame
        return frames_of_rows.to_cudf(self.to_arrow(columns, filter))

    def to_dask(self, columns: Sequence[str] | None = None) -> Any:
        """A dask.dataframe.DataFrame with a partition for each row group (`output.row_group_rows` rows, at most).

        It is lazy: no row is read here, and the workers that compute it read the result's files themselves, so they
        must see them. A partition has the types that `to_pandas` gives, but for text, which has Dask's own.
        """
        with _reading(self._place):
            files = (self._unfiltered or self).get_fragments()
            pieces = [part for file in files for part in file.split_by_row_group(self._filter)]
        return as_partitions(
            f"edgemill-{self._name}",
            pieces,
            [self._filter] * len(pieces),
            self.schema if columns is None else pa.schema([self.schema.field(name) for name in self._known(columns)]),
            self._nullable,
        )

    def to_networkx(self) -> Any:
        """A networkx graph in memory; ids are its nodes.

        Of `edges`: a Graph; the columns after the ids are attributes of the edges. Of `vertices`: the same, with the
        vertices' columns, and the attributes that the run was given, as attributes of the nodes; vertices without
        edges are in it. Of `dn_graphs`: a Graph of the
        edges inside DN-graphs alone, in which each node has the attribute `dn_graph`. Of `hierarchy`: a DiGraph with
        an arc from each component to those directly within it. Raises UsageError for `dn_graph_members`.
        """
        match self._name:
            case "edges":
                return graphs_of_rows.to_networkx(self._batches())
            case "vertices":
                nodes = self._with_attributes().to_batches()
                return graphs_of_rows.to_networkx(self._others().edges._batches(), nodes)
            case "dn_graphs":
                edges, vertices = self._dn_graphs()
                return graphs_of_rows.to_networkx(edges.to_batches(), vertices.to_batches())
            case "hierarchy":
                return graphs_of_rows.forest_in_networkx(self._batches(), "parent")
        raise self._no_graph()

    def to_igraph(self) -> Any:
        """An igraph.Graph in memory, undirected; an id is the attribute `name` of its vertex.

        Of `edges`, `vertices` and `dn_graphs`, as `to_networkx`; nulls are None. Raises UsageError for others.
        """
        match self._name:
            case "edges":
                return graphs_of_rows.to_igraph(self.to_arrow())
            case "vertices":
                return graphs_of_rows.to_igraph(self._others().edges.to_arrow(), self._with_attributes())
            case "dn_graphs":
                return graphs_of_rows.to_igraph(*self._dn_graphs())
        raise self._no_graph()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows, as libraries exchange them by Arrow's PyCapsule interface: a batch at a time."""
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        some = "some of " if self._filter is not None else ""
        return f"{self._name} of {self._place}: {some}{self._rows:,} rows ({columns})"

    @property
    def _nullable(self) -> tuple[str, ...]:
        return _NULLABLE.get(self._name, ())

    @property
    def _filter(self) -> pc.Expression | None:
        found: pc.Expression | None = (self._scan_options or {}).get("filter")
        return found

    def _known(self, columns: Sequence[str]) -> list[str]:
        for name in columns:
            if name not in self.schema.names:
                raise UsageError(f"{self._name} has no column {name!r}; it has {', '.join(self.schema.names)}")
        return list(columns)

    def _decoded_on_gpu(self, names: Sequence[str]) -> Any | None:
        """A cudf.DataFrame of these columns; None where the host decodes them."""
        if self._place is None or not self._place.is_local or not can_decode(self.schema, names):
            return None
        digests = {self._place.path(one.path): one.sha256 for one in self._others().manifest.outputs}
        if not self.files or not all(path in digests for path in self.files):
            return None
        files = [SealedFile(path, digests[path]) for path in self.files]
        with _reading(self._place):
            return cudf_of_files(files, self.filesystem, names)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with _reading(self._place):
            yield from self.to_batches()

    def _with_attributes(self) -> pa.Table:
        """The vertices with the attributes that the run was given, if it was given some."""
        rows = self.to_arrow()
        try:
            attributes = self._others().attributes.to_arrow()
        except UsageError:
            return rows
        place = pc.index_in(rows["id"], attributes["id"].combine_chunks())
        for name in attributes.column_names[1:]:
            if name not in rows.column_names:
                rows = rows.append_column(name, attributes[name].take(place))
        return rows

    def _dn_graphs(self) -> tuple[pa.Table, pa.Table]:
        """The edges inside the DN-graphs of this table, and their vertices."""
        result = self._others()
        graphs = self.to_arrow(["id", "lambda"])
        vertices = dn_graph_vertices(graphs, result.dn_graph_members.to_arrow())
        edges = dn_graph_edges(vertices, result.edges._batches(), result.edges.schema)
        return edges, vertices.drop_columns(["lambda"])

    def _others(self) -> _Tables:
        if self._tables is None:
            raise UsageError("this table is no longer one of a result: take it from Result again")
        return self._tables()

    def _no_graph(self) -> UsageError:
        return UsageError(
            f"the table {self._name} cannot be made into a graph here: edges, vertices and dn_graphs can, "
            "and hierarchy into one of NetworkX"
        )


def _reading(place: Place | None) -> Any:
    return nullcontext() if place is None else reading(place)
