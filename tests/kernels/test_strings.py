"""Sorting of strings, against Python's order of bytes, and hashes of strings."""

from __future__ import annotations

import uuid
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.kernels.cpu.arrays import strings
from edgemill.kernels.cpu.arrays.strings import MANY, hash_strings, number_strings, sort_strings


def laid_out(texts: list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(texts), np.uint8)


def check(texts: list[bytes]) -> None:
    order, repeats = sort_strings(*laid_out(texts))
    found = [texts[i] for i in order.tolist()]
    assert found == sorted(texts) and sorted(order.tolist()) == list(range(len(texts)))
    assert repeats.tolist() == [i > 0 and found[i] == found[i - 1] for i in range(len(found))]


def check_numbers(texts: list[bytes]) -> None:
    """The distinct strings are in the order in which they occur first."""
    numbered = number_strings(*laid_out(texts))
    assert numbered is not None
    offsets, content, code = numbered
    ends = offsets.tolist()
    found = [content[start:stop].tobytes() for start, stop in pairwise(ends)]
    assert found == list(dict.fromkeys(texts))
    assert [found[number] for number in code.tolist()] == texts and code.dtype == np.int32


LETTERS = st.sampled_from([b"", b"\0", b"a", b"\xff", b"abcdefg", b"\0\0\0\0\0\0\0\0"])
"""Parts of strings that end before the seventh byte, at it and after it."""


@given(st.lists(st.lists(LETTERS, max_size=5).map(b"".join), max_size=60))
def test_any_bytes(texts: list[bytes]) -> None:
    check(texts)
    check_numbers(texts)


@pytest.mark.parametrize(
    "number",
    [
        lambda i: i * 7919 % 5000,  # all different
        lambda i: i,  # ascending
        lambda i: -i,
        lambda i: i % 3,  # many of the same
        lambda i: 2 ** (i % 400),  # of many lengths
    ],
)
@pytest.mark.parametrize("before", ["", "https://example.org/"])
def test_many_strings(number: object, before: str) -> None:
    assert callable(number)
    texts = [f"{before}{number(i)}".encode() for i in range(5000)]
    check(texts)
    check_numbers(texts)


@pytest.mark.parametrize("longest", [0, 5, 30])
def test_many_strings_that_begin_alike(longest: int) -> None:
    """More of each kind than a quicksort takes, some again; and one that ends where the others begin to differ."""
    kinds = ["https://example.org/user/", "https://example.org/item/", "user:"]
    texts = [f"{kind}{number * 7919 % 3001:0{longest}}" for kind in kinds for number in range(2 * MANY)]
    assert longest < 5 or max(map(len, texts)) == len(kinds[0]) + longest
    check([text.encode() for text in texts])
    check([b"https://example.org/", *(text.encode() for text in texts[: 4 * MANY])])
    check([b"same"] * (MANY + 1))
    check([text[:7].encode() for text in texts])


UUIDS = [f"{str(number % 7) * 8}-0000-4000-8000-{number * 7919 % 50:012x}" for number in range(400)]
"""Some again. The first 64 bits of many are the same."""


@pytest.mark.parametrize(
    "others",
    [[], ["ABCDEF00-0000-4000-8000-000000000000"], [UUIDS[0][:-1]], [UUIDS[0][:-1] + "g"], ["x" * 36], [""]],
    ids=["alone", "of both cases", "a short one", "not hexadecimal", "another string of its length", "an empty string"],
)
def test_uuids(others: list[str]) -> None:
    random_numbers = np.random.default_rng(1).integers(2**63, size=100)
    drawn = [str(uuid.UUID(int=int(number) << 65 | int(number))) for number in random_numbers]
    for texts in (UUIDS, drawn, [text.upper() for text in drawn + UUIDS]):
        check([text.encode() for text in texts + others])


def test_the_strings_of_a_slice() -> None:
    """A slice of an Arrow array: the offsets do not begin at the first byte."""
    texts = pa.array(["z", "b", "a", "b"], pa.large_string())
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[1:5]
    order, repeats = sort_strings(offsets, np.frombuffer(texts.buffers()[2], np.uint8))
    assert (order.tolist()[0], repeats.tolist()) == (1, [False, False, True])


def test_strings_with_equal_hashes() -> None:
    """The hash is of a word of bytes and of their number, so a byte more can make up for another word."""
    pair = [b"b", b"\0a"]
    offsets, content = laid_out(pair)
    for seed in (np.uint64(0), np.uint64(2**63 + 5)):
        assert len({strings._hash(content, *offsets[i : i + 2], seed) for i in range(2)}) == 1
    check_numbers([*pair, b"c", *pair[::-1]])


@pytest.mark.parametrize("repeats", [0, strings.RARE, strings.RARE + 1])
def test_strings_that_hardly_repeat_are_not_numbered(repeats: int) -> None:
    """The first strings decide. The table grows on the way."""
    texts = [b"%d" % number for number in range(strings.TRIED - repeats)]
    texts += texts[:repeats] + [b"same"] * 10
    if repeats > strings.RARE:
        check_numbers(texts)
    else:
        assert number_strings(*laid_out(texts)) is None
        check_numbers(texts[: strings.TRIED])


@given(st.lists(st.lists(LETTERS, max_size=5).map(b"".join), max_size=60))
def test_hashes_are_polynomials(texts: list[bytes]) -> None:
    base = 0x9E3779B97F4A7C15
    expected = [sum((byte + 1) * base**power for power, byte in enumerate(text)) % 2**64 for text in texts]
    assert hash_strings(*laid_out(texts), np.uint64(base)).tolist() == expected
