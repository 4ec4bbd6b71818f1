"""The health check of a container: a worker is well when it has joined its scheduler, and no sooner."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from distributed import Scheduler, Worker

from containers import DOCKER
from edgemill.pipeline import preload

HERE = "127.0.0.1:0"


def well(url: str) -> bool:
    """What the check finds."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    check = [DOCKER / "healthcheck.sh"]
    done = subprocess.run(check, env={**os.environ, "PATH": path, "HEALTH_URL": url}, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def test_a_worker_is_well_once_it_has_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, bool] = {}

    async def cluster() -> None:
        async with Scheduler(host="tcp://127.0.0.1", port=0, dashboard_address=HERE) as scheduler:
            worker: Any = Worker(scheduler.address, dashboard_address=HERE, preload=["edgemill.pipeline.preload"])

            def look(when: str) -> float:
                """As kernels are compiled: in a thread, before the worker tells the scheduler of itself."""
                base = f"http://127.0.0.1:{worker.http_server.port}"
                found.update({f"{when}: {path}": well(f"{base}/{path}") for path in ("health", "ready")})
                return 0.0

            monkeypatch.setattr(preload, "compile_kernels", lambda _: look("before"))
            async with worker:
                await asyncio.to_thread(look, "joined")
                assert await asyncio.to_thread(well, f"http://127.0.0.1:{scheduler.http_server.port}/health")

    asyncio.run(cluster())
    assert found == {"before: health": True, "before: ready": False, "joined: health": True, "joined: ready": True}
