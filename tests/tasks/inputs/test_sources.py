"""Inputs that are found and accepted, and messages for others."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgemill.tasks.errors import InputError, UsageError
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import InputBlock, Piece, plan_blocks


def write(path: Path, rows: int = 3, id_type: pa.DataType | None = None, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    column = pa.array(range(rows)).cast(id_type or pa.int64())
    pq.write_table(pa.table({"src": column, "dst": column}), path, **options)
    return path


def test_a_file_a_folder_a_glob_and_a_url(tmp_path: Path) -> None:
    one, two = write(tmp_path / "in" / "b.parquet"), write(tmp_path / "in" / "deep" / "a.parquet")
    write(tmp_path / "in" / ".hidden.parquet")
    write(tmp_path / "in" / "_temporary" / "0.parquet")
    (tmp_path / "in" / "_SUCCESS").touch()
    (tmp_path / "in" / "notes.txt").write_text("not read")
    assert [file.path for file in open_source(str(one)).files] == [str(one)]
    assert [file.path for file in open_source(str(tmp_path / "in")).files] == [str(one), str(two)]
    assert [file.path for file in open_source(str(tmp_path / "in" / "b*")).files] == [str(one)]
    assert [file.path for file in open_source(str(tmp_path / "in" / "[bd_]*")).files] == [str(one), str(two)]
    source = open_source(f"file://{one}")
    assert (source.files[0].bytes, source.files[0].row_groups, source.rows) == (one.stat().st_size, (3,), 3)
    memory = fsspec.filesystem("memory")
    memory.pipe("/graphs/a.parquet", one.read_bytes())
    assert [file.path for file in open_source("memory://graphs").files] == ["memory:///graphs/a.parquet"]


def test_blocks_are_runs_of_row_groups_over_files(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", 5, row_group_size=2)
    write(tmp_path / "b.parquet", 0)
    write(tmp_path / "c.parquet", 9)
    write(tmp_path / "d.parquet", 2)
    blocks = plan_blocks(open_source(str(tmp_path)), 4)
    assert blocks == [
        InputBlock(0, 4, (Piece(0, (0, 1)),)),
        InputBlock(1, 1, (Piece(0, (2,)),)),
        InputBlock(2, 9, (Piece(2, (0,)),)),
        InputBlock(3, 2, (Piece(3, (0,)),)),
    ]
    assert [block.rows for block in plan_blocks(open_source(str(tmp_path)), 100)] == [16]
    assert plan_blocks(open_source(str(tmp_path / "b.parquet")), 4) == [InputBlock(0, 0, ())]


@pytest.mark.parametrize(
    ("types", "common"),
    [
        (["int32", "int64"], "int64"),
        (["int8", "uint8"], "int16"),
        (["uint32", "int32"], "int64"),
        (["uint64", "uint8"], "uint64"),
        (["uint64", "int8"], "int64"),
        (["uint16"], "uint16"),
        (["string", "large_string"], "large_string"),
        (["string", "dictionary"], "string"),
        (["dictionary"], "string"),
    ],
)
def test_the_common_type(tmp_path: Path, types: list[str], common: str) -> None:
    for name in types:
        if name == "dictionary":
            names = pa.array(["a"]).dictionary_encode()
            pq.write_table(pa.table({"src": names, "dst": names}), tmp_path / "dictionary.parquet")
        else:
            write(tmp_path / f"{name}.parquet", id_type=pa.type_for_alias(name))
    source = open_source(str(tmp_path))
    assert source.id_type == pa.type_for_alias(common)
    assert source.kind == ("string" if "string" in common else "integer")


@pytest.mark.parametrize(
    ("names", "given", "chosen"),
    [
        (["weight", "dst", "src"], (None, None), ("src", "dst")),
        (["target", "source", "x"], (None, None), ("source", "target")),
        (["from", "to"], (None, None), ("from", "to")),
        (["from", "to"], (None, "from"), ("to", "from")),
        (["src", "dst", "x"], ("src", None), ("src", "dst")),
        (["a", "b", "c"], ("c", "a"), ("c", "a")),
    ],
)
def test_columns_by_name(
    tmp_path: Path, names: list[str], given: tuple[str | None, str | None], chosen: tuple[str, str]
) -> None:
    pq.write_table(pa.table([[1]] * len(names), names=names), tmp_path / "a.parquet")
    source = open_source(str(tmp_path), *given)
    assert (source.source_column, source.target_column) == chosen


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        ({"a": [1], "b": [1], "c": [1]}, (None, None), r"cannot tell which columns .* it has 'a', 'b', 'c'"),
        ({"a": [1], "b": [1]}, ("a", "c"), r"x\.parquet has no column 'c'; it has 'a', 'b'"),
        ({"a": [1], "b": [1]}, ("a", "a"), r"source and target column are both 'a'"),
        ({"a": [1], "b": [1]}, ("c", None), r"cannot tell"),
        ({"src": [1.0], "dst": [1]}, (None, None), r"x\.parquet: column 'src' is double, .* cast it to int64"),
        ({"src": [1], "dst": [True]}, (None, None), r"column 'dst' is bool, "),
        ({"src": [1], "dst": [float("nan")]}, (None, None), r"column 'dst' is double, "),
        ({"src": [float("inf")], "dst": [1]}, (None, None), r"column 'src' is double, "),
        ({"src": [1], "dst": [b"x"]}, (None, None), r"column 'dst' is binary, "),
        (
            {"src": [1], "dst": ["x"]},
            (None, None),
            r"column 'src' has integers, and column 'dst' has strings",
        ),
        ({"src": [1], "support": [1]}, (None, None), r"column 'support' .* rename it"),
    ],
)
def test_unusable_columns(
    tmp_path: Path, columns: dict[str, list[Any]], given: tuple[str | None, str | None], message: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=message):
        open_source(str(tmp_path / "x.parquet"), *given, reserved={"support"})


def test_a_name_used_twice(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1], [2], [3]], names=["src", "dst", "src"]), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"2.*'src'"):
        open_source(str(tmp_path))


def test_a_missing_column_in_a_later_file(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    pq.write_table(pa.table({"src": [1], "target": [2]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet.*'dst'"):
        open_source(str(tmp_path))


def test_files_that_are_not_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.touch()
    with pytest.raises(InputError, match=r"x\.parquet.*\(0"):
        open_source(str(tmp_path))
    path.write_text("src,dst\n1,2\n")
    with pytest.raises(InputError, match=r"x\.parquet cannot be read"):
        open_source(str(tmp_path))
    whole = write(tmp_path / "whole" / "a.parquet").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"x\.parquet.*short"):
        open_source(str(path))


def test_an_absent_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder without"):
        open_source(str(tmp_path))
    with pytest.raises(InputError, match="not exist"):
        open_source(str(tmp_path / "x"))
    with pytest.raises(InputError, match="file matches"):
        open_source(str(tmp_path / "*.parquet"))
    with pytest.raises(UsageError, match="nowhere"):
        open_source("nowhere://x")


def test_a_source_is_picklable_and_does_not_show_storage_options(tmp_path: Path) -> None:
    source = open_source(str(write(tmp_path / "a.parquet")), storage_options={"auto_mkdir": "a secret"})
    assert "secret" not in repr(source)
    assert pickle.loads(pickle.dumps(source)) == source


class _Server(SimpleHTTPRequestHandler):
    silent = False
    """Whether the server sends no version of a file."""

    def send_header(self, keyword: str, value: str) -> None:
        if not (self.silent and keyword == "Last-Modified"):
            super().send_header(keyword, value)

    def log_message(self, *_: object) -> None:
        pass


class _SilentServer(_Server):
    silent = True


@contextmanager
def serve(folder: Path, handler: type[_Server]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def versions(place: str) -> list[str | None]:
    return [file.version for file in open_source(place).files]


def test_versions_change_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/versions/a.parquet", path.read_bytes())
    with serve(tmp_path, _Server) as url:
        places = [str(path), "memory://versions/a.parquet", f"{url}/a.parquet"]
        before = [versions(place) for place in places]
        assert [versions(place) for place in places] == before
        os.utime(path, (1, 1))
        memory.pipe_file("/versions/a.parquet", path.read_bytes())
        after = [versions(place) for place in places]
    memory.rm("/versions", recursive=True)
    assert all(type(version) is str for (version,) in before + after)
    assert not [place for place, old, new in zip(places, before, after, strict=True) if old == new]


def test_a_server_without_versions(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    with serve(tmp_path, _SilentServer) as url:
        assert versions(f"{url}/a.parquet") == [None]


@pytest.mark.parametrize(
    ("columns", "known"),
    [
        ([[3, -2], [None, 7]], (-2, 7)),
        ([[3, 2], [None, None]], None),
        ([[], []], None),
        ([["a"], ["b"]], None),
    ],
)
def test_the_range_of_ids_by_the_footers(
    tmp_path: Path, columns: list[list[Any]], known: tuple[int, int] | None
) -> None:
    """Over all files and both id columns only. None if a row group lacks statistics."""
    types = [pa.string() if "a" in columns[0] else pa.int64()] * 2
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    table = pa.table({"src": arrays[0], "weight": pa.array([99] * len(columns[0])), "dst": arrays[1]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert open_source(str(tmp_path)).id_range == known
    if known:
        pq.write_table(table.slice(0, 1), tmp_path / "b.parquet", row_group_size=1)
        assert open_source(str(tmp_path)).id_range is None  # a row group with nulls only
        more = pa.table({"src": pa.array([50], pa.int32()), "dst": pa.array([60], pa.uint8())})
        pq.write_table(more, tmp_path / "b.parquet")
        assert open_source(str(tmp_path)).id_range == (-2, 60)
        pq.write_table(more, tmp_path / "b.parquet", write_statistics=False)
        assert open_source(str(tmp_path)).id_range is None
