"""Leiden on a GPU: the bits of the CPU, in every loop and as a whole."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backends import OnGpu
from edgemill.kernels import programs as gathers
from edgemill.kernels.cpu.leiden import Level
from edgemill.kernels.graph import InRows, Parts, Weighted
from edgemill.kernels.leiden import (
    digest,
    directed_graph_of_rows,
    graph_for_modularity,
    graph_of_rows,
    partitions,
    quality,
)

pytestmark = pytest.mark.gpu

GPU = OnGpu()
VERTICES = 3000
HUBS = 3
"""Vertices that most others are neighbours of, so that rows are summed in all three ways."""


def rows(seed: int, directed: bool, weighted: bool) -> InRows:
    """Random groups of 30 with hubs; in-edges, or each edge at both ends."""
    random = np.random.default_rng(seed)
    ends = random.integers(0, VERTICES, (2, 12_000))
    ends[1, :8000] = ends[0, :8000] // 30 * 30 + random.integers(0, 30, 8000)
    hubs = np.stack([np.repeat(np.arange(HUBS), VERTICES), np.tile(np.arange(VERTICES), HUBS)])
    ends = np.concatenate([ends, hubs], axis=1)
    ends = ends[:, ends[0] != ends[1]]
    if not directed:
        ends = np.concatenate([ends, ends[::-1]], axis=1)
    source, target = np.unique(ends, axis=1)[::-1].astype(np.int32)
    order = np.lexsort((source, target))
    low, high = np.minimum(source, target)[order], np.maximum(source, target)[order]
    weight = ((low + 3 * high) % 5) / 2 if weighted else None  # some are 0
    offsets = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=VERTICES))])
    return InRows(offsets.astype(np.int64), source[order], weight)


def put_rows(own: InRows) -> InRows:
    weight = None if own.weight is None else GPU.put(own.weight, np.float64)
    return InRows(GPU.put(own.offsets, np.int64), GPU.put(own.source, np.int32), weight)


def put(graph: Any) -> Any:
    """A copy of arrays of a dataclass in the GPU's memory."""
    return type(graph)(*(GPU.put(getattr(graph, own.name), getattr(graph, own.name).dtype) for own in fields(graph)))


def host(array: Any) -> NDArray[Any]:
    return array if isinstance(array, np.ndarray) else array.get()


def graphs(directed: bool, weighted: bool, potts: bool) -> tuple[Weighted, Weighted, float]:
    """A graph in both memories, and its resolution."""
    own = rows(3, directed, weighted)
    made = []
    for each in (own, put_rows(own)):
        if directed:
            made.append(directed_graph_of_rows(each, lambda ways: gathers.transpose_rows(ways, VERTICES)))
        else:
            made.append(graph_of_rows(each, potts))
    (here, unit), (there, other) = made
    assert unit == other
    for name in ("offsets", "size"):
        assert np.array_equal(getattr(here, name), host(getattr(there, name)))
    return here, there, unit


KINDS = pytest.mark.parametrize(
    ("directed", "weighted", "potts"),
    [(False, False, False), (False, True, True), (True, False, False), (True, True, False)],
)


@KINDS
def test_the_same_bits(directed: bool, weighted: bool, potts: bool) -> None:
    here, there, unit = graphs(directed, weighted, potts)
    assert digest(here) == digest(there)
    ours, theirs = (list(partitions(graph, unit, 3)) for graph in (here, there))
    assert len(ours) == len(theirs) > 0
    for own, other in zip(ours, theirs, strict=True):
        assert own.is_settled == other.is_settled
        assert [level.tolist() for level in own.levels] == [host(level).tolist() for level in other.levels]
    assert quality(here, ours[-1].group, unit) == quality(there, theirs[-1].group, unit)


def test_a_start_with_groups_that_are_not_connected() -> None:
    here, there, unit = graphs(False, False, False)
    start = np.random.default_rng(1).integers(0, 9, VERTICES).astype(np.int32)
    ours, theirs = list(partitions(here, unit, 2, start)), list(partitions(there, unit, 2, GPU.put(start, np.int32)))
    assert [own.group.tolist() for own in ours] == [host(other.group).tolist() for other in theirs]


@KINDS
def test_levels(directed: bool, weighted: bool, potts: bool) -> None:
    """Each loop alone, from random groups."""
    from edgemill.kernels.gpu.leiden import Level as OnDevice  # CuPy is an extra

    here, there, unit = graphs(directed, weighted, potts)
    unit *= 0.01 if potts else 1
    one, other = Level(here), OnDevice(there)
    group = np.random.default_rng(2).integers(0, 40, VERTICES).astype(np.int32)
    put_group = GPU.put(group, np.int32)
    assert np.array_equal(one.within(group), host(other.within(put_group)))
    assert one.cut(group) == other.cut(put_group)
    numbered, groups = one.numbered(group)
    placed, found = other.numbered(put_group)
    assert found == groups and np.array_equal(numbered, host(placed))
    total = one.sizes(numbered, groups)
    assert np.array_equal(total, host(other.sizes(placed, groups)))
    assert np.array_equal(one.connected(group), host(other.connected(put_group)))
    every = np.arange(VERTICES, dtype=np.int32)
    parts = Parts(every.copy(), np.zeros(VERTICES, np.bool_), here.size.copy(), one.within(numbered), every.copy())
    there_parts = put(parts)
    classes, put_classes = one.by_class(every, 5), other.by_class(GPU.put(every, np.int32), 5)
    for own, chosen in zip(classes, put_classes, strict=True):
        assert sorted(own.tolist()) == sorted(host(chosen.vertices).tolist())
        left = one.merge(numbered, total, parts, own, unit)
        put_left = other.merge(placed, GPU.put(total, np.int64), there_parts, chosen, unit)
        assert sorted(left.tolist()) == sorted(host(put_left).tolist())
        for field in fields(parts):
            assert np.array_equal(getattr(parts, field.name), host(getattr(there_parts, field.name))), field.name
    assert not parts.is_joined.all() and parts.is_joined.any()
    final, count = one.numbered(parts.part)
    joined, put_joined = one.joined(final, count), other.joined(GPU.put(final, np.int32), count)
    assert by_row(joined) == by_row(put_joined)
    assert np.array_equal(joined.size, host(put_joined.size))


def by_row(graph: Weighted) -> list[list[tuple[int, int]]]:
    """The entries of each row, sorted."""
    offsets, neighbour, weight = (host(own).tolist() for own in (graph.offsets, graph.neighbour, graph.weight))
    pairs = list(zip(neighbour, weight, strict=True))
    return [sorted(pairs[start:stop]) for start, stop in pairwise(offsets)]


def test_loops_and_parallel_edges() -> None:
    random = np.random.default_rng(5)
    source, target = random.integers(0, 200, (2, 3000)).astype(np.int32)
    graph, unit = graph_for_modularity(source, target, None, 200)
    ours, theirs = list(partitions(graph, unit)), list(partitions(put(graph), unit))
    assert [own.group.tolist() for own in ours] == [host(other.group).tolist() for other in theirs]
