"""A table of a result: a pyarrow dataset that converts to frames and graphs of other libraries.

For cuDF the files are decoded on the GPU, which takes an eighth of the time of decoding on the host and copying.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ...tasks.errors import EdgemillError, InputError, UsageError
from ...tasks.inputs.sources import FOOTER_READERS
from ...tasks.storage.atomic import atomic_file
from ...tasks.storage.folders import Folder
from ..messages.html import framed, many, rows_html, shown
from ..output.manifest import Manifest
from ..settings.setting_names import naming_keywords
from . import conversions
from .conversions import import_optional, to_dask_frame

if TYPE_CHECKING:
    import igraph
    import networkx
    import pandas
    import polars


@dataclass(frozen=True)
class SealedFile:
    """A file of a result, with the checksum of its content."""

    path: str
    sha256: str
    """The manifest's checksum, in hexadecimal."""


def can_decode(schema: pa.Schema, names: Sequence[str]) -> bool:
    """Whether cudf reads these columns from Parquet with the same types as from Arrow."""
    if not names or len(set(names)) < len(names):
        return False
    return all(schema.names.count(name) == 1 and _is_plain(schema.field(name).type) for name in names)


def cudf_of_files(files: Sequence[SealedFile], system: Any, names: Sequence[str]) -> Any | None:
    """A cudf.DataFrame of the columns `names` of Parquet files, in the order of the files; None if cudf cannot decode
    them. `system` is their Arrow file system.

    cudf does not verify checksums. So the files are read whole into the host's memory, verified, and decoded from
    there. Raises InputError for a file with another checksum, OSError if a file cannot be read, UsageError if cudf is
    not installed.
    """
    cudf = import_optional("cudf", "to_cudf()")
    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        contents = list(readers.map(lambda file: _checked(file, system), files))
    try:
        # By content and not by path: cudf takes "name=value" in a path for a column.
        found = cudf.read_parquet(list(map(BytesIO, contents)), columns=list(names), use_pandas_metadata=False)
        return found[list(names)]
    except (MemoryError, TypeError, ValueError, KeyError, OverflowError, RuntimeError):
        return None


def _is_plain(type: pa.DataType) -> bool:
    checks = (pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean)
    return any(check(type) for check in (*checks, pa.types.is_string, pa.types.is_large_string))


def _checked(file: SealedFile, system: Any) -> bytes:
    with system.open_input_file(file.path) as source:
        content = bytes(source.read())
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(f"the result is damaged: {file.path} is not the file that the manifest describes")
    return content


def dn_graph_vertices(dn_graphs: pa.Table, members: pa.Table) -> pa.Table:
    """The vertices of some DN-graphs, as a table of `vertex`, `dn_graph`, `lambda`.

    `dn_graphs` has the columns `id` and `lambda`; `members` has all rows of the table dn_graph_members.
    """
    index = pc.index_in(members["dn_graph"], dn_graphs["id"].combine_chunks())
    inside = pc.is_valid(index)
    kept, index = members.filter(inside), index.filter(inside)
    columns = [kept["vertex"], kept["dn_graph"], dn_graphs["lambda"].take(index)]
    return pa.table(columns, names=["vertex", "dn_graph", "lambda"])


