"""In every exchange the rows received are the rows sent in it. A run that loses rows, or receives others, fails,
publishes nothing and leaves no files. Keys of tasks contain their run and input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from distributed import Client

import runs
from edgemill.pipeline import InternalError, Result, mine
from edgemill.pipeline.cluster import session
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.stages import exchange
from edgemill.pipeline.stages.task_engine import TaskEngine
from edgemill.tasks.messages import Bundle, collect

Mine = Callable[..., Result]

PAYLOADS = ["Pairs", "EdgeParts", "EdgeValues", "VertexValues", "ndarray"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_lost_mail_ends_the_run(tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch, payload: str) -> None:
    def lose(receiver: int, bundles: Iterable[Bundle[Any]]) -> dict[int, Any]:
        mail = collect(receiver, bundles)
        for sender in [sender for sender, part in mail.items() if type(part).__name__ == payload][-1:]:
            del mail[sender]
        return mail

    monkeypatch.setattr(exchange, "collect", lose)
    monkeypatch.setattr(Plan, "buckets", 3)
    error = failed(tmp_path, client)
    assert re.match(r"\d+ rows .*to receiver \d, and \d+ arrived", error)


@pytest.mark.parametrize("name", ["pairs", "results"])
def test_mail_of_another_exchange_ends_the_run(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Bundles of the first exchange are delivered in a later one again."""
    monkeypatch.setattr(Plan, "buckets", 3)
    arguments = exchange._receivers
    first: list[exchange.Sent] = []

    def stale(engine: TaskEngine, exchanged: str, sent: exchange.Sent, *others: Any) -> Any:
        first.append(sent)
        return arguments(engine, exchanged, first[0] if exchanged == name else sent, *others)

    monkeypatch.setattr(exchange, "_receivers", stale)
    error = failed(tmp_path, client)
    assert re.match(r"receiver \d .*exchange '.* .*' got rows of '.* .*'", error)
    assert name in error


def failed(tmp_path: Path, client: Client) -> str:
    """The error of a run that leaves no files."""
    with pytest.raises(InternalError) as caught:
        mine(written(tmp_path), tmp_path / "out", client=client, partitions=1)
    assert [note.partition(":")[0] for note in caught.value.__notes__] == ["log of the failed run"]
    said = str(caught.value)
    del caught
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out.failed.log.jsonl", "rows.parquet"]
    runs.assert_nothing_left(client)
    return said


def written(folder: Path) -> Path:
    rows = [pair for first in range(0, 24, 3) for pair in combinations(range(first, first + 5 + first // 4), 2)]
    return runs.write_rows(folder / "rows.parquet", rows)


def test_tasks_bear_the_names_of_their_run_and_input(
    tmp_path: Path, mined: Mine, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []
    update = WeakSet.update

    def note(self: WeakSet[Any], futures: Any) -> None:
        keys.extend(future.key for future in futures)
        update(self, futures)

    monkeypatch.setattr(session, "WeakSet", type("Noting", (WeakSet,), {"update": note}))
    path, tails = written(tmp_path), []
    for _ in range(3):
        keys.clear()
        result = mined(path, partitions=2)
        names = {f"{result.manifest.run}-{(result.manifest.input.fingerprint or '')[:8]}"}
        assert {"-".join(key.split("-")[-4:-1]) for key in keys} == names
        assert len(keys) == len(set(keys)) > 20
        tails.append(names.pop())
        if len(tails) == 2:
            path.write_bytes(path.read_bytes())  # other files, as far as anyone can tell without reading them
    runs_, inputs = zip(*(tail.rsplit("-", 1) for tail in tails), strict=True)
    assert len(set(runs_)) == 3
    assert inputs[0] == inputs[1] != inputs[2]
