"""Every schedule, ended at any point and resumed from its last checkpoint: the same result at the same cost."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from distributed import Client

import runs
from edgemill import kernels
from edgemill.kernels import cpu
from edgemill.kernels.graph import Topology
from edgemill.pipeline import ClusterLost, Result, mine
from edgemill.pipeline.events import Events
from edgemill.pipeline.output.checkpoint_files import opened
from edgemill.tasks.checkpoint_values import restore
from edgemill.tasks.generate import generate
from edgemill.tasks.storage.array_files import DamagedFile, StoredFile
from trials import Trials

SCHEDULES: dict[str, dict[str, Any]] = {
    "band": {"method": "band", "checkpoint": {"every_exchanges": 2}},
    "fixpoint": {"method": "fixpoint", "checkpoint": {"every_exchanges": 2}},
    "tridn": {"bounding": {"method": "fixpoint", "operator": "tridn"}, "checkpoint": {"every_exchanges": 2}},
    "peel": {"partitions": 1, "method": "peel", "checkpoint": {"every_seconds": 0.0}},
    "shards": {"partitions": 3, "method": "peel", "checkpoint": {"every_seconds": 0.0}},
}
ITERATIONS = ("fixpoint", "tridn")
"""Schedules of which the number of iterations and the work vary, as threads read bounds while others lower them."""
MOMENTS = ("exchange", "kept", "task_done", "stage_started")
"""Events that a run may end with, all of them while it looks for λ or after it."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=3, seed=4, scale=8, edge_factor=8)
    return folder


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with runs.cluster(n_workers=1, processes=False, threads_per_worker=2) as client:
        yield client


@pytest.fixture
def go(rows: Path, client: Client) -> Callable[..., Result]:
    def run(out: Path, **settings: Any) -> Result:
        try:
            return mine(rows, out, client=client, device="cpu", **{"output.report": False} | settings)
        finally:
            out.with_name(f"{out.name}.failed.log.jsonl").unlink(missing_ok=True)

    return run


@dataclass
class Plain:
    """A run without a fault."""

    tables: list[pa.Table]
    bounding: Any
    exchanges: list[dict[str, Any]]
    moments: int
    """Events after the graph was kept."""


_PLAIN: dict[str, Plain] = {}


@pytest.fixture
def plain(go: Callable[..., Result], tmp_path: Path, request: pytest.FixtureRequest) -> Plain:
    name = request.node.callspec.params["schedule"]
    if name not in _PLAIN:
        with counting() as moments:
            result = go(tmp_path / "plain", **SCHEDULES[name])
        _PLAIN[name] = Plain(tables(result), result.manifest.bounding, exchanges(result), moments())
    return _PLAIN[name]


def tables(result: Result) -> list[pa.Table]:
    return [result.edges.to_table(), result.vertices.to_table()]


def exchanges(result: Result) -> list[dict[str, Any]]:
    return [asdict(replace(exchange, seconds=0)) for exchange in result.manifest.exchanges]


def refusals(result: Result) -> list[str]:
    lines = map(json.loads, (result.path / "log.jsonl").read_text().splitlines())
    return [line["reason"] for line in lines if line["event"] == "checkpoint_refused"]


def place(out: Path) -> Path:
    return out.with_name(f".{out.name}.edgemill.checkpoint")


class counting:  # reads as a function
    """Count the moments within the block, from the first checkpoint or from the start. The run ends at moment `at`."""

    def __init__(self, at: int = -1, from_start: bool = False) -> None:
        self._at, self._patch, self._seen, self._on = at, pytest.MonkeyPatch(), 0, from_start

    def __enter__(self) -> Callable[[], int]:
        emit = Events.emit

        def count(events: Events, event: str, /, **fields: Any) -> None:
            emit(events, event, **fields)
            self._on |= event == "kept"
            if self._on and event in MOMENTS:
                self._seen += 1
                if self._seen == self._at:
                    raise ClusterLost("planted")

        self._patch.setattr(Events, "emit", count)
        return lambda: self._seen

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


