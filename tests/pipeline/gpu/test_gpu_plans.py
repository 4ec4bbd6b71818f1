"""Plans for workers with GPUs: one partition, or shards."""

from __future__ import annotations

import re
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

import runs
from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.gpu_shards import MAX_PEERS, MAX_PEERS_PER_DEVICE
from edgemill.pipeline import OutOfRoom, UsageError
from edgemill.pipeline.cli.documents import plan_document
from edgemill.pipeline.cluster.execution import Capacity
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.plan.choice import plan_run, plan_without_sample
from edgemill.pipeline.plan.fit import excess, refuse_if_too_large
from edgemill.pipeline.plan.plan import GPU_EDGE_BYTES, GPU_ROW_BYTES, GPU_ROW_IN_PARTS_BYTES, MOVED_EDGE_BYTES, Plan
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages import gpu_memory
from edgemill.pipeline.stages.gpu_memory import compact_bytes, halves_of_a_shard, mailbox_bytes, shards_bytes
from edgemill.pipeline.stages.limits import GPU_FILL, PACKED_ROW_BYTES, SORTED_SHARE
from edgemill.tasks.generate import generate
from edgemill.tasks.inputs.sources import Source
from edgemill.tasks.shards import group_edges

GIGABYTE = 10**9
HERE = Capacity(1, 4, 0, GIGABYTE, in_process=True)
"""One GPU, in this process."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=3, seed=4, scale=9, edge_factor=8)
    return open_input(make_settings(str(folder), "out"))


def planned(source: Source, capacity: Capacity, **how: object) -> Plan:
    return plan_run(make_settings(source.path, "out", **how), source, capacity)


def processes(workers: int, device_bytes: int = GIGABYTE) -> Capacity:
    return Capacity(workers, 4, 0, device_bytes)


def tightest(source: Source, capacity: Capacity) -> int:
    """Bytes of a GPU that has room only for compact rows."""
    roomy = planned(source, capacity)
    small = planned(source, replace(capacity, device_bytes=1), partitions=1)
    assert not roomy.compact_rows and small.compact_rows
    assert least_memory(small) < least_memory(roomy)
    return least_memory(small)


def least_memory(plan: Plan) -> int:
    """Memory of a GPU with room for all."""
    return int(plan.device_bytes / GPU_FILL) + 1


@pytest.mark.parametrize("method", ["auto", "peel"])
def test_one_gpu_takes_one_partition(source: Source, method: str) -> None:
    for capacity in (HERE, processes(1)):
        plan = planned(source, capacity, method=method)
        assert (plan.partitions, plan.shards, plan.method) == (1, 0, "peel")
        assert "one worker" in plan.reason
        assert plan.device_bytes == plan.largest_edges * GPU_EDGE_BYTES > 0


@pytest.mark.parametrize("method", ["auto", "peel"])
@pytest.mark.parametrize(
    ("capacity", "count", "groups", "reason"),
    [
        (HERE, 1, 1, "as partitioning.count says"),
        (HERE, 3, 3, "as partitioning.count says"),
        (HERE, 8, 8, "as partitioning.count says"),
        (HERE, 33, 8, "as many as one GPU works on at once; partitioning.count is 33"),
        (processes(4), 1, 1, "as partitioning.count says"),
        (processes(4), 3, 3, "as partitioning.count says"),
        (processes(4), 4, 4, "as partitioning.count says"),
        (processes(4), 5, 4, "one for each worker; partitioning.count is 5"),
        (processes(1), 2, 1, "one for each worker; partitioning.count is 2"),
        (
            processes(40),
            64,
            32,
            "the most allowed; of 40 workers the others have none; partitioning.count is 64",
        ),
    ],
)
def test_groups_on_request(
    source: Source, capacity: Capacity, count: int, groups: int, reason: str, method: str
) -> None:
    """Each group is one shard. There are at most as many groups as GPUs allow."""
    assert (MAX_PEERS_PER_DEVICE, MAX_PEERS) == (8, 32)
    plan = planned(source, capacity, partitions=count, method=method)
    assert (plan.partitions, plan.reason, plan.method) == (groups, reason, "peel")
    assert plan.shards == (groups if groups > 1 else 0)
    if plan.in_shards:
        assert (plan.on_disk, plan.in_waves) == (False, False)
        assert plan.buckets == groups
        refuse_if_too_large(plan)


def test_one_gpu_takes_a_graph_that_fits(source: Source) -> None:
    for workers in (processes(4), processes(40)):
        plan = planned(source, workers)
        assert (plan.partitions, plan.shards) == (1, 0) and "one GPU has room" in plan.reason
    assert planned(source, replace(HERE, workers=2)).partitions == 1  # workers of one process have one GPU
    assert planned(source, processes(1)).partitions == 1


def test_compact_rows_where_others_do_not_fit(source: Source) -> None:
    for capacity in (HERE, processes(1)):
        roomy, least = planned(source, capacity), tightest(source, capacity)
        room = least_memory(roomy)
        assert not planned(source, replace(capacity, device_bytes=room)).compact_rows
        for has in (room - 2, least):
            tight = planned(source, replace(capacity, device_bytes=has))
            assert (tight.partitions, tight.shards, tight.compact_rows, tight.fits()) == (1, 0, True, True)
            closed = round(tight.edges * tight.graph.with_triangles)
            vertices, moved = tight.graph.vertices.likely, tight.ingest_in_parts
            assert tight.device_bytes == compact_bytes(tight.edges, closed, vertices, moved)
            assert "for the partition in compact rows; " in told(tight, "device")
            assert plan_document(tight)["compact_rows"] is True
            assert not planned(source, replace(capacity, device_bytes=has), method="fixpoint").compact_rows
        assert "compact" not in told(roomy, "device")
    assert not planned(source, replace(HERE, device_bytes=0)).compact_rows  # on the CPU
    assert not planned(source, replace(HERE, device_bytes=1), partitions=3).compact_rows  # of shards


def test_rows_are_numbered_in_parts_where_all_at_once_do_not_fit(source: Source) -> None:
    """Edges are in host memory while they are peeled, so a smaller GPU is enough."""
    rows = source.rows
    most, least = int(rows * GPU_ROW_BYTES / GPU_FILL) + 1, int(rows * GPU_ROW_IN_PARTS_BYTES / 0.65) + 1
    at_once = planned(source, replace(HERE, device_bytes=most))
    assert (at_once.ingest_in_parts, at_once.ingest_on_device, at_once.buckets) == (False, True, 1)
    for device_bytes in (most - 2, least):
        plan = planned(source, replace(HERE, device_bytes=device_bytes))
        assert plan.ingest_in_parts and plan.ingest_on_device and plan.compact_rows
        assert plan.buckets == ceil(rows * PACKED_ROW_BYTES / int(device_bytes * SORTED_SHARE)) > 1
        closed, vertices = round(plan.edges * plan.graph.with_triangles), plan.graph.vertices.likely
        assert plan.device_bytes == compact_bytes(plan.edges, closed, vertices, moved=True)
        assert plan.device_bytes < compact_bytes(plan.edges, closed, vertices)
        assert plan.partition_bytes == MOVED_EDGE_BYTES * plan.edges
        assert re.search(rf"; rows .*numbered there in {plan.buckets} parts$", told(plan, "device"))
    assert not planned(source, replace(HERE, device_bytes=least - 2)).ingest_on_device


def test_which_rows_are_numbered_in_parts(source: Source) -> None:
    """Those of pairs of dense integers, for one partition that the GPU of this process peels."""
    here = replace(HERE, device_bytes=int(source.rows * GPU_ROW_BYTES / GPU_FILL) - 2)
    assert planned(source, here).ingest_in_parts
    assert not planned(source, processes(1, here.device_bytes)).ingest_in_parts
    assert not planned(source, here, partitions=2).ingest_in_parts
    assert not planned(source, here, method="fixpoint").ingest_in_parts
    assert not planned(source, replace(here, device_bytes=0)).ingest_in_parts
    for other in (
        replace(source, id_range=None),
        replace(source, id_range=(-1, 500)),
        replace(source, id_range=(0, 100 * source.rows)),
        replace(source, bipartite="refuse"),
        replace(source, directed=True),
    ):
        assert not planned(other, here).ingest_in_parts


def test_a_partition_made_in_parts_has_any_number_of_edges(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MAX_LOCAL_EDGES", 2000)  # also rows that fit at once are too many
    monkeypatch.setattr("edgemill.pipeline.plan.fit.MAX_LOCAL_EDGES", 2000)
    tight = replace(HERE, device_bytes=int(source.rows * GPU_ROW_BYTES / GPU_FILL) - 2)
    for capacity in (tight, HERE):
        plan = planned(source, capacity)
        assert plan.ingest_in_parts and plan.fits()
        refuse_if_too_large(plan)
    with pytest.raises(OutOfRoom, match=r"largest of 1 partitions .* \d,\d{3} edges, over the 2,000"):
        refuse_if_too_large(planned(source, processes(1), partitions=1))  # a process of its own makes no parts


def test_several_gpus_take_no_compact_rows(source: Source) -> None:
    """They are slower than shards. One partition on request is peeled by one GPU."""
    least = tightest(source, processes(4))
    room = least_memory(planned(source, processes(4)))
    for has in (room - 2, least, least - 2):
        capacity = processes(4, has)
        plan = planned(source, capacity)
        assert (plan.shards, plan.compact_rows) == (4, False) and "each worker" in plan.reason
        assert planned(source, capacity, partitions=1).compact_rows
    assert planned(source, processes(4, room)).partitions == 1


@pytest.mark.parametrize(
    ("edges", "closed", "vertices", "held"),
    [
        (260_379_717, 212_865_948, 8_871_036, 22.4),
        (1_052_000_000, 828_000_000, 32_800_000, 21.5),
    ],
    ids=["24", "26"],
)
def test_memory_of_compact_rows(edges: int, closed: int, vertices: int, held: float) -> None:
    """R-MAT graphs, measured on one NVIDIA H200 with a limit of 24 bytes: the most of an edge, from triangles to λ.

    A run has edges in their bucket, too: 14 bytes. Scale 26 is rounded.
    """
    in_a_run = edges * (held + 14)
    assert in_a_run < compact_bytes(edges, closed, vertices) < 1.1 * in_a_run


def test_a_gpu_has_room_for_two_billion_edges() -> None:
    assert compact_bytes(2_111_647_151, 1_630_000_000, 64_000_000) < 0.95 * GPU_FILL * 139 * 2**30


@pytest.mark.parametrize("share", [0, 0.1, 0.3, 0.42])
def test_memory_of_a_graph_with_few_triangles(share: float) -> None:
    """Finding triangles takes more memory than peeling."""
    assert compact_bytes(10**9, round(share * 10**9), 0) == 26 * 10**9


def test_rows_are_looked_at_before_compact_rows_are_chosen(source: Source) -> None:
    """Without them, the plan knows only an upper bound, and plain rows may fit."""
    settings = make_settings(source.path, "out")
    most = plan_without_sample(settings, source, HERE)
    assert most is not None
    tight = replace(HERE, device_bytes=least_memory(most) - 2)
    assert plan_without_sample(settings, source, tight) is None
    assert not plan_run(settings, source, tight).compact_rows


def test_several_gpus_share_a_graph_that_does_not_fit_one(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_memory, "MOST_LEAVING", 0)
    monkeypatch.setattr(gpu_memory, "MOST_TELLING", 0)
    monkeypatch.setattr(gpu_memory, "BATCH_EDGES", 0)
    room = least_memory(planned(source, processes(4)))
    assert planned(source, processes(4, room)).partitions == 1
    shared = planned(source, processes(4, room - 2))
    assert (shared.partitions, shared.shards, shared.fits()) == (4, 4, True)
    assert "each worker" in shared.reason
    many = planned(source, processes(40, room - 2))
    assert many.shards == 32 and all(fact in many.reason for fact in ("the most allowed", "of 40 workers"))
    alone = planned(source, processes(1, tightest(source, processes(1)) - 2))
    assert (alone.partitions, alone.shards, alone.fits()) == (1, 0, False)


def test_one_gpu_iterates(source: Source) -> None:
    """Fixpoint iterations run on one GPU, and bands are halved on CPUs."""
    for capacity in (HERE, processes(4)):
        plan = planned(source, capacity, method="fixpoint")
        assert (plan.partitions, plan.shards, plan.band_workers, plan.method) == (1, 0, 1, "fixpoint")
        assert plan.device_bytes == plan.largest_edges * GPU_EDGE_BYTES
        assert "for the partition; " in told(plan, "device")
        with pytest.raises(UsageError, match=r"CPUs.*cluster\.device=cpu"):
            planned(source, capacity, method="band")


def test_a_limit_on_exchanges_is_refused(source: Source) -> None:
    bounding = {"max_exchanges": 3}
    with pytest.raises(UsageError, match="would peel"):
        planned(source, HERE, partitions=3, bounding=bounding)
    assert planned(source, HERE, bounding=bounding | {"method": "fixpoint"}).method == "fixpoint"


@pytest.mark.parametrize(
    ("capacity", "count", "what"),
    [
        (HERE, "auto", "the largest of 1 partitions would need {}: start more workers, each with a GPU of its own, "),
        (HERE, 3, "3 of 3 shards would need {}: start more workers, each with a GPU of its own, "),
        (processes(4), "auto", "1 of 4 shards would need {}: start more workers, each with a GPU of its own, "),
        (processes(4), 3, r"1 of 3 shards would need {}: raise partitioning\.count, "),
        (processes(4), 1, r"the largest of 1 partitions would need {}: raise partitioning\.count, "),
    ],
)
def test_graphs_that_do_not_fit_are_refused(source: Source, capacity: Capacity, count: int | str, what: str) -> None:
    plan = planned(source, replace(capacity, device_bytes=100_000), partitions=count)
    assert not plan.fits()
    needed = what.format(r"about \d+\.\d+ [kM]iB on a GPU of 97\.66 kiB")
    other = r"or use cluster\.device=cpu$"
    with pytest.raises(OutOfRoom, match=f"^{needed}{other}"):
        refuse_if_too_large(plan)
    assert excess(plan).startswith("a GPU's shards would need ~" if plan.in_shards else "the largest would need ~")


def test_iterations_that_do_not_fit_are_refused(source: Source) -> None:
    plan = planned(source, replace(HERE, device_bytes=300_000), method="fixpoint")
    with pytest.raises(OutOfRoom, match=r"bounding\.method=peel.*cluster\.device=cpu"):
        refuse_if_too_large(plan)


def test_more_halves_than_a_shard_numbers_are_refused(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MAX_LOCAL_EDGES", 2000)
    monkeypatch.setattr("edgemill.pipeline.plan.fit.MAX_LOCAL_EDGES", 2000)
    plan = planned(source, processes(4), partitions=2)
    assert plan.largest_edges == halves_of_a_shard(round(plan.edges * plan.graph.with_triangles), 2) > 2000
    with pytest.raises(OutOfRoom, match=r"of 2 groups .* \d,\d{3} edges, over the 2,000"):
        refuse_if_too_large(plan)


def told(plan: Plan, name: str) -> str:
    return runs.plan_lines(plan)[name]


def test_plan_text_of_shards(source: Source) -> None:
    here, apart = (planned(source, capacity, partitions=3) for capacity in (HERE, processes(4)))
    assert re.match(r"gpu, ~[\d.]+ [kM]iB of 0.93 GiB for 3 shards; rows cleaned", told(here, "device"))
    assert re.match(r"gpu, ~[\d.]+ [kM]iB of 0.93 GiB for 1 shard; rows cleaned", told(apart, "device"))
    assert apart.device_bytes < here.device_bytes < 3 * apart.device_bytes
    for plan in (here, apart):
        assert all(fact in told(plan, "partitions") for fact in ("3 shards", "3 groups", "partitioning.count"))
        assert re.search(r", and 3 that peel.* after each checkpoint$", told(plan, "tasks"))
    document = plan_document(apart)
    assert (document["partitions"], document["shards"]) == (3, 3)
    assert document["device_bytes"] == apart.device_bytes


@pytest.mark.parametrize("shards", [1, 2, 3, 8])
def test_halves_of_a_graph(shards: int) -> None:
    """20,000 drawn edges: the estimate of the largest shard is an upper bound and close."""
    ends = np.random.default_rng(1).integers(0, 1000, (2, 20_000))
    rank = np.argsort(np.argsort(np.bincount(ends.ravel(), minlength=1000), kind="stable"))
    low, high = Cut(1000, shards).classes(rank[ends.ravel()].astype(np.uint32)).reshape(ends.shape)
    largest = max(int(((low == own) | (high == own)).sum()) for own in range(shards))
    assert halves_of_a_shard(20_000, shards) / 1.1 <= largest <= halves_of_a_shard(20_000, shards)


@pytest.mark.parametrize("edges", [1, 10**6, 3 * 10**6, 10**9])
def test_mailbox_size_equals_that_of_the_kernels(monkeypatch: pytest.MonkeyPatch, edges: int) -> None:
    peers = pytest.importorskip("edgemill.kernels.gpu.shards.shared_memory", exc_type=ImportError)
    shards = pytest.importorskip("edgemill.kernels.gpu.shards.mail", exc_type=ImportError)
    made: list[int] = []
    monkeypatch.setattr(peers.Mailbox, "__init__", lambda self, shards, never, nbytes: made.append(nbytes))
    for count in (2, 8, 32):
        shards.ShardMailbox(count, edges)
    assert made == [mailbox_bytes(edges, count) for count in (2, 8, 32)]


def test_ranges_of_a_merge_equal_those_of_the_code() -> None:
    third_vertex = pytest.importorskip("edgemill.kernels.gpu.shards.triangles", exc_type=ImportError)
    assert gpu_memory.SORTED_AT_ONCE == third_vertex.MERGED_AT_ONCE
    assert gpu_memory.MERGED_AT_ONCE == group_edges.AT_ONCE


def test_memory_of_a_shard() -> None:
    """R-MAT 24 with 260 M edges and 17 M vertices: the memory of a shard falls with the number of shards."""
    edges, vertices = 260_000_000, 2**24
    sizes = {shards: shards_bytes(edges, edges, vertices, shards) for shards in (2, 4, 8, 16)}
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    peeled = 1.1 * (36 * 0.75 + 25) * edges + 16 * vertices + mailbox_bytes(edges, 2)
    assert sizes[2] == pytest.approx(peeled + 13 * edges / 2, rel=0.01)
    many = 2 * 10**9  # so that what is sorted at once does not count
    assert shards_bytes(many, many, vertices, 4) / many == pytest.approx(
        1.1 * (36 * (2 / 4 - 1 / 16) + 25 / 2) + 13 / 4, rel=0.02
    )
    for here in (2, 4, 8):
        halves, entries = (2 / here - 1 / here**2) * edges, 2 * edges / here
        peeled = here * (1.1 * (36 * halves + 25 * entries) + 16 * vertices + mailbox_bytes(edges, here)) + 13 * edges
        assert shards_bytes(edges, edges, vertices, here, here) == pytest.approx(peeled, rel=0.01)
    without = shards_bytes(edges, 0, vertices, 2)  # nothing is peeled
    assert without / edges == pytest.approx((16 + 28 + 60) * 1.1 / 2 + 13 / 2, rel=0.01)
    alone = shards_bytes(many, 0, vertices, 2)  # sorted range by range
    assert alone == pytest.approx((16 + 28) * 1.1 * many / 2 + 60 * 2**28 + 13 * many / 2, rel=0.01)
    few = shards_bytes(2**20, 0, 2**27, 2)  # with many vertices
    assert 32 * 2**27 < few < 33 * 2**27


@pytest.mark.parametrize("carrier", ["mailboxes", "nccl"])
def test_gpu_carriers_are_refused_on_cpus(source: Source, carrier: str) -> None:
    for capacity in (replace(HERE, device_bytes=0), replace(processes(2), device_bytes=0)):
        with pytest.raises(UsageError, match=rf"bounding\.carrier.*{carrier}.*bounding\.carrier=auto"):
            planned(source, capacity, carrier=carrier)
    assert planned(source, processes(2), carrier=carrier).partitions == 1
