"""Packets between groups of shards on Dask workers: delivery, lost groups, and nothing left behind."""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client, Security

import runs
from carrying import Plan, Told
from certificates import certificate
from edgemill.pipeline.cluster import carriers as carrier_choice
from edgemill.pipeline.cluster import execution, worker_carrier
from edgemill.pipeline.cluster.carriers import carrier_for
from edgemill.pipeline.cluster.engine import Engine
from edgemill.tasks.errors import UsageError
from worker_groups import by_choice, comes, elsewhere, leaves_at, left_on, on_worker, spoils

Groups = Callable[..., list[Any]]


@pytest.fixture(scope="module", params=["tcp", "inproc", "tls"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Three workers in this process."""
    how: dict[str, Any] = {"protocol": request.param}
    if request.param == "tls":
        ours = certificate(tmp_path_factory.mktemp("certificates"), "ours")
        roles = ("client", "scheduler", "worker")
        how["security"] = Security(
            require_encryption=True,
            tls_ca_file=ours.tls_ca_file,
            **{f"tls_{role}_cert": ours.tls_cert_file for role in roles},
            **{f"tls_{role}_key": ours.tls_key_file for role in roles},
        )
    with runs.cluster(n_workers=3, threads_per_worker=2, processes=False, **how) as client:
        yield client


def addresses_of(client: Client) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


def start(client: Client, task: Callable[..., Any], addresses: list[str]) -> list[Any]:
    """Futures of `task(rank, addresses)`, one on each worker."""
    return [client.submit(task, g, addresses, workers=[a], pure=False) for g, a in enumerate(addresses)]


def assert_nothing_left(client: Client, workers: list[str] | None = None) -> None:
    assert not any(client.run(left_on, workers=workers).values())


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_letters_arrive(client: Client, groups: int) -> None:
    plan = Plan(groups, 60, 3000)
    task = partial(on_worker, plan, f"packets-{groups}")
    found = client.gather(start(client, task, addresses_of(client)[:groups]))
    assert min(words for words, _ in found) > 60
    assert {name for _, name in found} == {"Dask"}
    assert_nothing_left(client)


def test_letters_of_many_pieces(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_carrier, "PIECE_WORDS", 50_000)
    plan = Plan(9, 10, 2**19)
    found = client.gather(start(client, partial(on_worker, plan, "pieces"), addresses_of(client)))
    assert min(words for words, _ in found) > 2**19
    assert_nothing_left(client)


@pytest.mark.parametrize(("how", "message"), [("abandon", "group 1 .* failed"), ("close", "group 1 .* ended before")])
def test_a_group_that_leaves_ends_the_others(client: Client, how: str, message: str) -> None:
    task = partial(leaves_at, 6, how, f"leaves-{how}")
    told: list[Told] = client.gather(start(client, task, addresses_of(client)))
    assert [one.error for one in told] == ["ClusterLost"] * 3
    assert all(one.at in (5, 6) for one in told)
    for one in told:
        assert one is told[1] or re.search(message, one.message)
    assert_nothing_left(client)


@pytest.mark.parametrize("field", ["run", "exchange"])
def test_a_letter_of_another_run_or_exchange(client: Client, field: str) -> None:
    elsewhere.clear()
    told = client.gather(start(client, partial(spoils, f"spoils-{field}", field), addresses_of(client)))
    assert any("InternalError: a packet of " in one for one in told)
    assert all(told)
    assert_nothing_left(client)


def test_nobody_comes(client: Client) -> None:
    addresses = addresses_of(client)
    task = client.submit(comes, "nobody", 0, addresses, 0.3, workers=addresses[:1], pure=False)
    assert re.match(r"ClusterLost: groups 1, 2 .*not connect.*; run again$", task.result())
    late = client.submit(comes, "nobody", 1, addresses, 0.3, workers=[addresses[1]], pure=False)
    assert late.result().startswith("ClusterLost: ")
    assert_nothing_left(client)


def test_groups_that_do_not_match(client: Client) -> None:
    addresses = addresses_of(client)
    tasks = [
        client.submit(comes, "other", g, addresses[: 2 + g], 5, workers=[addresses[g]], pure=False) for g in range(2)
    ]
    assert any("InternalError: " in told and "groups of shards meet" in told for told in client.gather(tasks))
    assert_nothing_left(client)


@pytest.fixture(scope="module")
def processes() -> Iterator[Client]:
    with runs.cluster(n_workers=3, threads_per_worker=1) as client:
        yield client


def test_the_choice_of_processes(processes: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine.connect(processes, "choice")
    for setting, name in (("auto", "shared memory"), ("shared-memory", "shared memory"), ("dask", "Dask")):
        choice = carrier_for(engine, setting)  # type: ignore[arg-type]
        task = partial(by_choice, Plan(2, 20, 2000), choice, setting)
        tasks = [processes.submit(task, g, workers=[a], pure=False) for g, a in enumerate(choice.addresses)]
        assert [found[1] for found in processes.gather(tasks)] == [name] * 3
        for folder in {*choice.folders, "/dev/shm"}:
            assert not [file for file in os.listdir(folder) if file.startswith("edgemill-")]
    assert_nothing_left(processes)


def test_the_choice_when_the_scheduler_does_not_know_that_a_worker_died() -> None:
    with runs.two_processes() as client:
        engine = Engine.connect(client, "choice")
        before = carrier_for(engine)
        killed, pid = sorted(client.run(os.getpid).items())[0]
        os.kill(pid, signal.SIGKILL)
        after = carrier_for(engine)
    assert killed in before.addresses
    assert (killed in after.addresses, len(after.addresses)) == (False, 2)
    assert after.folders


@pytest.mark.parametrize(("kernel", "shared"), [("one", True), ("several", False)])
def test_the_choice_of_workers_in_one_process(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernel: str, shared: bool
) -> None:
    """Without /dev/shm they share the folder of the first worker, but not on several hosts that see the same files."""
    monkeypatch.setattr(carrier_choice, "SHARED_MEMORY", str(tmp_path / "none"))
    if kernel == "several":
        names = map(str, itertools.count())
        monkeypatch.setattr(execution, "_BOOT_ID", SimpleNamespace(read_text=partial(next, names)))
    engine = Engine.connect(client, "choice")
    choice = carrier_for(engine)
    assert choice.kind == ("shared-memory" if shared else "dask")
    assert len(choice.folders) == shared
    task = partial(by_choice, Plan(2, 20, 2000), choice, kernel)
    tasks = [client.submit(task, g, workers=[a], pure=False) for g, a in enumerate(choice.addresses)]
    assert len({found[1] for found in client.gather(tasks)}) == 1
    if not shared:
        with pytest.raises(UsageError, match=r"bounding\.carrier.*shared-memory"):
            carrier_for(engine, "shared-memory")
    assert_nothing_left(client)


def test_the_choice_of_one_worker() -> None:
    with runs.cluster(n_workers=1, threads_per_worker=1, processes=False) as client:
        choice = carrier_for(Engine.connect(client, "choice"), "dask")
        found = client.submit(by_choice, Plan(1, 3, 10), choice, "one", 0).result()
    assert (choice.kind, found[1]) == ("memory", "memory")


def test_a_worker_that_is_killed(processes: Client) -> None:
    addresses = addresses_of(processes)
    task = partial(leaves_at, Random().randint(1, 300), "SIGKILL", "killed")
    tasks = start(processes, task, addresses)
    told: list[Told] = processes.gather([tasks[0], tasks[2]])
    assert [one.error for one in told] == ["ClusterLost"] * 2
    assert all("group 1" in one.message or "ended before" in one.message for one in told)
    del tasks
    assert_nothing_left(processes, [addresses[0], addresses[2]])


@pytest.mark.slow
def test_a_worker_that_stands_still(processes: Client) -> None:
    while len(addresses := addresses_of(processes)) < 3:  # one may have been killed before
        processes.wait_for_workers(3)
    pids = processes.run(os.getpid, workers=addresses)
    tasks = start(processes, partial(leaves_at, 20, "SIGSTOP", "stopped", silence=4.0), addresses)
    try:
        told: list[Told] = processes.gather([tasks[0], tasks[2]])
    finally:
        os.kill(pids[addresses[1]], signal.SIGKILL)
    assert [one.error for one in told] == ["ClusterLost"] * 2
    assert any(re.match(r"group 1 .*no heartbeat .*4 seconds", one.message) for one in told)
    del tasks
    assert_nothing_left(processes, [addresses[0], addresses[2]])
