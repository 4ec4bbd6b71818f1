"""cudf frames as the input of a run, and made from a result, with cudf and a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from edgemill.kernels.runtime.device import pooled_memory
from edgemill.pipeline import InputError, Result, UsageError, edges_of, find_dn_graph, members_of, mine
from edgemill.pipeline.cluster import task_calls
from edgemill.pipeline.inputs import frame_rows
from edgemill.pipeline.inputs.input_object import ColumnNames
from edgemill.pipeline.results import conversions
from runs import EDGE_COLUMNS

pytestmark = pytest.mark.gpu

QUIET: dict[str, Any] = {"output.report": False}
TABLES = ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members")
LARGE = 2**63
"""The smallest integer that needs uint64."""


@pytest.fixture(scope="module")
def cudf() -> Iterator[Any]:
    """The package. It makes CuPy take memory from RMM; tests of other modules measure CuPy's own pool."""
    found = pytest.importorskip("cudf", reason="cudf is not installed: pip install cudf-cu13", exc_type=ImportError)
    yield found
    cupy = pytest.importorskip("cupy")
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


def cliques() -> pd.DataFrame:
    """Rows of two cliques of 6 and 4 vertices that an edge joins, some rows twice, a loop, and a column of weights."""
    rows = [(u, v) for u in range(6) for v in range(u)] + [(u, v) for u in range(6, 10) for v in range(6, u)]
    rows += [(5, 6), (6, 5), (0, 1), (3, 3)]
    return pd.DataFrame(rows, columns=["src", "dst"]).assign(weight=0.5)


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(src="é " + frame["src"].astype(str), dst="é " + frame["dst"].astype(str))


