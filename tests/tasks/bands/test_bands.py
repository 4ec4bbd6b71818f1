"""The coarse filter and the peeling of bands, on any number of workers, against peeling and the definition of λ.

All workers are threads. On a GPU several small passes are one call, so bands depend on which passes are divided.
"""

from __future__ import annotations

import importlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple, cast

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oracles
import strategies
from backends import BACKENDS, Backend, OnCpu, OnGpu
from carrying import in_threads
from edgemill import kernels
from edgemill.kernels.cpu.peeling.filtering import Changes, pack_list, pack_range
from edgemill.kernels.filters import EDGE_WORK, Frontier, PlainChanges, Removed, Words
from edgemill.kernels.graph import Topology
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.bands.filtering import Bands, CoarseFilter, next_threshold
from edgemill.tasks.bands.peeling import BandState, peel_band
from edgemill.tasks.bands.sums import DirectSums, WorkerSums, sums_over
from edgemill.tasks.bound.peel import find_triangles, peel
from edgemill.tasks.errors import ClusterLost, InternalError
from edgemill.tasks.shards import Carrier, GroupPacket, MemoryCarrier
from edgemill.tasks.shards.carriers.gpu_memory import between_gpus
from examples import examples

FILTERING = "edgemill.tasks.bands.filtering"
DENSE = "edgemill.kernels.cpu.peeling.filtering.DENSE"
WORKERS = {"cpu": (1, 2, 3, 7, 16), "gpu": (1, 2, 7)}
LISTS, BITS = 0, 10**9
"""Values of DENSE with which workers send lists alone, or bits alone."""
Ints = NDArray[np.int32]
Edge = tuple[int, int]

on_each = pytest.mark.parametrize("backend", BACKENDS)
on_gpu: Any = {"marks": pytest.mark.gpu}
packed_as = pytest.mark.parametrize(
    ("backend", "dense"),
    [
        pytest.param(OnCpu(), LISTS, id="cpu-lists"),
        pytest.param(OnCpu(), BITS, id="cpu-bits"),
        pytest.param(OnGpu(), BITS, id="gpu", **on_gpu),
    ],
)
"""CPUs send lists or bits, GPUs bits alone."""


class Case(NamedTuple):
    """A graph, the triangles of its edges, and their λ."""

    topology: Topology
    triangles: Ints
    lam: Ints
    backend: Backend = OnCpu()

    def on(self, backend: Backend) -> Case:
        """With the topology in the memory of a backend. The other arrays are always in host memory."""
        low, high = (backend.put(kernels.to_host(ends)) for ends in (self.topology.low, self.topology.high))
        return self._replace(topology=Topology(low, high, self.topology.vertices), backend=backend)

    def put(self, values: Any) -> Any:
        """A new array where the topology is."""
        return self.backend.put(values)


def make_bands(patch: pytest.MonkeyPatch, each: int) -> None:
    """So many bands for each worker, on CPUs and GPUs."""
    patch.setattr(f"{FILTERING}.BANDS_PER_WORKER", each)
    patch.setattr(f"{FILTERING}.BANDS_PER_GPU", each)


@pytest.fixture(autouse=True)
def _as_many_bands_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    make_bands(monkeypatch, 2)


def whole(rows: Sequence[Edge]) -> Case:
    """All edges, also those without triangles, with λ by definition."""
    edges = sorted(oracles.simple_edges(rows))
    low, high = (np.array([edge[end] for edge in edges], np.int32) for end in (0, 1))
    support, lam = oracles.brute_force_support(rows), oracles.brute_force_lambda(rows)
    triangles, levels = (np.array([found[edge] for edge in edges], np.int32) for found in (support, lam))
    return Case(Topology(low, high, max(map(max, edges), default=0) + 1), triangles, levels)


def case(rows: Sequence[Edge]) -> Case:
    """The edges that have triangles, in degree order as in a run, with λ by peeling."""
    edges = sorted(oracles.simple_edges(rows))
    low, high = (np.array([edge[end] for edge in edges], np.int32) for end in (0, 1))
    _, subgraph = find_triangles(low, high, max(map(max, edges), default=0) + 1)
    return Case(subgraph.topology, kernels.take(subgraph.support, subgraph.number), peel(subgraph).low)


def cliques(sizes: Sequence[int]) -> list[Edge]:
    """Cliques in a row, each of which shares a vertex with the next."""
    rows, start = [], 0
    for size in sizes:
        rows += list(combinations(range(start, start + size), 2))
        start += size - 1
    return rows


def gnp(vertices: int, share: float, seed: int, first: int = 0) -> list[Edge]:
    pairs = np.array(list(combinations(range(first, first + vertices), 2)))
    chosen = pairs[np.random.default_rng(seed).random(len(pairs)) < share]
    return [(u, v) for u, v in chosen.tolist()]


def powerlaw(vertices: int) -> list[Edge]:
    """Hubs, and edges of all levels up to a dozen."""
    found: list[Edge] = list(nx.powerlaw_cluster_graph(vertices, 9, 0.7, seed=4).edges)
    return found


GRAPHS: dict[str, Callable[[], list[Edge]]] = {
    "no edges": list,
    "one edge": lambda: [(0, 1)],
    "no triangles": lambda: [(u, v) for u in range(9) for v in range(9, 20)],
    "one triangle": lambda: [(0, 1), (1, 2), (0, 2)],
    "one clique": lambda: cliques([24]),
    "cliques of all sizes": lambda: cliques(range(2, 17)),
    "equal cliques": lambda: cliques([6] * 12),
    "star of triangles": lambda: [edge for v in range(1, 60, 2) for edge in ((0, v), (0, v + 1), (v, v + 1))],
    "hubs of a book": lambda: [(0, 1), *((hub, page) for page in range(2, 90) for hub in (0, 1))],
    "hubs of a wheel": lambda: [*((0, v) for v in range(1, 60)), *((v, v % 59 + 1) for v in range(1, 60))],
    "one level": lambda: [(v, (v + step) % 60) for v in range(60) for step in (1, 2, 3)],
    "a chain that falls from its ends": lambda: [(v, v + step) for step in (1, 2, 3) for v in range(58)],
    "nested cores": lambda: gnp(60, 0.15, 1) + gnp(30, 0.6, 2) + cliques([14]),
    "two cores": lambda: gnp(30, 0.5, 1) + gnp(30, 0.6, 2, 30) + [(v, v + 30) for v in range(30)],
    "random": lambda: gnp(50, 0.3, 3),
    "power law": lambda: powerlaw(120),
}
"""The small graphs that are filtered."""
MORE: dict[str, Callable[[], list[Edge]]] = {"many edges": lambda: powerlaw(2500) + cliques([70])}
"""Larger ones."""
RICH = ["cliques of all sizes", "nested cores", "power law"]
"""Those with many levels."""


