"""Range cuts are nearest to equal shares for any buckets. Partitioners are functions of the vertex only."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.tasks.partition import (
    HashPartitioner,
    Partitioner,
    RangePartitioner,
    cut_targets,
    cuts_within,
    range_partitioner,
)


def cuts(buckets: list[list[int]], partitions: int) -> list[int]:
    counts = [np.array(bucket, np.int64) for bucket in buckets]
    targets = cut_targets([int(bucket.sum()) for bucket in counts], partitions)
    firsts = np.cumsum([0, *map(len, buckets)])
    found = [cuts_within(counts[b], int(firsts[b]), targets[b]) for b in range(len(buckets))]
    return [int(cut) for cut in range_partitioner(found).cuts]


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=5), st.integers(1, 9))
def test_cuts_are_nearest_to_equal_shares(buckets: list[list[int]], partitions: int) -> None:
    flat = [count for bucket in buckets for count in bucket]
    before = np.concatenate([[0], np.cumsum(flat)])
    found = cuts(buckets, partitions)
    assert len(found) == partitions - 1
    assert found == sorted(found) == cuts([flat], partitions)
    for k, cut in enumerate(found, 1):
        target = sum(flat) * k // partitions
        assert abs(before[cut] - target) == min(abs(before - target))


@pytest.mark.parametrize(
    "partitioner", [HashPartitioner(7), RangePartitioner(np.array([3, 3, 90])), RangePartitioner()]
)
def test_partitioners_have_one_signature(partitioner: Partitioner) -> None:
    vertices = np.arange(100)
    part = partitioner(vertices)
    assert part.dtype == np.int16
    assert 0 <= part.min() <= part.max() < partitioner.partitions
    np.testing.assert_array_equal(partitioner(vertices.astype(np.int32)[::-1]), part[::-1])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(partitioner))(vertices), part)


def test_ranges_of_equal_cuts_are_empty() -> None:
    assert RangePartitioner(np.array([2, 2, 4]))(np.arange(6)).tolist() == [0, 0, 2, 2, 3, 3]


def test_hash_is_even() -> None:
    sizes = np.bincount(HashPartitioner(16)(np.arange(160_000)), minlength=16)
    assert abs(sizes - 10_000).max() < 400
