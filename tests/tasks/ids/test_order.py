"""Sorting and coding of integers on every path: table, packed key, and the fallback for bits that do not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.ids import order

INT64 = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9), st.integers(2**63 - 9, 2**63 - 1))
COLUMNS = st.lists(INT64, max_size=40)
PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60)

PACKED = (10, 10)
NO_KEY = (2**62, 2**62)


@given(COLUMNS, COLUMNS)
def test_encode_gives_distinct_values_and_positions(first: list[int], second: list[int]) -> None:
    columns = np.array(first, np.int64), np.array(second, np.int64)
    values, codes = order.encode(*columns)
    assert values.tolist() == sorted(set(first + second))
    for column, code in zip(columns, codes, strict=True):
        assert code.dtype == np.int32
        np.testing.assert_array_equal(values[code], column)


@given(COLUMNS)
def test_tally_counts_each_value(column: list[int]) -> None:
    values, counts = order.tally(np.array(column, np.int64))
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {v: column.count(v) for v in column}
    assert values.tolist() == sorted(set(column))


@given(st.sets(INT64, max_size=40), st.data())
def test_lookup_finds_positions(values: set[int], data: st.DataObject) -> None:
    ordered = sorted(values)
    wanted = data.draw(st.lists(st.sampled_from(ordered), max_size=60)) if ordered else []
    found = order.lookup(np.array(ordered, np.int64), np.array(wanted, np.int64))
    assert [ordered[position] for position in found] == wanted


@pytest.mark.parametrize("counts", [PACKED, NO_KEY])
@given(pairs=PAIRS)
def test_pairs_are_sorted_and_distinct(counts: tuple[int, int], pairs: list[tuple[int, int]]) -> None:
    low, high = np.array(pairs, np.int64).reshape(-1, 2).T
    one, other = order.distinct_pairs(low, high, *counts)
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == sorted(set(pairs))


@pytest.mark.parametrize("codes", [10, 2**62])
@given(column=st.lists(st.integers(0, 9), max_size=60))
def test_order_by_is_stable(codes: int, column: list[int]) -> None:
    permutation = order.order_by(np.array(column, np.int64), codes)
    assert permutation.tolist() == sorted(range(len(column)), key=lambda i: (column[i], i))


@given(arrays.arrays(np.int16, st.integers(0, 40), elements=st.integers(0, 4)))
def test_group_gathers_rows_by_code(code: np.ndarray[tuple[int], np.dtype[np.int16]]) -> None:
    rows, cuts = order.group(code, 5)
    for value in range(5):
        assert rows[cuts[value] : cuts[value + 1]].tolist() == np.flatnonzero(code == value).tolist()


@pytest.mark.parametrize("rows", [0, 1000, order.MANY - 1, order.MANY])
def test_positions_by_group(rows: int) -> None:
    """By one thread and by all; group 2 of 5 is empty."""
    code = np.random.default_rng(1).choice(np.array([0, 1, 3, 4], np.int16), rows)
    found = order.positions_by_group(code, 5)
    assert [own.tolist() for own in found] == [np.flatnonzero(code == group).tolist() for group in range(5)]


def test_numbers_are_narrow_while_they_fit() -> None:
    assert order.shifted(np.arange(3), 5, 2**31).dtype == np.int32
    assert order.shifted(np.arange(3), 5, 2**31 + 1).dtype == np.int64


WAYS: dict[str, Callable[[], object]] = {
    "table": lambda: order.encode(np.array([0, 1, 3]), np.array([3, 4])),
    "whole table": lambda: order.encode(np.array([0, 1, 2, 3])),
    "hash": lambda: order.encode(np.array([0, 2**50]), np.array([2**51, 2**52])),
    "sort": lambda: order._encode_by_sort([np.array([0, 2**50]), np.array([2**51, 2**52])]),
    "runs": lambda: order.encode_runs([np.array([0, 2**50]), np.array([2**51, 2**52])]),
    "lookup": lambda: order.lookup(np.array([0, 1, 2, 2**50]), np.array([2])),
}


@pytest.mark.parametrize("way", WAYS)
def test_too_many_distinct_values_are_refused(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """A position over 2^31 - 1 would overflow."""
    monkeypatch.setattr(order, "MAX_CODES", 4)
    WAYS[way]()
    monkeypatch.setattr(order, "MAX_CODES", 3)
    with pytest.raises(OutOfRoom, match=r"4.*3.*ingest.rows_per"):
        WAYS[way]()
