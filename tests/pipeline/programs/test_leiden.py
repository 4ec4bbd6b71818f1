"""Leiden communities in runs: by workers, directions, weights and order of rows; checked, and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import edgemill
from edgemill.pipeline import Result, mine
from edgemill.tasks.errors import InternalError, OutOfRoom
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import Entries, cut_blocks, run_blocks, run_in_one_block
from edgemill.tasks.programs.shipped.leiden import Leiden
from edgemill.tasks.shards import MemoryCarrier
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import verify

HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "programs": ("leiden",)}


def graph() -> nx.Graph:
    """Groups of 20 with weak ties, and a pair that nothing connects to them."""
    made = nx.planted_partition_graph(6, 20, 0.4, 0.02, seed=4)
    made.add_edge(500, 501)
    return made


def table(made: nx.Graph, seed: int = 0) -> pa.Table:
    """Its edges in some order and direction, with weights."""
    random = np.random.default_rng(seed)
    rows = [(u, v) if random.random() < 0.5 else (v, u) for u, v in made.edges()]
    ends = np.array(rows, np.int64)[random.permutation(len(rows))]
    return pa.table({"src": ends[:, 0], "dst": ends[:, 1], "weight": 1.0 + (ends.sum(axis=1) % 7)})


def communities(result: Result) -> list[set[int]]:
    found: dict[int, set[int]] = {}
    for row in result.vertices.to_table().to_pylist():
        found.setdefault(row["community"], set()).add(row["id"])
    assert all(community == min(members) for community, members in found.items())
    return list(found.values())


def facts(result: Result) -> dict[str, Any]:
    return result.manifest.programs[0].facts


def test_planted_communities(tmp_path: Path) -> None:
    result = mine(table(graph()), tmp_path / "out", **HOW)
    found = communities(result)
    assert sorted(map(min, found)) == [0, 20, 40, 60, 80, 100, 500] and {500, 501} in found
    assert facts(result)["communities"] == 7 and facts(result)["largest"] == 20
    assert facts(result)["quality"] == pytest.approx(nx.community.modularity(graph(), found))
    verify(str(tmp_path / "out"))


@pytest.mark.parametrize(
    "how", [{"partitions": 3, "ingest": {"rows_per_block": 90}}, {"programs": ("lambda", "leiden")}]
)
def test_the_same_for_any_layout_and_order_of_rows(tmp_path: Path, how: dict[str, Any]) -> None:
    random = nx.gnm_random_graph(300, 1200, seed=3)
    first = communities(mine(table(random, 1), tmp_path / "one", **HOW))
    assert communities(mine(table(random, 2), tmp_path / "two", **HOW | how)) == first


def test_one_of_two_workers_has_all_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edgemill.pipeline.stages import limits

    monkeypatch.setattr(limits, "LEAST_ENTRIES", 10)
    settings = HOW | {
        "programs": ("components", "leiden", "coreness"),
        "workers": 2,
        "cluster": {"threads_per_worker": 1},
    }
    result = mine(table(graph()), tmp_path / "out", **settings)
    assert [program.groups for program in result.manifest.programs] == [2, 1, 2]
    assert communities(result) == communities(mine(table(graph()), tmp_path / "one", **HOW))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("quality", ["modularity", "potts"])
def test_weights_and_directions(tmp_path: Path, directed: bool, quality: str) -> None:
    """The quality is that of the sums of weights in both directions."""
    rows = table(graph())
    if directed:
        back = rows.rename_columns(["dst", "src", "weight"]).select(["src", "dst", "weight"]).slice(0, 200)
        rows = pa.concat_tables([rows, back])
    pq.write_table(rows, tmp_path / "rows.parquet")
    how = {"weighted": True, "quality": quality, "resolution": 1.5, "iterations": 9}
    settings = HOW | {"directed": directed, "weight_column": "weight", "leiden": how}
    result = mine(tmp_path / "rows.parquet", tmp_path / "out", **settings)
    summed = nx.Graph()
    for u, v, w in zip(*(rows[name].to_pylist() for name in ("src", "dst", "weight")), strict=True):
        summed.add_edge(u, v, weight=w + summed.get_edge_data(u, v, {"weight": 0})["weight"])
    found = communities(result)
    if quality == "modularity":
        expected = nx.community.modularity(summed, found, resolution=1.5)
    else:
        inside = sum(summed.subgraph(own).size("weight") for own in found)
        expected = inside - 1.5 * sum(len(own) ** 2 for own in found) / 2
    assert facts(result)["quality"] == pytest.approx(expected)
    verify(str(tmp_path / "out"), str(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("power", [-40, 60])
@pytest.mark.parametrize("quality", ["modularity", "potts"])
def test_tiny_and_huge_weights(tmp_path: Path, quality: str, power: int) -> None:
    """Communities do not depend on the unit of weights; the quality by the Potts model is in this unit."""
    found = []
    for factor in (1.0, 2.0**power):
        rows = table(graph())
        rows = rows.set_column(2, "weight", pa.array(rows["weight"].to_numpy() * factor))
        pq.write_table(rows, tmp_path / f"{factor}.parquet")
        how = {"weighted": True, "quality": quality, "resolution": factor if quality == "potts" else 1.0}
        settings = HOW | {"weight_column": "weight", "leiden": how}
        result = mine(tmp_path / f"{factor}.parquet", tmp_path / f"out{factor}", **settings)
        verify(str(tmp_path / f"out{factor}"), str(tmp_path / f"{factor}.parquet"))
        found.append((communities(result), facts(result)["quality"] / (factor if quality == "potts" else 1)))
    assert found[0][0] == found[1][0] and found[0][1] == pytest.approx(found[1][1])


def test_wrong_communities_are_found(tmp_path: Path) -> None:
    """A vertex in the community of another, and another quality."""
    result = mine(table(graph()), tmp_path / "out", **HOW | {"programs": ("lambda", "leiden")})
    from edgemill.tasks.verify import program_checks
    from edgemill.tasks.verify.arcs import Arcs
    from edgemill.tasks.verify.tables import VertexTable

    vertices = result.vertices.to_table()
    record = result.manifest.programs[0].model_dump()
    ids = vertices["id"].combine_chunks()
    at = {value: place for place, value in enumerate(ids.to_pylist())}
    ends = np.array([(at[u], at[v]) for u, v in graph().edges()], np.int64)
    arcs = Arcs(np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]]), None)

    def check(community: list[int], quality: float) -> None:
        own = VertexTable.__new__(VertexTable)
        object.__setattr__(own, "ids", ids)
        object.__setattr__(own, "added", {"community": pa.array(community)})
        program_checks.check_leiden(arcs, own, {**record, "facts": {"quality": quality}})

    right = vertices["community"].to_pylist()
    check(right, record["facts"]["quality"])
    with pytest.raises(Flaw, match="quality"):
        check(right, record["facts"]["quality"] + 1e-6)
    moved = [20 if value == 0 else value for value in right]
    with pytest.raises(Flaw, match="community"):
        check(moved, record["facts"]["quality"])


def test_from_python() -> None:
    frame = table(graph()).to_pandas()
    found = edgemill.leiden(frame, resolution=1.0).to_pandas()
    assert set(found.columns) >= {"id", "community"} and found["community"].nunique() == 7


def edges_of(made: nx.Graph) -> Entries:
    source, target = np.array(made.edges(), np.int32).T
    return Entries(source, target, None)


def test_several_blocks_are_refused() -> None:
    made = nx.path_graph(8)
    blocks = cut_blocks(edges_of(made), 8, RangePartitioner(np.array([4])), False, "both")
    with pytest.raises(InternalError, match="one block"):
        run_blocks(Leiden(), blocks, RangePartitioner(np.array([4])), MemoryCarrier.open(2), threads=2)


def test_edges_in_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgemill.kernels.chunked import ChunkedRows
    from edgemill.tasks.programs.block import GraphBlock

    monkeypatch.setattr(GraphBlock, "placed", lambda self, space: replace(self, rows=ChunkedRows.__new__(ChunkedRows)))
    with pytest.raises(OutOfRoom, match="Leiden needs all edges"):
        run_in_one_block(Leiden(), edges_of(nx.path_graph(4)), 4, False)
