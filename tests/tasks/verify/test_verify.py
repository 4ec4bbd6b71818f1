"""Verification passes correct results, and the right check finds each kind of error."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_values import edge_values
from edgemill.tasks.errors import InputError, UsageError
from edgemill.tasks.publish.result_columns import edge_columns
from edgemill.tasks.verify.result import VerifyReport, verify
from examples import examples
from oracles import (
    brute_force_lambda,
    brute_force_support,
    brute_force_triangles,
    simple_edges,
    vertex_lambda,
)
from strategies import EdgeList, edge_lists, namings

# An edge joins a clique of six to a strip of triangles with a tail. There are duplicates, a loop at the clique and a
# vertex with only a loop.
ROWS: EdgeList = [
    *combinations(range(6), 2),
    *[(5, 6), (5, 7), (6, 7), (6, 8), (7, 8), (8, 9)],
    *[(1, 0), (5, 4), (7, 6), (3, 3), (10, 10)],
]


@dataclass
class Draft:
    """A result before it is written: tables as columns, and the manifest."""

    edges: dict[str, list[Any]]
    vertices: dict[str, list[Any]]
    manifest: dict[str, Any]
    id_type: pa.DataType
    edge_files: int = 2

    def write(self, out: Path) -> Path:
        source, target = list(self.edges)[:2]
        edges = _table(self.edges, {source: self.id_type, target: self.id_type})
        vertices = _table(self.vertices, {"id": self.id_type, "degree": pa.int64(), "triangles": pa.int64()})
        (out / "edges").mkdir(parents=True)
        (out / "vertices").mkdir()
        cuts = [edges.num_rows * number // self.edge_files for number in range(self.edge_files + 1)]
        for number in range(self.edge_files):
            part = edges.slice(cuts[number], cuts[number + 1] - cuts[number])
            pq.write_table(part, out / "edges" / f"part-{number:05d}.parquet", row_group_size=7)
        pq.write_table(vertices, out / "vertices" / "part-00000.parquet")
        self.manifest["outputs"] = [
            {
                "path": path.relative_to(out).as_posix(),
                "rows": pq.read_metadata(path).num_rows,
                "bytes": path.stat().st_size,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path in sorted(out.rglob("*.parquet"))
        ]
        (out / "manifest.json").write_text(json.dumps(self.manifest))
        return out


def _table(columns: dict[str, list[Any]], types: dict[str, pa.DataType]) -> pa.Table:
    return pa.table({name: pa.array(values, types.get(name, pa.int32())) for name, values in columns.items()})


LEFT = [own.name for own in edge_columns(True) if own.name != "support"]
"""Value columns of the edges of an exact result, without one."""


def draft(
    rows: list[tuple[Any, Any]],
    id_type: pa.DataType,
    source: str = "src",
    target: str = "dst",
    slack: int | None = None,
) -> Draft:
    """The correct result by the oracles. With slack, a result that did not converge, with intervals wider by the slack
    on both sides.
    """
    edges = sorted(simple_edges(rows))
    ids = sorted({vertex for row in rows for vertex in row})
    support, lam = brute_force_support(rows), brute_force_lambda(rows)
    columns = {"lambda": lam}
    if slack is not None:
        columns = {
            "lambda_low": {edge: max(0, lam[edge] - slack) for edge in edges},
            "lambda_high": {edge: min(support[edge], lam[edge] + slack) for edge in edges},
        }
    triangles_at = Counter(vertex for triangle in brute_force_triangles(rows) for vertex in triangle)
    degree = Counter(vertex for edge in edges for vertex in edge)
    at_edges = edge_values(*([values[edge] for edge in edges] for values in (support, *columns.values())))
    at_vertex = {name: vertex_lambda(bound, ids) for name, bound in columns.items()}
    self_loops = sum(u == v for u, v in rows)
    manifest: dict[str, Any] = {
        "input": {"source_column": source, "target_column": target, "id_type": str(id_type)},
        "counts": {
            "rows": len(rows),
            "self_loops": self_loops,
            "duplicates": len(rows) - self_loops - len(edges),
            "nulls_dropped": 0,
            "edges": len(edges),
            "vertices": len(ids),
            "triangles": sum(support.values()) // 3,
        },
        "partitions": [
            {"partition": number, "owned": owned, "inner": owned, "peripheral": 0, "cut": 0}
            for number, owned in enumerate((len(edges) // 2, len(edges) - len(edges) // 2))
        ],
        "converged": slack is None,
    }
    for key, bound in zip(("lambda", "lambda_high"), columns.values(), strict=False):
        manifest[key] = {
            "max": max(bound.values(), default=0),
            "sum": sum(bound.values()),
            "histogram": [list(pair) for pair in sorted(Counter(bound.values()).items())],
        }
    return Draft(
        edges={
            source: [u for u, _ in edges],
            target: [v for _, v in edges],
            **{name: values for name, (_, values) in at_edges.items()},
        },
        vertices={
            "id": ids,
            "degree": [degree[vertex] for vertex in ids],
            "triangles": [triangles_at[vertex] for vertex in ids],
            **{name: [bound[vertex] for vertex in ids] for name, bound in at_vertex.items()},
        },
        manifest=manifest,
        id_type=id_type,
    )


def write_input(path: Path, rows: list[tuple[Any, Any]], id_type: pa.DataType) -> Path:
    pq.write_table(
        _table({"src": [u for u, _ in rows], "dst": [v for _, v in rows]}, dict.fromkeys(("src", "dst"), id_type)), path
    )
    return path


def failures(report: VerifyReport) -> dict[str, str]:
    assert report.ok == all(ok for _, ok, _ in report.checks)
    return {name: detail for name, ok, detail in report.checks if not ok}


def test_a_correct_result_passes_every_check(tmp_path: Path) -> None:
    seen: list[str] = []
    out = draft(ROWS, pa.int64()).write(tmp_path / "out")
    report = verify(out, write_input(tmp_path / "in.parquet", ROWS, pa.int64()), progress=seen.append)
    assert failures(report) == {}
    columns = [own.name for own in edge_columns(True) if own.check is not None]
    names = ["manifest", "files", "tables", "order", "triangles", *columns, "λ not too high", "λ not too low"]
    assert seen == [check.name for check in report.checks] == [*names, "vertices", "totals", "input"]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_ids_of_any_type(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("verify")
    naming = data.draw(namings(12))
    rows = [(naming.names[u], naming.names[v]) for u, v in data.draw(edge_lists(12))]
    out = draft(rows, naming.type).write(folder / "out")
    assert failures(verify(out, write_input(folder / "in.parquet", rows, naming.type))) == {}


def test_other_column_names_nulls_and_split_input(tmp_path: Path) -> None:
    right = draft(ROWS, pa.int32(), "von", "nach")
    right.manifest["counts"]["rows"] += 2
    right.manifest["counts"]["nulls_dropped"] = 2
    out = right.write(tmp_path / "out")
    (tmp_path / "in" / "deep").mkdir(parents=True)
    rows: list[tuple[int | None, int | None]] = [(None, 1), *ROWS, (2, None)]
    for number, part in enumerate((rows[:9], rows[9:])):
        table = pa.table(
            {"nach": pa.array([v for _, v in part], pa.int32()), "von": pa.array([u for u, _ in part], pa.int32())}
        )
        pq.write_table(table, tmp_path / "in" / ("deep" if number else ".") / f"{number}.parquet", row_group_size=3)
    (tmp_path / "in" / "_notes.parquet").write_text("not part of it")
    for given_path in (tmp_path / "in", tmp_path / "in" / "**" / "[0-9].parquet"):
        assert failures(verify(out, given_path)) == {}


@pytest.mark.parametrize("slack", [0, 1, 2, 100])
def test_intervals_of_a_run_cut_short_pass(slack: int, tmp_path: Path) -> None:
    report = verify(draft(ROWS, pa.int64(), slack=slack).write(tmp_path / "out"))
    assert failures(report) == {}
    assert {"lower bounds", "upper bounds"} <= {check.name for check in report.checks}


Change = Callable[[Draft], None]


def put(table: str, column: str, row: int, value: Any) -> Change:
    return lambda it: getattr(it, table)[column].__setitem__(row, value)


def note(section: str, key: str, value: Any) -> Change:
    return lambda it: it.manifest[section].__setitem__(key, value)


def swap_rows(it: Draft) -> None:
    for column in it.edges.values():
        column[3], column[4] = column[4], column[3]


def turn_around(it: Draft) -> None:
    it.edges["src"][3], it.edges["dst"][3] = it.edges["dst"][3], it.edges["src"][3]


def repeat(it: Draft) -> None:
    for column in it.edges.values():
        column.insert(3, column[3])


def lower_the_clique(it: Draft) -> None:
    it.edges["lambda"][:15] = [3] * 15  # a valid assignment, but not the greatest


def forget_vertex(it: Draft) -> None:
    for column in it.vertices.values():
        del column[9]


def swap_vertices(it: Draft) -> None:
    for column in it.vertices.values():
        column[3], column[4] = column[4], column[3]


@pytest.mark.parametrize(
    ("change", "check", "detail"),
    [
        (lambda it: it.manifest.pop("converged"), "manifest", "KeyError 'converged'"),
        (lambda it: it.manifest["counts"].pop("rows"), "manifest", "KeyError 'rows'"),
        (lambda it: it.manifest.update(tracks={"next": 3, "again": 0, "new": 2}), "manifest", "KeyError 'continued'"),
        (lambda it: it.edges.pop("support"), "tables", f"has columns {['src', 'dst', *LEFT]}, not"),
        (put("edges", "support", 3, None), "tables", "support has 1 nulls"),
        (forget_vertex, "tables", "dst 9 in row 20 is not in the vertex table"),
        (swap_vertices, "tables", "vertices do not ascend: 4 is followed by 3"),
        (swap_rows, "order", "edge (0, 4) does not come after edge (0, 5)"),
        (turn_around, "order", "edge (4, 0): the source is not the smaller end"),
        (put("edges", "dst", 3, 0), "order", "edge (0, 0): the source is not the smaller end"),
        (repeat, "order", "edge (0, 4) does not come after edge (0, 4)"),
        (put("edges", "support", 3, 3), "support", "edge (0, 4): support is 4, not 3"),
        (put("edges", "lambda", 16, 2), "λ not too high", "edge (5, 7): 2 is not in 0 … 1, its support"),
        (put("edges", "lambda", 17, 2), "λ not too high", "edge (6, 7) has λ 2, but only 0 triangles"),
        (put("edges", "lambda", 0, -1), "λ not too high", "edge (0, 1): -1 is not in 0 … 4"),
        (put("edges", "lambda", 0, 2**31 - 1), "λ not too high", "edge (0, 1): 2147483647 is not in 0 … 4"),
        (put("edges", "lambda", 0, 3), "λ not too high", "but only"),
        (lower_the_clique, "λ not too low", "edge (0, 1) has λ 3, but is in a part"),
        (put("vertices", "degree", 5, 6), "vertices", "vertex 5: degree says 6, but is 7"),
        (put("vertices", "triangles", 0, 9), "vertices", "vertex 0: triangles says 9, but is 10"),
        (put("vertices", "lambda", 9, 1), "vertices", "vertex 9: λ says 1, but is 0"),
        (note("counts", "edges", 22), "totals", "counts.edges is 22; the tables give 21"),
        (note("counts", "vertices", 10), "totals", "counts.vertices is 10; the tables give 11"),
        (note("counts", "triangles", 21), "totals", "counts.triangles is 21; the tables give 22"),
        (note("lambda", "max", 5), "totals", "lambda.max is 5; the tables give 4"),
        (note("lambda", "sum", 5), "totals", "lambda.sum is 5"),
        (
            note("lambda", "histogram", [[0, 21]]),
            "totals",
            "lambda.histogram is [[0, 21]]; the tables give [[0, 1], [1",
        ),
        (note("lambda", "vertices", [[4, 5]]), "totals", "lambda.vertices is [[4, 5]]; the tables give [["),
        (note("input", "id_type", "int32"), "tables", "the ids are int64; the manifest says int32"),
        (lambda it: it.manifest["partitions"].pop(), "totals", "the partitions own 10 edges; there are 21"),
        (lambda it: it.manifest["partitions"][1].update(cut=9), "totals", "partition 1 owns 11 edges, but counts 20"),
        (
            lambda it: it.manifest.update(bounding={"shards": {}}),
            "totals",
            "the partitions own 21 edges; those in triangles are 20",
        ),
        (note("counts", "self_loops", 1), "totals", "counts.rows is 26; the tables give 25"),
    ],
)
def test_planted_errors(change: Change, check: str, detail: str, tmp_path: Path) -> None:
    wrong = draft(ROWS, pa.int64())
    change(wrong)
    found = failures(verify(wrong.write(tmp_path / "out")))
    assert detail in found[check], found


def test_a_wrong_bound_of_one_edge_is_found(tmp_path: Path) -> None:
    """Each edge by itself, one too low and one too high."""
    for row in range(21):
        for step in (-1, 1):
            wrong = draft(ROWS, pa.int64())
            wrong.edges["lambda"][row] += step
            found = failures(verify(wrong.write(tmp_path / f"{row}{step}")))
            assert {"λ not too high", "λ not too low"} & found.keys()


@pytest.mark.parametrize(
    ("change", "check", "detail"),
    [
        (put("edges", "lambda_low", 0, 5), "lower bounds", "edge (0, 1): 5 is not in 0 … 4"),
        (put("edges", "lambda_low", 15, 1), None, ""),
        (put("edges", "lambda_low", 4, 4), None, ""),  # correct, although no other lower bound backs it
        (put("edges", "lambda_high", 4, 3), "upper bounds", "edge (0, 5) has upper bound 3, but λ is 4"),
        (put("edges", "lambda_high", 17, 0), "upper bounds", "edge (6, 7)"),
        (put("edges", "lambda_high", 4, 2), "upper bounds", "upper bound 2 is below lower bound 3"),
        (put("vertices", "lambda_high", 9, 1), "vertices", "vertex 9: upper bound says 1, but is 0"),
    ],
)
def test_planted_errors_in_intervals(change: Change, check: str | None, detail: str, tmp_path: Path) -> None:
    wrong = draft(ROWS, pa.int64(), slack=1)
    change(wrong)
    found = failures(verify(wrong.write(tmp_path / "out")))
    if check is None:
        assert not {"lower bounds", "upper bounds"} & found.keys()
    else:
        assert detail in found[check], found


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "detail"),
    [
        (truncate, "bytes; the manifest says"),
        (flip, "has changed: its SHA-256 is"),
        (Path.unlink, "edges/part-00001.parquet is missing"),
        (
            lambda path: path.with_name("part-00009.parquet").write_bytes(b""),
            "part-00009.parquet is not in the manifest",
        ),
    ],
)
def test_damaged_files(harm: Callable[[Path], None], detail: str, tmp_path: Path) -> None:
    out = draft(ROWS, pa.int64()).write(tmp_path)
    harm(out / "edges" / "part-00001.parquet")
    assert detail in failures(verify(out))["files"]


def test_wrong_row_count_in_the_manifest(tmp_path: Path) -> None:
    out = draft(ROWS, pa.int64()).write(tmp_path)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["outputs"][0]["rows"] += 1
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert re.search("10 rows; .*manifest says 11", failures(verify(out))["files"])


@pytest.mark.parametrize(
    ("rows", "id_type", "detail"),
    [
        (ROWS[:4] + ROWS[5:], pa.int64(), "edge (0, 5) is not in the input"),
        ([*ROWS, (0, 9)], pa.int64(), "edge (0, 9) is not in the result"),
        ([*ROWS, (0, 77)], pa.int64(), "dst 77 is not in the vertex table"),
        ([row for row in ROWS if row != (10, 10)], pa.int64(), "vertex 10 is not in the input"),
        ([*ROWS, (1, 1)], pa.int64(), "counts.rows is 26; the input gives 27"),
        ([(0, 0) if row == (1, 0) else row for row in ROWS], pa.int64(), "counts.self_loops is 2; the input gives 3"),
        (ROWS, pa.int32(), "the ids are int64; in the input they are int32"),
        ([(str(u), str(v)) for u, v in ROWS], pa.string(), "src '0' is not in the vertex table"),
    ],
)
def test_another_input(rows: list[tuple[Any, Any]], id_type: pa.DataType, detail: str, tmp_path: Path) -> None:
    out = draft(ROWS, pa.int64()).write(tmp_path / "out")
    assert detail in failures(verify(out, write_input(tmp_path / "in.parquet", rows, id_type)))["input"]


def test_results_that_cannot_be_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="such folder"):
        verify(tmp_path / "nowhere")
    assert "is not there" in failures(verify(tmp_path))["manifest"]
    out = draft(ROWS, pa.int64()).write(tmp_path / "out")
    with pytest.raises(InputError, match=r"no file .*input"):
        verify(out, tmp_path / "nothing.parquet")
    (tmp_path / "text.parquet").write_text("src,dst\n1,2\n")
    with pytest.raises(InputError, match=r"text\.parquet: cannot be read"):
        verify(out, tmp_path / "text.parquet")
    with pytest.raises(InputError, match="integers, strings nor UUIDs"):
        verify(out, write_input(tmp_path / "float.parquet", [(0.5, 1.5)], pa.float64()))
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match="column 'dst'"):
        verify(out, tmp_path / "other.parquet")
