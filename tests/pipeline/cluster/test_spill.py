"""Results with arrays in files: equal values, written once, removed with the last reference; and whole runs."""

from __future__ import annotations

import errno
import os
import pickle
import signal
from pathlib import Path
from threading import BoundedSemaphore
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from distributed import Client, get_worker

import runs
from edgemill.pipeline import mine
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.task_calls import FileResults
from edgemill.pipeline.cluster.workers import spill
from edgemill.pipeline.cluster.workers.spill import (
    LEAST_BYTES,
    ArrayFile,
    SmallArray,
    SpillToFiles,
    mapped,
    put_in_files,
)
from edgemill.pipeline.messages.exits import exit_code
from edgemill.pipeline.plan.plan import Plan
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.errors import ClusterLost, OutOfRoom
from edgemill.tasks.generate import generate
from edgemill.tasks.messages import Bundle, bundle

HOW: dict[str, Any] = {"device": "cpu", "output.report": False}
LARGE, SMALL = np.arange(LEAST_BYTES // 4, dtype=np.int32), np.arange(3, dtype=np.int32)


class Here:
    """The attributes of a worker that are used here."""

    def __init__(self, folder: Path) -> None:
        self.local_directory = str(folder)
        self.memory_manager = SimpleNamespace(memory_spill_fraction=0.7)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scratch folder of a worker in this process."""
    monkeypatch.setattr(spill, "get_worker", lambda: Here(tmp_path))
    monkeypatch.setattr(spill, "_folders", [str(tmp_path)])
    return tmp_path


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("array-*"))


def test_large_arrays_lie_in_files_and_come_back(folder: Path) -> None:
    kept = put_in_files(Bundle(0, {1: LARGE, 2: SMALL}, {1: len(LARGE), 2: 3}))
    first: Any = kept.parts[1]
    assert isinstance(first, ArrayFile)
    assert isinstance(kept.parts[2], SmallArray)
    assert kept.parts[2].nbytes == SMALL.nbytes
    assert [path.read_bytes() for path in files(folder)] == [LARGE.tobytes()]
    back = mapped([("a", kept)])[0][1]
    assert back.parts[2] is SMALL
    assert (back.sender, back.rows, list(back.parts)) == (0, kept.rows, [1, 2])
    assert back.parts[1].dtype == LARGE.dtype
    np.testing.assert_array_equal(back.parts[1], LARGE)
    del kept, first
    assert len(files(folder)) == 1  # it is still mapped
    np.testing.assert_array_equal(back.parts[1], LARGE)
    del back
    assert not files(folder)


LONG = np.arange(LEAST_BYTES)


@pytest.mark.parametrize(
    "array", [LONG.astype(np.int16), LONG[::2], LONG[::-1], LONG % 2 == 0, np.tile(LONG, (4, 1)).T]
)
def test_arrays_of_every_kind(folder: Path, array: np.ndarray[Any, Any]) -> None:
    kept: Any = put_in_files([array])
    assert len(files(folder)) == 1
    np.testing.assert_array_equal(mapped(kept)[0], array)


def test_what_takes_no_room_is_left_alone(folder: Path) -> None:
    kept = [np.broadcast_to(SMALL[:1], 10**6), None, "text", 7]
    assert put_in_files(kept) is kept
    assert mapped(kept) is kept
    assert not files(folder)


def test_a_small_array_keeps_no_other(folder: Path) -> None:
    kept = mapped(put_in_files([LARGE[5:8], SMALL[:0]]))
    assert [part.tolist() for part in kept] == [[5, 6, 7], []]
    assert kept[0].base is None


def test_one_array_stays_one(folder: Path) -> None:
    kept = put_in_files(Intervals(LARGE, LARGE))
    assert len(files(folder)) == 1
    back = mapped(kept)
    assert back.low is back.high


def test_an_array_is_written_once(folder: Path) -> None:
    """A whole array that a task returns refers to its file. A part of it, or a new array, does not."""
    low: Any = mapped(put_in_files([LARGE]))[0]
    again: Any = put_in_files(Intervals(low, low + 1))
    assert len(files(folder)) == 2
    assert again.low is low.base.file
    part: Any = put_in_files([np.concatenate([low, low])[1:], low[1:], low.view(np.int16), low.view(np.uint32)])
    assert all(each is not low.base.file for each in part)
    np.testing.assert_array_equal(mapped(part)[2], low.view(np.int16))


def test_a_mapped_array_may_be_written_to(folder: Path) -> None:
    kept = put_in_files([LARGE])
    mapped(kept)[0][:] = 0
    np.testing.assert_array_equal(mapped(kept)[0], LARGE)


def test_a_link_to_a_worker_that_is_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept,) = put_in_files([LARGE], linked=True)
    sent = pickle.dumps(kept)
    del kept
    (link,) = folder.iterdir()
    link.unlink()
    with pytest.raises(FileNotFoundError):  # which Dask takes for a connection that failed
        pickle.loads(sent)
    monkeypatch.setattr(spill, "_folders", [])  # as the client, which asks for nothing twice
    with pytest.raises(ClusterLost, match="run again"):
        mapped([pickle.loads(sent)])


def test_a_link_outlives_what_was_sent(folder: Path) -> None:
    (kept,) = put_in_files([LARGE], linked=True)
    sent = pickle.dumps(kept)
    del kept
    assert not files(folder)
    found = pickle.loads(sent)
    assert len(files(folder)) == 1
    np.testing.assert_array_equal(mapped([found])[0], LARGE)
    del found
    assert not list(folder.iterdir())


def test_what_cannot_be_written_stays_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "get_worker", lambda: Here(folder / "gone"))
    assert put_in_files([LARGE])[0] is LARGE


def test_a_full_disk_leaves_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(spill, "open", full, raising=False)
    assert put_in_files([LARGE])[0] is LARGE
    assert not files(folder)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files(folder: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The run ends, whether a file is mapped or written. Arrays do not stay in memory instead."""
    kept = put_in_files([LARGE])

    def none_more(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(spill, "open", none_more, raising=False)
    monkeypatch.setattr("tempfile.mkstemp", none_more)
    for lacking, value in ((mapped, kept), (put_in_files, [LARGE + 1])):
        with pytest.raises(OutOfRoom, match=r"ulimit -n") as raised:
            lacking(value)
        assert exit_code(raised.value) == 7


def test_no_more_can_be_mapped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = put_in_files([LARGE])

    def no_memory(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(spill, "_Map", no_memory)
    with pytest.raises(OutOfRoom, match=r"vm\.max_map_count"):
        mapped(kept)


def test_offers_are_withdrawn(folder: Path) -> None:
    """Also those of a worker that is lost meanwhile, to which no other links."""
    there, gone = spill.offer(), spill.offer()
    assert spill.can_link([there, gone])
    os.unlink(gone)
    assert not spill.can_link([there, gone])
    spill.withdraw([gone, there])
    assert not list(folder.iterdir())


def test_links_that_nobody_takes_go_with_the_last_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_folders", [])
    worker: Any = Here(folder)
    runs_of_worker = [SpillToFiles("one"), SpillToFiles("other")]
    for run in runs_of_worker:
        run.setup(worker)
        assert worker.memory_manager.memory_spill_fraction is False
    kept: Any = put_in_files([LARGE], linked=True)[0]
    pickle.dumps(kept)
    left = len(list(folder.iterdir()))
    runs_of_worker[0].teardown(worker)
    assert len(list(folder.iterdir())) == left == 2
    assert worker.memory_manager.memory_spill_fraction is False
    assert isinstance(pickle.loads(pickle.dumps(kept)), ArrayFile)  # this worker takes links still
    runs_of_worker[1].teardown(worker)
    assert list(folder.iterdir()) == files(folder) == [Path(kept.path)]
    assert spill._folders == []
    assert worker.memory_manager.memory_spill_fraction == 0.7


def test_old_links_go_when_another_is_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def links() -> list[Path]:
        return sorted(folder.glob("sent-*"))

    monkeypatch.setattr(spill, "_swept_at", {})
    kept: Any = put_in_files([LARGE, LARGE + 1], linked=True)
    pickle.dumps(kept)
    first = links()
    pickle.dumps(kept[0])
    assert len(links()) == 3
    assert set(first) < set(links())  # they are new
    assert list(spill._swept_at) == [str(folder)]
    spill._swept_at[str(folder)] -= 2 * spill.LINK_SECONDS
    pickle.dumps(kept[0])
    assert len(links()) == 4  # looked through, and none is old
    monkeypatch.setattr(spill, "LINK_SECONDS", -1)  # from here on all are
    sent = pickle.dumps(kept[1])
    (link,) = links()
    assert link not in first
    np.testing.assert_array_equal(mapped([pickle.loads(sent)])[0], LARGE + 1)
    assert not links()
    assert sorted(path.read_bytes() for path in files(folder)) == sorted([LARGE.tobytes(), (LARGE + 1).tobytes()])


@pytest.mark.parametrize("linked", [True, False])
def test_results_of_workers_lie_in_files_of_theirs(
    two_workers: Client, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    """Arrays that another worker needs lie in its files. No file is left when the results are released."""

    def make(size: int) -> Bundle[Any]:
        return bundle(0, {0: np.arange(size)})

    def both(one: Bundle[Any], other: Bundle[Any]) -> Bundle[Any]:
        return bundle(1, {0: one.parts[0] + other.parts[0]})

    def kept(dask_worker: Any) -> tuple[int, list[bool]]:
        folder = dask_worker.local_directory
        there = sum(name.startswith("array-") for name in os.listdir(folder))
        bundles = [value for value in dask_worker.data.values() if not isinstance(value, list)]  # else of `peek`
        return there, [isinstance(value.parts[0], np.ndarray) for value in bundles]

    if not linked:  # as seen from another machine
        monkeypatch.setattr("edgemill.pipeline.cluster.session.os.access", lambda *_: False)
    engine = Engine.connect(two_workers, "files", results_in_files=True)
    monkeypatch.undo()
    try:
        assert engine._files == FileResults(linked)
        made = engine.run_gang("make", make, [(10_000,), (10_000,)])
        assert list(two_workers.run(kept).values()) == [(1, [False]), (1, [False])]
        summed = engine.run_gang("both", both, [tuple(made)] * 2)
        found = engine.gather(summed)
        for result in found:
            np.testing.assert_array_equal(result.parts[0], 2 * np.arange(10_000))
        assert engine.peek(summed, lambda result: int(result.parts[0].sum())) == [99_990_000] * 2
        now = list(two_workers.run(kept).values())
        assert all(there == len(in_memory) for there, in_memory in now)
        assert sum(there for there, _ in now) >= 4  # Dask may have dropped any but one copy of each
        assert not any(any(in_memory) for _, in_memory in now)
        del made, summed, found
        runs.assert_nothing_left(two_workers)
        assert list(two_workers.run(kept).values()) == [(0, []), (0, [])]
    finally:
        engine.session.close()
    assert_no_files_left(two_workers)


def assert_no_files_left(client: Client) -> None:
    """Neither files nor plugins of the run are left, also on workers that join later."""
    left = client.run(lambda dask_worker: os.listdir(dask_worker.local_directory))
    known = ("array-", "sent-", "offer-", "link-")
    assert not [name for names in left.values() for name in names if name.startswith(known)]
    plugins = [*client.run(lambda dask_worker: list(dask_worker.plugins)).values()]
    plugins.append(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.worker_plugins)))
    assert not [name for names in plugins for name in names if name.startswith("edgemill")]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", folder, files=3, seed=4, scale=9, edge_factor=16)
    return folder


@pytest.mark.parametrize(
    ("how", "processes"),
    [
        pytest.param({"method": "fixpoint"}, True, marks=pytest.mark.slow),
        pytest.param({"method": "band"}, False, marks=pytest.mark.slow),
        ({"partitions": 3}, True),
        ({"partitions": 3}, False),
    ],
)
def test_a_run_in_waves(
    rows: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    two_workers: Client,
    how: dict[str, Any],
    processes: bool,
) -> None:
    """Its result equals that of a run in memory."""
    plain = mine(rows, tmp_path / "plain", **HOW)
    monkeypatch.setattr(Plan, "in_waves", property(lambda _: True))
    how = HOW | {"checkpoint": {"every_exchanges": 3}} | how
    result = mine(rows, tmp_path / "out", client=two_workers if processes else None, **how)
    assert result.edges.to_table() == plain.edges.to_table()
    assert result.vertices.to_table() == plain.vertices.to_table()
    assert spill._folders == []
    if processes:
        runs.assert_nothing_left(two_workers)
        assert_no_files_left(two_workers)


class Counted:
    """Admits one task at a time, and counts them."""

    def __init__(self) -> None:
        self.entered = self.inside = self.most = 0
        self._turn = BoundedSemaphore(1)

    def __enter__(self) -> None:
        self._turn.acquire()
        self.entered, self.inside = self.entered + 1, self.inside + 1
        self.most = max(self.most, self.inside)

    def __exit__(self, *_: object) -> None:
        self.inside -= 1
        self._turn.release()


def test_threads_take_turns_at_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks with partitions run one at a time, with all threads. A task that takes a small part runs beside them."""

    def prepare(dask_worker: Any) -> None:
        from threading import Barrier, Event

        dask_worker.place, dask_worker.within, dask_worker.looked = Barrier(2), Event(), Event()

    def meet(_: int) -> tuple[bool, int]:
        from threading import BrokenBarrierError

        import numba

        worker: Any = get_worker()
        try:
            worker.place.wait(0.5)
        except BrokenBarrierError:
            return False, numba.get_num_threads()
        return True, numba.get_num_threads()

    def hold(_: int) -> bool:
        worker: Any = get_worker()
        worker.within.set()
        return bool(worker.looked.wait(30))

    def look(_: int) -> bool:
        worker: Any = get_worker()
        met = worker.within.wait(30)
        worker.looked.set()
        return bool(met)

    with runs.cluster(n_workers=1, threads_per_worker=2, processes=False) as client:
        engine = Engine.connect(client, "turns", results_in_files=True, partitions_at_once=1)
        engine = engine.for_tasks(2)
        client.run(prepare)
        assert engine.gather(engine.map("apart", meet, [(0,), (1,)])) == [(True, 1)] * 2
        holding = engine.for_partitions()
        together = holding.gather(holding.map("together", meet, [(0,), (1,)]))
        assert together == [(False, min(2, numba.config.NUMBA_NUM_THREADS))] * 2
        held = holding.map("hold", hold, [(0,)])
        assert holding.gather(holding.map("look", look, [(0,)], soon=True)) == [True]
        assert holding.gather(held) == [True]
        client.run(prepare)
        assert engine.gather(engine.map("apart-again", meet, [(0,), (1,)])) == [(True, 1)] * 2
        engine.session.close()


def test_a_run_of_one_partition_at_a_time(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = mine(rows, tmp_path / "plain", **HOW)
    turns = {1: Counted()}
    monkeypatch.setattr("edgemill.pipeline.cluster.task_calls._slots", turns)
    monkeypatch.setattr(Plan, "in_waves", property(lambda _: True))
    how = HOW | {"partitions": 3, "cluster": {"threads_per_worker": 2}}
    result = mine(rows, tmp_path / "out", **how)
    assert result.edges.to_table() == plain.edges.to_table()
    assert turns[1].entered > 3
    assert (turns[1].most, turns[1].inside) == (1, 0)


@pytest.mark.slow
def test_one_run_after_the_other(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_workers: Client
) -> None:
    """The second receives links in the process of the first one's worker."""
    monkeypatch.setattr(Plan, "in_waves", property(lambda _: True))
    how = HOW | {"partitions": 3}
    found = [mine(rows, tmp_path / str(i), client=client, **how) for i, client in enumerate([None, two_workers])]
    assert found[0].edges.to_table() == found[1].edges.to_table()
    assert spill._folders == []


def test_workers_may_open_all_files_that_they_may(two_workers: Client) -> None:
    def few() -> int:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
        return most

    def limits() -> tuple[int, int]:
        import resource

        return resource.getrlimit(resource.RLIMIT_NOFILE)

    def make(size: int) -> list[Any]:
        return [np.full(size, i) for i in range(300)]

    def add(arrays: list[Any]) -> int:
        return int(sum(array[0] for array in arrays))

    most = two_workers.run(few)
    engine = Engine.connect(two_workers, "many", results_in_files=True)
    assert two_workers.run(limits) == {address: (own, own) for address, own in most.items()}
    made = engine.map("make", make, [(2_000,)])
    assert engine.gather(engine.map("add", add, [tuple(made)])) == [sum(range(300))]
    two_workers.run(few)
    with pytest.raises(OutOfRoom, match=r"ulimit -n"):
        engine.gather(engine.map("add", add, [tuple(made)]))
    two_workers.run(spill.open_many)
    engine.session.release_all()
    engine.session.close()


@pytest.mark.slow
def test_a_worker_is_lost_from_which_another_got_an_array() -> None:
    """The array lies in the folder of its receiver. The replacement of the lost worker has the plugins, too."""

    def make(size: int) -> Any:
        return np.arange(size)

    def add(array: Any) -> int:
        return int(array.sum())

    def known(dask_worker: Any) -> bool:
        from edgemill.pipeline.cluster.workers import spill

        return bool(spill._folders == [dask_worker.local_directory])

    def sends_from_devices() -> bool:
        from distributed.protocol.cuda import cuda_serialize

        from edgemill.tasks.messages import Payload

        return any(kind is Payload for kind in cuda_serialize._lookup)

    def plugins(dask_worker: Any) -> list[str]:
        return [name for name in dask_worker.plugins if name.startswith("edgemill")]

    with runs.two_processes() as client:
        engine = Engine.connect(client, "lost", results_in_files=True)
        engine.session.send_between_gpus()
        assert engine._files == FileResults(linked=True)
        _, other = engine.session.workers
        pids, folders = client.run(os.getpid), client.run(lambda dask_worker: dask_worker.local_directory)
        (made,) = engine.map("make", make, [(10_000,)], [0])
        assert engine.gather(engine.map("add", add, [(made,)], [1])) == [49_995_000]
        (lost,) = set(pids) - {other}
        os.kill(pids[lost], signal.SIGKILL)
        assert len(engine.on_every_worker(int)) == 2  # another is there
        assert not os.path.exists(folders[lost])
        assert lost not in engine.session.workers
        place = list(engine.session.workers).index(other)
        assert engine.gather(engine.map("add", add, [(made,)], [place])) == [49_995_000]
        assert list(client.run(known).values()) == [True, True]
        assert list(client.run(sends_from_devices).values()) == [True, True]
        engine.session.close()
        assert list(client.run(plugins).values()) == [[], []]
