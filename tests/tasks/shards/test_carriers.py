"""Packets between groups of shards: in memory, and in memory that processes of one host share."""

from __future__ import annotations

import errno
import gc
import mmap
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrying import SECONDS, Plan, converse, converses, in_threads, of_tests, processes, says_when
from edgemill.kernels.cpu.arrays.shared_words import load_acquire, spin_until_at_least, store_release
from edgemill.tasks.errors import ClusterLost, InternalError, OutOfRoom
from edgemill.tasks.shards.carriers import gpu_memory, group_file, shared_memory
from edgemill.tasks.shards.carriers.carrier import Carrier, GroupPacket, MemoryCarrier
from edgemill.tasks.shards.carriers.group_file import GroupFile, OtherFile
from edgemill.tasks.shards.carriers.shared_memory import SharedMemoryCarrier
from examples import examples

Run = Callable[[Callable[[Carrier], Any], int], list[Any]]
"""Runs `work(carrier)` for a number of groups, each in its own thread."""
NOTHING = np.zeros(0, np.uint32)


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    """What carriers mapped goes with the last packet, and with an error that has it in its frames."""
    yield
    _await_that_nothing_is_open()


def _await_that_nothing_is_open() -> None:
    """Collect garbage until no carrier has a file or a thread: a collection of another thread makes one do nothing."""
    end = time.monotonic() + SECONDS
    while (_open_files() or _beating()) and time.monotonic() < end:
        gc.collect()
    assert (_open_files(), _beating()) == (0, [])


def _beating() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "shards-heartbeat"]


@pytest.fixture(params=["memory", "shared memory", "shared memory without a futex"])
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    if request.param.endswith("futex"):
        monkeypatch.setattr(group_file, "_system", None)
    return partial(_in_memory if request.param == "memory" else partial(_in_shared_memory, tmp_path))


def _in_memory(work: Callable[[Carrier], Any], groups: int) -> list[Any]:
    carriers = MemoryCarrier.open(groups)
    return in_threads(lambda rank: _closing(carriers[rank], work), groups)


def _in_shared_memory(folder: Path, work: Callable[[Carrier], Any], groups: int) -> list[Any]:
    def one(rank: int) -> Any:
        return _closing(SharedMemoryCarrier.open([str(folder)], "run", rank, groups, SECONDS), work)

    try:
        return in_threads(one, groups)
    finally:
        assert not os.listdir(folder)
        assert not _beating()


def _closing(carrier: Carrier, work: Callable[[Carrier], Any]) -> Any:
    try:
        return work(carrier)
    except BaseException:
        carrier.abandon()
        raise
    finally:
        carrier.close()
        carrier.close()


def _open_files() -> int:
    """Files of groups that this process has open or mapped."""
    found = 0
    for handle in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the listing itself
            found += "edgemill-shards-" in os.readlink(f"/proc/self/fd/{handle}")
    return found


@pytest.mark.parametrize("groups", [1, 2, 3, 5])
def test_letters_arrive(run: Run, groups: int) -> None:
    plan = Plan(groups, 40, 1500)
    assert min(run(lambda carrier: converse(carrier, plan), groups)) > 40


def test_letters_grow_to_megabytes(run: Run) -> None:
    plan = Plan(1, 24, 2**20)
    assert min(run(lambda carrier: converse(carrier, plan), 2)) > 2**20


