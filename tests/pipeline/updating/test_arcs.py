"""Nights whose programs use directions and weights: λ from what changed, and programs over the edges of today."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import runs
from edgemill.pipeline import InputError, Result, UsageError, mine, update

Arcs = dict[tuple[int, int], float]
"""(source, target) → weight"""

ALL = ("pagerank", "components", "labels", "coreness", "clustering", "bfs", "hits", "strong_components")
KINDS, WAYS = ("directed", "weighted", "both"), ("weights", "directions", "edges")
QUICK = {("directed", "edges"), ("both", "weights")}
CASES = [
    pytest.param(kind, how, marks=[] if (kind, how) in QUICK else pytest.mark.slow) for kind in KINDS for how in WAYS
]
"""What programs read, and what changes."""
TABLES = ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members")
RANKS_APART = 2 * 1e-9 * 0.85 / 0.15
"""Most by which PageRank differs between two ways to its limit, in total."""


def drawn(seed: int) -> Arcs:
    """Cliques with edges in one direction or both, which lie on a ring, and weights."""
    own = random.Random(seed)
    pairs = {(5 * c + u, 5 * c + v) for c in range(5) for v in range(5) for u in range(v)}
    pairs |= {(5 * c, (5 * c + 6) % 25) for c in range(5)}
    arcs: Arcs = {}
    for pair in sorted(pairs):
        for one in own.choice(([pair], [pair[::-1]], [pair, pair[::-1]])):
            arcs[one] = float(own.randint(1, 9))
    return arcs


def table(arcs: Arcs, text: bool) -> pa.Table:
    names = [[f"v{arc[end]:02d}" if text else arc[end] for arc in arcs] for end in (0, 1)]
    ends = [pa.array(own, pa.string() if text else pa.int64()) for own in names]
    return pa.table({"src": ends[0], "dst": ends[1], "cost": pa.array(list(arcs.values()), pa.float64())})


def changed(arcs: Arcs, how: str) -> Arcs:
    """The arcs of the next day."""
    if how == "weights":
        return {arc: weight + 1 for arc, weight in arcs.items()}
    if how == "directions":
        return {arc[::-1]: weight for arc, weight in arcs.items()}
    kept = {arc: weight for arc, weight in arcs.items() if not {0, 1} <= set(arc) and 24 not in arc}
    return kept | {(3, 26): 2.0, (26, 4): 1.0, (26, 2): 5.0, (13, 7): 1.0}


def undirected(arcs: Arcs) -> Arcs:
    """The smaller weight of both directions, from the smaller vertex to the larger one."""
    made: Arcs = {}
    for (u, v), weight in arcs.items():
        edge = (min(u, v), max(u, v))
        made[edge] = min(weight, made.get(edge, weight))
    return made


def settings_for(kind: str) -> dict[str, Any]:
    """Settings with all programs that run in the process of an update."""
    start = {"source": "v03" if kind == "both" else "3"}
    own: dict[str, Any] = {"device": "cpu", "report": False, "bfs": start, "programs": ("lambda", *ALL)}
    own["ingest"] = {"rows_per_block": 20}  # so that there are several buckets, if there are several threads
    if kind != "weighted":
        own["directed"] = True
    if kind != "directed":
        own |= {"weight_column": "cost", "sssp": start, "pagerank": {"weighted": True}, "input": {"repeats": "min"}}
        own["programs"] += ("sssp",)
    return own


def found(result: Result) -> tuple[list[list[dict[str, Any]]], np.ndarray[Any, Any]]:
    """All tables without what names a track, and the ranks."""
    read = {name: getattr(result, name).to_table() for name in TABLES}
    ranks = read["vertices"]["pagerank"].to_numpy()
    plain = [
        one.drop_columns([name for name in ("track", "pagerank") if name in one.column_names]) for one in read.values()
    ]
    return [one.to_pylist() for one in plain], ranks


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_a_night(tmp_path: Path, kind: str, how: str) -> None:
    """Every table is that of a run from nothing, and λ was found from what changed."""
    text, own = kind == "both", settings_for(kind)
    programs = own["programs"]
    first, second = (table(arcs, text) for arcs in (drawn(1), changed(drawn(1), how)))
    base = mine(first, tmp_path / "base", incremental="auto", **own)
    night = mine(second, tmp_path / "night", previous=str(base.path), incremental="always", **own)
    run = mine(second, tmp_path / "run", **own)
    (tables, ranks), (expected, ranks_of_run) = found(night), found(run)
    assert tables == expected
    assert np.abs(ranks - ranks_of_run).sum() < RANKS_APART
    went = night.manifest.update
    assert went is not None and went.way == "changes" and (went.inserted + went.deleted > 0) == (how == "edges")
    if (kind, how) == ("directed", "weights"):  # which are not read, so nothing has changed
        assert went.files_kept == len(night.manifest.outputs)
        return
    begun = {record.name: record.begun for record in night.manifest.programs}
    assert begun["pagerank"] == "earlier"
    assert begun["components"] == ("nothing" if how == "edges" else "kept")
    assert begun["bfs"] == ("nothing" if kind != "weighted" or how == "edges" else "kept")
    assert {begun[name] for name in programs[3:] if name != "bfs"} == {"nothing"}
    assert runs.flaws(night.path) == []


def test_programs_that_read_directions_for_the_first_time(tmp_path: Path) -> None:
    """Nothing is taken from values of the same programs over the same edges without directions."""
    own: dict[str, Any] = {"device": "cpu", "report": False, "programs": ("lambda", *ALL), "bfs": {"source": "3"}}
    rows = table(drawn(2), False)
    base = mine(rows, tmp_path / "base", incremental="auto", **own)
    night = mine(rows, tmp_path / "night", previous=str(base.path), incremental="always", directed=True, **own)
    run = mine(rows, tmp_path / "run", directed=True, **own)
    (tables, ranks), (expected, ranks_of_run) = found(night), found(run)
    assert tables == expected and np.array_equal(ranks, ranks_of_run)
    assert {record.begun for record in night.manifest.programs} == {"nothing"}


def test_weights_that_a_run_refuses(tmp_path: Path) -> None:
    """A night refuses them, too, and leaves no output."""
    own: dict[str, Any] = {"device": "cpu", "report": False, "weight_column": "cost", "input": {"repeats": "min"}}
    own |= {"programs": ("lambda", "pagerank"), "pagerank": {"weighted": True}}
    base = mine(table(drawn(3), False), tmp_path / "base", incremental="auto", **own)
    night: dict[str, Any] = own | {"previous": str(base.path), "incremental": "always"}
    with pytest.raises(InputError, match="cost"):
        mine(table(drawn(3) | {(0, 9): -1.0}, False), tmp_path / "night", **night)
    both = {(2, 1): 3.0, (1, 2): 4.0}
    with pytest.raises(InputError, match="2 rows"):
        mine(table(drawn(3) | both, False), tmp_path / "night", **night | {"input": {"repeats": "error"}})
    assert {path.name for path in tmp_path.iterdir()} == {"base", "night.failed.log.jsonl"}


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_a_batch(tmp_path: Path, kind: str, how: str) -> None:
    """A batch of rows, twice in a row. The tables are those of a run over the rows after it."""
    text, weighted = kind == "both", kind != "directed"
    own = settings_for(kind)
    result = mine(table(drawn(1), text), tmp_path / "base", incremental="auto", **own)
    before = drawn(1)
    for night in range(2):
        after = changed(before, how)
        if kind == "weighted":  # the weight of an edge with two rows is the smaller one
            before, after = undirected(before), undirected(after)
        plus = {
            arc: weight for arc, weight in after.items() if arc not in before or (weighted and before[arc] != weight)
        }
        minus = {arc: 1.0 for arc in before if arc not in after} | {(98, 99): 1.0}
        parts = table(plus, text), table(minus, text).drop_columns(["cost"])
        made = update(result, tmp_path / f"out{night}", insert=parts[0], delete=parts[1], device="cpu", report=False)
        run = mine(table(after, text), tmp_path / f"run{night}", **own)
        (tables, ranks), (expected, ranks_of_run) = found(made), found(run)
        assert tables == expected
        assert np.abs(ranks - ranks_of_run).sum() < RANKS_APART
        went = made.manifest.update
        assert went is not None and went.way == "changes" and went.absent == 1
        assert went.present == sum(arc in before for arc in plus) and went.repeated == 0
        assert runs.flaws(made.path) == []
        result, before = made, after


def test_a_batch_for_programs_on_workers(tmp_path: Path) -> None:
    """The program `betweenness` computes everything, over the rows of the new graph with their directions."""
    own: dict[str, Any] = {"device": "cpu", "report": False, "directed": True, "programs": ("lambda", "betweenness")}
    own["incremental"] = "auto"
    base = mine(table(drawn(5), False), tmp_path / "base", **own)
    plus, minus = table({(1, 30): 1.0, (30, 2): 1.0}, False), table({next(iter(drawn(5))): 1.0}, False)
    made = update(base, tmp_path / "out", insert=plus, delete=minus, device="cpu", report=False)
    after = {arc: 1.0 for arc in list(drawn(5))[1:]} | {(1, 30): 1.0, (30, 2): 1.0}
    run = mine(table(after, False), tmp_path / "run", **own)
    assert made.manifest.update is None
    again = update(made, tmp_path / "again", delete=table({(1, 30): 1.0}, False), device="cpu", report=False)
    after.pop((1, 30))
    last = mine(table(after, False), tmp_path / "last", **own)
    for one, other in ((made, run), (again, last)):
        for name in ("edges", "vertices"):
            assert getattr(one, name).to_table().to_pylist() == getattr(other, name).to_table().to_pylist()


def test_vertices_without_edges(tmp_path: Path) -> None:
    """A row from a vertex to itself adds the vertex, and one to delete takes it away, as for any batch."""
    own = settings_for("both")
    base = mine(table(drawn(1), True), tmp_path / "base", incremental="auto", **own)
    one = update(base, tmp_path / "one", insert=table({(40, 40): 2.0}, True), device="cpu", report=False)
    assert set(one.vertices.to_table()["id"].to_pylist()) - set(base.vertices.to_table()["id"].to_pylist()) == {"v40"}
    loop = table({(40, 40): 2.0}, True).drop_columns(["cost"])
    two = update(one, tmp_path / "two", delete=loop, device="cpu", report=False)
    assert found(two)[0] == found(base)[0]


@pytest.mark.parametrize("kind", [pytest.param("directed", marks=pytest.mark.slow), "both"])
def test_a_graph_without_edges(tmp_path: Path, kind: str) -> None:
    """All edges go, and come back by the next batch."""
    text, own = kind == "both", settings_for(kind)
    rows, start = table(drawn(1), text), table({(3, 3): 1.0}, text)  # searches start from vertex 3
    base = mine(rows, tmp_path / "base", incremental="auto", **own)
    gone = update(base, tmp_path / "gone", insert=start, delete=rows, device="cpu", report=False)
    assert (gone.manifest.counts.edges, gone.manifest.counts.vertices) == (0, 1)
    made = update(gone, tmp_path / "made", insert=rows, device="cpu", report=False)
    (tables, ranks), (expected, ranks_before) = found(made), found(base)
    assert tables == expected and np.abs(ranks - ranks_before).sum() < RANKS_APART


def test_rows_that_are_left_out_of_a_batch_are_counted(tmp_path: Path) -> None:
    own = settings_for("weighted")
    base = mine(table(drawn(1), False), tmp_path / "base", incremental="auto", **own)
    rows = pa.table({"src": pa.array([1, None, 1], pa.int64()), "dst": [26, 2, 26], "cost": [3.0, 1.0, 2.0]})
    made = update(base, tmp_path / "made", insert=rows, nulls="drop", device="cpu", report=False)
    assert made.manifest.counts.nulls_dropped == 1
    went = made.manifest.update
    assert went is not None and (went.inserted, went.repeated) == (1, 1)


def test_a_batch_whose_weight_is_refused(tmp_path: Path) -> None:
    """Messages name the row of the batch, and a setting that an update may have."""
    own = settings_for("weighted") | {"input": {"repeats": "error"}}
    base = mine(table(undirected(drawn(3)), False), tmp_path / "base", incremental="auto", **own)
    rows = runs.write_rows(tmp_path / "rows.parquet", [(0, 9)])
    pq.write_table(table({(0, 9): -1.0}, False), rows)
    with pytest.raises(InputError, match=r"rows\.parquet.*0.*0.*-1\.0"):
        update(base, tmp_path / "out", insert=rows, device="cpu")
    with pytest.raises(InputError, match="cost"):
        update(base, tmp_path / "out", insert=table({(0, 9): 1.0}, False).drop_columns(["cost"]), device="cpu")
    twice = table({(0, 9): 1.0, (9, 0): 2.0}, False)
    with pytest.raises(InputError, match="2 rows"):
        update(base, tmp_path / "out", insert=twice, device="cpu")
    assert not (tmp_path / "out").exists()
    made = update(base, tmp_path / "out", insert=twice, repeats="max", device="cpu", report=False)
    assert made.manifest.update is not None and made.manifest.input.weights is not None
    assert made.manifest.input.weights.repeats == "max"


@pytest.mark.parametrize("lost", ["no programs", "no state", "a damaged state"])
def test_a_batch_without_what_programs_read_is_refused(tmp_path: Path, lost: str) -> None:
    """A batch lacks the directions of all other edges. The message names the command that does the work."""
    rows = table(drawn(4), False)
    own: dict[str, Any] = {"directed": True, "device": "cpu", "report": False}
    programs = ("lambda",) if lost == "no programs" else ("lambda", "pagerank")
    nightly: dict[str, Any] = {} if lost == "no state" else {"incremental": "auto"}
    base = mine(rows, tmp_path / "base", programs=programs, **own, **nightly)
    if lost == "a damaged state":
        ways = next((tmp_path / "base").rglob("state/ways"))
        ways.write_bytes(bytes(len(ways.read_bytes())))
    with pytest.raises(UsageError, match=f'instead.*previous="{base.path}"'):
        update(base, tmp_path / "out", insert=rows, programs=("lambda", "pagerank"))
    assert not (tmp_path / "out").exists()
