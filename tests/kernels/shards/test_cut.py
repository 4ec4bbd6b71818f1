"""The assignment of vertices to classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgemill.kernels.cpu.shards import Cut
from foreign import to_foreign


def classes_of(vertices: int, shards: int) -> list[int]:
    """[vertices] the class of each, assigned back and forth from the last vertex on."""
    turn = [*range(shards), *reversed(range(shards))]
    return [turn[rank % (2 * shards)] for rank in range(vertices)][::-1]


@pytest.mark.parametrize("put", [np.asarray, to_foreign])
@pytest.mark.parametrize(("vertices", "shards"), [(1, 1), (7, 3), (12, 4), (23, 5)])
def test_vertices_are_assigned_back_and_forth(put: Any, vertices: int, shards: int) -> None:
    cut = Cut(vertices, shards)
    classes: Any = cut.classes(put(np.arange(vertices, dtype=np.uint32)))
    found = classes if put is np.asarray else classes.get()
    assert found.tolist() == classes_of(vertices, shards)
    assert cut.members.tolist() == np.bincount(found, minlength=shards).tolist()


@pytest.mark.parametrize("put", [np.asarray, to_foreign])
@pytest.mark.parametrize("shape", [(2, 3), (6, 1), ()])
def test_other_shapes_are_refused(put: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"{len(shape)} dimensions"):
        Cut(7, 3).classes(put(np.zeros(shape, np.uint32)))
