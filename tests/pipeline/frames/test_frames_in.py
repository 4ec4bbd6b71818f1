"""Frames and graphs of other libraries as the input of a run."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.base
import duckdb
import fsspec
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from dask import dataframe
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import runs
from edgemill.pipeline import InputError, InputIncomplete, Result, UsageError, mine
from edgemill.pipeline.inputs import frame_rows, graph_rows
from edgemill.pipeline.inputs.frame_input import FrameInput, _write
from edgemill.pipeline.inputs.input_object import ColumnNames, EdgeBatches
from edgemill.pipeline.settings.models import InputSettings
from edgemill.tasks.publish.writing import OutputFile
from edgemill.tasks.storage.folders import folder_at
from in_process import call

Mine = Callable[..., Result]
dd: Any = dataframe
QUIET: dict[str, Any] = {"output.report": False}
ROWS = [(1, 2), (2, 3), (3, 1), (3, 4), (4, 1), (4, 2), (5, 5), (2, 1), (6, 4)]
LAMBDA = oracles.brute_force_lambda(ROWS)
TABLE = pa.table({"src": [u for u, _ in ROWS], "dst": [v for _, v in ROWS], "weight": [0.5] * len(ROWS)})


def named(rows: list[tuple[int, int]]) -> list[tuple[str, str]]:
    return [(f"v{u}", f"v{v}") for u, v in rows]


class Cudf:
    """The interface of cudf.DataFrame that a run uses, over a pandas.DataFrame."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @property
    def columns(self) -> pd.Index:
        return self._frame.columns

    @property
    def iloc(self) -> Cudf:
        return self

    def __getitem__(self, rows: Any) -> Cudf:
        return Cudf(self._frame.iloc[rows])

    def __len__(self) -> int:
        return len(self._frame)

    def to_arrow(self, *, preserve_index: bool) -> pa.Table:
        return pa.Table.from_pandas(self._frame, preserve_index=preserve_index)


Cudf.__module__ = "cudf.core.dataframe"
Cudf.__qualname__ = Cudf.__name__ = "DataFrame"


