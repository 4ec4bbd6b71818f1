"""A task without memory ends a run with what the plan advises: workers for shards, partitions for other methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from distributed import Client

from edgemill.pipeline.engine import Engine
from edgemill.tasks.errors import OutOfRoom

EMPTY: Any = np.empty
TOO_MANY = (2**59,)
"""Numbers, which take 4 EiB."""


@pytest.mark.parametrize("remedy", ["start more workers, each with a GPU of its own", "raise partitioning.count"])
def test_what_helps(two_workers: Client, remedy: str) -> None:
    engine = Engine(two_workers, "no-memory")
    engine.remedy = remedy
    ways: list[Callable[[], Any]] = [
        lambda: engine.wait(engine.map("take", EMPTY, [TOO_MANY])),
        lambda: engine.gather(engine.map("take", EMPTY, [TOO_MANY, TOO_MANY])),
        lambda: engine.everywhere(EMPTY, TOO_MANY[0]),
        lambda: engine.together("take", EMPTY, [TOO_MANY, TOO_MANY]),
    ]
    for ask in ways:
        with pytest.raises(OutOfRoom, match=r"^a task ran out of memory \(Unable to allocate 4.*\): ") as error:
            ask()
        assert str(error.value).endswith(f": {remedy}") and error.value.exit_code == 7
    engine.abandon()