@given(st.integers(1, 5), st.integers(0, 2**32), st.integers(1, 300), st.sampled_from([3, 100, 40_000]))
@settings(max_examples=examples(12, 5))
def test_any_letters(
    tmp_path_factory: pytest.TempPathFactory, groups: int, seed: int, exchanges: int, largest: int
) -> None:
    plan = Plan(seed, min(exchanges, 10**6 // largest), largest)
    folder = tmp_path_factory.mktemp("packets")
    in_memory = _in_memory(lambda carrier: converse(carrier, plan), groups)
    assert _in_shared_memory(folder, lambda carrier: converse(carrier, plan), groups) == in_memory


def test_letters_are_valid_until_the_next_call(run: Run) -> None:
    """However far ahead the others are: all but group 0 are in the next exchange when it looks."""
    ahead = threading.Barrier(3)

    def work(carrier: Carrier) -> None:
        for exchange in range(20):
            words = np.full(1000, exchange, np.uint32)
            given = carrier.exchange(words, [words] * carrier.groups)
            if carrier.rank == 0:
                ahead.wait(SECONDS)
            assert all((packet.common == exchange).all() and (packet.own == exchange).all() for packet in given)
            if carrier.rank:
                ahead.wait(SECONDS)

    run(work, 3)


def test_the_name(run: Run) -> None:
    assert len(set(run(lambda carrier: carrier.name, 2)) & {"memory", "shared memory"}) == 1


@pytest.mark.parametrize("how", ["abandon", "close"])
def test_a_group_that_leaves_ends_the_others(run: Run, how: str) -> None:
    ended: list[float] = []
    left: list[float] = []

    def work(carrier: Carrier) -> None:
        for exchange in range(9):
            if exchange == 6 and carrier.rank == 1:
                left.append(time.monotonic())
                getattr(carrier, how)()
                with pytest.raises(ClusterLost, match=r"1.*shards"):
                    carrier.exchange(NOTHING, [NOTHING] * 3)
                return
            try:
                carrier.exchange(NOTHING, [NOTHING] * 3)
            except ClusterLost:
                ended.append(time.monotonic())
                assert exchange >= 5
                raise

    with pytest.raises(ClusterLost, match=r"group \d .*(failed|is lost|ended)"):
        run(work, 3)
    assert len(ended) == 2
    assert max(ended) - left[0] < 10


def test_the_last_exchange_reaches_all_though_others_have_closed(run: Run) -> None:
    def work(carrier: Carrier) -> list[GroupPacket]:
        words = np.full(5, carrier.rank, np.uint32)
        given = carrier.exchange(words, [words] * carrier.groups)
        carrier.close()
        assert [packet.own.tolist() for packet in given] == [[rank] * 5 for rank in range(carrier.groups)]
        return given

    for _ in range(20):
        run(work, 3)


def test_what_is_no_letter(run: Run) -> None:
    def work(carrier: Carrier) -> None:
        wrong: Any
        for wrong in (np.zeros(3, np.int64), np.zeros((2, 2), np.uint32), np.zeros(8, np.uint32)[::2]):
            with pytest.raises(ValueError, match="contiguous words"):
                carrier.exchange(wrong, [NOTHING])
            with pytest.raises(ValueError, match="contiguous words"):
                carrier.exchange(NOTHING, [wrong])
        with pytest.raises(ValueError, match=r"2 packets.*1"):
            carrier.exchange(NOTHING, [NOTHING] * 2)

    run(work, 1)


def test_a_letter_of_another_exchange_in_memory() -> None:
    carriers = MemoryCarrier.open(2)
    carriers[1]._exchange = 2  # as if it had met the others in exchanges of which they do not know

    def work(carrier: Carrier) -> None:
        carrier.exchange(NOTHING, [NOTHING] * 2)

    with pytest.raises(InternalError, match=r"3 came.*1"):
        in_threads(lambda rank: _closing(carriers[rank], work), 2)


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("_run", 1, "a packet of exchange 1 came"),
        ("_exchange", 2, "(group 1 is in exchange 3|a packet of exchange 3)"),
    ],
)
def test_a_letter_of_another_run_or_exchange(tmp_path: Path, field: str, change: int, message: str) -> None:
    def work(carrier: Carrier) -> None:
        if carrier.rank == 1:
            setattr(carrier, field, getattr(carrier, field) + change)
        carrier.exchange(NOTHING, [NOTHING] * 2)

    with pytest.raises(InternalError, match=message):
        _in_shared_memory(tmp_path, work, 2)


def test_other_numbers_of_groups(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="another one"):
        in_threads(lambda rank: SharedMemoryCarrier.open([str(tmp_path)], "run", rank, 2 + rank, 3), 2)
    assert not os.listdir(tmp_path)