class ArrayOnly:
    """A batch that only has the method `__arrow_c_array__`."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return TABLE.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


def relation() -> duckdb.DuckDBPyRelation:
    found = duckdb.connect().from_arrow(TABLE)
    assert found is not None
    return found


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas.DataFrame": lambda: TABLE.to_pandas(),
    "polars.DataFrame": lambda: pl.from_arrow(TABLE),
    "polars.LazyFrame": lambda: pl.DataFrame(TABLE).lazy(),
    "pyarrow.Table": lambda: TABLE,
    "pyarrow.RecordBatch": lambda: TABLE.to_batches()[0],
    "pyarrow.RecordBatchReader": lambda: TABLE.to_reader(max_chunksize=2),
    "pyarrow.InMemoryDataset": lambda: ds.dataset(TABLE),
    "duckdb.DuckDBPyRelation": relation,
    "cudf.DataFrame": lambda: Cudf(TABLE.to_pandas()),
    "dask.DataFrame": lambda: dd.from_pandas(TABLE.to_pandas(), npartitions=3),
}


def rows_read(given: Any, folder: Path, **how: Any) -> tuple[list[str], list[tuple[Any, Any]]]:
    """The columns that a run reads, and their rows."""
    place = folder_at(folder)
    settings = InputSettings(path="given", **how)
    source = FrameInput(given).open(settings, place, dask.base.compute)
    names = [source.source_column, source.target_column]
    table = ds.dataset([file.path for file in source.files]).to_table(columns=names)
    return names, list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("kind", FRAMES)
def test_tables(tmp_path: Path, kind: str) -> None:
    """All libraries give the same rows."""
    frame = FRAMES[kind]()
    assert FrameInput(frame).name == kind
    assert rows_read(frame, tmp_path) == (["src", "dst"], ROWS)


@pytest.mark.parametrize("kind", ["pandas.DataFrame", "pyarrow.RecordBatchReader", "dask.DataFrame"])
def test_runs_on_frames(mined: Mine, kind: str) -> None:
    """The manifest records the kind of frame. No temporary file stays or is named."""
    result = mined(FRAMES[kind]())
    assert runs.column(result, "lambda") == LAMBDA
    record = result.manifest.input
    assert record.frame is not None and (record.frame.kind, record.frame.rows) == (kind, len(ROWS))
    assert str(record.frame) == f"{kind} of 9 rows"
    assert (record.files, record.source_column, record.target_column) == ([], "src", "dst")
    assert record.fingerprint is not None
    assert result.manifest.settings["input"]["path"] == kind
    text = result.path.joinpath("manifest.json").read_text() + result.path.joinpath("log.jsonl").read_text()
    assert ".parquet" not in text.replace("part-00000.parquet", "") and "/input/" not in text


def test_batches_with_only_the_array_interface(tmp_path: Path) -> None:
    assert rows_read(ArrayOnly(), tmp_path)[1] == ROWS


def graphs() -> Iterator[tuple[str, Any, Callable[[int], Any]]]:
    def text(vertex: int) -> str:
        return f"v{vertex}"

    yield "networkx.Graph", nx.Graph(ROWS), int
    yield "networkx.MultiDiGraph", nx.MultiDiGraph(named(ROWS)), text
    yield "igraph.Graph", igraph.Graph(edges=ROWS), int
    yield "igraph.Graph", igraph.Graph.TupleList(named(ROWS)), text
    ends = np.array(ROWS).T
    for form in ("coo", "csr", "csc", "lil"):
        yield f"scipy.{form}_array", scipy.sparse.coo_array((np.ones(9), ends), shape=(7, 7)).asformat(form), int
    yield "scipy.csr_matrix", scipy.sparse.csr_matrix(([*range(1, 10), 0], np.c_[ends, [6, 6]]), shape=(7, 7)), int


@pytest.mark.parametrize(("kind", "graph", "name"), list(graphs()))
def test_graphs(tmp_path: Path, kind: str, graph: Any, name: Callable[[int], Any]) -> None:
    names, rows = rows_read(graph, tmp_path)
    assert names == ["src", "dst"] and FrameInput(graph).name == kind
    assert {frozenset(row) for row in rows} == {frozenset((name(u), name(v))) for u, v in ROWS}


@given(data=st.data())
@settings(max_examples=8)
def test_matrices_in_parts(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Any size of batches gives the same edges. A stored 0 is not an edge."""
    size = data.draw(st.integers(1, 6))
    matrix = np.array(data.draw(st.lists(st.integers(0, 2), min_size=size * size, max_size=size * size))).reshape(
        size, -1
    )
    expected = sorted(zip(*(end.tolist() for end in np.nonzero(matrix)), strict=True))
    stored = scipy.sparse.coo_array((matrix.ravel(), np.indices(matrix.shape).reshape(2, -1)), shape=matrix.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_rows, "_BATCH_EDGES", data.draw(st.integers(1, 8)))
        for form in ("coo", "csr", "csc"):
            assert sorted(rows_read(stored.asformat(form), tmp_path_factory.mktemp("read"))[1]) == expected


def test_tables_of_a_result_as_input(mined: Mine, tmp_path: Path) -> None:
    """Frames and graphs of a result are an input with the same ids."""
    result = mined(nx.Graph(named(ROWS)))
    edges = set(runs.column(result, "lambda"))
    assert edges == set(oracles.brute_force_lambda(named(ROWS)))
    for number, again in enumerate(
        (result.edges, result.edges.to_polars(), result.edges.to_networkx(), result.edges.to_igraph())
    ):
        (tmp_path / str(number)).mkdir()
        names, rows = rows_read(again, tmp_path / str(number), source_column="src", target_column="dst")
        assert names == ["src", "dst"] and {(min(row), max(row)) for row in rows} == edges


