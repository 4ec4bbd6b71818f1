"""The tables of an earlier result. Each bucket reads only the rows that it needs."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ..errors import InputError
from ..inputs.opening import error_reason
from ..storage.folders import Folder


@dataclass(frozen=True)
class EarlierResult:
    """The files of an earlier result that tracks are read from. Picklable."""

    place: Folder
    vertices: tuple[str, ...]
    """Files of its table of vertices, relative to its folder, in order."""
    dn_graphs: tuple[str, ...]
    """Files of its table of DN-graphs."""

    def rows_of_vertices(self, first: pa.Scalar, last: pa.Scalar) -> pa.Table:
        """Id and component of its vertices with ids from `first` to `last`, without those in no component.

        Raises InputError if a file is damaged; StoreLost or UsageError if the store cannot be read.
        """
        inside = (pc.field("id") >= first) & (pc.field("id") <= last) & pc.field("component").is_valid()
        return self._rows(self.vertices, ["id", "component"], inside)

    def rows_of_dn_graphs(self, ids: pa.Array) -> pa.Table:
        """id, vertices and track of its DN-graphs with these ids, ascending. Raises as `rows_of_vertices` does."""
        ends = pc.min_max(ids)
        inside = (pc.field("id") >= ends["min"]) & (pc.field("id") <= ends["max"]) & pc.field("id").isin(ids)
        return self._rows(self.dn_graphs, ["id", "vertices", "track"], inside).sort_by("id")

    def tracks_among(self, tracks: pa.Array) -> pa.Array:
        """Those of `tracks` that its DN-graphs have. Raises as `rows_of_vertices` does."""
        column = self._rows(self.dn_graphs, ["track"], pc.field("track").isin(tracks))["track"]
        return pa.concat_arrays(column.chunks) if column.num_chunks else tracks[:0]

    def _rows(self, files: tuple[str, ...], columns: list[str], wanted: pc.Expression) -> pa.Table:
        scan = ds.ParquetFragmentScanOptions(page_checksum_verification=True, arrow_extensions_enabled=False)
        try:
            with self.place.store_errors("read"):
                table = ds.dataset(
                    [self.place.path(file) for file in files],
                    format=ds.ParquetFileFormat(default_fragment_scan_options=scan),
                    filesystem=None if self.place.is_local else self.place.files,
                )
                return table.to_table(columns=columns, filter=wanted, batch_readahead=1, fragment_readahead=1)
        except MemoryError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"the result is damaged: {self.place}: {error_reason(error)}") from error
