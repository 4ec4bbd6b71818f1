"""Workers that take longer for each level of peeling by shards, and tell of each one: a fault can strike at any level.

`client.run(pace)`, or `dask worker --preload` with this file; `client.run(shorten_launches)` where GPUs peel.
"""

from __future__ import annotations

import time
from functools import wraps
from typing import Any

from edgemill.pipeline.cluster import this_worker
from edgemill.tasks.shards.peeling import GroupPeeling

SECONDS = 0.05
"""For a level."""


def pace(seconds: float = SECONDS) -> None:
    """On a worker: take so long for each level from now on."""
    this_worker._PROGRESS_SECONDS = -1.0
    following = getattr(GroupPeeling._next_level, "__wrapped__", GroupPeeling._next_level)

    @wraps(following)
    def slower(self: GroupPeeling, *arguments: Any) -> None:
        time.sleep(seconds)
        following(self, *arguments)

    GroupPeeling._next_level = slower  # type: ignore[method-assign, assignment]


def shorten_launches() -> None:
    """On a worker with a GPU: have the host hear of levels often, and tell of them all. A worker that comes later has
    launches as long as ever, and tells now and then.
    """
    from edgemill.kernels.gpu.shards import peel

    this_worker._PROGRESS_SECONDS = -1.0
    peel.MAX_ROUNDS = 20


def dask_setup(worker: Any) -> None:
    """Dask calls this as the worker starts."""
    pace()
