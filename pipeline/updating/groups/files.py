"""The files of the tables of groups: taken over from the earlier result where all their rows are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ....tasks.publish.dense_tables import GroupTable, write_group_file
from ....tasks.publish.writing import OutputFile, TableFormat
from ....tasks.storage.folders import folder_at
from ....tasks.storage.taking_over import take_over
from ...output.manifest import OutputRecord
from ...results.result import Result
from ..file_ranges import FileRange, file_ranges, files_of


def write_group_files(
    how: TableFormat, tables: Sequence[GroupTable], base: Result, may_keep: bool
) -> tuple[list[OutputFile], int]:
    """Write the files of the tables, or take them over if `may_keep`. Returns them, and how many were taken over.

    Files keep their ranges of ids, and large ones are cut, as those of edges. All files of a group are those in which
    it is, so no file is cut within a group. Raises InputError for damage of the earlier result.
    """
    made, kept = [], 0
    for table in tables:
        for file in _whole_groups(table, _ranges(table, base, may_keep)):
            if file.kept is None:
                made.append(write_group_file(how, table, file.number, file.rows))
                continue
            name = f"{table.name}/part-{file.number:05d}.parquet"
            take_over(base.place, file.kept.path, folder_at(how.folder), name)
            made.append(OutputFile(name, file.kept.rows, file.kept.bytes, file.kept.sha256))
            kept += 1
    return made, kept


def _ranges(table: GroupTable, base: Result, may_keep: bool) -> list[FileRange]:
    files = [file for file in files_of(base.manifest, table.name) if file.rows]
    with base.reading():
        firsts = [_first_id(base, file) for file in files]
        if firsts != sorted(firsts):  # of several buckets, which share groups
            files, firsts = [], []
        starts = np.searchsorted(table.ids, np.array(firsts, np.int64))
        touched = np.ones(len(table), np.bool_)
        stops = [*starts[1:].tolist(), len(table)]
        for file, start, stop in zip(files, [0, *starts[1:].tolist()], stops, strict=False):
            if may_keep and stop - start == file.rows and _has_rows(base, file, table, slice(start, stop)):
                touched[start:stop] = False
    return file_ranges(files, starts, len(table), touched)


def _first_id(base: Result, file: OutputRecord) -> int:
    with base.place.files.open(base.place.path(file.path), "rb") as opened:
        first: int = pq.read_metadata(opened).row_group(0).column(0).statistics.min
    return first


def _has_rows(base: Result, file: OutputRecord, table: GroupTable, rows: slice) -> bool:
    """Whether a file of the earlier result has these rows of the table."""
    with base.place.files.open(base.place.path(file.path), "rb") as opened:
        stored = pq.read_table(opened)
    made = [pa.table(columns, schema=table.schema) for columns in table.batches(rows)]
    return bool(stored.schema.equals(table.schema) and stored.equals(pa.concat_tables(made)))


def _whole_groups(table: GroupTable, files: Sequence[FileRange]) -> list[FileRange]:
    """The files, cut between two groups."""
    starts: NDArray[np.int64] = np.searchsorted(table.ids, table.ids[[file.rows.start for file in files[1:]]])
    bounds = [0, *starts.tolist(), len(table)]
    found = [replace(file, rows=slice(*bounds[at : at + 2])) for at, file in enumerate(files)]
    found = [file for file in found if file.rows.stop > file.rows.start] or found[:1]
    return [replace(file, number=number) for number, file in enumerate(found)]
