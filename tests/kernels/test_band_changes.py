"""Lowered counts as words that workers send each other, against plain dictionaries.

The GPU's packets of ranges are those of CPUs, word for word. It sends no lists.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from backends import BACKENDS, Backend, OnCpu, OnGpu
from edgemill import kernels
from edgemill.kernels.cpu.peeling.filtering import even_cuts, lower, pack_list, pack_range
from edgemill.kernels.filters import Words
from edgemill.kernels.runtime.threads import kernel_threads
from examples import examples
from mixing import weighted_sum

EDGES = 300
Ints = NDArray[np.int32]
threads = pytest.mark.parametrize("threads", [1, 2])
on_each = pytest.mark.parametrize("backend", BACKENDS)
amounts = st.one_of(st.just(0), st.integers(1, 3), st.sampled_from([254, 255, 256, 257, 65_536, 2**24]))
deltas = st.lists(amounts, max_size=EDGES).map(lambda found: -np.array(found, np.int32))


def amounts_in(packed: Words, first: int) -> dict[int, int]:
    """The amount of each edge in a packet, by the description of its format, in the order in which they are listed."""
    dense, width, size, length = packed[:4].tolist()
    places, content = packed[4 : 4 + length], packed[4 + length :].tobytes()
    kind = {1: np.uint8, 4: np.int32}[width]
    assert len(content) == -(-size * width // 4) * 4
    lowered = np.frombuffer(content, kind)[:size].tolist()
    if dense:
        bits = np.unpackbits(places.view(np.uint8), bitorder="little")
        edges = (first + np.flatnonzero(bits)).tolist()
    else:
        edges = places.tolist()
    assert len(edges) == len(set(edges)) == size
    return dict(zip(edges, lowered, strict=True))


def check_lower(packed: Words, first: int, given: dict[int, int], values: Ints, threshold: int) -> None:
    """Lowering gives the edges that cross the threshold in the order of the packet, and changes no other value."""
    expected = values.copy()
    for e, amount in given.items():
        expected[e] -= amount
    kept, lowered = packed.copy(), values.copy()
    weak, total = lower(packed, first, lowered, threshold)
    assert np.array_equal(lowered, expected)
    assert weak.tolist() == [e for e in given if expected[e] < threshold <= values[e]]
    assert total == weighted_sum(given)
    assert np.array_equal(packed, kept)


def check_width(packed: Words, given: dict[int, int]) -> None:
    assert packed[1] == (1 if max(given.values(), default=0) < 256 else 4)


@st.composite
def values_of(draw: st.DrawFn, size: int) -> Ints:
    """Counts, negative ones too, near the threshold or far from it."""
    drawn = draw(st.lists(st.integers(-3, 600), min_size=size, max_size=size))
    return np.array(drawn, np.int32)


def on_ranges(test: Callable[..., None]) -> Callable[..., None]:
    """Draw changes and a range of them; with ranges of no, one and many words by hand."""
    for length, value, ends in (
        (0, 0, (0, 0)),
        (1, -1, (0, 1)),
        (64, -255, (0, 64)),
        (65, -256, (0, 65)),
        (300, -7, (63, 257)),
        (200, 0, (3, 200)),
    ):
        test = example(delta=np.full(length, value, np.int32), ends=ends, drawn=None)(test)
    drawing = given(delta=deltas, ends=st.tuples(st.integers(0, EDGES), st.integers(0, EDGES)), drawn=st.data())
    return drawing(settings(max_examples=examples(150))(test))


@threads
@on_ranges
def test_ranges(threads: int, delta: Ints, ends: tuple[int, int], drawn: st.DataObject | None) -> None:
    """A range of any length and beginning is packed, is cleared, and nothing beside it is."""
    first, stop = sorted(min(end, len(delta)) for end in ends)
    given = {e: -int(delta[e]) for e in range(first, stop) if delta[e]}
    cleared = delta.copy()
    with kernel_threads(threads):
        packed, total = pack_range(cleared, first, stop)
        assert packed.dtype == np.uint32 and packed[0] == 1
        assert packed[3] == 2 * -(-(stop - first) // 64)
        assert amounts_in(packed, first) == given
        assert list(amounts_in(packed, first)) == sorted(given)
        assert total == weighted_sum(given)
        check_width(packed, given)
        expected = delta.copy()
        expected[first:stop] = 0
        assert np.array_equal(cleared, expected)
        values = np.arange(len(delta), dtype=np.int32) if drawn is None else drawn.draw(values_of(len(delta)))
        for threshold in (0, 5, 300):
            check_lower(packed, first, given, values, threshold)


@threads
@given(delta=deltas, drawn=st.data())
@settings(max_examples=examples(150))
def test_lists(threads: int, delta: Ints, drawn: st.DataObject) -> None:
    """Edges of a list in any order; an amount may be 0. A first edge has no meaning for a list."""
    edges = drawn.draw(st.lists(st.integers(0, max(len(delta) - 1, 0)), unique=True, max_size=len(delta)))
    given = {e: -int(delta[e]) for e in edges}
    cleared = delta.copy()
    with kernel_threads(threads):
        packed, total = pack_list(cleared, np.array(edges, np.int32))
        assert packed.dtype == np.uint32 and packed[0] == 0
        assert amounts_in(packed, 0) == given and list(amounts_in(packed, 0)) == edges
        assert total == weighted_sum(given)
        check_width(packed, given)
        expected = delta.copy()
        expected[edges] = 0
        assert np.array_equal(cleared, expected)
        values = drawn.draw(values_of(len(delta)))
        for threshold in (0, 5, 300):
            check_lower(packed, drawn.draw(st.integers(0, 9)), given, values, threshold)


def weighted(amounts: Ints) -> int:
    """The weighted sum of the amounts of all edges."""
    return weighted_sum(dict(enumerate(amounts.tolist())))


def check_changes(backend: Backend, values: Ints, delta: Ints, first: int, stop: int) -> None:
    """A range is packed as `pack_range` packs it. Each backend applies and collects what the other one has packed."""
    changes, amounts = kernels.changes(backend.put(values), backend.put(-delta)), -delta
    sent, rest = np.zeros_like(delta), delta.copy()
    sent[first:stop], rest[first:stop] = amounts[first:stop], 0
    expected, total = pack_range(delta.copy(), first, stop)
    words, own = changes.pack(first, stop)
    packed = backend.get(words)
    assert packed.dtype == np.uint32
    assert packed.tolist() == expected.tolist() and own == total == weighted(sent)
    assert changes.pack(first, stop)[1] == 0

    expected.setflags(write=False)  # as in memory that workers share
    for times in (1, 2):
        assert changes.apply(expected, first) == total
        assert backend.get(changes.count).tolist() == (values - times * sent).tolist()
    assert [changes.collect(expected, first) for _ in range(2)] == [total, total]
    assert backend.get(changes.count).tolist() == (values - 2 * sent).tolist()
    again, own = changes.pack(0, len(delta))
    assert backend.get(again).tolist() == pack_range(rest - 2 * sent, 0, len(delta))[0].tolist()
    assert own == (2 * total + weighted(-rest)) % 2**64
    assert changes.pack(0, len(delta))[1] == 0

    other = values.copy()
    assert lower(packed, first, other, 0)[1] == total and np.array_equal(other, values - sent)


@on_each
@on_ranges
def test_changes(backend: Backend, delta: Ints, ends: tuple[int, int], drawn: st.DataObject | None) -> None:
    """A range of any length and beginning."""
    first, stop = sorted(min(end, len(delta)) for end in ends)
    values = np.arange(len(delta), dtype=np.int32) if drawn is None else drawn.draw(values_of(len(delta)))
    check_changes(backend, values, delta, first, stop)


@on_each
@pytest.mark.parametrize("most", [127, 128, 2**20])
def test_changes_of_many_edges(backend: Backend, most: int) -> None:
    """Many blocks of threads, and packets that are copied to a GPU and from it in parts; amounts of one byte and four.

    One is twice an amount of a byte, which needs more.
    """
    random = np.random.default_rng(most)
    delta = -random.integers(0, 4, 300_003, np.int32) // 2
    delta[277_777] = -most
    values = random.integers(-2, 400, len(delta), np.int32)
    for first, stop in ((0, len(delta)), (64_063, 299_999), (1, 2)):
        check_changes(backend, values, delta, first, stop)


@on_each
def test_changes_of_large_amounts(backend: Backend) -> None:
    check_changes(backend, np.full(300, 2**26, np.int32), np.full(300, -(2**24), np.int32), 0, 300)


def changed(place: int, value: int) -> Callable[[Words], Words]:
    """Another word at a place."""

    def change(packed: Words) -> Words:
        packed[place] = value
        return packed

    return change


NO_PACKETS: dict[str, Callable[[Words], Words]] = {
    "no words": lambda packed: packed[:0],
    "part of the header": lambda packed: packed[:3],
    "the header alone": lambda packed: packed[:4],
    "a word less": lambda packed: packed[:-1],
    "a word more": lambda packed: np.append(packed, packed[:1]),
    "another kind": changed(0, 2),
    "another width": changed(1, 2),
    "no width": changed(1, 0),
    "wider amounts": changed(1, 4),
    "more amounts": changed(2, 100),
    "far more amounts": changed(2, 2**32 - 1),
    "fewer amounts": changed(2, 1),
    "more places": changed(3, 10),
    "far more places": changed(3, 2**32 - 1),
    "no places": changed(3, 0),
    "bits as a list": changed(0, 0),
}
OTHERS: dict[str, Callable[[Words], Words]] = {
    "a mark less": changed(4, 0),
    "a mark more": changed(5, 2**32 - 1),
    "a longer range": lambda _: pack_range(np.full(300, -1, np.int32), 0, 300)[0],
    "a little longer range": lambda _: pack_range(np.full(201, -1, np.int32), 0, 201)[0],
    "far edges": lambda _: pack_list(np.full(201, -1, np.int32), np.array([3, 200], np.int32))[0],
}
"""Packets whose marks are not those of their amounts, or of other edges."""
LISTS: dict[str, Callable[[Words], Words]] = {
    "a list": lambda _: pack_list(np.full(200, -1, np.int32), np.arange(4, dtype=np.int32))[0],
    "an empty list": lambda _: pack_list(np.full(200, -1, np.int32), np.zeros(0, np.int32))[0],
}
"""CPUs take them."""


def refused(backend: Backend, words: Words, message: str) -> None:
    """Words change nothing, whatever is done with them."""
    values = np.arange(200, dtype=np.int32)
    changes = kernels.changes(backend.put(values), backend.put([1] * 200))
    for call in (changes.apply, changes.collect):
        with pytest.raises(ValueError, match=message):
            call(words, 0)
    assert backend.get(changes.count).tolist() == values.tolist()
    assert backend.get(changes.pack(0, 200)[0]).tolist() == pack_range(np.full(200, -1, np.int32), 0, 200)[0].tolist()


def packet() -> Words:
    """Of 200 edges, seven of which are lowered."""
    delta = np.zeros(200, np.int32)
    delta[[0, 1, 31, 63, 64, 100, 199]] = -3
    return pack_range(delta, 0, 200)[0]


@on_each
@pytest.mark.parametrize("name", NO_PACKETS)
def test_words_that_are_no_packet(backend: Backend, name: str) -> None:
    refused(backend, NO_PACKETS[name](packet()), r"\d+ words are no packet of \d+ lowered counts")


@on_each
@pytest.mark.parametrize("name", OTHERS)
def test_packets_of_other_edges(backend: Backend, name: str) -> None:
    refused(backend, OTHERS[name](packet()), "has edges beyond the last one|are marked in a packet of")


@pytest.mark.gpu
@pytest.mark.parametrize("name", LISTS)
def test_lists_on_the_gpu(name: str) -> None:
    refused(OnGpu(), LISTS[name](packet()), "are no packet of .* of a range")


@pytest.mark.parametrize("most", [255, 256])
def test_threads_pack_the_same(most: int) -> None:
    """Large ranges, of which each thread packs a part, also where only one part has an amount of more than a byte."""
    random = np.random.default_rng(most)
    delta = -random.integers(0, 4, 100_003, np.int32) // 2
    delta[77_777] = -most
    edges = random.permutation(np.flatnonzero(delta)).astype(np.int32)
    values = random.integers(-2, 400, len(delta), np.int32)
    found = []
    for threads in (1, 2):
        with kernel_threads(threads):
            whole, by_list = delta.copy(), delta.copy()
            ranges = [pack_range(whole, a, b) for a, b in pairwise([0, 1, 5000, 64_064, len(delta)])]
            listed = pack_list(by_list, edges)
            assert not whole.any() and not by_list.any()
            lowered, other = values.copy(), values.copy()
            weak = [lower(words, a, lowered, 2)[0] for (words, _), a in zip(ranges, [0, 1, 5000, 64_064], strict=True)]
            weak_of_list, total = lower(listed[0], 0, other, 2)
        assert np.array_equal(lowered, values + delta) and np.array_equal(other, lowered)
        crossing = np.flatnonzero((values >= 2) & (lowered < 2))
        assert np.array_equal(np.concatenate(weak), crossing)
        assert np.array_equal(weak_of_list, edges[np.isin(edges, crossing)])
        assert sum(own for _, own in ranges) % 2**64 == listed[1] == total == weighted(-delta)
        found.append([(*words.tolist(), own) for words, own in [*ranges, listed]])
    assert found[0] == found[1]
    assert len({words[1] for words in found[0]}) == (1 if most < 256 else 2)


FORMS: dict[str, Callable[[Ints], tuple[Words, int]]] = {
    "bits": lambda delta: pack_range(delta, 0, len(delta)),
    "list": lambda delta: pack_list(delta, np.flatnonzero(delta).astype(np.int32)),
}
in_each_form = pytest.mark.parametrize(
    ("backend", "form"),
    [
        *(pytest.param(OnCpu(), form, id=f"cpu-{form}") for form in FORMS),
        pytest.param(OnGpu(), "bits", id="gpu", marks=pytest.mark.gpu),
    ],
)


def packed_amounts(backend: Backend, form: str, amounts: dict[int, int], edges: int) -> tuple[Words, int]:
    """Amounts as a backend packs them."""
    whole = np.zeros(edges, np.int32)
    whole[list(amounts)] = list(amounts.values())
    if form == "list":
        return FORMS[form](-whole)
    words, total = kernels.changes(backend.put(np.zeros(edges)), backend.put(whole)).pack(0, edges)
    return backend.get(words), total


@in_each_form
@pytest.mark.parametrize("amount", [1, 2, 255, 256, 2**31 - 1])
def test_amounts_of_other_edges_have_other_weighted_sums(backend: Backend, form: str, amount: int) -> None:
    """An amount at each of 300 edges, and two equal ones that move by one edge each, one up and one down."""
    alone = {packed_amounts(backend, form, {e: amount}, EDGES)[1] for e in range(EDGES)}
    pairs = {packed_amounts(backend, form, {e: amount, 200 - e: amount}, EDGES)[1] for e in range(100)}
    assert len(alone) == EDGES and len(pairs) == 100


@in_each_form
def test_exchanged_amounts_have_another_weighted_sum(backend: Backend, form: str) -> None:
    sums = {packed_amounts(backend, form, {5: 5 + a, 6: 8 - a, 250: 7}, EDGES)[1] for a in range(4)}
    assert len(sums) == 4


@in_each_form
@pytest.mark.parametrize("most", [3, 300])
def test_each_bit_of_a_packet(backend: Backend, form: str, most: int) -> None:
    """A packet with one other bit is refused, or has another weighted sum, or lowers counts as before: a bit after the
    last amount of one byte changes nothing.
    """
    packed, total = packed_amounts(backend, form, {0: 2, 31: most, 63: 1, 64: 3, 199: 3}, 200)
    values, same = np.arange(200, dtype=np.int32), 0

    def lowered(words: Words) -> tuple[int | None, list[int]]:
        changes = kernels.changes(backend.put(values), backend.put(np.zeros(200)))
        try:
            found: int | None = changes.apply(words, 0)
        except ValueError:
            found = None
        return found, backend.get(changes.count).tolist()

    arrived, right = lowered(packed)
    assert arrived == total
    for bit in range(32 * len(packed)):
        other = packed.copy()
        other[bit // 32] ^= np.uint32(1 << bit % 32)
        arrived, counts = lowered(other)
        if arrived == total:
            assert counts == right
            same += 1
        assert arrived is not None or counts == values.tolist()
    assert same == (24 if most < 256 else 0)


@threads
@pytest.mark.parametrize("size", [0, 1, 2, 3, 1001])
def test_cuts(threads: int, size: int) -> None:
    """A part for each thread, as even as can be."""
    with kernel_threads(threads):
        cuts = even_cuts(size).tolist()
    assert len(cuts) == threads + 1 and cuts[0] == 0 and cuts[-1] == size
    parts = [b - a for a, b in pairwise(cuts)]
    assert max(parts) - min(parts) <= 1
