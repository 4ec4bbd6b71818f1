"""The size of a value type is what its arrays take, at any depth."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from dask.sizeof import sizeof

from edgemill.tasks.graph.triangulate import GhostEdges, Reply
from edgemill.tasks.ingest.numbering import BucketIds
from edgemill.tasks.messages import Bundle
from foreign import Foreign


def reply(make: type | object = np.asarray) -> Reply:
    put = make if callable(make) else np.asarray
    long, short = put(np.zeros(1000, np.int64)), put(np.zeros(1000, np.int32))
    return Reply(short, short, GhostEdges(short, long, long))


@pytest.mark.parametrize("make", [np.asarray, Foreign])
def test_arrays_are_counted(make: type) -> None:
    expected = 3 * 4000 + 2 * 8000
    for value, parts in ((reply(make), 1), (Bundle(0, {1: reply(make), 5: reply(make)}, {1: 1000, 5: 1000}), 2)):
        assert parts * expected <= sys.getsizeof(value) <= parts * expected + 2000
        assert sizeof(value) == pytest.approx(sys.getsizeof(value), abs=100)


def test_strings_are_counted() -> None:
    ids = BucketIds(0, pa.array(["abc"] * 1000, pa.large_string()), {3: np.zeros(500, np.int32)})
    assert 3000 + 8000 + 2000 <= sys.getsizeof(ids) <= 14_000


def test_arrays_on_a_device_are_found() -> None:
    class OnDevice(Foreign):
        __cuda_array_interface__ = None

    assert not Bundle(0, {1: reply()}, {1: 1000}).on_device
    assert Bundle(0, {1: reply(OnDevice)}, {1: 1000}).on_device
