"""Whole runs on inputs of every format and type of ids, on rows of a condition, and on tables of two sets of ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import runs
from edgemill.pipeline import Result, UsageError, mine
from edgemill.pipeline.compare.diff import diff
from edgemill.pipeline.queries.groups import find_vertex, groups_of
from edgemill.tasks.ingest import reading
from edgemill.tasks.inputs.sources import Piece, Source
from edgemill.tasks.verify.result import verify
from files_of_rows import FILES, SNAP
from in_process import call
from s3_servers import s3_server

HOW: dict[str, Any] = {"device": "cpu", "output.report": False}
STORED = ("rows.csv", "rows.jsonl", "rows.tsv.zst", "rows.arrow")
CLIQUE = [(u, v) for v in range(5) for u in range(v)]
ROWS = [*CLIQUE, (3, 7), (7, 8), (8, 3), (1, 0), (4, 4)]
TABLE = pa.table({"src": [u for u, _ in ROWS], "dst": [v for _, v in ROWS]})
LAMBDA = {**dict.fromkeys(CLIQUE, 3), (3, 7): 1, (3, 8): 1, (7, 8): 1}


def check(out: Path, rows: Path | str) -> None:
    """Verify the result against its input."""
    assert [f"{name}: {detail}" for name, ok, detail in verify(out, rows).checks if not ok] == []


@pytest.mark.parametrize(
    "name",
    [
        "rows.parquet",
        "windows.csv",
        "rows.csv.gz",
        "rows.tsv.zst",
        "rows.jsonl",
        "rows.arrow",
        "rows.arrows",
        "snap.txt",
    ],
)
def test_every_format_gives_the_same_answer(tmp_path: Path, name: str) -> None:
    writes = {**FILES, **SNAP}
    writes[name](TABLE, tmp_path / name)
    result = mine(tmp_path / name, tmp_path / "out", **HOW)
    assert runs.column(result, "lambda") == LAMBDA
    assert result.manifest.counts.model_dump() == {
        **{"rows": 15, "self_loops": 1, "duplicates": 1, "nulls_dropped": 0, "filtered": 0},
        **{
            "edges": 13,
            "vertices": 7,
            "triangles": 11,
            "butterflies": None,
            "comments": 2 if name == "snap.txt" else 0,
        },
    }
    assert mine(tmp_path / name, tmp_path / "out", **HOW).manifest.run == result.manifest.run  # up to date
    check(tmp_path / "out", tmp_path / name)


@pytest.mark.parametrize("names", [STORED[:1], pytest.param(STORED, marks=pytest.mark.slow)], ids=["one", "all"])
def test_files_in_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> None:
    """A split text file, a compressed one, and an Arrow file, of which a task reads some batches."""
    monkeypatch.setattr("edgemill.tasks.inputs.head.SPLIT_BYTES", 16)
    with s3_server() as options:
        store = fsspec.filesystem("s3", **options)
        for name in names:
            FILES[name](TABLE, tmp_path / name)
            store.put(str(tmp_path / name), f"bucket/{name}/{name}")
            how = {**HOW, "ingest.rows_per_block": 4, "input.storage_options": options}
            result = mine(f"s3://bucket/{name}", tmp_path / "out" / name, **how)
            assert runs.column(result, "lambda") == LAMBDA
            assert result.manifest.input.fingerprint is not None


def uuid(number: int) -> UUID:
    return UUID(int=number * 2**120 + 5)


@pytest.mark.parametrize(
    "kind", [pytest.param(pa.binary(16), marks=pytest.mark.slow), pa.uuid()], ids=["16 bytes", "arrow.uuid"]
)
def test_uuids(tmp_path: Path, kind: pa.DataType) -> None:
    columns = []
    for column in TABLE.columns:
        storage = pa.array([uuid(number).bytes for number in column.to_pylist()], pa.binary(16))
        columns.append(storage if kind == pa.binary(16) else pa.ExtensionArray.from_storage(kind, storage))
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns, names=["src", "dst"]), rows, row_group_size=4)
    out = tmp_path / "out"
    result = mine(rows, out, partitions=2, **HOW)
    ids = {(uuid(u).bytes, uuid(v).bytes): lam for (u, v), lam in LAMBDA.items()}
    assert runs.column(result, "lambda") == ids
    assert result.manifest.input.id_type == ("uuid" if kind == pa.uuid() else "fixed_size_binary[16]")
    for path in out.rglob("vertices/*.parquet"):
        logical = pq.ParquetFile(path).schema.column(0).logical_type.type
        assert logical == ("UUID" if kind == pa.uuid() else "NONE")
    check(out, rows)
    for given in (uuid(7), str(uuid(7)), str(uuid(7)).upper(), uuid(7).bytes, uuid(7).hex):
        assert find_vertex(result, given).id == str(uuid(7))
    with pytest.raises(UsageError, match="not an id of"):
        find_vertex(result, "7")
    assert groups_of(result, uuid(7))[0].k == 1
    told = call("of", out, uuid(7))
    assert (told.exit_code, str(uuid(7)) in told.stdout) == (0, True)
    (best, *_) = [json.loads(line) for line in call("top", out, "--members", 9, "--json").stdout.splitlines()]
    assert best["members"] == [str(uuid(number)) for number in range(5)]
    csv = call("subgraph", out, "--dn-graph", best["id"]).stdout.splitlines()
    assert csv[1].split(",")[:4] == [f'"{uuid(0)}"', f'"{uuid(1)}"', "3", "3"]
    assert csv[1].count(",") == 1 + len(runs.EDGE_COLUMNS)
    graphml = call("subgraph", out, "--dn-graph", best["id"], "--format", "graphml").stdout
    assert f'<node id="{uuid(4)}"/>' in graphml
    other = mine(rows, tmp_path / "other", **HOW)
    changed = diff(result, other).edges
    assert changed is not None
    assert (changed.unchanged, changed.appeared) == (13, 0)


def test_ids_above_int64(tmp_path: Path) -> None:
    columns = [pa.array([2**64 - 1 - number for number in column.to_pylist()], pa.uint64()) for column in TABLE.columns]
    rows, out = tmp_path / "rows.parquet", tmp_path / "out"
    pq.write_table(pa.table(columns, names=["src", "dst"]), rows)
    result = mine(rows, out, partitions=2, **HOW)
    assert runs.column(result, "lambda") == {(2**64 - 1 - v, 2**64 - 1 - u): lam for (u, v), lam in LAMBDA.items()}
    assert result.vertices.schema.field("id").type == pa.uint64()
    assert find_vertex(result, str(2**64 - 1)).degree == 4
    assert find_vertex(result, 2**64 - 9).lam == 1
    check(out, rows)
    changed = diff(result, mine(rows, tmp_path / "other", **HOW)).edges
    assert changed is not None
    assert changed.unchanged == 13


def days(folder: Path) -> Path:
    """Edges of three days in Hive's folders, the clique on the last, in two row groups each."""
    for day, rows in {1: [(1, 2), (2, 3)], 2: [(3, 7), (7, 8)], 3: CLIQUE}.items():
        (folder / f"dt=2026-11-0{day}").mkdir(parents=True)
        table = pa.table(
            {"src": [u for u, _ in rows], "dst": [v for _, v in rows], "weight": [at / 10 for at in range(len(rows))]}
        )
        pq.write_table(table, folder / f"dt=2026-11-0{day}" / "a.parquet", row_group_size=(len(rows) + 1) // 2)
    return folder


def test_where_selects_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, out = days(tmp_path / "rows"), tmp_path / "out"
    read: list[tuple[str, tuple[int, ...]]] = []
    whole = reading._read_whole

    def noted(source: Source, piece: Piece) -> pa.Table:
        read.append((source.files[piece.file].path, piece.row_groups))
        return whole(source, piece)

    monkeypatch.setattr(reading, "_read_whole", noted)
    found = call("run", "--input", rows, "--output", out, "--where", "dt >= '2026-11-02' and weight > 0.4")
    assert (found.exit_code, found.stderr) == (0, "")
    result = Result(out)
    assert sorted(runs.column(result, "lambda")) == sorted(CLIQUE[5:])
    assert [(Path(path).parent.name, groups) for path, groups in read] == [("dt=2026-11-03", (1,))]
    where = result.manifest.input.where
    assert where is not None
    assert (where.condition, where.files_left_out) == ("dt >= '2026-11-02' and weight > 0.4", 1)
    assert where.types == {"dt": "date32[day]", "weight": "double"}
    assert (result.manifest.counts.rows, result.manifest.counts.filtered) == (12, 7)
    check(out, rows)
    shown = call("show", out).stdout
    assert "7 rows that do not meet the condition" in shown
    assert all(fact in shown for fact in ("'2026-11-02'", "0.4"))
    again = call("run", "--input", rows, "--output", out, "--where", "weight > 0.4")
    assert (
        again.exit_code,
        all(fact in again.stderr for fact in ("'2026-11-02'", "0.4")),
    ) == (2, True)


def test_verify_finds_a_condition_that_left_out_too_much(tmp_path: Path) -> None:
    rows, out = days(tmp_path / "rows"), tmp_path / "out"
    mine(rows, out, where="dt <> '2026-11-01'", **HOW)
    (rows / "dt=2026-11-02" / "a.parquet").rename(rows / "dt=2026-11-01" / "b.parquet")
    assert not verify(out, rows).ok


@pytest.mark.parametrize(
    ("where", "code", "text"),
    [
        (
            "wieght > 1",
            2,
            "the input has no column 'wieght'; it has 'src', 'dst', 'weight', 'dt', at character 1",
        ),
        ("weight >", 2, "the condition ends here, and a column or a value is missing, at character 9 of"),
        ("dt = 5", 2, "dt is date32[day], and 5 is not a value of that type, at character 6 of: dt = 5"),
        ("dt > '2027-01-01'", 3, "selects no file: no folder of the 3 files matches"),
    ],
)
def test_conditions_that_do_not_match_the_columns(tmp_path: Path, where: str, code: int, text: str) -> None:
    found = call("run", "--input", days(tmp_path / "rows"), "--output", tmp_path / "out", "--where", where)
    assert (found.exit_code, text in found.stderr, "Traceback" in found.stderr) == (code, True, False), found.stderr


def test_nulls_that_a_condition_leaves_out_are_allowed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"src": [1, None, 2], "dst": [2, 3, None], "n": [1, 2, 3]}), tmp_path / "rows.parquet")
    found = call("run", "--input", tmp_path / "rows.parquet", "--output", tmp_path / "out", "--where", "n > 1")
    assert found.exit_code == 3
    assert (
        "2 rows of input" in found.stderr
        and all(fact in found.stderr for fact in ("'src'", "'dst'"))
        and "--set input.nulls=drop" in found.stderr
    )
    result = mine(tmp_path / "rows.parquet", tmp_path / "out", where="n < 3", **{**HOW, "input.nulls": "drop"})
    assert (result.manifest.counts.nulls_dropped, result.manifest.counts.filtered) == (1, 1)
    check(tmp_path / "out", tmp_path / "rows.parquet")