def ended(go: Callable[..., Result], out: Path, schedule: str, at: int, resumed: bool = False) -> None:
    """A run that loses its cluster at a moment."""
    with counting(at, resumed), pytest.raises(ClusterLost, match="planted"):
        go(out, **SCHEDULES[schedule])
    assert not out.exists()


@pytest.mark.parametrize(
    "schedule",
    [name if name in ("band", "shards") else pytest.param(name, marks=pytest.mark.slow) for name in SCHEDULES],
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_ended_and_gone_on_with(
    go: Callable[..., Result],
    plain: Plain,
    tmp_path: Path,
    client: Client,
    trials: Trials,
    schedule: str,
    seed: int,
) -> None:
    """Twice: the resumed run is ended, too."""
    drawn = random.Random(f"{schedule} {seed}")
    out = tmp_path / "out"
    first = drawn.randint(1, plain.moments * 3 // 4 if schedule in ITERATIONS else plain.moments)
    ended(go, out, schedule, first)
    if first < plain.moments // 2:
        ended(go, out, schedule, drawn.randint(1, 8), resumed=True)
    result = go(out, **SCHEDULES[schedule])
    assert refusals(result) == []
    assert [stage.stage for stage in result.manifest.stages][:3] == ["compile", "restore", "restore"]
    assert tables(result) == plain.tables
    if schedule in ITERATIONS:
        assert result.manifest.bounding.method == plain.bounding.method
    else:
        assert result.manifest.bounding == plain.bounding
        assert exchanges(result) == plain.exchanges
    assert not place(out).exists()
    runs.assert_nothing_left(client)
    trials(f"a run is ended and gone on with: {schedule}", "same")


@pytest.mark.parametrize("schedule", ["peel"])
def test_no_level_is_peeled_again(
    go: Callable[..., Result], plain: Plain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str
) -> None:
    advance, levels = cpu.Peeling.advance, []

    def count(self: cpu.Peeling) -> None:
        advance(self)
        if len(self.low) == plain.bounding.evaluations:  # what warms up is smaller
            levels.append(self.level)

    monkeypatch.setattr(cpu.Peeling, "advance", count)
    ended(go, tmp_path / "out", schedule, 4)
    result = go(tmp_path / "out", **SCHEDULES[schedule])
    assert tables(result) == plain.tables
    assert len(levels) == len(set(levels)) == plain.bounding.steps > 8


def test_what_is_quick_is_one_task(go: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peeling is interrupted for a checkpoint only when one is due."""
    monkeypatch.setattr("edgemill.pipeline.bounding.bounding.BoundingCheckpoint.save", None)
    peel, pieces = kernels.peeling, []

    def count(topology: Topology, *given: Any) -> Any:
        pieces.append(topology.edges)
        return peel(topology, *given)

    monkeypatch.setattr(kernels, "peeling", count)
    result = go(tmp_path / "out", partitions=1)
    assert pieces.count(result.manifest.bounding.evaluations) == 1


@pytest.mark.parametrize(
    ("schedule", "other", "name"),
    [
        ("band", {"method": "fixpoint"}, "bounding.method"),
        pytest.param("fixpoint", {"method": "band"}, "bounding.method", marks=pytest.mark.slow),
        pytest.param("fixpoint", SCHEDULES["tridn"], "bounding.operator", marks=pytest.mark.slow),
        pytest.param("peel", {"method": "fixpoint"}, "bounding.method", marks=pytest.mark.slow),
    ],
)
def test_another_way_starts_anew(
    go: Callable[..., Result], plain: Plain, tmp_path: Path, schedule: str, other: dict[str, Any], name: str
) -> None:
    """It resumes from the graph, which is the same for all schedules."""
    out = tmp_path / "out"
    ended(go, out, schedule, plain.moments // 2)
    result = go(out, **other)
    assert refusals(result)
    assert all(re.match(rf"the checkpoint {place(out)} .*another {name}$", reason) for reason in refusals(result))
    assert [stage.stage for stage in result.manifest.stages][:3] == ["compile", "restore", "bound"]
    assert result.edges.to_table() == plain.tables[0]


def changed(content: bytes, drawn: random.Random) -> bytes | None:
    """The changed content of a file; None to remove it."""
    at = drawn.randrange(len(content))
    match drawn.choice(["flip", "burst", "zero", "cut", "longer", "lost", "shuffled"]):
        case "flip":
            return content[:at] + bytes([content[at] ^ 1 << drawn.randrange(8)]) + content[at + 1 :]
        case "burst":
            return content[:at] + drawn.randbytes(len(content[at : at + 64])) + content[at + 64 :]
        case "zero":
            return content[:at] + bytes(len(content[at : at + 4096])) + content[at + 4096 :]
        case "cut":
            return content[:at]
        case "longer":
            return content + drawn.randbytes(1 + at % 9)
        case "lost":
            return None
    return content[at:] + content[:at]


@pytest.fixture(
    params=[name if name in ("band", "shards") else pytest.param(name, marks=pytest.mark.slow) for name in SCHEDULES]
)
def kept(go: Callable[..., Result], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """Checkpoints of each schedule, half-way."""
    ended(go, tmp_path / "out", request.param, 9)
    yield request.param, place(tmp_path / "out")


def index_of(kept: Path, name: str) -> dict[str, Any]:
    return opened((kept / f"{name}.json").read_bytes())


@pytest.mark.parametrize("changes", [12, pytest.param(120, marks=pytest.mark.slow)])
def test_no_change_of_a_file_goes_unseen(kept: tuple[str, Path], trials: Trials, changes: int) -> None:
    """For every kind of file in a checkpoint."""
    schedule, folder = kept
    drawn = random.Random(schedule)
    names = ["graph", "progress", "progress.before"]
    files = [StoredFile(**file) for name in names for own in index_of(folder, name)["files"].values() for file in own]
    kinds = {Path(file.url).name.rpartition("-")[0] for file in files}
    assert kinds - {"supports"} == {"ids", "edges", "degrees", "rows", "subgraphs", "states"}
    assert ("supports" in kinds) is (schedule == "shards")
    assert {file.url for file in files} == {f"file://{path}" for path in folder.rglob("*.zip")}
    chosen: list[str | StoredFile] = [*names, *files]
    for _ in range(changes):
        name = drawn.choice(chosen)
        path = folder / f"{name}.json" if isinstance(name, str) else Path(name.url.removeprefix("file://"))
        content = path.read_bytes()
        other = changed(content, drawn)
        if other == content:
            continue
        if other is None:
            path.unlink()
        else:
            path.write_bytes(other)
        if isinstance(name, StoredFile):
            with pytest.raises(DamagedFile):
                restore(name, {})
        elif other is not None:
            with pytest.raises(ValueError, match="cut off"):
                index_of(folder, name)
        path.write_bytes(content)
        if isinstance(name, StoredFile):
            restore(name, {})
        trials("a checkpoint file is changed", "refused")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_run_over_changed_files(
    kept: tuple[str, Path], go: Callable[..., Result], tmp_path: Path, client: Client, trials: Trials, seed: int
) -> None:
    """Several files are changed. The result equals that of a run without a checkpoint."""
    schedule, folder = kept
    drawn = random.Random(f"{schedule} {seed}")
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in drawn.sample(before, drawn.randint(1, 3)):
        other = changed(path.read_bytes(), drawn)
        if other is None:
            path.unlink()
        else:
            path.write_bytes(other)
    result = go(tmp_path / "out", **SCHEDULES[schedule])
    assert tables(result) == tables(go(tmp_path / "plain", partitions=1))
    assert not folder.exists()
    del result
    runs.assert_nothing_left(client)
    trials("a run finds changed checkpoint files", "same")
