"""The column `track` of the table of DN-graphs: a number that a DN-graph keeps from one night of a series to the next.

A DN-graph takes over the track of the one of the night before that is the same by members (`overlaps.same`): more than
half of the vertices in either are in both, so no two can claim one track, and nothing depends on an order. At exactly
half nobody takes it over. All others get new numbers, in order of λ, vertices and edges, the largest first, and then
of the id: numbers above all that any result of the series that is still there has given out.

A day that is mined again replaces a result that gave out numbers of its own. A DN-graph that takes over no track of the
night before, but is the same as one that began in the replaced result, has that one's number again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from ...tasks.places import Place
from ...tasks.writing import write_table
from ..lookup import reading
from ..manifest import Manifest, OutputRecord
from ..result import Result
from .fates import Fates, became
from .overlaps import dn_graphs_of, overlaps, same

__all__ = ["Assigned", "assign", "with_tracks"]

Int = NDArray[np.int64]

_ORDER = [("lambda_new", "descending"), ("vertices_new", "descending"), ("edges_new", "descending")]


@dataclass(frozen=True)
class Assigned:
    """The tracks of the DN-graphs of a result."""

    ids: Int
    """[DN-graphs] their ids, ascending."""
    tracks: Int
    """[DN-graphs] their tracks, all different."""
    continued: int
    """DN-graphs with the track of one of the night before."""
    again: int
    """DN-graphs with the track that they had in the result that is replaced."""
    next: int
    """The smallest number that no track has."""
    fates: Fates | None
    """What became of the groups of the night before; None without one."""

    @property
    def new(self) -> int:
        """DN-graphs with a number that none had before."""
        return len(self.ids) - self.continued - self.again


def assign(result: Result, first: int, before: Result | None = None, replaced: Result | None = None) -> Assigned:
    """Give each DN-graph of a result a track, as this module says; new ones are numbered from `first`.

    `before` is the result of the night before, `replaced` an earlier result of the same night. Both have tracks below
    `first`, and the type of ids that `result` has. Raises InputError for damage.
    """
    graphs = dn_graphs_of(result, "new").drop_columns("track_new").sort_by("id_new")
    ids: Int = graphs["id_new"].to_numpy()
    tracks = np.zeros(len(ids), np.int64)
    taken, fates = np.zeros(0, np.int64), None
    if before is not None:
        earlier = dn_graphs_of(before, "old")
        pairs = overlaps(before, result, earlier, graphs)
        _take_over(tracks, ids, same(pairs))
        _, fates = became(earlier, graphs, pairs)
        taken = earlier["track_old"].to_numpy()  # whatever became of them, they are no tracks of the replaced result
    continued = int((tracks > 0).sum())
    if replaced is not None:
        own = dn_graphs_of(replaced, "old")
        pairs = same(overlaps(replaced, result, own, graphs))
        _take_over(tracks, ids, pairs.filter(pa.array(~np.isin(pairs["track_old"].to_numpy(), taken))))
    again = int((tracks > 0).sum()) - continued
    new = graphs.filter(pa.array(tracks == 0)).sort_by([*_ORDER, ("id_new", "ascending")])
    tracks[np.searchsorted(ids, new["id_new"].to_numpy())] = first + np.arange(len(new))
    return Assigned(ids, tracks, continued, again, first + len(new), fates)


def _take_over(tracks: Int, ids: Int, pairs: pa.Table) -> None:
    """Write the tracks of the old ones of the pairs to the places of the new ones that have none."""
    at = np.searchsorted(ids, pairs["id_new"].to_numpy())
    free = tracks[at] == 0
    tracks[at[free]] = pairs["track_old"].to_numpy()[free]


def with_tracks(place: Place, manifest: Manifest, assigned: Assigned) -> list[OutputRecord]:
    """Write the files of the table of DN-graphs anew, with the column `track` at its end. `place` has the tables of a
    run that is not published yet. Gives the manifest's list of files as it is then.

    A file is in memory at a time. Raises UsageError if it cannot be written, OutOfRoom for a full disk.
    """
    output = manifest.settings["output"]
    return [
        _rewritten(place, record, assigned, output["compression"], output["row_group_rows"])
        if record.path.split("/")[-2] == "dn_graphs"
        else record
        for record in manifest.outputs
    ]


def _rewritten(place: Place, record: OutputRecord, assigned: Assigned, compression: str, rows: int) -> OutputRecord:
    with reading(place):
        files = None if place.is_local else place.files
        table = ds.dataset(place.path(record.path), format="parquet", filesystem=files).to_table()
    found = assigned.tracks[np.searchsorted(assigned.ids, table["id"].to_numpy())]
    table = table.append_column("track", pa.array(found))

    def batches() -> Iterator[list[pa.Array]]:
        for start in range(0, len(table), rows):
            yield [column.combine_chunks() for column in table.slice(start, rows).columns]

    written = write_table(place, record.path, table.schema, 1, batches(), compression)
    return OutputRecord(path=record.path, rows=written.rows, bytes=written.bytes, sha256=written.sha256)