@pytest.mark.parametrize(
    ("columns", "how", "read"),
    [
        (["payer", "payee", "src"], {"source_column": "payee", "target_column": "payer"}, ["payee", "payer"]),
        (["source", "weight", "target"], {}, ["source", "target"]),
        (["payer", "payee"], {}, ["payer", "payee"]),
        ([0, 1], {}, ["0", "1"]),
    ],
)
def test_columns(tmp_path: Path, columns: list[Any], how: dict[str, str], read: list[str]) -> None:
    """Columns are selected by name, as in files. Unnamed columns of pandas have their numbers as names."""
    values = {name: [10 * place, 10 * place + 1] for place, name in enumerate(columns)}
    names, rows = rows_read(pd.DataFrame(values), tmp_path, **how)
    assert names == read
    ends = [values[next(own for own in columns if str(own) == name)] for name in read]
    assert rows == list(zip(*ends, strict=True))


def test_other_columns_may_hold_anything(tmp_path: Path) -> None:
    frame = TABLE.to_pandas()
    frame["note"] = [object()] * len(frame)
    assert rows_read(frame, tmp_path)[1] == ROWS


@pytest.mark.parametrize("kind", [object, "string", "category"])
def test_text_and_categories(tmp_path: Path, kind: Any) -> None:
    frame = pd.DataFrame(named(ROWS), columns=["src", "dst"])
    assert rows_read(frame.astype(kind), tmp_path)[1] == named(ROWS)


@pytest.mark.parametrize(
    "empty",
    [TABLE.slice(0, 0), nx.Graph(), pd.DataFrame({"src": [], "dst": []}, dtype="int64")],
    ids=["arrow", "networkx", "pandas"],
)
def test_no_rows(tmp_path: Path, empty: Any) -> None:
    assert rows_read(empty, tmp_path) == (["src", "dst"], [])


def test_several_paths(mined: Mine, tmp_path: Path) -> None:
    half = runs.write_rows(tmp_path / "first.parquet", ROWS[:5])
    (tmp_path / "more").mkdir()
    rest = runs.write_rows(tmp_path / "more" / "rest.parquet", ROWS[5:])
    result = mined([half, str(tmp_path / "more"), rest])
    assert runs.column(result, "lambda") == LAMBDA
    assert [Path(file.path).name for file in result.manifest.input.files] == ["first.parquet", "rest.parquet"]
    assert result.manifest.input.frame is None
    with pytest.raises(UsageError, match=r"the input .* is inside it"):
        mine([half, rest], tmp_path / "more")


def test_fingerprint_of_a_frame(tmp_path: Path) -> None:
    """Equal rows of any library are the same input; other rows are another input."""
    first = mine(TABLE, tmp_path / "out", **QUIET)
    again = mine(pl.DataFrame(TABLE), tmp_path / "out", **QUIET)
    assert again.manifest.run == first.manifest.run
    with pytest.raises(UsageError) as error:
        mine(TABLE.slice(1), tmp_path / "out", **QUIET)
    (difference,) = error.value.__notes__[1:-1]
    assert re.fullmatch(r"- its input .*pyarrow.Table of 9 rows, .*pyarrow.Table of 8 rows now", difference)
    other = TABLE.set_column(0, "src", pa.array(range(9)))
    with pytest.raises(UsageError) as error:
        mine(other, tmp_path / "out", **QUIET)
    (difference,) = error.value.__notes__[1:-1]
    assert difference.startswith("- its input ") and "another pyarrow.Table of 9 rows" in difference
    with pytest.raises(UsageError) as error:
        mine(runs.write_rows(tmp_path / "rows.parquet", ROWS), tmp_path / "out", **QUIET)
    (difference,) = error.value.__notes__[1:-1]
    assert re.fullmatch(r"- its input .*pyarrow.Table of 9 rows, .*files now", difference)
    (tmp_path / "rows.parquet").unlink()
    reader = TABLE.to_reader()
    with pytest.raises(UsageError, match="exists"):
        mine(reader, tmp_path / "out", **QUIET, nulls="drop")
    assert reader.read_all() == TABLE
    assert {entry.name for entry in tmp_path.iterdir()} == {"out", "out.failed.log.jsonl"}


