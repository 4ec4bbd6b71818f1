"""The size of a value type is what its arrays take, at any depth."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dask.sizeof import sizeof

from edgemill.tasks.ingest.numbering import BucketIds
from edgemill.tasks.messages import Bundle, Payload
from edgemill.tasks.publish.tables import EdgeEnds
from foreign import Foreign


@dataclass(frozen=True)
class Ends(Payload):
    """What is nested in another value."""

    edge: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class Reply(Payload):
    """A value of arrays, and of a value with more of them."""

    edge: Any
    triangles: Any
    ends: Ends

    def __len__(self) -> int:
        return len(self.edge)


def reply(make: type | object = np.asarray) -> Reply:
    put = make if callable(make) else np.asarray
    long, short = ([put(np.zeros(1000, kind)) for _ in range(3)] for kind in (np.int64, np.int32))
    return Reply(short[0], short[1], Ends(short[2], long[0], long[1]))


@pytest.mark.parametrize("make", [np.asarray, Foreign])
def test_arrays_are_counted(make: type) -> None:
    expected = 3 * 4000 + 2 * 8000
    for value, parts in ((reply(make), 1), (Bundle(0, {1: reply(make), 5: reply(make)}, {1: 1000, 5: 1000}), 2)):
        assert parts * expected <= sys.getsizeof(value) <= parts * expected + 2000
        assert sizeof(value) == pytest.approx(sys.getsizeof(value), abs=100)


def test_a_shared_array_is_counted_once() -> None:
    """In fields of one value, of values in it, and of mappings."""
    one, other = np.zeros(1000, np.int32), np.zeros(1000, np.int64)
    value = Reply(one, one, Ends(one, other, other))
    for shared in (value, Bundle(0, {1: value, 5: value}, {1: 1000, 5: 1000})):
        assert 12_000 <= sys.getsizeof(shared) <= 13_000


def test_ends_leave_out_the_arrays_of_their_bucket() -> None:
    low = np.zeros(1000, np.int32)
    ends = EdgeEnds(low, low.copy(), np.arange(1000), np.arange(1000))
    assert sys.getsizeof(ends) <= 500
    assert sizeof((ends,)) <= 1000


def test_strings_are_counted() -> None:
    ids = BucketIds(0, pa.array(["abc"] * 1000, pa.large_string()), {3: np.zeros(500, np.int32)})
    assert 3000 + 8000 + 2000 <= sys.getsizeof(ids) <= 14_000


def test_arrays_on_a_device_are_found() -> None:
    class OnDevice(Foreign):
        __cuda_array_interface__ = None

    assert not Bundle(0, {1: reply()}, {1: 1000}).on_device
    assert Bundle(0, {1: reply(OnDevice)}, {1: 1000}).on_device
