"""Ids of both kinds give the same answers, in the order of integers or of UTF-8 bytes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.kernels.runtime.device import on_host, to_host
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.ids import identity, order
from edgemill.tasks.ids.identity import Ids

INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30)
STRINGS = st.lists(st.text(st.characters(codec="utf-8"), max_size=4), max_size=30)
EITHER = st.one_of(st.tuples(INTEGERS, INTEGERS), st.tuples(STRINGS, STRINGS))


def as_ids(values: list[Any], like: Any = 0) -> Ids:
    if isinstance(values[0] if values else like, str):
        return pa.array(values, pa.large_string())
    return np.array(values, np.int64)


def rank(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def ascending(values: list[Any]) -> list[Any]:
    return sorted(set(values), key=rank)


@given(EITHER)
def test_encode_merge_take(columns: tuple[list[Any], list[Any]]) -> None:
    first, second = columns
    like = (first + second + [0])[0]
    ids, one, other = identity.encode(as_ids(first, like), as_ids(second, like))
    assert ids.tolist() == ascending(first + second)
    assert identity.take(ids, one).tolist() == first
    assert identity.take(ids, other).tolist() == second
    runs = [as_ids(ascending(first), like), as_ids(ascending(second), like)]
    runs = [run for run in runs if len(run)]
    if not runs:
        return
    merged, positions = identity.merge(runs)
    assert merged.tolist() == ids.tolist()
    for run, places in zip(runs, positions, strict=True):
        assert identity.take(ids, places).tolist() == run.tolist()


def check_on_gpu(columns: list[list[str]]) -> None:
    """The GPU codes columns as the CPU does, and merges their ascending distinct strings."""
    texts = [as_ids(column, "") for column in columns]
    ids, codes = identity.encode_all(texts, MemorySpace.DEVICE)
    assert ids.equals(pa.array(ascending([value for column in columns for value in column]), pa.large_string()))
    ids.validate(full=True)
    assert [to_host(code).tolist() for code in codes] == [code.tolist() for code in identity.encode_all(texts)[1]]
    assert {(code.dtype, on_host(code)) for code in codes} == {(np.dtype(np.int32), False)}
    runs = [as_ids(ascending(column)) for column in columns if column]
    if runs:
        merged, positions = identity.merge(runs, MemorySpace.DEVICE)
        assert merged.equals(ids)
        assert [to_host(own).tolist() for own in positions] == [own.tolist() for own in identity.merge(runs)[1]]


@pytest.mark.gpu
@given(st.lists(STRINGS, min_size=1, max_size=5))
def test_a_gpu_codes_strings(columns: list[list[str]]) -> None:
    check_on_gpu(columns)


@pytest.mark.gpu
@pytest.mark.parametrize("passes", [1, 16])
@pytest.mark.parametrize(
    "name",
    [
        "user-{:07d}".format,
        "{:036x}".format,  # five passes
        "https://example.org/{0}/{0:x}".format,
        lambda number: "x" * (number % 300) + "y" * (number % 7),  # more passes than a GPU makes
        lambda number: "\0" * (number % 50),
        lambda number: "same",
    ],
    ids=["numbered", "hexadecimal", "addresses", "long", "zeros", "same"],
)
def test_a_gpu_codes_many_strings(name: Any, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.kernels.gpu.arrays.strings.MAX_PASSES", passes)
    drawn = np.random.default_rng(3).integers(0, 60_000, (3, 40_000)).tolist()
    check_on_gpu([[name(number) for number in column] for column in [*drawn, []]])


@pytest.mark.gpu
@pytest.mark.parametrize("step", ["transfer.to_device", "_find_same"])
def test_strings_without_room_on_the_gpu_are_coded_by_the_cpu(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none for the strings, or none to code them."""
    import cupy

    def refuse(array: Any, *_: object) -> Any:
        if isinstance(array, np.ndarray) and array.dtype == np.int32:
            return cupy.asarray(array)
        raise cupy.cuda.memory.OutOfMemoryError(1, 0)

    monkeypatch.setattr(f"edgemill.kernels.gpu.arrays.strings.{step}", refuse)
    check_on_gpu([["b", "a", "b"], ["a"]])


