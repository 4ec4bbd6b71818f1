"""A task without memory ends the run with the plan's advice: workers for shards, partitions for other methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from distributed import Client

from edgemill.pipeline.cluster.engine import Engine
from edgemill.tasks.errors import OutOfRoom

EMPTY: Any = np.empty
TOO_MANY = (2**59,)
"""Numbers, which take 4 EiB."""


@pytest.mark.parametrize("advice", ["start more workers, each with a GPU of its own", "raise partitioning.count"])
def test_what_helps(two_workers: Client, advice: str) -> None:
    engine = Engine.connect(two_workers, "no-memory", memory_advice=advice)
    ways: list[Callable[[], Any]] = [
        lambda: engine.wait(engine.map("take", EMPTY, [TOO_MANY])),
        lambda: engine.gather(engine.map("take", EMPTY, [TOO_MANY, TOO_MANY])),
        lambda: engine.on_every_worker(EMPTY, TOO_MANY[0]),
        lambda: engine.run_gang("take", EMPTY, [TOO_MANY, TOO_MANY]),
    ]
    for ask in ways:
        with pytest.raises(OutOfRoom, match=r"^a task ran out of memory \(Unable to allocate 4.*\): ") as error:
            ask()
        assert str(error.value).endswith(f": {advice}") and error.value.exit_code == 7
    engine.session.release_all()
