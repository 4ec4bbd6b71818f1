"""Graphs with more vertices than 31 bits can number: a few edges between ranks that lie far apart.

A GPU stores 8 to 40 bytes for each of the vertices, so that these tests need most of a large one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from edgemill import kernels
from edgemill.kernels.cpu.shards import Cut
from edgemill.tasks.shards.gpu.shard import direct_mail, open_shard_mailbox, peel_shards_on_gpu
from gpu_shards import by_the_other_peel, dealt, intervals
from sharding import Graph, drawn, ordered

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
cupy = pytest.importorskip("cupy")
NEEDED_BYTES = 125 * 10**9
VERTICES = 2**31 + 5_000


@pytest.fixture(autouse=True)
def whole_device() -> Iterator[None]:
    """Nothing else is on the GPU, before and after."""
    cupy.get_default_memory_pool().free_all_blocks()
    free, _ = cupy.cuda.runtime.memGetInfo()
    if free < NEEDED_BYTES:
        pytest.skip(f"{free:,} bytes of the GPU are free, and {NEEDED_BYTES:,} are needed")
    yield
    cupy.get_default_memory_pool().free_all_blocks()


def spread(graph: Graph) -> Graph:
    """The same graph with as many vertices without edges between its own: the last ranks lie on both sides of 2^31."""
    rank = np.arange(graph.vertices, dtype=np.int64)
    own = np.where(rank < graph.vertices // 3, 1 + 3 * rank, 2**31 - graph.vertices + 2 * rank)
    own[-1] = VERTICES - 1
    low, high = own[graph.low].astype(np.uint32), own[graph.high].astype(np.uint32)
    name = {to: graph.name[at] for at, to in enumerate(own.tolist())}
    return replace(graph, low=low, high=high, vertices=VERTICES, name=name)


def test_triangles_by_their_third_vertex() -> None:
    """Rows of hubs and of a dense graph: tables of several sizes, on both sides."""
    graph = ordered(drawn(3, 2000, 60_000))
    wide = spread(graph)
    assert (wide.high >= 2**31).any() and (wide.low < 2**31).any()
    low, high = (kernels.to_device(ends) for ends in (wide.low, wide.high))
    lists, first = np.unique(wide.low, return_index=True)
    starts = kernels.to_device(np.append(first, len(wide.low)).astype(np.uint32))
    merged = kernels.merge_rows(low, high, np.array([0, len(wide.low)]), VERTICES)
    rows = kernels.third_vertex_rows(merged, Cut(VERTICES, 1), 0, 1)
    sums = kernels.to_device(np.zeros(len(wide.low), np.int32))
    partial, triangles = kernels.count_by_third_vertex(rows, starts, kernels.to_device(lists), high, sums)
    assert 3 * triangles == graph.support.sum()
    assert (kernels.to_host(partial) + kernels.to_host(sums)).tolist() == graph.support.tolist()


def test_peeling_in_a_shard() -> None:
    graph = ordered(drawn(1, 90, 3500))
    wide = spread(graph)
    parts = dealt(wide, 1)
    mailboxes = [open_shard_mailbox(one) for one in parts]
    with direct_mail(parts, mailboxes, [mailbox.address() for mailbox in mailboxes]) as mails:
        states = peel_shards_on_gpu(parts, mails)
    assert intervals(wide, parts, states) == by_the_other_peel(graph)
