"""The simulation of partitions counts what the tasks of a run do: copies, bytes of each exchange, exchanges, λ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import bounding
import drive
from benchmarks import simulate_partitions, walks
from benchmarks.graphs import Answers, Graph, WrongAnswer, graph
from benchmarks.here import placed
from benchmarks.simulate_partitions import Simulated, read_csv, row, simulate, write_csv
from benchmarks.traffic import STAGES, traffic
from benchmarks.whole_graph import WholeGraph, whole_graph
from edgemill.pipeline import mine
from edgemill.pipeline.ledger import Ledger
from edgemill.pipeline.partitioning import METHODS
from edgemill.tasks.bound import band as banding
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.sources import open_source


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return graph("rmat7", tmp_path_factory.mktemp("graphs"))


@pytest.fixture(scope="module")
def whole(tiny: Graph) -> WholeGraph:
    return whole_graph(tiny)


@dataclass(frozen=True)
class Table:
    """A partitioner that looks up what a method of the simulation said."""

    part: NDArray[np.int16]
    partitions: int

    def __call__(self, vertices: NDArray[Any]) -> NDArray[np.int16]:
        part: NDArray[np.int16] = self.part[vertices]
        return part


@pytest.mark.parametrize(
    ("method", "partitions"), [("range", 2), ("hash", 7), ("hash", 70), *((method, 5) for method in METHODS)]
)
def test_counts_are_those_of_the_tasks(
    tiny: Graph, whole: WholeGraph, method: str, partitions: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found, happened = simulate(whole, method, partitions)
    moved = _payloads(monkeypatch)
    partitioner = Table(placed(whole, method, partitions), partitions)
    source = open_source(str(tiny.path))
    ingested = drive.ingest(source, partitions, partitioner, rows_per_block=1_000_000)
    subgraphs = drive.subgraphs(ingested.owned)
    counts = [subgraph.counts for subgraph in subgraphs]
    assert found.edges == sum(one.owned for one in counts) and found.local == sum(one.local for one in counts)
    assert found.ghosts == sum(one.ghost for one in counts) and found.cut == sum(one.cut for one in counts)
    assert found.owned_most == max(one.owned for one in counts)
    assert found.held_most == max(one.local + one.ghost for one in counts)

    calls, ledgers = _watched(monkeypatch)
    intervals = bounding.band(subgraphs)
    assert found.lambda_sum == sum(int(one.low.sum()) for one in intervals)
    assert found.lambda_max == max(int(one.low.max(initial=0)) for one in intervals)
    assert found.exchanges == len(ledgers[0].exchanges) and found.steps == ledgers[0].steps
    assert happened.active == ledgers[0].exchanges
    assert found.ids == sum(messages for messages, _, _ in calls)
    assert found.parts == sum(parts for _, parts, _ in calls)
    assert found.evaluations == sum(evaluations for _, _, evaluations in calls)

    answers = [(own.support, one.low, one.high) for own, one in zip(subgraphs, intervals, strict=True)]
    drive.publish_results(tmp_path, source, ingested, answers)
    expected = traffic(found)
    assert STAGES.keys() == expected.keys() and expected["peel"] == 4 * sum(one.ghost for one in counts)
    assert moved["Lists"] == expected["lists"] + 8 * moved["parts of Lists"]
    for name, exchange in (
        ("Reply", "replies"),
        ("Pairs", "pairs"),
        ("EdgeParts", "owned"),
        ("EdgeResults", "results"),
    ):
        assert moved[name] == expected[exchange]
    # What follows goes with the splitters, which come from a sample for as many buckets as a run has.
    assert moved["Counts"] == pytest.approx(expected["degrees"], rel=0.1)
    assert moved["VertexSums"] == pytest.approx(expected["sums"], rel=0.1)
    rest = sum(expected[exchange] for exchange in ("ids", "numbers", "ranks", "names"))
    assert moved["ndarray"] == pytest.approx(rest, rel=0.1)


def _payloads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Bytes of what the chain delivers from now on, by type, and how many parts there are of each."""
    moved: Counter[str] = Counter()
    deliver = drive.exchange

    def watched(bundles: Any, receivers: int, receive: Any) -> list[Any]:
        sent = list(bundles)
        for part in (part for bundle in sent for part in bundle.parts.values()):
            name = type(part).__name__
            moved[name] += _bytes(part)
            moved[f"parts of {name}"] += 1
        return deliver(sent, receivers, receive)

    monkeypatch.setattr(drive, "exchange", watched)
    return moved