def test_nobody_comes(tmp_path: Path) -> None:
    with pytest.raises(ClusterLost, match=r"1.*2.*connect"):
        SharedMemoryCarrier.open([str(tmp_path)], "run", 0, 3, 0.05)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("alive", [False, True])
def test_files_of_an_earlier_run(tmp_path: Path, alive: bool) -> None:
    """Of processes that were killed, or that were stopped and have not ended yet."""
    old = [GroupFile([str(tmp_path)], "run", rank, 2) for rank in range(2)]
    for file, other in zip(old, reversed(old), strict=True):
        file.announce(1 - old.index(file), other.nonce)
        file.post(7)
    if not alive:
        for file in old:
            file.close()
    plan = Plan(3, 5, 100)
    run = partial(SharedMemoryCarrier.open, [str(tmp_path)], "run", groups=2, seconds=SECONDS)
    in_threads(lambda rank: _closing(run(rank=rank), lambda carrier: converse(carrier, plan)), 2)
    assert not os.listdir(tmp_path)
    for file in old:
        file.close()


def test_old_files_of_lost_runs_are_removed(tmp_path: Path) -> None:
    files = [GroupFile([str(tmp_path)], name, 0, 1) for name in ("lost", "lives", "young")]
    for file in (files[0], files[2]):
        file.close()
    for name in ("lost", "lives"):
        os.utime(group_file.path_of(str(tmp_path), name, 0), (1, 1))
    SharedMemoryCarrier.open([str(tmp_path)], "run", 0, 1, SECONDS).close()
    assert sorted(os.listdir(tmp_path)) == ["edgemill-shards-lives-0", "edgemill-shards-young-0"]
    files[1].close()


def test_files_are_private(tmp_path: Path) -> None:
    file = GroupFile([str(tmp_path)], "run", 0, 2)
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o600]
    assert OtherFile.find([str(tmp_path)], "run", 1, 2) is None
    path = group_file.path_of(str(tmp_path), "run", 0)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        OtherFile.find([str(tmp_path)], "run", 0, 2)
    file.close()


