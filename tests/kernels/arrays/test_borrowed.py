"""Borrowed arrays: the same elements, no reference counted, and the caller's array freed when the caller lets go."""

from __future__ import annotations

import sys
import weakref

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from edgemill.kernels.cpu.arrays.intrinsics import borrowed


@njit
def _swap_and_add(one, other, rounds):  # type: ignore[no-untyped-def]
    """Holds both arrays in variables that change, as a kernel with rows of two kinds does."""
    a = borrowed(one)
    b = borrowed(other)
    total = 0
    for i in range(rounds):
        a, b = b, a
        a[i % a.size] += 1
        total += b[i % b.size]
    return total


@njit
def _plain(one, other, rounds):  # type: ignore[no-untyped-def]
    a = one
    b = other
    total = 0
    for i in range(rounds):
        a, b = b, a
        a[i % a.size] += 1
        total += b[i % b.size]
    return total


@pytest.mark.parametrize("step", [1, 2])
def test_the_elements_are_those_of_the_array(step: int) -> None:
    """Also those of a part of a larger array, with a stride."""
    answers = []
    for kernel in (_swap_and_add, _plain):
        one, other = np.arange(10, dtype=np.int64)[::step], np.arange(30, dtype=np.int64)[10:20:step]
        answers.append((kernel(one, other, 25), one.tolist(), other.tolist()))
    assert answers[0] == answers[1]


def test_references_are_as_before_and_the_array_is_freed() -> None:
    one, other = np.zeros(1000, np.int64), np.zeros(1000, np.int64)
    seen, counts = weakref.ref(one), (sys.getrefcount(one), sys.getrefcount(other))
    for _ in range(100):
        _swap_and_add(one, other, 7)
    assert (sys.getrefcount(one), sys.getrefcount(other)) == counts
    del one
    assert seen() is None


def test_an_array_of_one_owner_lives_until_the_kernel_returns() -> None:
    """The caller's arguments hold it, though no variable does."""
    assert _swap_and_add(np.ones(1 << 20, np.int64), np.ones(1 << 20, np.int64), 1 << 20) >= 1 << 20


def test_no_reference_is_counted() -> None:
    codes = []
    for kernel in (_swap_and_add, _plain):
        kernel(np.zeros(1, np.int64), np.zeros(1, np.int64), 0)
        codes.append(any("NRT_incref" in code for code in kernel.inspect_asm().values()))
    assert codes == [False, True]


def test_a_read_only_array_stays_read_only() -> None:
    frozen = np.arange(5)
    frozen.flags.writeable = False
    with pytest.raises(TypingError, match="readonly"):
        _swap_and_add(frozen, frozen, 1)
    assert frozen.tolist() == list(range(5))
