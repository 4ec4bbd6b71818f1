"""Rows sent are rows received, in every exchange: a run that loses some ends, publishes nothing and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import InternalError, exchange, mine
from edgemill.tasks.messages import Bundle, collect

PAYLOADS = ["Pairs", "EdgeParts", "Lists", "Reply", "FallenBounds", "EdgeResults", "VertexSums", "ndarray"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_lost_mail_ends_the_run(tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch, payload: str) -> None:
    def lose(receiver: int, bundles: Iterable[Bundle[Any]]) -> dict[int, Any]:
        mail = collect(receiver, bundles)
        for sender in [sender for sender, part in mail.items() if type(part).__name__ == payload][-1:]:
            del mail[sender]
        return mail

    monkeypatch.setattr(exchange, "collect", lose)
    rows = [pair for first in range(0, 24, 3) for pair in combinations(range(first, first + 5 + first // 4), 2)]
    path = runs.write_rows(tmp_path / "rows.parquet", rows)
    with pytest.raises(InternalError, match=r"^\d+ rows were sent to \d, \d+ arrived") as caught:
        mine(
            path,
            tmp_path / "out",
            client=client,
            partitioning={"count": 3, "method": "hash"},
            bounding={"method": "fixpoint"},
        )
    assert [note.partition(":")[0] for note in caught.value.__notes__] == ["log of the failed run"]
    del caught
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out.failed.log.jsonl", "rows.parquet"]
    runs.assert_nothing_left(client)
