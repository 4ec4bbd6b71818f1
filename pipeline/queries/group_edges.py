"""The edges of one group: a reader of Arrow batches that converts to frames and graphs of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ..messages.html import framed, rows_html
from ..results import conversions
from ..results.conversions import to_dask_frame

if TYPE_CHECKING:
    import igraph
    import networkx
    import pandas
    import polars

_SHOWN_ROWS = 10
"""Rows that a notebook shows."""


class GroupEdges:
    """The edges of a group, as rows of `Result.edges` and in their order.

    It can be read once like a `pyarrow.RecordBatchReader`: in a loop over batches, or whole by `read_all()`. Methods
    that begin with `to_` read the edges anew at each call; their results are in memory, except that of `to_dask()`.
    Raises InputError for damage, UsageError for a package that is not installed.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.RecordBatch]],
        pieces: Callable[[], Sequence[tuple[ds.ParquetFileFragment, pc.Expression]]],
    ) -> None:
        self.schema = schema
        """That of `Result.edges`, whose columns docs/outputs.md lists."""
        self._batches = batches
        self._pieces = pieces

    def to_arrow(self) -> pa.Table:
        """A pyarrow.Table."""
        return pa.Table.from_batches(self._batches(), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame."""
        return conversions.to_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """A polars.DataFrame."""
        return conversions.to_polars(self.to_arrow())

    def to_cudf(self) -> Any:
        """A cudf.DataFrame, in the memory of the GPU."""
        return conversions.to_cudf(self.to_arrow())

    def to_dask(self) -> Any:
        """A lazy dask.dataframe.DataFrame with a partition for each row group that can hold edges of the group.

        The workers that compute it read the result's files and must have access to them. Partitions may be empty.
        """
        parts = self._pieces()
        pieces, filters = [piece for piece, _ in parts], [where for _, where in parts]
        return to_dask_frame("edgemill-group", pieces, filters, self.schema, ())

    def to_networkx(self) -> networkx.Graph:
        """A networkx.Graph; the columns after the ids are attributes of the edges."""
        return conversions.to_networkx(self._batches())

    def to_igraph(self) -> igraph.Graph:
        """An igraph.Graph; an id is the attribute `name` of its vertex."""
        return conversions.to_igraph(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows by Arrow's PyCapsule interface, read anew, a batch at a time."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__(requested_schema)

    @cached_property
    def _reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._reader)

    def __enter__(self) -> GroupEdges:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._reader, name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_reader"}  # a copy reads anew

    def _repr_html_(self) -> str:
        kept: list[pa.RecordBatch] = []
        for batch in self._batches():
            kept.append(batch)
            if sum(one.num_rows for one in kept) > _SHOWN_ROWS:
                break
        rows = pa.Table.from_batches(kept, self.schema)
        return framed("<p><b>edges of a group</b></p>", rows_html(rows, _SHOWN_ROWS))

    def __repr__(self) -> str:
        return f"edges of a group ({', '.join(f'{field.name} {field.type}' for field in self.schema)})"