@cache
def in_memory_of(backend: Any, name: str) -> Case:
    return case((GRAPHS | MORE)[name]()) if backend is None else in_memory_of(None, name).on(backend)


def made(name: str, backend: Backend | None = None) -> Case:
    """A graph of GRAPHS or MORE, in host memory or in that of a backend."""
    place: Any = backend
    return in_memory_of(place, name)


def run_filter(
    graph: Case,
    workers: int,
    before: Bands | None = None,
    *,
    seconds: float | None = None,
    threads: int = 1,
    counts: Callable[[int], Any] | None = None,
    through: Callable[[Carrier], Carrier] = lambda carrier: carrier,
    progress: Callable[[int], None] | None = None,
    direct: bool = False,
) -> list[Bands]:
    """What the filter gives on each worker. The carriers go `through` something, and worker w starts from `counts(w)`.

    With `direct` GPUs read each other's memory. Calls `progress(rank)` at each threshold.
    """
    carriers = MemoryCarrier.open(workers)

    def work(rank: int) -> Bands:
        count = graph.put(graph.triangles) if counts is None else counts(rank)
        try:
            between = between_gpus(carriers[rank]) if direct else nullcontext(carriers[rank])
            with kernel_threads(threads), between as carrier:
                one = CoarseFilter(graph.topology, count, sums_over(through(carrier)), before)
                return one.run(seconds, None if progress is None else lambda threshold, left: progress(rank))
        except BaseException:
            carriers[rank].abandon()
            raise

    return in_threads(work, workers)


def in_host_memory(bands: Bands) -> Bands:
    return replace(bands, band=kernels.to_host(bands.band), start=kernels.to_host(bands.start))


def facts(bands: Bands, exchanges: bool = True) -> list[Any]:
    """All that is the same on all workers. The number of exchanges depends on their time."""
    bands = in_host_memory(bands)
    figures = replace(bands.figures, bytes=0, exchanges=bands.figures.exchanges if exchanges else 0)
    arrays = [(array.dtype, array.tolist()) for array in (bands.band, bands.start)]
    return [*arrays, bands.stops, bands.work, bands.single, bands.total, bands.filtered, figures]


def peeled(graph: Case, bands: Bands, threads: int = 1) -> Ints:
    """λ of each edge, band by band."""
    lam, numbers = np.full(graph.topology.edges, -1, np.int32), kernels.to_host(bands.band)
    with kernel_threads(threads):
        for band in range(len(bands.stops)):
            found = peel_band(graph.topology, bands, band)
            assert found.dtype == np.int32 and kernels.on_host(found) == kernels.on_host(graph.topology.low)
            lam[numbers == band] = kernels.to_host(found)
    return lam


def check(graph: Case, found: list[Bands], threads: int = 1) -> Bands:
    """All workers have the same bands. They hold each edge once, at its λ, with its triangles at the band's beginning;
    peeling them gives λ. Returns the bands.
    """
    native, bands = found[0], in_host_memory(found[0])
    assert all(facts(other) == facts(native) for other in found)
    for array in (native.band, native.start):
        assert kernels.on_host(array) == kernels.on_host(graph.topology.low)
    assert bands.filtered and bands.total == graph.triangles.sum() // 3
    assert bands.band.dtype == np.int32 and bands.start.dtype == np.int32
    number = len(bands.stops)
    assert len(bands.work) == len(bands.single) == number
    assert sorted(set(bands.stops)) == list(bands.stops)
    assert bands.threshold == (bands.stops[-1] if number else 0)
    assert set(bands.band.tolist()) == set(range(number))
    assert sum(bands.work) == bands.total + EDGE_WORK * graph.topology.edges
    for band, stop in enumerate(bands.stops):
        own = bands.band == band
        assert bands.first_level(band) <= graph.lam[own].min() <= graph.lam[own].max() < stop
        assert not bands.single[band] or set(graph.lam[own].tolist()) == {stop - 1}
        assert (bands.start[own] >= graph.lam[own]).all() and (bands.start <= graph.triangles).all()
    lam = peeled(graph, native, threads)
    assert np.array_equal(lam, graph.lam), np.flatnonzero(lam != graph.lam)
    return native


def always_exchange(patch: pytest.MonkeyPatch) -> None:
    """Divide each pass among the workers, however small it is."""
    patch.setattr(f"{FILTERING}.SMALL", 0)
    patch.setattr(WorkerSums, "seconds", lambda sums: 0.0)


@pytest.fixture
def exchanging(monkeypatch: pytest.MonkeyPatch) -> None:
    always_exchange(monkeypatch)