def sales(folder: Path) -> Path:
    """People and items, both numbered from 1. As one set of ids they have a triangle and a self-loop."""
    path = folder / "sales.parquet"
    pq.write_table(pa.table({"person": [1, 1, 2, 3, 3], "item": [2, 3, 3, 3, 1]}), path)
    return path


def test_guessed_columns_are_reported(tmp_path: Path) -> None:
    found = call("run", "--input", sales(tmp_path), "--output", tmp_path / "out")
    note = (
        "columns 'person' and 'item' are taken as the two ends of an edge, with ids of one kind: name them with "
        "--source-column and --target-column, or, if the same id means different things in each, say --bipartite prefix"
    )
    assert (found.exit_code, found.stderr) == (0, f"note: {note}\n")
    assert Result(tmp_path / "out").manifest.input.notes == [note]
    assert Result(tmp_path / "out").manifest.counts.triangles == 1  # people and items alone have no triangle
    assert note in call("plan", "--input", tmp_path / "sales.parquet", "--output", tmp_path / "x").stdout
    html = (tmp_path / "out" / "report.html").read_text()
    assert "are taken as the two ends of an edge" in html
    named = call(
        *("run", "--input", tmp_path / "sales.parquet", "--output", tmp_path / "named"),
        *("--source-column", "person", "--target-column", "item"),
    )
    assert (named.exit_code, named.stderr) == (0, "")


