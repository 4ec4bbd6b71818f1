"""Assign tracks to results with the tasks of a run: one loop for each exchange, any number of buckets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from drive import exchange
from edgemill.pipeline import Result
from edgemill.pipeline.nightly.track_assignment import earlier_tables
from edgemill.pipeline.output.manifest import OutputRecord, TracksRecord, write_manifest
from edgemill.tasks import tracks
from edgemill.tasks.dense.merge import HierarchyRows
from edgemill.tasks.publish.writing import write_table
from edgemill.tasks.tracks import Fates, MatchedPairs, summed


@dataclass(frozen=True)
class Assigned:
    """The results of the tasks."""

    tracks: NDArray[np.int64]
    """[DN-graphs] ascending by id"""
    record: TracksRecord
    fates: Fates | None


def tracked(
    result: Result, first: int, before: Result | None = None, replaced: Result | None = None, buckets: int = 3
) -> Result:
    """The same result with tracks in its tables and its manifest."""
    found = assign(result, first, before, replaced, buckets)
    ids = np.sort(result.dn_graphs.to_table()["id"].to_numpy())
    outputs = []
    for output in result.manifest.outputs:
        if PurePosixPath(output.path).parent.name == "dn_graphs":
            rows = pq.read_table(result.path / output.path)
            own = found.tracks[np.searchsorted(ids, rows["id"].to_numpy())]
            rows = rows.append_column("track", pa.array(own, pa.int64())).combine_chunks()
            parts = (rows.slice(start, 2).columns for start in range(0, len(rows), 2))
            columns = ([pa.concat_arrays(column.chunks) for column in part] for part in parts)
            file = write_table(result.place, output.path, rows.schema, 1, columns, "zstd")
            output = OutputRecord(path=output.path, rows=file.rows, bytes=file.bytes, sha256=file.sha256)
        outputs.append(output)
    (result.path / "manifest.json").unlink()
    write_manifest(result.path, result.manifest.model_copy(update={"outputs": outputs, "tracks": found.record}))
    return Result(result.path)


def assign(result: Result, first: int, before: Result | None, replaced: Result | None, buckets: int) -> Assigned:
    """Tracks for a result's DN-graphs, as `nights.following` has tasks give them."""
    rows = result.dn_graphs.to_table().sort_by("id")
    id, level, vertices, edges = (rows[name].to_numpy() for name in ("id", "lambda", "vertices", "edges"))
    every = HierarchyRows(id, level, np.full(len(id), -1), vertices, edges, np.ones(len(id), np.bool_))
    cuts = np.arange(buckets + 1) * len(id) // buckets
    graphs = [every[slice(cuts[b], cuts[b + 1])] for b in range(buckets)]
    firsts = np.append(id, 2**62)[np.where(cuts == len(id), len(id), cuts)]
    firsts[0] = 0
    members = result.dn_graph_members.to_table().sort_by("vertex")
    ends = np.arange(buckets + 1) * len(members) // buckets

    def matched(earlier: Result | None) -> list[MatchedPairs] | None:
        if earlier is None:
            return None
        tables = earlier_tables(earlier)
        sent = []
        for b in range(buckets):
            own = members.slice(ends[b], ends[b + 1] - ends[b]).combine_chunks()
            names = pa.concat_arrays(own["vertex"].chunks or [pa.array([], own["vertex"].type)])
            sent.append(tracks.overlaps_of(b, names, own["dn_graph"].to_numpy(), firsts, tables))
        return exchange(sent, buckets, lambda b, mail: tracks.match(graphs[b], tables, mail))

    old, own = matched(before), matched(replaced)
    taken = [
        tracks.inherit_tracks(
            graphs[b],
            None if old is None else old[b],
            None if own is None else own[b],
            earlier_tables(before) if before else None,
        )
        for b in range(buckets)
    ]
    shapes = [tracks.send_shapes(b, graphs[b], taken[b]) for b in range(buckets)]
    numbers = exchange(shapes, 1, lambda _, mail: tracks.number_shapes(first, mail))
    given = exchange(numbers, buckets, lambda b, mail: tracks.collect_tracks(graphs[b], taken[b], mail))
    fates = None
    if old is not None and before is not None and before.manifest.dense is not None:
        sent = [tracks.send_outcomes(b, buckets, graphs[b], old[b]) for b in range(buckets)]
        counted = exchange(sent, buckets, lambda _, mail: tracks.count_old(mail))
        later = [tracks.count_new(graphs[b], old[b]) for b in range(buckets)]
        fates = summed(later, counted, before.manifest.dense.dn_graphs)
    continued, again = (sum(getattr(part, name) for part in taken) for name in ("continued", "again"))
    new = len(id) - continued - again
    record = TracksRecord(previous=None, continued=continued, again=again, new=new, next=first + new)
    return Assigned(np.concatenate(given), record, fates)