def _bytes(value: Any) -> int:
    """Of a payload's arrays, each once: pickles have it so."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    own = [getattr(value, column.name) for column in fields(value)]
    return sum(map(_bytes, {id(one): one for one in own}.values()))


class WatchedLedger(Ledger):
    """Notes how many partitions took part in each exchange."""

    all: ClassVar[list[WatchedLedger]] = []

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.exchanges: list[int] = []
        self.all.append(self)

    def record(self, reports: Mapping[int, banding.BandReport]) -> None:
        self.exchanges.append(len(reports))
        super().record(reports)


def _watched(monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[int, int, int]], list[WatchedLedger]]:
    """Messages, parts and evaluations of each partition's exchange, and the ledger, from now on."""
    calls: list[tuple[int, int, int]] = []
    run = banding.band_exchange

    def exchange(*arguments: Any) -> Any:
        bands, mail, report = run(*arguments)
        calls.append((report.messages, len(mail.parts), report.evaluations))
        return bands, mail, report

    monkeypatch.setattr(banding, "band_exchange", exchange)
    monkeypatch.setattr(bounding, "Ledger", WatchedLedger)
    WatchedLedger.all.clear()
    return calls, WatchedLedger.all


def test_counts_are_those_of_a_manifest(tiny: Graph, whole: WholeGraph, tmp_path: Path) -> None:
    found, happened = simulate(whole, "hash", 5)
    manifest = mine(tiny.path, tmp_path / "out", device="cpu", partitioning={"count": 5, "method": "hash"}).manifest
    copies = sum(part.owned + part.ghost for part in manifest.partitions) / manifest.counts.edges
    assert copies == found.replication > 1
    assert (manifest.lam.sum, manifest.lam.max) == (found.lambda_sum, found.lambda_max)
    assert [one.messages for one in manifest.exchanges] == happened.ids
    assert [one.evaluations for one in manifest.exchanges] == happened.evaluations
    assert manifest.exchanges[-1].step == found.steps


def test_range_is_that_of_a_run(tiny: Graph, whole: WholeGraph) -> None:
    partitioner = drive.ingest(open_source(str(tiny.path)), 6, "range", buckets=1).partitioner
    assert isinstance(partitioner, RangePartitioner)
    assert np.array_equal(placed(whole, "range", 6), partitioner(np.arange(whole.vertices)))


def test_an_owner_holds_this_for_one_vertex(tiny: Graph, whole: WholeGraph) -> None:
    """A partition of each vertex: none holds less for it; the one found is in the middle of most triangles."""
    partitioner = Table(np.arange(whole.vertices, dtype=np.int16), whole.vertices)
    ingested = drive.ingest(open_source(str(tiny.path)), whole.vertices, partitioner, buckets=1)
    counts = [one.counts for one in drive.subgraphs(ingested.owned)]
    held = np.array([one.local + one.ghost for one in counts])
    middles = np.zeros(whole.vertices, np.int64)
    middles[whole.dense] = walks.count_middles(whole.offsets, whole.high)
    assert middles.sum() == whole.triangles
    assert whole.vertex_most == held[middles == middles.max()].max() <= held.max()


def test_one_partition_tells_nobody(whole: WholeGraph) -> None:
    found, _ = simulate(whole, "range", 1)
    assert (found.ghosts, found.ids, found.parts, found.list_entries, found.cut, found.crossing) == (0,) * 6
    assert found.exchanges == found.active > 0 and found.held == found.local / found.edges < found.replication == 1


def test_rounds_of_peeling(whole: WholeGraph) -> None:
    found, _ = simulate(whole, "hash", 4, band=False)
    assert found.levels <= found.rounds and found.telling_rounds <= found.rounds
    assert 0 < found.round_ids_most <= found.ghosts
    assert (found.exchanges, found.ids) == (0, 0)
    assert len(np.unique(whole.peeled.round)) == found.rounds


def test_rows_are_kept_and_replaced(whole: WholeGraph, tmp_path: Path) -> None:
    first, _ = simulate(whole, "hash", 2, band=False)
    then, _ = simulate(whole, "hash", 2)
    assert len(row(then)) == len(simulate_partitions.HEAD)
    write_csv(tmp_path / "counts.csv", [first, replace(first, partitions=3)])
    write_csv(tmp_path / "counts.csv", [then])
    kept = read_csv(tmp_path / "counts.csv")
    assert [(one.partitions, one.exchanges) for one in kept] == [(2, then.exchanges), (3, 0)]
    assert _untimed(kept[0]) == _untimed(then)


def _untimed(found: Simulated) -> Simulated:
    return replace(found, placing=0.25, seconds=0)


def test_a_wrong_answer_ends_the_simulation(tiny: Graph, whole: WholeGraph) -> None:
    right = whole.answers()
    wrong = Answers(**(vars(right) | {"lambda_sum": right.lambda_sum + 1}))
    with pytest.raises(WrongAnswer, match="rmat7"):
        whole_graph(Graph(tiny.name, tiny.path, wrong))
    peeled = replace(whole.peeled, lam=whole.peeled.lam + 1)
    with pytest.raises(WrongAnswer, match="another λ"):
        simulate(replace(whole, peeled=peeled), "hash", 2)
