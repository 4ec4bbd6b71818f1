"""The row groups that the explorer reads, damage, and results that are replaced or lost."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import InputError, Result, find_dn_graph, mine
from edgemill.pipeline.explorer.queries import Queries
from edgemill.pipeline.results.lookup import Group, sorted_table
from edgemill.tasks.storage.folders import Folder
from serving import answer, ask, serving


def spoil(result: Result, table: str, key: str, wanted: Any) -> int:
    """Damage every row group of a table that cannot hold a key. Returns their number."""
    spoilt = 0
    for path in sorted((result.path / table).glob("*.parquet")):
        content = bytearray(path.read_bytes())
        footer = pq.read_metadata(path)
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            columns = [group.column(at) for at in range(group.num_columns)]
            (ids,) = (column.statistics for column in columns if column.path_in_schema == key)
            if not ids.min <= wanted <= ids.max:
                spoilt += 1
                for column in columns:
                    at = column.data_page_offset + column.total_compressed_size - 1
                    if column.dictionary_page_offset:
                        at = column.dictionary_page_offset + column.total_compressed_size - 1
                    content[at] ^= 0xFF
        path.write_bytes(content)
    return spoilt


def test_one_vertex_and_one_dn_graph_read_the_row_groups_that_can_hold_them(facebook: Result, tmp_path: Path) -> None:
    """All other row groups are damaged, so reading one would fail."""
    result = Result(shutil.copytree(facebook.path, tmp_path / "out"))
    group = max(result.dn_graphs.to_table().to_pylist(), key=lambda row: row["lambda"])
    assert spoil(result, "vertices", "id", 2345) > 5
    spoil(result, "dn_graph_members", "dn_graph", group["id"])
    queries = Queries(Result(result.path))
    vertex = queries.vertex(pa.scalar(2345))
    assert vertex is not None
    assert vertex.id == 2345
    assert len(queries.members(find_dn_graph(result, group["id"]), 10**6)) == group["vertices"]
    with pytest.raises(InputError, match="damaged"):
        queries.vertex(pa.scalar(1))


def test_edges_among_a_few_vertices_read_few_row_groups(facebook: Result, tmp_path: Path) -> None:
    result = Result(shutil.copytree(facebook.path, tmp_path / "out"))
    source, target, lam = (result.edges.to_table()[name].to_pylist() for name in ("src", "dst", "lambda"))
    at = len(source) // 2
    wanted = pa.array(sorted([source[at], target[at]]))
    group = Group(0, lam[at], None, 2, 1, dn_graph=True)
    (found,) = Queries(result).edges_among(wanted, group, 10**9, 10**9).table.to_pylist()
    assert list(found.values()) == [source[at], target[at], lam[at]]
    assert Queries(result).edges_among(wanted, group, 10**9, 10**9).rows < 0.1 * len(source)


def test_damage_is_reported_and_not_shown(facebook: Result, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = Result(shutil.copytree(facebook.path, tmp_path / "out"))
    spoil(result, "vertices", "id", -1)
    with serving(Result(result.path)) as served:
        status, said = ask(served, "vertex", id=1)
        assert status == 500
        assert said["error"]
        assert "Traceback" not in capfd.readouterr().err
        assert answer(served, "largest")["count"] == 7


def test_a_result_that_another_run_replaces_is_not_mixed_with_it(facebook: Result, tmp_path: Path) -> None:
    out = shutil.copytree(facebook.path, tmp_path / "out")
    with serving(Result(out)) as served:
        assert answer(served, "vertex", id=1)["id"] == "1"
        os.link(out / "manifest.json", tmp_path / "backup")
        (out / "manifest.json").chmod(0o600)
        assert answer(served, "vertex", id=1)["id"] == "1"
        shutil.move(out, tmp_path / "old")
        assert ask(served, "vertex", id=1)[0] == 409
        shutil.copytree(facebook.path, out)
        assert ask(served, "vertex", id=1)[0] == 200  # a copy of the same result
        shutil.rmtree(out)
        mine(pa.table({"src": [1, 2, 1], "dst": [2, 3, 3]}), out, report=False)
        for question in ("result", "largest", "hierarchy"):
            status, said = ask(served, question)
            assert status == 409 and re.match("another run .*replaced this result", said["error"])


class HTTPClientError(Exception):
    """Like an error of botocore, it is not an OSError."""


@pytest.mark.parametrize("error", [ConnectionResetError(104, "reset"), HTTPClientError("reset")], ids=repr)
def test_a_lost_store_is_reported(
    facebook: Result, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception
) -> None:
    """What is in memory is answered all the same, and nothing is taken for another run's result."""
    out = Folder("memory://explored/out")
    out.files.put(f"{facebook.path}/", out.path(), recursive=True)

    def gone(*_: object, **__: object) -> None:
        raise error

    with serving(Result(out)) as served:
        monkeypatch.setattr(type(out.files), "ukey", gone)
        monkeypatch.setattr(type(out.files), "_open", gone)
        assert ask(served, "result")[0] == 200
        status, said = ask(served, "vertex", id=1)
    assert (status, said["error"]) == (500, f"cannot read {out}: {error}")
    assert capfd.readouterr().err == f"Error: cannot read {out}: {error}\n"


def test_a_cyclic_hierarchy_ends(facebook: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = Queries(facebook)
    (root,) = (row["component"] for row in facebook.hierarchy.to_table().to_pylist() if row["parent"] is None)
    row = queries.component(root)
    assert row is not None
    circle = {"component": root, "k": row.k, "parent": root, "vertices": row.vertices, "edges": row.edges}
    monkeypatch.setattr(sorted_table(facebook, "hierarchy"), "row", lambda key: circle)
    with pytest.raises(InputError, match=r"the result is damaged: .*: component \d+ .*the parent"):
        queries.path(root)
