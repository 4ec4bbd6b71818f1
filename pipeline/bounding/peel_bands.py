"""Peeling in bands of λ, on several workers that each hold a copy of the graph.

A gang of one task on each worker runs the coarse filter. Then each band is a task of its own, on whichever worker is
free. If a worker is lost in the filter, the others go on from the last threshold; a band of a lost worker is peeled by
another. A worker that joins gets a copy and takes bands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from ...kernels.graph import IntArray, Topology
from ...kernels.runtime.sizes import SizedArrays
from ...tasks.bands.copies import (
    GraphCopy,
    OrientedLists,
    bring_together,
    count_share,
    graph_copy,
    oriented_lists,
    share_copy,
)
from ...tasks.bands.filtering import CoarseFilter, FilterFigures
from ...tasks.bands.peeling import BandState, band_intervals, peel_band
from ...tasks.bands.sums import sums_over
from ...tasks.bands.warm import warm_bands, warm_bands_on_gpu
from ...tasks.device import MemorySpace, move_arrays
from ...tasks.errors import ClusterLost, StateLost, UsageError
from ...tasks.graph import count_triangles
from ...tasks.shards import Carrier
from ...tasks.shards.carriers.gpu_memory import GpuMemoryCarrier, between_gpus
from ..cluster.carriers import CarrierSetting, Communicator
from ..cluster.engine import GPU, Engine, Future
from ..cluster.execution import by_host, cores_here
from ..cluster.session import kernel_threads_of
from ..cluster.this_worker import leave_pool, progress_reporter
from ..output.manifest import BandsRecord
from ..plan.choice import GPU_THREADS
from .schedule import BoundingContext, Schedule, state_lost

T = TypeVar("T")
L = TypeVar("L", bound=OrientedLists)

_MOST_BANDS = 64
"""Upper limit of `PeelBands._least_bands`."""
_MOST_LOSSES = 20
"""How often workers may be lost without a band being finished."""


def gang_of(
    engine: Engine, carrier: CarrierSetting, most: int, graph: Future | None = None
) -> tuple[list[str], Communicator]:
    """The addresses of the workers that take part (see `_band_workers`), and their communicator.

    If `graph` is given, the worker that holds it takes part and comes first. Raises ClusterLost if workers are lost
    again and again.
    """
    for _ in range(_MOST_LOSSES):
        addresses = _band_workers(engine, carrier, most, graph)
        try:
            return addresses, Communicator.of(engine, len(addresses), carrier, addresses)
        except StateLost:  # a worker was lost meanwhile
            engine.refresh_workers()
    raise ClusterLost("workers were lost again and again before they could peel bands; run again")


def _band_workers(engine: Engine, carrier: CarrierSetting, most: int, graph: Future | None) -> list[str]:
    """The addresses of the workers that take part, at most `most`.

    On CPUs with the carrier `auto`, only the first worker of each host takes part; its task uses the cores of the
    host's other workers too. Otherwise all workers do. Raises as `Engine.on_every_worker`.
    """
    addresses = list(engine.session.workers)
    if graph is not None:
        engine.wait([graph])
        (holder,) = engine.holders([graph])
        addresses.insert(0, addresses.pop(holder))
    if carrier != "auto" or engine.capacity.device_bytes:
        return addresses[:most]
    return [addresses[own[0]] for own in by_host(engine.on_every_worker(cores_here))][:most]


def count_by_shares(engine: Engine, owned: Future, carrier: CarrierSetting, most: int) -> Future:
    """Count the triangles of the only partition on several workers. Returns int32 [edges] in the order of `owned`.

    Raises StateLost if a worker is lost.
    """
    with engine.exclusive("triangles"):
        lists = engine.submit("lists", oriented_lists, owned)
        addresses, communicator, copies = _gang_with(engine, carrier, most, lists)
        arguments = [(communicator, worker, own, _space(engine)) for worker, own in enumerate(copies)]
        tasks = engine.start_on("count-share", _count_share, arguments, addresses)
        engine.wait_for_gang(tasks, addresses)
        # Alone the task could not run again: it waits for the others of its gang.
        return engine.cut_lineage("count-triangles", tasks[:1], count_triangles, [(owned,)])[0]


def _gang_with(
    engine: Engine, carrier: CarrierSetting, most: int, graph: Future
) -> tuple[list[str], Communicator, list[Future | None]]:
    """As `gang_of`, with the graph for each worker.

    On CPUs Dask sends the graph to each worker. On GPUs only the first worker gets it, and sends it to the others
    (`share_copy`).
    """
    if not engine.capacity.device_bytes:
        addresses, communicator = gang_of(engine, carrier, most)
        return addresses, communicator, [graph] * len(addresses)
    addresses, communicator = gang_of(engine, carrier, most, graph)
    return addresses, communicator, [graph, *[None] * (len(addresses) - 1)]


class _Band(NamedTuple):
    """A band to be peeled."""

    first_level: int
    edges: int
    work: int


@dataclass(frozen=True)
class _Held(SizedArrays):
    """The graph and the state that a worker holds to peel bands."""

    topology: Topology
    state: BandState


@dataclass
class _Workers:
    """The workers of one search, and the bands that they peel. Mutable."""

    held: dict[str, Future]
    """Address → _Held"""
    busy: dict[str, tuple[int, Future]] = field(default_factory=dict)
    """Address → the band that the worker peels"""
    found: dict[int, tuple[str, Future]] = field(default_factory=dict)
    """Band → the worker that has its λ"""
    helpers: dict[str, float] = field(default_factory=dict)
    """Address of a worker without a GPU, where others have one → its speed as a share of a GPU's"""
    since: dict[str, float] = field(default_factory=dict)
    """Address → when the worker began its band"""
    speed: dict[str, float] = field(default_factory=dict)
    """Address → work in a second, as measured in the last band of the worker"""
    on_host: tuple[Future, Future] | None = None
    """The graph and the state in host memory, once there are helpers"""

    def ended(self, band: int, address: str, work: int) -> None:
        """Note a band that a worker has peeled."""
        self.found[band] = address, self.busy.pop(address)[1]
        self.speed[address] = work / max(time.monotonic() - self.since.pop(address), 1e-3)

    def may_help(self, address: str, band: int, left: int) -> bool:
        """Whether a helper would peel a band of the work `band` before the GPUs have done all remaining work, `left`.

        True if no GPU is left.
        """
        gpus = [own for own in self.held if own not in self.helpers]
        if not gpus:
            return True
        measured = [self.speed[own] for own in gpus if own in self.speed]
        one = sum(measured) / len(measured) if measured else 1.0
        speed = self.speed.get(address, self.helpers[address] * one) if measured else self.helpers[address]
        return band / speed <= left / (len(gpus) * one)

    def drop(self, present: Collection[str]) -> list[int]:
        """Forget the workers that are not present or hold nothing; returns the bands to be peeled again."""
        kept = {address for address, held in self.held.items() if address in present and held.status == "finished"}
        again = [band for address, (band, _) in self.busy.items() if address not in kept]
        again += [band for band, (address, _) in self.found.items() if address not in kept]
        for address in set(self.held) - kept:
            self.held.pop(address).release()
            self.helpers.pop(address, None)
            if address in self.busy:
                self.busy.pop(address)[1].release()
        for band in again:
            self.found.pop(band, None)
        return again