LONG = "ab" * 500_000
EXOTIC = ["", "\0", "\0\0", "a", "a\0", "A", "é", "e\u0301", "\uffff", "\U0001f600", LONG, LONG + "\0"]
"""NUL bytes, distinct strings that look alike, a pair with the opposite order in UTF-16, very long strings."""


def test_exotic_strings() -> None:
    test_encode_merge_take.hypothesis.inner_test((EXOTIC[::-1], EXOTIC[::3]))  # type: ignore[attr-defined]
    test_encode_merge_take.hypothesis.inner_test(([""], EXOTIC[1:]))  # type: ignore[attr-defined]


@pytest.mark.gpu
def test_a_gpu_codes_exotic_strings() -> None:
    check_on_gpu([EXOTIC[::-1], EXOTIC[::3], [""]])


@given(st.lists(st.lists(st.text(max_size=2), min_size=1, max_size=9), min_size=1, max_size=9))
def test_merge_of_many_runs_of_strings(columns: list[list[str]]) -> None:
    runs = [as_ids(ascending(column)) for column in columns]
    merged, positions = identity.merge(runs)
    assert merged.tolist() == ascending([value for column in columns for value in column])
    assert [identity.take(merged, places).tolist() for places in positions] == [run.tolist() for run in runs]
    assert {places.dtype for places in positions} == {np.dtype(np.int32)}


@given(st.lists(st.lists(st.text(max_size=2), min_size=1, max_size=9), min_size=1, max_size=9))
def test_merge_by_several_threads(columns: list[list[str]]) -> None:
    """Each merges a range of the strings, some of them none."""
    runs = [as_ids(ascending(column)) for column in columns]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "MERGED_AT_ONCE", 1)
        merged, positions = identity.merge(runs, threads=2)
    expected, places = identity.encode_all(runs)
    assert merged.equals(expected)
    assert [own.tolist() for own in positions] == [own.tolist() for own in places]
    assert {own.dtype for own in positions} == {np.dtype(np.int32)}


@given(EITHER)
def test_split_at_splitters(columns: tuple[list[Any], list[Any]]) -> None:
    values, splitters = ascending(columns[0]), sorted(columns[1], key=rank)
    if not values or not splitters:
        return
    cuts = identity.split(as_ids(values), as_ids(splitters))
    assert len(cuts) == len(splitters) + 2
    for b in range(len(splitters) + 1):
        inside = [
            value
            for value in values
            if (b == 0 or rank(value) >= rank(splitters[b - 1]))
            and (b == len(splitters) or rank(value) < rank(splitters[b]))
        ]
        assert identity.part(as_ids(values), cuts[b], cuts[b + 1]).tolist() == inside


@pytest.mark.parametrize("kind", ["integer", "string"])
def test_quantiles_of_few_ids(kind: identity.Kind) -> None:
    assert len(identity.quantiles(identity.no_ids(kind), 4)) == 3
    some = as_ids([3, 1, 2, 2]) if kind == "integer" else as_ids(["3", "1", "2", "2"])
    assert [int(cut) for cut in identity.quantiles(some, 2).tolist()] == [2]


def test_a_slice_of_strings_is_pickled_without_the_rest() -> None:
    ids = as_ids([f"{i:06d}" for i in range(10_000)])
    assert len(pickle.dumps(identity.part(ids, 5, 15))) < 1_000


@pytest.mark.parametrize("runs", [[["a", "b", "c", "d"]], [["a", "b"], ["b", "c", "d"]], [[1, 2, 3, 4]]], ids=str)
def test_too_many_distinct_ids_are_refused(monkeypatch: pytest.MonkeyPatch, runs: list[list[Any]]) -> None:
    """A position over 2^31 - 1 would overflow. Repetitions do not count."""
    columns = [as_ids(run) for run in runs]
    monkeypatch.setattr(order, "MAX_CODES", 4)
    identity.merge(columns)
    identity.encode(columns[0], columns[-1])
    monkeypatch.setattr(order, "MAX_CODES", 3)
    for work in (lambda: identity.merge(columns), lambda: identity.encode(columns[0], columns[-1])):
        with pytest.raises(OutOfRoom, match=r"4 distinct.*3"):
            work()