def test_a_folder_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As /dev/shm of a container: packets that do not fit go to the next folder, and none is left in the end."""
    folders = [tmp_path / name for name in ("small", "large", "none")]
    for folder in folders:
        folder.mkdir()
    most = {str(folders[0]): 2**20, str(folders[1]): 2**30, str(folders[2]): 0}
    used: set[str] = set()
    allocate = os.posix_fallocate

    def limited(handle: int, first: int, size: int) -> None:
        folder = os.path.dirname(os.readlink(f"/proc/self/fd/{handle}"))
        if first + size > max(most[folder], mmap.ALLOCATIONGRANULARITY):
            raise OSError(errno.ENOSPC, "No space left on device")
        used.add(folder)
        allocate(handle, first, size)

    monkeypatch.setattr(os, "posix_fallocate", limited)
    plan = Plan(5, 12, 2**19)
    run = partial(SharedMemoryCarrier.open, list(map(str, folders)), "run", groups=2, seconds=SECONDS)
    in_threads(lambda rank: _closing(run(rank=rank), lambda carrier: converse(carrier, plan)), 2)
    assert used == set(map(str, folders))
    assert not [name for folder in folders for name in os.listdir(folder)]
    most[str(folders[1])] = 0
    with pytest.raises(OutOfRoom, match="space left"):
        in_threads(lambda rank: _closing(run(rank=rank), lambda carrier: converse(carrier, plan)), 2)
    assert not [name for folder in folders for name in os.listdir(folder)]


def test_room_of_small_letters_is_given_back(tmp_path: Path) -> None:
    def work(carrier: Carrier) -> int:
        assert isinstance(carrier, SharedMemoryCarrier)
        for size in [2**k for k in range(10, 22)] * 2:
            words = np.ones(size, np.uint32)
            carrier.exchange(words, [words])
        return 512 * os.fstat(carrier._own.handles[0]).st_blocks

    assert max(_in_shared_memory(tmp_path, work, 1)) < 6 * 8 * 2**21


def test_a_carrier_that_nobody_closes(tmp_path: Path) -> None:
    carrier = SharedMemoryCarrier.open([str(tmp_path)], "run", 0, 1, SECONDS)
    assert (_open_files() > 0, len(_beating())) == (True, 1)
    del carrier
    _await_that_nothing_is_open()


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    return [folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)] + [str(tmp_path)]


def _left(folders: list[str]) -> list[str]:
    ours = f"edgemill-shards-{of_tests(os.getpid())}-"
    return [name for folder in folders for name in os.listdir(folder) if name.startswith(ours)]


@pytest.mark.slow
def test_processes(folders: list[str]) -> None:
    """More of them than the machine has cores."""
    with processes(partial(converses, Plan(1, 150, 30_000)), folders, 4) as groups:
        reported = [groups.told(rank) for rank in range(4)]
    assert [(one.error, one.left) for one in reported] == [("", [])] * 4
    assert not _left(folders)


def test_a_process_that_is_killed(folders: list[str]) -> None:
    with processes(partial(says_when, Random().randint(1, 500)), folders, 3) as groups:
        pids = [groups.told(rank) for rank in range(3)]
        os.kill(pids[1], signal.SIGKILL)
        killed = time.monotonic()
        reported = [groups.told(rank) for rank in (0, 2)]
    assert [(one.error, one.left) for one in reported] == [("ClusterLost", [])] * 2
    assert all("is lost, or ended" in one.message for one in reported)
    assert max(one.at for one in reported) - killed < 5
    assert not _left(folders)


def test_a_process_that_stands_still(folders: list[str]) -> None:
    with processes(partial(says_when, 100), folders, 2, silence=4.0) as groups:
        pids = [groups.told(rank) for rank in range(2)]
        os.kill(pids[0], signal.SIGSTOP)
        reported = groups.told(1)
    assert reported.error == "ClusterLost"
    assert "group 0" in reported.message
    assert not _left(folders)


def test_a_group_that_computes_for_long_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_HEARTBEAT_SECONDS", 0.05)
    beats = 30

    def work(carrier: Carrier) -> None:
        assert isinstance(carrier, SharedMemoryCarrier)
        carrier.exchange(NOTHING, [NOTHING] * 2)
        if carrier.rank:
            while load_acquire(carrier._own.words, group_file.HEARTBEAT) < beats:
                os.sched_yield()
        carrier.exchange(NOTHING, [NOTHING] * 2)

    open_one = partial(SharedMemoryCarrier.open, [str(tmp_path)], "run", groups=2, seconds=SECONDS, silence=1.0)
    in_threads(lambda rank: _closing(open_one(rank=rank), work), 2)


def test_numbers_that_processes_share() -> None:
    words = np.zeros(4, np.uint32)
    store_release(words, 1, 2**32 - 1)
    assert words.tolist() == [0, 2**32 - 1, 0, 0]
    words.flags.writeable = False
    assert load_acquire(words, 1) == 2**32 - 1
    assert spin_until_at_least(words, 1, 5, 10**6) == 2**32 - 1
    assert spin_until_at_least(words, 0, 1, 10) == 0


@pytest.mark.parametrize("receivers", [[], [1], [0, 2], [0, 1, 2]])
def test_words_that_go_to_some_groups_in_pieces(
    run: Run, monkeypatch: pytest.MonkeyPatch, receivers: list[int]
) -> None:
    """Of other lengths than a piece, and none."""
    monkeypatch.setattr(gpu_memory, "_PIECE_WORDS", 7)
    sent = [np.arange(size, dtype=np.uint32) + size for size in (0, 14, 100)]

    def work(carrier: Carrier) -> list[list[int]]:
        found = gpu_memory.send_all(carrier, sent[carrier.rank], receivers)
        return [words.tolist() for words in found]

    for rank, found in enumerate(run(work, 3)):
        assert found == [words.tolist() if rank in receivers or q == rank else [] for q, words in enumerate(sent)]