@pytest.fixture
def fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bands as small as they can be, and short jumps: the filter goes on to the last edge."""
    make_bands(monkeypatch, 10_000)
    monkeypatch.setattr(f"{FILTERING}.LEAST_STEP", 2)


# What the filter gives.


@on_each
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(backend: Backend, name: str) -> None:
    graph = made(name, backend)
    for workers in WORKERS[backend.name]:
        check(graph, run_filter(graph, workers))


@on_each
@pytest.mark.parametrize("name", GRAPHS)
def test_short_jumps(monkeypatch: pytest.MonkeyPatch, backend: Backend, name: str) -> None:
    """Jumps that are merged to bands of several levels."""
    monkeypatch.setattr(f"{FILTERING}.LEAST_STEP", 1)
    graph = made(name, backend)
    for workers in (1, 2):
        check(graph, run_filter(graph, workers))


@on_each
@pytest.mark.parametrize("divided", [False, True], ids=["alike", "divided"])
def test_more_edges(monkeypatch: pytest.MonkeyPatch, backend: Backend, divided: bool) -> None:
    """A graph whose passes many blocks of threads share, and whose edges are numbered anew several times."""
    if divided:
        always_exchange(monkeypatch)
    graph = made("many edges", backend)
    for workers in (1, 3):
        check(graph, run_filter(graph, workers))


@pytest.mark.usefixtures("exchanging")
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("workers", [3, pytest.param(7, marks=pytest.mark.slow)])
@packed_as
def test_every_pass_is_divided(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, name: str, workers: int, dense: int
) -> None:
    """The workers exchange lists or bits in each pass."""
    monkeypatch.setattr(DENSE, dense)
    graph = made(name, backend)
    found = run_filter(graph, workers)
    figures = check(graph, found).figures
    assert figures.exchanges == figures.passes
    assert all(own.figures.bytes > 0 for own in found) or not figures.passes


@pytest.mark.parametrize("name", GRAPHS)
def test_peeling_itself_is_right(name: str) -> None:
    """What the bands are compared with is λ by definition; edges without triangles are left out."""
    rows, graph = GRAPHS[name](), made(name)
    positive = [lam for lam in oracles.networkx_lambda(rows).values() if lam]
    assert sorted(graph.lam.tolist()) == sorted(positive)


@on_each
@pytest.mark.parametrize("name", RICH)
def test_one_worker_needs_no_other(backend: Backend, name: str) -> None:
    figures = run_filter(made(name, backend), 1)[0].figures
    assert (figures.exchanges, figures.bytes) == (0, 0)


@on_each
@given(graph=strategies.simple_graphs(14), drawn=st.data())
@settings(max_examples=examples(80))
def test_drawn_graphs(backend: Backend, graph: list[Edge], drawn: st.DataObject) -> None:
    """Any graph, passes done alike or divided, dense or sparse sums, bands of any size, and any limit of a jump."""

    def choose(*values: Any) -> Any:
        return drawn.draw(st.sampled_from(values))

    one = choose(case, whole)(graph).on(backend)
    with pytest.MonkeyPatch.context() as patch:
        if choose(True, False):
            always_exchange(patch)
        patch.setattr(DENSE, choose(LISTS, 16, BITS))
        make_bands(patch, choose(2, 10_000))
        patch.setattr(f"{FILTERING}.OVERSHOT", choose(0, 0.5, 3, 1e9))
        patch.setattr(f"{FILTERING}.LEAST_STEP", choose(0, 1, 16))
        patch.setattr("edgemill.kernels.cpu.peeling.cascade.ROOM", choose(1, 2**15))
        check(one, run_filter(one, choose(1, 2, 3, 7)))


@pytest.mark.usefixtures("fine")
@on_each
@pytest.mark.parametrize("name", GRAPHS)
def test_bands_of_one_level(monkeypatch: pytest.MonkeyPatch, backend: Backend, name: str) -> None:
    """If each jump of several levels is taken back, each level is a band, which is not peeled."""
    monkeypatch.setattr(f"{FILTERING}.OVERSHOT", 0)
    graph = made(name, backend)
    bands = check(graph, run_filter(graph, 2))
    levels = np.unique(graph.lam).tolist()
    assert all(bands.single) and bands.stops == tuple(level + 1 for level in levels)

    def peels(*_: object) -> None:
        raise AssertionError("a band of one level is peeled")

    monkeypatch.setattr(kernels, "peeling", peels)
    assert np.array_equal(peeled(graph, bands), graph.lam)


@pytest.mark.usefixtures("exchanging")
@on_each
@pytest.mark.parametrize("name", RICH)
@pytest.mark.parametrize("overshot", [0, 0.05, 0.5, 1])
def test_jumps_that_are_taken_back(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, name: str, overshot: float
) -> None:
    monkeypatch.setattr(f"{FILTERING}.OVERSHOT", overshot)
    graph, taken_back = made(name, backend), 0
    for workers in (1, 3):
        figures = check(graph, run_filter(graph, workers)).figures
        taken_back += figures.taken_back
        assert figures.taken_back < figures.passes
        assert figures.removed <= figures.passes * graph.triangles.sum() // 3
    assert taken_back or overshot > 0.5


@pytest.mark.usefixtures("fine")
@pytest.mark.parametrize("name", [*RICH, "random", "equal cliques"])
@pytest.mark.parametrize("overshot", [0.5, 1e9])
@pytest.mark.parametrize(
    ("backend", "seed"),
    [
        *(pytest.param(OnCpu(), seed, id=f"cpu-{seed}") for seed in range(3)),
        pytest.param(OnGpu(), 0, id="gpu", **on_gpu),
    ],
)
def test_any_thresholds(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, name: str, overshot: float, seed: int
) -> None:
    """λ is exact whatever the thresholds are. The last may be beyond all counts."""

    def drawn(listed: NDArray[np.int64], threshold: int, aim: float, factor: float) -> int:
        least = max(int(np.searchsorted(listed, 0, "right")), threshold + 1)
        chosen = random.Random(f"{seed} {threshold} {listed.sum()}")
        return least + chosen.choice([0, chosen.randrange(4), chosen.randrange(30), chosen.randrange(10_000)])

    monkeypatch.setattr(f"{FILTERING}.next_threshold", drawn)
    monkeypatch.setattr(f"{FILTERING}.OVERSHOT", overshot)
    graph = made(name, backend)
    for workers in (1, 3):
        check(graph, run_filter(graph, workers))


@pytest.mark.usefixtures("exchanging")
@pytest.mark.parametrize("name", RICH)
@pytest.mark.parametrize("dense", [LISTS, BITS], ids=["lists", "bits"])
def test_threads_of_kernels(monkeypatch: pytest.MonkeyPatch, name: str, dense: int) -> None:
    """Two threads give the bands, λ and figures of one, with lists of losses that are full again and again too."""
    monkeypatch.setattr(DENSE, dense)
    for workers in (1, 3):
        one = run_filter(made(name), workers, threads=1)
        two = check(made(name), run_filter(made(name), workers, threads=2), threads=2)
        assert facts(two) == facts(one[0])
        monkeypatch.setattr("edgemill.kernels.cpu.peeling.cascade.ROOM", 1)
        assert facts(run_filter(made(name), workers, threads=2)[0]) == facts(two)


@on_each
@pytest.mark.parametrize("name", RICH)
@pytest.mark.parametrize("workers", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_exchanges_do_not_change_the_bands(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, name: str, workers: int
) -> None:
    """Which passes are divided depends on times. The bands of CPUs do not, and λ does not anywhere."""
    graph, found = made(name, backend), []
    for seconds in (0.0, 1e-4, 1e9):
        monkeypatch.setattr(WorkerSums, "seconds", lambda sums, seconds=seconds: seconds)
        found.append(check(graph, run_filter(graph, workers)))
    if backend.name == "cpu":
        assert all(facts(own, exchanges=False) == facts(found[0], exchanges=False) for own in found)


def test_large_frontiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code for large graphs, in which all threads sort and mark a frontier."""
    always_exchange(monkeypatch)
    monkeypatch.setattr("edgemill.kernels.cpu.peeling.cascade.LARGE", 1)
    monkeypatch.setattr("edgemill.kernels.cpu.peeling.cascade.MANY", 1)
    for name in RICH:
        check(made(name), run_filter(made(name), 3, threads=2), threads=2)


