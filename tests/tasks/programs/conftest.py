"""Every test of vertex programs runs on the CPU and on a GPU, if there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgemill.tasks.device import MemorySpace
from vertex_programs import Where


@pytest.fixture(
    autouse=True,
    scope="module",
    params=[
        pytest.param(MemorySpace.HOST, id="cpu"),
        pytest.param(MemorySpace.DEVICE, id="gpu", marks=pytest.mark.gpu),
    ],
)
def space(request: pytest.FixtureRequest) -> Iterator[MemorySpace]:
    """The memory in which `by_blocks` runs programs."""
    Where.space = request.param
    yield request.param
    Where.space = MemorySpace.HOST