class PeelBands(Schedule):
    """Peels the only partition in bands."""

    def __init__(self, context: BoundingContext, most: int, helpers: int = 0) -> None:
        """At most `most` workers take part in the filter, and at most `helpers` workers without a GPU peel bands."""
        super().__init__(context)
        self._most, self._helpers = most, helpers
        self._workers = 0
        self._beside: Callable[[], None] = _nothing
        self._filter_seconds = self._band_seconds = 0.0

    @property
    def reached(self) -> dict[str, int]:
        """The next level, and the edges that are left."""
        return super().reached | {"unsettled": self._records[0].left} if self._records else super().reached

    def _search(self, before: Sequence[Future] | None, seconds: float | None, most: int | None) -> list[Future]:
        deadline = None if seconds is None else time.monotonic() + seconds
        engine = self.context.engine
        engine.refresh_workers()
        self._beside = self.context.beside
        with engine.exclusive("peeling"):
            graph = engine.submit("graph-copy", graph_copy, self.context.subgraphs[0])
            started = time.perf_counter()
            held = self._filter(graph, before[0] if before else None, deadline)
            filtered = time.perf_counter()
            self._filter_seconds += filtered - started
            workers = _Workers(held)
            found = self._peel_bands(graph, workers, deadline)
            self._band_seconds += time.perf_counter() - filtered
        self._start_beside()
        return [found]

    def _start_beside(self) -> None:
        """Start the tasks in the background, once in each search. On GPUs they start with the bands: the filter does
        much work in Python between kernels, which threads of the same process would delay.
        """
        self._beside()
        self._beside = _nothing

    def _filter(self, graph: Future, before: Future | None, deadline: float | None) -> dict[str, Future]:
        """Run the filter to its end, or to the deadline. Returns _Held by address."""
        context, losses = self.context, 0
        engine, carrier = context.engine, context.settings.carrier
        state = before
        reached = (False, -1)
        while True:
            addresses, communicator, copies = _gang_with(engine, carrier, self._most, graph)
            left = None if deadline is None else deadline - time.monotonic()
            how = state, _space(engine), left, self._least_bands
            arguments = [(communicator, w, own, *how, self._topic if w == 0 else None) for w, own in enumerate(copies)]
            tasks = engine.start_on("filter", _filter_on_worker, arguments, addresses)
            if not engine.capacity.device_bytes:
                self._start_beside()
            self._workers = max(self._workers, len(addresses))
            lost = None
            try:
                engine.wait_for_gang(tasks, addresses)
            except StateLost as error:
                lost = error
            ended = {a: task for a, task in zip(addresses, tasks, strict=True) if task.status == "finished"}
            try:
                stops = self._each("reached", _stops, ended)
            except StateLost as error:
                lost, stops = error, []
            if lost is None and len(set(stops)) == 1 and (stops[0][0] or _passed(deadline)):
                return ended
            # When a worker is lost, the other tasks end at a threshold. The filter goes on from the highest of these
            # thresholds.
            losses = 0 if max(stops, default=reached) > reached else losses + 1
            if losses == _MOST_LOSSES:
                raise lost or StateLost("workers lost each other again and again while they peeled bands; run again")
            if stops and max(stops) > reached:
                reached = max(stops)
                address = list(ended)[stops.index(reached)]
                held = engine.start_on("state", attrgetter("state"), [(ended[address],)], [address])
                with suppress(StateLost):  # then the filter goes on from an earlier threshold, or begins again
                    engine.wait_for_gang(held, [address])
                    state = engine.cut_lineage("state-held", held, state_lost, [()])[0]
            engine.refresh_workers()

    def _each(self, name: str, function: Callable[[Any], T], held: Mapping[str, Future]) -> list[T]:
        """`function` of each value in `held`, on the worker with that address. Raises StateLost if a worker is lost."""
        tasks = self.context.engine.start_on(name, function, [(own,) for own in held.values()], list(held))
        self.context.engine.wait_for_gang(tasks, list(held))
        return self.context.engine.gather(tasks)

    def _peel_bands(self, graph: Future, workers: _Workers, deadline: float | None) -> Future:
        """Peel the bands that the filter found: all of them, or until the deadline, but at least one.

        Returns a BandState. Raises StateLost if all workers that held the graph are lost, if workers are lost again and
        again, or if the worker with the outcome is lost.
        """
        engine, losses = self.context.engine, 0
        todo: list[int] | None = None
        while True:
            try:
                address = next(iter(workers.held))
                state = engine.start_on("state", attrgetter("state"), [(workers.held[address],)], [address])[0]
                if todo is None:
                    ((filtered, bands),) = self._each("unfinished", _unfinished, {address: state})
                    todo = list(bands) if filtered else []
                while workers.busy or (todo and not (workers.found and _passed(deadline))):
                    if not (workers.found and _passed(deadline)):
                        self._add_workers(graph, state, workers, len(todo))
                        self._start_bands(workers, todo, bands)
                        self._start_beside()
                    ended = engine.wait_for_one([task for _, task in workers.busy.values()], list(workers.busy))
                    for address, (band, task) in list(workers.busy.items()):
                        if task in ended:
                            workers.ended(band, address, bands[band].work)
                    self._listener({"part": 0, **self._progress(bands, workers)})
                    losses = 0
                return engine.cut_lineage("bands-held", self._bring_together(workers), state_lost, [()])[0]
            except (ClusterLost, StateLost) as error:
                losses += 1
                engine.refresh_workers()
                again = workers.drop(engine.workers_now())
                if todo is not None:
                    todo[:0] = again
                if losses == _MOST_LOSSES or not workers.held:
                    raise StateLost(str(error)) from error

    def _bring_together(self, workers: _Workers) -> list[Future]:
        """The BandState with λ of all bands, on one worker. GPUs send it λ of their bands over a carrier.

        Raises ClusterLost or StateLost if a worker is lost.
        """
        engine, first = self.context.engine, next(iter(workers.held))
        given: dict[str, dict[int, Future]] = {first: {}}
        for band, (address, task) in workers.found.items():
            apart = engine.capacity.device_bytes and address not in workers.helpers
            given.setdefault(address if apart else first, {})[band] = task
        addresses = list(given)
        if len(addresses) == 1:
            outcome = engine.start_on("bands", _outcome, [(workers.held[first], given[first])], addresses)
            engine.wait_for_one(outcome, list(workers.held))
            return outcome
        communicator = Communicator.of(engine, len(addresses), self.context.settings.carrier, addresses)
        held = [workers.held[first], *[None] * (len(addresses) - 1)]
        arguments = [
            (communicator, w, own, given[address]) for w, (address, own) in enumerate(zip(addresses, held, strict=True))
        ]
        tasks = engine.start_on("bands", _outcome_of_gpus, arguments, addresses)
        engine.wait_for_gang(tasks, addresses)
        return tasks[:1]

    @property
    def _least_bands(self) -> int:
        """Minimum number of bands, so that one band is about a helper's share of the work."""
        capacity = self.context.engine.capacity
        if not self._helpers:
            return 0
        share = capacity.helper_threads / capacity.helpers / (GPU_THREADS * self._most + capacity.helper_threads)
        return min(_MOST_BANDS, round(1 / share))

    def _start_bands(self, workers: _Workers, todo: list[int], bands: Mapping[int, _Band]) -> None:
        """Start the next bands on the workers that are free: the longest on GPUs, the shortest on helpers."""
        engine, helping = self.context.engine, self.context.engine.on_cpus()
        for address, held in workers.held.items():
            if not todo or address in workers.busy:
                continue
            if address not in workers.helpers:
                band = todo.pop(0)
            elif workers.may_help(address, bands[todo[-1]].work, sum(bands[one].work for one in todo)):
                band = todo.pop()
            else:
                continue
            by = helping if address in workers.helpers else engine
            workers.since[address] = time.monotonic()
            workers.busy[address] = band, by.start_on("band", _peel_band, [(held, band)], [address])[0]

    def _progress(self, bands: Mapping[int, _Band], workers: _Workers) -> dict[str, int]:
        left = [own for band, own in bands.items() if band not in workers.found]
        level = min((own.first_level for own in left), default=0)
        return {"level": level, "unsettled": sum(own.edges for own in left)}

    def _add_workers(self, graph: Future, state: Future, workers: _Workers, todo: int) -> None:
        """Give a copy of the graph to workers that have joined, if there are bands for them."""
        engine, carrier = self.context.engine, self.context.settings.carrier
        present = engine.workers_now()
        hosts = {present[address]["host"] for address in workers.held if address in present}
        for address, worker in present.items():
            helps = engine.session.needs_gpu and GPU not in worker["resources"]
            apart = carrier != "auto" or engine.capacity.device_bytes
            new = address not in workers.held if apart else worker["host"] not in hosts
            if helps:
                new = new and len(workers.helpers) < self._helpers
                workers.helpers |= {address: kernel_threads_of(worker) / GPU_THREADS} if new else {}
            if new and todo > len(workers.held) - len(workers.busy):
                hosts.add(worker["host"])
                by, given = engine, (graph, state)
                if helps:  # a helper may have no CuPy, and could not receive arrays of a GPU
                    by, given = engine.on_cpus(), workers.on_host or self._on_host(graph, state)
                    workers.on_host = given
                workers.held[address] = by.start_on("join", _hold, [(*given, _space(by))], [address])[0]
                self._workers = max(self._workers, len(workers.held))

    def _on_host(self, graph: Future, state: Future) -> tuple[Future, Future]:
        """The graph and the state in host memory."""
        engine, host = self.context.engine, MemorySpace.HOST
        copies = engine.submit("graph-on-host", move_arrays, graph, host)
        return copies, engine.submit("state-on-host", BandState.moved, state, host)

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        return self.context.engine.map("intervals", band_intervals, [(self.context.subgraphs[0], states[0])])

    def _report_exchanges(self, levels: int, evaluations: int, unsettled: int) -> None:
        assert self.states is not None
        ((bands, figures),) = self.context.engine.peek(self.states, _figures)
        self.bands = BandsRecord(
            workers=self._workers,
            bands=bands,
            passes=figures.passes,
            exchanges=figures.exchanges,
            taken_back=figures.taken_back,
            bytes=figures.bytes,
            filter_seconds=round(self._filter_seconds, 3),
            band_seconds=round(self._band_seconds, 3),
        )


