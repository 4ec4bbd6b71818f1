"""Tracks of DN-graphs over nights, compared with sets of members: merges, splits, ties, and whole runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from click.testing import Result as Ended
from hypothesis import given, settings
from hypothesis import strategies as st

import fates
import oracles
import runs
from edgemill.pipeline import Result, StoreLost, UsageError, diff, find_dn_graph, find_track, mine
from edgemill.pipeline.output.manifest import TracksRecord
from edgemill.pipeline.plan.plan import Plan
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.tracks import EarlierResult
from edgemill.tasks.verify.result import verify
from examples import examples
from in_process import call
from made import made
from tracking import assign, tracked

Group = frozenset[int]
Tracks = dict[int, Group]
_numbers = count()


def result_of(folder: Path, groups: Iterable[Group], tracks: bool = False, **more: Any) -> Result:
    """A result whose DN-graphs are cliques of the given members."""
    return made(folder, oracles.networkx_lambda(set(edges_of(groups))), tracks=tracks, **more)


def edges_of(groups: Iterable[Group]) -> list[tuple[int, int]]:
    return [edge for group in groups for edge in combinations(sorted(group), 2)]


def tracks_of(result: Result) -> Tracks:
    return fates.groups_of(result, "track")


def expected(before: Tracks, groups: Mapping[int, Group], first: int) -> Tracks:
    """Tracks by definition: those of partners, then new ones, the largest DN-graph first."""
    same = fates.partners(before, groups)
    new = sorted(groups.keys() - same.keys(), key=lambda number: (-len(groups[number]), number))
    found = {track: groups[number] for number, track in same.items()}
    return found | {first + place: groups[number] for place, number in enumerate(new)}


@st.composite
def histories(draw: st.DrawFn, nights: int = 5, universe: int = 30) -> list[list[Group]]:
    """Nights of disjoint groups that appear, disappear, merge, split and swap members."""
    groups: list[Group] = []
    found = []
    for _ in range(nights):
        for _ in range(draw(st.integers(1, 4))):
            free = sorted(set(range(universe)).difference(*groups))
            move = draw(st.sampled_from(["appear", "appear", "go", "merge", "split", "swap"]))
            some = draw(st.permutations(groups)) if groups else []
            if move == "appear" and len(free) >= 3:
                groups.append(frozenset(free[: draw(st.integers(3, min(10, len(free))))]))
            elif move == "go" and some:
                groups.remove(some[0])
            elif move == "merge" and len(some) >= 2:
                groups = [*some[2:], some[0] | some[1]]
            elif move == "split" and some:
                members = sorted(some[0])
                at = draw(st.integers(0, len(members)))
                groups = [*some[1:], *(frozenset(part) for part in (members[:at], members[at:]) if len(part) >= 3)]
            elif move == "swap" and some and free:
                lost = draw(st.integers(0, len(some[0]) - 3))
                kept, gained = sorted(some[0])[lost:], free[: draw(st.integers(0, len(free)))]
                groups = [*some[1:], frozenset([*kept, *gained])]
        found.append(list(groups))
    return found


@given(history=histories(), cuts=st.lists(st.integers(1, 9), min_size=5, max_size=5))
@settings(max_examples=examples(8, 3))
def test_every_history(
    tmp_path_factory: pytest.TempPathFactory, history: list[list[Group]], cuts: Sequence[int]
) -> None:
    """The result does not depend on the cut of tables or on ids of DN-graphs."""
    folder = tmp_path_factory.mktemp("nights")
    known: Tracks = {}
    before, first = None, 1
    given_out: set[int] = set()
    for night, (groups, cut) in enumerate(zip(history, cuts, strict=True)):
        plain = result_of(folder / f"{night}", groups, rows_per_file=cut, rows_per_group=cut, first_id=5 + 40 * night)
        wanted = expected(known, fates.groups_of(plain), first)
        told = assign(plain, first, before, None, buckets=cut).fates
        result = tracked(plain, first, before, buckets=cut)
        assert tracks_of(result) == wanted
        assert result.manifest.tracks is not None
        assert result.manifest.tracks.new == len(wanted.keys() - known.keys())
        assert not (wanted.keys() - known.keys()) & given_out
        if before is not None:
            found = diff(before, result)
            assert found.groups == told == fates.fates(known, wanted)[0]
            assert found.groups.continued == len(wanted.keys() & known.keys()) == result.manifest.tracks.continued
        given_out |= wanted.keys()
        known, before, first = wanted, result, result.manifest.tracks.next
    assert first == max(given_out, default=0) + 1


@pytest.mark.slow
def test_thirty_nights(tmp_path: Path) -> None:
    """One group swaps all of its members one by one, one appears and disappears; each keeps its own track."""
    before, first, seen = None, 1, []
    for night in range(30):
        moving = frozenset(range(100 + night, 110 + night))
        there = [frozenset(range(5))] if night % 3 else []
        result = tracked(result_of(tmp_path / f"{night}", [moving, *there]), first, before)
        assert result.manifest.tracks is not None
        first, before = result.manifest.tracks.next, result
        own = {members: track for track, members in tracks_of(result).items()}
        assert own.pop(moving) == 1
        seen.append(next(iter(own.values()), None))
    assert seen == [found for n in range(2, 12) for found in (None, n, n)]


HALVES = [
    ("falls into halves", [range(8)], [range(4), range(4, 8)], {}, (0, 0, 0, 0, 1)),
    ("two equal ones become one", [range(4), range(4, 8)], [range(8)], {}, (0, 0, 0, 1, 0)),
    ("half of all stay", [range(6)], [range(3, 6)], {}, (0, 1, 1, 0, 0)),
    ("one more than half stays", [range(7)], [range(3, 7)], {1: 1}, (1, 0, 0, 0, 0)),
    ("the larger part continues", [range(9)], [range(6), range(6, 9)], {1: 1}, (1, 0, 0, 0, 1)),
    ("the larger one takes in the smaller", [range(9), range(9, 13)], [range(13)], {1: 1}, (1, 0, 0, 1, 0)),
]


@pytest.mark.parametrize(
    ("old", "new", "kept", "told"), [case[1:] for case in HALVES], ids=[case[0] for case in HALVES]
)
def test_ties_and_halves(
    tmp_path: Path, old: list[range], new: list[range], kept: dict[int, int], told: tuple[int, ...]
) -> None:
    """`kept`: the track that the first of the new ones has of the old. Counts: continued, born, died, merged, split."""
    before = tracked(result_of(tmp_path / "old", map(frozenset, old)), 1)
    after = tracked(result_of(tmp_path / "new", map(frozenset, new)), 10, before)
    own = {members: track for track, members in tracks_of(after).items()}
    assert {1: own[frozenset(new[0])]} == kept if kept else all(track >= 10 for track in own.values())
    groups = diff(before, after).groups
    assert groups is not None
    assert (groups.continued, groups.born, groups.died, groups.merged, groups.split) == told


def test_a_day_that_is_mined_again_keeps_its_own_numbers(tmp_path: Path) -> None:
    """Tracks of the previous night come first, then those of the replaced result; the rest are new."""
    a, b, c = (frozenset(range(start, start + 6)) for start in (0, 10, 20))
    before = tracked(result_of(tmp_path / "before", [a]), 1)
    replaced = tracked(result_of(tmp_path / "replaced", [a, b]), 2, before)
    again = tracked(result_of(tmp_path / "again", [a | {6}, b | {16}, c]), 7, before, replaced)
    assert tracks_of(again) == {1: a | {6}, 2: b | {16}, 7: c}
    assert again.manifest.tracks is not None
    assert (again.manifest.tracks.continued, again.manifest.tracks.again, again.manifest.tracks.new) == (1, 1, 1)


def test_a_track_that_the_replaced_result_took_over_is_not_taken_from_it(tmp_path: Path) -> None:
    """Only the previous night decides which groups continue."""
    a, moved = frozenset(range(6)), frozenset(range(1, 8))
    before = tracked(result_of(tmp_path / "before", [a]), 1)
    replaced = tracked(result_of(tmp_path / "replaced", [moved]), 2, before)
    assert tracks_of(replaced) == {1: moved}
    further = frozenset(range(3, 10))
    assert tracks_of(tracked(result_of(tmp_path / "again", [further]), 2, before, replaced)) == {2: further}


EARLY = [range(6), range(10, 15), range(20, 24)]
LATER = [range(1, 7), range(10, 15), range(30, 33)]


def write_day(folder: Path, day: str, groups: Iterable[Iterable[int]]) -> None:
    (folder / "edges" / day).mkdir(parents=True, exist_ok=True)
    runs.write_rows(folder / "edges" / day / "part.parquet", edges_of(map(frozenset, groups)))


def run(folder: Path, out: str, day: str, *more: str) -> Ended:
    paths = ["--input", f"{folder}/edges/{{date}}", "--output", f"{out}/{{date}}", "--date", day]
    return call("run", *paths, "--device", "cpu", "--set", "output.report=false", *more)


def test_a_group_is_found_by_its_track(tmp_path: Path) -> None:
    result = result_of(tmp_path / "out", [frozenset(range(4)), frozenset(range(10, 15))], tracks=True)
    for track, members in tracks_of(result).items():
        found = find_track(result, track)
        assert (found, find_track(tmp_path / "out", track)) == (find_dn_graph(result, found.component),) * 2
        ended = call("members", str(result.path), "--track", str(track), "--json")
        assert {json.loads(line)["id"] for line in ended.stdout.splitlines()} == members
        ended = call("subgraph", str(result.path), "--track", str(track))
        assert len(ended.stdout.splitlines()) == 1 + len(members) * (len(members) - 1) // 2
    with pytest.raises(UsageError, match="track 3"):
        find_track(result, 3)
    with pytest.raises(UsageError, match=r"release without tracks: edgemill\.diff"):
        find_track(result_of(tmp_path / "earlier", [frozenset(range(4))]), 1)
    for arguments in ([], ["5", "--track", "1"]):
        ended = call("members", str(result.path), *arguments)
        assert (ended.exit_code, "one group: its ID or --track N" in ended.stderr) == (2, True)


def lines_of(ended: Ended) -> list[str]:
    """The record of other nights in a result."""
    names = ("since", "groups ", "changes", "latest")
    return [line.rstrip() for line in ended.stdout.splitlines() if line.startswith(names)]


@pytest.fixture(params=["disk", pytest.param("store", marks=pytest.mark.slow)])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "disk":
        yield str(tmp_path / "out")
        return
    place = Folder(f"memory://tracks/{next(_numbers)}")
    yield place.url
    place.remove("")


def test_nights_by_the_command(tmp_path: Path, out: str) -> None:
    write_day(tmp_path, "2026-11-18", EARLY)
    write_day(tmp_path, "2026-11-19", LATER)
    ended = run(tmp_path, out, "2026-11-18")
    assert (ended.exit_code, lines_of(ended)) == (0, ["latest      -> 2026-11-18"])
    ended = run(tmp_path, out, "2026-11-19")
    assert ended.exit_code == 0
    assert lines_of(ended) == [
        "since       2026-11-18",
        "groups      1 born, 1 died, 0 merged, 0 split, 0 grown, 0 shrunk",
        "latest      -> 2026-11-19",
    ]
    ended = run(tmp_path, out, "2026-11-19")
    assert ended.stdout.startswith("nothing to do") and lines_of(ended) == []
    first, second = (Result(f"{out}/2026-11-{day}") for day in (18, 19))
    assert {track: sorted(group)[0] for track, group in tracks_of(first).items()} == {1: 0, 2: 10, 3: 20}
    assert {track: sorted(group)[0] for track, group in tracks_of(second).items()} == {1: 1, 2: 10, 4: 30}
    assert first.manifest.tracks == TracksRecord(previous=None, continued=0, again=0, new=3, next=4)
    record = second.manifest.tracks
    assert record is not None and record.previous is not None
    assert (record.previous.day, record.previous.run) == ("2026-11-18", first.manifest.run)
    assert record.previous.path == f"{out}/2026-11-18"
    assert (record.continued, record.again, record.new, record.next) == (2, 0, 1, 5)
    assert verify(second.place, tmp_path / "edges/2026-11-19").ok

    write_day(tmp_path, "2026-11-18", [*EARLY, range(40, 47)])  # late edges of a day that has a day after it
    assert run(tmp_path, out, "2026-11-18", "--overwrite").exit_code == 0
    redone = tracks_of(Result(f"{out}/2026-11-18"))
    assert {track: sorted(group)[0] for track, group in redone.items()} == {1: 0, 2: 10, 3: 20, 5: 40}
    write_day(tmp_path, "2026-11-20", [range(50, 53)])
    ended = run(tmp_path, out, "2026-11-20", "--json", "--set", "nightly.least_share=null")
    assert set(tracks_of(Result(f"{out}/2026-11-20"))) == {6}  # above what the redone day gave out
    counts = {"continued": 0, "grown": 0, "shrunk": 0, "born": 1, "died": 3, "merged": 0, "split": 0}
    told = {"since": "2026-11-19", "groups": counts, "edges": None, "latest": "2026-11-20"}
    told |= {"latest_kept": None, "delta": None}
    assert json.loads(ended.stdout)["night"] == told


def test_without_a_series_numbers_begin_at_one(tmp_path: Path) -> None:
    rows = runs.write_rows(tmp_path / "rows.parquet", edges_of(map(frozenset, EARLY)))
    for _ in range(2):
        settings: dict[str, Any] = {"output.report": False, "checkpoint.fresh": True}
        result = mine(rows, tmp_path / "out", device="cpu", overwrite=True, **settings)
        assert result.manifest.tracks == TracksRecord(previous=None, continued=0, again=0, new=3, next=4)
        assert {track: len(group) for track, group in tracks_of(result).items()} == {1: 6, 2: 5, 3: 4}
    table = result.dn_graphs.to_table()
    assert table.schema.names[-1] == "track"


@pytest.mark.slow
def test_tracks_are_the_same_in_any_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many groups of few sizes: some stay, some move and some merge."""
    cliques = [range(20 * n, 20 * n + 4 + n % 3) for n in range(60)]
    late = [[*own, 5000 + n] if n % 4 == 0 else own for n, own in enumerate(cliques) if n % 5]
    late[3:5] = [[*late[3], *late[4]]]
    write_day(tmp_path, "2026-11-18", cliques)
    write_day(tmp_path, "2026-11-19", late)
    found = []
    for parts in (1, 3):
        monkeypatch.setattr(Plan, "buckets", parts)
        out = tmp_path / f"out{parts}"
        for day in ("2026-11-18", "2026-11-19"):
            assert run(tmp_path, str(out), day, "--partitions", "1").exit_code == 0
        results = [Result(out / day) for day in ("2026-11-18", "2026-11-19")]
        followed = next(line for line in log(results[1]) if line["event"] == "followed")
        record = results[1].manifest.tracks
        assert record is not None
        files = {output.path for output in results[1].manifest.outputs if "dn_graphs/" in output.path}
        assert len(files) == parts
        found.append(([tracks_of(one) for one in results], followed["groups"], record.continued, record.next))
    assert found[0] == found[1]
    first, second = ({members: track for track, members in own.items()} for own in found[0][0])
    assert sorted(first.values()) == list(range(1, 61))
    numbers = {2: 1, 5: 2, 59: 20, 1: 21, 4: 22, 0: 41}  # the largest first, then by ids
    assert {n: first[frozenset(cliques[n])] for n in numbers} == numbers
    assert found[0][1] == fates.fates(found[0][0][0], found[0][0][1])[0].__dict__
    assert all(second[members] == first[members] for members in first.keys() & second.keys())