KINDS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "int64": lambda frame: frame.assign(src=frame["src"] - 3, dst=frame["dst"] - 3),
    "int32": lambda frame: frame.astype({"src": "int32", "dst": "int32"}),
    "two types": lambda frame: frame.astype({"src": "int8", "dst": "uint16"}),
    "uint64": lambda frame: frame.assign(
        src=frame["src"].astype("uint64") + LARGE, dst=frame["dst"].astype("uint64") + LARGE
    ),
    "strings": as_text,
    "categories": lambda frame: as_text(frame).astype({"src": "category", "dst": "category"}),
    "an index of text": lambda frame: frame.set_index(pd.Index([f"row {row}" for row in range(len(frame))], name="x")),
    "an index with gaps": lambda frame: frame.iloc[::-2],
    "other names": lambda frame: frame[["weight", "dst", "src"]].rename(columns={"src": "payer", "dst": "payee"}),
}
NAMES = {"other names": {"source_column": "payer", "target_column": "payee"}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_result_as_from_pandas(cudf: Any, tmp_path: Path, kind: str) -> None:
    frame = KINDS[kind](cliques())
    given = cudf.from_pandas(frame)
    how = QUIET | NAMES.get(kind, {})
    results = [
        mine(frame, tmp_path / "pandas", device="cpu", **how),
        mine(given, tmp_path / "cudf", device="gpu", **how),
    ]
    for name in TABLES:
        assert getattr(results[0], name).to_table() == getattr(results[1], name).to_table()
    records = [result.manifest.input.frame for result in results]
    assert records[0] is not None and records[1] is not None
    assert records[1].kind == "cudf.DataFrame" and records[1].rows == len(frame)
    assert records[0].sha256 == records[1].sha256
    assert list(given.columns) == list(frame.columns) and len(given) == len(frame)  # the input is unchanged


@pytest.mark.parametrize("kind", ["uint64", "strings", "categories", "an index of text"])
def test_rows_are_copied_in_parts(cudf: Any, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    frame = KINDS[kind](cliques())
    monkeypatch.setattr(frame_rows, "_ON_DEVICE", 4)
    rows = frame_rows.rows_of_frame(cudf.from_pandas(frame), "frame", ColumnNames("src", "dst"))
    batches = list(rows.batches)
    assert len(batches) == -(-len(frame) // 4) and {batch.num_rows for batch in batches[:-1]} == {4}
    for name in ("src", "dst"):
        assert [value for batch in batches for value in batch[name].to_pylist()] == frame[name].tolist()


def test_nulls(cudf: Any, tmp_path: Path) -> None:
    """Nulls are counted and refused, or dropped with their rows. Other ids stay integers."""
    odd = 2**53 + 1
    table = pa.table({"src": [1, None, 2, 3, odd], "dst": [2, 3, 3, 1, None]})
    frame = cudf.DataFrame.from_arrow(table)
    with pytest.raises(InputError, match=r"'cudf.DataFrame'.*1.*'src'.*1"):
        mine(frame, tmp_path / "refused", **QUIET)
    result = mine(frame, tmp_path / "out", **QUIET | {"input.nulls": "drop"})
    assert result.manifest.counts.nulls_dropped == 2
    assert result.edges.to_table()["lambda"].to_pylist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("make", "how", "error", "message"),
    [
        (lambda frame: frame.astype({"src": "float64"}), {}, InputError, "cudf.DataFrame: column 'src' is double"),
        (lambda frame: frame[["weight"]], {}, InputError, "cannot tell which columns of cudf.DataFrame"),
        (
            lambda frame: frame.rename(columns={"dst": "lambda"}),
            {"source_column": "src", "target_column": "lambda"},
            InputError,
            "column 'lambda' of input 'cudf.DataFrame'",
        ),
        (lambda frame: frame, {"where": "weight > 0"}, UsageError, "where is for files, and the input is a cudf.Data"),
        (lambda frame: frame["src"], {}, UsageError, "mine cannot read a cudf"),
    ],
    ids=["floats", "no ends", "a taken name", "where", "a series"],
)
def test_what_is_refused(
    cudf: Any, tmp_path: Path, make: Callable[[Any], Any], how: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        mine(make(cudf.from_pandas(cliques())), tmp_path / "out", **QUIET | how)
    assert not (tmp_path / "out").exists()


def test_a_run_has_a_pool_and_the_process_what_cudf_chose(
    cudf: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The run's memory pool is freed after the run, as cudf would not use it."""
    import cupy

    rmm_cupy_allocator = pytest.importorskip("rmm.allocators.cupy").rmm_cupy_allocator
    cupy.cuda.set_allocator(rmm_cupy_allocator)
    pool = cupy.get_default_memory_pool()
    seen: list[tuple[bool, int]] = []

    @contextmanager
    def watched() -> Iterator[None]:
        with pooled_memory():
            yield
            seen.append((cupy.cuda.get_allocator() == pool.malloc, pool.total_bytes()))

    monkeypatch.setattr(task_calls, "pooled_memory", watched)
    mine(cudf.from_pandas(cliques()), tmp_path / "out", device="gpu", **QUIET)
    assert {own for own, _ in seen} == {True} and max(size for _, size in seen) > 0
    assert cupy.cuda.get_allocator() is rmm_cupy_allocator
    assert pool.free_bytes() == 0


def test_no_rows(cudf: Any, tmp_path: Path) -> None:
    result = mine(cudf.from_pandas(cliques().iloc[:0]), tmp_path / "out", **QUIET)
    assert len(result.edges.to_cudf()) == 0
    assert list(result.edges.to_cudf().columns) == ["src", "dst", *EDGE_COLUMNS]


@pytest.fixture(scope="module", params=["int64", "uint64", "strings"])
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(KINDS[request.param](cliques()), tmp_path_factory.mktemp("cudf") / "out", **QUIET)


def same(frame: Any, table: pa.Table) -> bool:
    """Equal columns and rows. Arrow may use another of its types for text."""
    import cupy

    back = frame.to_arrow(preserve_index=False)
    assert back.column_names == table.column_names
    for name, field in zip(table.column_names, table.schema, strict=True):
        if pa.types.is_integer(field.type):
            assert back.schema.field(name).type == field.type
            assert isinstance(frame[name].dropna().values, cupy.ndarray)
    return bool(back.to_pylist() == table.to_pylist())


@pytest.mark.parametrize("name", TABLES)
def test_tables(cudf: Any, result: Result, name: str) -> None:
    table = getattr(result, name)
    assert isinstance(table.to_cudf(), cudf.DataFrame)
    assert same(table.to_cudf(), table.to_table())
    first = table.schema.names[:1]
    assert same(table.to_cudf(first), table.to_table(columns=first))


@pytest.mark.parametrize("name", TABLES)
def test_decoding_equals_copying(cudf: Any, result: Result, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Tables decoded on the GPU equal tables decoded on the host and copied, types included."""
    table = getattr(result, name)
    copied = conversions.to_cudf(table.to_arrow())
    names = table.schema.names[::-1][:2]
    monkeypatch.setattr(conversions, "to_cudf", None)
    decoded = table.to_cudf()
    assert decoded.to_arrow(preserve_index=False) == copied.to_arrow(preserve_index=False)
    assert list(decoded.dtypes) == list(copied.dtypes) and decoded.index.equals(copied.index)
    assert list(table.to_cudf(names).columns) == names


def test_part_of_a_table(cudf: Any, result: Result) -> None:
    dense = pc.field("lambda") >= 3
    expected = result.edges.to_table(filter=dense)
    assert 0 < expected.num_rows < result.manifest.counts.edges
    assert same(result.edges.to_cudf(filter=dense), expected)
    assert same(result.edges.filter(dense).to_cudf(["src", "lambda"]), expected.select(["src", "lambda"]))


def test_a_group(cudf: Any, result: Result) -> None:
    group = find_dn_graph(result, result.dn_graphs.to_table()["id"][0].as_py())
    edges = edges_of(result, group)
    assert same(edges.to_cudf(), edges.to_arrow()) and len(edges.to_cudf()) == group.edges
    members = members_of(result, group)
    assert same(cudf.DataFrame.from_arrow(members), members) and len(members) == group.vertices


def test_edges_of_a_result_as_input(cudf: Any, result: Result, tmp_path: Path) -> None:
    """A result's edges on the GPU are an input with the same ids and λ."""
    frame = result.edges.to_cudf()[["src", "dst"]]
    again = mine(frame, tmp_path / "again", device="gpu", **QUIET)
    assert again.edges.to_table() == result.edges.to_table()


def test_uuids_become_text(cudf: Any) -> None:
    """There is no type of 16 bytes in cudf."""
    ids = [UUID(int=2**100 + 7), None, UUID(int=1)]
    stored = pa.array([None if one is None else one.bytes for one in ids], pa.binary(16))
    for column in (stored, pa.ExtensionArray.from_storage(pa.uuid(), stored)):
        frame = conversions.to_cudf(pa.table({"id": column, "degree": [1, 2, 3]}))
        expected = [None if one is None else str(one) for one in ids]
        assert frame.to_arrow(preserve_index=False).to_pydict() == {"id": expected, "degree": [1, 2, 3]}


def test_categories_of_several_parts(cudf: Any) -> None:
    """Each chunk of a column numbers its categories on its own."""
    parts = [pa.array(values).dictionary_encode() for values in (["b", "a"], ["a", "c", None])]
    frame = conversions.to_cudf(pa.table({"kind": pa.chunked_array(parts)}))
    assert frame["kind"].astype("str").to_arrow().to_pylist() == ["b", "a", "a", "c", None]


def test_types_that_cudf_does_not_have(cudf: Any) -> None:
    table = pa.table({"degree": [1], "score": pa.array([0.5], pa.float16())})
    message = r"cudf cannot make a frame of this table \(degree int64, score halffloat\): .*columns="
    with pytest.raises(UsageError, match=message):
        conversions.to_cudf(table)


def test_more_than_one_part_of_a_million_rows(cudf: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    ends = rng.integers(0, 3000, (2, 2**20 + 1000))
    results = [
        mine(package.DataFrame({"src": ends[0], "dst": ends[1]}), tmp_path / package.__name__, device="gpu", **QUIET)
        for package in (pd, cudf)
    ]
    assert results[0].edges.to_table() == results[1].edges.to_table()