def _space(engine: Engine) -> MemorySpace:
    """The memory in which the workers compute."""
    return MemorySpace.DEVICE if engine.capacity.device_bytes else MemorySpace.HOST


def _nothing() -> None:
    pass


def load_bands(space: MemorySpace) -> None:
    """Task: load the kernels that peel bands on a worker, and those of packets between workers."""
    warm_bands()
    if space is MemorySpace.DEVICE:
        warm_bands_on_gpu()


def _passed(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _filter_on_worker(
    communicator: Communicator,
    worker: int,
    graph: GraphCopy | None,
    before: BandState | None,
    space: MemorySpace,
    seconds: float | None,
    least_bands: int,
    topic: str | None,
) -> _Held:
    """Task: the coarse filter on one of the workers."""
    leave_pool()
    report = progress_reporter(topic)
    with one_carrier(communicator, worker, space) as carrier:
        graph = _copy_of(GraphCopy, graph, space, carrier)
        topology = graph.topology()
        if before is not None:
            before = before.moved(space)
            if before.bands.filtered:
                return _Held(topology, before)
        bands = None if before is None else before.bands
        search = CoarseFilter(topology, graph.support, sums_over(carrier), bands, least_bands)
        return _Held(topology, BandState.of(search.run(seconds, report)))


def _copy_of(kind: type[L], graph: L | None, space: MemorySpace, carrier: Carrier) -> L:
    """A worker's copy of a graph. On a GPU all workers call this; one of them passes the graph."""
    if space is MemorySpace.DEVICE:
        return share_copy(kind, None if graph is None else move_arrays(graph, space), carrier)
    assert graph is not None
    return graph


def _count_share(
    communicator: Communicator, worker: int, lists: OrientedLists | None, space: MemorySpace
) -> IntArray | None:
    """Task: count a share of the triangles. Returns the triangles of each edge on worker 0, and None on the others."""
    leave_pool()
    with one_carrier(communicator, worker, space) as carrier:
        return count_share(_copy_of(OrientedLists, lists, space, carrier), carrier)


@contextmanager
def one_carrier(communicator: Communicator, worker: int, space: MemorySpace = MemorySpace.HOST) -> Iterator[Carrier]:
    """Context in a task: the carrier of a worker of a gang. If the block fails, the carrier makes the other workers
    fail.

    On a GPU the carrier also takes words in the GPU's memory (`between_gpus`).
    """
    with communicator.open_carriers(worker) as (carrier, *_):
        try:
            if space is MemorySpace.HOST:
                yield carrier
            else:
                with between_gpus(carrier, communicator.direct) as sending:
                    if communicator.direct and not isinstance(sending, GpuMemoryCarrier) and carrier.groups > 1:
                        raise UsageError(
                            "bounding.carrier is mailboxes, and a GPU cannot read the memory of another: use "
                            "bounding.carrier=auto"
                        )
                    yield sending
        except BaseException:
            carrier.abandon()
            raise


def _hold(graph: GraphCopy, state: BandState, space: MemorySpace) -> _Held:
    """Task: the graph and the state that a worker that has joined needs for bands."""
    return _Held(move_arrays(graph, space).topology(), state.moved(space))


def _peel_band(held: _Held, band: int) -> IntArray:
    """Task: λ of the edges of one band."""
    leave_pool()
    return peel_band(held.topology, held.state.bands, band)


def _outcome(held: _Held, found: Mapping[int, IntArray]) -> BandState:
    """Task: the state with the bands that were peeled."""
    return held.state.with_bands(found)


def _outcome_of_gpus(
    communicator: Communicator, worker: int, held: _Held | None, found: Mapping[int, IntArray]
) -> BandState | None:
    """Task: the state with the bands that all workers have peeled, on worker 0."""
    leave_pool()
    with one_carrier(communicator, worker, MemorySpace.DEVICE) as carrier:
        found = bring_together({band: MemorySpace.DEVICE.place(own) for band, own in found.items()}, carrier, 0)
        return None if held is None else held.state.with_bands(found)


def _stops(held: _Held) -> tuple[bool, int]:
    """Whether the filter has ended, and the number of bands that it has found."""
    return held.state.bands.filtered, len(held.state.bands.stops)


def _unfinished(state: BandState) -> tuple[bool, dict[int, _Band]]:
    """Whether the filter is finished; the bands to be peeled, longest first."""
    sizes, found = state.band_sizes(), state.bands
    bands = {one: _Band(found.first_level(one), int(sizes[one]), found.work[one]) for one in state.unfinished}
    return found.filtered, bands


def _figures(state: BandState) -> tuple[int, FilterFigures]:
    return len(state.bands.stops), state.bands.figures