def dn_graph_edges(vertices: pa.Table, edges: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The edges inside DN-graphs, as rows of `edges`. `vertices` come from `dn_graph_vertices`; `schema` is of `edges`.

    No edge with λ ≥ k leaves a DN-graph of that k, so the source and λ of an edge decide whether it is inside.
    """
    ids = vertices["vertex"].combine_chunks()
    least = vertices["lambda"].to_numpy()
    kept = []
    for batch in edges:
        index = pc.index_in(batch.column(0), ids)
        member = np.asarray(pc.is_valid(index))
        inside = member.copy()
        inside[member] = batch.column("lambda").to_numpy()[member] >= least[np.asarray(index.drop_null())]
        kept.append(batch.filter(pa.array(inside)))
    return pa.Table.from_batches(kept, schema)


SHOWN_ROWS = 10
"""Rows that a notebook shows of a table."""
TEMPORARY = "edgemill-temporary"
"""Type of the file systems of temporary results."""
_NULLABLE: Mapping[str, tuple[str, ...]] = {
    "vertices": ("component",),
    "hierarchy": ("parent",),
    "dn_graphs": ("parent",),
}
"""Table → its integer columns with nulls."""


class _Tables(Protocol):
    """The part of a Result that conversions to graphs need."""

    manifest: Manifest

    def reading(self) -> AbstractContextManager[None]: ...

    @property
    def edges(self) -> ResultTable: ...

    @property
    def dn_graph_members(self) -> ResultTable: ...

    @property
    def attributes(self) -> ResultTable: ...


class ResultTable(ds.FileSystemDataset):  # type: ignore[misc]
    """A table of a result. It is a `pyarrow.dataset.Dataset` (`to_table()`, `to_batches()`, `filter()`, `scanner()`,
    `count_rows()`, `schema`), so DuckDB reads it by the name of a variable and pushes columns and filters down.

    `len(table)`, `table["lambda"]`, `table[["source", "lambda"]]` and `head()` work as for frames.

    `to_pandas`, `to_polars`, `to_arrow`, `to_cudf` and `to_parquet` take `columns`, a sequence of names (default: all),
    and `filter`, a `pyarrow.compute` expression over the columns. The results of the first four are in memory. All
    methods raise UsageError for a package that is not installed or a column that does not exist, and InputError for
    damage.
    """

    _name = ""
    _rows = 0
    _folder: Folder | None = None
    _tables: Callable[[], _Tables] | None = None
    _unfiltered: ResultTable | None = None

    @classmethod
    def of(
        cls, dataset: ds.FileSystemDataset, name: str, rows: int, folder: Folder, tables: Callable[[], _Tables]
    ) -> Self:
        """The table `name` of the result at `folder`. `dataset` reads its files; `tables` opens the result's tables."""
        made = cls(list(dataset.get_fragments()), dataset.schema, dataset.format, dataset.filesystem)
        made._name, made._rows, made._folder, made._tables = name, rows, folder, tables
        return made

    def filter(self, expression: pc.Expression) -> Self:
        """The rows for which `expression` holds, as a lazy table."""
        made: Self = super().filter(expression)
        made._name, made._rows, made._folder, made._tables = self._name, self._rows, self._folder, self._tables
        made._unfiltered = self if self._unfiltered is None else self._unfiltered
        return made

    def reading(self) -> AbstractContextManager[None]:
        """A context for reading its rows: `Result.reading` of its result."""
        return nullcontext() if self._tables is None else self._tables().reading()

    def __len__(self) -> int:
        """The number of rows. Those of a filtered table are counted, which reads the columns of its filter."""
        return self._rows if self._filter is None else int(self.count_rows())

    def __bool__(self) -> bool:
        return True  # as other datasets are, without counting rows

    @overload
    def __getitem__(self, columns: str) -> pa.ChunkedArray: ...

    @overload
    def __getitem__(self, columns: list[str]) -> pa.Table: ...

    @naming_keywords()
    def __getitem__(self, columns: str | list[str]) -> pa.ChunkedArray | pa.Table:
        """A column, as a pyarrow.ChunkedArray; or, for a list of names, a pyarrow.Table of these columns."""
        if isinstance(columns, str):
            return self.to_arrow([columns])[columns]
        if isinstance(columns, list) and all(isinstance(name, str) for name in columns):
            return self.to_arrow(columns)
        raise TypeError(f"a column is named by text, as in table[{self.schema.names[0]!r}], not by {columns!r}")

    __iter__ = None
    """Rows are read by `to_batches()`; a loop over the table itself would be one over columns or rows."""

    def head(self, num_rows: int = 5, **options: Any) -> pa.Table:
        """The first rows, as a pyarrow.Table. `options` are those of a dataset's `scanner`, such as `columns`."""
        with self.reading():
            return super().head(num_rows, **options)

    @naming_keywords()
    def to_parquet(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        compression: str = "zstd",
    ) -> None:
        """Write the rows to one Parquet file, a batch at a time. It replaces a file at `path` once it is whole.

        Raises UsageError if it cannot be written.
        """
        names = None if columns is None else self._known(columns)
        target = Path(path)
        try:
            with atomic_file(target) as file, self.reading():
                reader = self.scanner(columns=names, filter=filter).to_reader()
                with pq.ParquetWriter(file, reader.schema, compression=compression) as writer:
                    for batch in reader:
                        if batch.num_rows:
                            writer.write_batch(batch)
        except OSError as error:
            if error.errno is None:  # Arrow's, of a damaged file
                raise
            raise UsageError(f"cannot write {target}: {error.strerror}; choose another path") from error

    def __copy__(self) -> Self:
        return self  # a table does not change

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the place of the result, as a Result does, and the filter. Raises UsageError if it is temporary."""
        if self.filesystem.type_name.endswith(TEMPORARY):
            raise UsageError(
                f"{self._name} of the temporary result in {self._folder} cannot be pickled, as its files go with this "
                "process: name an output, or pickle to_arrow()"
            )
        return _table_of, (self._others(), self._name, self._filter)

    @naming_keywords()
    def to_arrow(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pa.Table:
        """A pyarrow.Table."""
        names = None if columns is None else self._known(columns)
        with self.reading():
            return self.to_table(columns=names, filter=filter)

    @naming_keywords()
    def to_pandas(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pandas.DataFrame:
        """A pandas.DataFrame. `component` of vertices and `parent` of groups, which may be null, are `Int64`."""
        return conversions.to_pandas(self.to_arrow(columns, filter), self._nullable)

    @naming_keywords()
    def to_polars(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> polars.DataFrame:
        """A polars.DataFrame. `polars.scan_pyarrow_dataset(table)` gives a lazy one."""
        return conversions.to_polars(self.to_arrow(columns, filter))

    @naming_keywords()
    def to_cudf(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> Any:
        """A cudf.DataFrame in the memory of the GPU. The GPU decodes whole columns of a result on a disk; otherwise the
        host decodes the rows, and they are copied.
        """
        if filter is None and self._filter is None:
            frame = self._decoded_on_gpu(self.schema.names if columns is None else list(columns))
            if frame is not None:
                return frame
        return conversions.to_cudf(self.to_arrow(columns, filter))

    @naming_keywords()
    def to_dask(self, columns: Sequence[str] | None = None) -> Any:
        """A lazy dask.dataframe.DataFrame with a partition for each row group (at most `output.row_group_rows` rows).

        The workers that compute it read the result's files and must have access to them. Partitions have the types of
        `to_pandas`, except text, which has Dask's type.
        """
        with self.reading():
            files = (self if self._unfiltered is None else self._unfiltered).get_fragments()
            pieces = [part for file in files for part in file.split_by_row_group(self._filter)]
        return to_dask_frame(
            f"edgemill-{self._name}",
            pieces,
            [self._filter] * len(pieces),
            self.schema if columns is None else pa.schema([self.schema.field(name) for name in self._known(columns)]),
            self._nullable,
        )

    @naming_keywords()
    def to_networkx(self) -> networkx.Graph:
        """A networkx graph in memory. Its nodes are the ids.

        - `edges`: a Graph. The columns after the ids are attributes of the edges.
        - `vertices`: the same Graph with all vertices, also those without edges. The columns of the vertices and the
          attributes of the run's `--vertices` are attributes of the nodes.
        - `dn_graphs`: a Graph of the edges inside DN-graphs. Each node has the attribute `dn_graph`.
        - `hierarchy`: a DiGraph with an arc from each component to each of its children.

        Raises UsageError for `dn_graph_members`.
        """
        match self._name:
            case "edges":
                return conversions.to_networkx(self._batches())
            case "vertices":
                nodes = self._with_attributes().to_batches()
                return conversions.to_networkx(self._others().edges._batches(), nodes)
            case "dn_graphs":
                edges, vertices = self._dn_graphs()
                return conversions.to_networkx(edges.to_batches(), vertices.to_batches())
            case "hierarchy":
                return conversions.forest_in_networkx(self._batches(), "parent")
        raise self._no_graph()

    @naming_keywords()
    def to_igraph(self) -> igraph.Graph:
        """An undirected igraph.Graph in memory. An id is the attribute `name` of its vertex.

        Converts `edges`, `vertices` and `dn_graphs` as `to_networkx` does; nulls are None. Raises UsageError for other
        tables.
        """
        match self._name:
            case "edges":
                return conversions.to_igraph(self.to_arrow())
            case "vertices":
                return conversions.to_igraph(self._others().edges.to_arrow(), self._with_attributes())
            case "dn_graphs":
                return conversions.to_igraph(*self._dn_graphs())
        raise self._no_graph()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows by Arrow's PyCapsule interface, a batch at a time."""
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        try:
            rows = self.head(SHOWN_ROWS + 1)
        except (EdgemillError, OSError) as error:
            return framed(f"<p>{shown(repr(self), 300)}</p><p>The rows cannot be read: {shown(error, 300)}</p>")
        size = many(self._rows, "row") if self._filter is None else f"some of {many(self._rows, 'row')}"
        about = f'<p><b>{shown(self._name)}</b> {size} <span class="faint">of {shown(self._folder, 120)}</span></p>'
        return framed(about, rows_html(rows, SHOWN_ROWS))

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        some = "some of " if self._filter is not None else ""
        return f"{self._name} of {self._folder}: {some}{self._rows:,} rows ({columns})"

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
        """A cudf.DataFrame of these columns; None if the GPU cannot decode them."""
        if self._folder is None or not self._folder.is_local or not can_decode(self.schema, names):
            return None
        digests = {self._folder.path(one.path): one.sha256 for one in self._others().manifest.outputs}
        if not self.files or not all(path in digests for path in self.files):
            return None
        files = [SealedFile(path, digests[path]) for path in self.files]
        with self.reading():
            return cudf_of_files(files, self.filesystem, names)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with self.reading():
            yield from self.to_batches()

    def _with_attributes(self) -> pa.Table:
        """The vertices, with the attributes of the run's `--vertices` if there are any."""
        rows = self.to_arrow()
        try:
            attributes = self._others().attributes.to_arrow()
        except UsageError:
            return rows
        index = pc.index_in(rows["id"], attributes["id"].combine_chunks())
        for name in attributes.column_names[1:]:
            if name not in rows.column_names:
                rows = rows.append_column(name, attributes[name].take(index))
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
            raise UsageError("this table has lost its result: take it from Result again")
        return self._tables()

    def _no_graph(self) -> UsageError:
        return UsageError(
            f"the table {self._name} cannot be converted to this graph: edges, vertices and dn_graphs convert to "
            "NetworkX and igraph, hierarchy to NetworkX"
        )


def _table_of(result: Any, name: str, where: pc.Expression | None) -> ResultTable:
    """A pickled table."""
    table: ResultTable = getattr(result, name)
    return table if where is None else table.filter(where)