@pytest.mark.parametrize(
    ("id_type", "name"),
    [
        pytest.param(pa.string(), str, marks=pytest.mark.slow),
        (pa.uuid(), lambda id: UUID(int=id).bytes),
        pytest.param(pa.uint64(), lambda id: 2**64 - 1 - id, marks=pytest.mark.slow),
    ],
    ids=["string", "uuid", "uint64"],
)
def test_ids_of_any_type(tmp_path: Path, id_type: pa.DataType, name: Callable[[int], Any]) -> None:
    for day, groups in (("2026-11-18", EARLY), ("2026-11-19", LATER)):
        (tmp_path / "edges" / day).mkdir(parents=True)
        rows = [(name(a), name(b)) for a, b in edges_of(map(frozenset, groups))]
        runs.write_rows(tmp_path / "edges" / day / "part.parquet", rows, id_type)
        assert run(tmp_path, str(tmp_path / "out"), day).exit_code == 0
    before, after = (tracks_of(Result(tmp_path / "out" / day)) for day in ("2026-11-18", "2026-11-19"))
    assert {track: len(group) for track, group in after.items()} == {1: 6, 2: 5, 4: 3}
    assert (before[2], len(before[1] & after[1])) == (after[2], 5)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("release", "it was made by a release without tracks"),
        ("ids", "its ids are string, but the ids of this run are int64"),
        ("damage", "is damaged"),
        pytest.param("page", "is damaged", marks=pytest.mark.slow),
    ],
)
def test_a_night_before_that_is_of_no_use(tmp_path: Path, spoil: str, reason: str) -> None:
    """All tracks are new, with unused numbers, and the log has the reason."""
    write_day(tmp_path, "2026-11-19", LATER)
    groups = [frozenset(own) for own in LATER]
    first = tmp_path / "out/2026-11-18"
    if spoil == "ids":
        names = {edge: 4 for edge in combinations(map(str, range(6)), 2)}
        made(first, names, id_type=pa.string())
    else:
        result_of(first, groups, tracks=spoil != "release")
    if spoil == "damage":
        part = next((first / "vertices").iterdir())
        part.write_bytes(part.read_bytes()[:-9] + b"123456789")
    if spoil == "page":
        part = next((first / "vertices").iterdir())
        content = bytearray(part.read_bytes())
        content[30] ^= 255
        part.write_bytes(content)
    done = run(tmp_path, str(tmp_path / "out"), "2026-11-19", "--set", "nightly.least_share=null")
    assert done.exit_code == 0
    result = Result(tmp_path / "out/2026-11-19")
    tracks = result.manifest.tracks
    assert tracks is not None
    assert (tracks.previous, tracks.continued, tracks.new) == (None, 0, 3)
    assert tracks.refused is not None and tracks.refused.day == "2026-11-18"
    again = run(tmp_path, str(tmp_path / "out"), "2026-11-19")  # a result that is of no use does not become newer
    assert again.stdout.startswith("nothing to do")
    highest = {"release": 0, "ids": 1, "damage": 3, "page": 3}[spoil]
    assert sorted(tracks_of(result)) == [highest + 1, highest + 2, highest + 3]
    (event,) = [line for line in log(result) if line["event"] == "tracks_new"]
    assert reason in event["reason"]
    assert done.stderr.startswith(f"Warning: all DN-graphs get new tracks, since those of {first} cannot be continued")
    assert reason in done.stderr


def log(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]


def test_a_store_that_does_not_answer_ends_the_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeat continues the tracks, which new numbers would not."""
    for day in ("2026-11-18", "2026-11-19"):
        write_day(tmp_path, day, EARLY)
    out = str(tmp_path / "out")
    assert run(tmp_path, out, "2026-11-18").exit_code == 0

    def lost(earlier: EarlierResult, *rows: Any) -> pa.Table:
        raise StoreLost(f"{earlier.place} does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(EarlierResult, "rows_of_vertices", lost)
        ended = run(tmp_path, out, "2026-11-19")
    assert (ended.exit_code, "does not answer" in ended.stderr) == (4, True)
    assert not (tmp_path / "out/2026-11-19").exists()
    assert run(tmp_path, out, "2026-11-19").exit_code == 0
    assert tracks_of(Result(f"{out}/2026-11-19")) == tracks_of(Result(f"{out}/2026-11-18"))