def test_text_of_any_type_is_the_same_input(tmp_path: Path) -> None:
    """Arrow has three types of text, and libraries use different ones."""
    table = pa.table(dict(zip(["src", "dst"], map(list, zip(*named(ROWS), strict=True)), strict=True)))
    digests = set()
    for number, kind in enumerate([pa.string(), pa.large_string(), pa.string_view(), pa.dictionary("int8", "str")]):
        (tmp_path / str(number)).mkdir()
        given = table.cast(pa.schema([("src", kind), ("dst", kind)]))
        source = FrameInput(given).open(
            InputSettings(path="given"), folder_at(tmp_path / str(number)), dask.base.compute
        )
        assert source.frame is not None
        digests.add(source.frame.sha256)
    assert len(digests) == 1


@pytest.mark.parametrize(
    "made",
    [
        lambda table: table,
        lambda table: table.to_reader(),
        lambda table: table.to_batches()[0],
        lambda table: table.to_pandas(),
        lambda table: pl.DataFrame(table),
        lambda table: pl.DataFrame(table).lazy(),
        lambda table: ds.dataset(table),
        lambda table: duckdb.from_arrow(table),
        lambda table: dd.from_pandas(table.to_pandas(), npartitions=2),
        lambda table: Cudf(table.to_pandas()),
    ],
    ids=["Arrow", "reader", "batch", "pandas", "polars", "lazy", "dataset", "DuckDB", "Dask", "cudf"],
)
@pytest.mark.parametrize(
    ("names", "ends", "others"),
    [
        (["Source", "x", "TARGET"], ("Source", "TARGET"), "by their names"),
        (["x", "to", "from"], ("from", "to"), "by their names"),
        (["from", "to", "u", "v"], ("from", "to"), "and not 'u' and 'v'"),
        (["src", "x", "dst"], ("src", "dst"), None),
    ],
)
def test_usual_names_of_columns(
    tmp_path: Path, made: Callable[[pa.Table], Any], names: list[str], ends: tuple[str, str], others: str | None
) -> None:
    frame = made(pa.table({name: [at, at + 1] for at, name in enumerate(names)}))
    source = FrameInput(frame).open(InputSettings(path="given"), folder_at(tmp_path), dask.base.compute)
    assert (source.source_column, source.target_column) == ends
    if others is None:
        assert source.notes == ()
    else:
        (note,) = source.notes
        assert all(part in note for part in (*map(repr, ends), others))


