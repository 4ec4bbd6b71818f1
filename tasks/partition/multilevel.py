"""Partition by a multilevel partitioner, which needs the whole graph in one place.

KaMinPar (Gottesbüren, Heuer, Sanders, Schulz and Seemaier, "Deep multilevel graph partitioning", ESA 2021) where it is
installed, or METIS (Karypis and Kumar, SIAM J. Sci. Comput. 1998): the extra `partition` brings both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import order
from ..errors import UsageError
from .neighbours import Neighbours, Parts, loads_of

IMBALANCE = 0.05
"""Partitions take at most this much more than their equal share of the load."""
ENTRY_BYTES = 40
"""Memory for each neighbour of each vertex: the graph, once here and once coarsened there."""
_SEED = 1


class _Graph(NamedTuple):
    """All of it."""

    offsets: NDArray[np.int64]
    """[vertices + 1] where the neighbours of each start"""
    member: NDArray[np.int64]
    """[entries] dense numbers"""
    weight: NDArray[np.int32]
    """[entries]"""
    load: NDArray[np.int64]
    """[vertices]"""


def multilevel(buckets: Sequence[Neighbours], partitions: int) -> NDArray[np.int16]:
    """The partition of every vertex, in id order, int16 [vertices]; the same each time.

    Raises UsageError if neither KaMinPar nor pymetis is installed.
    """
    graph = _Graph(
        order.offsets(np.concatenate([np.diff(own.offsets) for own in buckets])),
        np.concatenate([_numbers(own)[own.member] for own in buckets]),
        np.concatenate([own.weight for own in buckets]),
        np.concatenate([own.load for own in buckets]),
    )
    try:
        import kaminpar  # noqa: F401
    except ImportError:
        return _by_metis(graph, partitions)
    return _by_kaminpar(graph, partitions)


def parts_of(whole: NDArray[np.int16], neighbours: Neighbours, partitions: int) -> Parts:
    """One bucket's share of what `multilevel` gives."""
    part = whole[neighbours.first : neighbours.first + neighbours.vertices].copy()
    return Parts(part, loads_of(neighbours.load, part, partitions))


def _numbers(own: Neighbours) -> NDArray[np.int64]:
    """Dense numbers of what `member` points to."""
    return np.concatenate([np.arange(own.first, own.first + own.vertices), own.foreign])


def _by_kaminpar(graph: _Graph, partitions: int) -> NDArray[np.int16]:
    """Its bindings read files only; on one thread it gives the same each time, and a task may be done again."""
    import kaminpar

    with TemporaryDirectory(prefix="edgemill-") as folder:
        path = Path(folder) / "graph.parhip"
        _write_parhip(path, graph)
        kaminpar.reseed(_SEED)
        loaded = kaminpar.load_graph(str(path), kaminpar.GraphFileFormat.PARHIP, compress=True)
    found = kaminpar.KaMinPar(1, kaminpar.default_context()).compute_partition(loaded, partitions, IMBALANCE)
    return np.array(found, np.int16)


def _write_parhip(path: Path, graph: _Graph) -> None:
    """The binary format of ParHIP: flags, sizes, where each row starts in the file, rows, weights of both."""
    small_numbers, small_loads, small_weights = 8, 16, 32  # flags: 32 bits instead of 64
    vertices, width = len(graph.load), 4
    header = np.array([small_numbers | small_loads | small_weights, vertices, len(graph.member)], np.uint64)
    starts = graph.offsets.astype(np.uint64) * np.uint64(width) + np.uint64(header.nbytes + 8 * (vertices + 1))
    with path.open("wb") as file:
        for array in (header, starts, graph.member.astype(np.uint32), graph.load.astype(np.int32), graph.weight):
            file.write(np.ascontiguousarray(array).data)


def _by_metis(graph: _Graph, partitions: int) -> NDArray[np.int16]:
    try:
        import pymetis
    except ImportError as error:
        raise UsageError(
            "partitioning.method multilevel needs KaMinPar or METIS on the workers: install edgemill[partition]"
        ) from error
    options = pymetis.Options(seed=_SEED, ufactor=round(1000 * IMBALANCE))
    rows = pymetis.CSRAdjacency(graph.offsets, graph.member)
    _, found = pymetis.part_graph(partitions, rows, vweights=graph.load, eweights=graph.weight, options=options)
    return np.array(found, np.int16)
