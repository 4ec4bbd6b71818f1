"""Tables of a result as cudf frames: decoded on the GPU or copied. A module in place of cudf records which."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import InputError, Result, UsageError, edges_of, find_group, mine
from made import Edge, made

TABLES = ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members")


class Frame:
    """A frame, and how it was made."""

    def __init__(self, table: pa.Table, way: str) -> None:
        self.table, self.way = table, way

    def __getitem__(self, names: list[str]) -> Frame:
        return Frame(self.table.select(names), self.way)


class Cudf(ModuleType):
    """The part of cudf that `to_cudf` uses."""

    DataFrame = SimpleNamespace(from_arrow=lambda table: Frame(table, "copied"))

    def __init__(self) -> None:
        super().__init__("cudf")
        self.error: Exception | None = None

    def read_parquet(self, sources: list[BytesIO], *, columns: list[str], use_pandas_metadata: bool) -> Frame:
        """Returns columns in the order of the file."""
        assert not use_pandas_metadata
        if self.error is not None:
            raise self.error
        parts = [pq.read_table(source) for source in sources]
        table = pa.concat_tables(parts)
        return Frame(table.select([name for name in table.column_names if name in columns]), "decoded")


@pytest.fixture
def cudf(monkeypatch: pytest.MonkeyPatch) -> Cudf:
    found = Cudf()
    monkeypatch.setitem(sys.modules, "cudf", found)
    return found


def make(folder: Path, ids: pa.DataType | None = None, levels: dict[Edge, int] | None = None) -> Result:
    """Two cliques that an edge joins, in several files."""
    if levels is None:
        levels = dict.fromkeys(itertools.combinations(range(5), 2), 3) | {(4, 5): 0}
        levels |= dict.fromkeys(itertools.combinations(range(5, 9), 2), 2)
    if ids is None:
        return made(folder, levels, rows_per_file=5, rows_per_group=2)
    name: Callable[[int], Any] = (lambda u: f"v{u}") if pa.types.is_string(ids) else (lambda u: bytes([u]) * 16)
    named = {(name(u), name(v)): value for (u, v), value in levels.items()}
    return made(folder, named, id_type=ids, rows_per_file=5, rows_per_group=2)


@pytest.mark.parametrize("ids", [None, pa.string()], ids=["integers", "strings"])
@pytest.mark.parametrize("name", TABLES)
def test_whole_tables_are_decoded_on_the_gpu(cudf: Cudf, tmp_path: Path, ids: pa.DataType | None, name: str) -> None:
    """Rows keep their order, and columns have the requested order. Copying gives the same frame."""
    table = getattr(make(tmp_path / "night=1" / "out", ids), name)
    backwards = table.schema.names[::-1][:2]
    found = [table.to_cudf(), table.to_cudf(backwards)]
    cudf.error = RuntimeError("CUDF failure")
    other = [table.to_cudf(), table.to_cudf(backwards)]
    assert {frame.way for frame in found} == {"decoded"} and {frame.way for frame in other} == {"copied"}
    for frame, same, names in zip(found, other, (None, backwards), strict=True):
        assert frame.table == same.table == table.to_table(columns=names)


@pytest.mark.parametrize("error", [MemoryError("std::bad_alloc"), TypeError("of a list"), NotImplementedError("no")])
def test_what_cudf_does_not_decode_is_copied(cudf: Cudf, tmp_path: Path, error: Exception) -> None:
    cudf.error = error
    result = make(tmp_path / "out")
    assert (frame := result.edges.to_cudf()).way == "copied" and frame.table == result.edges.to_table()


def test_a_part_is_copied(cudf: Cudf, tmp_path: Path) -> None:
    result = make(tmp_path / "out")
    dense = pc.field("lambda") >= 3
    group = find_group(result, result.dn_graphs.to_table()["id"][0].as_py())
    frames = [
        result.edges.to_cudf(filter=dense),
        result.edges.filter(dense).to_cudf(),
        result.edges.to_cudf([]),
        result.edges.to_cudf(["src", "src"]),
        edges_of(result, group).to_cudf(),
    ]
    assert {frame.way for frame in frames} == {"copied"}
    assert [frame.table.num_rows for frame in frames] == [10, 10, 17, 17, group.edges]


def test_missing_column(cudf: Cudf, tmp_path: Path) -> None:
    edges = make(tmp_path / "out").edges
    for ask in (edges.to_cudf, edges.to_pandas, edges.to_dask):
        with pytest.raises(UsageError, match=r"'weight'.*dst"):
            ask(["src", "weight"])


def test_uuids_are_copied_and_the_columns_beside_them_decoded(cudf: Cudf, tmp_path: Path) -> None:
    edges = make(tmp_path / "out", pa.binary(16)).edges
    assert (whole := edges.to_cudf()).way == "copied"
    assert whole.table["src"].to_pylist()[0] == "00000000-0000-0000-0000-000000000000"
    values: Sequence[str] = ("lambda", "support")
    assert (frame := edges.to_cudf(values)).way == "decoded"
    assert frame.table == edges.to_table(columns=list(values))


def test_no_rows(cudf: Cudf, tmp_path: Path) -> None:
    result = make(tmp_path / "out", levels={(1, 2): 0})
    for name in TABLES:
        table = getattr(result, name)
        assert table.to_cudf().table == table.to_table()
    assert result.dn_graphs.to_cudf().table.num_rows == 0


def test_a_result_in_a_store_is_copied(cudf: Cudf, tmp_path: Path) -> None:
    result = make(tmp_path / "out")
    there = result.save(f"memory://{tmp_path.name}/out")
    assert (frame := there.edges.to_cudf()).way == "copied"
    assert frame.table == result.edges.to_table()


def test_damage_is_reported_without_checksums_in_cudf(cudf: Cudf, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    make(folder)
    file = max((folder / "edges").iterdir())
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match=f"damaged: {file} .*the manifest"):
        Result(folder).edges.to_cudf()


def test_a_temporary_result_stays_while_it_is_read(cudf: Cudf, tmp_path: Path) -> None:
    """A reference to its table keeps it."""
    pq.write_table(pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]}), tmp_path / "edges.parquet")
    frame = mine(tmp_path / "edges.parquet", device="cpu", output={"report": False}).edges.to_cudf()
    assert frame.way == "decoded" and frame.table["lambda"].to_pylist() == [1, 1, 1]