def test_two_sets_of_ids_are_kept_apart(tmp_path: Path) -> None:
    rows, out = sales(tmp_path), tmp_path / "out"
    found = call("run", "--input", rows, "--output", out, "--bipartite", "prefix")
    assert found.exit_code == 0
    assert "note: no edge is in a triangle, so every λ is 0" in found.stderr
    result = Result(out)
    assert set(runs.vertex_column(result, "degree")) == {f"person:{n}" for n in (1, 2, 3)} | {
        f"item:{n}" for n in (1, 2, 3)
    }
    assert (result.manifest.counts.edges, result.manifest.counts.self_loops, result.manifest.counts.triangles) == (
        5,
        0,
        0,
    )
    assert any("no edge is in a triangle" in note for note in result.manifest.input.notes)
    check(out, rows)


@pytest.mark.parametrize("workers", [[], ["--partitions", "2"]])
def test_an_id_in_both_columns_is_refused(tmp_path: Path, workers: list[str]) -> None:
    found = call("run", "--input", sales(tmp_path), "--output", tmp_path / "out", "--bipartite", "refuse", *workers)
    assert found.exit_code == 3
    assert all(fact in found.stderr for fact in ("'person'", "'item'"))
    apart = tmp_path / "apart.parquet"
    pq.write_table(pa.table({"person": ["p1", "p2"], "item": ["i1", "i1"]}), apart)
    result = mine(apart, tmp_path / "out", bipartite="refuse", **HOW)
    assert result.manifest.counts.edges == 2
    with pytest.raises(UsageError, match="could still"):
        pq.write_table(pa.table({"a": ["1"], "a:b": ["2"]}), apart)
        mine(apart, tmp_path / "x", bipartite="prefix", **HOW)