@on_each
def test_arguments_stay(backend: Backend) -> None:
    graph = made("nested cores", backend)
    count = graph.put(graph.triangles)
    bands = run_filter(graph, 2, counts=lambda rank: count)[0]
    assert np.array_equal(kernels.to_host(count), graph.triangles)
    kept = facts(bands)
    peeled(graph, bands)
    assert facts(bands) == kept


@on_each
def test_progress_of_bands(backend: Backend) -> None:
    """Each level of a band that has edges is told, with the edges of the band that are left after it.

    A GPU runs many levels in a row, and tells the last of them.
    """
    graph = made("power law", backend)
    bands = run_filter(graph, 1)[0]
    band = bands.single.index(False)
    told: list[tuple[int, int]] = []
    lam = kernels.to_host(peel_band(graph.topology, bands, band, lambda level, left: told.append((level, left))))
    expected = [(level + 1, int((lam > level).sum())) for level in np.unique(lam).tolist()]
    if backend.name == "cpu":
        assert told == expected
    assert told == sorted(set(told)) and told[-1] == expected[-1]
    assert all(left == (lam >= level).sum() for level, left in told)


@given(
    listed=st.lists(st.integers(0, 50), min_size=1, max_size=80).map(lambda steps: np.cumsum([0, *steps])),
    threshold=st.integers(0, 60),
    aim=st.floats(1, 1e4),
    factor=st.floats(1 / 3, 50),
)
def test_the_next_threshold_removes_an_edge(
    listed: NDArray[np.int64], threshold: int, aim: float, factor: float
) -> None:
    """It is above the present one, and at least the least that removes something, and not far."""
    found = next_threshold(listed, threshold, aim, factor)
    least = max(int(np.searchsorted(listed, 0, "right")), threshold + 1)
    assert least <= found <= least + max(threshold // 2, 16)
    assert found == least or factor * listed[min(found, len(listed) - 1)] <= aim * (1 + 1e-9)


# Filters that stop.


class Clock:
    """A clock for the filter, which shows the number of thresholds since the start."""

    def __init__(self) -> None:
        self.now = 0.0
        self.perf_counter = time.perf_counter

    def monotonic(self) -> float:
        return self.now

    def tick(self, rank: int) -> None:
        """Go on at a threshold of the first worker."""
        self.now += rank == 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    one = Clock()
    monkeypatch.setattr(f"{FILTERING}.time", one)
    yield one


def check_unfinished(graph: Case, found: list[Bands]) -> None:
    """All workers are at a threshold."""
    assert all(facts(other) == facts(found[0]) for other in found)
    check_threshold(graph, found[0])


def check_threshold(graph: Case, bands: Bands) -> None:
    """The edges of λ below the threshold have bands, and the others the triangles that are left."""
    bands = in_host_memory(bands)
    assert not bands.filtered
    left = bands.band < 0
    assert np.array_equal(left, graph.lam >= bands.threshold)
    size = graph.topology.vertices
    adjacent = np.zeros((size, size), np.int32)
    low, high = (kernels.to_host(ends)[left] for ends in (graph.topology.low, graph.topology.high))
    adjacent[low, high] = adjacent[high, low] = 1
    assert np.array_equal(bands.start[left], (adjacent @ adjacent)[low, high])
    for band, stop in enumerate(bands.stops):
        own = graph.lam[bands.band == band]
        assert bands.first_level(band) <= own.min() <= own.max() < stop


@on_each
@pytest.mark.parametrize("name", RICH)
def test_stopped_at_once(backend: Backend, name: str) -> None:
    """A filter without time returns before its end, and others go on from there to exact λ."""
    graph = made(name, backend)
    found = run_filter(graph, 3, seconds=0)
    check_unfinished(graph, found)
    check(graph, run_filter(graph, 2, found[0]))


@on_each
@pytest.mark.parametrize("name", [*RICH, "two cores"])
@pytest.mark.parametrize("bands_per_worker", [1, 2, 10_000])
@pytest.mark.parametrize(
    "workers", [(1, 1), (2, 3, 1, 7), *(pytest.param(w, marks=pytest.mark.slow) for w in ((16, 1), (1, 7)))]
)
def test_stopped_and_resumed(
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    backend: Backend,
    name: str,
    bands_per_worker: int,
    workers: tuple[int, ...],
) -> None:
    """Each of several filters goes on for two thresholds from where the one before stopped, with other workers."""
    make_bands(monkeypatch, bands_per_worker)
    monkeypatch.setattr(f"{FILTERING}.LEAST_STEP", 1)
    graph, before, figures = made(name, backend), None, None
    for number in workers[:-1]:
        thresholds: list[int] = []

        def progress(rank: int, seen: list[int] = thresholds) -> None:
            clock.tick(rank)
            seen.append(rank)

        found = run_filter(graph, number, before, seconds=2, progress=progress)
        if found[0].filtered:
            check(graph, found)
            return
        assert len(thresholds) == 2 * number
        check_unfinished(graph, found)
        before = found[0]
        assert figures is None or before.figures.passes > figures.passes
        assert figures is None or before.figures.exchanges >= figures.exchanges
        figures = before.figures
    check(graph, run_filter(graph, workers[-1], before))


@on_each
def test_what_is_given_to_go_on_from_stays(clock: Clock, backend: Backend) -> None:
    graph = made("nested cores", backend)
    before = run_filter(graph, 7, seconds=1, progress=clock.tick)[0]
    assert not before.filtered
    kept = facts(before)
    run_filter(graph, 7, before)
    assert facts(before) == kept


@on_each
def test_finished_bands_go_on_to_themselves(backend: Backend) -> None:
    graph = made("cliques of all sizes", backend)
    bands = run_filter(graph, 3)[0]
    again = run_filter(graph, 2, bands)
    assert all(own.stops == bands.stops and bool((own.band == bands.band).all()) for own in again)


class Losing:
    """A carrier of a worker that is lost in one exchange."""

    name = "memory"

    def __init__(self, carrier: Carrier, last: int) -> None:
        self.rank, self.groups = carrier.rank, carrier.groups
        self._carrier, self._left = carrier, last

    def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
        """See `Carrier.exchange`."""
        self._left -= 1
        if self._left < 0:
            self._carrier.abandon()
            raise ClusterLost("group 1 is lost")
        return self._carrier.exchange(common, own)

    def abandon(self) -> None:
        """See `Carrier.abandon`."""
        self._carrier.abandon()

    def close(self) -> None:
        """See `Carrier.close`."""
        self._carrier.close()


@pytest.mark.usefixtures("exchanging", "fine")
@on_each
@pytest.mark.parametrize("name", ["two cores"])
@pytest.mark.parametrize("overshot", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_a_lost_worker(monkeypatch: pytest.MonkeyPatch, backend: Backend, name: str, overshot: float) -> None:
    """In whatever exchange a worker is lost, the others are at a threshold, and go on from there without it.

    On GPUs in some of the exchanges, both of a sum and those of facts among them.
    """
    monkeypatch.setattr(f"{FILTERING}.OVERSHOT", overshot)
    graph, finished, last = made(name, backend), False, 0
    while not finished:
        found = run_filter(graph, 3, through=lambda own, last=last: Losing(own, last) if own.rank == 1 else own)  # type: ignore[misc]
        finished = found[0].filtered
        for bands in found:
            if finished:
                check(graph, found)
            else:
                check_threshold(graph, bands)
                check(graph, run_filter(graph, 1, bands))
        last += {"cpu": 1, "gpu": 7}[backend.name]
    assert last > 10


# What is kept between tasks.


@on_each
def test_states(backend: Backend) -> None:
    """λ of bands comes in, from the memory of a GPU or of the host. The rest is counted."""
    graph = made("cliques of all sizes", backend)
    bands = run_filter(graph, 3)[0]
    numbers, edges = kernels.to_host(bands.band), graph.topology.edges
    found = {band: peel_band(graph.topology, bands, band) for band in range(len(bands.stops)) if not bands.single[band]}
    for start in (bands, in_host_memory(bands)):
        state = BandState.of(start)
        assert state.band_sizes().tolist() == np.bincount(numbers).tolist()
        assert state.left == int(np.isin(numbers, list(found)).sum()) and sorted(state.unfinished) == sorted(found)
        for band, own in found.items():
            state = state.with_bands({band: kernels.to_host(own) if band % 2 else own})
        assert np.array_equal(kernels.to_host(state.low), graph.lam)
        assert kernels.on_host(state.low) == kernels.on_host(start.band)
        assert (state.left, state.evaluations, state.unfinished) == (0, edges, [])


@on_each
def test_states_of_filters_that_stopped(backend: Backend) -> None:
    """Edges that are left to the filter belong to no band."""
    graph = made("power law", backend)
    bands = run_filter(graph, 3, seconds=0)[0]
    state, numbers = BandState.of(bands), kernels.to_host(bands.band)
    finished = [band for band, single in enumerate(bands.single) if single]
    assert not bands.filtered and (numbers < 0).any()
    assert state.band_sizes().tolist() == np.bincount(numbers + 1)[1:].tolist()
    assert state.left == graph.topology.edges - int(np.isin(numbers, finished).sum())
    low = kernels.to_host(state.low)
    assert not low[~np.isin(numbers, finished)].any()
    assert np.array_equal(low[np.isin(numbers, finished)], graph.lam[np.isin(numbers, finished)])


# Sums.


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@packed_as
@pytest.mark.parametrize("size", [0, 1, 5, 64, 1000])
def test_sums(backend: Backend, workers: int, dense: int, size: int) -> None:
    """All workers apply the sums of all, for fewer edges than workers too, and get the values of each of them."""
    draws = [np.random.default_rng([workers, size, rank]) for rank in range(workers)]
    amounts = [(random.integers(0, 200, size) * (random.random(size) < 0.3)).astype(np.int32) for random in draws]
    before = np.random.default_rng(size).integers(-3, 1000, size, np.int32)
    carriers = MemoryCarrier.open(workers)
    barrier = threading.Barrier(workers)

    def work(rank: int) -> tuple[Ints, list[list[int]], int, int]:
        sums, changes = WorkerSums(carriers[rank]), kernels.changes(backend.put(before), backend.put(amounts[rank]))
        assert (sums.rank, sums.workers) == (rank, workers)
        if dense == LISTS:
            assert isinstance(changes, Changes)
            changes._dense, changes._lowered = False, np.flatnonzero(amounts[rank]).astype(np.int32)
        values = sums.add(changes, (rank, 2**64 - 1 - rank))
        assert changes.pack(0, size)[1] == 0
        barrier.wait()
        return kernels.to_host(changes.count), values, sums.exchanges, sums.bytes

    for count, values, exchanges, received in in_threads(work, workers):
        assert np.array_equal(count, before - sum(amounts))
        assert values == [[rank, 2**64 - 1 - rank] for rank in range(workers)]
        assert exchanges == 1 and (received > 0) == (workers > 1)


@pytest.mark.gpu
@pytest.mark.parametrize("workers", [2, 3, 7])
@pytest.mark.parametrize("size", [0, 1, 5, 64, 1000])
@pytest.mark.parametrize("part", [70, 10**6])
def test_sums_of_gpus_that_read_each_others_memory(
    monkeypatch: pytest.MonkeyPatch, workers: int, size: int, part: int
) -> None:
    """As above, in parts too; an amount that reaches another edge is noticed."""
    monkeypatch.setattr("edgemill.tasks.bands.sums.PART_EDGES", part)
    backend, random = OnGpu(), np.random.default_rng([workers, size])
    amounts = random.integers(0, 3, (workers, size), np.int32) * random.integers(0, 2**27, (workers, size), np.int32)
    before = random.integers(-3, 1000, size, np.int32)
    carriers = MemoryCarrier.open(workers)

    def work(rank: int) -> tuple[list[Ints], list[list[int]], bool]:
        with between_gpus(carriers[rank]) as carrier:
            sums, changes = sums_over(carrier), kernels.changes(backend.put(before), backend.put(amounts[rank]))
            assert isinstance(sums, DirectSums)
            values = sums.add(changes, (rank, 2**64 - 1 - rank))
            found = [kernels.to_host(changes.count), kernels.to_host(cast("PlainChanges", changes).amounts)]
            if size < 2:
                return found, values, True
            changes = kernels.changes(backend.put(before), backend.put(amounts[rank] + 1))
            total = cast("PlainChanges", changes).weigh
            changes.weigh = lambda first, stop: total(first, stop) + (rank == 1 and first == 0)  # type: ignore[attr-defined]
            try:
                sums.add(changes)
            except InternalError as error:
                return found, values, bool(re.fullmatch(UNEQUAL, str(error)))
            return found, values, False

    for (count, rest), values, noticed in in_threads(work, workers):
        assert np.array_equal(count, before - amounts.sum(axis=0, dtype=np.int32)) and not rest.any()
        assert values == [[rank, 2**64 - 1 - rank] for rank in range(workers)]
        assert noticed


@pytest.mark.gpu
@pytest.mark.usefixtures("exchanging", "fine")
@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("name", ["nested cores", "power law"])
def test_a_filter_of_gpus_that_read_each_others_memory(workers: int, name: str) -> None:
    graph = made(name, OnGpu())
    found, other = run_filter(graph, workers, direct=True), run_filter(graph, workers)
    check(graph, found)
    assert found[0].figures.exchanges > 0 and found[0].total == other[0].total


def test_the_time_of_a_sum_is_the_same_everywhere() -> None:
    carriers = MemoryCarrier.open(3)
    found = in_threads(lambda rank: WorkerSums(carriers[rank]).seconds(), 3)
    assert len(set(found)) == 1 and 0 < found[0] < 60


# What is noticed.


Change = Callable[[Words, int], Words]


def entries(packed: Words, first: int) -> dict[int, int]:
    """The amount of each edge in a packet."""
    dense, width, size, length = packed[:4].tolist()
    places, content = packed[4 : 4 + length], packed[4 + length :].tobytes()
    bits = np.flatnonzero(np.unpackbits(places.view(np.uint8), bitorder="little"))
    edges = (first + bits).tolist() if dense else places.tolist()
    amounts = np.frombuffer(content, np.uint8 if width == 1 else np.int32)[:size]
    return dict(zip(edges, amounts.tolist(), strict=True))


def again(packed: Words, amounts: dict[int, int], edges: int) -> Words:
    """A packet of other amounts in the form of an earlier one that begins at edge 0."""
    delta = np.zeros(edges, np.int32)
    for e, amount in amounts.items():
        delta[e] = -amount
    if packed[0]:
        return pack_range(delta, 0, edges)[0]
    return pack_list(delta, np.array(list(amounts), np.int32))[0]


def raised(packed: Words, edges: int) -> Words:
    """One amount is larger by one."""
    amounts = entries(packed, 0)
    first = next(iter(amounts))
    return again(packed, amounts | {first: amounts[first] + 1}, edges)


def halved(packed: Words, edges: int) -> Words:
    """Half of the edges are missing."""
    amounts = entries(packed, 0)
    return again(packed, dict(list(amounts.items())[: len(amounts) // 2]), edges)


def emptied(packed: Words, edges: int) -> Words:
    """All edges are missing."""
    return again(packed, {}, edges)


class Tampering:
    """A carrier of worker 0, which changes one packet of amounts: the first that has any in the `turn`-th sum or later.

    `shared` says which: what the workers send to the owners of counts, or the sums that an owner sends to all. For all
    others that is as if worker 0 had added up wrongly: it tells the weighted sum of what it should have sent.
    """

    name = "memory"

    def __init__(self, carrier: Carrier, change: Change, shared: bool, turn: int, edges: int) -> None:
        self.rank, self.groups = carrier.rank, carrier.groups
        self._carrier, self._change, self._shared, self._turn, self._edges = carrier, change, shared, turn, edges
        self._sums, self._second = 0, False
        self.done = False

    def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
        """See `Carrier.exchange`. GPUs send to all what is for each."""
        first = not self._second and any(len(words) for words in own)
        self._sums += first
        if self._sums >= self._turn:
            if self._shared and self._second and len(own[0]):
                own = [self._changed(own[0])] * len(own)
            elif self._shared and self._second:
                common = self._changed(common)
            if not self._shared and first:
                own = [self._changed(own[0]), *own[1:]]
        self._second = first
        return self._carrier.exchange(common, own)

    def _changed(self, packed: Words) -> Words:
        packed = kernels.to_host(packed)
        if self.done or not packed[2]:
            return packed
        self.done = True
        size = 64 * (int(packed[3]) // 2) if packed[0] else self._edges
        return self._change(packed, size)

    def abandon(self) -> None:
        """See `Carrier.abandon`."""
        self._carrier.abandon()

    def close(self) -> None:
        """See `Carrier.close`."""
        self._carrier.close()


def moved(packed: Words, edges: int) -> Words:
    """One amount is for another edge of the same range."""
    amounts = entries(packed, 0)
    first = next(iter(amounts))
    other = next(e for e in range(edges) if e not in amounts)
    return again(packed, {other if e == first else e: amount for e, amount in amounts.items()}, edges)


def turned(packed: Words, edges: int) -> Words:
    """All edges have the amounts in reverse order, and one lowered edge more if they are the same in that order."""
    amounts = entries(packed, 0)
    other = dict(zip(amounts, [*amounts.values()][::-1], strict=True))
    return again(packed, other, edges) if other != amounts else moved(packed, edges)


UNEQUAL = "lowered counts with weighted sum [0-9a-f]+ were sent, and [0-9a-f]+ arrived"


@pytest.mark.usefixtures("exchanging", "fine")
@pytest.mark.parametrize("change", [raised, halved, emptied])
@pytest.mark.parametrize("shared", [False, True], ids=["to owners", "to all"])
@packed_as
@pytest.mark.parametrize("turn", [1, 9])
def test_changed_amounts(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, change: Change, shared: bool, dense: int, turn: int
) -> None:
    """Worker 0 owns the first edges, so its packets begin at edge 0."""
    monkeypatch.setattr(DENSE, dense)
    assert refusal(made("nested cores", backend), change, shared, turn)


def refusal(graph: Case, change: Change, shared: bool, turn: int) -> bool:
    """Filter with a packet of worker 0 that is changed. That must end in InternalError, unless there is no such packet:
    the result is then right, and this returns False.
    """
    made_here: list[Tampering] = []

    def through(carrier: Carrier) -> Carrier:
        if carrier.rank:
            return carrier
        made_here.append(Tampering(carrier, change, shared, turn, graph.topology.edges))
        return made_here[0]

    try:
        check(graph, run_filter(graph, 3, through=through))
    except InternalError as error:
        assert made_here[0].done and re.fullmatch(UNEQUAL, str(error))
        return True
    assert not made_here[0].done
    return False


@pytest.mark.usefixtures("exchanging", "fine")
@packed_as
@pytest.mark.parametrize("change", [moved, turned])
@pytest.mark.parametrize("shared", [False, True], ids=["to owners", "to all"])
@pytest.mark.parametrize("turn", [1, 9])
def test_amounts_of_another_edge(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, dense: int, change: Change, shared: bool, turn: int
) -> None:
    """The sum of all amounts is right, but some are for other edges of the same range."""
    monkeypatch.setattr(DENSE, dense)
    assert refusal(made("nested cores", backend), change, shared, turn)


@pytest.mark.usefixtures("exchanging", "fine")
@packed_as
@pytest.mark.parametrize("shared", [False, True], ids=["to owners", "to all"])
@pytest.mark.parametrize("name", ["nested cores", "power law"])
def test_packets_changed_on_their_way(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, dense: int, name: str, shared: bool
) -> None:
    """An amount that reaches another edge is noticed in every sum, also where λ would be wrong and all sums right."""
    monkeypatch.setattr(DENSE, dense)
    graph = made(name, backend)
    noticed = [refusal(graph, moved, shared, turn) for turn in range(1, 30, 4)]
    assert noticed[0] and noticed[1] and noticed == sorted(noticed, reverse=True)


@pytest.mark.usefixtures("exchanging", "fine")
@on_each
@pytest.mark.parametrize(
    "cut", [lambda packed, _: packed[:-1], lambda packed, _: packed[:2], lambda packed, _: packed[:0]]
)
@pytest.mark.parametrize("shared", [False, True], ids=["to owners", "to all"])
def test_packets_cut_on_their_way(backend: Backend, cut: Change, shared: bool) -> None:
    graph = made("nested cores", backend)
    with pytest.raises(InternalError, match="worker 0"):
        run_filter(
            graph, 3, through=lambda own: own if own.rank else Tampering(own, cut, shared, 1, graph.topology.edges)
        )


@pytest.mark.usefixtures("exchanging", "fine")
@packed_as
@pytest.mark.parametrize("name", ["collect", "apply"])
@pytest.mark.parametrize("worker", [0, 2])
def test_a_worker_that_adds_up_wrongly(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, dense: int, name: str, worker: int
) -> None:
    """It adds an amount of a packet to another edge, and what it adds up has the right sum."""
    monkeypatch.setattr(DENSE, dense)
    graph, original = made("nested cores", backend), getattr(filtering_of(backend), name)
    changed: list[str] = []

    def wrongly(part: Any, words: Words, first: int) -> int:
        if threading.current_thread().name == f"worker {worker}" and words[2] and not changed:
            changed.append(name)
            words = shifted(kernels.to_host(words))
        total: int = original(part, words, first)
        return total

    def shifted(words: Words) -> Words:
        """The same amounts at edges of which one is another."""
        own, edges = words.copy(), graph.topology.edges
        places = own[4 : 4 + own[3]]
        if not own[0]:
            places[0] = next(e for e in range(edges // 3 * worker, edges) if e not in places)
            return own
        bits = np.unpackbits(places.view(np.uint8), bitorder="little")
        bits[[np.flatnonzero(bits)[0], np.flatnonzero(bits == 0)[0]]] = 0, 1
        places[:] = np.packbits(bits, bitorder="little").view(np.uint32)
        return own

    def counts(rank: int) -> Any:
        threading.current_thread().name = f"worker {rank}"
        return graph.put(graph.triangles)

    monkeypatch.setattr(filtering_of(backend), name, wrongly)
    with pytest.raises(InternalError, match=UNEQUAL):
        run_filter(graph, 3, counts=counts)
    assert changed


@pytest.mark.usefixtures("exchanging", "fine")
@on_each
def test_packets_pass_unchanged(backend: Backend) -> None:
    """The carrier of these tests changes nothing else."""
    graph = made("nested cores", backend)
    found = run_filter(
        graph, 3, through=lambda carrier: Tampering(carrier, lambda packed, _: packed, False, 1, graph.topology.edges)
    )
    check(graph, found)


@on_each
@pytest.mark.parametrize("workers", [2, 7])
@pytest.mark.parametrize("change", [1, -1])
def test_a_worker_with_another_count(backend: Backend, workers: int, change: int) -> None:
    graph = made("power law", backend)

    def counts(rank: int) -> Any:
        count = graph.triangles.copy()
        count[5] += 3 * change * (rank == workers - 1)
        return graph.put(count)

    with pytest.raises(InternalError, match=r"differ.*0"):
        run_filter(graph, workers, counts=counts)


@on_each
def test_a_worker_with_exchanged_counts(backend: Backend) -> None:
    """Sums do not tell that two edges have the counts of each other."""
    graph = made("power law", backend)
    e, f = int(graph.triangles.argmin()), int(graph.triangles.argmax())

    def counts(rank: int) -> Any:
        count = graph.triangles.copy()
        if rank == 1:
            count[[e, f]] = count[[f, e]]
        return graph.put(count)

    with pytest.raises(InternalError, match=r"differ.*0"):
        run_filter(graph, 3, counts=counts)


def filtering_of(backend: Backend) -> Any:
    """The class of a backend, whose methods are replaced."""
    return importlib.import_module(f"edgemill.kernels.{backend.name}").Filtering


@pytest.mark.usefixtures("fine")
@on_each
def test_a_count_that_changes_on_one_worker(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> None:
    """Workers that do all passes alike compare their counts at each threshold."""
    monkeypatch.setattr(WorkerSums, "seconds", lambda sums: 1e9)
    graph, original = made("power law", backend), filtering_of(backend).remove_alone
    victim = int(graph.lam.argmax())
    changed: list[int] = []

    def remove_alone(part: Any, enough: int) -> tuple[Removed, Frontier]:
        found: tuple[Removed, Frontier] = original(part, enough)
        if threading.current_thread().name == "worker 1" and not changed:
            changed.append(enough)
            part.count[victim] += 1
        return found

    monkeypatch.setattr(filtering_of(backend), "remove_alone", remove_alone)

    def name(rank: int) -> Any:
        threading.current_thread().name = f"worker {rank}"
        return graph.put(graph.triangles)

    with pytest.raises(InternalError, match=r"the workers' counts .*differ at level [1-9]"):
        run_filter(graph, 3, counts=name)
    assert changed


@pytest.mark.usefixtures("fine")
@on_each
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("wrong", [1, -1, 1000])
def test_removed_triangles_that_are_not_missing(
    monkeypatch: pytest.MonkeyPatch, backend: Backend, workers: int, wrong: int
) -> None:
    graph, original = made("power law", backend), filtering_of(backend).remove_alone

    def remove_alone(part: Any, enough: int) -> tuple[Removed, Frontier]:
        removed, following = original(part, enough)
        return removed._replace(triangles=removed.triangles + wrong), following

    monkeypatch.setattr(filtering_of(backend), "remove_alone", remove_alone)
    monkeypatch.setattr(WorkerSums, "seconds", lambda sums: 1e9)
    with pytest.raises(InternalError, match=r"removed [\d,]+ triangles below \d+, .*counts fell by"):
        run_filter(graph, workers)


@pytest.mark.usefixtures("fine", "exchanging")
@on_each
@pytest.mark.parametrize("wrong", [1, -1, 1000])
def test_lost_triangles_that_are_not_missing(monkeypatch: pytest.MonkeyPatch, backend: Backend, wrong: int) -> None:
    """One worker counts wrongly what its share of one pass destroys."""
    graph, original = made("power law", backend), filtering_of(backend).remove_share
    changed: list[int] = []

    def remove_share(part: Any, worker: int, workers: int) -> int:
        triangles: int = original(part, worker, workers)
        if worker == 1 and triangles and not changed:
            changed.append(worker)
            triangles += wrong
        return triangles

    monkeypatch.setattr(filtering_of(backend), "remove_share", remove_share)
    with pytest.raises(InternalError, match=r"removed [\d,]+ triangles below \d+, .*counts fell by"):
        run_filter(graph, 3)
    assert len(changed) == 1


@on_each
@pytest.mark.parametrize("change", [-2, -1, 1, 2])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.usefixtures("fine")
def test_counts_that_are_wrong_everywhere(backend: Backend, change: int, workers: int) -> None:
    """All workers have the same counts, and one is wrong: the sum of all of them is not divisible by three."""
    graph = made("power law", backend)

    def counts(_: int) -> Any:
        count = graph.triangles.copy()
        count[int(graph.lam.argmax())] += change
        return graph.put(count)

    with pytest.raises(InternalError):
        run_filter(graph, workers, counts=counts)


def with_stop(bands: Bands, band: int, stop: int) -> Bands:
    return replace(bands, stops=(*bands.stops[:band], stop, *bands.stops[band + 1 :]))


@on_each
@pytest.mark.parametrize("name", [*RICH, "random"])
def test_a_band_that_ends_too_low(backend: Backend, name: str) -> None:
    """Each band that is peeled is peeled to the level before its stop, and no further. The right stop is no error."""
    graph = made(name, backend)
    bands = run_filter(graph, 1)[0]
    numbers = kernels.to_host(bands.band)
    assert not all(bands.single)
    for band, single in enumerate(bands.single):
        most = int(graph.lam[numbers == band].max())
        if not single:
            peel_band(graph.topology, with_stop(bands, band, most + 1), band)
            with pytest.raises(InternalError, match=rf"{band}.*{most - 1}.*{most}"):
                peel_band(graph.topology, with_stop(bands, band, most), band)


@on_each
def test_a_band_that_begins_too_high(backend: Backend) -> None:
    """An edge with fewer triangles than the first level of its band has another λ."""
    graph = made("cliques of all sizes", backend)
    bands = run_filter(graph, 1)[0]
    last = len(bands.stops) - 1
    least = int(graph.lam[kernels.to_host(bands.band) == last].min())
    assert last and not bands.single[last]
    with pytest.raises(InternalError, match=rf"{last}.*{least + 1}"):
        peel_band(graph.topology, with_stop(bands, last - 1, least + 1), last)
