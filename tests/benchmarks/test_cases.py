"""Every benchmark at a tiny size: its fields, its answers, and that a wrong answer ends it. No time is judged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from benchmarks import (
    ROOT,
    bands,
    client_memory,
    communities,
    first_run,
    kernels,
    memory,
    predictions,
    program_orders,
    programs,
    record,
    runs,
    shards,
    similar_pairs,
)
from benchmarks.common import id_rows, machine
from benchmarks.common.command import Layout
from benchmarks.common.graphs import Answers, Graph, WrongAnswer, graph
from benchmarks.common.table import markdown, mebibytes, millions, seconds, span
from benchmarks.updates import update

from edgemill.tasks.bands.filtering import CoarseFilter
from edgemill.tasks.programs.shipped.betweenness import Betweenness
from edgemill.tasks.shards import ShardState
from edgemill.tasks.shards.peeling import GroupPeeling
from edgemill.tasks.update.updating import Updated, update_order
from oracles import brute_force_triangles, networkx_lambda


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


@pytest.fixture(scope="module")
def tiny(cache: Path) -> Graph:
    """A generated graph with its answers by definition."""
    made = graph("rmat5", cache)
    table = pq.read_table(made.path)
    rows = list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    found = networkx_lambda(rows)
    vertices, triangles = len({end for row in rows for end in row}), len(brute_force_triangles(rows))
    return Graph(
        made.name, made.path, Answers(vertices, len(found), triangles, max(found.values()), sum(found.values()))
    )


def test_kernels(tiny: Graph) -> None:
    times = kernels.measure(tiny, threads=2, repeats=3)
    assert [one.answers for one in times.samples] == [tiny.answers] * 3
    assert times.support_seconds > 0 and times.lambda_seconds > 0
    assert min(one.seconds for one in times.samples) <= times.seconds <= max(one.seconds for one in times.samples)
    assert 0 < times.graph_bytes < times.peak_bytes
    assert len(kernels.row(times)) == len(kernels.HEAD)


def test_communities(tiny: Graph) -> None:
    row = communities.measure(tiny.name, programs.block_of(tiny.path), 2, 1, 1)
    assert len(row) == len(communities.HEAD) and float(row[7]) > 0.9


def test_similar_pairs(tiny: Graph) -> None:
    row = similar_pairs.measure(tiny.name, programs.block_of(tiny.path), 4, 1, 1, ["duckdb", "polars"])
    assert len(row) == len(similar_pairs.HEAD) and all(row)


def test_program_orders(tiny: Graph) -> None:
    whole = programs.weighted(programs.block_of(tiny.path))
    home, blocks = program_orders.blocks_of(whole, 3)
    assert sum(map(len, blocks)) == len(whole)
    for name in program_orders.PROGRAMS:
        row = program_orders.measure(tiny.name, name, whole, 3, home, blocks, 2)
        assert len(row) == len(program_orders.HEAD) and int(row[5]) <= int(row[4]) + 2


def test_predictions(tiny: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    block = programs.block_of(tiny.path)
    for name in predictions.PROGRAMS:
        row = predictions.measure(name, tiny.name, block, 2, None, 2)
        assert len(row) == len(predictions.HEAD) and row[5:7] == ["1", ""] and row[8:] == ["", ""]
    few = Betweenness(batch=4)
    monkeypatch.setitem(predictions.PROGRAMS, "betweenness", lambda sources: few)
    row = predictions.measure("betweenness", tiny.name, block, 2, None, 2)
    assert int(row[5]) > 3 and all(float(one) > 0 for one in row[6:])


def test_programs(tiny: Graph) -> None:
    block = programs.block_of(tiny.path)
    sources = programs.sources_of(block, 2)
    for name in programs.PROGRAMS:
        times = programs.measure(name, tiny.name, block, 2, 1, sources)
        assert len(times.outcomes) == (2 if name in programs.FROM_SOURCES else 1)
        assert times.seconds > 0 and len(programs.row(times)) == len(programs.HEAD)
        outcome = times.outcomes[0]
        (state,) = [
            kind
            for kind in ("level", "distance", "rank", "component", "label", "core", "clustering", "betweenness")
            if kind in outcome.state
        ]
        wrong = replace(outcome, state=outcome.state | {state: outcome.state[state] + len(block.number)})
        with pytest.raises(WrongAnswer, match=name):
            programs.check(name, tiny.name, times.block, wrong)


@pytest.mark.slow
def test_runs(tiny: Graph, cache: Path) -> None:
    layouts = [Layout.parse("1"), Layout.parse("band")]
    found = runs.measure(tiny, layouts, threads=2, repeats=1, scratch=cache)
    assert [(times.layout, len(times.runs), len(times.samples)) for times in found] == [(lay, 1, 1) for lay in layouts]
    for times in found:
        assert times.runs[0].answers == tiny.answers
        assert set(runs.STAGES) >= times.runs[0].stages.keys() > {"read", "bound", "publish"}
        assert 0 < times.runs[0].rest_seconds < times.seconds and times.ratio > 1
        assert len(runs.row(times)) == len(runs.HEAD)
    assert [times.runs[0].exchanges > 0 for times in found] == [False, True]
    assert not list(cache.glob("tmp*"))


@pytest.mark.slow
def test_first_run_compiles_and_the_next_does_not(tiny: Graph, cache: Path) -> None:
    found = first_run.measure(tiny, Layout(1), repeats=1, scratch=cache)
    assert found.first[0].answers == found.then[0].answers == tiny.answers
    assert found.first[0].stages["compile"] > found.then[0].stages["compile"]
    assert len(first_run.row(found)) == len(first_run.HEAD)


@pytest.mark.slow
def test_client_memory_does_not_grow_with_the_edges(cache: Path) -> None:
    """Cliques take the same exchanges however many there are; one int64 an edge would be seen."""
    graphs = [graph(name, cache) for name in ("cliques400", "cliques40000")]
    small, large = (client_memory.measure_apart(one, workers=2, partitions=4, scratch=cache) for one in graphs)
    assert (small.edges, large.edges, small.exchanges) == (400 * 28, 40_000 * 28, large.exchanges)
    for part in ("above_until_tables_bytes", "above_in_report_bytes", "above_bytes"):
        assert getattr(large, part) - getattr(small, part) < 8 * (large.edges - small.edges), part
    assert all(0 < peak.connected_bytes <= peak.peak_bytes and peak.seconds > 0 for peak in (small, large))
    assert len(client_memory.row(large)) == len(client_memory.HEAD)


def test_memory(tiny: Graph, cache: Path) -> None:
    found = memory.measure_apart(tiny, Layout.parse("2"), workers=0, threads=1, scratch=cache)
    assert found.rows == 16 << 5
    assert abs(found.edges_off) < 0.01
    assert found.off == found.projected_bytes / found.taken_bytes - 1 > -1
    assert len(memory.row(found)) == len(memory.HEAD)


@pytest.mark.parametrize(("kind", "id_type"), [("sparse", pa.int64()), ("string", pa.string())])
def test_id_rows(cache: Path, monkeypatch: pytest.MonkeyPatch, kind: str, id_type: pa.DataType) -> None:
    """As many ids as there are vertices, however the rows are cut into row groups and files."""
    monkeypatch.setattr(id_rows, "GROUP_ROWS", 1000)
    monkeypatch.setattr(id_rows, "FILE_ROWS", 2000)
    made = id_rows.id_rows(kind, 10_500, cache)
    assert len(list(made.iterdir())) == 6 and made == id_rows.id_rows(kind, 10_500, cache)
    table = pq.read_table(made)
    assert (table.num_rows, table.schema.types) == (10_500, [id_type] * 2)
    found = pa.concat_arrays([*table["src"].chunks, *table["dst"].chunks])
    draws = [np.random.default_rng([1, first]) for first in range(0, 10_500, 1000)]
    child = np.concatenate([rng.integers(1, 3150, min(1000, 10_500 - 1000 * i)) for i, rng in enumerate(draws)])
    parent = id_rows.parents(child)
    assert (parent >= 0).all() and (parent < child).all()
    numbers, places = np.unique([child, parent], return_index=True)
    assert found.take(pa.array(places)).equals(pa.concat_arrays([id_rows.KINDS[kind](numbers)]))
    assert len(found.unique()) == len(numbers) > 3000
    assert (
        pc.min(pc.binary_length(found.cast(pa.binary()))).as_py() >= 21
        if kind == "string"
        else pc.min(found).as_py() < 0
    )


def test_a_wrong_answer_ends_the_benchmark(tiny: Graph) -> None:
    assert tiny.answers is not None
    wrong = Graph("wrong", tiny.path, Answers(**(vars(tiny.answers) | {"lambda_sum": tiny.answers.lambda_sum + 1})))
    with pytest.raises(WrongAnswer, match="wrong"):
        kernels.measure(wrong, 2, 1)


def test_names_of_graphs_and_layouts(cache: Path) -> None:
    assert graph("rmat5", cache) == graph("rmat5", cache)
    with pytest.raises(LookupError, match="no-such-graph"):
        graph("no-such-graph", cache)
    assert [str(Layout.parse(text)) for text in ("1", "4", "band")] == ["1", "4 shards", "band"]
    with pytest.raises(ValueError, match="4-hash"):
        Layout.parse("4-hash")


def test_pinning_comes_before_numba() -> None:
    with pytest.raises(RuntimeError, match="before numba"):
        machine.pin(1)


def test_the_command_pins_and_prints_a_table(cache: Path) -> None:
    core = min(os.sched_getaffinity(0))
    results = cache / "results.csv"
    options = ["--graphs=rmat5,rmat6", "--repeats=1", "--threads=1", f"--cache={cache}", f"--cpus={core}"]
    options += [f"--results={results}", "--machine=here"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "kernels", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONSAFEPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert f", core {core} of " in lines[0]
    assert [line.split()[1] for line in lines if line.startswith("| ")] == ["graph", "-----", "rmat5", "rmat6"]
    found = record.read(results)
    assert [one.measure for one in found[:4]] == [f"kernels/rmat5/{name}" for name in ("support", "λ", "both", "peak")]
    assert len(found) == 8 and {(one.machine, one.release) for one in found} == {("here", "")}
    assert found[0].unit == "s" and float(found[0].value) >= 0


def test_table() -> None:
    assert markdown(["graph", "s"], [["a", "1.25"], ["bcdefg", "2"]]).splitlines() == [
        "| graph  |    s |",
        "| ------ | ---: |",
        "| a      | 1.25 |",
        "| bcdefg |    2 |",
    ]
    assert (seconds(0.1234), seconds(12.345), span([2.0, 0.5])) == ("0.123", "12.35", "0.500-2.00")
    assert (millions(3_800_000), millions(412_345_678), mebibytes(3 << 19), mebibytes(300 << 20)) == (
        "3.8",
        "412",
        "1.5",
        "300",
    )


def test_shards(tiny: Graph) -> None:
    rows = shards.rows_of(tiny, [1, 3], 2, 4)
    assert [row[:3] for row in rows] == [["rmat5", rows[0][1], count] for count in ("1", "3")]
    assert all(len(row) == len(shards.HEAD) for row in rows) and rows[0][3] == "1.000"


def test_a_wrong_level_ends_the_benchmark_of_shards(tiny: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(GroupPeeling):
        def run(self, stop: float | None, progress: Callable[[int, int], None] | None) -> ShardState:
            found = super().run(stop, progress)
            return replace(found, low=found.low + np.int32(1))

    monkeypatch.setattr(shards, "GroupPeeling", Wrong)
    with pytest.raises(WrongAnswer, match="rmat5 in 2 shards"):
        shards.rows_of(tiny, [2], 1, 4)


def test_bands(cache: Path) -> None:
    rows = bands.rows_of(graph("rmat9", cache), [1, 3, 16], 2)
    assert [row[1] for row in rows] == ["1", "3", "16"] and all(len(row) == len(bands.HEAD) for row in rows)
    assert float(rows[0][3]) > float(rows[-1][3]) and int(rows[0][2]) < int(rows[-1][2])


def test_an_edge_in_another_band_ends_the_benchmark(tiny: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*given: Any) -> Any:
        found = CoarseFilter.run(*given)
        return replace(found, stops=tuple(stop - 1 for stop in found.stops))

    monkeypatch.setattr(bands.CountingFilter, "run", late)
    with pytest.raises(WrongAnswer, match=r"edges.*another band"):
        bands.rows_of(tiny, [3], 1)


@pytest.mark.parametrize("kind", update.KINDS)
def test_update(tiny: Graph, kind: str) -> None:
    (row,) = update.rows_of(tiny, [kind], [0.05], repeats=2)
    assert len(row) == len(update.HEAD) and row[0] == "rmat5" and row[3] == kind and int(row[5]) > 0


def test_a_wrong_update_ends_the_benchmark(tiny: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any) -> Updated:
        found = update_order(*given)
        return replace(found, order=replace(found.order, time=found.order.time[::-1].copy()))

    monkeypatch.setattr(update, "update_order", wrong)
    with pytest.raises(WrongAnswer, match="rmat5, random"):
        list(update.rows_of(tiny, ["random"], [0.05], repeats=1))