def test_the_layout_of_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / "snap.txt").write_text("# Nodes\n1\t2\n2\t3\n1\t3\n")
    plan = call("plan", "--input", tmp_path / "snap.txt", "--output", tmp_path / "out").stdout
    assert "~3 rows" in plan
    assert (
        "CSV: tab between fields, no names in the first line, lines that begin with # are skipped; the number" in plan
    )
    found = call("run", "--input", tmp_path / "snap.txt", "--output", tmp_path / "out")
    assert found.stderr == (
        f"note: {tmp_path / 'snap.txt'} has no names of columns in its first line: they are called src, dst\n"
        f"note: 1 line was skipped as comments, such as '# Nodes' in {tmp_path / 'snap.txt'}\n"
    )
    layout = Result(tmp_path / "out").manifest.input.layout
    assert layout is not None
    assert (layout.delimiter, layout.header, layout.comment) == ("\t", False, "#")
    events = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    told = next(event for event in events if event["event"] == "input")
    assert (told["format"], told["layout"]["types"]) == ("csv", [["src", "int64"], ["dst", "int64"]])


def test_least_rows(tmp_path: Path) -> None:
    (tmp_path / "snap.txt").write_text("1\t2\n2\t3\n1\t3\n")
    run = ("run", "--input", tmp_path / "snap.txt", "--output", tmp_path / "out", "--set")
    few = call(*run, "input.least_rows=4")
    assert (few.exit_code, "3 rows" in few.stderr) == (8, True)
    enough = call("run", "--input", tmp_path / "snap.txt", "--output", tmp_path / "out", "--set", "input.least_rows=3")
    assert enough.exit_code == 0


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("src,dst\n1,2\n")
    first = mine(path, tmp_path / "out", **HOW)
    path.write_text("src,dst\n1,3\n")
    with pytest.raises(UsageError) as caught:
        mine(path, tmp_path / "out", **HOW)
    assert any("were written" in note for note in getattr(caught.value, "__notes__", []))
    assert Result(tmp_path / "out").manifest.run == first.manifest.run


def test_partition_columns_of_a_delta_table(tmp_path: Path) -> None:
    table = pa.table({"src": [1, 2, 1, 4], "dst": [2, 3, 3, 5], "dt": ["2026-11-01"] * 3 + ["2026-11-02"]})
    write_deltalake(str(tmp_path / "t"), table, partition_by=["dt"])
    result = mine(tmp_path / "t", tmp_path / "out", where="dt < '2026-11-02'", **HOW)
    assert runs.column(result, "lambda") == {(1, 2): 1, (1, 3): 1, (2, 3): 1}
    where = result.manifest.input.where
    assert where is not None and where.files_left_out == 1
    check(tmp_path / "out", tmp_path / "t")