def test_a_refusal_does_not_consume_a_reader(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    reader = TABLE.to_reader()
    with pytest.raises(UsageError, match="exists"):
        mine(reader, tmp_path / "out")
    assert reader.read_all() == TABLE


def ids(*values: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"src": pa.array(values, kind), "dst": pa.array(values[::-1], kind)})


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "nothing of use": (7, UsageError, "mine cannot read a builtins.int: give a path, a list of paths, a table"),
    "no paths": ([], UsageError, "the list of inputs is empty"),
    "no path": ([3], UsageError, "a list of inputs holds paths, but it has 3, a int"),
    "which columns": (
        TABLE.rename_columns(["a", "b", "c"]).to_pandas(),
        InputError,
        "cannot tell which columns of pandas.DataFrame are the ends of an edge; it has 'a', 'b', 'c'",
    ),
    "floats": (ids(1.5, 2.5).to_pandas(), InputError, "pandas.DataFrame: column 'src' is double, but ids are integers"),
    "mixed": (
        pd.DataFrame({"src": [1, "a"], "dst": [2, 3]}),
        InputError,
        "pandas.DataFrame: its rows cannot be read as Arrow",
    ),
    "both kinds": (
        pd.DataFrame({"src": [1, 2], "dst": ["a", "b"]}),
        InputError,
        "pandas.DataFrame: column 'src' has integers, and column 'dst' has strings",
    ),
    "nulls": (ids(1, None, 3), InputError, "input 'pyarrow.Table' has null ids: 1 in column 'src'"),
    "a series": (pd.Series([1, 2]), InputError, "pandas.Series: its rows cannot be read as Arrow"),
    "a taken name": (
        pa.table({"src": [1], "lambda": [2]}),
        InputError,
        "column 'lambda' of input 'pyarrow.Table' has a name that the output uses",
    ),
    "tuples": (nx.grid_2d_graph(2, 2), UsageError, "networkx.Graph has the node (0, 0), a tuple: ids are integers or"),
    "truth": (nx.Graph([(True, 2)]), UsageError, "networkx.Graph has the node True, a bool"),
    "both kinds of nodes": (nx.Graph([(1, "a")]), UsageError, "networkx.Graph has integers and strings as nodes"),
    "large nodes": (nx.Graph([(-1, 2**63)]), UsageError, "which are more than 64 bits"),
    "half of a character": (
        nx.Graph([("a", "\ud800")]),
        UsageError,
        "networkx.Graph: ids or weights of its edges cannot be read",
    ),
    "one name twice": (
        igraph.Graph(edges=[(0, 1)], vertex_attrs={"name": ["a", "a"]}),
        UsageError,
        "igraph.Graph: two vertices have the same name",
    ),
    "not square": (
        scipy.sparse.csr_array((2, 3)),
        UsageError,
        r"scipy.csr_array has the shape (2, 3): an adjacency matrix is square",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes(tmp_path: Path, case: str) -> None:
    """One message names the input. Nothing stays but the log of a run that had begun."""
    given, kind, message = WRONG[case]
    with pytest.raises(kind, match=re.escape(message)) as error:
        mine(given, tmp_path / "out")
    assert ".parquet" not in str(error.value) and "out.edgemill" not in str(error.value)
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left <= {"out.failed.log.jsonl"}
    if left:
        assert "/input" not in (tmp_path / "out.failed.log.jsonl").read_text()


@pytest.mark.parametrize("setting", [{"input.complete_marker": "_SUCCESS"}, {"table_version": 3}])
def test_settings_that_need_files(tmp_path: Path, setting: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"for files.* a pyarrow\.Table: leave it out"):
        mine(TABLE, tmp_path / "out", **setting)


def test_too_few_rows(tmp_path: Path) -> None:
    with pytest.raises(InputIncomplete, match=r"'pyarrow.Table'.*9"):
        mine(TABLE, tmp_path / "out", **QUIET | {"input.least_rows": 10})


def test_nulls_that_are_dropped(mined: Mine) -> None:
    assert mined(ids(1, None, 3), **{"input.nulls": "drop"}).manifest.counts.nulls_dropped == 1


def test_results_in_object_stores(client: Client) -> None:
    """With workers on other hosts, the file is written to the store and removed from it. Messages name the frame."""
    store = fsspec.filesystem("memory")
    frame = dd.from_pandas(TABLE.to_pandas(), npartitions=2)
    result = mine(frame, "memory://frames/out", client=client, **QUIET)
    assert runs.column(result, "lambda") == LAMBDA
    assert result.manifest.input.frame is not None and result.manifest.input.frame.kind == "dask.DataFrame"
    with pytest.raises(InputError, match=r"pyarrow\.Table.*0"):
        mine(ids(1, None, 3), "memory://frames/other", client=client, **QUIET)
    assert not [name for name in store.find("/frames") if "/input" in name]
    assert store.ls("/frames/other", detail=False) == ["/frames/other/failed.log.jsonl"]
    store.rm("/frames", recursive=True)


def failing(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches()
    raise ValueError("the reader broke off")


def test_a_reader_that_fails(tmp_path: Path) -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, failing(TABLE.schema))
    with pytest.raises(InputError, match=r"pyarrow.RecordBatchReader.*reader"):
        mine(reader, tmp_path / "out")
    assert {entry.name for entry in tmp_path.iterdir()} == {"out.failed.log.jsonl"}


def test_names_in_messages_and_summary(tmp_path: Path) -> None:
    mine(TABLE.to_pandas(), tmp_path / "out")
    shown = call("show", str(tmp_path / "out"))
    assert "pandas.DataFrame of 9 rows, from Python; columns src, dst (int64)" in " ".join(shown.output.split())
    page = (tmp_path / "out" / "report.html").read_text()
    assert all(fact in page for fact in ("pandas.DataFrame", "(int64)"))
    log = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    (written,) = [line for line in log if line["event"] == "input_written"]
    assert (written["input"], written["rows"], written["files"]) == ("pandas.DataFrame", 9, 1)


@given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=12), long=st.booleans())
@settings(max_examples=25)
def test_row_groups_do_not_depend_on_batches(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], long: bool
) -> None:
    """Row groups and digests do not depend on the batches of a frame. Long text makes row groups smaller."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_rows, "ROWS", 32)
        patch.setattr(frame_rows, "_STEP", 8)
        patch.setattr(frame_rows, "BYTES", 2000 if long else 10**6)
        rows = sum(cuts)
        table = pa.table({"src": [f"{n:0{400 if long else 4}}" for n in range(rows)], "dst": ["b"] * rows})
        place = folder_at(tmp_path_factory.mktemp("written"))
        starts = [sum(cuts[:n]) for n in range(len(cuts))]
        batches = [table.slice(*part).combine_chunks().to_batches()[0] for part in zip(starts, cuts, strict=True)]
        cut = frame_rows.write_rows(place, 0, EdgeBatches(table.schema, iter(batches)))
        whole = frame_rows.write_rows(place, 1, EdgeBatches(table.schema, iter(table.to_batches())))
    found = pq.ParquetFile(place.path(cut.name))
    sizes = [found.metadata.row_group(n).num_rows for n in range(found.num_row_groups)]
    assert found.read() == table and cut.rows == rows
    if long:
        assert max(sizes) <= 16  # the batch that exceeds the limit, and the rows before it
    else:
        assert sizes == [32] * (rows // 32) + [rows % 32] * (rows % 32 > 0)
        assert cut.sha256 == whole.sha256


def test_partitions_of_dask_on_workers(two_workers: Client, tmp_path: Path) -> None:
    """Each partition is written by the worker that holds it. No rows come to the client."""
    frame: Any = dd.from_pandas(TABLE.to_pandas(), npartitions=4, sort=False)
    kept = frame.persist(scheduler=two_workers)
    taken: list[object] = []
    gather: Any = two_workers.gather

    def noted(futures: Any, *arguments: Any, **options: Any) -> Any:
        found = gather(futures, *arguments, **options)
        taken.extend(found if isinstance(found, list) else [found])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_workers, "gather", noted)
        result = mine(kept, tmp_path / "out", client=two_workers, **QUIET)
    del kept
    assert runs.column(result, "lambda") == LAMBDA
    assert any(isinstance(one, OutputFile) for one in taken)
    assert not any(isinstance(one, pd.DataFrame | pa.Table) for one in taken)
    assert {entry.name for entry in tmp_path.iterdir()} == {"out"}


def test_a_partition_that_cannot_be_computed(tmp_path: Path) -> None:
    def fails(part: pd.DataFrame) -> pd.DataFrame:
        raise ZeroDivisionError("a mistake of mine")

    frame = dd.from_pandas(TABLE.to_pandas(), npartitions=2).map_partitions(fails, meta=TABLE.to_pandas())
    with pytest.raises(InputError, match=r"dask.DataFrame: a partition .*: .*a mistake of mine"):
        mine(frame, tmp_path / "out")
    assert {entry.name for entry in tmp_path.iterdir()} == {"out.failed.log.jsonl"}


def test_partitions_of_other_types(tmp_path: Path) -> None:
    parts = [pd.DataFrame({"src": [1], "dst": [2]}), pd.DataFrame({"src": [1.5], "dst": [2.5]})]
    frame = dd.from_map(lambda number: parts[number], [0, 1], meta=parts[0])
    with pytest.raises(InputError, match=r"dask.DataFrame.*1.*'src'"):
        mine(frame, tmp_path / "out")


def test_a_worker_without_access_to_the_folder(tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "mark").write_bytes(b"of another host")
    for place in (tmp_path, tmp_path / "absent"):
        with pytest.raises(UsageError, match=r"a worker on .* does not see .*: name an output"):
            _write(folder_at(place), 0, TABLE.to_pandas(), "dask.DataFrame", ColumnNames("src", "dst"), "a mark")


def test_missing_libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An install without optional libraries mines Arrow tables, and refuses graphs with a message."""
    for name in ("networkx", "igraph", "scipy.sparse", "pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    assert rows_read(TABLE, tmp_path)[1] == ROWS
